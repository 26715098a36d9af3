// SPDX-License-Identifier: Apache-2.0
#include "pager/pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

#include "base/units.hpp"
#include "pager/fault/handler.hpp"
#include "pager/fault/region_table.hpp"
#include "pager/fork.hpp"
#include "store/slot_table.hpp"
#include "sys/clock.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"
#include "telemetry/log.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::pager {

namespace {

// Half of the x86-64 user address space; more is a mistake, not a wish.
constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;
constexpr uint32_t kCopyBuffers = 4;

sys::RankedLock region_table_lock{sys::LockRank::kRegions};

Result<void> check_block_bytes(uint64_t block_bytes) {
    if (is_power_of_two(block_bytes) && block_bytes >= kBlockBytesMin &&
        block_bytes <= kBlockBytesMax) {
        return {};
    }
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "block size: %llu bytes is not allowed; allowed is a power of two from 4 KiB to "
                "4 MiB",
                static_cast<unsigned long long>(block_bytes));
}

// At `wanted`, unless that is nullptr.
Result<sys::Mapping> map_region(uint64_t bytes, uint64_t block_bytes, std::byte* wanted) {
    if (wanted == nullptr) return sys::Mapping::reserve(bytes, block_bytes);
    if (reinterpret_cast<uintptr_t>(wanted) % block_bytes != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "address: %p is not allowed; allowed are multiples of the block size, %s",
                    static_cast<void*>(wanted), format_size(block_bytes).c_str());
    }
    return sys::Mapping::reserve_at(wanted, bytes);
}

}  // namespace

Pool::Pool(const PoolOptions& options)
    : block_bytes_(options.block_bytes),
      local_bytes_(options.local_bytes),
      frames_(options.local_bytes, options.replacement, !options.watches_forks) {}

