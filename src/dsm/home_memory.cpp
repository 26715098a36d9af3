// SPDX-License-Identifier: Apache-2.0
//
// Faults, and what peers ask.
#include "dsm/home_memory.hpp"

#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "dsm/diff.hpp"
#include "dsm/watch.hpp"
#include "sys/memory.hpp"

namespace hanare::dsm {

using State = BlockState;

Result<std::unique_ptr<HomeMemory>> HomeMemory::make(Segment& segment, Peers& peers,
                                                     Counters& counters) {
    const uint32_t blocks = segment.blocks();
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open({.shared_memory = true}));
    const int error =
        userfault.register_range(segment.base(), segment.bytes(), sys::Userfault::kShared);
    if (error != 0) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error, "userfaultfd for shared memory");
    }
    HANARE_TRY_ASSIGN(auto states, sys::SparseMemory::reserve(blocks * sizeof(uint32_t)));
    HANARE_TRY_ASSIGN(auto directory, sys::SparseMemory::reserve(blocks * sizeof(uint16_t)));
    HANARE_TRY_ASSIGN(auto diffs, sys::SparseMemory::reserve(peers.size() * kMailDiffBytes));
    HANARE_TRY_ASSIGN(auto twins, Twins::make(blocks));
    HANARE_TRY_ASSIGN(auto dirty, BlockList::make(blocks));
    HANARE_TRY_ASSIGN(auto served, BlockList::make(blocks));
    HANARE_TRY_ASSIGN(auto fetched, BlockList::make(blocks));
    HANARE_TRY_ASSIGN(auto dropped, BlockList::make(blocks));
    HANARE_TRY_ASSIGN(auto early, RunList::make(kChangedRunsMax));
    return std::unique_ptr<HomeMemory>(new HomeMemory(
        segment, peers, counters, std::move(userfault), std::move(states), std::move(directory),
        std::move(diffs), std::move(twins), std::move(dirty), std::move(served), std::move(fetched),
        std::move(dropped), std::move(early)));
}

HomeMemory::HomeMemory(Segment& segment, Peers& peers, Counters& counters, sys::Userfault userfault,
                       sys::SparseMemory states, sys::SparseMemory directory,
                       sys::SparseMemory diffs, Twins twins, BlockList dirty, BlockList served,
                       BlockList fetched, BlockList dropped, RunList early)
    : segment_(segment),
      peers_(peers),
      counters_(counters),
      userfault_(std::move(userfault)),
      states_(std::move(states)),
      directory_(std::move(directory)),
      diffs_(std::move(diffs)),
      twins_(std::move(twins)),
      dirty_(std::move(dirty)),
      served_(std::move(served)),
      fetched_(std::move(fetched)),
      dropped_(std::move(dropped)),
      diff_bytes_(peers.size()),
      snapshots_(peers.size()),
      early_(std::move(early)) {}

// ---- states

bool HomeMemory::try_take(uint32_t block, uint32_t& seen) noexcept {
    seen = state(block).load(std::memory_order_acquire);
    while ((seen & State::kBusy) == 0) {
        if (state(block).compare_exchange_weak(seen, seen | State::kBusy)) return true;
    }
    return false;
}

void HomeMemory::take(uint32_t block, uint32_t& seen) noexcept {
    while (!try_take(block, seen)) sys::yield_for_us(0);
}

void HomeMemory::give_back(uint32_t block) noexcept {
    state(block).fetch_and(~State::kBusy, std::memory_order_release);
}

uint32_t HomeMemory::Window::take(uint32_t block, uint32_t least, uint32_t most,
                                  uint32_t gap) noexcept {
    const bool goes_on = block - next.load(std::memory_order_relaxed) <= gap;
    const uint32_t now =
        goes_on ? std::clamp(blocks.load(std::memory_order_relaxed) * 2, least, most) : least;
    blocks.store(now, std::memory_order_relaxed);
    return now;
}

// ---- mapping

