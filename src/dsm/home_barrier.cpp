// SPDX-License-Identifier: Apache-2.0
//
// Barriers, and what comes with them: notices, and blocks that are needed after each.
#include <algorithm>
#include <cstring>

#include "dsm/home_protocol.hpp"
#include "job/word_wait.hpp"
#include "sys/clock.hpp"

namespace hanare::dsm {

Result<void> HomeProtocol::barrier(uint32_t id) {
    const uint64_t begun_ns = sys::now_ns();
    const hanare_status released = release();
    if (released != HANARE_STATUS_OK) return failed("barrier", released);
    ++barriers_;
    Counters::add(counters_.barriers);
    bool is_wrong = false;
    if (auto passed = pass_rounds(id, is_wrong); !passed) {
        peers_.note_failure(passed.error().status);
        return passed;
    }
    hanare_status status = HANARE_STATUS_OK;
    {
        // What another thread of this task learns is not overlooked.
        const std::lock_guard guard(learning_);
        const auto updates = updates_that_count();
        notices_.copy_positions(last_barrier_);
        status = memory_->refresh(updates);
    }
    Counters::add(counters_.wait_ns, sys::now_ns() - begun_ns);
    if (peers_.note_failure(status) != HANARE_STATUS_OK) return failed("barrier", status);
    if (!is_wrong) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: other tasks are at another one", id);
}

Result<void> HomeProtocol::pass_rounds(uint32_t id, bool& is_wrong) {
    const uint32_t first_told = (peers_.rank() + 1) % peers_.size();
    // Whatever happens, what is under way is not left alone.
    struct Finish {
        HomeProtocol& self;
        uint32_t task;
        ~Finish() { self.finish_update(task); }
    };
    const Finish finish(*this, first_told);
    const hanare_status sent = send_updates(first_told);
    if (sent != HANARE_STATUS_OK) return failed("barrier", sent);
    for (uint32_t round = 0; (uint64_t{1} << round) < peers_.size(); ++round) {
        HANARE_TRY(pass_round(round, id, is_wrong));
    }
    const hanare_status last_sent = finish_update(first_told);
    if (last_sent != HANARE_STATUS_OK) return failed("barrier", last_sent);
    return {};
}

// Other threads of this task may release and acquire while it waits.
Result<void> HomeProtocol::pass_round(uint32_t round, uint32_t id, bool& is_wrong) {
    const uint32_t tasks = peers_.size();
    const uint32_t step = (1u << round) % tasks;
    const uint32_t to = (peers_.rank() + step) % tasks;
    const uint32_t from = (peers_.rank() + tasks - step) % tasks;
    const hanare_status sent = send_message(to, round, make_message(id, is_wrong));
    if (sent != HANARE_STATUS_OK) return failed("barrier", sent);
    HANARE_TRY(await_message(from, round));
    const std::byte* const place = mail_.barrier(barriers_, round);
    BarrierHead head;
    std::memcpy(&head, place, sizeof head);
    is_wrong |= head.id != id || head.is_wrong != 0 || head.number != barriers_;
    std::memcpy(said_.data(), place + sizeof head, tasks * sizeof(Said));
    std::ranges::transform(said_, known_.begin(), &Said::position);
    const size_t head_bytes = sizeof head + tasks * sizeof(Said);
    const std::span<const std::byte> logs(place + head_bytes, kMailBarrierBytes - head_bytes);
    const std::lock_guard guard(learning_);
    if (!notices_.may_be_known(known_)) return failed("barrier", HANARE_STATUS_CORRUPT);
    const bool has_come = head.has_logs != 0 && notices_.take_in(said_, logs);
    hanare_status status = has_come ? HANARE_STATUS_OK : read_logs(from, known_);
    if (status == HANARE_STATUS_OK) status = heed(known_);
    if (status != HANARE_STATUS_OK) return failed("barrier", status);
    return {};
}

// Other threads may append meanwhile, and so overwrite what is copied here.
std::span<const std::byte> HomeProtocol::make_message(uint32_t id, bool is_wrong) noexcept {
    const std::lock_guard guard(learning_);
    const uint32_t tasks = peers_.size();
    const size_t head_bytes = sizeof(BarrierHead) + tasks * sizeof(Said);
    size_t bytes = head_bytes;
    for (uint32_t task = 0; task < tasks; ++task) {
        said_[task] = {notices_.position(task), last_barrier_[task]};
        bytes += std::min(said_[task].position - said_[task].begin, uint64_t{kMailBarrierBytes});
    }
    const bool has_logs = bytes <= kMailBarrierBytes;
    const BarrierHead head = {
        .number = barriers_, .id = id, .is_wrong = is_wrong, .has_logs = has_logs};
    std::memcpy(message_.data(), &head, sizeof head);
    std::memcpy(message_.data() + sizeof head, said_.data(), tasks * sizeof(Said));
    std::byte* at = message_.data() + head_bytes;
    for (uint32_t task = 0; has_logs && task < tasks; ++task) {
        const auto [position, begin] = said_[task];
        const auto pieces = notices_.pieces(task, begin, position - begin);
        for (const auto& piece : {pieces.first, pieces.second}) {
            at = std::ranges::copy(piece, at).out;
        }
    }
    return std::span(message_).first(has_logs ? bytes : head_bytes);
}

// The words lie behind the messages, so that both requests go at once.
hanare_status HomeProtocol::send_message(uint32_t to, uint32_t round,
                                         std::span<const std::byte> message) {
    const uint32_t tasks = peers_.size();
    fabric::Operation put;
    put.kind = fabric::Kind::kPut;
    put.capability = peers_.keys(to).mail;
    put.offset = Mail::barrier_offset(tasks, barriers_, round);
    put.source = message;
    peers_.prepare(put);
    fabric::Operation notice;
    notice.kind = fabric::Kind::kFetch;
    notice.capability = put.capability;
    notice.offset = Mail::word_offset(tasks, round);
    notice.width = sizeof(uint32_t);
    notice.operand = 1;
    job::make_waking(notice);
    peers_.prepare(notice);
    Counters::add(counters_.barrier_messages);
    Counters::add(counters_.barrier_bytes, message.size());
    peers_.post_apart(to, put);
    peers_.post_apart(to, notice);
    const hanare_status put_status = peers_.wait(to, put);
    const hanare_status status = peers_.wait(to, notice);
    return put_status != HANARE_STATUS_OK ? put_status : status;
}

// Whose loss ends the wait: anybody's, since who is awaited may wait for that one, or have given
// up.
void HomeProtocol::add_others(uint32_t first, std::vector<uint32_t>& tasks) const {
    for (uint32_t i = 0; i < peers_.size(); ++i) {
        const uint32_t task = (first + i) % peers_.size();
        if (task != peers_.rank()) tasks.push_back(task);
    }
}

Result<void> HomeProtocol::await_message(uint32_t from, uint32_t round) {
    std::atomic<uint32_t>& word = mail_.word(round);
    const auto has_come = [&] {
        return static_cast<int32_t>(word.load(std::memory_order_acquire) - barriers_) >= 0;
    };
    const job::Failure failure = lookout_.wait(
        {.word = word, .has_come = has_come, .awaited = [&](std::vector<uint32_t>& tasks) {
             add_others(from, tasks);
         }});
    if (failure.is_none()) return {};
    peers_.note_lost(failure.rank);
    return failed("barrier", failure.status);
}

// ---- what comes with a barrier (home_updates.cpp)

// The one that is told first has the update before the barrier's message, on the same connection.
// The others have it before anybody is told; where that fails nobody is, so that half an update
// does not count.
hanare_status HomeProtocol::send_updates(uint32_t first_told) noexcept {
    hanare_status first_failure = HANARE_STATUS_OK;
    // Before what they say is copied.
    notices_.copy_positions(known_);
    const size_t room_bytes = update_bytes_max(peers_.size());
    for (uint32_t task = memory_->next_follower(0); task < peers_.size();
         task = memory_->next_follower(task + 1)) {
        std::byte* const room = updates_room_.address() + task * room_bytes;
        const size_t bytes = memory_->make_update(task, barriers_, known_, room);
        if (bytes == 0) continue;
        fabric::Operation& put = updates_[task].emplace();
        put.kind = fabric::Kind::kPut;
        put.capability = peers_.keys(task).mail;
        put.offset = Mail::update_offset(peers_.size(), peers_.rank(), barriers_);
        put.source = {room, bytes};
        peers_.prepare(put);
        peers_.post(task, put);
    }
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        if (task == first_told) continue;
        const hanare_status status = finish_update(task);
        if (first_failure == HANARE_STATUS_OK) first_failure = status;
    }
    return first_failure;
}