Result<std::unique_ptr<Pool>> Pool::open(const PoolOptions& options) {
    HANARE_TRY(check_block_bytes(options.block_bytes));
    std::unique_ptr<Pool> pool(new Pool(options));
    HANARE_TRY_ASSIGN(pool->store_, options.open_store ? options.open_store()
                                                       : store::open_file_store(options.store));
    HANARE_TRY_ASSIGN(pool->engine_, open_engine(options.engine));
    HANARE_TRY(pool->frames_.open_class(options.block_bytes, *pool->engine_));
    {
        const sys::LockGuard guard(pool->lock_);
        pool->mappings_.emplace(pool->engine_->mappings_per_block(), options.local_bytes);
    }
    HANARE_TRY(claim_faults(pool->engine_->fault_signal()));
    if (options.watches_forks) HANARE_TRY(watch_forks());
    HANARE_TRY_ASSIGN(auto buffers,
                      sys::Mapping::reserve(PartReads::kBuffers * kPartBytesMax, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto copies,
                      sys::Mapping::reserve(kCopyBuffers * kPartBytesMax, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto zeros, sys::Mapping::reserve(kPartBytesMax, kOsPageBytes));
    pool->pager_ = std::make_unique<Pager>(*pool->store_, *pool->engine_, pool->frames_,
                                           options.read_ahead_blocks, options.block_bytes,
                                           sys::allowed_cpus() > 1, std::move(buffers),
                                           std::move(copies), std::move(zeros));
    HANARE_TRY_ASSIGN(auto channel, pool->store_->open_channel());
    pool->keeper_ = std::make_unique<Keeper>(*pool->pager_, std::move(channel));
    pool->pager_->set_keeper(pool->keeper_.get(), options.works_ahead);
    if (options.starts_keeper) HANARE_TRY(pool->keeper_->start());
    HANARE_TRY(pool->fault_threads_.start(*pool->pager_));
    pool->watches_forks_ = options.watches_forks;
    if (options.watches_forks) note_pool_opened(*pool->store_);
    return pool;
}

// Several times as many blocks as one instruction may need.
uint64_t Pool::least_budget_bytes() noexcept {
    const sys::SignalBlock signals;
    return frames_.usage().metadata_bytes + 4 * kFramesMin * block_bytes_;
}

void Pool::set_budget(uint64_t bytes) noexcept {
    const sys::SignalBlock signals;
    frames_.set_budget(std::min(local_bytes_, std::max(bytes, least_budget_bytes())));
    constexpr uint64_t kTrimNs = 100'000'000;
    const uint64_t now_ns = sys::now_ns();
    if (now_ns - trimmed_ns_ < kTrimNs) return;
    trimmed_ns_ = now_ns;
    engine_->trim();
}

Pool::~Pool() {
    if (keeper_ == nullptr) return;
    {
        const sys::SignalBlock signals;
        const sys::LockGuard guard(lock_);
        for (const auto& region : regions_) end_region(*region, Pages::kDropped);
        regions_.clear();
    }
    keeper_->stop();
    fault_threads_.stop();
    if (watches_forks_) note_pool_closed(*store_);
}

Result<void> Pool::check_unpinned() {
    const sys::SignalBlock signals;
    const uint64_t pinned = frames_.pinned_bytes();
    if (pinned == 0) return {};
    return fail(HANARE_STATUS_BUSY, "the pool cannot be closed: %s are pinned",
                format_size(pinned).c_str());
}

Result<void*> Pool::alloc(uint64_t bytes, uint64_t block_bytes, void* wanted) {
    if (block_bytes == 0) block_bytes = block_bytes_;
    HANARE_TRY(check_block_bytes(block_bytes));
    if (bytes == 0 || bytes > kRegionBytesMax || bytes / block_bytes >= UINT32_MAX) {
        return fail(
            HANARE_STATUS_INVALID_ARGUMENT,
            "size: %llu bytes is not allowed; allowed is 1 byte to 64 TiB, at most 2^32 - 1 "
            "blocks",
            static_cast<unsigned long long>(bytes));
    }
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    HANARE_TRY_ASSIGN(Region* const region,
                      make_region(bytes, block_bytes, static_cast<std::byte*>(wanted)));
    shrink_to_budget();
    return static_cast<void*>(region->begin());
}

std::vector<BlockExtent> Pool::extents() {
    std::vector<BlockExtent> found;
    for (const auto& region : regions_) {
        found.push_back({region->block_bytes, region->block_count});
    }
    return found;
}

Result<uint64_t> Pool::choose_block_bytes(uint64_t bytes, uint64_t wanted) {
    HANARE_TRY_ASSIGN(const uint64_t chosen,
                      mappings_->choose_block_bytes(extents(), bytes, wanted));
    if (chosen != wanted) {
        telemetry::log(telemetry::LogLevel::kWarn,
                       "a region of %s has blocks of %s instead of %s: engine %s needs %u mappings "
                       "per block, and vm.max_map_count allows too few",
                       format_size(bytes).c_str(), format_size(chosen).c_str(),
                       format_size(wanted).c_str(), engine_->name(), engine_->mappings_per_block());
    }
    return chosen;
}

Result<Region*> Pool::make_region(uint64_t bytes, uint64_t block_bytes, std::byte* wanted) {
    HANARE_TRY_ASSIGN(block_bytes, choose_block_bytes(bytes, block_bytes));
    // What can throw comes before what would have to be undone.
    regions_.reserve(regions_.size() + 1);
    auto region = std::make_unique<Region>();
    region->pager = pager_.get();
    region->block_bytes = block_bytes;
    region->block_shift = static_cast<uint32_t>(std::countr_zero(block_bytes));
    region->requested_bytes = bytes;
    const uint64_t rounded = round_up(bytes, block_bytes);
    region->block_count = static_cast<uint32_t>(rounded >> region->block_shift);
    HANARE_TRY_ASSIGN(region->frame_class, frames_.open_class(block_bytes, *engine_));
    HANARE_TRY_ASSIGN(region->range, map_region(rounded, block_bytes, wanted));
    HANARE_TRY(make_table(*region));
    if (engine_->shares_regions()) {
        HANARE_TRY_ASSIGN(region->file, sys::create_shared_memory(rounded));
        HANARE_TRY(sys::map_shared(region->range, region->file));
    }
    HANARE_TRY(region->range.hide_from_children());
    region->range.advise(MADV_NOHUGEPAGE);
    if (const int error = engine_->attach(region->begin(), rounded); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "engine %s cannot take over %s",
                          engine_->name(), format_size(rounded).c_str());
    }
    HANARE_TRY(
        frames_.charge_region(*region->frame_class, region->block_count, region->table.bytes()));
    frames_.give_up_unused(*region->frame_class);
    const auto refund = [this](Region* given_up) {
        frames_.refund_region(*given_up->frame_class, given_up->block_count,
                              given_up->table.bytes());
    };
    std::unique_ptr<Region, decltype(refund)> charged(region.get(), refund);
    HANARE_TRY_ASSIGN(region->store_offset, store_->reserve(rounded));
    const sys::LockGuard guard(region_table_lock);
    if (const auto published = region_table().publish(*region); !published) {
        store_->release(region->store_offset, rounded);
        return std::unexpected(published.error());
    }
    charged.release();
    pager_->virtual_bytes.fetch_add(rounded);
    regions_.push_back(std::move(region));
    mappings_->account_for(extents());
    return regions_.back().get();
}

Result<void> Pool::prepare_to_adopt() {
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    HANARE_TRY_ASSIGN(auto slots, store_->open_slots(block_bytes_));
    slots_.emplace(std::move(slots));
    pager_->set_slots(&*slots_, block_bytes_);
    return {};
}

Result<Region*> Pool::adopt(sys::Mapping range) {
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    regions_.reserve(regions_.size() + 1);
    auto region = std::make_unique<Region>();
    region->pager = pager_.get();
    region->block_bytes = block_bytes_;
    region->block_shift = static_cast<uint32_t>(std::countr_zero(block_bytes_));
    region->requested_bytes = range.bytes();
    region->block_count = static_cast<uint32_t>(range.bytes() >> region->block_shift);
    region->range = std::move(range);
    HANARE_TRY_ASSIGN(region->frame_class, frames_.open_class(block_bytes_, *engine_));
    HANARE_TRY(make_table(*region));
    HANARE_TRY(make_places(*region));
    region->range.advise(MADV_NOHUGEPAGE);
    region->range.advise(MADV_DONTDUMP);
    if (const int error = engine_->attach(region->begin(), region->range.bytes()); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "engine %s cannot take over %s at %p",
                          engine_->name(), format_size(region->range.bytes()).c_str(),
                          static_cast<void*>(region->begin()));
    }
    if (engine_->moves_parts() && region->parts_per_block > 1) make_shelf(*region);
    const sys::LockGuard table_guard(region_table_lock);
    HANARE_TRY(region_table().publish(*region));
    regions_.push_back(std::move(region));
    return regions_.back().get();
}