// All are absent, and in the file.  Some may be there for the program already.
int HomeMemory::map(uint32_t first, uint32_t count, bool write_protected) noexcept {
    int error =
        userfault_.map_present(segment_.view(first), size_t{count} * kBlockBytes, write_protected);
    for (uint32_t i = 0; error == EEXIST && i < count; ++i) {
        const int one =
            userfault_.map_present(segment_.view(first + i), kBlockBytes, write_protected);
        if (one != 0 && one != EEXIST) return one;
        if (i + 1 == count) error = 0;
    }
    return error;
}

int HomeMemory::forbid_writes(uint32_t first, uint32_t count) noexcept {
    return userfault_.write_protect(segment_.view(first), size_t{count} * kBlockBytes, true);
}

// ---- faults

hanare_status HomeMemory::resolve(uint32_t block, bool write) noexcept {
    uint32_t seen = 0;
    if (!try_take(block, seen)) {
        sys::yield_for_us(0);
        return HANARE_STATUS_OK;
    }
    const uint32_t rights = State::rights(seen);
    // Another thread was faster, or the kernel was short of memory.
    if (rights == State::kWrite || (rights == State::kRead && !write)) {
        const hanare_status status = map_again(block, rights);
        give_back(block);
        return status;
    }
    Counters::add(write ? counters_.write_faults : counters_.read_faults);
    return rights == State::kRead ? make_writable(block, seen) : obtain(block, write);
}

// The kernel has taken the page out of the view, or out of memory: it is in the file still.  Or it
// is protected still, where that was taken back for several and failed half-way.
hanare_status HomeMemory::map_again(uint32_t block, uint32_t rights) noexcept {
    *reinterpret_cast<volatile std::byte*>(segment_.alias(block));
    int error = map(block, 1, rights == State::kRead);
    if (error == 0 && rights == State::kWrite) {
        error = userfault_.write_protect(segment_.view(block), kBlockBytes, false);
    }
    return error == 0 ? HANARE_STATUS_OK : HANARE_STATUS_SYSTEM;
}

// The block is this thread's.  What is listed before the program can write to it is not overlooked
// by who releases in another thread.  Copies that others have without a notice get one.
void HomeMemory::note_write(uint32_t block) noexcept {
    uint32_t seen = state(block).load(std::memory_order_acquire);
    for (;;) {
        const bool is_copy = (seen & State::kHomeHere) == 0;
        if ((seen & State::kDirty) != 0 || (!is_copy && (seen & State::kShared) == 0)) return;
        if (state(block).compare_exchange_weak(seen, seen | State::kDirty | State::kListed)) break;
    }
    if ((seen & State::kListed) == 0) dirty_.add(block);
}

// A copy of the block that went away meanwhile is not forgotten: it was served as writable.
void HomeMemory::finish(uint32_t block, uint32_t rights) noexcept {
    uint32_t seen = state(block).load(std::memory_order_acquire);
    while (!state(block).compare_exchange_weak(seen,
                                               State::with_rights(seen & ~State::kBusy, rights))) {
    }
}

void HomeMemory::note_fetched(uint32_t block) noexcept {
    uint32_t seen = state(block).load();
    while (!state(block).compare_exchange_weak(
        seen, State::with_rights(seen & ~State::kInTransit, State::kRead))) {
    }
    remember(block);
}

void HomeMemory::remember(uint32_t block) noexcept {
    const uint32_t before = state(block).fetch_or(State::kFetched);
    if ((before & State::kFetched) == 0) fetched_.add(block);
}

hanare_status HomeMemory::make_writable(uint32_t block, uint32_t seen) noexcept {
    if ((seen & State::kHomeHere) != 0) return make_writable_here(block, seen);
    return (seen & State::kFixed) != 0 ? write_with_twin(block) : obtain_home(block);
}

hanare_status HomeMemory::write_with_twin(uint32_t block) noexcept {
    std::memcpy(twins_.take(block), segment_.alias(block), kBlockBytes);
    Counters::add(counters_.twins);
    note_write(block);
    const int error = userfault_.write_protect(segment_.view(block), kBlockBytes, false);
    finish(block, error == 0 ? State::kWrite : State::kRead);
    return error == 0 ? HANARE_STATUS_OK : HANARE_STATUS_SYSTEM;
}

