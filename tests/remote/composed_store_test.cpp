// SPDX-License-Identifier: Apache-2.0
//
// Several stores as one: what is read is what was written last, whichever members are lost, leave
// or come meanwhile, as far as the redundancy goes.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "compose/composed_store.hpp"
#include "remote/composed_test_support.hpp"
#include "store/store.hpp"
#include "store/store_test_support.hpp"
#include "sys/test_support.hpp"

namespace hanare::compose {
namespace {

constexpr uint64_t kAreaBytes = 40 * kMiB;
constexpr uint64_t kBlockBytes = 256 * kKiB;
constexpr uint64_t kPageBytes = 4 * kKiB;

// Part of a store, and what it should hold.
class Area {
public:
    Area(store::Store& store, uint64_t seed)
        : store_(store),
          channel_(store.open_channel().value()),
          transfers_(store.open_transfers(store::TransferCapacity::kMany)),
          offset_(store.reserve(kAreaBytes).value()),
          expected_(kAreaBytes),
          prng_(seed) {}
    ~Area() {
        channel_.reset();
        transfers_.reset();
        store_.release(offset_, kAreaBytes);
    }

    void write_all() {
        for (uint64_t at = 0; at < kAreaBytes; at += kBlockBytes) write(at, kBlockBytes);
    }
    // Blocks, parts of blocks and runs of blocks, by all ways in.
    void write_some(int times) {
        for (int i = 0; i < times; ++i) {
            const uint64_t bytes = any_bytes();
            write(prng_.below(kAreaBytes / bytes) * bytes, bytes);
        }
    }
    void read_some(int times) {
        for (int i = 0; i < times; ++i) {
            const uint64_t bytes = any_bytes();
            check(prng_.below(kAreaBytes / bytes) * bytes, bytes);
        }
    }
    void check_all() {
        for (uint64_t at = 0; at < kAreaBytes; at += kBlockBytes) check(at, kBlockBytes);
    }
    // All of it, with as much in flight as goes, by the keeper's way and by that of faults.
    void stream(store::IoKind kind) {
        stream_by(kind, [this](auto& requests) { carry_out_by_channel(requests); });
        if (transfers_ == nullptr) return;
        stream_by(kind, [this](auto& requests) { carry_out_by_faults(requests); });
    }
    // Reads that are under way, and that nobody takes.
    class Untaken {
    public:
        Untaken(Area& area, size_t blocks) : area_(area), data_(blocks * kBlockBytes) {
            for (uint64_t at = 0; at < blocks * kBlockBytes; at += kBlockBytes) {
                requests_.push_back(
                    area.request(store::IoKind::kRead, at, data_.data() + at, kBlockBytes));
            }
            for (store::IoRequest& each : requests_) {
                store::IoRequest* const one = &each;
                EXPECT_EQ(area.transfers_->start(&one, 1), 1u);
            }
        }
        void take() {
            for (size_t i = 0; i < requests_.size(); ++i) {
                store::IoRequest* one = nullptr;
                while (one == nullptr) one = area_.transfers_->next_completed(true);
                ASSERT_EQ(one, &requests_[i]);
                ASSERT_EQ(one->status, HANARE_STATUS_OK);
            }
            ASSERT_EQ(memcmp(data_.data(), area_.expected_.data(), requests_.size() * kBlockBytes),
                      0);
        }

    private:
        Area& area_;
        store::Buffer data_;
        std::vector<store::IoRequest> requests_;
    };

    bool is_refused() const { return transfers_->is_refused(); }
    // Whether it does, and then it is done as well.
    bool starts(store::IoKind kind, uint64_t at, uint64_t bytes) {
        const store::Buffer data(bytes);
        memcpy(data.data(), expected_.data() + at, bytes);
        store::IoRequest one = request(kind, at, data.data(), bytes);
        store::IoRequest* const started = &one;
        if (transfers_->start(&started, 1) == 0) return false;
        while (transfers_->next_completed(true) == nullptr) std::this_thread::yield();
        EXPECT_EQ(one.status, HANARE_STATUS_OK);
        EXPECT_EQ(memcmp(data.data(), expected_.data() + at, bytes), 0);
        return true;
    }

private:
    using Requests = std::vector<store::IoRequest>;

