// SPDX-License-Identifier: Apache-2.0
#include "dsm/locks.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "sys/thread_state.hpp"

namespace hanare::dsm {
namespace {

// How long the token may take before it is asked whether who should send it is there.
constexpr std::chrono::milliseconds kPatience(250);

}  // namespace

// The token begins at the manager.
Locks::Lock& Locks::at(uint32_t number) {
    const auto [place, is_new] = locks_.try_emplace(number);
    if (is_new) place->second.is_here = manager_of(number) == peers_.rank();
    return place->second;
}

std::unexpected<Error> Locks::failed(uint32_t number, hanare_status status) const {
    if (status == HANARE_STATUS_PEER_LOST) {
        return fail(status, "lock %u: task %u is no more", number, peers_.lost());
    }
    return fail(status, "lock %u: %s", number, hanare_status_text(status));
}

Result<void> Locks::lock(uint32_t number) {
    const uint32_t thread = sys::current_thread_id();
    // What was under way with that task is not known; where a token is, may not be either.
    if (peers_.lost() != kNobody) return failed(number, HANARE_STATUS_PEER_LOST);
    std::unique_lock guard(lock_);
    Lock& lock = at(number);
    if (lock.is_held && lock.holder == thread) {
        return fail(HANARE_STATUS_BUSY, "lock %u: this thread has it already", number);
    }
    ++lock.waiting;
    while (lock.is_held || lock.is_wanted) changed_.wait(guard);
    --lock.waiting;
    if (!lock.is_here) HANARE_TRY(fetch(number, guard));
    lock.is_held = true;
    lock.holder = thread;
    Counters::add(counters_.locks);
    return {};
}

// Returns with the token.  The map's elements stay where they are.
Result<void> Locks::fetch(uint32_t number, std::unique_lock<std::mutex>& guard) {
    Lock& lock = at(number);
    lock.is_wanted = true;
    const auto give_up = [&](hanare_status why) -> std::unexpected<Error> {
        hanare_status status = why;
        if (!guard.owns_lock()) guard.lock();
        lock.is_wanted = false;
        changed_.notify_all();
        // Who was asked has heard of the loss before (HomeProtocol::answer).
        if (status == HANARE_STATUS_BUSY) {
            guard.unlock();
            const bool is_lost = actions_.find_lost(manager_of(number));
            guard.lock();
            if (is_lost) status = HANARE_STATUS_PEER_LOST;
        }
        return failed(number, status);
    };
    guard.unlock();
    uint32_t last = 0;
    hanare_status status = ask_for_last(number, last);
    if (status != HANARE_STATUS_OK) return give_up(status);
    const QuestionText question(
        {.kind = QuestionKind::kHandOver, .from = peers_.rank(), .begin = number});
    std::vector<uint64_t> positions(peers_.size());
    size_t bytes = 0;
    status =
        peers_.ask(last, question.bytes(), std::as_writable_bytes(std::span(positions)), &bytes);
    if (status != HANARE_STATUS_OK) return give_up(status);
    guard.lock();
    if (bytes == positions.size() * sizeof(uint64_t)) {
        lock.from = last;
        lock.positions = std::move(positions);
        lock.is_here = true;
    } else if (const auto came = await(number, last, guard); !came) {
        return give_up(came.error().status);
    }
    const uint32_t from = lock.from;
    const std::vector<uint64_t> known = std::move(lock.positions);
    guard.unlock();
    status = actions_.acquire(from, known);
    if (status != HANARE_STATUS_OK) return give_up(status);
    begin_section(lock);
    guard.lock();
    lock.is_wanted = false;
    Counters::add(counters_.remote_locks);
    return {};
}

// Nobody else has the lock, or is about to.
void Locks::begin_section(Lock& lock) {
    if (lock.use != nullptr) actions_.fetch(lock.use->begin());
    lock.is_from_elsewhere = true;
    lock.misses = actions_.misses().count();
}

void Locks::end_section(Lock& lock) {
    if (!std::exchange(lock.is_from_elsewhere, false)) return;
    Miss missed[RecentMisses::kKept];
    const size_t count = actions_.misses().since(lock.misses, missed);
    if (lock.use == nullptr && count == 0) return;
    if (lock.use == nullptr) lock.use = std::make_unique<SectionUse>();
    lock.use->end(std::span(missed).first(count));
}

hanare_status Locks::ask_for_last(uint32_t number, uint32_t& last) {
    const uint32_t manager = manager_of(number);
    if (manager == peers_.rank()) {
        last_holder(number, peers_.rank(), last);
        return HANARE_STATUS_OK;
    }
    const QuestionText question(
        {.kind = QuestionKind::kLastHolder, .from = peers_.rank(), .begin = number});
    size_t bytes = 0;
    const hanare_status status =
        peers_.ask(manager, question.bytes(), std::as_writable_bytes(std::span(&last, 1)), &bytes);
    if (status != HANARE_STATUS_OK) return status;
    return bytes == sizeof last && last < peers_.size() ? HANARE_STATUS_OK : HANARE_STATUS_CORRUPT;
}

Result<void> Locks::await(uint32_t number, uint32_t asked, std::unique_lock<std::mutex>& guard) {
    Lock& lock = at(number);
    while (!lock.is_here) {
        if (changed_.wait_for(guard, kPatience) == std::cv_status::no_timeout || lock.is_here) {
            continue;
        }
        guard.unlock();
        const bool is_lost = actions_.find_lost(asked);
        guard.lock();
        if (is_lost && !lock.is_here) return failed(number, HANARE_STATUS_PEER_LOST);
    }
    return {};
}

Result<void> Locks::unlock(uint32_t number) {
    if (!has(number)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "lock %u: this thread does not have it",
                    number);
    }
    hanare_status status = actions_.release();
    if (status != HANARE_STATUS_OK) return failed(number, status);
    uint32_t successor = kNobody;
    {
        const std::lock_guard guard(lock_);
        Lock& lock = at(number);
        end_section(lock);
        lock.is_held = false;
        successor = std::exchange(lock.successor, kNobody);
        if (successor != kNobody) lock.is_here = false;
        if (lock.waiting > 0) changed_.notify_all();
    }
    if (successor == kNobody) return {};
    const std::vector<uint64_t> positions = actions_.positions();
    QuestionText question(
        {.kind = QuestionKind::kHandedOver, .from = peers_.rank(), .begin = number});
    question.append(positions.data(), positions.size() * sizeof(uint64_t));
    status = peers_.ask(successor, question.bytes());
    if (status != HANARE_STATUS_OK) return failed(number, status);
    return {};
}

bool Locks::has(uint32_t number) {
    const std::lock_guard guard(lock_);
    const Lock& lock = at(number);
    return lock.is_held && lock.holder == sys::current_thread_id();
}

// ---- what peers ask

bool Locks::last_holder(uint32_t number, uint32_t task, uint32_t& last) {
    if (manager_of(number) != peers_.rank() || task >= peers_.size()) return false;
    const std::lock_guard guard(lock_);
    Lock& lock = at(number);
    last = std::exchange(lock.last, task);
    if (last == kNobody) last = peers_.rank();
    return true;
}

bool Locks::hand_over(uint32_t number, uint32_t task) {
    const std::lock_guard guard(lock_);
    Lock& lock = at(number);
    if (lock.is_here && !lock.is_held && !lock.is_wanted) {
        lock.is_here = false;
        return true;
    }
    lock.successor = task;
    return false;
}

void Locks::take_over(uint32_t number, uint32_t from, std::vector<uint64_t> positions) {
    const std::lock_guard guard(lock_);
    Lock& lock = at(number);
    lock.from = from;
    lock.positions = std::move(positions);
    lock.is_here = true;
    changed_.notify_all();
}

}  // namespace hanare::dsm
