// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/access_history.hpp"

#include <algorithm>

namespace hanare::pager {

bool AccessHistory::goes_on(const Entry& entry, Place place) noexcept {
    const uint64_t parts =
        place.part > entry.last.part ? place.part - entry.last.part : entry.last.part - place.part;
    const uint32_t blocks = place.block > entry.last.block ? place.block - entry.last.block
                                                           : entry.last.block - place.block;
    return parts <= 1 || blocks == 1;
}

AccessHistory::Entry& AccessHistory::find(const Region& region) noexcept {
    for (Entry& entry : entries_) {
        if (entry.region == &region) return entry;
    }
    Entry& entry = entries_[next_++ % entries_.size()];
    entry = {&region, {UINT32_MAX - 1, UINT64_MAX - 1}, 0, 0};
    return entry;
}

bool AccessHistory::expects_random(const Region& region, Place place) const noexcept {
    for (const Entry& entry : entries_) {
        if (entry.region == &region) {
            // The same place again, as by the first write after a read, tells nothing.
            const bool elsewhere = !goes_on(entry, place) || place.part == entry.last.part;
            return entry.score >= kThreshold && elsewhere;
        }
    }
    return false;
}

bool AccessHistory::note(const Region& region, Place place, bool in_stream, bool in_run) noexcept {
    Entry& entry = find(region);
    if (place.part == entry.last.part) return entry.score >= kThreshold;
    const bool on = goes_on(entry, place);
    entry.last = place;
    entry.run = on ? entry.run + 1 : 0;
    if (in_run || entry.run >= kRunMin) {
        entry.score = 0;
    } else if (in_stream) {
        if (entry.score > 0) --entry.score;
    } else if (!on) {
        entry.score = std::min(entry.score + 1, kScoreMax);
    }
    return entry.score >= kThreshold;
}

}  // namespace hanare::pager
