// SPDX-License-Identifier: Apache-2.0
//
// What a grid is after failures, and beside what the kernel or the machine does not have.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "hanare/pool.h"
#include "stencil/heat.hpp"
#include "sys/test_support.hpp"

namespace hanare::stencil_test {
namespace {

using sys::testing::TemporaryDirectory;

constexpr size_t kPage = 4096;

// From now on these system calls are not there.
void take_away(std::initializer_list<uint32_t> calls) {
    std::vector<sock_filter> filter = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (const uint32_t call : calls) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(100);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(101);
}

// The exit status of a child that does this; 0 is good.
int in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

class FailuresTest : public ::testing::Test {
protected:
    ~FailuresTest() override {
        for (const char* const name : {"/grid", "/s.npy"}) {
            unlink((directory_.path() + name).c_str());
        }
    }

    hanare_grid_options options(const char* path) {
        hanare_grid_options result = options_for(model_, fields_);
        result.directory = directory_.path().c_str();
        result.place = HANARE_PLACE_FILE;
        result.path = path;
        return result;
    }
    hanare_status create(const hanare_grid_options& options, GridPointer& grid) {
        hanare_grid* made = nullptr;
        const hanare_status status = hanare_grid_create(&options, &made);
        grid.reset(made);
        return status;
    }
    hanare_status open(GridPointer& grid, uint32_t flags = 0,
                       hanare_grid_io io = HANARE_GRID_IO_AUTO) {
        hanare_grid_open_options options = {};
        options.struct_size = sizeof options;
        options.memory_bytes = 64u << 20;
        options.flags = flags;
        options.io = io;
        hanare_grid* opened = nullptr;
        const hanare_status status = hanare_grid_open(path_.c_str(), &options, &opened);
        grid.reset(opened);
        return status;
    }
    hanare_status run(hanare_grid* grid, uint64_t steps) {
        hanare_grid_run_options options = run_options();
        options.window_planes = 4;
        return hanare_grid_run(grid, steps, stencil_.get(), &options);
    }
    std::string page(uint64_t number) const {
        std::ifstream file(path_, std::ios::binary);
        file.seekg(static_cast<std::streamoff>(number * kPage));
        std::string text(kPage, '\0');
        file.read(text.data(), static_cast<std::streamsize>(kPage));
        return text;
    }
    void write_at(uint64_t offset, const std::string& text) const {
        const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(pwrite(file, text.data(), text.size(), static_cast<off_t>(offset)),
                  static_cast<ssize_t>(text.size()));
        close(file);
    }

