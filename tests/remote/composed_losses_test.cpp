// SPDX-License-Identifier: Apache-2.0
//
// Several stores as one, of which some fail while they go on: writes that only some members have
// taken, losses one after the other, and what is given back.
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
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

constexpr uint64_t kBlockBytes = 256 * kKiB;
constexpr uint64_t kChunkBytes = Layout::kChunkBytes;
constexpr uint64_t kPageBytes = 4 * kKiB;

// A store that fails in the ways that it is told to.
class Faulty final : public store::Store {
public:
    explicit Faulty(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

    std::atomic<hanare_status> reads_end{HANARE_STATUS_OK};
    std::atomic<hanare_status> writes_end{HANARE_STATUS_OK};
    std::atomic<bool> does_failing_writes{false};
    std::atomic<bool> leaves{false};
    std::atomic<uint64_t> failed_writes{0};
    std::function<void()> before_reserving;

    Result<uint64_t> reserve(uint64_t bytes) override {
        if (before_reserving) std::exchange(before_reserving, nullptr)();
        return store_->reserve(bytes);
    }
    void release(uint64_t offset, uint64_t bytes) noexcept override {
        store_->release(offset, bytes);
    }
    Result<store::SlotTable> open_slots(uint64_t slot_bytes) override {
        return store_->open_slots(slot_bytes);
    }
    Result<void> share(uint64_t slot_bytes) override { return store_->share(slot_bytes); }
    hanare_status cover(uint64_t end) noexcept override { return store_->cover(end); }
    Result<void> take_part(uint32_t row) override { return store_->take_part(row); }
    hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept override {
        const hanare_status end = reads_end;
        return end != HANARE_STATUS_OK ? end : store_->read(offset, memory, bytes);
    }
    hanare_status write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept override {
        const hanare_status end = writes_end;
        if (end != HANARE_STATUS_OK) ++failed_writes;
        if (end != HANARE_STATUS_OK && !does_failing_writes) return end;
        const hanare_status status = store_->write(offset, memory, bytes);
        return end != HANARE_STATUS_OK ? end : status;
    }
    Result<std::unique_ptr<store::IoChannel>> open_channel() override {
        return store_->open_channel();
    }
    std::unique_ptr<store::SharedTransfers> open_transfers(
        store::TransferCapacity capacity) override {
        if (capacity == store::TransferCapacity::kOne) return nullptr;
        return std::make_unique<Transfers>(*this);
    }
    std::string describe() const override { return store_->describe(); }
    int last_errno() const noexcept override { return store_->last_errno(); }
    const char* trouble() const noexcept override { return store_->trouble(); }
    bool wants_to_leave() noexcept override { return leaves || store_->wants_to_leave(); }
    bool has_asked_to_leave() noexcept override { return leaves || store_->has_asked_to_leave(); }
    void give_up() noexcept override {
        is_given_up = true;
        store_->give_up();
    }
    void abandon_in_child() noexcept override { store_->abandon_in_child(); }

    std::atomic<bool> is_given_up{false};

private:
    // As good as the store itself: what is started is done at once.
    class Transfers final : public store::SharedTransfers {
    public:
        explicit Transfers(Faulty& store) : store_(store) {}
        size_t start(store::IoRequest* const* requests, size_t count) noexcept override {
            for (size_t i = 0; i < count; ++i) {
                store::IoRequest& one = *requests[i];
                one.status = one.kind == store::IoKind::kRead
                                 ? store_.read(one.offset, one.memory, one.bytes)
                                 : store_.write(one.offset, one.memory, one.bytes);
                const std::lock_guard guard(lock_);
                done_.push_back(&one);
            }
            return count;
        }
        bool is_refused() const noexcept override { return false; }
        store::IoRequest* next_completed(bool) noexcept override {
            const std::lock_guard guard(lock_);
            if (done_.empty()) return nullptr;
            store::IoRequest* const first = done_.front();
            done_.pop_front();
            return first;
        }
        bool has_completed() const noexcept override {
            const std::lock_guard guard(lock_);
            return !done_.empty();
        }

    private:
        Faulty& store_;
        mutable std::mutex lock_;
        std::deque<store::IoRequest*> done_;
    };

    const std::unique_ptr<store::Store> store_;
};

// Stores in files, with servers in front of them if there are any.
class Losses : public testing::Test {
protected:
    Faulty& add(std::unique_ptr<store::Store> store) {
        auto faulty = std::make_unique<Faulty>(std::move(store));
        Faulty& added = *faulty;
        faulty_.push_back(&added);
        members_.push_back(std::move(faulty));
        return added;
    }
    // 0: as much as there is.
    Faulty& add_file(uint64_t bytes = 0) {
        store::FileStoreOptions options;
        options.directory = directory_.path();
        options.allow_tmpfs = true;
        options.use_direct = false;
        options.size_bytes = bytes;
        return add(store::open_file_store(options).value());
    }
    void add_server() {
        servers_.push_back(start_server());
        add(connect(*servers_.back()));
    }
    void open(const Layout& layout,
              ComposedStore::Healing healing = ComposedStore::Healing::kByThread) {
        store_ = ComposedStore::open(layout, std::move(members_), healing).value();
        transfers_ = store_->open_transfers(store::TransferCapacity::kMany);
        ASSERT_NE(transfers_, nullptr);
    }
    ComposedStore& store() { return static_cast<ComposedStore&>(*store_); }
    Member::State state_of(uint32_t number) { return store().members()[number].state(); }
    bool becomes(uint32_t number, Member::State state) {
        return comes_true([&] { return state_of(number) == state; });
    }

