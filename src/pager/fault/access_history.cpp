// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/access_history.hpp"

#include <algorithm>
#include <iterator>

#include "pager/fault/region.hpp"

namespace hanare::pager {

namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }
int64_t step(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

}  // namespace

// To a neighbouring part; as far as the step before, and so through every block; or to the
// neighbouring block, to where who passes through it begins, or to the same place in it.
bool AccessHistory::goes_on(const Region& region, const Entry& entry, Place place) noexcept {
    if (distance(place.part, entry.last.part) <= 1) return true;
    const uint64_t parts = region.parts_per_block;
    if (step(entry.last.part, place.part) == entry.step &&
        distance(place.part, entry.last.part) < parts) {
        return true;
    }
    if (distance(place.block, entry.last.block) != 1) return false;
    const uint64_t part = place.part % parts;
    const uint64_t from_edge = place.block > entry.last.block ? part : parts - 1 - part;
    return from_edge <= parts / kEdgeShare || distance(part, entry.last.part % parts) <= 1;
}

AccessHistory::Entry& AccessHistory::find(const Region& region) noexcept {
    for (Entry& entry : entries_) {
        if (entry.region == &region) return entry;
    }
    Entry& entry = entries_[next_++ % entries_.size()];
    entry = {};
    entry.region = &region;
    entry.last = {UINT32_MAX - 1, UINT64_MAX - 1, 0};
    entry.turns.fill({UINT64_MAX - 1, 0});
    return entry;
}

bool AccessHistory::is_last_of_a_turn(const Entry& entry, uint64_t part) noexcept {
    return std::ranges::any_of(entry.turns, [part](const Turn& turn) { return turn.part == part; });
}

// What comes with a part that is missing does not fault.
uint32_t AccessHistory::note_turn(Entry& entry, Place place) noexcept {
    const auto found = std::ranges::find_if(entry.turns, [place](const Turn& turn) {
        return distance(place.part, turn.part) <= uint64_t{place.beside} + 1;
    });
    const bool goes_on = found != entry.turns.end();
    const uint32_t run = goes_on ? found->run + 1 : 0;
    const auto last = goes_on ? found : std::prev(entry.turns.end());
    std::copy_backward(entry.turns.begin(), last, std::next(last));
    entry.turns.front() = {place.part, run};
    return run;
}

bool AccessHistory::is_random(const Region& region) const noexcept {
    for (const Entry& entry : entries_) {
        if (entry.region == &region) return entry.score >= kThreshold;
    }
    return false;
}

bool AccessHistory::expects_random(const Region& region, Place place) const noexcept {
    for (const Entry& entry : entries_) {
        if (entry.region == &region) {
            // The same place again, as by the first write after a read, tells nothing.
            const bool elsewhere = !goes_on(region, entry, place) || place.part == entry.last.part;
            return entry.score >= kThreshold && elsewhere;
        }
    }
    return false;
}

bool AccessHistory::note(const Region& region, Place place, bool in_stream, bool in_run) noexcept {
    Entry& entry = find(region);
    if (place.part == entry.last.part || is_last_of_a_turn(entry, place.part)) {
        return entry.score >= kThreshold;
    }
    const bool on = goes_on(region, entry, place);
    entry.step = step(entry.last.part, place.part);
    entry.last = place;
    entry.run = on ? entry.run + 1 : 0;
    const uint32_t turn_run = note_turn(entry, place);
    if (in_run || entry.run >= kRunMin || turn_run >= kTurnRunMin) {
        // Objects that were allocated together are used together: a short run is no stream yet.
        entry.score -= std::min(entry.score, kRunWeight);
    } else if (in_stream) {
        if (entry.score > 0) --entry.score;
    } else if (!on && turn_run == 0) {
        entry.score = std::min(entry.score + 1, kScoreMax);
    }
    return !in_run && entry.score >= kThreshold;
}

}  // namespace hanare::pager