namespace {

void tell_that_there_are_too_many() noexcept {
    telemetry::RawLine line;
    line.text("hanare: cannot fork: ")
        .decimal(store::SlotTable::kRows)
        .text(" processes share far memory by fork already, and more cannot");
    line.write_stderr();
}

}  // namespace

// Of other threads only one that reports at its end may have the lock; the child has none of them.
std::optional<uint32_t> Pool::prepare_fork() noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    keeper_->pause();
    pager_->gate().close();
    pager_->finish_all_transfers();
    std::optional<uint32_t> row = slots_->begin_child();
    if (!row) tell_that_there_are_too_many();
    if (row && !store_->prepare_fork(*row)) {
        slots_->child_failed(*row);
        row.reset();
    }
    if (row) {
        lock_.lock();
    } else {
        cancel_fork();
    }
    return row;
}

void Pool::cancel_fork() noexcept {
    pager_->gate().open();
    keeper_->resume();
}

void Pool::finish_fork(uint32_t row, int child) noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS {
    lock_.unlock();
    if (child > 0) {
        slots_->child_started(row, child);
        engine_->note_shared_pages();
    } else {
        slots_->child_failed(row);
    }
    store_->finish_fork();
    cancel_fork();
}

// The kernel has copied what was present, without what watches over it.
int Pool::become_child(uint32_t row, const ForeignMemory& foreign,
                       void (*on_need)(Pager& pager) noexcept) noexcept
    HANARE_NO_THREAD_SAFETY_ANALYSIS {
    lock_.unlock();
    slots_->become_child(row);
    store_->become_child();
    keeper_->forget_in_child();
    pager_->become_child(on_need);
    if (const int error = engine_->become_child(); error != 0) return error;
    if (const int error = frames_.watch_arenas(*engine_); error != 0) return error;
    for (const auto& region : regions_) {
        if (const int error = watch_again(*region, foreign); error != 0) return error;
    }
    pager_->gate().open();
    return 0;
}

