// SPDX-License-Identifier: Apache-2.0
#include "run/children.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace hanare::run {
namespace {

using telemetry::RunChild;
using telemetry::RunPage;

constexpr uint64_t kBytes = 3 << 20;

class Children : public testing::Test {
protected:
    std::unique_ptr<RunPage> page = std::make_unique<RunPage>();
    const int self = getpid();
};

TEST_F(Children, CountUntilTheyHaveARow) {
    EXPECT_EQ(bytes_set_aside(*page), 0U);
    RunChild* const one = set_aside(*page, self, kBytes);
    RunChild* const other = set_aside(*page, self, kBytes);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(other, nullptr);
    EXPECT_NE(one, other);
    EXPECT_EQ(bytes_set_aside(*page), 2 * kBytes);
    release(*one, self);
    EXPECT_EQ(bytes_set_aside(*page), kBytes);
    release(*one, self);  // is nobody's
    EXPECT_EQ(bytes_set_aside(*page), kBytes);
}

TEST_F(Children, ThatAreGoneCountNoMore) {
    RunChild* const child = set_aside(*page, self, kBytes);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const int process_id = fork();
    ASSERT_GE(process_id, 0);
    if (process_id == 0) {
        char byte = 0;
        close(ends[1]);
        static_cast<void>(!read(ends[0], &byte, 1));
        _exit(0);
    }
    note_owner(*child, self, process_id);
    note_owner(*child, self, process_id);  // the other of parent and child
    EXPECT_EQ(child->process_id.load(), process_id);
    EXPECT_EQ(bytes_set_aside(*page), kBytes);
    close(ends[0]);
    close(ends[1]);
    ASSERT_EQ(waitpid(process_id, nullptr, 0), process_id);
    EXPECT_EQ(bytes_set_aside(*page), 0U);
    EXPECT_EQ(child->process_id.load(), 0);
}

TEST_F(Children, OfAProgramThatCalledExecAreReleased) {
    RunChild* const other = set_aside(*page, getppid(), kBytes);
    ASSERT_NE(set_aside(*page, self, kBytes), nullptr);
    release_all_of(*page, self);
    EXPECT_EQ(bytes_set_aside(*page), kBytes);
    EXPECT_EQ(other->process_id.load(), getppid());
}

TEST_F(Children, OfWhichThereAreTooManyHaveNone) {
    for (size_t i = 0; i < RunPage::kChildren; ++i) {
        ASSERT_NE(set_aside(*page, self, kBytes), nullptr);
    }
    EXPECT_EQ(set_aside(*page, self, kBytes), nullptr);
}

}  // namespace
}  // namespace hanare::run