    store::IoRequest request(store::IoKind kind, uint64_t at, std::byte* memory, uint64_t bytes) {
        return {.kind = kind, .offset = offset_ + at, .memory = memory, .bytes = bytes};
    }
    template <typename CarryOut>
    void stream_by(store::IoKind kind, CarryOut carry_out) {
        const store::Buffer data(kAreaBytes);
        if (kind == store::IoKind::kWrite) {
            expected_.randomize(prng_);
            memcpy(data.data(), expected_.data(), kAreaBytes);
        }
        Requests requests;
        for (uint64_t at = 0; at < kAreaBytes; at += kBlockBytes) {
            requests.push_back(request(kind, at, data.data() + at, kBlockBytes));
        }
        carry_out(requests);
        for (const store::IoRequest& each : requests) ASSERT_EQ(each.status, HANARE_STATUS_OK);
        ASSERT_TRUE(data == expected_);
    }
    void carry_out_by_channel(Requests& requests) {
        size_t started = 0;
        size_t done = 0;
        while (done < requests.size()) {
            while (started < requests.size() && channel_->submit(requests[started])) ++started;
            if (channel_->next_completed() != nullptr) {
                ++done;
            } else {
                channel_->wait(-1);
            }
        }
        ASSERT_EQ(channel_->in_flight(), 0u);
    }
    // What cannot be started is waited for, as the pager does.
    void carry_out_by_faults(Requests& requests) {
        size_t begun = 0;
        size_t in_flight = 0;
        while (begun < requests.size() || in_flight > 0) {
            std::array<store::IoRequest*, store::SharedTransfers::kStartMax> next{};
            const size_t count = std::min(next.size(), requests.size() - begun);
            for (size_t i = 0; i < count; ++i) next[i] = &requests[begun + i];
            const size_t started = transfers_->start(next.data(), count);
            begun += started;
            in_flight += started;
            if (started < count) carry_out_now(requests[begun++]);
            while (in_flight > 0 && transfers_->next_completed(begun == requests.size())) {
                --in_flight;
            }
        }
        ASSERT_FALSE(transfers_->has_completed());
    }
    void carry_out_now(store::IoRequest& request) {
        request.status = request.kind == store::IoKind::kRead
                             ? store_.read(request.offset, request.memory, request.bytes)
                             : store_.write(request.offset, request.memory, request.bytes);
    }
    uint64_t any_bytes() {
        constexpr std::array<uint64_t, 5> kBytes = {kPageBytes, 16 * kKiB, 64 * kKiB, kBlockBytes,
                                                    1 * kMiB};
        return kBytes[prng_.below(kBytes.size())];
    }
    void write(uint64_t at, uint64_t bytes) {
        const store::Buffer data(bytes, prng_);
        memcpy(expected_.data() + at, data.data(), bytes);
        ASSERT_EQ(transfer(store::IoKind::kWrite, at, data.data(), bytes), HANARE_STATUS_OK);
    }
    void check(uint64_t at, uint64_t bytes) {
        const store::Buffer data(bytes, prng_);
        ASSERT_EQ(transfer(store::IoKind::kRead, at, data.data(), bytes), HANARE_STATUS_OK);
        ASSERT_EQ(memcmp(data.data(), expected_.data() + at, bytes), 0) << at << " " << bytes;
    }
    hanare_status transfer(store::IoKind kind, uint64_t at, std::byte* memory, uint64_t bytes) {
        store::IoRequest one = request(kind, at, memory, bytes);
        store::IoRequest* const started = &one;
        const uint64_t way = prng_.below(3);
        if (way == 0) {
            EXPECT_TRUE(channel_->submit(one));
            while (channel_->next_completed() == nullptr) channel_->wait(-1);
        } else if (way == 1 && transfers_ != nullptr && transfers_->start(&started, 1) == 1) {
            while (transfers_->next_completed(true) == nullptr) std::this_thread::yield();
        } else {
            carry_out_now(one);
        }
        return one.status;
    }

