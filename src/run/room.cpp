// SPDX-License-Identifier: Apache-2.0
#include "run/room.hpp"

#include <algorithm>
#include <utility>

#include "run/report.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/lock.hpp"

namespace hanare::run {

namespace {

using telemetry::RunPage;
using telemetry::RunRow;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kWaitMaxNs = 2000 * kNsPerMs;
// Nobody has given up anything for so long.
constexpr uint64_t kInVainNs = 500 * kNsPerMs;
// Attendants write into their rows several times in it, unless they are stopped or gone.
constexpr uint64_t kSilentNs = 500 * kNsPerMs;
constexpr uint32_t kPauseUs = 1000;
// Over its budget by one part in so many, a process counts as within it.
constexpr uint64_t kSlackShare = 16;

constinit sys::EventFd* wanted = nullptr;  // never destroyed, as what waits for it

// What the others have yet to give up; of those that have not heard yet, all they have.
uint64_t missing_bytes(const RunPage& page, const RunRow* own, uint32_t sharers,
                       uint64_t now_ns) noexcept {
    uint64_t missing = 0;
    for (const RunRow& row : page.used_rows()) {
        const uint32_t among = row.divided_among.load();
        if (&row == own || row.state.load() != RunRow::kLive || among == 0) continue;
        if (now_ns - std::min(now_ns, row.active_ns.load()) > kSilentNs) continue;
        const uint64_t local = row.local_bytes.load();
        const uint64_t budget = row.budget_bytes.load();
        if (among < sharers) {
            missing += std::max<uint64_t>(local, 1);
        } else if (local > budget + budget / kSlackShare) {
            missing += local - budget;
        }
    }
    return missing;
}

}  // namespace

int offer_room() noexcept {
    auto event = sys::EventFd::open();
    if (!event) return -1;
    wanted = new sys::EventFd(std::move(*event));
    return wanted->number();
}

// Whoever waits asks again until it is enough.
void serve_room() noexcept {
    wanted->clear();
    report_figures();
}

void wait_for_room(const RunPage& page, const RunRow* own, uint32_t sharers) noexcept {
    const uint64_t began_ns = sys::now_ns();
    uint64_t least = UINT64_MAX;
    uint64_t progress_ns = began_ns;
    for (uint64_t now_ns = began_ns; now_ns - began_ns < kWaitMaxNs; now_ns = sys::now_ns()) {
        const uint64_t missing = missing_bytes(page, own, sharers, now_ns);
        if (missing == 0) return;
        if (missing < least) {
            least = missing;
            progress_ns = now_ns;
        } else if (now_ns - progress_ns > kInVainNs) {
            return;
        }
        if (wanted != nullptr) wanted->post();
        sys::yield_for_us(kPauseUs);
    }
}

}  // namespace hanare::run