    TemporaryDirectory directory_;
    const std::string path_ = directory_.path() + "/grid";
    std::vector<hanare_field> fields_;
    const Model model_ = heat({40, 20, 24});
    const Stencil stencil_ = Stencil(model_);
};

// A commit that leaves one good page could lose that one, and a page that is a pass older names
// states that have been overwritten.
TEST_F(FailuresTest, EitherPageOfTheHeaderMayBeDamaged) {
    for (const auto durability : {HANARE_DURABILITY_PING_PONG, HANARE_DURABILITY_IN_PLACE}) {
        for (const uint64_t damaged : {0u, 1u}) {
            for (const uint64_t steps : {4u, 5u}) {
                unlink(path_.c_str());
                hanare_grid_options given = options(path_.c_str());
                given.durability = durability;
                Prng random(7);
                Reference reference(model_);
                GridPointer grid;
                ASSERT_EQ(create(given, grid), HANARE_STATUS_OK) << last_error();
                fill_both(model_, grid.get(), reference, random);
                ASSERT_EQ(run(grid.get(), steps), HANARE_STATUS_OK) << last_error();
                ASSERT_EQ(run(grid.get(), 1), HANARE_STATUS_OK) << last_error();
                grid.reset();
                ASSERT_EQ(page(0), page(1));
                write_at(damaged * kPage + 24, "damage");
                ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
                EXPECT_EQ(step_of(grid.get()), steps + 1);
                while (reference.steps() <= steps) reference.step();
                EXPECT_EQ(difference(model_, grid.get(), reference), "");
                // Both are good again.
                ASSERT_EQ(run(grid.get(), 1), HANARE_STATUS_OK) << last_error();
                grid.reset();
                EXPECT_EQ(page(0), page(1));
            }
        }
    }
    write_at(24, "damage");
    write_at(kPage + 24, "damage");
    GridPointer grid;
    EXPECT_EQ(open(grid), HANARE_STATUS_CORRUPT);
    EXPECT_NE(last_error().find("the header of the grid is damaged"), std::string::npos)
        << last_error();
}

// The page that is the only good one is not the first to be written.
TEST_F(FailuresTest, AKilledCommitLeavesOnePageWhole) {
    for (const uint64_t damaged : {0u, 1u}) {
        unlink(path_.c_str());
        GridPointer grid;
        ASSERT_EQ(create(options(path_.c_str()), grid), HANARE_STATUS_OK) << last_error();
        grid.reset();
        write_at(damaged * kPage + 24, "damage");
        const std::string good = page(1 - damaged);
        // Writes beyond the first page fail: of the pages only the first can be written.
        const int status = in_child([&] {
            GridPointer own;
            if (open(own) != HANARE_STATUS_OK) return 2;
            const rlimit limit = {kPage, kPage};
            setrlimit(RLIMIT_FSIZE, &limit);
            return run(own.get(), 1) == HANARE_STATUS_STORE_FULL ? 0 : 3;
        });
        EXPECT_EQ(status, 0);
        EXPECT_EQ(damaged == 0 ? page(1) : page(0), good) << damaged;
    }
}

// A file that is cut off under a grid: the first read fails, nothing has been changed.
TEST_F(FailuresTest, AFailureBeforeAnyWorkLeavesTheGridAsItWas) {
    const std::string snapshots = directory_.path() + "/s.npy";
    for (const auto method :
         {HANARE_METHOD_STREAM, HANARE_METHOD_TRAPEZOID, HANARE_METHOD_TRAPEZOID_TWO_LEVEL}) {
        unlink(path_.c_str());
        hanare_grid_options given = options(path_.c_str());
        given.method = method;
        GridPointer grid;
        ASSERT_EQ(create(given, grid), HANARE_STATUS_OK) << last_error();
        hanare_grid_info info = {};
        info.struct_size = sizeof info;
        hanare_grid_describe(grid.get(), &info);
        ASSERT_EQ(truncate(path_.c_str(), 2 * kPage), 0);
        hanare_grid_run_options options = run_options();
        if (method == HANARE_METHOD_STREAM) {
            options.snapshot_every = 1;
            options.snapshot_path = snapshots.c_str();
        }
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(hanare_grid_run(grid.get(), 3, stencil_.get(), &options),
                      HANARE_STATUS_STORE_IO)
                << last_error();
            EXPECT_NE(access(snapshots.c_str(), F_OK), 0) << "snapshots of nothing";
        }
        ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(info.file_bytes)), 0);
        EXPECT_EQ(run(grid.get(), 3), HANARE_STATUS_OK) << last_error();
        grid.reset();
        ASSERT_EQ(open(grid), HANARE_STATUS_OK) << last_error();
        EXPECT_EQ(step_of(grid.get()), 3u);
    }
}

