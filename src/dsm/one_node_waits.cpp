// SPDX-License-Identifier: Apache-2.0
#include "dsm/one_node_waits.hpp"

#include "dsm/one_node.hpp"
#include "job/word_wait.hpp"

namespace hanare::dsm {

OneNodeWaitWords& OneNodeWaits::words() const noexcept { return node_.words().waits; }

// ---- conditions

Result<void> OneNodeWaits::wait_here(uint32_t lock, uint32_t condition) {
    if (!node_.has(lock)) return not_held(lock);
    OneNodeWaitWords::Condition& words = this->words().conditions[condition];
    uint32_t nobody = 0;
    if (!words.lock.compare_exchange_strong(nobody, lock + 1) && nobody != lock + 1) {
        return other_lock(condition);
    }
    words.waiting.fetch_add(1, std::memory_order_relaxed);
    const uint32_t ticket = words.next.fetch_add(1, std::memory_order_relaxed);
    HANARE_TRY(node_.unlock(lock));
    const auto is_woken = [&](uint32_t woken) { return static_cast<int32_t>(woken - ticket) > 0; };
    for (uint32_t woken = words.woken.load(std::memory_order_acquire); !is_woken(woken);
         woken = words.woken.load(std::memory_order_acquire)) {
        HANARE_TRY(node_.wait(words.woken, woken, size()));
    }
    HANARE_TRY(node_.lock(lock));
    if (words.waiting.fetch_sub(1, std::memory_order_relaxed) == 1) words.lock.store(0);
    return {};
}

Result<void> OneNodeWaits::wake_here(uint32_t lock, uint32_t condition, bool all) {
    if (!node_.has(lock)) return not_held(lock);
    OneNodeWaitWords::Condition& words = this->words().conditions[condition];
    const uint32_t awaited = words.lock.load(std::memory_order_relaxed);
    if (awaited == 0) return {};
    if (awaited != lock + 1) return other_lock(condition);
    const uint32_t next = words.next.load(std::memory_order_relaxed);
    const uint32_t woken = words.woken.load(std::memory_order_relaxed);
    if (woken == next) return {};
    words.woken.store(all ? next : woken + 1, std::memory_order_release);
    job::wake_waiters(words.woken);
    return {};
}

// ---- semaphores

Result<void> OneNodeWaits::make_here(uint32_t number, uint32_t count) {
    uint32_t nothing = 0;
    if (words().semaphores[number].count.compare_exchange_strong(nothing, count + 1)) return {};
    return fail(HANARE_STATUS_BUSY, "semaphore %u is there already", number);
}

Result<void> OneNodeWaits::end_here(uint32_t number) {
    OneNodeWaitWords::Semaphore& words = this->words().semaphores[number];
    if (words.waiting.load() != 0) {
        return fail(HANARE_STATUS_BUSY, "semaphore %u: others wait for it", number);
    }
    if (words.count.exchange(0) == 0) return no_semaphore(number);
    job::wake_waiters(words.count);
    return {};
}

Result<void> OneNodeWaits::take_here(uint32_t number) {
    OneNodeWaitWords::Semaphore& words = this->words().semaphores[number];
    uint32_t seen = words.count.load(std::memory_order_acquire);
    for (;;) {
        if (seen == 0) return no_semaphore(number);
        if (seen > 1) {
            if (words.count.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) break;
            continue;
        }
        words.waiting.fetch_add(1);
        const auto waited = node_.wait(words.count, 1, size());
        words.waiting.fetch_sub(1);
        HANARE_TRY(waited);
        seen = words.count.load(std::memory_order_acquire);
    }
    return {};
}

Result<void> OneNodeWaits::post_here(uint32_t number) {
    OneNodeWaitWords::Semaphore& words = this->words().semaphores[number];
    uint32_t seen = words.count.load(std::memory_order_relaxed);
    do {
        if (seen == 0) return no_semaphore(number);
        if (seen > kSemaphoreCountMax) return refused(number, HANARE_STATUS_LIMIT);
    } while (!words.count.compare_exchange_weak(seen, seen + 1));
    if (words.waiting.load() != 0) job::wake_waiters(words.count);
    return {};
}

// ---- barriers of some

Result<OneNodeWaitWords::Place*> OneNodeWaits::place_of(uint64_t key) const {
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15;
    for (uint64_t i = 0; i < kMeetingPlaces; ++i) {
        auto& place = words().places[((key * kMix >> 48) + i) % kMeetingPlaces];
        uint64_t nothing = 0;
        if (place.key.compare_exchange_strong(nothing, key) || nothing == key) return &place;
    }
    return fail(HANARE_STATUS_LIMIT, "barriers of more than %u groups", kMeetingPlaces);
}

Result<void> OneNodeWaits::meet_here(const Meeting& meeting) {
    HANARE_TRY(node_.check_not_lost());
    HANARE_TRY_ASSIGN(auto* const place,
                      place_of(uint64_t{meeting.id} << 32 | (meeting.tasks.front() + 1)));
    const uint32_t epoch = place->epoch.load(std::memory_order_acquire);
    uint64_t nobody = 0;
    if (!place->group.compare_exchange_strong(nobody, meeting.hash) && nobody != meeting.hash) {
        return other_group(meeting.id);
    }
    if (place->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < meeting.tasks.size()) {
        return node_.wait(place->epoch, epoch, size());
    }
    place->arrived.store(0, std::memory_order_relaxed);
    place->group.store(0, std::memory_order_relaxed);
    place->epoch.store(epoch + 1, std::memory_order_release);
    job::wake_waiters(place->epoch);
    return {};
}

}  // namespace hanare::dsm
