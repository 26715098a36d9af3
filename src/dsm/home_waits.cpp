// SPDX-License-Identifier: Apache-2.0
#include "dsm/home_waits.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace hanare::dsm {
namespace {

// How long something may take before it is asked whether who should do it is there.
constexpr std::chrono::milliseconds kPatience(250);
// A task is at one barrier of some at a time.
constexpr uint64_t kMeetingTicket = 0;
constexpr size_t kWaitersMax = 64;  // in an answer

constexpr uint64_t pair_of(uint32_t lock, uint32_t number) noexcept {
    return uint64_t{lock} << 32 | number;
}
constexpr uint32_t number_of(const Question& question) noexcept {
    return static_cast<uint32_t>(question.begin);
}
constexpr uint32_t lock_of(const Question& question) noexcept {
    return static_cast<uint32_t>(question.begin >> 32);
}

}  // namespace

struct HomeWaits::Writer {
    std::span<std::byte> room;
    size_t& bytes;

    bool put(const void* data, size_t more) noexcept {
        if (more > room.size() - bytes) return false;
        std::memcpy(room.data() + bytes, data, more);
        bytes += more;
        return true;
    }
    bool put(const Positions& positions) noexcept {
        return put(positions.data(), positions.size() * sizeof(uint64_t));
    }
};

// ---- of who waits

std::unexpected<Error> HomeWaits::failed(const char* what, uint32_t number,
                                         hanare_status status) const {
    if (status == HANARE_STATUS_PEER_LOST && peers_.lost() != Peers::kNobody) {
        return fail(status, "%s %u: task %u is no more", what, number, peers_.lost());
    }
    return fail(status, "%s %u: %s", what, number, hanare_status_text(status));
}

uint64_t HomeWaits::new_ticket() {
    const std::lock_guard guard(lock_);
    const uint64_t ticket = ++tickets_;
    waiting_[ticket] = std::nullopt;
    return ticket;
}

Result<HomeWaits::Positions> HomeWaits::await(uint64_t ticket, uint32_t manager) {
    std::unique_lock guard(lock_);
    std::optional<Positions>& came = waiting_[ticket];
    // What others wait for comes meanwhile.
    auto look_at = std::chrono::steady_clock::now() + kPatience;
    while (!came) {
        if (changed_.wait_until(guard, look_at) == std::cv_status::no_timeout || came) continue;
        guard.unlock();
        const bool is_lost = locks_.actions().find_lost(manager);
        guard.lock();
        look_at = std::chrono::steady_clock::now() + kPatience;
        if (!is_lost || came) continue;
        waiting_.erase(ticket);
        return fail(HANARE_STATUS_PEER_LOST, "lost");
    }
    Positions positions = std::move(*came);
    waiting_.erase(ticket);
    return positions;
}

hanare_status HomeWaits::ask(uint32_t task, const QuestionText& text, std::span<std::byte> room,
                             size_t& bytes) {
    if (task != rank()) return peers_.ask(task, text.bytes(), room, &bytes);
    Question question;
    std::memcpy(&question, text.bytes().data(), sizeof question);
    bytes = 0;
    return answer(question, text.bytes().subspan(sizeof question), room, bytes);
}

hanare_status HomeWaits::tell(const Waiter& waiter, std::span<const uint64_t> positions) {
    if (waiter.task >= size()) return HANARE_STATUS_CORRUPT;
    QuestionText text({.kind = QuestionKind::kWoken, .from = rank(), .begin = waiter.ticket});
    text.append(positions.data(), positions.size_bytes());
    size_t bytes = 0;
    return ask(waiter.task, text, {}, bytes);
}

// Of each task what is new of it, from itself.
hanare_status HomeWaits::learn(const Positions& positions) {
    const Positions own = locks_.actions().positions();
    for (uint32_t task = 0; task < positions.size(); ++task) {
        if (task == rank() || positions[task] <= own[task]) continue;
        Positions one(positions.size());
        one[task] = positions[task];
        const hanare_status status =
            locks_.actions().acquire(task, {}, std::as_bytes(std::span(one)));
        if (status != HANARE_STATUS_OK) return status;
    }
    return HANARE_STATUS_OK;
}

// ---- conditions