// Of which nobody has a copy, those behind it come along: nothing will be said of them.  Of those
// that others have, some do where writes go from one to the next.
hanare_status HomeMemory::make_writable_here(uint32_t block, uint32_t seen) noexcept {
    uint32_t count = 1;
    if ((seen & State::kShared) == 0) {
        count += take_neighbours(block, seen, kFetchWindowMax);
    } else {
        count +=
            take_neighbours(block, seen, writes_.take(block, 1, kWriteWindowMax, kRowGapMax) - 1);
        writes_.next.store(block + count, std::memory_order_relaxed);
    }
    for (uint32_t i = 0; i < count; ++i) {
        note_write(block + i);
        // Nobody has fetched it again.
        if ((seen & State::kShared) == 0) state(block + i).fetch_and(~State::kInTurns);
    }
    const int error =
        userfault_.write_protect(segment_.view(block), size_t{count} * kBlockBytes, false);
    // Some may be writable already.
    HANARE_ASSERT(error == 0 || forbid_writes(block, count) == 0);
    for (uint32_t i = 0; i < count; ++i) {
        finish(block + i, error == 0 ? State::kWrite : State::kRead);
    }
    return error == 0 ? HANARE_STATUS_OK : HANARE_STATUS_SYSTEM;
}

// Those right behind the block that are in the same state, and this thread's now.
uint32_t HomeMemory::take_neighbours(uint32_t block, uint32_t like, uint32_t most) noexcept {
    uint32_t count = 0;
    while (count < most && block + count + 1 < segment_.blocks()) {
        uint32_t expected = like & ~State::kBusy;
        if (!state(block + count + 1).compare_exchange_strong(expected, expected | State::kBusy)) {
            break;
        }
        ++count;
    }
    return count;
}

hanare_status HomeMemory::obtain(uint32_t block, bool write) noexcept {
    if ((state(block).load() & State::kHomeKnown) == 0) {
        const hanare_status status = find_homes(block);
        if (status != HANARE_STATUS_OK) {
            give_back(block);
            return status;
        }
    }
    if ((state(block).load() & State::kHomeHere) != 0) return obtain_here(block);
    return obtain_copy(block, write);
}

// Nobody has touched it before: zeros, writable, and those behind it that came with it.
hanare_status HomeMemory::obtain_here(uint32_t block) noexcept {
    const uint32_t like = state(block).load();
    const uint32_t count = 1 + take_neighbours(block, like, kClaimWindowMax - 1);
    for (uint32_t i = 0; i < count; ++i) {
        // Now the file has a page there.
        *reinterpret_cast<volatile std::byte*>(segment_.alias(block + i));
    }
    for (uint32_t i = 0; i < count; ++i) note_write(block + i);
    const int error = map(block, count, false);
    for (uint32_t i = 0; i < count; ++i) {
        finish(block + i, error == 0 ? State::kWrite : State::kAbsent);
    }
    return error == 0 ? HANARE_STATUS_OK : HANARE_STATUS_SYSTEM;
}

