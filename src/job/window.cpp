// SPDX-License-Identifier: Apache-2.0
#include "job/window.hpp"

#include <chrono>

#include "job/word_wait.hpp"

namespace hanare::job {
namespace {

// Between two looks at the deadline.
constexpr int kWaitMsMax = 60'000;

}  // namespace

void Windows::add(Use window) {
    const std::lock_guard guard(lock_);
    const uint32_t number = window->number;
    entries_[number] = {.window = std::move(window)};
}

Windows::Use Windows::use(uint32_t number) {
    const std::lock_guard guard(lock_);
    const auto found = entries_.find(number);
    if (found == entries_.end() || found->second.is_closing) return nullptr;
    Use kept = found->second.window;
    const Window* const window = kept.get();
    Use counted(window,
                [this, kept = std::move(kept)](const Window* used) { end_use(used->number); });
    ++found->second.users;
    return counted;
}

void Windows::end_use(uint32_t number) noexcept {
    const std::lock_guard guard(lock_);
    if (const auto found = entries_.find(number); found != entries_.end()) --found->second.users;
    unused_.notify_all();
}

void Windows::note_all_came(uint32_t number) {
    const std::lock_guard guard(lock_);
    if (const auto found = entries_.find(number); found != entries_.end()) {
        found->second.have_all_come = true;
    }
}

bool Windows::have_all_come(uint32_t number) {
    const std::lock_guard guard(lock_);
    const auto found = entries_.find(number);
    return found != entries_.end() && found->second.have_all_come;
}

Result<void> Windows::remove(uint32_t number, uint64_t deadline_ns) {
    std::unique_lock guard(lock_);
    const auto found = entries_.find(number);
    if (found == entries_.end() || found->second.is_closing) {
        return fail(HANARE_STATUS_NOT_FOUND, "no such window");
    }
    Entry& entry = found->second;
    entry.is_closing = true;
    while (entry.users != 0) {
        const int left_ms = ms_until(deadline_ns, kWaitMsMax);
        if (left_ms == 0) {
            entry.is_closing = false;
            return fail(HANARE_STATUS_TIMEOUT, "the window is still used by a multicast");
        }
        unused_.wait_for(guard, std::chrono::milliseconds(left_ms));
    }
    entries_.erase(found);
    return {};
}

}  // namespace hanare::job
