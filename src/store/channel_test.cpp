// SPDX-License-Identifier: Apache-2.0
//
// Both kinds of channel must behave alike: every test runs on each.
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "store/store_test_support.hpp"
#include "sys/event.hpp"
#include "sys/uring.hpp"

namespace hanare::store {
namespace {

namespace inject = sys::inject;

class Channel : public StoreTest, public ::testing::WithParamInterface<bool> {
protected:
    void SetUp() override {
        if (!GetParam()) return;
        if (const int error = sys::Uring::probe(); error != 0) {
            GTEST_SKIP() << "io_uring is refused here: " << std::strerror(error);
        }
    }

    void open(size_t in_flight_bytes_max = 8 * kMiB) {
        FileStoreOptions wanted = options();
        wanted.use_uring = GetParam();
        wanted.in_flight_bytes_max = in_flight_bytes_max;
        store_ = open_or_fail(wanted);
        offset_ = reserve_or_fail(*store_, kAreaBytes);
        auto channel = store_->open_channel();
        ASSERT_TRUE(channel) << channel.error().text;
        channel_ = std::move(*channel);
    }

    IoRequest request(IoKind kind, uint64_t at, const Buffer& buffer) const {
        IoRequest request;
        request.kind = kind;
        request.offset = offset_ + at;
        request.memory = buffer.data();
        request.bytes = buffer.bytes();
        return request;
    }

    IoRequest* wait_for_one() {
        for (;;) {
            if (IoRequest* const done = channel_->next_completed()) return done;
            channel_->wait(-1);
        }
    }

    hanare_status run(IoKind kind, uint64_t at, const Buffer& buffer) {
        IoRequest one = request(kind, at, buffer);
        EXPECT_TRUE(channel_->submit(one));
        EXPECT_EQ(wait_for_one(), &one);
        EXPECT_EQ(channel_->in_flight(), 0u);
        return one.status;
    }

    static constexpr uint64_t kAreaBytes = 16 * kMiB;

    std::unique_ptr<Store> store_;
    std::unique_ptr<IoChannel> channel_;
    uint64_t offset_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Channel, ::testing::Bool(), [](const auto& kind) {
    return std::string(kind.param ? "Uring" : "Sync");
});

// Keeps as many transfers in flight as the channel takes; every block is written a few times and
// read back in between.  A block has one transfer at a time, as in the pager.
class BlockTraffic {
public:
    static constexpr size_t kBlockBytes = 64 * kKiB;

    BlockTraffic(IoChannel& channel, uint64_t offset, size_t blocks, Prng& prng)
        : channel_(channel), prng_(prng) {
        for (size_t i = 0; i < blocks; ++i) blocks_.push_back(std::make_unique<Block>());
        for (size_t i = 0; i < blocks; ++i) blocks_[i]->request.offset = offset + i * kBlockBytes;
    }

    void run(size_t transfers) {
        size_t started = 0;
        for (;;) {
            while (started < transfers && start_one()) ++started;
            channel_.flush();
            IoRequest* done = channel_.next_completed();
            if (done == nullptr) {
                if (channel_.in_flight() == 0) break;
                channel_.wait(-1);
                continue;
            }
            for (; done != nullptr; done = channel_.next_completed()) finish(*done);
        }
        EXPECT_EQ(finished_, transfers);
    }

    size_t failures() const { return failures_; }
    size_t mismatches() const { return mismatches_; }
    size_t overtakings() const { return overtakings_; }

private:
    struct Block {
        IoRequest request;
        Buffer expected{kBlockBytes};
        Buffer memory{kBlockBytes};
        bool busy = false;
        bool written = false;
        size_t number = 0;
    };

    bool start_one() {
        Block& block = *blocks_[prng_.below(blocks_.size())];
        if (block.busy) return channel_.in_flight() < blocks_.size() / 2 && start_one();
        block.request.kind = block.written && prng_.below(2) == 0 ? IoKind::kRead : IoKind::kWrite;
        block.request.bytes = kBlockBytes;
        if (block.request.kind == IoKind::kWrite) block.expected.randomize(prng_);
        Buffer& buffer = block.request.kind == IoKind::kWrite ? block.expected : block.memory;
        block.request.memory = buffer.data();
        block.number = next_number_;
        if (!channel_.submit(block.request)) {
            if (block.request.kind == IoKind::kWrite) block.written = false;  // expected is new
            return false;
        }
        ++next_number_;
        return block.busy = true;
    }

