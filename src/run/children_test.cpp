// SPDX-License-Identifier: Apache-2.0
#include "run/children.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace hanare::run {
namespace {

using telemetry::RunChild;
using telemetry::RunPage;
using telemetry::RunProcess;

constexpr uint64_t kBytes = 3 << 20;

class Children : public testing::Test {
protected:
    std::unique_ptr<RunPage> page = std::make_unique<RunPage>();
    const RunProcess self{.id = getpid(), .name_space = 7};
    const RunProcess parent{.id = getppid(), .name_space = 7};
    const RunProcess stranger{.id = getpid(), .name_space = 8};
};

TEST_F(Children, CountUntilTheyHaveARow) {
    EXPECT_EQ(bytes_set_aside(*page, nullptr), 0U);
    RunChild* const one = set_aside(*page, self, kBytes);
    RunChild* const other = set_aside(*page, self, kBytes);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(other, nullptr);
    EXPECT_NE(one, other);
    EXPECT_EQ(bytes_set_aside(*page, nullptr), 2 * kBytes);
    EXPECT_EQ(bytes_set_aside(*page, one), kBytes);
    release(*one);
    EXPECT_EQ(bytes_set_aside(*page, nullptr), kBytes);
}

TEST_F(Children, AreTheirParentsUntilItKnowsThem) {
    RunChild* const child = set_aside(*page, self, kBytes);
    EXPECT_EQ(child->process.load(), self);
    note_owner(*child, self, self.id + 1);
    EXPECT_EQ(child->process.load(), (RunProcess{.id = self.id + 1, .name_space = 7}));
    release(*child);
    note_owner(*child, self, self.id + 1);  // too late
    EXPECT_EQ(bytes_set_aside(*page, nullptr), 0U);
}

TEST_F(Children, OfAProgramThatCalledExecAreReleased) {
    RunChild* const other = set_aside(*page, parent, kBytes);
    ASSERT_NE(set_aside(*page, stranger, kBytes), nullptr);
    ASSERT_NE(set_aside(*page, self, kBytes), nullptr);
    release_all_of(*page, self);
    EXPECT_EQ(bytes_set_aside(*page, nullptr), 2 * kBytes);
    EXPECT_EQ(other->process.load(), parent);
}

TEST_F(Children, OfWhichThereAreTooManyHaveNone) {
    for (size_t i = 0; i < RunPage::kChildren; ++i) {
        ASSERT_NE(set_aside(*page, self, kBytes), nullptr);
    }
    EXPECT_EQ(set_aside(*page, self, kBytes), nullptr);
}

}  // namespace
}  // namespace hanare::run