    store::Store& store_;
    std::unique_ptr<store::IoChannel> channel_;
    std::unique_ptr<store::SharedTransfers> transfers_;  // of the first area of a store
    uint64_t offset_;
    store::Buffer expected_;
    Prng prng_;
};

// What some threads do at once, each with blocks of its own: whoever leads takes for all.
struct Started : store::IoRequest {
    std::atomic<bool> is_done{false};
};
constexpr size_t kBlocksOfThread = 32;

void start_and_take(store::Store& store, store::SharedTransfers& transfers, std::mutex& leads,
                    uint64_t first, uint64_t seed) {
    Prng prng(seed);
    const store::Buffer content(kBlocksOfThread * kBlockBytes, prng);
    const store::Buffer back(kBlocksOfThread * kBlockBytes);
    for (int round = 0; round < 6; ++round) {
        const auto kind = round % 2 == 0 ? store::IoKind::kWrite : store::IoKind::kRead;
        const store::Buffer& memory = round % 2 == 0 ? content : back;
        std::array<Started, kBlocksOfThread> requests{};
        for (size_t i = 0; i < requests.size(); ++i) {
            Started& one = requests[i];
            one.kind = kind;
            one.offset = first + i * kBlockBytes;
            one.memory = memory.data() + i * kBlockBytes;
            one.bytes = kBlockBytes;
            store::IoRequest* const started = &one;
            if (transfers.start(&started, 1) == 1) continue;
            one.status = kind == store::IoKind::kRead
                             ? store.read(one.offset, one.memory, one.bytes)
                             : store.write(one.offset, one.memory, one.bytes);
            one.is_done = true;
        }
        for (Started& one : requests) {
            while (!one.is_done) {
                const std::unique_lock lead(leads, std::try_to_lock);
                store::IoRequest* const done = lead ? transfers.next_completed(true) : nullptr;
                if (done != nullptr) {
                    static_cast<Started*>(done)->is_done = true;
                } else {
                    std::this_thread::yield();
                }
            }
            ASSERT_EQ(one.status, HANARE_STATUS_OK);
        }
        if (kind == store::IoKind::kRead) {
            ASSERT_TRUE(back == content);
        }
    }
}

struct Case {
    const char* name;
    Layout layout;
    uint32_t servers;
};

class Composed : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        for (uint32_t i = 0; i < GetParam().servers; ++i) servers.push_back(start_server());
        store = open();
    }
    std::unique_ptr<ComposedStore> open(
        ComposedStore::Healing healing = ComposedStore::Healing::kByThread) {
        std::vector<std::unique_ptr<store::Store>> members;
        for (const auto& server : servers) members.push_back(connect(*server));
        const auto open_member =
            [this](const std::string& name) -> Result<std::unique_ptr<store::Store>> {
            if (name == "the first") return connect(*servers.front());
            if (name != "another") {
                return fail(HANARE_STATUS_INVALID_ARGUMENT, "no %s", name.c_str());
            }
            servers.push_back(start_server());
            return connect(*servers.back());
        };
        auto opened =
            ComposedStore::open(GetParam().layout, std::move(members), healing, open_member)
                .value();
        return std::unique_ptr<ComposedStore>(static_cast<ComposedStore*>(opened.release()));
    }
    // As when its process is killed.
    void lose(uint32_t number) { servers[number].reset(); }
    bool is_redundant() const { return GetParam().layout.spares() != 0; }

