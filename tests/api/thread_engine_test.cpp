// SPDX-License-Identifier: Apache-2.0
//
// Engine thread: system calls find absent far memory present.  What other engines answer with
// EFAULT works here; what cannot be served fails as a system call does, with one line.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 96;
constexpr uint64_t kBytes = kBlocks * kBlock;

class ThreadEngineTest : public testing::Test {
protected:
    void SetUp() override {
        if (const auto refusal = engine_refusal("thread"); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
        pool_ = std::make_unique<FarPool>(PoolSetup{"thread", kBlock}, kFramesMin + 4, 2 * kBytes);
        region_ = pool_->alloc(kBytes);
        words_ = reinterpret_cast<uint64_t*>(region_);
        file_ = open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        ASSERT_GE(file_, 0);
    }
    void TearDown() override { close(file_); }

    sys::testing::TemporaryDirectory directory_;
    std::unique_ptr<FarPool> pool_;
    std::byte* region_ = nullptr;
    uint64_t* words_ = nullptr;
    int file_ = -1;
};

// Four times what fits: the first blocks leave while the last ones come, within one call.
TEST_F(ThreadEngineTest, OneCallTransfersMoreThanTheBudgetHolds) {
    fill(words_, kBytes, 1);
    ASSERT_EQ(pwrite(file_, region_, kBytes, 0), static_cast<ssize_t>(kBytes));
    uint64_t* const other = pool_->alloc_words(kBytes);
    ASSERT_EQ(pread(file_, other, kBytes, 0), static_cast<ssize_t>(kBytes));
    EXPECT_EQ(mismatches(other, kBytes, 1), 0u);
    EXPECT_EQ(mismatches(words_, kBytes, 1), 0u);
    const hanare_counters stats = pool_->stats();
    EXPECT_LE(stats.frame_bytes + stats.metadata_bytes, stats.budget_bytes);
}

// The kernel's writes make blocks dirty as the program's do.
TEST_F(ThreadEngineTest, WhatACallHasWrittenIsKept) {
    std::vector<uint64_t> source(kBytes / sizeof(uint64_t));
    fill(source.data(), kBytes, 2);
    ASSERT_EQ(pwrite(file_, source.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
    fill(words_, kBytes, 1);
    for (uint64_t i = 0; i < kBlocks; ++i) {
        pool_->make_absent(region_, kBytes);
        if (i % 3 == 0) touch(region_, kBlock, i);  // clean and mapped: an upgrade by the kernel
        ASSERT_EQ(pread(file_, region_ + i * kBlock + 8, 16, static_cast<off_t>(i * kBlock + 8)),
                  16);
    }
    pool_->make_absent(region_, kBytes);
    for (uint64_t i = 0; i < kBlocks; ++i) {
        const uint64_t at = i * kBlock / sizeof(uint64_t);
        ASSERT_EQ(words_[at], pattern(1, at));
        ASSERT_EQ(words_[at + 1], pattern(2, at + 1));
        ASSERT_EQ(words_[at + 2], pattern(2, at + 2));
        ASSERT_EQ(words_[at + 3], pattern(1, at + 3));
    }
}

TEST_F(ThreadEngineTest, CallsOfEveryKindFindTheirMemory) {
    fill(words_, kBytes, 1);
    pool_->make_absent(region_, kBytes);
    // A futex word, absent: its value is compared.
    EXPECT_EQ(syscall(SYS_futex, words_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    iovec parts[] = {{region_ + 3 * kBlock, 4096}, {region_ + 7 * kBlock, 4096}};
    ASSERT_EQ(writev(ends[0], parts, 2), 8192);
    iovec targets[] = {{region_ + 11 * kBlock, 4096}, {region_ + 13 * kBlock, 4096}};
    ASSERT_EQ(readv(ends[1], targets, 2), 8192);
    EXPECT_EQ(std::memcmp(region_ + 3 * kBlock, region_ + 11 * kBlock, 4096), 0);
    EXPECT_EQ(std::memcmp(region_ + 7 * kBlock, region_ + 13 * kBlock, 4096), 0);
    close(ends[0]);
    close(ends[1]);
    // A path, and where its attributes go.
    auto* const path = reinterpret_cast<char*>(region_ + 20 * kBlock);
    auto* const status = reinterpret_cast<struct stat*>(region_ + 22 * kBlock);
    std::strcpy(path, "/proc/self/exe");
    pool_->make_absent(region_, kBytes);
    ASSERT_EQ(stat(path, status), 0) << errno;
    EXPECT_TRUE(S_ISREG(status->st_mode));
    iovec local = {region_ + 30 * kBlock, 4096};
    iovec remote = {region_ + 31 * kBlock, 4096};
    EXPECT_EQ(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), 4096);
    EXPECT_EQ(std::memcmp(region_ + 30 * kBlock, region_ + 31 * kBlock, 4096), 0);
}

TEST_F(ThreadEngineTest, AThreadMaySleepOnAFarFutex) {
    auto* const word = reinterpret_cast<std::atomic<uint32_t>*>(region_ + 5 * kBlock);
    word->store(1);
    pool_->make_absent(region_, kBytes);
    std::atomic<bool> woken{false};
    std::thread sleeper([&] {
        while (word->load() == 1) {
            syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
        }
        woken = true;
    });
    EXPECT_FALSE(woken);
    word->store(2);
    pool_->make_absent(region_, kBytes);  // the word goes away while somebody sleeps on it
    while (!woken) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    sleeper.join();
}

TEST_F(ThreadEngineTest, ManyThreadsFaultAtOnce) {
    constexpr uint64_t kThreads = 16;
    fill(words_, kBytes, 1);
    std::atomic<uint64_t> wrong{0};
    std::vector<std::function<void()>> bodies;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
        bodies.emplace_back([&, thread] {
            std::vector<std::byte> copy(kBlock);
            for (uint64_t i = 0; i < 3 * kBlocks; ++i) {
                const uint64_t block = (i * 7 + thread * 5) % kBlocks;
                const uint64_t at = block * kBlock / sizeof(uint64_t) + thread;
                wrong += words_[at] != pattern(1, at);
                const auto offset = static_cast<off_t>(thread * kBlock);
                wrong += pwrite(file_, region_ + block * kBlock, kBlock, offset) !=
                         static_cast<ssize_t>(kBlock);
                wrong += pread(file_, copy.data(), kBlock, offset) != static_cast<ssize_t>(kBlock);
                wrong += std::memcmp(copy.data(), region_ + block * kBlock, kBlock) != 0;
            }
        });
    }
    run_threads(bodies);
    EXPECT_EQ(wrong, 0u);
}

// Dirty parts of blocks are written to the store from where they are; who writes must not wait for
// the one that is gone.
API_TEST_SCENARIO(part_taken_away_before_it_is_written) {
    constexpr uint64_t kBig = 256 * kKiB;
    FarPool pool({"thread", kBig}, kFramesMin + 4, 64 * kBig);
    std::byte* const region = pool.alloc(64 * kBig);
    must(hanare_advise(pool.get(), region, 64 * kBig, HANARE_ADVICE_RANDOM));
    for (uint64_t i = 0; i < 64; ++i) poke(region, kBig, i, i + 1);
    SCENARIO_CHECK(pool.stats().dirty_bytes == 64 * kOsPageBytes);
    SCENARIO_CHECK(madvise(region + 5 * kBig, kOsPageBytes, MADV_DONTNEED) == 0);
    hanare_flush(pool.get(), nullptr, 0);  // dies here
    return 0;
}

TEST_F(ThreadEngineTest, NobodyWaitsForAPartThatIsGone) {
    const Outcome outcome = run_scenario("part_taken_away_before_it_is_written");
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("is gone although its block is mapped"), std::string::npos);
}

sigjmp_buf resume;
void on_sigbus(int) { siglongjmp(resume, 1); }

bool is_refused(const std::byte* region, uint64_t index) {
    if (sigsetjmp(resume, 1) != 0) return true;
    touch(region, kBlock, index);
    return false;
}

// The store of a pool, whose blocks all come back different as long as it is spoilt.
class SpoiltStore {
public:
    explicit SpoiltStore(const FarPool& pool) : file_(pool.open_store_file()) {
        struct stat status = {};
        if (file_ < 0 || fstat(file_, &status) != 0) return;
        content_.resize(static_cast<size_t>(status.st_size));
        const bool is_read = pread(file_, content_.data(), content_.size(), 0) == status.st_size;
        is_spoilt_ = is_read && put(std::vector<std::byte>(content_.size()));
    }
    SpoiltStore(const SpoiltStore&) = delete;
    SpoiltStore& operator=(const SpoiltStore&) = delete;
    ~SpoiltStore() { close(file_); }

    bool is_spoilt() const { return is_spoilt_; }
    bool mend() { return put(content_); }

private:
    bool put(const std::vector<std::byte>& bytes) const {
        return pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
               fsync(file_) == 0;
    }

    const int file_;
    std::vector<std::byte> content_;
    bool is_spoilt_ = false;
};

// Absent blocks, block i beginning with i + 1, and system calls that are given them.
class Refusals {
public:
    explicit Refusals(uint64_t blocks) {
        for (uint64_t i = 0; i < blocks; ++i) poke(region_, kBlock, i, i + 1);
        pool_.make_absent(region_, kBytes);
    }
    Refusals(const Refusals&) = delete;
    Refusals& operator=(const Refusals&) = delete;
    ~Refusals() { close(file_); }

    FarPool& pool() { return pool_; }
    std::byte* region() { return region_; }
    bool call(uint64_t i) { return pwrite(file_, region_ + i * kBlock, 8, 0) == 8; }

private:
    FarPool pool_{{"thread", kBlock}, kFramesMin + 4, kBytes};
    std::byte* const region_ = pool_.alloc(kBytes);
    const sys::testing::TemporaryDirectory directory_;
    const int file_ = open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
};

// Every page that was refused is tried again, also when there are more than are remembered.
API_TEST_SCENARIO(more_is_refused_than_is_remembered) {
    constexpr uint64_t kTouched = 80;
    std::signal(SIGBUS, on_sigbus);
    Refusals scene(kBlocks);
    std::byte* const region = scene.region();
    SpoiltStore store(scene.pool());
    SCENARIO_CHECK(store.is_spoilt());
    // A handler thread that is late may have brought one or another block once more.
    uint64_t refused = 0;
    for (uint64_t i = 0; i < kTouched; ++i) refused += is_refused(region, i);
    SCENARIO_CHECK(refused > 64);
    uint64_t failed = 0;
    for (uint64_t i = kTouched; i < kBlocks; ++i) failed += !scene.call(i) && errno == EFAULT;
    SCENARIO_CHECK(failed > 0);
    SCENARIO_CHECK(store.mend());
    for (uint64_t i = kBlocks; i-- > 0;) SCENARIO_CHECK(eventually([&] { return scene.call(i); }));
    for (uint64_t i = 0; i < kBlocks; ++i) SCENARIO_CHECK(touch(region, kBlock, i) == i + 1);
    return 0;
}

TEST_F(ThreadEngineTest, NothingThatWasRefusedStaysSo) {
    const Outcome outcome = run_scenario("more_is_refused_than_is_remembered");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_NE(outcome.errors.find("; SIGBUS follows"), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("; the system call fails"), std::string::npos) << outcome.errors;
}

// A program that gives up what is damaged can go on with it at once.
API_TEST_SCENARIO(discard_what_was_refused) {
    Refusals scene(8);
    std::byte* const region = scene.region();
    SpoiltStore store(scene.pool());
    SCENARIO_CHECK(store.is_spoilt());
    for (uint64_t i = 0; i < 8; ++i) {
        SCENARIO_CHECK(!scene.call(i) && errno == EFAULT);
        must(hanare_advise(scene.pool().get(), region + i * kBlock, kBlock, HANARE_ADVICE_DISCARD));
        SCENARIO_CHECK(scene.call(i));
        SCENARIO_CHECK(touch(region, kBlock, i) == 0);
    }
    return 0;
}

TEST_F(ThreadEngineTest, WhatIsDiscardedIsNotRefusedAnyMore) {
    const Outcome outcome = run_scenario("discard_what_was_refused");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

API_TEST_SCENARIO(thread_needs_permission) {
    SCENARIO_CHECK(geteuid() != 0 || sys::testing::become_nobody());
    SCENARIO_CHECK(setenv("TMPDIR", arguments[0].c_str(), 1) == 0);
    const std::string refusal = engine_refusal("thread");
    if (refusal.empty()) {
        std::fprintf(stderr, "vm.unprivileged_userfaultfd allows it to everybody\n");
        return kScenarioSkipped;
    }
    SCENARIO_CHECK(refusal.find("CAP_SYS_PTRACE") != std::string::npos);
    SCENARIO_CHECK(refusal.find("vm.unprivileged_userfaultfd=1") != std::string::npos);
    return 0;
}

TEST(ThreadEnginePermissionTest, AnOrdinaryUserIsToldWhatItNeeds) {
    const sys::testing::TemporaryDirectory directory;
    if (geteuid() == 0) {
        ASSERT_EQ(chown(directory.path().c_str(), sys::testing::kNobody, sys::testing::kNobody), 0);
    }
    const Outcome outcome = run_scenario("thread_needs_permission", {directory.path()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