// All of it but what is foreign: the kernel refuses files, and what it maps for the program is not
// to fault.
int Pool::watch_again(Region& region, const ForeignMemory& foreign) noexcept {
    int error = 0;
    for (std::byte* at = region.begin(); at < region.end() && error == 0;) {
        const ForeignMemory::Piece next = foreign.next(at, region.end());
        if (next.begin > at) {
            error = engine_->watch_again(at, static_cast<size_t>(next.begin - at));
        }
        at = next.end;
    }
    if (error == 0 && region.has_shelf()) {
        error = engine_->watch_again(region.shelf.address(), region.shelf.bytes());
    }
    if (error != 0 || !engine_->loses_protection()) return error;
    const uint32_t used = region.used_blocks.load(std::memory_order_relaxed);
    for (uint32_t index = 0; index < used; ++index) {
        if (region.access_of(index).load(std::memory_order_relaxed) == 0) continue;
        if (const int failed = pager_->protect_again(region, index); failed != 0) return failed;
    }
    return 0;
}

// Without one, sparse blocks are evicted as a whole.  Where addresses are limited (ulimit -v), the
// program needs them more.
void Pool::make_shelf(Region& region) {
    constexpr uint64_t kAddressesShare = 4;
    if (sys::free_address_bytes() / kAddressesShare < region.range.bytes()) return;
    auto shelf = sys::Mapping::reserve(region.range.bytes(), region.block_bytes);
    if (!shelf || engine_->attach_arena(shelf->address(), shelf->bytes()) != 0) return;
    shelf->advise(MADV_NOHUGEPAGE);
    shelf->advise(MADV_DONTDUMP);
    region.shelf = std::move(*shelf);
    frames_.note_shelf();
}

Result<void> Pool::make_places(Region& region) {
    const auto table = [](uint64_t bytes) {
        return sys::Mapping::reserve(round_up(bytes, kOsPageBytes), kOsPageBytes);
    };
    HANARE_TRY_ASSIGN(region.access_table, table(region.block_count));
    HANARE_TRY_ASSIGN(region.slot_table, table(region.block_count * sizeof(uint32_t)));
    return {};
}

void Pool::set_access(Region& region, uint32_t first, uint32_t last, uint8_t access) noexcept {
    int64_t blocks = 0;
    for (uint32_t index = first; index < last; ++index) {
        std::atomic<uint8_t>& kept = region.access_of(index);
        uint8_t before = kept.load();
        uint8_t after;
        // Another thread may find its stack there at any time.
        do {
            after = access == 0 ? 0 : access | (before & block_access::kStack);
        } while (!kept.compare_exchange_weak(before, after));
        blocks += static_cast<int64_t>(after != 0) - static_cast<int64_t>(before != 0);
    }
    if (access != 0 && last > region.used_blocks.load(std::memory_order_relaxed)) {
        region.used_blocks.store(last, std::memory_order_relaxed);
    }
    if (blocks == 0) return;
    const auto per_block = static_cast<int64_t>(
        sizeof(Block) + (region.parts_per_block + 1) * sizeof(uint32_t) + sizeof(uint8_t));
    frames_.adjust_region(*region.frame_class, blocks, blocks * per_block);
    pager_->virtual_bytes.fetch_add(
        static_cast<uint64_t>(blocks * static_cast<int64_t>(region.block_bytes)));
}

Result<void> Pool::make_table(Region& region) {
    const bool whole = frames_.replacement() == Replacement::kRoundRobin;
    if (region.block_bytes >= kDividedBytesMin && engine_->serves_parts() && !whole) {
        region.part_bytes = std::max(kOsPageBytes, region.block_bytes / kPartsMax);
        HANARE_TRY_ASSIGN(region.sparse_class, frames_.open_sparse_class());
    } else {
        region.part_bytes = region.block_bytes;
    }
    region.part_shift = static_cast<uint32_t>(std::countr_zero(region.part_bytes));
    region.parts_per_block = static_cast<uint32_t>(region.block_bytes >> region.part_shift);
    const uint64_t block_bytes = sizeof(Block) + region.parts_per_block * sizeof(uint32_t);
    HANARE_TRY_ASSIGN(region.table,
                      sys::Mapping::reserve(
                          round_up(region.block_count * block_bytes, kOsPageBytes), kOsPageBytes));
    return {};
}

// New tables take part of the budget: give up frames for them.
void Pool::shrink_to_budget() noexcept {
    frames_.trim();
    pager_->wait_for_storing();
    while (frames_.excess_bytes() > 0 && pager_->evict_one()) frames_.trim();
}

Region* Pool::find(const void* address) noexcept {
    for (const auto& region : regions_) {
        if (address >= region->begin() && address < region->end()) return region.get();
    }
    return nullptr;
}

