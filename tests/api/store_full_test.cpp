// SPDX-License-Identifier: Apache-2.0
//
// Stores without room: at open, at alloc, and (the hard one) while the program runs.  The file
// systems are real and small, and private to the scenario's process.
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

using sys::testing::TemporaryDirectory;

constexpr uint64_t kBlock = 64 * kKiB;

bool may_mount() {
    if (sys::testing::private_mounts_work() && sys::testing::enter_private_mounts()) return true;
    std::fprintf(stderr, "private mounts are refused here\n");
    return false;
}

PoolConfig config_in(const std::string& store) {
    PoolConfig config;
    config.store = "file:" + store;
    config.options.local_bytes = budget_for(kFramesMin + 4, kBlock, kMiB);
    config.options.block_bytes = kBlock;
    config.options.read_ahead_blocks = HANARE_READ_AHEAD_OFF;
    config.options.flags = HANARE_POOL_ALLOW_TMPFS;
    return config;
}

bool passes(const testing::AssertionResult& result) {
    if (!result) std::fprintf(stderr, "%s\n", result.message());
    return result;
}

API_TEST_SCENARIO(store_full_at_open_and_alloc) {
    if (!may_mount()) return kScenarioSkipped;
    const std::string& directory = arguments[0];
    SCENARIO_CHECK(mount("none", directory.c_str(), "tmpfs", 0, "size=8m") == 0);
    hanare_pool* pool = nullptr;
    PoolConfig too_large = config_in(directory + "?size=64M");
    SCENARIO_CHECK(passes(fails_with(HANARE_STATUS_STORE_FULL, {directory, "64 MiB wanted", "free"},
                                     hanare_pool_open(too_large.c_options(), &pool))));
    FarPool open(config_in(directory));
    void* address = nullptr;
    SCENARIO_CHECK(passes(fails_with(HANARE_STATUS_STORE_FULL, {directory, "16 MiB wanted", "free"},
                                     hanare_alloc(open.get(), 16 * kMiB, nullptr, &address))));
    std::byte* const region = open.alloc(4 * kMiB);
    fill(reinterpret_cast<uint64_t*>(region), 4 * kMiB, 1);
    SCENARIO_CHECK(hanare_alloc(open.get(), 6 * kMiB, nullptr, &address) ==
                   HANARE_STATUS_STORE_FULL);
    SCENARIO_CHECK(mismatches(reinterpret_cast<uint64_t*>(region), 4 * kMiB, 1) == 0);
    must(hanare_free(open.get(), region));
    open.alloc(6 * kMiB);  // the room has come back
    return 0;
}