// Who has the lock next may wake this thread before it sleeps.
Result<void> HomeWaits::wait_here(uint32_t lock, uint32_t condition) {
    if (!locks_.has(lock)) return not_held(lock);
    const uint64_t ticket = new_ticket();
    const QuestionText text({.kind = QuestionKind::kWait,
                             .from = rank(),
                             .begin = pair_of(lock, condition),
                             .count = ticket});
    size_t bytes = 0;
    const hanare_status status = ask(manager_of(condition), text, {}, bytes);
    if (status != HANARE_STATUS_OK) {
        const std::lock_guard guard(lock_);
        waiting_.erase(ticket);
        if (status == HANARE_STATUS_INVALID_ARGUMENT) return other_lock(condition);
        return failed("condition", condition, status);
    }
    HANARE_TRY(locks_.unlock(lock));
    if (const auto came = await(ticket, manager_of(condition)); !came) {
        return failed("condition", condition, came.error().status);
    }
    return locks_.lock(lock);
}

Result<void> HomeWaits::wake_here(uint32_t lock, uint32_t condition, bool all) {
    if (!locks_.has(lock)) return not_held(lock);
    const QuestionText text({.kind = QuestionKind::kWake,
                             .from = rank(),
                             .begin = pair_of(lock, condition),
                             .count = all ? kWaitersMax : 1});
    for (;;) {
        Waiter waiters[kWaitersMax];
        size_t bytes = 0;
        const hanare_status asked =
            ask(manager_of(condition), text, std::as_writable_bytes(std::span(waiters)), bytes);
        if (asked == HANARE_STATUS_INVALID_ARGUMENT) return other_lock(condition);
        if (asked != HANARE_STATUS_OK) return failed("condition", condition, asked);
        const size_t count = bytes / sizeof(Waiter);
        for (size_t i = 0; i < count; ++i) {
            const hanare_status told = tell(waiters[i], {});
            if (told != HANARE_STATUS_OK) return failed("condition", condition, told);
        }
        if (!all || count < kWaitersMax) return {};
    }
}

// ---- semaphores

Result<void> HomeWaits::make_here(uint32_t number, uint32_t count) {
    const QuestionText text(
        {.kind = QuestionKind::kMakeSemaphore, .from = rank(), .begin = number, .count = count});
    size_t bytes = 0;
    const hanare_status status = ask(manager_of(number), text, {}, bytes);
    if (status == HANARE_STATUS_OK) return {};
    if (status == HANARE_STATUS_BUSY) {
        return fail(status, "semaphore %u is there already", number);
    }
    return failed("semaphore", number, status);
}

Result<void> HomeWaits::end_here(uint32_t number) {
    const QuestionText text({.kind = QuestionKind::kEndSemaphore, .from = rank(), .begin = number});
    size_t bytes = 0;
    const hanare_status status = ask(manager_of(number), text, {}, bytes);
    if (status == HANARE_STATUS_OK) return {};
    if (status == HANARE_STATUS_BUSY) {
        return fail(status, "semaphore %u: others wait for it", number);
    }
    return status == HANARE_STATUS_PEER_LOST ? failed("semaphore", number, status)
                                             : refused(number, status);
}

Result<void> HomeWaits::take_here(uint32_t number) {
    if (peers_.trouble() != HANARE_STATUS_OK) return failed("semaphore", number, peers_.trouble());
    const uint64_t ticket = new_ticket();
    const QuestionText text(
        {.kind = QuestionKind::kTakeSemaphore, .from = rank(), .begin = number, .count = ticket});
    Positions positions(size());
    size_t bytes = 0;
    const hanare_status asked =
        ask(manager_of(number), text, std::as_writable_bytes(std::span(positions)), bytes);
    if (asked != HANARE_STATUS_OK || bytes > 0) {
        const std::lock_guard guard(lock_);
        waiting_.erase(ticket);
    }
    if (asked == HANARE_STATUS_PEER_LOST) return failed("semaphore", number, asked);
    if (asked != HANARE_STATUS_OK) return refused(number, asked);
    if (bytes == 0) {
        auto came = await(ticket, manager_of(number));
        if (!came) return failed("semaphore", number, came.error().status);
        positions = std::move(*came);
    }
    const hanare_status status = learn(positions);
    if (status != HANARE_STATUS_OK) return failed("semaphore", number, status);
    return {};
}