    const uint64_t seed = sys::testing::test_seed();
    Servers servers;
    std::unique_ptr<ComposedStore> store;
};
constexpr Case kCases[] = {
    {"List", Layout::list(), 2},
    {"Mirror", Layout::mirror(2), 2},
    {"Parity2", Layout::parity(2, kBlockBytes), 3},
    {"Parity4", Layout::parity(4, kBlockBytes), 5},
    {"Parity4OfSmallBlocks", Layout::parity(4, 4 * kKiB), 5},
};
INSTANTIATE_TEST_SUITE_P(Kinds, Composed, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(Composed, KeepsWhatWasWritten) {
    Area area(*store, seed);
    area.write_all();
    area.write_some(200);
    area.read_some(200);
    area.check_all();
    area.stream(store::IoKind::kWrite);
    area.stream(store::IoKind::kRead);
    area.check_all();
}

TEST_P(Composed, AreasComeAndGo) {
    for (int round = 0; round < 3; ++round) {
        Area one(*store, seed + static_cast<uint64_t>(round));
        one.write_some(100);
        std::optional<Area> other;
        other.emplace(*store, seed + 77);
        other->stream(store::IoKind::kWrite);
        one.write_all();
        other->check_all();
        other.reset();
        one.check_all();
    }
}

TEST_P(Composed, OneLostMemberIsMadeUpFor) {
    if (!is_redundant()) GTEST_SKIP() << "a list has no redundancy";
    for (uint32_t lost = 0; lost < servers.size(); ++lost) {
        Area area(*store, seed + lost);
        area.write_all();
        area.write_some(50);
        lose(lost);
        area.read_some(50);
        area.write_some(100);
        area.check_all();
        area.stream(store::IoKind::kRead);
        area.stream(store::IoKind::kWrite);
        area.check_all();
        // Another takes its place, and then it could be the next one's turn.
        servers[lost] = start_server();
        ASSERT_TRUE(store->add(connect(*servers[lost])).has_value());
        EXPECT_TRUE(comes_true([&] { return store->healer().is_idle(); }));
        area.check_all();
    }
    EXPECT_GT(store->healer().moved(), 0u);
}

TEST_P(Composed, MembersAreLostWhileTheyAreUsed) {
    if (!is_redundant()) GTEST_SKIP() << "a list has no redundancy";
    Area area(*store, seed);
    area.write_all();
    for (uint32_t lost = 0; lost < 3; ++lost) {
        servers.push_back(start_server());
        ASSERT_TRUE(store->add(connect(*servers.back())).has_value());
        {
            const std::jthread killer([&] {
                sys::yield_for_us(static_cast<uint32_t>(Prng(seed + lost).below(30'000)));
                lose(lost);
            });
            area.write_some(150);
            area.stream(store::IoKind::kWrite);
            area.read_some(50);
        }
        area.read_some(20);
        const auto lost_is_empty = [&] { return store->members()[lost].chunks.load() == 0; };
        ASSERT_TRUE(comes_true(lost_is_empty)) << lost;
        area.check_all();
    }
}

TEST_P(Composed, SparesAreUsedByThemselves) {
    if (!is_redundant()) GTEST_SKIP() << "a list has no redundancy";
    servers.push_back(start_server());
    store = open();
    Area area(*store, seed);
    area.write_all();
    EXPECT_EQ(store->members()[GetParam().servers].chunks.load(), 0u);
    lose(0);
    area.read_some(50);
    EXPECT_TRUE(comes_true([&] { return store->members()[0].chunks.load() == 0; }));
    EXPECT_GT(store->members()[GetParam().servers].chunks.load(), 0u);
    lose(1);
    area.check_all();
}

TEST_P(Composed, WhatIsLostTwiceIsAnError) {
    Area area(*store, seed);
    area.write_all();
    for (uint32_t lost = 0; lost <= GetParam().layout.spares(); ++lost) lose(lost);
    uint64_t failed = 0;
    std::vector<std::byte> data(kBlockBytes);
    for (uint64_t at = 0; at < kAreaBytes; at += kBlockBytes) {
        failed += store->read(at, data.data(), data.size()) != HANARE_STATUS_OK ? 1 : 0;
    }
    EXPECT_GT(failed, 0u);
    ASSERT_NE(store->trouble(), nullptr);
    EXPECT_NE(std::string(store->trouble()).find("127.0.0.1"), std::string::npos);
}

TEST_P(Composed, ADrainedMemberLosesNothing) {
    servers.push_back(start_server());
    store = open();
    Area area(*store, seed);
    area.write_all();
    for (uint32_t round = 0; round < 2; ++round) {
        ASSERT_GT(store->members()[round].chunks.load(), 0u);
        servers[round]->drain();
        area.write_some(100);
        area.stream(store::IoKind::kWrite);
        const auto has_left = [&] {
            return store->members()[round].state() == Member::State::kGone;
        };
        EXPECT_TRUE(comes_true(has_left));
        EXPECT_TRUE(comes_true([&] { return servers[round]->status().leases.empty(); }));
        area.check_all();
        servers.push_back(start_server());
        ASSERT_TRUE(store->add(connect(*servers.back())).has_value());
    }
}

TEST_P(Composed, WhatCanBeginIsStarted) {
    Area area(*store, seed);
    area.write_all();
    const bool is_parity = GetParam().layout.kind == Kind::kParity;
    using store::IoKind;
    EXPECT_TRUE(area.starts(IoKind::kWrite, 0, 1 * kMiB));
    EXPECT_TRUE(area.starts(IoKind::kRead, 0, 1 * kMiB));
    EXPECT_TRUE(area.starts(IoKind::kRead, 5 * kPageBytes, kPageBytes));
    EXPECT_EQ(area.starts(IoKind::kWrite, 5 * kPageBytes, kPageBytes), !is_parity);
    area.check_all();
    if (!is_redundant()) return;
    lose(0);
    area.check_all();
    ASSERT_EQ(store->members().lost(), 1u);
    EXPECT_EQ(area.is_refused(), is_parity);
    EXPECT_EQ(area.starts(IoKind::kRead, 0, kBlockBytes), !is_parity);
    EXPECT_TRUE(area.starts(IoKind::kWrite, 0, kBlockBytes));
    area.check_all();
}

TEST_P(Composed, ThreadsStartAndTakeWhileMembersLeave) {
    servers.push_back(start_server());
    store = open();
    const auto transfers = store->open_transfers(store::TransferCapacity::kMany);
    constexpr int kThreads = 3;
    const uint64_t offset = store->reserve(kThreads * kBlocksOfThread * kBlockBytes).value();
    std::mutex leads;
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const uint64_t first =
                offset + static_cast<uint64_t>(i) * kBlocksOfThread * kBlockBytes;
            start_and_take(*store, *transfers, leads, first, seed + static_cast<uint64_t>(i));
        });
    }
    servers[0]->drain();
    threads.clear();
    EXPECT_TRUE(comes_true([&] { return store->members()[0].state() == Member::State::kGone; }));
    EXPECT_FALSE(transfers->has_completed());
}

TEST_P(Composed, WhatNobodyTakesIsNotInTheWay) {
    servers.push_back(start_server());
    store = open();
    Area area(*store, seed);
    area.write_all();
    Area::Untaken reads(area, 16);
    servers[0]->drain();
    EXPECT_TRUE(comes_true([&] { return store->members()[0].state() == Member::State::kGone; }));
    reads.take();
    area.check_all();
}

TEST_P(Composed, ReadsOnTheirWayOutliveAMember) {
    if (!is_redundant()) GTEST_SKIP() << "a list has no redundancy";
    Area area(*store, seed);
    area.write_all();
    Area::Untaken reads(area, 16);
    lose(0);
    reads.take();
    area.check_all();
}

TEST_P(Composed, OneHasTheTransfersAtATime) {
    using Capacity = store::TransferCapacity;
    auto one = store->open_transfers(Capacity::kMany);
    ASSERT_NE(one, nullptr);
    EXPECT_FALSE(one->has_completed());
    EXPECT_EQ(one->next_completed(true), nullptr);
    EXPECT_EQ(store->open_transfers(Capacity::kMany), nullptr);
    EXPECT_EQ(store->open_transfers(Capacity::kOne), nullptr);
    one.reset();
    EXPECT_NE(store->open_transfers(Capacity::kMany), nullptr);
}

// Slots of a store that is tended, and what they should hold.
class Slots final : public store::SlotUsers {
public:
    Slots(ComposedStore& store, uint64_t seed)
        : store_(store), table_(store.open_slots(kBlockBytes).value()), prng_(seed) {}

    // Blocks in every other slot; the rest is room that somebody else had.
    void fill(uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t slot = table_.allocate(2 * i);
            ASSERT_EQ(slot, 2 * i);
            const uint64_t offset = slot * kBlockBytes;
            ASSERT_EQ(store_.cover(offset + 2 * kBlockBytes), HANARE_STATUS_OK);
            store_.renew(offset, kBlockBytes);
            blocks_.emplace_back(kBlockBytes, prng_);
            ASSERT_EQ(store_.write(offset, blocks_.back().data(), kBlockBytes), HANARE_STATUS_OK);
        }
    }
    void check_all() {
        const store::Buffer data(kBlockBytes);
        for (size_t i = 0; i < blocks_.size(); ++i) {
            ASSERT_EQ(store_.read(2 * i * kBlockBytes, data.data(), kBlockBytes), HANARE_STATUS_OK);
            ASSERT_TRUE(data == blocks_[i]) << i;
        }
    }
    // The new slot's content is of this process alone, whatever was there.
    void take_another() {
        const uint32_t slot = table_.allocate(2 * static_cast<uint32_t>(blocks_.size()) - 1);
        const uint64_t offset = slot * kBlockBytes;
        ASSERT_EQ(store_.cover(offset + kBlockBytes), HANARE_STATUS_OK);
        store_.renew(offset, kBlockBytes);
        const store::Buffer part(kPageBytes, prng_);
        ASSERT_EQ(store_.write(offset, part.data(), kPageBytes), HANARE_STATUS_OK);
        const store::Buffer data(kPageBytes);
        ASSERT_EQ(store_.read(offset, data.data(), kPageBytes), HANARE_STATUS_OK);
        ASSERT_TRUE(data == part);
    }

    bool is_alone() noexcept override { return is_alone_; }
    uint64_t unit_bytes() const noexcept override { return kBlockBytes; }
    Content content_of(uint64_t offset, uint64_t bytes) noexcept override {
        asked_ = true;
        for (uint64_t slot = offset / kBlockBytes; slot < (offset + bytes) / kBlockBytes; ++slot) {
            if (!table_.is_held(static_cast<uint32_t>(slot))) continue;
            return is_changing_ ? Content::kChanging : Content::kKept;
        }
        return Content::kNone;
    }
    void set_alone(bool is_alone) { is_alone_ = is_alone; }
    void set_changing(bool is_changing) { is_changing_ = is_changing; }
    // Whether anything was asked about slots since the last time.
    bool was_asked() { return std::exchange(asked_, false); }

private:
    ComposedStore& store_;
    store::SlotTable table_;
    Prng prng_;
    std::vector<store::Buffer> blocks_;
    bool is_alone_ = true;
    bool is_changing_ = false;
    bool asked_ = false;
};

