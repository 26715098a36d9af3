// SPDX-License-Identifier: Apache-2.0
//
// What is left of a grid's file when its process is killed, and how a run goes on from there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "stencil/heat.hpp"
#include "sys/test_support.hpp"

namespace hanare::stencil_test {
namespace {

using sys::testing::TemporaryDirectory;

constexpr uint64_t kSteps = 300;

class DurabilityTest : public ::testing::Test {
protected:
    ~DurabilityTest() override { unlink(path_.c_str()); }

    GridPointer create(hanare_durability durability) {
        std::vector<hanare_field> fields;
        hanare_grid_options options = options_for(model_, fields);
        options.path = path_.c_str();
        options.durability = durability;
        hanare_grid* grid = nullptr;
        EXPECT_EQ(hanare_grid_create(&options, &grid), HANARE_STATUS_OK) << last_error();
        return GridPointer(grid);
    }
    hanare_status open(GridPointer& grid, uint32_t flags = 0) {
        hanare_grid_open_options options = {};
        options.struct_size = sizeof options;
        options.memory_bytes = 64u << 20;
        options.flags = flags;
        hanare_grid* opened = nullptr;
        const hanare_status status = hanare_grid_open(path_.c_str(), &options, &opened);
        grid.reset(opened);
        return status;
    }
    hanare_status run(hanare_grid* grid, uint64_t steps, uint32_t steps_per_pass) {
        hanare_grid_run_options options = run_options();
        options.threads = 2;
        options.steps_per_pass = steps_per_pass;
        options.window_planes = 4;
        return hanare_grid_run(grid, steps, stencil_.get(), &options);
    }
    // A process that takes the grid to its last step, unless it is killed.
    pid_t begin_run() {
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        const pid_t child = fork();
        if (child == 0) {
            GridPointer grid;
            if (open(grid) != HANARE_STATUS_OK) _exit(2);
            if (write(ends[1], "b", 1) != 1) _exit(3);
            const uint64_t left = kSteps - step_of(grid.get());
            _exit(run(grid.get(), left, 3) == HANARE_STATUS_OK ? 0 : 4);
        }
        char begun = 0;
        close(ends[1]);
        EXPECT_EQ(read(ends[0], &begun, 1), 1);
        close(ends[0]);
        return child;
    }
    static int kill_after(pid_t child, int wait_ms) {
        poll(nullptr, 0, wait_ms);
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        return status;
    }

