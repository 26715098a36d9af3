// SPDX-License-Identifier: Apache-2.0
#include "server/growth.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "lease/messages.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kUnitBytes = lease::kExtentAlignmentBytes;
// A lease gets this part of what it has, so that a few extents make a large one,
constexpr uint64_t kShareAtOnce = 4;
// but no more than this part of what it and others could still get.
constexpr uint64_t kCommonShare = 8;
// A small one gets so much, where as many leases as there may be could each have it.
constexpr uint64_t kAtOnceBytes = 64 * kMiB;
constexpr uint64_t kBeginnersShare = 1024;
// Once it has half of its extents it gets this part of what it has, whatever that leaves to others:
// 128 such steps make any size.
constexpr uint64_t kLateShare = 8;

constexpr fabric::Rights kRights = fabric::kRead | fabric::kWrite;

uint64_t quota_of(const GrowthCase& given) noexcept {
    return round_down(given.quota_bytes, kUnitBytes);
}

// More than it asks for, so that extents do not run out before memory does.
uint64_t worth_having(const GrowthCase& given) noexcept {
    const uint64_t common = std::min(given.room.free_bytes, given.tenant_left_bytes);
    const uint64_t share = std::min(given.leased_bytes / kShareAtOnce, common / kCommonShare);
    uint64_t bytes = std::max(share, std::min(kAtOnceBytes, common / kBeginnersShare));
    const bool is_late = given.extents >= lease::kExtentsMax / 2;
    if (is_late) bytes = std::max(bytes, given.leased_bytes / kLateShare);
    bytes = round_down(bytes, kUnitBytes);
    const size_t regions_left = fabric::kRegionsMax - given.regions;
    if (regions_left > fabric::kRegionsMax / 2) return bytes;
    // As each gets so much, half of the regions that are left are enough for the memory; the others
    // are for who gets less because of a quota, of which no crumb is left then.
    const uint64_t enough = given.room.free_bytes / (regions_left / 2 + 1) + kUnitBytes;
    bytes = std::max(bytes, round_down(enough, kUnitBytes));
    const uint64_t allowed =
        std::min(quota_of(given) - given.leased_bytes, given.tenant_left_bytes);
    return allowed / 2 < bytes ? allowed : bytes;
}

}  // namespace

Growth growth_of(const GrowthCase& given) noexcept {
    const uint64_t quota = quota_of(given);
    if (given.wanted_bytes > quota) return {.status = HANARE_STATUS_STORE_FULL};
    const uint64_t least = round_up(given.wanted_bytes, kUnitBytes) - given.leased_bytes;
    if (least > given.tenant_left_bytes) return {.status = HANARE_STATUS_STORE_FULL};
    const uint64_t free = given.room.free_bytes;
    if (least > free) {
        const bool is_soon_enough = least - free <= given.room.unwiped_bytes;
        return {.status = is_soon_enough ? HANARE_STATUS_BUSY : HANARE_STATUS_STORE_FULL};
    }
    const uint64_t most = std::min({free, quota - given.leased_bytes, given.tenant_left_bytes});
    return {.least_bytes = least, .best_bytes = std::clamp(worth_having(given), least, most)};
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
