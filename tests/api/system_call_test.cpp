// SPDX-License-Identifier: Apache-2.0
//
// System calls and far memory: absent memory gives EFAULT, every time; pinned memory works.  A
// transfer over present and then absent memory is short.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBytes = 4 * kBlock;

class SystemCallTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        if (IsSkipped()) return;
        pool_ = std::make_unique<FarPool>(setup(kBlock), 32, kBytes);
        region_ = pool_->alloc(kBytes);
        fill(reinterpret_cast<uint64_t*>(region_), kBytes, 1);
        pool_->make_absent(region_, kBytes);
        source_.resize(kBytes / sizeof(uint64_t));
        fill(source_.data(), kBytes, 2);
        file_ = open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        ASSERT_GE(file_, 0);
        ASSERT_EQ(pwrite(file_, source_.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
    }
    void TearDown() override { close(file_); }

    bool equals_source(uint64_t bytes) const {
        return std::memcmp(region_, source_.data(), bytes) == 0;
    }

    sys::testing::TemporaryDirectory directory_;
    std::unique_ptr<FarPool> pool_;
    std::byte* region_ = nullptr;
    std::vector<uint64_t> source_;
    int file_ = -1;
};

API_TEST_WITH_ENGINES(SystemCallTest);

TEST_P(SystemCallTest, AbsentMemoryGivesEfaultEveryTime) {
    if (serves_system_calls(GetParam())) GTEST_SKIP() << "is served: ThreadEngineTest";
    for (int attempt = 0; attempt < 50; ++attempt) {
        ASSERT_EQ(pread(file_, region_, kBytes, 0), -1);
        ASSERT_EQ(errno, EFAULT);
        ASSERT_EQ(pwrite(file_, region_, kBytes, 0), -1);
        ASSERT_EQ(errno, EFAULT);
        ASSERT_EQ(lseek(file_, 0, SEEK_SET), 0);
        ASSERT_EQ(read(file_, region_ + 100, 8), -1);
        ASSERT_EQ(errno, EFAULT);
        ASSERT_EQ(write(file_, region_ + kBlock, 8), -1);
        ASSERT_EQ(errno, EFAULT);
    }
    EXPECT_EQ(pool_->stats().resident_bytes, 0u);
    EXPECT_EQ(mismatches(reinterpret_cast<uint64_t*>(region_), kBytes, 1), 0u);
}

TEST_P(SystemCallTest, MemoryPinnedForWritingCanBeReadInto) {
    must(hanare_pin(pool_->get(), region_, kBytes, HANARE_ACCESS_WRITE));
    EXPECT_EQ(pread(file_, region_, kBytes, 0), static_cast<ssize_t>(kBytes));
    must(hanare_unpin(pool_->get(), region_, kBytes));
    pool_->make_absent(region_, kBytes);
    EXPECT_TRUE(equals_source(kBytes));
}

TEST_P(SystemCallTest, MemoryPinnedForReadingCanBeWrittenFrom) {
    must(hanare_pin(pool_->get(), region_, kBytes, HANARE_ACCESS_READ));
    EXPECT_EQ(pwrite(file_, region_, kBytes, 0), static_cast<ssize_t>(kBytes));
    // The pin is for reading and the blocks are clean, so the kernel may not write to them.
    if (!serves_system_calls(GetParam())) {
        EXPECT_EQ(pread(file_, region_, kBytes, 0), -1);
        EXPECT_EQ(errno, EFAULT);
    }
    must(hanare_unpin(pool_->get(), region_, kBytes));
    ASSERT_EQ(pread(file_, source_.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
    EXPECT_EQ(mismatches(source_.data(), kBytes, 1), 0u);
}

// A transfer that begins in present and ends in absent memory is short, as with any bad address
// in the middle; the present part is right and the absent part unchanged.
TEST_P(SystemCallTest, PresentThenAbsentIsAShortTransfer) {
    if (serves_system_calls(GetParam())) GTEST_SKIP() << "is served: ThreadEngineTest";
    must(hanare_pin(pool_->get(), region_, kBlock, HANARE_ACCESS_WRITE));
    const ssize_t got = pread(file_, region_, 2 * kBlock, 0);
    EXPECT_EQ(got, static_cast<ssize_t>(kBlock));
    EXPECT_TRUE(equals_source(kBlock));
    EXPECT_EQ(touch(region_, kBlock, 1), pattern(1, kBlock / sizeof(uint64_t)));
    pool_->make_absent(region_ + kBlock, kBlock);

    const ssize_t put = pwrite(file_, region_, 2 * kBlock, 0);
    EXPECT_GT(put, 0);
    EXPECT_LE(put, static_cast<ssize_t>(kBlock));
    must(hanare_unpin(pool_->get(), region_, kBlock));
}

// A program that touches the memory first instead of pinning it is right until a block leaves.
TEST_P(SystemCallTest, TouchedMemoryWorksWhileItIsPresent) {
    for (uint64_t i = 0; i < 4; ++i) poke(region_, kBlock, i, 0);
    EXPECT_EQ(pread(file_, region_, kBytes, 0), static_cast<ssize_t>(kBytes));
    EXPECT_TRUE(equals_source(kBytes));
}

}  // namespace

}  // namespace hanare::api_test
