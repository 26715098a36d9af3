// SPDX-License-Identifier: Apache-2.0
//
// Pool: a local budget, a store and the regions that share them.  Behind the C API; any thread may
// call anything, except that the destructor and free() must not run while others use what they end.
// Every call blocks the caller's signals for its duration (sys::SignalBlock says why).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "hanare/pool.h"
#include "hanare/stats.h"
#include "pager/engines.hpp"
#include "pager/fault/frame_table.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault_threads.hpp"
#include "pager/keeper.hpp"
#include "pager/mapping_budget.hpp"
#include "store/store.hpp"

namespace hanare::pager {

struct PoolOptions {
    uint64_t local_bytes = 0;
    uint64_t block_bytes = 0;
    uint32_t read_ahead_blocks = 0;
    EngineChoice engine = EngineChoice::kAuto;
    Replacement replacement = Replacement::kSecondChance;
    bool works_ahead = true;    // the keeper reads, cleans and frees ahead of need
    bool starts_keeper = true;  // else a thread of the caller's may serve() as one, later
    bool watches_forks = true;  // else the caller tells of forks, or children never touch it
    store::FileStoreOptions store;
    // Instead of a file: what else is to be opened.
    std::function<Result<std::unique_ptr<store::Store>>()> open_store = {};
};

// What of adopted memory the kernel maps for the program, in another way.  Asked in a forked child,
// where nothing may be allocated.
class ForeignMemory {
public:
    struct Piece {
        std::byte* begin;
        std::byte* end;
    };
    // The first piece of it in [begin, end), which is of one region; {end, end} if there is none.
    virtual Piece next(std::byte* begin, std::byte* end) const noexcept = 0;

protected:
    ~ForeignMemory() = default;
};

class Pool {
public:
    static Result<std::unique_ptr<Pool>> open(const PoolOptions& options);
    ~Pool();  // frees every region
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // BUSY while anything is pinned: the pool should not be destroyed then.
    Result<void> check_unpinned();

    // block_bytes 0: the pool's.  `wanted`: where it has to be, unless nullptr.
    Result<void*> alloc(uint64_t bytes, uint64_t block_bytes, void* wanted = nullptr);
    Result<void> free(void* address);

    // Memory of the program's own becomes a region: `range`, readable and writable, without pages.
    // Nothing of it may be used before set_access() says so.  It costs nothing of the budget until
    // then, is inherited by children, and is never freed.
    Result<Region*> adopt(sys::Mapping range);
    // Before the first: fails where the store cannot do for adopted memory.
    Result<void> prepare_to_adopt();
    // Blocks [first, last) are usable, or are not (block_access); tables are charged accordingly.
    void set_access(Region& region, uint32_t first, uint32_t last, uint8_t access) noexcept;
    Pager& pager() noexcept { return *pager_; }
    Keeper& keeper() noexcept { return *keeper_; }

    // A fork with adopted memory (intercept/forks.hpp).  prepare: quiet until one of the others;
    // the child's row of the slot table, or nullopt if there are too many children.  In the child:
    // 0 or an errno value, with which no far memory is left.  Signals are blocked;
    // async-signal-safe.
    std::optional<uint32_t> prepare_fork() noexcept;
    void finish_fork(uint32_t row, int child) noexcept;
    void cancel_fork() noexcept;
    int become_child(uint32_t row, const ForeignMemory& foreign,
                     void (*on_need)(Pager& pager) noexcept) noexcept;
    void shrink_to_budget() noexcept;
    // What is needed to go on.  Async-signal-safe.
    uint64_t least_budget_bytes() noexcept;
    // What may be in local memory from now on, at least what is needed to go on, at most what it
    // was at first.  Async-signal-safe.
    void set_budget(uint64_t bytes) noexcept;