Result<void> Pool::free(void* address) {
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    Region* region = find(address);
    if (region == nullptr || region->begin() != address) {
        return fail(HANARE_STATUS_NOT_FOUND, "%p is not the start of a region of this pool",
                    address);
    }
    if (const uint64_t pinned = region->pinned_blocks.load(); pinned > 0) {
        return fail(HANARE_STATUS_BUSY, "the region cannot be freed: %llu of its blocks are pinned",
                    static_cast<unsigned long long>(pinned));
    }
    end_region(*region, Pages::kKept);
    std::erase_if(regions_, [&](const auto& other) { return other.get() == region; });
    mappings_->account_for(extents());
    return {};
}

Result<int> Pool::export_region(const void* address) {
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    const Region* region = find(address);
    if (region == nullptr || region->begin() != address) {
        return fail(HANARE_STATUS_NOT_FOUND, "%p is not the start of a region of this pool",
                    address);
    }
    if (!region->file.is_open()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "engine %s keeps regions to itself: open the pool with engine shared",
                    engine_->name());
    }
    HANARE_TRY_ASSIGN(auto descriptor, sys::reopen_read_only(region->file));
    return descriptor.release();
}

// Afterwards nothing refers to the region and it can be destroyed.
void Pool::end_region(Region& region, Pages pages) noexcept {
    region.close();
    // Who chose a victim or a frame of this region before has entered it by now; nobody does so
    // afterwards.
    frames_.wait_for_others();
    frames_.note_progress();
    pager_->drop_read_ahead(region, 0, region.block_count);
    keeper_->kick();
    pager_->finish_transfers(region);
    region.wait_until_left();
    // A fault that comes now finds the region closing, explains itself and leaves.
    {
        const sys::LockGuard guard(region_table_lock);
        region_table().withdraw(region);
    }
    region.wait_until_left();
    if (pages == Pages::kKept && !engine_->copies()) take_frames_out(region);
    release_blocks(region);
    pager_->virtual_bytes.fetch_sub(region.range.bytes());
    frames_.refund_region(*region.frame_class, region.block_count, region.table.bytes());
    store_->release(region.store_offset, region.range.bytes());
#define HANARE_ADD(name, text) ended_.name += region.counters.name.load();
    HANARE_COUNTER_MAP(HANARE_ADD)
#undef HANARE_ADD
}

// A page that the kernel has made contiguous is worth more than a new one, and a new one has to be
// cleared first.  What cannot be taken out is dropped with the region.
void Pool::take_frames_out(Region& region) noexcept {
    for (uint32_t i = 0; i < region.block_count; ++i) {
        Block& block = region.block(i);
        const uint32_t word = block.load();
        if (!block_word::resident(word) || !block.try_enter(word, BlockState::kWithdrawing)) {
            continue;
        }
        Frame& frame = *region.frame_of(block);
        const bool is_out =
            engine_->withdraw(region.address_of(i), frame.memory, region.block_bytes, {}) == 0;
        if (is_out) frames_.release(frame, false);
        block.leave(is_out ? BlockState::kAbsent : block_word::state(word));
    }
}

void Pool::release_blocks(Region& region) noexcept {
    // The pages go before their bytes are given to others.
    engine_->drop(region.begin(), region.range.bytes());
    if (region.has_shelf()) {
        pager_->drop_leftovers();
        region.shelf.advise(MADV_DONTNEED);
    }
    for (uint32_t i = 0; i < region.block_count; ++i) {
        Block& block = region.block(i);
        const uint32_t word = block.load();
        if (block_word::state(word) == BlockState::kAbsent) continue;
        Frame& frame = *region.frame_of(block);
        frames_.release(frame, block_word::resident(word));
    }
}

Result<Pool::Span> Pool::span_of(const void* address, uint64_t bytes) noexcept {
    const sys::LockGuard guard(lock_);
    Region* region = find(address);
    const auto* begin = static_cast<const std::byte*>(address);
    // The last block may reach beyond what was asked for.
    const uint64_t left =
        region == nullptr || begin >= region->begin() + region->requested_bytes
            ? 0
            : static_cast<uint64_t>(region->begin() + region->requested_bytes - begin);
    if (bytes == 0 || bytes > left) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%p and %llu bytes are not inside one region of this pool", address,
                    static_cast<unsigned long long>(bytes));
    }
    return enter(*region, region->index_of(begin), region->index_of(begin + bytes - 1) + 1);
}

