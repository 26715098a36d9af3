// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include "store/store_test_support.hpp"

namespace hanare::store {
namespace {

namespace inject = sys::inject;

constexpr size_t kRequests = 12;
constexpr size_t kBytes = 64 * kKiB;

class SharedTransfersTest : public StoreTest {
protected:
    void SetUp() override {
        store_ = open_or_fail(options());
        offset_ = reserve_or_fail(*store_, kRequests * kBytes);
        ASSERT_EQ(store_->write(offset_, content_.data(), content_.bytes()), HANARE_STATUS_OK);
        reads_ = store_->open_transfers(TransferCapacity::kMany);
        if (reads_ == nullptr) {
            GTEST_SKIP() << "reads are not asynchronous here: " << store_->describe();
        }
        for (size_t i = 0; i < kRequests; ++i) {
            requests_[i].offset = offset_ + i * kBytes;
            requests_[i].memory = memory_.data() + i * kBytes;
            requests_[i].bytes = kBytes;
            pointers_[i] = &requests_[i];
        }
    }

    std::set<IoRequest*> complete_all() {
        std::set<IoRequest*> completed;
        while (completed.size() < kRequests) {
            if (IoRequest* request = reads_->next_completed(true)) completed.insert(request);
        }
        EXPECT_EQ(reads_->next_completed(false), nullptr);
        return completed;
    }

    Buffer content_{kRequests * kBytes, prng_};
    Buffer memory_{kRequests * kBytes};
    std::unique_ptr<Store> store_;
    uint64_t offset_ = 0;
    std::unique_ptr<SharedTransfers> reads_;
    std::array<IoRequest, kRequests> requests_;
    std::array<IoRequest*, kRequests> pointers_{};
};

TEST_F(SharedTransfersTest, OutliveTheThreadThatStartedThem) {
    EXPECT_EQ(reads_->next_completed(false), nullptr);
    std::thread([&] { EXPECT_EQ(reads_->start(pointers_.data(), kRequests), kRequests); }).join();
    EXPECT_EQ(complete_all().size(), kRequests);
    EXPECT_FALSE(reads_->has_completed());
    for (const IoRequest& request : requests_) EXPECT_EQ(request.status, HANARE_STATUS_OK);
    EXPECT_TRUE(memory_ == content_);
}

TEST_F(SharedTransfersTest, TellWhetherThereIsOne) {
    EXPECT_FALSE(reads_->has_completed());
    ASSERT_EQ(reads_->start(pointers_.data(), 1), 1u);
    while (!reads_->has_completed()) std::this_thread::yield();
    EXPECT_EQ(reads_->next_completed(false), pointers_[0]);
    EXPECT_FALSE(reads_->has_completed());
}

TEST_F(SharedTransfersTest, SingleOnesFollowEachOther) {
    const auto single = store_->open_transfers(TransferCapacity::kOne);
    ASSERT_NE(single, nullptr);
    EXPECT_EQ(single->next_completed(false), nullptr);
    EXPECT_FALSE(single->has_completed());
    for (IoRequest* request : pointers_) {
        ASSERT_EQ(single->start(&request, 1), 1u);
        IoRequest* completed = nullptr;
        while (completed == nullptr) completed = single->next_completed(true);
        EXPECT_EQ(completed, request);
    }
    EXPECT_TRUE(memory_ == content_);
}

TEST_F(SharedTransfersTest, ShortOnesAreCompleted) {
    inject::arm(inject::Call::kRead, 0, 2, 3);
    ASSERT_EQ(reads_->start(pointers_.data(), kRequests), kRequests);
    complete_all();
    EXPECT_TRUE(memory_ == content_);
}

TEST_F(SharedTransfersTest, ErrorsBelongToOneRequest) {
    inject::arm(inject::Call::kRead, EIO, 4, 1);
    ASSERT_EQ(reads_->start(pointers_.data(), kRequests), kRequests);
    complete_all();
    size_t failed = 0;
    for (const IoRequest& request : requests_) failed += request.status == HANARE_STATUS_STORE_IO;
    EXPECT_EQ(failed, 1u);
    EXPECT_EQ(store_->last_errno(), EIO);
}

TEST_F(SharedTransfersTest, WhatTheSystemRefusesIsNotStarted) {
    requests_[3].memory += 8;  // not what a direct read needs
    const size_t started = reads_->start(pointers_.data(), kRequests);
    EXPECT_LE(started, kRequests);
    std::set<IoRequest*> completed;
    while (completed.size() < started) {
        if (IoRequest* request = reads_->next_completed(true)) completed.insert(request);
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(completed.contains(pointers_[i]));
}

TEST_F(SharedTransfersTest, AreNotOfferedWhereTheyWouldNotBeAsynchronous) {
    FileStoreOptions buffered = options();
    buffered.use_direct = false;
    EXPECT_EQ(open_or_fail(buffered)->open_transfers(TransferCapacity::kMany), nullptr);
    EXPECT_EQ(open_or_fail(buffered)->open_transfers(TransferCapacity::kOne), nullptr);
    FileStoreOptions synchronous = options();
    synchronous.use_uring = false;
    EXPECT_EQ(open_or_fail(synchronous)->open_transfers(TransferCapacity::kMany), nullptr);
}

}  // namespace
}  // namespace hanare::store