Result<void> HomeWaits::post_here(uint32_t number) {
    hanare_status status = locks_.actions().release();
    if (status != HANARE_STATUS_OK) return failed("semaphore", number, status);
    Positions positions = locks_.actions().positions();
    QuestionText text({.kind = QuestionKind::kPostSemaphore, .from = rank(), .begin = number});
    text.append(positions.data(), positions.size() * sizeof(uint64_t));
    std::byte room[fabric::kMessageBytesMax];
    size_t bytes = 0;
    status = ask(manager_of(number), text, room, bytes);
    if (status == HANARE_STATUS_PEER_LOST) return failed("semaphore", number, status);
    if (status != HANARE_STATUS_OK) return refused(number, status);
    if (bytes == 0) return {};
    Waiter waiter;
    if (bytes != sizeof waiter + positions.size() * sizeof(uint64_t)) {
        return failed("semaphore", number, HANARE_STATUS_CORRUPT);
    }
    std::memcpy(&waiter, room, sizeof waiter);
    std::memcpy(positions.data(), room + sizeof waiter, bytes - sizeof waiter);
    status = tell(waiter, positions);
    if (status != HANARE_STATUS_OK) return failed("semaphore", number, status);
    return {};
}

// ---- barriers of some

// Who comes last is told what all know, and tells the others.
Result<void> HomeWaits::meet_here(const Meeting& meeting) {
    const std::lock_guard one(meeting_);
    hanare_status status = locks_.actions().release();
    if (peers_.lost() != Peers::kNobody) status = HANARE_STATUS_PEER_LOST;
    if (status != HANARE_STATUS_OK) return failed("barrier", meeting.id, status);
    {
        const std::lock_guard guard(lock_);
        waiting_[kMeetingTicket] = std::nullopt;
    }
    Positions positions = locks_.actions().positions();
    QuestionText text({.kind = QuestionKind::kMeet,
                       .from = rank(),
                       .begin = pair_of(static_cast<uint32_t>(meeting.tasks.size()), meeting.id),
                       .count = meeting.hash});
    text.append(positions.data(), positions.size() * sizeof(uint64_t));
    const uint32_t manager = meeting.tasks.front();
    size_t bytes = 0;
    status = ask(manager, text, std::as_writable_bytes(std::span(positions)), bytes);
    if (status == HANARE_STATUS_BUSY) return other_group(meeting.id);
    if (status != HANARE_STATUS_OK) return failed("barrier", meeting.id, status);
    if (bytes == 0) {
        auto came = await(kMeetingTicket, manager);
        if (!came) return failed("barrier", meeting.id, came.error().status);
        positions = std::move(*came);
    } else {
        for (const uint32_t task : meeting.tasks) {
            if (task == rank()) continue;
            const hanare_status told = tell({.task = task, .ticket = kMeetingTicket}, positions);
            if (status == HANARE_STATUS_OK) status = told;
        }
    }
    if (status == HANARE_STATUS_OK) status = learn(positions);
    if (status != HANARE_STATUS_OK) return failed("barrier", meeting.id, status);
    return {};
}

// ---- what peers ask

bool HomeWaits::knows(QuestionKind kind) noexcept {
    return kind >= QuestionKind::kWait && kind <= QuestionKind::kMeet;
}

bool HomeWaits::merge(std::span<const std::byte> more, Positions& positions) const {
    if (more.size() != size() * sizeof(uint64_t)) return false;
    positions.resize(size());
    for (uint32_t task = 0; task < size(); ++task) {
        uint64_t position = 0;
        std::memcpy(&position, more.data() + task * sizeof position, sizeof position);
        positions[task] = std::max(positions[task], position);
    }
    return true;
}