    // What was written last is in `expected_`, from offset 0 of the area on.
    void reserve(uint64_t bytes) {
        offset_ = store_->reserve(bytes).value();
        expected_.assign(bytes, std::byte{0});
    }
    hanare_status write(uint64_t at, uint64_t bytes) {
        const store::Buffer data(bytes, prng_);
        const hanare_status status = transfer(store::IoKind::kWrite, at, data.data(), bytes);
        if (status == HANARE_STATUS_OK) memcpy(expected_.data() + at, data.data(), bytes);
        return status;
    }
    void write_all() {
        for (uint64_t at = 0; at < expected_.size(); at += kBlockBytes) {
            ASSERT_EQ(write(at, kBlockBytes), HANARE_STATUS_OK);
        }
    }
    void check_all() { check(0, expected_.size()); }
    void check(uint64_t begin, uint64_t end) {
        const store::Buffer data(kBlockBytes);
        for (uint64_t at = begin; at < end; at += kBlockBytes) {
            ASSERT_EQ(transfer(store::IoKind::kRead, at, data.data(), kBlockBytes),
                      HANARE_STATUS_OK)
                << at;
            ASSERT_EQ(memcmp(data.data(), expected_.data() + at, kBlockBytes), 0) << at;
        }
    }

    // By either way of those who fault.
    hanare_status transfer(store::IoKind kind, uint64_t at, std::byte* memory, size_t bytes) {
        const auto started =
            prng_.below(2) == 0 ? start_and_take(kind, at, memory, bytes) : std::nullopt;
        if (started) return *started;
        return kind == store::IoKind::kRead ? store_->read(offset_ + at, memory, bytes)
                                            : store_->write(offset_ + at, memory, bytes);
    }
    std::optional<hanare_status> start_and_take(store::IoKind kind, uint64_t at, std::byte* memory,
                                                size_t bytes) {
        store::IoRequest request{
            .kind = kind, .offset = offset_ + at, .memory = memory, .bytes = bytes};
        store::IoRequest* const started = &request;
        if (transfers_->start(&started, 1) == 0) return std::nullopt;
        while (transfers_->next_completed(true) == nullptr) std::this_thread::yield();
        return request.status;
    }

