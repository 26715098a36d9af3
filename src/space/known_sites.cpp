// SPDX-License-Identifier: Apache-2.0
#include "space/known_sites.hpp"

#include <algorithm>

namespace hanare::space {

std::optional<std::span<const KnownSites::Site>> KnownSites::find(const Code& code) noexcept {
    const size_t count = std::min(taken_segments_.load(), kSegmentsMax);
    for (const Segment& segment : std::span(segments_).first(count)) {
        if (segment.is_there.load(std::memory_order_acquire) && segment.code == code) {
            return segment.sites;
        }
    }
    return std::nullopt;
}

// Two that decode the same code at the same time take a place each.
void KnownSites::add(const Code& code, std::span<const Site> sites) noexcept {
    if (taken_segments_.load() >= kSegmentsMax ||
        taken_sites_.load() + sites.size() > kAllSitesMax) {
        return;
    }
    const size_t first = taken_sites_.fetch_add(sites.size());
    if (first + sites.size() > kAllSitesMax) return;
    const size_t place = taken_segments_.fetch_add(1);
    if (place >= kSegmentsMax) return;
    std::ranges::copy(sites, sites_.begin() + static_cast<ptrdiff_t>(first));
    Segment& segment = segments_[place];
    segment.code = code;
    segment.sites = {sites_.data() + first, sites.size()};
    segment.is_there.store(true, std::memory_order_release);
}

}  // namespace hanare::space