TEST_F(FailuresTest, SnapshotsCountAsMemoryOfAGridInMemory) {
    const uint64_t plane_bytes = 20 * 24 * sizeof(double);
    hanare_grid_options given = options(nullptr);
    given.place = HANARE_PLACE_MEMORY;
    given.memory_bytes = 1;
    GridPointer grid;
    ASSERT_EQ(create(given, grid), HANARE_STATUS_LIMIT);
    given.memory_bytes = 64u << 20;
    ASSERT_EQ(create(given, grid), HANARE_STATUS_OK) << last_error();
    hanare_grid_run_options options = run_options();
    options.snapshot_every = 1;
    options.snapshot = [](uint64_t, uint64_t, const void*, void*) { return 0; };
    hanare_grid_statistics planned = {};
    planned.struct_size = sizeof planned;
    const auto plan = [&] {
        return hanare_grid_plan(grid.get(), 64, stencil_.get(), &options, &planned);
    };
    ASSERT_EQ(plan(), HANARE_STATUS_OK) << last_error();
    const uint64_t wished = planned.window_bytes;
    EXPECT_EQ(wished, 2 * planned.steps_per_pass * planned.window_planes * plane_bytes);
    // As much as the grid and a tenth of that.
    for (given.memory_bytes = 100'000; create(given, grid) != HANARE_STATUS_OK;) {
        given.memory_bytes += 1000;
    }
    const uint64_t held = given.memory_bytes;
    given.memory_bytes += wished / 10;
    ASSERT_EQ(create(given, grid), HANARE_STATUS_OK);
    ASSERT_EQ(plan(), HANARE_STATUS_OK) << last_error();
    EXPECT_LE(planned.window_bytes, wished / 10);
    EXPECT_GT(planned.steps_per_pass, 1u);
    EXPECT_EQ(hanare_grid_run(grid.get(), 64, stencil_.get(), &options), HANARE_STATUS_OK);
    given.memory_bytes = held + plane_bytes;
    ASSERT_EQ(create(given, grid), HANARE_STATUS_OK);
    EXPECT_EQ(plan(), HANARE_STATUS_LIMIT);
    EXPECT_EQ(hanare_grid_run(grid.get(), 64, stencil_.get(), &options), HANARE_STATUS_LIMIT);
    options.steps_per_pass = 64;
    options.window_planes = 64;
    EXPECT_EQ(plan(), HANARE_STATUS_LIMIT);
}

// Far memory whose faults are signals.
TEST_F(FailuresTest, KernelsAndFunctionsMayTouchFarMemory) {
    constexpr size_t kCells = 4u << 20;
    const std::string store = "file:" + directory_.path();
    hanare_pool_options pool_options = {};
    pool_options.struct_size = sizeof pool_options;
    pool_options.local_bytes = 8u << 20;
    pool_options.store = store.c_str();
    pool_options.engine = "segv-remap";
    hanare_pool* pool = nullptr;
    if (hanare_pool_open(&pool_options, &pool) != HANARE_STATUS_OK) {
        GTEST_SKIP() << "no pool: " << last_error();
    }
    void* memory = nullptr;
    ASSERT_EQ(hanare_alloc(pool, kCells * sizeof(double), nullptr, &memory), HANARE_STATUS_OK);
    struct Far {
        double* cells;
        std::atomic<uint64_t> next{0};
        double take() {
            double& cell = cells[next++ * 9973 % kCells];
            cell += 1;
            return cell;
        }
    } far{static_cast<double*>(memory)};
    hanare_stencil_stage stage = stencil_.get()->stages[0];
    stage.user = &far;
    stage.kernel = [](const hanare_stencil_box* box) {
        for (int64_t row = 0; row < box->rows; ++row) {
            auto* const out = static_cast<double*>(box->out[0]) + row * box->row_stride;
            for (int64_t i = 0; i < box->columns; ++i) out[i] = 1;
        }
        if (static_cast<Far*>(box->user)->take() < 1) std::abort();
    };
    const hanare_stencil stencil = {sizeof stencil, &stage, nullptr, 1, 0};
    for (const auto place : {HANARE_PLACE_FILE, HANARE_PLACE_MEMORY}) {
        hanare_grid_options given = options(nullptr);
        given.place = place;
        GridPointer grid;
        ASSERT_EQ(create(given, grid), HANARE_STATUS_OK) << last_error();
        hanare_grid_run_options options = run_options();
        options.threads = 3;
        options.snapshot_every = 1;
        options.snapshot_user = &far;
        options.snapshot = [](uint64_t, uint64_t, const void*, void* user) {
            return static_cast<Far*>(user)->take() < 1 ? 1 : 0;
        };
        EXPECT_EQ(hanare_grid_run(grid.get(), 20, &stencil, &options), HANARE_STATUS_OK)
            << last_error();
    }
    EXPECT_EQ(hanare_free(pool, memory), HANARE_STATUS_OK);
    EXPECT_EQ(hanare_pool_close(pool), HANARE_STATUS_OK);
}

