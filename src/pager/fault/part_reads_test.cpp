// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/part_reads.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "base/units.hpp"

namespace hanare::pager {
namespace {

constexpr size_t kBytes = 4 * kKiB;
constexpr uint64_t kOffset = 3 * kBytes;

// What asynchronous reads may do; that no device can be asked for.
struct Behaviour {
    bool offered = true;
    bool refused = false;
    int late = 0;  // looks without waiting that find nothing
    hanare_status status = HANARE_STATUS_OK;
    int started = 0;
    int slept = 0;
    int read_synchronously = 0;
};

class FakeReads final : public store::SharedTransfers {
public:
    explicit FakeReads(Behaviour& behaviour) : behaviour_(behaviour) {}

    size_t start(store::IoRequest* const* requests, size_t count) noexcept override {
        EXPECT_EQ(count, 1u);
        EXPECT_EQ(request_, nullptr);
        if (behaviour_.refused) return 0;
        ++behaviour_.started;
        looks_ = 0;
        request_ = requests[0];
        return 1;
    }
    store::IoRequest* next_completed(bool wait) noexcept override {
        EXPECT_NE(request_, nullptr);
        if (!wait && looks_++ < behaviour_.late) return nullptr;
        if (wait && looks_++ == behaviour_.late) return nullptr;  // as after a signal
        behaviour_.slept += wait;
        std::fill_n(request_->memory, request_->bytes, std::byte{7});
        request_->status = behaviour_.status;
        return std::exchange(request_, nullptr);
    }
    bool has_completed() const noexcept override { return request_ != nullptr; }
    bool is_refused() const noexcept override { return behaviour_.refused; }

private:
    Behaviour& behaviour_;
    store::IoRequest* request_ = nullptr;
    int looks_ = 0;
};

class FakeStore final : public store::Store {
public:
    explicit FakeStore(Behaviour& behaviour) : behaviour_(behaviour) {}

    Result<uint64_t> reserve(uint64_t) override { return uint64_t{0}; }
    void release(uint64_t, uint64_t) noexcept override {}
    hanare_status cover(uint64_t) noexcept override { return HANARE_STATUS_OK; }
    Result<store::SlotTable> open_slots(uint64_t) override {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "no slots");
    }
    hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept override {
        EXPECT_EQ(offset, kOffset);
        ++behaviour_.read_synchronously;
        std::fill_n(memory, bytes, std::byte{7});
        return behaviour_.status;
    }
    hanare_status write(uint64_t, const std::byte*, size_t) noexcept override {
        return HANARE_STATUS_INTERNAL;
    }
    Result<std::unique_ptr<store::IoChannel>> open_channel() override {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "not here");
    }
    std::unique_ptr<store::SharedTransfers> open_transfers(
        store::TransferCapacity capacity) override {
        if (capacity != store::TransferCapacity::kOne) return nullptr;
        if (!behaviour_.offered) return nullptr;
        return std::make_unique<FakeReads>(behaviour_);
    }
    std::string describe() const override { return "fake"; }
    int last_errno() const noexcept override { return 0; }
    void abandon_in_child() noexcept override {}

private:
    Behaviour& behaviour_;
};

class PartReadsTest : public testing::Test {
protected:
    void read(bool may_spin = true) {
        if (reads_ == nullptr) {
            auto memory = sys::Mapping::reserve(PartReads::kBuffers * kPartBytesMax, kOsPageBytes);
            ASSERT_TRUE(memory);
            reads_ = std::make_unique<PartReads>(store_, std::move(*memory), may_spin);
        }
        PartReads::Buffer buffer(*reads_);
        EXPECT_EQ(buffer.read(kOffset, kBytes), behaviour_.status);
        EXPECT_TRUE(std::all_of(buffer.memory(), buffer.memory() + kBytes,
                                [](std::byte byte) { return byte == std::byte{7}; }));
    }

    Behaviour behaviour_;
    FakeStore store_{behaviour_};
    std::unique_ptr<PartReads> reads_;
};

TEST_F(PartReadsTest, DoNotSleepWhereTheDeviceIsFast) {
    behaviour_.late = 3;
    for (int i = 0; i < 100; ++i) read();
    EXPECT_EQ(behaviour_.started, 100);
    EXPECT_LT(behaviour_.slept, 10) << "unless the test was interrupted";
    EXPECT_EQ(behaviour_.read_synchronously, 0);
}

TEST_F(PartReadsTest, SleepWhereItIsSlow) {
    behaviour_.late = 1 << 30;
    for (int i = 0; i < 20; ++i) read();
    EXPECT_EQ(behaviour_.slept, 20);
    EXPECT_EQ(behaviour_.read_synchronously, 0);
}

TEST_F(PartReadsTest, SleepAtOnceWhereSpinningIsOfNoUse) {
    behaviour_.late = 1;
    for (int i = 0; i < 20; ++i) read(false);
    EXPECT_EQ(behaviour_.slept, 20);
}

TEST_F(PartReadsTest, AreSynchronousWhereNothingElseIsToBeHad) {
    behaviour_.refused = true;
    read();
    EXPECT_EQ(behaviour_.read_synchronously, 1);
    reads_ = nullptr;
    behaviour_.offered = false;
    read();
    EXPECT_EQ(behaviour_.read_synchronously, 2);
}

TEST_F(PartReadsTest, ErrorsComeBack) {
    behaviour_.status = HANARE_STATUS_STORE_IO;
    read();
    EXPECT_EQ(behaviour_.started, 1);
    behaviour_.refused = true;
    read();
    EXPECT_EQ(behaviour_.read_synchronously, 1);
}

// A device that is always late is spun for now and then only; one that is fast again, always.
TEST(SpinningTest, IsGivenUpWhereItIsInVain) {
    Spinning spinning(true);
    const auto looks_of = [&](int needed) {
        int looks = 0;
        spinning.until([&] { return ++looks >= needed; });
        return looks;
    };
    int spun = 0;
    for (int i = 0; i < 72; ++i) spun += looks_of(1 << 30) > 1;
    EXPECT_LE(spun, 9);
    EXPECT_GE(spun, 7) << "unless the test was interrupted";
    for (int i = 0; i < 64 && looks_of(10) == 1; ++i) {
    }
    int in_full = 0;
    for (int i = 0; i < 20; ++i) in_full += looks_of(10) == 10;
    EXPECT_GE(in_full, 15) << "unless the test was interrupted";
}

TEST(SpinningTest, IsNotDoneWhereItIsOfNoUse) {
    Spinning spinning(false);
    int looks = 0;
    EXPECT_FALSE(spinning.until([&] { return ++looks > 1; }));
    EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace hanare::pager