    Result<void> advise(const void* address, uint64_t bytes, hanare_advice advice);
    Result<void> pin(const void* address, uint64_t bytes, hanare_access access);
    Result<void> unpin(const void* address, uint64_t bytes);
    // address nullptr: everything.
    Result<void> flush(const void* address, uint64_t bytes);
    // DONTNEED for blocks of a region that lasts as long as the pool: takes no lock that a fork
    // would leave held in the child.
    Result<void> write_out(Region& region, uint32_t first, uint32_t last);
    Result<void> stats(const void* address, hanare_counters& counters);
    // Of everything; false, and nothing is changed, while somebody is about to change the regions.
    // Never waits: for the keeper's thread.
    bool try_stats(hanare_counters& counters) noexcept;
    // A descriptor of the region's memory, for reading; the caller's.
    Result<int> export_region(const void* address);

    const char* engine_name() const { return engine_->name(); }
    std::string describe_store() const { return store_->describe(); }
    // As store::Store has them.
    bool ask_to_add(std::string_view spec) noexcept { return store_->ask_to_add(spec); }
    const char* added_store() const noexcept { return store_->added(); }

private:
    struct Leave {
        void operator()(Region* region) const noexcept { region->leave(); }
    };
    // Blocks of an entered region; it cannot end meanwhile.
    struct Span {
        std::unique_ptr<Region, Leave> region;
        uint32_t first;
        uint32_t last;  // one past the end
    };
    static Span enter(Region& region, uint32_t first, uint32_t last) {
        region.enter();
        return {std::unique_ptr<Region, Leave>(&region), first, last};
    }

    explicit Pool(const PoolOptions& options);

    Result<Region*> make_region(uint64_t bytes, uint64_t block_bytes, std::byte* wanted)
        HANARE_REQUIRES(lock_);
    Result<void> make_table(Region& region);
    void make_shelf(Region& region);
    Result<void> make_places(Region& region);
    int watch_again(Region& region, const ForeignMemory& foreign) noexcept;
    Result<uint64_t> choose_block_bytes(uint64_t bytes, uint64_t wanted) HANARE_REQUIRES(lock_);
    std::vector<BlockExtent> extents() HANARE_REQUIRES(lock_);
    hanare_counters add_up(const Region* only) noexcept HANARE_REQUIRES(lock_);
    // What becomes of the pages of its frames: the pool ends, too, or has a use for them.
    enum class Pages { kDropped, kKept };
    void end_region(Region& region, Pages pages) noexcept HANARE_REQUIRES(lock_);
    void take_frames_out(Region& region) noexcept;
    void release_blocks(Region& region) noexcept;
    Region* find(const void* address) noexcept HANARE_REQUIRES(lock_);
    Result<Span> span_of(const void* address, uint64_t bytes) noexcept;
    void unpin_span(const Span& span, uint32_t last) noexcept;
    hanare_status pin_block(Region& region, uint32_t index, bool write) noexcept;
    bool unpin_block(Region& region, uint32_t index) noexcept;
    Result<void> discard(const Span& span, const void* address, uint64_t bytes);
    Result<void> flush_span(const Span& span, bool drop, uint64_t* pinned_dirty);

    const uint64_t block_bytes_;
    const uint64_t local_bytes_;
    uint64_t trimmed_ns_ = 0;  // set_budget() asked the engine
    bool watches_forks_ = true;
    FrameTable frames_;
    std::unique_ptr<store::Store> store_;
    std::optional<store::SlotTable> slots_;  // of adopted regions, as soon as there is one
    EngineOwner engine_{nullptr, nullptr};
    std::unique_ptr<Pager> pager_;
    std::unique_ptr<Keeper> keeper_;
    FaultThreads fault_threads_;

    sys::RankedLock lock_{sys::LockRank::kPool};
    std::vector<std::unique_ptr<Region>> regions_ HANARE_GUARDED_BY(lock_);
    std::optional<MappingBudget> mappings_ HANARE_GUARDED_BY(lock_);
    hanare_counters ended_ HANARE_GUARDED_BY(lock_) = {};  // counters of freed regions
};

}  // namespace hanare::pager