    const sys::testing::TemporaryDirectory directory_;
    Prng prng_{sys::testing::test_seed()};
    Servers servers_;
    std::vector<std::unique_ptr<store::Store>> members_;
    std::vector<Faulty*> faulty_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<store::SharedTransfers> transfers_;
    uint64_t offset_ = 0;
    std::vector<std::byte> expected_;
};

TEST_F(Losses, AfterAHealedOneACopyThatMissesAWriteIsNotRead) {
    add_server();
    Faulty& first = add_file();
    add_file();
    open(Layout::mirror(2));
    reserve(4 * kChunkBytes);
    write_all();
    servers_[0].reset();
    check_all();
    EXPECT_TRUE(becomes(0, Member::State::kGone));
    EXPECT_EQ(store().members().lost(), 0u);
    first.writes_end = HANARE_STATUS_STORE_IO;
    write_all();
    EXPECT_EQ(state_of(1), Member::State::kLost);
    first.writes_end = HANARE_STATUS_OK;
    check_all();
    write_all();
    check_all();
}

TEST_F(Losses, AfterAHealedOneAStripThatMissesAWriteIsNotRead) {
    add_server();
    Faulty& first = add_file();
    add_file();
    add_file();
    open(Layout::parity(2, kBlockBytes));
    reserve(4 * kChunkBytes);
    write_all();
    servers_[0].reset();
    check_all();
    EXPECT_TRUE(becomes(0, Member::State::kGone));
    first.writes_end = HANARE_STATUS_STORE_IO;
    write_all();
    EXPECT_EQ(state_of(1), Member::State::kLost);
    first.writes_end = HANARE_STATUS_OK;
    check_all();
    ASSERT_EQ(write(kPageBytes, kPageBytes), HANARE_STATUS_OK);
    check_all();
}

TEST_F(Losses, AfterAHealedOneWhoSendsWhatWasNotWrittenIsGivenUp) {
    add_file();
    Faulty& second = add_file();
    add_file();
    add_file();
    open(Layout::mirror(2));
    reserve(2 * kChunkBytes);
    write_all();
    for (uint32_t number = 0; number < 2; ++number) {
        faulty_[number]->reads_end = HANARE_STATUS_CORRUPT;
        check_all();
        ASSERT_TRUE(becomes(number, Member::State::kGone)) << number;
        EXPECT_TRUE(comes_true([&] { return faulty_[number]->is_given_up.load(); })) << number;
    }
    second.reads_end = HANARE_STATUS_OK;
    check_all();
}

// While one is lost for which there is no room elsewhere.
TEST_F(Losses, AWriteThatAMemberMissesIsNotDoneWhereThatIsStillNeeded) {
    add_file(2 * kChunkBytes);
    add_file(3 * kChunkBytes);
    add_file(1 * kChunkBytes);
    open(Layout::mirror(2));
    reserve(3 * kChunkBytes);
    write_all();
    ASSERT_EQ(store().group_at(offset_ + 2 * kChunkBytes).place(0)->member +
                  store().group_at(offset_ + 2 * kChunkBytes).place(1)->member,
              1u + 2u);
    faulty_[0]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
    ASSERT_EQ(state_of(0), Member::State::kLost);
    faulty_[1]->writes_end = HANARE_STATUS_STORE_IO;
    EXPECT_EQ(write(2 * kChunkBytes, kBlockBytes), HANARE_STATUS_STORE_IO);
    EXPECT_TRUE(store().members()[1].is_used());
    check(0, 2 * kChunkBytes);
    faulty_[1]->writes_end = HANARE_STATUS_OK;
    ASSERT_EQ(write(2 * kChunkBytes, kBlockBytes), HANARE_STATUS_OK);
    check_all();
}

TEST_F(Losses, AWriteThatAllMissChangesNoMember) {
    add_file();
    add_file();
    add_file();
    open(Layout::parity(2, kBlockBytes));
    reserve(2 * kChunkBytes);
    write_all();
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_STORE_IO;
    EXPECT_EQ(write(0, kBlockBytes), HANARE_STATUS_STORE_IO);
    EXPECT_EQ(write(0, kPageBytes), HANARE_STATUS_STORE_IO);
    faulty_[2]->writes_end = HANARE_STATUS_OK;
    EXPECT_EQ(write(0, kBlockBytes), HANARE_STATUS_STORE_IO);
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_OK;
    EXPECT_EQ(store().members().lost(), 0u);
    write_all();
    check_all();
}

TEST_F(Losses, AfterAHealedOneThereIsNoRoomWithoutRedundancy) {
    add_file(4 * kChunkBytes);
    add_file(4 * kChunkBytes);
    add_file(4 * kChunkBytes);
    open(Layout::mirror(2));
    reserve(2 * kChunkBytes);
    write_all();
    faulty_[0]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
    ASSERT_TRUE(becomes(0, Member::State::kGone));
    const auto more = store_->reserve(2 * kChunkBytes);
    ASSERT_TRUE(more.has_value());
    EXPECT_EQ(store_->reserve(kChunkBytes).error().status, HANARE_STATUS_STORE_FULL);
    // The next one leaves too few for two copies.
    faulty_[1]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
    EXPECT_EQ(state_of(1), Member::State::kLost);
    store_->release(*more, 2 * kChunkBytes);
    EXPECT_TRUE(store_->reserve(kChunkBytes).has_value());
}

TEST_F(Losses, WithTooFewLeftThereIsRoomAllTheSame) {
    add_server();
    add_server();
    open(Layout::mirror(2));
    servers_[0].reset();
    ASSERT_TRUE(becomes(0, Member::State::kLost));
    ASSERT_TRUE(comes_true([&] { return store().healer().is_idle(); }));
    reserve(4 * kChunkBytes);
    write_all();
    check_all();
    EXPECT_EQ(store_->trouble(), nullptr);
}

TEST_F(Losses, OneAfterTheOtherAreNoTrouble) {
    for (int i = 0; i < 4; ++i) add_server();
    open(Layout::mirror(2));
    reserve(4 * kChunkBytes);
    write_all();
    for (uint32_t lost = 0; lost < 3; ++lost) {
        servers_[lost].reset();
        check_all();
        EXPECT_TRUE(becomes(lost, lost < 2 ? Member::State::kGone : Member::State::kLost));
        EXPECT_EQ(store_->trouble(), nullptr) << lost;
    }
    write_all();
    check_all();
    servers_[3].reset();
    const store::Buffer data(kBlockBytes);
    EXPECT_NE(store_->read(offset_, data.data(), kBlockBytes), HANARE_STATUS_OK);
    EXPECT_NE(store_->trouble(), nullptr);
}

TEST_F(Losses, WithinAMemberThatMakesUpForThemDoNotConcernTheOthers) {
    std::vector<std::unique_ptr<store::Store>> copies;
    for (int i = 0; i < 4; ++i) {
        servers_.push_back(start_server());
        copies.push_back(connect(*servers_.back()));
    }
    auto mirror = ComposedStore::open(Layout::mirror(2), std::move(copies)).value();
    Members& inner = static_cast<ComposedStore&>(*mirror).members();
    add(std::move(mirror));
    add_file();
    add_file();
    open(Layout::mirror(2));
    reserve(4 * kChunkBytes);
    write_all();
    for (uint32_t lost = 0; lost < 2; ++lost) {
        servers_[lost].reset();
        check_all();
        ASSERT_TRUE(comes_true([&] { return inner[lost].state() == Member::State::kGone; }));
        write_all();
        EXPECT_EQ(state_of(0), Member::State::kGood) << lost;
        EXPECT_EQ(faulty_[0]->trouble(), nullptr) << lost;
    }
    // What is in it is given back with it.
    faulty_[0]->reads_end = HANARE_STATUS_CORRUPT;
    check_all();
    ASSERT_TRUE(becomes(0, Member::State::kGone));
    for (uint32_t left = 2; left < 4; ++left) {
        EXPECT_TRUE(comes_true([&] { return servers_[left]->status().leases.empty(); })) << left;
    }
    check_all();
}

TEST_F(Losses, AChunkThatCannotBeCopiedIsKeptForTheNextAttempt) {
    add_server();
    add_file();
    add_file();
    Faulty& spare = add_file();
    open(Layout::parity(2, kBlockBytes));
    reserve(8 * kChunkBytes);
    // Half of the groups.
    for (uint64_t at = 0; at < 4 * kChunkBytes; at += kBlockBytes) {
        ASSERT_EQ(write(at, kBlockBytes), HANARE_STATUS_OK);
    }
    spare.writes_end = HANARE_STATUS_STORE_IO;
    spare.does_failing_writes = true;
    servers_[0].reset();
    check(0, 4 * kChunkBytes);
    const auto& chunks = store().members()[3].chunks;
    ASSERT_TRUE(comes_true([&] { return spare.failed_writes.load() >= 6; }));
    EXPECT_EQ(chunks.load(), 1u);
    spare.writes_end = HANARE_STATUS_OK;
    ASSERT_TRUE(becomes(0, Member::State::kGone));
    EXPECT_EQ(chunks.load(), 4u);
    check_all();
    // Parity belongs to all of it.
    for (uint64_t at = 4 * kChunkBytes; at < 8 * kChunkBytes; at += kBlockBytes) {
        ASSERT_EQ(write(at + kPageBytes, kPageBytes), HANARE_STATUS_OK);
    }
    faulty_[1]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
}

TEST_F(Losses, WhoGivesAChunkIsNotLeftMeanwhile) {
    Faulty& leaver = add_file();
    add_file();
    open(Layout::list());
    leaver.before_reserving = [&] {
        leaver.leaves = true;
        ASSERT_TRUE(becomes(0, Member::State::kLeaving));
        ASSERT_TRUE(comes_true(
            [&] { return store().healer().is_idle() || state_of(0) == Member::State::kGone; }));
    };
    reserve(kChunkBytes);
    write_all();
    EXPECT_TRUE(becomes(0, Member::State::kGone));
    EXPECT_EQ(store().group_at(offset_).place(0)->member, 1u);
    check_all();
}

TEST_F(Losses, OfAServerThatSendsWhatWasNotWrittenTheLeaseEnds) {
    for (int i = 0; i < 3; ++i) add_server();
    open(Layout::mirror(2));
    reserve(2 * kChunkBytes);
    write_all();
    ASSERT_FALSE(servers_[0]->status().leases.empty());
    faulty_[0]->reads_end = HANARE_STATUS_CORRUPT;
    check_all();
    ASSERT_TRUE(becomes(0, Member::State::kGone));
    EXPECT_TRUE(comes_true([&] { return servers_[0]->status().leases.empty(); }));
    check_all();
}

// Both parts of a change fail, one of them when it has been done.
TEST_F(Losses, AfterAChangeHasFailedParityBelongsToAllStrips) {
    for (int i = 0; i < 3; ++i) add_file();
    const Layout layout = Layout::parity(2, kBlockBytes);
    open(layout);
    reserve(2 * kChunkBytes);
    write_all();
    const Group group = store().group_at(offset_);
    const uint32_t of_strip = group.place(0)->member;
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_STORE_IO;
    faulty_[of_strip]->does_failing_writes = true;
    EXPECT_EQ(write(0, kPageBytes), HANARE_STATUS_STORE_IO);
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_OK;
    ASSERT_EQ(store().members().lost(), 0u);
    ASSERT_EQ(write(0, kPageBytes), HANARE_STATUS_OK);
    // The other strip is made again from this one and the parity.
    faulty_[group.place(1)->member]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
}

TEST_F(Losses, AfterABlockHasFailedParityBelongsToAllStripsOfItsStripes) {
    for (int i = 0; i < 3; ++i) add_file();
    const Layout layout = Layout::parity(2, kBlockBytes);
    open(layout);
    reserve(2 * kChunkBytes);
    write_all();
    const Group group = store().group_at(offset_);
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_STORE_IO;
    faulty_[group.place(0)->member]->does_failing_writes = true;
    const store::Buffer data(kBlockBytes, prng_);
    ASSERT_EQ(start_and_take(store::IoKind::kWrite, 0, data.data(), kBlockBytes),
              HANARE_STATUS_STORE_IO);
    for (Faulty* const each : faulty_) each->writes_end = HANARE_STATUS_OK;
    ASSERT_EQ(store().members().lost(), 0u);
    for (uint64_t stripe = 0; stripe < kBlockBytes; stripe += layout.stripe_bytes()) {
        for (uint64_t page = 0; page < layout.strip_bytes; page += kPageBytes) {
            ASSERT_EQ(write(stripe + page, kPageBytes), HANARE_STATUS_OK);
        }
    }
    faulty_[group.place(1)->member]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
}

// Of a group whose members are all there, while another one is lost.
TEST_F(Losses, AChangeIsNotDoneWhereItsParityCannotBeMade) {
    add_file(1 * kChunkBytes);
    add_file();
    add_file();
    add_file(1 * kChunkBytes);
    const Layout layout = Layout::parity(2, kBlockBytes);
    open(layout);
    reserve(4 * kChunkBytes);
    write_all();
    const Group group = store().group_at(offset_ + layout.group_bytes());
    faulty_[0]->reads_end = HANARE_STATUS_STORE_IO;
    check_all();
    ASSERT_EQ(state_of(0), Member::State::kLost);
    Faulty& parity = *faulty_[group.place(layout.data)->member];
    Faulty& other = *faulty_[group.place(1)->member];
    ASSERT_NE(&parity, faulty_[0]);
    parity.reads_end = HANARE_STATUS_STORE_IO;
    other.reads_end = HANARE_STATUS_STORE_IO;
    EXPECT_EQ(write(layout.group_bytes(), kPageBytes), HANARE_STATUS_STORE_IO);
    parity.reads_end = HANARE_STATUS_OK;
    other.reads_end = HANARE_STATUS_OK;
    ASSERT_EQ(write(layout.group_bytes(), kPageBytes), HANARE_STATUS_OK);
    check_all();
}

// What a pass of turns needs to know: nobody else is there, and all is kept.
class Everything final : public store::SlotUsers {
public:
    bool is_alone() noexcept override { return true; }
    Content content_of(uint64_t, uint64_t) noexcept override { return Content::kKept; }
    uint64_t unit_bytes() const noexcept override { return kBlockBytes; }
};

class LossesInTurns : public Losses {
protected:
    void open_slots(const Layout& layout) {
        open(layout, ComposedStore::Healing::kInTurns);
        table_.emplace(store_->open_slots(kBlockBytes).value());
    }
    void cover(uint64_t bytes) {
        ASSERT_EQ(store_->cover(bytes), HANARE_STATUS_OK);
        expected_.assign(bytes, std::byte{0});
    }
    bool tend_until(uint32_t number, Member::State state) {
        return comes_true([&] {
            store_->tend(users_);
            return state_of(number) == state;
        });
    }

    std::optional<store::SlotTable> table_;
    Everything users_;
};

TEST_F(LossesInTurns, WithTooFewLeftThereIsRoomAllTheSame) {
    add_server();
    add_server();
    open_slots(Layout::mirror(2));
    servers_[0].reset();
    ASSERT_TRUE(tend_until(0, Member::State::kLost));
    for (int i = 0; i < 3; ++i) store_->tend(users_);
    cover(4 * kChunkBytes);
    write_all();
    check_all();
}

TEST_F(LossesInTurns, OfAServerThatSendsWhatWasNotWrittenTheLeaseEnds) {
    for (int i = 0; i < 3; ++i) add_server();
    open_slots(Layout::mirror(2));
    cover(4 * kChunkBytes);
    write_all();
    ASSERT_FALSE(servers_[0]->status().leases.empty());
    faulty_[0]->reads_end = HANARE_STATUS_CORRUPT;
    check_all();
    ASSERT_TRUE(tend_until(0, Member::State::kGone));
    EXPECT_TRUE(comes_true([&] { return servers_[0]->status().leases.empty(); }));
    check_all();
}

}  // namespace
}  // namespace hanare::compose
