// SPDX-License-Identifier: Apache-2.0
#include "dsm/waits.hpp"

#include <algorithm>

namespace hanare::dsm {
namespace {

Result<void> check_number(const char* what, uint32_t number, uint32_t count) {
    if (number < count) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s %u; there are 0 to %u", what, number,
                count - 1);
}

Result<void> check_condition(uint32_t lock, uint32_t condition) {
    HANARE_TRY(check_number("lock", lock, kLocks));
    return check_number("condition", condition, kConditions);
}

// FNV-1a of the ranks.
uint64_t hash_of(std::span<const uint32_t> tasks) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const uint32_t task : tasks) hash = (hash ^ task) * 0x100000001b3;
    return hash | 1;
}

}  // namespace

std::unexpected<Error> Waits::not_held(uint32_t lock) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "lock %u: this thread does not have it", lock);
}

std::unexpected<Error> Waits::other_lock(uint32_t condition) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "condition %u: others wait for it with another lock", condition);
}

std::unexpected<Error> Waits::no_semaphore(uint32_t number) {
    return fail(HANARE_STATUS_NOT_FOUND, "semaphore %u: nobody has made it, or it is gone", number);
}

std::unexpected<Error> Waits::refused(uint32_t number, hanare_status status) {
    switch (status) {
        case HANARE_STATUS_NOT_FOUND: return no_semaphore(number);
        case HANARE_STATUS_LIMIT:
            return fail(status, "semaphore %u: a count of %u at most", number, kSemaphoreCountMax);
        default: return fail(status, "semaphore %u: %s", number, hanare_status_text(status));
    }
}

std::unexpected<Error> Waits::other_group(uint32_t id) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: others are at it with another group",
                id);
}

Result<void> Waits::wait(uint32_t lock, uint32_t condition) {
    HANARE_TRY(check_condition(lock, condition));
    return wait_here(lock, condition);
}

Result<void> Waits::wake(uint32_t lock, uint32_t condition, bool all) {
    HANARE_TRY(check_condition(lock, condition));
    return wake_here(lock, condition, all);
}

Result<void> Waits::make_semaphore(uint32_t number, uint32_t count) {
    HANARE_TRY(check_number("semaphore", number, kSemaphores));
    if (count > kSemaphoreCountMax) return refused(number, HANARE_STATUS_LIMIT);
    return make_here(number, count);
}

Result<void> Waits::end_semaphore(uint32_t number) {
    HANARE_TRY(check_number("semaphore", number, kSemaphores));
    return end_here(number);
}

Result<void> Waits::take(uint32_t number) {
    HANARE_TRY(check_number("semaphore", number, kSemaphores));
    return take_here(number);
}

Result<void> Waits::post(uint32_t number) {
    HANARE_TRY(check_number("semaphore", number, kSemaphores));
    return post_here(number);
}

Result<void> Waits::meet(uint32_t id, std::span<const uint32_t> tasks) {
    std::vector<uint32_t> sorted(tasks.begin(), tasks.end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: a task is twice in its group", id);
    }
    if (!sorted.empty() && sorted.back() >= size_) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: task %u; there are 0 to %u", id,
                    sorted.back(), size_ - 1);
    }
    if (!std::ranges::binary_search(sorted, rank_)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: task %u is not in its group", id,
                    rank_);
    }
    return meet_here({.id = id, .hash = hash_of(sorted), .tasks = sorted});
}

}  // namespace hanare::dsm
