// SPDX-License-Identifier: Apache-2.0
#include "server/growth.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "lease/messages.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kUnitBytes = lease::kExtentAlignmentBytes;
// A lease gets at least so much at once, or this part of what it has, where there is plenty.
constexpr uint64_t kAtOnceBytes = 64 * kMiB;
constexpr uint64_t kShareAtOnce = 4;
// Nobody gets more than he asks for of the last memory, this part of all.
constexpr uint64_t kLastShare = 8;

constexpr fabric::Rights kRights = fabric::kRead | fabric::kWrite;

}  // namespace

Growth growth_of(const GrowthCase& given) noexcept {
    const uint64_t quota = round_down(given.quota_bytes, kUnitBytes);
    if (given.wanted_bytes > quota) return {.status = HANARE_STATUS_STORE_FULL};
    const uint64_t least = round_up(given.wanted_bytes, kUnitBytes) - given.leased_bytes;
    const uint64_t free = given.room.free_bytes;
    if (least > free) {
        const bool is_soon_enough = least - free <= given.room.unwiped_bytes;
        return {.status = is_soon_enough ? HANARE_STATUS_BUSY : HANARE_STATUS_STORE_FULL};
    }
    const uint64_t share = round_down(given.leased_bytes / kShareAtOnce, kUnitBytes);
    const uint64_t best =
        std::min({std::max({least, share, kAtOnceBytes}), free, quota - given.leased_bytes});
    const bool are_the_last = free - best < given.total_bytes / kLastShare;
    return {.least_bytes = least, .best_bytes = are_the_last ? least : best};
}

NewPieces::~NewPieces() {
    for (const ExposedPiece& piece : pieces_) {
        if (piece.capability.rights != 0) (void)regions_.conceal(piece.capability.region);
        arena_.give_back_untouched(piece.memory);
    }
}

hanare_status NewPieces::get(const Growth& growth, size_t pieces_max) {
    const hanare_status status = allocate(growth, pieces_max);
    if (status != HANARE_STATUS_OK) return status;
    for (ExposedPiece& piece : pieces_) {
        const auto region = regions_.expose(piece.memory, kRights);
        if (!region) return region.error().status;
        piece.capability = {.region = *region, .rights = kRights, .key = {}};
        const auto capability = regions_.capability(*region, kRights);
        if (!capability) return capability.error().status;
        piece.capability = *capability;
    }
    return HANARE_STATUS_OK;
}

hanare_status NewPieces::allocate(const Growth& growth, size_t pieces_max) {
    const uint64_t largest = arena_.largest_bytes();
    uint64_t left =
        largest >= growth.least_bytes ? std::min(growth.best_bytes, largest) : growth.least_bytes;
    while (left > 0) {
        if (pieces_.size() == pieces_max) return HANARE_STATUS_LIMIT;
        const uint64_t bytes = std::min(left, arena_.largest_bytes());
        if (bytes == 0) return HANARE_STATUS_STORE_FULL;
        pieces_.reserve(pieces_.size() + 1);
        const auto memory = arena_.allocate(bytes);
        if (!memory) return HANARE_STATUS_STORE_FULL;
        pieces_.push_back({.memory = *memory, .capability = {}});
        left -= bytes;
    }
    return HANARE_STATUS_OK;
}

uint64_t NewPieces::move_to(std::vector<ExposedPiece>& pieces) {
    pieces.insert(pieces.end(), pieces_.begin(), pieces_.end());
    uint64_t bytes = 0;
    for (const ExposedPiece& piece : std::exchange(pieces_, {})) bytes += piece.memory.size();
    return bytes;
}

}  // namespace hanare::server