    TemporaryDirectory directory_;
    const std::string path_ = directory_.path() + "/grid";
    const Model model_ = heat({48, 20, 22});
    const Stencil stencil_ = Stencil(model_);
};

TEST_F(DurabilityTest, KilledAtAnyMomentItGoesOnFromTheLastPass) {
    Prng random(seed_of_run());
    int kills = 0;
    while (kills < 20) {
        unlink(path_.c_str());
        Reference reference(model_);
        {
            const GridPointer grid = create(HANARE_DURABILITY_PING_PONG);
            fill_both(model_, grid.get(), reference, random);
        }
        for (uint64_t step = 0; step < kSteps && kills < 20; ++kills) {
            const pid_t child = begin_run();
            const int status = kill_after(child, static_cast<int>(random.below(60)));
            ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;
            GridPointer grid;
            ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
            const uint64_t found = step_of(grid.get());
            ASSERT_GE(found, step);
            ASSERT_TRUE(found % 3 == 0 || found == kSteps) << found;
            for (; step < found; ++step) reference.step();
            ASSERT_EQ(difference(model_, grid.get(), reference), "") << "at step " << found;
        }
        // To the end, in one go.
        GridPointer grid;
        ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
        const uint64_t left = kSteps - step_of(grid.get());
        ASSERT_EQ(run(grid.get(), left, 0), HANARE_STATUS_OK) << last_error();
        while (reference.steps() < kSteps) reference.step();
        ASSERT_EQ(difference(model_, grid.get(), reference), "");
    }
}

TEST_F(DurabilityTest, WhatARunInPlaceLeavesIsRefused) {
    Prng random(1);
    Reference reference(model_);
    {
        const GridPointer grid = create(HANARE_DURABILITY_IN_PLACE);
        fill_both(model_, grid.get(), reference, random);
        ASSERT_EQ(run(grid.get(), 5, 0), HANARE_STATUS_OK) << last_error();
    }
    GridPointer grid;
    ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
    EXPECT_EQ(step_of(grid.get()), 5u);
    for (int i = 0; i < 5; ++i) reference.step();
    EXPECT_EQ(difference(model_, grid.get(), reference), "");
    grid.reset();

    const pid_t child = fork();
    if (child == 0) {
        GridPointer own;
        if (open(own) != HANARE_STATUS_OK) _exit(2);
        hanare_grid_run_options options = run_options();
        options.progress = [](const hanare_grid_progress*, void*) { return raise(SIGKILL); };
        options.window_planes = 4;
        hanare_grid_run(own.get(), 20, stencil_.get(), &options);
        _exit(3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT);
    EXPECT_NE(last_error().find("a run in place did not end"), std::string::npos) << last_error();
}

TEST_F(DurabilityTest, OneProcessHasIt) {
    const GridPointer grid = create(HANARE_DURABILITY_PING_PONG);
    GridPointer other;
    EXPECT_EQ(open(other), HANARE_STATUS_BUSY);
    EXPECT_EQ(open(other, HANARE_GRID_READ_ONLY), HANARE_STATUS_BUSY);
    const pid_t child = fork();
    if (child == 0) {
        const bool is_busy = open(other) == HANARE_STATUS_BUSY;
        // The parent's handle is of no use here.
        const bool is_forked = run(grid.get(), 1, 0) == HANARE_STATUS_FORKED;
        _exit(is_busy && is_forked ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(DurabilityTest, ReadersMayShareIt) {
    create(HANARE_DURABILITY_PING_PONG);
    GridPointer one;
    GridPointer two;
    ASSERT_EQ(open(one, HANARE_GRID_READ_ONLY), HANARE_STATUS_OK) << last_error();
    ASSERT_EQ(open(two, HANARE_GRID_READ_ONLY), HANARE_STATUS_OK) << last_error();
    std::vector<double> cells(model_.cells(), 1);
    EXPECT_EQ(hanare_grid_read(one.get(), 0, 0, nullptr, nullptr, cells.data()), HANARE_STATUS_OK);
    EXPECT_EQ(cells, std::vector<double>(model_.cells(), 0));
    EXPECT_EQ(hanare_grid_write(one.get(), 0, 0, nullptr, nullptr, cells.data()),
              HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(one.get(), 1, 0), HANARE_STATUS_PERMISSION);
    GridPointer writer;
    EXPECT_EQ(open(writer), HANARE_STATUS_BUSY);
}

TEST_F(DurabilityTest, ForeignAndDamagedFilesAreNamed) {
    GridPointer grid;
    EXPECT_EQ(open(grid), HANARE_STATUS_NOT_FOUND);
    const auto write_file = [&](const std::string& text) {
        const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(file);
    };
    for (const size_t bytes : {0u, 100u, 5000u, 20000u}) {
        write_file(std::string(bytes, 'x'));
        EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT) << bytes;
        EXPECT_NE(last_error().find(path_), std::string::npos);
    }
    unlink(path_.c_str());
    create(HANARE_DURABILITY_PING_PONG);
    ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
    grid.reset();
    // Both pages of the header; of one: failures_test.cpp.
    int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(pwrite(file, "damage", 6, 4096 + 24), 6);
    ASSERT_EQ(pwrite(file, "damage", 6, 24), 6);
    close(file);
    EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT);
    unlink(path_.c_str());
    create(HANARE_DURABILITY_PING_PONG);
    ASSERT_EQ(truncate(path_.c_str(), 100'000), 0);
    EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT);
    EXPECT_NE(last_error().find("cut off"), std::string::npos) << last_error();
}

// Writes beyond the limit of files fail, as on a device that does.
TEST_F(DurabilityTest, AFailedWriteEndsTheRunAndThePassBeforeStays) {
    for (const auto durability : {HANARE_DURABILITY_PING_PONG, HANARE_DURABILITY_IN_PLACE}) {
        unlink(path_.c_str());
        Prng random(2);
        Reference reference(model_);
        {
            const GridPointer grid = create(durability);
            fill_both(model_, grid.get(), reference, random);
            ASSERT_EQ(run(grid.get(), 4, 0), HANARE_STATUS_OK) << last_error();
        }
        const pid_t child = fork();
        if (child == 0) {
            GridPointer grid;
            if (open(grid) != HANARE_STATUS_OK) _exit(2);
            const rlimit limit = {30 * 4096, 30 * 4096};
            setrlimit(RLIMIT_FSIZE, &limit);
            const hanare_status status = run(grid.get(), 9, 3);
            if (status != HANARE_STATUS_STORE_FULL) {
                std::fprintf(stderr, "%d %s\n", status, last_error().c_str());
            }
            // It says so again.
            const hanare_status after = run(grid.get(), 9, 3);
            const bool is_right = durability == HANARE_DURABILITY_PING_PONG
                                      ? after == status
                                      : after == HANARE_STATUS_CORRUPT;
            _exit(status == HANARE_STATUS_STORE_FULL && is_right ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        GridPointer grid;
        if (durability == HANARE_DURABILITY_IN_PLACE) {
            EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT);
            continue;
        }
        ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
        while (reference.steps() < step_of(grid.get())) reference.step();
        EXPECT_EQ(difference(model_, grid.get(), reference), "");
    }
}

}  // namespace
}  // namespace hanare::stencil_test