Result<void> Pool::advise(const void* address, uint64_t bytes, hanare_advice advice) {
    const sys::SignalBlock signals;
    HANARE_TRY_ASSIGN(const Span span, span_of(address, bytes));
    switch (advice) {
        case HANARE_ADVICE_NORMAL:
        case HANARE_ADVICE_SEQUENTIAL:
        case HANARE_ADVICE_RANDOM:
            span.region->advice.store(advice, std::memory_order_relaxed);
            return {};
        case HANARE_ADVICE_WILLNEED:
            pager_->request_read_ahead(*span.region, span.first, span.last - span.first, 1);
            return {};
        case HANARE_ADVICE_DONTNEED: {
            uint64_t pinned_dirty = 0;
            return flush_span(span, true, &pinned_dirty);
        }
        case HANARE_ADVICE_DISCARD: return discard(span, address, bytes);
        case HANARE_ADVICE_INT_: break;
    }
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "advice: %d is not one of HANARE_ADVICE_*",
                static_cast<int>(advice));
}

Result<void> Pool::discard(const Span& span, const void* address, uint64_t bytes) {
    Region& region = *span.region;
    const auto* begin = static_cast<const std::byte*>(address);
    const auto* end = begin + bytes;
    const uint32_t first = region.address_of(span.first) < begin ? span.first + 1 : span.first;
    const bool ends_inside = end < region.begin() + region.requested_bytes &&
                             end < region.address_of(span.last - 1) + region.block_bytes;
    const uint32_t last = ends_inside ? span.last - 1 : span.last;
    hanare_status failure = HANARE_STATUS_OK;
    for (uint32_t i = first; i < last; ++i) {
        const hanare_status status = pager_->discard(region, i);
        if (failure == HANARE_STATUS_OK) failure = status;
    }
    if (failure == HANARE_STATUS_OK) return {};
    return fail(failure, "not all of %llu bytes at %p was discarded: %s",
                static_cast<unsigned long long>(bytes), address, hanare_status_text(failure));
}

// A block is charged for while it is pinned: by the pin that is the first, until the unpin that is
// the last.
hanare_status Pool::pin_block(Region& region, uint32_t index, bool write) noexcept {
    const bool within_limit = frames_.charge_pinned(region.block_bytes);
    // A block that is pinned already needs no further frame.
    if (!within_limit && !block_word::pinned(region.block(index).load())) {
        frames_.refund_pinned(region.block_bytes);
        return HANARE_STATUS_LIMIT;
    }
    bool first = false;
    const hanare_status status = pager_->pin(region, index, write, &first);
    if (status != HANARE_STATUS_OK || !first) frames_.refund_pinned(region.block_bytes);
    if (status != HANARE_STATUS_OK || !first || within_limit) return status;
    unpin_block(region, index);  // the pin that was there before has ended meanwhile
    return HANARE_STATUS_LIMIT;
}

bool Pool::unpin_block(Region& region, uint32_t index) noexcept {
    bool last = false;
    if (!pager_->unpin(region, index, &last)) return false;
    if (last) frames_.refund_pinned(region.block_bytes);
    return true;
}

Result<void> Pool::pin(const void* address, uint64_t bytes, hanare_access access) {
    const sys::SignalBlock signals;
    HANARE_TRY_ASSIGN(const Span span, span_of(address, bytes));
    if (access != HANARE_ACCESS_READ && access != HANARE_ACCESS_WRITE) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "access: %d is not one of HANARE_ACCESS_*",
                    static_cast<int>(access));
    }
    for (uint32_t i = span.first; i < span.last; ++i) {
        const hanare_status status = pin_block(*span.region, i, access == HANARE_ACCESS_WRITE);
        if (status == HANARE_STATUS_OK) continue;
        unpin_span(span, i);
        const char* const why = status == HANARE_STATUS_STORE_IO ? store_->trouble() : nullptr;
        if (why != nullptr) {
            return fail(status, "cannot pin %llu bytes at %p: %.200s",
                        static_cast<unsigned long long>(bytes), address, why);
        }
        return fail(status, "cannot pin %llu bytes at %p: %s; %s are pinned of a budget of %s",
                    static_cast<unsigned long long>(bytes), address, hanare_status_text(status),
                    format_size(frames_.pinned_bytes()).c_str(),
                    format_size(frames_.frame_budget_bytes()).c_str());
    }
    return {};
}

