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
    std::unique_lock guard(lock_);
    Lock& lock = at(number);
    if (lock.is_held && lock.holder == thread) {
        return fail(HANARE_STATUS_BUSY, "lock %u: this thread has it already", number);
    }
    ++lock.waiting;
    // Who has failed to give it back has it for ever.
    while ((lock.is_held || lock.is_wanted) && peers_.trouble() == HANARE_STATUS_OK)
        changed_.wait(guard);
    --lock.waiting;
    if (const hanare_status status = peers_.trouble(); status != HANARE_STATUS_OK) {
        return failed(number, status);
    }
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
        if (guard.owns_lock()) guard.unlock();
        // Who was asked has failed, or heard of a loss before (HomeProtocol::answer).
        const bool is_elsewhere = why == HANARE_STATUS_BUSY;
        const bool is_lost = is_elsewhere && actions_.find_lost(manager_of(number));
        const hanare_status status = is_elsewhere ? HANARE_STATUS_PEER_LOST : why;
        peers_.note_failure(status);
        guard.lock();
        lock.is_wanted = false;
        changed_.notify_all();
        if (!is_elsewhere || is_lost) return failed(number, status);
        return fail(status, "lock %u: another task of the job has failed", number);
    };
    guard.unlock();
    const std::vector<uint64_t> told = actions_.positions();
    uint32_t asked = 0;
    std::vector<std::byte> text;
    hanare_status status = ask_for_token(number, told, asked, text);
    if (status != HANARE_STATUS_OK) return give_up(status);
    guard.lock();
    if (!text.empty()) {
        lock.from = asked;
        lock.text = std::move(text);
        lock.is_here = true;
    } else if (const auto came = await(number, asked, guard); !came) {
        return give_up(came.error().status);
    }
    const uint32_t from = lock.from;
    text = std::move(lock.text);
    guard.unlock();
    status = actions_.acquire(from, told, text);
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

// Who was asked last; with the token comes a text, which is never empty.
hanare_status Locks::ask_for_token(uint32_t number, std::span<const uint64_t> told, uint32_t& asked,
                                   std::vector<std::byte>& text) {
    const uint32_t manager = manager_of(number);
    asked = manager;
    if (manager == peers_.rank()) {
        asked = note_last(number, manager);
    } else {
        const hanare_status status = ask(QuestionKind::kLastHolder, number, told, asked, text);
        if (status != HANARE_STATUS_OK || asked == manager) return status;
    }
    return ask(QuestionKind::kHandOver, number, told, asked, text);
}

hanare_status Locks::ask(QuestionKind kind, uint32_t number, std::span<const uint64_t> told,
                         uint32_t& asked, std::vector<std::byte>& text) {
    QuestionText question({.kind = kind, .from = peers_.rank(), .begin = number});
    question.append(told.data(), told.size_bytes());
    std::byte room[fabric::kMessageBytesMax];
    size_t bytes = 0;
    const hanare_status status = peers_.ask(asked, question.bytes(), room, &bytes);
    if (status != HANARE_STATUS_OK) return status;
    LockAnswer answer;
    if (bytes < sizeof answer) return HANARE_STATUS_CORRUPT;
    std::memcpy(&answer, room, sizeof answer);
    const auto rest = std::span<const std::byte>(room, bytes).subspan(sizeof answer);
    switch (answer.token) {
        case LockAnswer::Token::kElsewhere:
            if (kind == QuestionKind::kHandOver || answer.last >= peers_.size()) break;
            asked = answer.last;
            return HANARE_STATUS_OK;
        case LockAnswer::Token::kComes: return HANARE_STATUS_OK;
        case LockAnswer::Token::kIsYours:
            if (rest.size() < told.size_bytes()) break;
            text.assign(rest.begin(), rest.end());
            return HANARE_STATUS_OK;
    }
    return HANARE_STATUS_CORRUPT;
}

Result<void> Locks::await(uint32_t number, uint32_t asked, std::unique_lock<std::mutex>& guard) {
    Lock& lock = at(number);
    // Other locks come and go meanwhile.
    auto look_at = std::chrono::steady_clock::now() + kPatience;
    while (!lock.is_here) {
        if (changed_.wait_until(guard, look_at) == std::cv_status::no_timeout || lock.is_here) {
            continue;
        }
        guard.unlock();
        const bool is_lost = actions_.find_lost(asked);
        guard.lock();
        look_at = std::chrono::steady_clock::now() + kPatience;
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
    if (status != HANARE_STATUS_OK) {
        const std::lock_guard guard(lock_);
        changed_.notify_all();
        return failed(number, status);
    }
    uint32_t successor = kNobody;
    std::vector<uint64_t> told;
    {
        const std::lock_guard guard(lock_);
        Lock& lock = at(number);
        end_section(lock);
        lock.is_held = false;
        successor = std::exchange(lock.successor, kNobody);
        told = std::move(lock.told);
        if (successor != kNobody) lock.is_here = false;
        if (lock.waiting > 0) changed_.notify_all();
    }
    if (successor == kNobody) return {};
    std::byte text[fabric::kMessageBytesMax];
    QuestionText question(
        {.kind = QuestionKind::kHandedOver, .from = peers_.rank(), .begin = number});
    question.append(text, actions_.tell(told, std::span(text).first(question.room()), true));
    status = peers_.note_failure(peers_.ask(successor, question.bytes()));
    if (status != HANARE_STATUS_OK) return failed(number, status);
    return {};
}

bool Locks::has(uint32_t number) {
    const std::lock_guard guard(lock_);
    const Lock& lock = at(number);
    return lock.is_held && lock.holder == sys::current_thread_id();
}

// ---- what peers ask

// Who asked for it last before `task`.
uint32_t Locks::note_last(uint32_t number, uint32_t task) {
    const std::lock_guard guard(lock_);
    const uint32_t last = std::exchange(at(number).last, task);
    return last == kNobody ? peers_.rank() : last;
}

size_t Locks::find_last(uint32_t number, uint32_t task, std::span<const uint64_t> told,
                        std::span<std::byte> room) {
    if (manager_of(number) != peers_.rank()) return 0;
    const uint32_t last = note_last(number, task);
    if (last == peers_.rank()) return hand_over(number, task, told, room);
    const LockAnswer answer = {.token = LockAnswer::Token::kElsewhere, .last = last};
    std::memcpy(room.data(), &answer, sizeof answer);
    return sizeof answer;
}

size_t Locks::hand_over(uint32_t number, uint32_t task, std::span<const uint64_t> told,
                        std::span<std::byte> room) {
    LockAnswer answer = {.token = LockAnswer::Token::kIsYours, .last = peers_.rank()};
    {
        const std::lock_guard guard(lock_);
        Lock& lock = at(number);
        if (lock.is_here && !lock.is_held && !lock.is_wanted) {
            lock.is_here = false;
        } else if (!lock.is_here && !lock.is_wanted) {
            return 0;
        } else {
            lock.successor = task;
            lock.told.assign(told.begin(), told.end());
            answer.token = LockAnswer::Token::kComes;
        }
    }
    std::memcpy(room.data(), &answer, sizeof answer);
    if (answer.token == LockAnswer::Token::kComes) return sizeof answer;
    return sizeof answer + actions_.tell(told, room.subspan(sizeof answer), false);
}

void Locks::take_over(uint32_t number, uint32_t from, std::span<const std::byte> text) {
    const std::lock_guard guard(lock_);
    Lock& lock = at(number);
    lock.from = from;
    lock.text.assign(text.begin(), text.end());
    lock.is_here = true;
    changed_.notify_all();
}

}  // namespace hanare::dsm