hanare_status HomeWaits::answer(const Question& question, std::span<const std::byte> rest,
                                std::span<std::byte> room, size_t& bytes) {
    Writer out = {room, bytes};
    const std::lock_guard guard(lock_);
    switch (question.kind) {
        case QuestionKind::kWait: return enqueue(question);
        case QuestionKind::kWake: return give_waiters(question, out);
        case QuestionKind::kMakeSemaphore: return make(question);
        case QuestionKind::kEndSemaphore: return end(question);
        case QuestionKind::kTakeSemaphore: return take(question, out);
        case QuestionKind::kPostSemaphore: return post(question, rest, out);
        case QuestionKind::kMeet: return arrive(question, rest, out);
        case QuestionKind::kWoken: {
            const auto place = waiting_.find(question.begin);
            Positions positions;
            if (place == waiting_.end()) return HANARE_STATUS_NOT_FOUND;
            if (!rest.empty() && !merge(rest, positions)) return HANARE_STATUS_CORRUPT;
            place->second = std::move(positions);
            changed_.notify_all();
            return HANARE_STATUS_OK;
        }
        default: return HANARE_STATUS_NOT_SUPPORTED;
    }
}

hanare_status HomeWaits::enqueue(const Question& question) {
    Condition& condition = conditions_[number_of(question)];
    if (condition.waiters.empty()) condition.lock = lock_of(question);
    if (condition.lock != lock_of(question)) return HANARE_STATUS_INVALID_ARGUMENT;
    condition.waiters.push_back({.task = question.from, .ticket = question.count});
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::give_waiters(const Question& question, Writer& out) {
    const auto place = conditions_.find(number_of(question));
    if (place == conditions_.end() || place->second.waiters.empty()) return HANARE_STATUS_OK;
    auto& [lock, waiters] = place->second;
    if (lock != lock_of(question)) return HANARE_STATUS_INVALID_ARGUMENT;
    for (uint64_t i = 0; i < question.count && !waiters.empty(); ++i) {
        if (!out.put(&waiters.front(), sizeof(Waiter))) break;
        waiters.pop_front();
    }
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::make(const Question& question) {
    if (question.count > kSemaphoreCountMax) return HANARE_STATUS_LIMIT;
    const auto [place, is_new] = semaphores_.try_emplace(number_of(question));
    if (!is_new) return HANARE_STATUS_BUSY;
    place->second.count = static_cast<uint32_t>(question.count);
    place->second.positions.resize(size());
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::end(const Question& question) {
    const auto place = semaphores_.find(number_of(question));
    if (place == semaphores_.end()) return HANARE_STATUS_NOT_FOUND;
    if (!place->second.waiters.empty()) return HANARE_STATUS_BUSY;
    semaphores_.erase(place);
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::take(const Question& question, Writer& out) {
    const auto place = semaphores_.find(number_of(question));
    if (place == semaphores_.end()) return HANARE_STATUS_NOT_FOUND;
    Semaphore& semaphore = place->second;
    if (semaphore.count == 0) {
        semaphore.waiters.push_back({.task = question.from, .ticket = question.count});
        return HANARE_STATUS_OK;
    }
    if (!out.put(semaphore.positions)) return HANARE_STATUS_OUT_OF_RANGE;
    --semaphore.count;
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::post(const Question& question, std::span<const std::byte> rest,
                              Writer& out) {
    const auto place = semaphores_.find(number_of(question));
    if (place == semaphores_.end()) return HANARE_STATUS_NOT_FOUND;
    Semaphore& semaphore = place->second;
    if (semaphore.waiters.empty() && semaphore.count >= kSemaphoreCountMax) {
        return HANARE_STATUS_LIMIT;
    }
    if (!merge(rest, semaphore.positions)) return HANARE_STATUS_CORRUPT;
    if (semaphore.waiters.empty()) {
        ++semaphore.count;
        return HANARE_STATUS_OK;
    }
    if (!out.put(&semaphore.waiters.front(), sizeof(Waiter)) || !out.put(semaphore.positions)) {
        return HANARE_STATUS_OUT_OF_RANGE;
    }
    semaphore.waiters.pop_front();
    return HANARE_STATUS_OK;
}

hanare_status HomeWaits::arrive(const Question& question, std::span<const std::byte> rest,
                                Writer& out) {
    Place& place = places_[number_of(question)];
    if (place.arrived > 0 && place.group != question.count) return HANARE_STATUS_BUSY;
    place.group = question.count;
    if (!merge(rest, place.positions)) return HANARE_STATUS_CORRUPT;
    if (++place.arrived < lock_of(question)) return HANARE_STATUS_OK;
    const bool is_told = out.put(place.positions);
    places_.erase(number_of(question));
    return is_told ? HANARE_STATUS_OK : HANARE_STATUS_OUT_OF_RANGE;
}

}  // namespace hanare::dsm