Result<void> Pool::unpin(const void* address, uint64_t bytes) {
    const sys::SignalBlock signals;
    HANARE_TRY_ASSIGN(const Span span, span_of(address, bytes));
    for (uint32_t i = span.first; i < span.last; ++i) {
        if (block_word::pinned(span.region->block(i).load())) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "cannot unpin %llu bytes at %p: block %u is not pinned",
                    static_cast<unsigned long long>(bytes), address, i);
    }
    unpin_span(span, span.last);
    return {};
}

void Pool::unpin_span(const Span& span, uint32_t last) noexcept {
    for (uint32_t i = span.first; i < last; ++i) unpin_block(*span.region, i);
}

Result<void> Pool::flush(const void* address, uint64_t bytes) {
    const sys::SignalBlock signals;
    std::vector<Span> spans;
    if (address == nullptr && bytes == 0) {
        const sys::LockGuard guard(lock_);
        for (const auto& region : regions_) {
            spans.push_back(enter(*region, 0, region->block_count));
        }
    } else {
        HANARE_TRY_ASSIGN(Span span, span_of(address, bytes));
        spans.push_back(std::move(span));
    }
    uint64_t pinned_dirty = 0;
    for (const Span& span : spans) HANARE_TRY(flush_span(span, false, &pinned_dirty));
    if (pinned_dirty == 0) return {};
    return fail(HANARE_STATUS_BUSY, "%llu dirty blocks are pinned and were not flushed",
                static_cast<unsigned long long>(pinned_dirty));
}

Result<void> Pool::write_out(Region& region, uint32_t first, uint32_t last) {
    const sys::SignalBlock signals;
    uint64_t pinned_dirty = 0;
    return flush_span(enter(region, first, last), true, &pinned_dirty);
}

Result<void> Pool::flush_span(const Span& span, bool drop, uint64_t* pinned_dirty) {
    // Not on the stack, which may be far memory: the keeper must not wait for itself.
    const auto job = std::make_unique<FlushJob>();
    job->region = span.region.get();
    job->first = job->next = span.first;
    job->last = span.last;
    job->drop = drop;
    keeper_->run(*job);
    *pinned_dirty += job->pinned_dirty;
    if (job->status == HANARE_STATUS_OK) return {};
    constexpr const char* kWhat = "cannot write blocks back to the store";
    if (const char* const why = store_->trouble(); why != nullptr) {
        return fail(job->status, "%s: %s", kWhat, why);
    }
    return fail_errno(job->status, store_->last_errno(), "%s", kWhat);
}

Result<void> Pool::stats(const void* address, hanare_counters& counters) {
    const sys::SignalBlock signals;
    const sys::LockGuard guard(lock_);
    const Region* only = address == nullptr ? nullptr : find(address);
    if (address != nullptr && only == nullptr) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%p is not inside a region of this pool",
                    address);
    }
    counters = add_up(only);
    return {};
}

bool Pool::try_stats(hanare_counters& counters) noexcept {
    const sys::SignalBlock signals;
    if (!lock_.try_lock()) return false;
    counters = add_up(nullptr);
    lock_.unlock();
    return true;
}

// `only`: of this region; nullptr: of all, also those that have ended.
hanare_counters Pool::add_up(const Region* only) noexcept {
    pager_->poll_transfers();
    hanare_counters sum = {};
    if (only == nullptr) sum = ended_;
    for (const auto& region : regions_) {
        if (only != nullptr && region.get() != only) continue;
#define HANARE_ADD(name, text) sum.name += region->counters.name.load(std::memory_order_relaxed);
        HANARE_COUNTER_MAP(HANARE_ADD)
#undef HANARE_ADD
        sum.virtual_bytes += region->range.bytes();
        sum.resident_bytes += region->resident_bytes.load();
        sum.dirty_bytes += region->dirty_bytes.load();
        sum.pinned_bytes += region->pinned_blocks.load() * region->block_bytes;
        sum.metadata_bytes += region->table.bytes();
    }
    const FrameTable::Usage usage = frames_.usage();
    sum.frame_bytes = usage.frame_bytes;
    sum.free_frame_bytes = usage.free_bytes;
    sum.budget_bytes = usage.budget_bytes;
    if (only == nullptr) sum.metadata_bytes = usage.metadata_bytes;
    if (only != nullptr) sum.block_bytes = only->block_bytes;
    return sum;
}

}  // namespace hanare::pager