    void finish(IoRequest& request) {
        ++finished_;
        for (const auto& block : blocks_) {
            if (&block->request != &request) continue;
            block->busy = false;
            if (block->number < newest_finished_) ++overtakings_;
            newest_finished_ = std::max(newest_finished_, block->number);
            const bool good =
                request.status == HANARE_STATUS_OK && request.done_bytes == kBlockBytes;
            if (!good) ++failures_;
            if (request.kind == IoKind::kWrite) block->written = good;
            if (request.kind == IoKind::kRead && good && !(block->memory == block->expected)) {
                ++mismatches_;
            }
        }
    }

    IoChannel& channel_;
    Prng& prng_;
    std::vector<std::unique_ptr<Block>> blocks_;
    size_t next_number_ = 0;
    size_t newest_finished_ = 0;
    size_t finished_ = 0;
    size_t failures_ = 0;
    size_t mismatches_ = 0;
    size_t overtakings_ = 0;
};

TEST_P(Channel, ReturnsWhatWasWritten) {
    open();
    BlockTraffic traffic(*channel_, offset_, 64, prng_);
    traffic.run(1000);
    EXPECT_EQ(traffic.failures(), 0u);
    EXPECT_EQ(traffic.mismatches(), 0u);
    std::printf("%zu of 1000 transfers were overtaken\n", traffic.overtakings());
}

TEST_P(Channel, ShortTransfersAndRetriesLoseNothing) {
    open();
    // 0: short.  Some are short twice: the rest is cut again.
    for (const int os_errno : {0, EAGAIN, EINTR}) {
        BlockTraffic traffic(*channel_, offset_, 32, prng_);
        inject::arm(inject::Call::kRead, os_errno, prng_.below(20), 100);
        inject::arm(inject::Call::kWrite, os_errno, prng_.below(20), 100);
        traffic.run(300);
        EXPECT_EQ(traffic.failures(), 0u);
        EXPECT_EQ(traffic.mismatches(), 0u);
    }
}

TEST_P(Channel, RestOfAShortTransferGoesToTheRightPlace) {
    open();
    const Buffer data(64 * kKiB, prng_);
    const Buffer back(64 * kKiB);
    inject::arm(inject::Call::kWrite, 0);  // halves down to single pages
    inject::arm(inject::Call::kRead, 0);
    EXPECT_EQ(run(IoKind::kWrite, kMiB, data), HANARE_STATUS_OK);
    EXPECT_EQ(run(IoKind::kRead, kMiB, back), HANARE_STATUS_OK);
    EXPECT_TRUE(data == back);
    inject::disarm_all();
    const Buffer check(64 * kKiB);
    EXPECT_EQ(store_->read(offset_ + kMiB, check.data(), check.bytes()), HANARE_STATUS_OK);
    EXPECT_TRUE(data == check);
}

TEST_P(Channel, CompletionsMayOvertake) {
    open();
    const Buffer slow(kMiB, prng_);
    const Buffer quick(kOsPageBytes, prng_);
    IoRequest first = request(IoKind::kWrite, 0, slow);
    IoRequest second = request(IoKind::kWrite, 2 * kMiB, quick);
    inject::arm(inject::Call::kWrite, EIO, 1, 1);
    ASSERT_TRUE(channel_->submit(first));
    ASSERT_TRUE(channel_->submit(second));
    EXPECT_EQ(channel_->in_flight(), 2u);
    IoRequest* const done = wait_for_one();
    EXPECT_EQ(done, GetParam() ? &second : &first);
    EXPECT_EQ(wait_for_one(), GetParam() ? &first : &second);
    EXPECT_EQ(first.status, HANARE_STATUS_OK);
    EXPECT_EQ(second.status, HANARE_STATUS_STORE_IO);
    const Buffer back(kMiB);
    EXPECT_EQ(store_->read(offset_, back.data(), back.bytes()), HANARE_STATUS_OK);
    EXPECT_TRUE(slow == back);
}

TEST_P(Channel, ErrorsBecomeStatuses) {
    open();
    const Buffer data(64 * kKiB, prng_);
    inject::arm(inject::Call::kWrite, ENOSPC, 0, 1);
    EXPECT_EQ(run(IoKind::kWrite, 0, data), HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(store_->last_errno(), ENOSPC);
    inject::arm(inject::Call::kRead, EIO, 0, 1);
    EXPECT_EQ(run(IoKind::kRead, 0, data), HANARE_STATUS_STORE_IO);
    EXPECT_EQ(store_->last_errno(), EIO);
    EXPECT_EQ(run(IoKind::kWrite, 0, data), HANARE_STATUS_OK);
    EXPECT_EQ(run(IoKind::kRead, 64 * kMiB, data), HANARE_STATUS_STORE_IO) << "beyond the end";
}

TEST_P(Channel, BytesInFlightAreBounded) {
    open(512 * kKiB);
    const Buffer data(256 * kKiB, prng_);
    const Buffer page(kOsPageBytes, prng_);
    IoRequest first = request(IoKind::kWrite, 0, data);
    IoRequest second = request(IoKind::kWrite, kMiB, data);
    IoRequest third = request(IoKind::kWrite, 2 * kMiB, page);
    EXPECT_TRUE(channel_->submit(first));
    EXPECT_TRUE(channel_->submit(second));
    EXPECT_FALSE(channel_->submit(third));
    EXPECT_EQ(channel_->in_flight(), 2u);
    wait_for_one();
    EXPECT_TRUE(channel_->submit(third));
    wait_for_one();
    wait_for_one();
    const Buffer large(kMiB, prng_);
    EXPECT_EQ(run(IoKind::kWrite, 0, large), HANARE_STATUS_OK) << "larger than the bound, alone";
}

TEST_P(Channel, NumberInFlightNeverOverflowsTheRing) {
    open(64 * kMiB);
    const Buffer page(kOsPageBytes, prng_);
    std::vector<IoRequest> requests(2000, request(IoKind::kWrite, 0, page));
    size_t accepted = 0;
    while (accepted < requests.size() && channel_->submit(requests[accepted])) ++accepted;
    EXPECT_GE(accepted, 128u);
    EXPECT_EQ(channel_->in_flight(), accepted);
    std::set<IoRequest*> done;
    while (channel_->in_flight() > 0) done.insert(wait_for_one());
    EXPECT_EQ(done.size(), accepted);
    for (const IoRequest* one : done) EXPECT_EQ(one->status, HANARE_STATUS_OK);
}

TEST_P(Channel, FlushStartsWithoutWaiting) {
    open();
    const Buffer data(64 * kKiB, prng_);
    IoRequest one = request(IoKind::kWrite, 0, data);
    inject::arm(inject::Call::kWrite, 0, 0, 1);  // the rest must start by itself, too
    ASSERT_TRUE(channel_->submit(one));
    channel_->flush();
    while (channel_->next_completed() == nullptr) {
    }
    EXPECT_EQ(one.status, HANARE_STATUS_OK);
}

TEST_P(Channel, NotifyBeforeWaitIsNotLost) {
    open();
    channel_->notify();
    channel_->notify();
    channel_->wait(-1);  // would hang
    const auto start = std::chrono::steady_clock::now();
    channel_->wait(20);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20))
        << "two notifications before one wait end one wait";
}

TEST_P(Channel, NotifyEndsTheWaitOfAnotherThread) {
    open();
    // Either side may come first each round; a lost notification hangs.
    std::atomic<uint32_t> asked = 0;
    std::atomic<uint32_t> answered = 0;
    constexpr uint32_t kRounds = 5000;
    std::thread keeper([&] {
        while (answered < kRounds) {
            channel_->wait(-1);
            answered = asked.load();
            answered.notify_all();
        }
    });
    for (uint32_t round = 1; round <= kRounds; ++round) {
        asked = round;
        channel_->notify();
        while (answered < round) answered.wait(round - 1);
    }
    keeper.join();
}

TEST_P(Channel, NotifyFromManyThreadsDuringTraffic) {
    open();
    std::atomic<bool> stop = false;
    std::vector<std::thread> notifiers;
    for (int i = 0; i < 2; ++i) {
        notifiers.emplace_back([&] {
            while (!stop) {
                channel_->notify();
                std::this_thread::yield();
            }
        });
    }
    std::thread([&] {  // not the thread that opened the channel
        BlockTraffic traffic(*channel_, offset_, 32, prng_);
        traffic.run(500);
        EXPECT_EQ(traffic.failures(), 0u);
        EXPECT_EQ(traffic.mismatches(), 0u);
    })
        .join();
    stop = true;
    for (std::thread& notifier : notifiers) notifier.join();
}

TEST_P(Channel, WaitEndsAfterTheTimeOut) {
    open();
    const auto start = std::chrono::steady_clock::now();
    channel_->wait(0);
    channel_->wait(20);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
}

std::atomic<int> signals = 0;  // lock-free, so a handler may count in it

TEST_P(Channel, SignalsDoNotEndTheWait) {
    open();
    signals = 0;
    const auto previous = std::signal(SIGUSR1, [](int) { ++signals; });
    const pthread_t waiter = pthread_self();
    std::thread sender([&] {
        for (int i = 1; i <= 20; ++i) {
            pthread_kill(waiter, SIGUSR1);
            while (signals < i) std::this_thread::yield();
        }
    });
    const auto start = std::chrono::steady_clock::now();
    channel_->wait(100);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
    sender.join();
    std::signal(SIGUSR1, previous);
}

TEST_P(Channel, EndsWithTransfersInFlight) {
    open();
    const Buffer data(kMiB, prng_);
    IoRequest one = request(IoKind::kWrite, 0, data);
    ASSERT_TRUE(channel_->submit(one));
    channel_.reset();
    const Buffer back(kMiB);
    EXPECT_EQ(store_->read(offset_, back.data(), back.bytes()), HANARE_STATUS_OK);
    EXPECT_TRUE(data == back);
}

TEST_P(Channel, ChildOfAForkClosesItsCopiesAndTheParentGoesOn) {
    open();
    const Buffer data(64 * kKiB, prng_);
    auto second = store_->open_channel();
    ASSERT_TRUE(second);
    const auto open_files = [] {
        size_t count = 0;
        for (int number = 0; number < 1024; ++number)
            count += fcntl(number, F_GETFD) >= 0 ? 1u : 0u;
        return count;
    };
    EXPECT_EQ(sys::testing::run_in_child([&]() -> std::string {
                  const size_t before = open_files();
                  store_->abandon_in_child();
                  const size_t closed = before - open_files();
                  const size_t expected = GetParam() ? 5 : 1;  // file; ring and event, twice
                  if (closed != expected) return "closed " + std::to_string(closed);
                  if (store_->read(0, data.data(), data.bytes()) != HANARE_STATUS_STORE_IO)
                      return "read";
                  second->reset();
                  channel_.reset();
                  store_.reset();
                  return "";
              }),
              "");
    EXPECT_EQ(run(IoKind::kWrite, 0, data), HANARE_STATUS_OK);
}

TEST_F(StoreTest, ChannelFallsBackWhenTheRingIsRefusedLater) {
    const auto store = open_or_fail(options());
    const uint64_t offset = reserve_or_fail(*store, kMiB);
    inject::arm(inject::Call::kUringSetup, ENOMEM);
    auto channel = store->open_channel();
    ASSERT_TRUE(channel);
    EXPECT_NE(store->describe().find("io_uring refused"), std::string::npos);
    const Buffer data(kMiB, prng_);
    IoRequest one;
    one.kind = IoKind::kWrite;
    one.offset = offset;
    one.memory = data.data();
    one.bytes = data.bytes();
    ASSERT_TRUE((*channel)->submit(one));
    EXPECT_EQ((*channel)->next_completed(), &one) << "completed at once";
    EXPECT_EQ(one.status, HANARE_STATUS_OK);
}

TEST_P(Channel, WatchedDescriptorEndsTheWaitAsOftenAsItIsReadable) {
    open();
    auto first = sys::EventFd::open();
    auto second = sys::EventFd::open();
    ASSERT_TRUE(first && second);
    channel_->watch(first->number());
    channel_->take_watched();  // whether it was readable before need not be known
    channel_->wait(1);
    EXPECT_FALSE(channel_->take_watched());
    for (int turn = 0; turn < 3; ++turn) {
        std::thread other([&] { first->post(); });
        while (!channel_->take_watched()) channel_->wait(-1);
        other.join();
        first->clear();
        channel_->take_watched();
        channel_->wait(1);
        EXPECT_FALSE(channel_->take_watched());
    }
    // Another one in its place.
    channel_->watch(second->number());
    channel_->take_watched();
    first->post();
    channel_->wait(1);
    EXPECT_FALSE(channel_->take_watched());
    std::thread other([&] { second->post(); });
    while (!channel_->take_watched()) channel_->wait(-1);
    other.join();
    // And none; to be notified works as before.
    channel_->watch(-1);
    EXPECT_FALSE(channel_->take_watched());
    std::thread notifier([&] { channel_->notify(); });
    channel_->wait(-1);
    notifier.join();
}

TEST_P(Channel, WatchedDescriptorIsSeenWhileTransfersGoOn) {
    open();
    auto event = sys::EventFd::open();
    ASSERT_TRUE(event);
    channel_->watch(event->number());
    channel_->take_watched();
    event->post();
    bool seen = false;
    const Buffer buffer(64 * kKiB);
    while (!seen) {
        EXPECT_EQ(run(IoKind::kWrite, 0, buffer), HANARE_STATUS_OK);
        seen = channel_->take_watched();
    }
}

}  // namespace
}  // namespace hanare::store