TEST_F(FailuresTest, APlanOfAGridForReadingReadsAlone) {
    const Model large = heat({64, 200, 200});
    std::vector<hanare_field> fields;
    hanare_grid_options given = options_for(large, fields);
    given.place = HANARE_PLACE_FILE;
    given.path = path_.c_str();
    GridPointer grid;
    ASSERT_EQ(create(given, grid), HANARE_STATUS_OK) << last_error();
    grid.reset();
    ASSERT_EQ(open(grid, HANARE_GRID_READ_ONLY), HANARE_STATUS_OK) << last_error();
    hanare_grid_statistics planned = {};
    planned.struct_size = sizeof planned;
    const Stencil stencil(large);
    ASSERT_EQ(hanare_grid_plan(grid.get(), 8, stencil.get(), nullptr, &planned), HANARE_STATUS_OK)
        << last_error();
    EXPECT_GT(planned.read_bytes_per_s, 0);
    EXPECT_EQ(planned.write_bytes_per_s, planned.read_bytes_per_s);
}

TEST_F(FailuresTest, WithoutIoUringOrAio) {
    const auto run_with = [&](hanare_grid_io io, hanare_status made, hanare_status opened) {
        unlink(path_.c_str());
        hanare_grid_options given = options(path_.c_str());
        given.io = io;
        GridPointer grid;
        if (create(given, grid) != made) return 10;
        if (made != HANARE_STATUS_OK) {
            // It leaves no file, and says what is missing.
            if (access(path_.c_str(), F_OK) == 0) return 11;
            if (last_error().find("IO_URING") == std::string::npos) return 12;
            given.io = HANARE_GRID_IO_AUTO;
            if (create(given, grid) != HANARE_STATUS_OK) return 13;
        }
        Prng random(3);
        Reference reference(model_);
        fill_both(model_, grid.get(), reference, random);
        if (run(grid.get(), 5) != HANARE_STATUS_OK) return 14;
        while (reference.steps() < 5) reference.step();
        if (!difference(model_, grid.get(), reference).empty()) return 15;
        grid.reset();
        return open(grid, 0, io) == opened ? 0 : 16;
    };
    EXPECT_EQ(in_child([&] {
                  take_away({SYS_io_uring_setup});
                  return run_with(HANARE_GRID_IO_URING, HANARE_STATUS_NOT_SUPPORTED,
                                  HANARE_STATUS_NOT_SUPPORTED);
              }),
              0);
    for (const auto io : {HANARE_GRID_IO_AUTO, HANARE_GRID_IO_AIO}) {
        EXPECT_EQ(in_child([&] {
                      take_away({SYS_io_uring_setup, SYS_io_setup});
                      return run_with(io, HANARE_STATUS_OK, HANARE_STATUS_OK);
                  }),
                  0)
            << io;
    }
}

TEST_F(FailuresTest, ThePapersMethodSurvivesNoCrashAndSaysSo) {
    hanare_grid_options given = options(path_.c_str());
    given.method = HANARE_METHOD_TRAPEZOID;
    given.durability = HANARE_DURABILITY_PING_PONG;
    GridPointer grid;
    EXPECT_EQ(create(given, grid), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(last_error().find("PING_PONG"), std::string::npos) << last_error();
}

}  // namespace
}  // namespace hanare::stencil_test