// Where its home has moved, the access is tried again, and finds the next one.
hanare_status HomeMemory::obtain_copy(uint32_t block, bool write) noexcept {
    const uint32_t like = state(block).load();
    if (write && (like & State::kFixed) == 0) return obtain_home(block);
    const uint32_t window = fetches_.take(block, kFetchWindowMin, kFetchWindowMax);
    const uint32_t taken = 1 + take_neighbours(block, like, window - 1);
    fetches_.next.store(block + taken, std::memory_order_relaxed);
    Fetch fetch(State::home(like), {block, taken}, {.asks_first = State::is_needed(like)});
    fetch.begin(peers_, segment_);
    hanare_status status = fetch.end(peers_, segment_);
    const uint32_t count = status == HANARE_STATUS_OK ? fetch.count() : 0;
    if (count > 0 && map(block, count, true) != 0) status = HANARE_STATUS_SYSTEM;
    Counters::add(counters_.fetched_blocks, status == HANARE_STATUS_OK ? count : 0);
    if (auto* const watch = counters_.watch; watch != nullptr && count > 0) {
        watch->note_fetched(block, count);
    }
    for (uint32_t i = 0; i < taken; ++i) {
        if (status == HANARE_STATUS_OK && i < count) {
            misses_.add({.block = block + i, .came_along = i > 0});
            note_fetched(block + i);
        }
        if (i > 0) give_back(block + i);
    }
    if (status == HANARE_STATUS_OK && count == 0) note_next_home(fetch);
    if (status != HANARE_STATUS_OK || count == 0 || !write) {
        give_back(block);
        return status;
    }
    return write_with_twin(block);
}

// ---- homes

// The block's, and those of some behind it, which are not claimed unless they are about to be used.
hanare_status HomeMemory::find_homes(uint32_t block) noexcept {
    const uint32_t window = claims_.take(block, 1, kClaimWindowMax);
    const uint32_t most =
        std::min(kDirectoryBlocks - block % kDirectoryBlocks, segment_.blocks() - block);
    const uint32_t claims = std::min(window, most);
    const uint32_t count = std::min(std::max(window, kToldMin), most);
    claims_.next.store(block + claims, std::memory_order_relaxed);
    uint16_t homes[kClaimsMax];
    const hanare_status status = ask_for_homes(block, count, claims, homes);
    if (status != HANARE_STATUS_OK) return status;
    for (uint32_t i = 0; i < count; ++i) {
        if (homes[i] == kNobodysHome) continue;
        uint32_t seen = state(block + i).load();
        while ((seen & State::kHomeKnown) == 0 &&
               !state(block + i).compare_exchange_weak(
                   seen, State::with_home(seen, homes[i], homes[i] == peers_.rank()))) {
        }
    }
    return HANARE_STATUS_OK;
}

hanare_status HomeMemory::ask_for_homes(uint32_t block, uint32_t count, uint32_t claims,
                                        uint16_t* homes) noexcept {
    const uint32_t directory = directory_of(block);
    if (directory == peers_.rank()) {
        return claim_for(peers_.rank(), block, count, claims, homes) ? HANARE_STATUS_OK
                                                                     : HANARE_STATUS_INTERNAL;
    }
    const QuestionText question({.kind = QuestionKind::kClaim,
                                 .from = peers_.rank(),
                                 .begin = block,
                                 .count = count | uint64_t{claims} << 32});
    size_t bytes = 0;
    const std::span<std::byte> room(reinterpret_cast<std::byte*>(homes), count * sizeof *homes);
    const hanare_status status = peers_.ask(directory, question.bytes(), room, &bytes);
    if (status != HANARE_STATUS_OK) return status;
    bool is_sound = bytes == room.size();
    for (uint32_t i = 0; is_sound && i < count; ++i) {
        is_sound = homes[i] < peers_.size() || (i >= claims && homes[i] == kNobodysHome);
    }
    return is_sound ? HANARE_STATUS_OK : HANARE_STATUS_CORRUPT;
}

bool HomeMemory::claim_for(uint32_t task, uint64_t first, uint64_t count, uint64_t claims,
                           uint16_t* homes) noexcept {
    if (first >= segment_.blocks() || claims == 0 || claims > count || count > kClaimsMax ||
        task >= peers_.size() || first % kDirectoryBlocks + count > kDirectoryBlocks ||
        directory_of(static_cast<uint32_t>(first)) != peers_.rank()) {
        return false;
    }
    auto* const owners = reinterpret_cast<uint16_t*>(directory_.address()) + first;
    const sys::LockGuard guard(directory_lock_);
    for (uint64_t i = 0; i < count; ++i) {
        if (owners[i] == 0 && i < claims) owners[i] = static_cast<uint16_t>(task + 1);
        // Nobody's is 0 there, and so kNobodysHome.
        homes[i] = static_cast<uint16_t>(owners[i] - 1);
    }
    return true;
}