hanare_status HomeProtocol::finish_update(uint32_t task) noexcept {
    if (!updates_[task]) return HANARE_STATUS_OK;
    const hanare_status status = peers_.wait(task, *updates_[task]);
    updates_[task].reset();
    return status;
}

// Under learning_.
std::span<const HomeMemory::Update> HomeProtocol::updates_that_count() noexcept {
    const uint32_t tasks = peers_.size();
    size_t count = 0;
    for (uint32_t from = 0; from < tasks; ++from) {
        const std::byte* const place = mail_.update_from(from, barriers_);
        UpdateHead head;
        std::memcpy(&head, place, sizeof head);
        if (from == peers_.rank() || head.barrier != barriers_) continue;
        find_changed_since(place + sizeof head);
        for (uint32_t i = 0; i < std::min(head.count, kUpdateBlocksMax); ++i) {
            if (count == come_.size()) break;
            const std::byte* const item = place + update_bytes(tasks, i);
            uint32_t block = 0;
            std::memcpy(&block, item, sizeof block);
            if (block >= segment_.blocks() || learnt_.contains(block)) continue;
            come_[count++] = {from, block, item + sizeof block};
        }
    }
    const std::span updates = std::span(come_).first(count);
    std::ranges::sort(updates, {}, &HomeMemory::Update::block);
    return updates;
}

// By anybody, behind what the sender knew.
void HomeProtocol::find_changed_since(const std::byte* positions) noexcept {
    learnt_.clear();
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        uint64_t begin = 0;
        std::memcpy(&begin, positions + task * sizeof begin, sizeof begin);
        if (begin % sizeof(Run) != 0) learnt_.add(kAllBlocks);
        note_runs_between(task, begin, notices_.position(task), learnt_);
    }
    learnt_.make_disjoint();
}

}  // namespace hanare::dsm