class ComposedInTurns : public Composed {
protected:
    void SetUp() override {
        for (uint32_t i = 0; i <= GetParam().servers; ++i) servers.push_back(start_server());
        store = open(ComposedStore::Healing::kInTurns);
    }
    Member::State state_of(uint32_t number) { return store->members()[number].state(); }
    bool tend_until(Slots& slots, uint32_t number, Member::State state) {
        return comes_true([&] {
            store->tend(slots);
            return state_of(number) == state;
        });
    }
};
INSTANTIATE_TEST_SUITE_P(Kinds, ComposedInTurns, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(ComposedInTurns, WhatIsLostIsMadeAgainOnTheOthers) {
    if (!is_redundant()) GTEST_SKIP() << "a list has no redundancy";
    Slots slots(*store, seed);
    slots.fill(200);
    lose(0);
    ASSERT_TRUE(tend_until(slots, 0, Member::State::kGone));
    EXPECT_GT(store->healer().moved(), 0u);
    slots.check_all();
    slots.take_another();
    lose(1);
    slots.check_all();
    slots.take_another();
}

TEST_P(ComposedInTurns, ADrainedMemberIsLeft) {
    Slots slots(*store, seed);
    slots.fill(200);
    servers[0]->drain();
    ASSERT_TRUE(tend_until(slots, 0, Member::State::kGone));
    EXPECT_TRUE(comes_true([&] { return servers[0]->status().leases.empty(); }));
    slots.check_all();
    slots.take_another();
    lose(0);
    slots.check_all();
}

TEST_P(ComposedInTurns, NothingMovesWhileOthersMayUseIt) {
    Slots slots(*store, seed);
    slots.fill(200);
    servers[0]->drain();
    slots.set_alone(false);
    ASSERT_TRUE(tend_until(slots, 0, Member::State::kLeaving));
    EXPECT_FALSE(store->tend(slots));
    EXPECT_FALSE(slots.was_asked());
    EXPECT_EQ(store->healer().moved(), 0u);
    // Nor what somebody is about to take.
    slots.set_alone(true);
    slots.set_changing(true);
    ASSERT_TRUE(comes_true([&] {
        store->tend(slots);
        return slots.was_asked();
    }));
    EXPECT_EQ(store->healer().moved(), 0u);
    slots.set_changing(false);
    ASSERT_TRUE(tend_until(slots, 0, Member::State::kGone));
    slots.check_all();
}

TEST_P(ComposedInTurns, OneThatIsAddedTakesWhatMoves) {
    Slots slots(*store, seed);
    slots.fill(200);
    const auto count = static_cast<uint32_t>(servers.size());
    ASSERT_TRUE(store->ask_to_add("another"));
    EXPECT_FALSE(store->ask_to_add("another"));
    EXPECT_EQ(store->added(), nullptr);
    store->tend(slots);
    ASSERT_STREQ(store->added(), "");
    ASSERT_EQ(store->members().count(), count + 1);
    // As many as can be done without.
    for (uint32_t number = 0; number <= count - GetParam().layout.total; ++number) {
        servers[number]->drain();
        ASSERT_TRUE(tend_until(slots, number, Member::State::kGone)) << number;
        slots.check_all();
    }
    EXPECT_GT(servers[count]->status().leased_bytes, 0u);
    slots.take_another();
    slots.check_all();
}

TEST_P(ComposedInTurns, NothingIsAddedWhileOthersMayUseIt) {
    Slots slots(*store, seed);
    slots.fill(20);
    slots.set_alone(false);
    ASSERT_TRUE(store->ask_to_add("another"));
    ASSERT_TRUE(comes_true([&] {
        store->tend(slots);
        return store->added() != nullptr;
    }));
    EXPECT_NE(std::string(store->added()).find("children"), std::string::npos) << store->added();
    slots.set_alone(true);
    ASSERT_TRUE(store->ask_to_add("what is not there"));
    store->tend(slots);
    EXPECT_STREQ(store->added(), "no what is not there");
    slots.check_all();
}

TEST_P(ComposedInTurns, NoneIsAMemberTwiceWhereOneMayBeLost) {
    Slots slots(*store, seed);
    ASSERT_TRUE(store->ask_to_add("the first"));
    store->tend(slots);
    const std::string refusal = is_redundant() ? "it is among the members" : "";
    EXPECT_EQ(std::string(store->added()).substr(0, refusal.size()), refusal);
    EXPECT_EQ(store->added()[0] == '\0', !is_redundant());
}

// HANARE_TEST_DRAINS says how many.
TEST(ComposedDrains, OfABusyServerLoseNothing) {
    const char* const given = std::getenv("HANARE_TEST_DRAINS");
    const uint32_t drains = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : 20;
    // As many as a store can have seen.
    constexpr uint32_t kOfOneStore = Members::kMembersMax - 1;
    const uint64_t seed = sys::testing::test_seed();
    uint32_t done = 0;
    while (done < drains && !testing::Test::HasFailure()) {
        Servers servers;
        servers.push_back(start_server(64 * kMiB));
        std::vector<std::unique_ptr<store::Store>> members;
        members.push_back(connect(*servers.back()));
        const auto store = ComposedStore::open(Layout::list(), std::move(members)).value();
        auto& composed = static_cast<ComposedStore&>(*store);
        Area area(*store, seed + done);
        area.write_all();
        for (uint32_t i = 0; i < kOfOneStore && done < drains; ++i, ++done) {
            servers.push_back(start_server(64 * kMiB));
            ASSERT_TRUE(composed.add(connect(*servers.back())).has_value());
            servers[i]->drain();
            composed.members().note_change();  // it need not wait until it is asked
            const auto has_left = [&] {
                area.write_some(1);
                area.read_some(1);
                return composed.members()[i].state() == Member::State::kGone;
            };
            ASSERT_TRUE(comes_true(has_left)) << "drain " << done;
            servers[i].reset();
        }
        area.check_all();
    }
    std::printf("%u drains\n", done);
}

TEST(ComposedList, IsFilledInOrder) {
    Servers servers;
    servers.push_back(start_server(24 * kMiB));
    servers.push_back(start_server(64 * kMiB));
    std::vector<std::unique_ptr<store::Store>> members;
    for (const auto& server : servers) members.push_back(connect(*server));
    const auto store = ComposedStore::open(Layout::list(), std::move(members)).value();
    auto& composed = static_cast<ComposedStore&>(*store);
    const auto first = store->reserve(16 * kMiB);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(composed.members()[0].chunks.load(), 4u);
    EXPECT_EQ(composed.members()[1].chunks.load(), 0u);
    ASSERT_TRUE(store->reserve(32 * kMiB).has_value());
    EXPECT_EQ(composed.members()[0].chunks.load(), 6u);
    EXPECT_EQ(composed.members()[1].chunks.load(), 6u);
    EXPECT_EQ(store->reserve(64 * kMiB).error().status, HANARE_STATUS_STORE_FULL);
    store->release(*first, 16 * kMiB);
    EXPECT_EQ(composed.members()[0].chunks.load(), 2u);
    EXPECT_TRUE(store->reserve(48 * kMiB).has_value());
}

TEST(ComposedTier, FilesComeAfterServers) {
    const sys::testing::TemporaryDirectory directory;
    const auto server = start_server(16 * kMiB);
    store::FileStoreOptions file;
    file.directory = directory.path();
    file.allow_tmpfs = true;
    std::vector<std::unique_ptr<store::Store>> members;
    members.push_back(connect(*server));
    members.push_back(store::open_file_store(file).value());
    const auto store = ComposedStore::open(Layout::list(), std::move(members)).value();
    auto& composed = static_cast<ComposedStore&>(*store);
    {
        Area area(*store, sys::testing::test_seed());
        EXPECT_EQ(composed.members()[0].chunks.load(), 4u);
        EXPECT_EQ(composed.members()[1].chunks.load(), 6u);
        area.write_all();
        area.write_some(100);
        area.stream(store::IoKind::kRead);
        server->drain();
        EXPECT_TRUE(comes_true([&] { return composed.members()[0].chunks.load() == 0; }));
        area.check_all();
    }
    EXPECT_EQ(composed.members()[1].chunks.load(), 0u);
}

TEST(ComposedNested, ATierOfAMirrorAndAFile) {
    const sys::testing::TemporaryDirectory directory;
    Servers servers;
    std::vector<std::unique_ptr<store::Store>> copies;
    for (int i = 0; i < 2; ++i) {
        servers.push_back(start_server(16 * kMiB));
        copies.push_back(connect(*servers.back()));
    }
    store::FileStoreOptions file;
    file.directory = directory.path();
    file.allow_tmpfs = true;
    std::vector<std::unique_ptr<store::Store>> members;
    members.push_back(ComposedStore::open(Layout::mirror(2), std::move(copies)).value());
    members.push_back(store::open_file_store(file).value());
    const auto store = ComposedStore::open(Layout::list(), std::move(members)).value();
    Area area(*store, sys::testing::test_seed());
    area.write_all();
    servers[1].reset();
    area.write_some(100);
    area.stream(store::IoKind::kRead);
    area.check_all();
}

TEST(ComposedMirror, NeedsEnoughMembers) {
    const auto server = start_server();
    std::vector<std::unique_ptr<store::Store>> members;
    members.push_back(connect(*server));
    EXPECT_EQ(ComposedStore::open(Layout::mirror(2), std::move(members)).error().status,
              HANARE_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace hanare::compose