// ---- what peers ask of this home

bool HomeMemory::note_fetch(uint64_t first, uint64_t count, HomeAnswer& answer) noexcept {
    protect(first, count);
    return note_each(first, count, answer, [this](uint32_t block) { return note_fetch_of(block); });
}

// What is about to be fetched: a write to it shows from now on, so that nobody gets a notice of
// what nobody has written to.  But for what is busy, or has a notice to come in any case.
void HomeMemory::protect(uint64_t first, uint64_t count) noexcept {
    if (first >= segment_.blocks() || count > segment_.blocks() - first) return;
    const auto end = static_cast<uint32_t>(first + count);
    for (auto block = static_cast<uint32_t>(first); block < end;) {
        uint32_t taken = 0;
        for (; block + taken < end; ++taken) {
            uint32_t seen = state(block + taken).load();
            constexpr uint32_t kOthers =
                State::kBusy | State::kDirty | State::kShared | State::kServed | State::kSteady;
            const auto is_unshared = [&] {
                return (seen & State::kHomeHere) != 0 && State::rights(seen) == State::kWrite &&
                       (seen & kOthers) == 0;
            };
            while (is_unshared() &&
                   !state(block + taken).compare_exchange_weak(seen, seen | State::kBusy)) {
            }
            if (!is_unshared()) break;
        }
        if (taken > 0) {
            const bool is_done = forbid_writes(block, taken) == 0;
            for (uint32_t i = 0; i < taken; ++i) {
                finish(block + i, is_done ? State::kRead : State::kWrite);
            }
        }
        block += std::max(taken, 1u);
    }
}

// Whether its home is here.  What is busy may become writable, or is so until its writes are
// forbidden: as if it were.
bool HomeMemory::note_fetch_of(uint32_t block) noexcept {
    uint32_t seen = state(block).load(std::memory_order_acquire);
    for (;;) {
        if (State::is_elsewhere(seen)) return false;
        const bool is_protected = State::rights(seen) == State::kRead && (seen & State::kBusy) == 0;
        const uint32_t more = State::kShared | (is_protected ? 0 : State::kServed);
        if ((seen & more) == more) return true;
        if (!state(block).compare_exchange_weak(seen, seen | more)) continue;
        if (!is_protected && (seen & State::kServed) == 0) served_.add(block);
        return true;
    }
}

bool HomeMemory::apply(std::span<const std::byte> diffs, HomeAnswer& answer) noexcept {
    const BlockPlace place = [](void* context, uint32_t block) noexcept -> std::byte* {
        const auto& self = *static_cast<const HomeMemory*>(context);
        return block < self.segment_.blocks() ? self.segment_.alias(block) : nullptr;
    };
    // What was looked at counts, whatever comes to lie there.
    struct Twin {
        const HomeMemory* self;
        uint32_t block;
    };
    const BlockPlace twin = [](void* context, uint32_t block) noexcept -> std::byte* {
        const auto& looked_at = *static_cast<const Twin*>(context);
        return block == looked_at.block ? looked_at.self->twins_.of(block) : nullptr;
    };
    answer = {};
    while (answer.count < diffs.size()) {
        const auto rest = diffs.subspan(answer.count);
        const uint32_t block = diff_block(rest);
        if (block >= segment_.blocks()) return false;
        const uint32_t seen = state(block).load(std::memory_order_acquire);
        if (State::is_elsewhere(seen)) {
            answer.home = State::home(seen);
            break;
        }
        size_t used = 0;
        {
            const sys::LockGuard guard(steady_lock_);
            used = apply_diff(rest, place, this);
            Twin looked_at = {this, block};
            if (used != 0 && is_steady(block)) apply_diff(rest, twin, &looked_at);
        }
        if (used == 0) return false;
        answer.count += static_cast<uint32_t>(used);
    }
    return true;
}

}  // namespace hanare::dsm
