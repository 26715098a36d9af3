// SPDX-License-Identifier: Apache-2.0
#include "job/lookout.hpp"

#include <algorithm>

#include "sys/clock.hpp"

namespace hanare::job {
namespace {

// A task that is stopped does not answer, and is there.
constexpr uint64_t kAnswer_ns = 250 * kNsPerMs;
constexpr size_t kAskedAtOnce = 4;
// A change could have been made by what wakes nobody.
constexpr uint64_t kLook_ns = 50 * kNsPerMs;

}  // namespace

bool Lookout::is_lost(uint32_t rank) {
    const uint64_t deadline_ns = sys::now_ns() + kAnswer_ns;
    const auto way = communicator_.way_to(rank, deadline_ns);
    // Who cannot be connected to has left, if it has ever been there, or its port is another's now.
    hanare_status status = way ? HANARE_STATUS_OK : way.error().status;
    if (way) {
        fabric::Operation nothing;
        nothing.kind = fabric::Kind::kGet;
        nothing.capability = (*way)->control.words;
        nothing.deadline_ns = deadline_ns;
        status = (*way)->link->carry_out(nothing);
    }
    return status == HANARE_STATUS_PEER_LOST || status == HANARE_STATUS_BAD_KEY;
}

std::optional<uint32_t> Lookout::told_loss() const noexcept {
    const uint32_t lost = communicator_.control().words().lost.load(std::memory_order_acquire);
    if (lost == 0) return {};
    return lost - 1;
}

std::optional<uint32_t> Lookout::find_lost(const std::vector<uint32_t>& awaited) {
    for (size_t i = 0; i < std::min(awaited.size(), kAskedAtOnce); ++i) {
        const uint32_t turn = asked_.fetch_add(1, std::memory_order_relaxed);
        const uint32_t rank = awaited[turn % awaited.size()];
        if (is_lost(rank)) return rank;
    }
    return {};
}

Failure Lookout::wait(const Wait& wait) {
    uint64_t ask_ns = sys::now_ns() + kPatience_ns;
    for (;;) {
        const uint32_t seen = wait.word.load(std::memory_order_acquire);
        if (wait.has_come()) return {};
        if (const auto lost = told_loss(); wait.heeds_loss && lost) {
            return {HANARE_STATUS_PEER_LOST, *lost};
        }
        const uint64_t now = sys::now_ns();
        if (now >= wait.deadline_ns) return {HANARE_STATUS_TIMEOUT, communicator_.rank()};
        if (now >= ask_ns) {
            std::vector<uint32_t> awaited;
            wait.awaited(awaited);
            const auto lost = find_lost(awaited);
            // It may have done its part before it left, or have left because another one is lost,
            // which it has told before.
            if (lost && !wait.has_come()) {
                return {HANARE_STATUS_PEER_LOST,
                        wait.heeds_loss ? told_loss().value_or(*lost) : *lost};
            }
            ask_ns = sys::now_ns() + kPatience_ns;
        }
        wait_for_change(wait.word, seen, std::min(wait.deadline_ns, now + kLook_ns),
                        Changes::kWaking);
    }
}

}  // namespace hanare::job