TEST(StoreFullTest, AtOpenAndAtAlloc) {
    const TemporaryDirectory directory;
    const Outcome outcome = run_scenario("store_full_at_open_and_alloc", {directory.path()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

TEST(StoreFullTest, APreallocatedStoreHasNoMoreThanItsSize) {
    const TemporaryDirectory directory;
    FarPool pool(config_in(directory.path() + "?size=8M"));
    std::byte* const region = pool.alloc(4 * kMiB);
    void* address = nullptr;
    EXPECT_TRUE(fails_with(HANARE_STATUS_STORE_FULL,
                           {"store of 8 MiB", "8 MiB wanted", "4 MiB free in one piece"},
                           hanare_alloc(pool.get(), 8 * kMiB, nullptr, &address)));
    must(hanare_free(pool.get(), region));
    pool.alloc(8 * kMiB);
}

// ext2 cannot preallocate, so a disk that somebody else fills is noticed by a write-back.
class SmallDisk {
public:
    bool mount_at(const std::string& directory) {
        const std::string image = directory + ".image";
        const std::string command =
            "PATH=$PATH:/sbin:/usr/sbin; truncate -s 24M " + image + " && mkfs.ext2 -q -F -m 0 " +
            image + " && mount -t ext2 -o loop " + image + " " + directory + " 2>/dev/null";
        const bool done = std::system(command.c_str()) == 0;
        unlink(image.c_str());
        filler_ = directory + "/filler";
        return done;
    }
    // Until nothing fits any more.
    bool fill_up() {
        const int file = open(filler_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        std::vector<std::byte> part(kMiB, std::byte{1});
        for (size_t bytes = part.size(); bytes >= 512; bytes /= 2) {
            while (write(file, part.data(), bytes) > 0) {
            }
        }
        fsync(file);
        return file >= 0 && close(file) == 0;
    }
    bool free_again() { return unlink(filler_.c_str()) == 0; }

private:
    std::string filler_;
};

sigjmp_buf resume;

void on_sigbus(int) { siglongjmp(resume, 1); }

// Fills block after block until an access fails; returns how many blocks were filled.
uint64_t fill_until_sigbus(uint64_t* words, uint64_t blocks) {
    static volatile uint64_t done;
    constexpr uint64_t kWords = kBlock / sizeof(uint64_t);
    done = 0;
    if (sigsetjmp(resume, 1) != 0) return done;
    while (done < blocks) {
        fill(words + done * kWords, kBlock, 100 + done);
        done = done + 1;
    }
    return done;
}

uint64_t bad_blocks(const uint64_t* words, uint64_t first, uint64_t last) {
    constexpr uint64_t kWords = kBlock / sizeof(uint64_t);
    uint64_t count = 0;
    for (uint64_t i = first; i < last; ++i) {
        count += mismatches(words + i * kWords, kBlock, 100 + i) != 0;
    }
    return count;
}

API_TEST_SCENARIO(disk_full_while_running) {
    constexpr uint64_t kBlocks = 160;  // 10 MiB
    if (!may_mount()) return kScenarioSkipped;
    SmallDisk disk;
    if (!disk.mount_at(arguments[1])) {
        std::fprintf(stderr, "no loop device or no mkfs.ext2 here\n");
        return kScenarioSkipped;
    }
    std::signal(SIGBUS, on_sigbus);
    PoolConfig config = config_in(arguments[1]);
    config.engine = arguments[0];
    FarPool pool(config);
    uint64_t* const words = pool.alloc_words(kBlocks * kBlock);
    SCENARIO_CHECK(disk.fill_up());
    const uint64_t filled = fill_until_sigbus(words, kBlocks);
    SCENARIO_CHECK(filled >= kFramesMin);
    SCENARIO_CHECK(filled < kBlocks);
    SCENARIO_CHECK(pool.stats().store_errors > 0);
    SCENARIO_CHECK(passes(fails_with(HANARE_STATUS_STORE_FULL, {"write blocks back"},
                                     hanare_flush(pool.get(), nullptr, 0))));
    SCENARIO_CHECK(bad_blocks(words, filled - 8, filled) == 0);
    SCENARIO_CHECK(disk.free_again());
    SCENARIO_CHECK(bad_blocks(words, 0, filled) == 0);
    SCENARIO_CHECK(fill_until_sigbus(words, kBlocks) == kBlocks);
    must(hanare_flush(pool.get(), nullptr, 0));
    pool.make_absent(words, kBlocks * kBlock);
    SCENARIO_CHECK(bad_blocks(words, 0, kBlocks) == 0);
    return 0;
}

bool limit_files_to(uint64_t bytes) {
    rlimit limit = {};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    limit.rlim_cur = bytes;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

API_TEST_SCENARIO(file_limit_before_open) {
    hanare_pool* pool = nullptr;
    void* address = nullptr;
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1000}, 64 * kKiB}) {
        SCENARIO_CHECK(limit_files_to(bytes));
        PoolConfig sized = config_in(arguments[0] + "?size=1M");
        SCENARIO_CHECK(passes(fails_with(HANARE_STATUS_STORE_FULL, {"1 MiB", "ulimit -f"},
                                         hanare_pool_open(sized.c_options(), &pool))));
        FarPool open(config_in(arguments[0]));
        SCENARIO_CHECK(passes(fails_with(HANARE_STATUS_STORE_FULL, {"1 MiB", "ulimit -f"},
                                         hanare_alloc(open.get(), kMiB, nullptr, &address))));
    }
    return 0;
}

TEST(FileLimitTest, IsNamedAtOpenAndAtAlloc) {
    const TemporaryDirectory directory;
    const Outcome outcome = run_scenario("file_limit_before_open", {directory.path()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

API_TEST_SCENARIO(file_limit_while_running) {
    constexpr uint64_t kBlocks = 160;
    std::signal(SIGBUS, on_sigbus);
    PoolConfig config = config_in(arguments[1]);
    config.engine = arguments[0];
    FarPool pool(config);
    uint64_t* const words = pool.alloc_words(kBlocks * kBlock);
    SCENARIO_CHECK(limit_files_to(0));
    const uint64_t filled = fill_until_sigbus(words, kBlocks);
    SCENARIO_CHECK(filled >= kFramesMin);
    SCENARIO_CHECK(filled < kBlocks);
    SCENARIO_CHECK(limit_files_to(RLIM_INFINITY));
    SCENARIO_CHECK(bad_blocks(words, 0, filled) == 0);
    SCENARIO_CHECK(fill_until_sigbus(words, kBlocks) == kBlocks);
    pool.make_absent(words, kBlocks * kBlock);
    SCENARIO_CHECK(bad_blocks(words, 0, kBlocks) == 0);
    return 0;
}

class FullDiskTest : public EngineTest {};
API_TEST_WITH_ENGINES(FullDiskTest);

TEST_P(FullDiskTest, AFileLimitLoweredLaterEndsInOneLineAndLosesNothing) {
    rlimit limit = {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    if (limit.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "the limit cannot be raised again";
    const TemporaryDirectory directory;
    const Outcome outcome =
        run_scenario("file_limit_while_running", {GetParam(), directory.path()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("cannot serve a write of far memory"), std::string::npos);
}

TEST_P(FullDiskTest, WhileRunningEndsInOneLineAndLosesNothing) {
    const TemporaryDirectory directory;
    const Outcome outcome = run_scenario("disk_full_while_running", {GetParam(), directory.path()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("cannot serve a write of far memory"), std::string::npos);
    EXPECT_NE(outcome.errors.find("the store has no room left; SIGBUS follows"), std::string::npos);
}

}  // namespace

}  // namespace hanare::api_test
