// SPDX-License-Identifier: Apache-2.0
#include "run/rows.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "run/children.hpp"
#include "sys/clock.hpp"
#include "sys/process_namespace.hpp"

namespace hanare::run {
namespace {

using telemetry::RunPage;
using telemetry::RunProcess;
using telemetry::RunRow;

class Rows : public testing::Test {
protected:
    Rows() { page->launcher = {.id = ended(), .name_space = self.name_space}; }

    RunRow& row_of(RunProcess process) {
        RunRow& row = *take_row(*page);
        row.process.store(process);
        row.far_bytes.store(1000);
        page->far_bytes.fetch_add(1000);
        row.shares.store(1);
        page->sharers.fetch_add(1);
        row.state.store(RunRow::kLive);
        return row;
    }
    static pid_t ended() {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
        return child;
    }

    std::unique_ptr<RunPage> page = std::make_unique<RunPage>();
    const RunProcess self = this_process();
    const RunProcess dead{.id = ended(), .name_space = self.name_space};
    const RunProcess dead_elsewhere{.id = dead.id, .name_space = self.name_space + 1};
};

TEST_F(Rows, AProcessIsKnownByItsNamespace) {
    EXPECT_EQ(self.id, getpid());
    EXPECT_EQ(self.name_space, sys::process_namespace());
    EXPECT_FALSE(RunProcess{.id = self.id}.can_tell_of(RunProcess{.id = self.id}));
}

TEST_F(Rows, OfTheDeadEndOnceHanareRunHasEnded) {
    const RunRow& own = row_of(self);
    const RunRow& gone = row_of(dead);
    const RunRow& other = row_of(dead_elsewhere);
    ASSERT_NE(set_aside(*page, dead, 5), nullptr);
    ASSERT_NE(set_aside(*page, dead_elsewhere, 7), nullptr);
    end_rows_of_dead(*page, self);
    EXPECT_EQ(own.state.load(), RunRow::kLive);
    EXPECT_EQ(gone.state.load(), RunRow::kEnded);
    EXPECT_EQ(other.state.load(), RunRow::kLive);
    EXPECT_EQ(page->sharers.load(), 2U);
    EXPECT_EQ(page->far_bytes.load(), 2000U);
    EXPECT_EQ(bytes_set_aside(*page, nullptr), 7U);
}

TEST_F(Rows, OfZombiesEnd) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    row_of({.id = child, .name_space = self.name_space});
    siginfo_t told = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &told, WEXITED | WNOWAIT), 0);
    end_rows_of_dead(*page, self);
    EXPECT_EQ(page->sharers.load(), 0U);
    waitpid(child, nullptr, 0);
}

TEST_F(Rows, AreLeftToHanareRunWhileItLives) {
    page->launcher = self;
    row_of(dead);
    end_rows_of_dead(*page, self);
    EXPECT_EQ(page->sharers.load(), 1U);
    page->launcher.name_space += 1;  // nobody here can tell whether it does
    page->looked_ns.store(sys::now_ns());
    end_rows_of_dead(*page, self);
    EXPECT_EQ(page->sharers.load(), 1U);
    page->looked_ns.store(0);
    end_rows_of_dead(*page, self);
    EXPECT_EQ(page->sharers.load(), 0U);
}

TEST_F(Rows, AreLeftToOthersByWhoDoesNotKnowItsNamespace) {
    row_of({.id = dead.id});
    end_rows_of_dead(*page, {.id = self.id});
    end_rows_of_dead(*page, self);
    EXPECT_EQ(page->sharers.load(), 1U);
}

TEST_F(Rows, OfAStrangerWithTheSameNumberStay) {
    const RunRow& own = row_of(self);
    const RunRow& stranger = row_of({.id = self.id, .name_space = self.name_space + 1});
    end_rows_of(*page, self);
    EXPECT_EQ(own.state.load(), RunRow::kEnded);
    EXPECT_EQ(stranger.state.load(), RunRow::kLive);
    EXPECT_EQ(page->sharers.load(), 1U);
}

TEST_F(Rows, AreThereForManyAndFewAreTouched) {
    for (size_t i = 0; i < RunPage::kUsualRows; ++i) row_of(self);
    EXPECT_EQ(page->used_rows().size(), RunPage::kUsualRows);
    end_row(*page, page->rows[5]);
    EXPECT_EQ(&row_of(self), &page->rows[5]);
    EXPECT_EQ(&row_of(self), &page->rows[RunPage::kUsualRows]);
    while (take_row(*page) != nullptr) {
    }
    EXPECT_EQ(page->used_rows().size(), RunPage::kRows);
}

}  // namespace
}  // namespace hanare::run
