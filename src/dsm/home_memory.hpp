// SPDX-License-Identifier: Apache-2.0
//
// HomeMemory: shared memory between machines, home-based lazy release consistency with several
// writers (Zhou, Iftode, Li 1996).  A block has a home, the task that touches it first, whose copy
// is the reference.  Others fetch it at a fault, keep a twin from their first write on, and send
// the difference home when they release (diff.hpp); what they have changed they say in notices, by
// which those that synchronise later know which copies to drop.  The home itself writes in place,
// and as long as nobody has a copy nothing is recorded of that (block_state.hpp).
//
// Accesses to blocks that are absent, or protected, raise SIGBUS (userfaultfd), and are served in
// the thread that made them.  resolve() and what peers ask (note_fetch, apply, claim_for) neither
// allocate nor wait for a thread of this task that waits for others; release(), invalidate() and
// refresh() are for ordinary threads.
//
// Who serves peers never waits for a busy block: so threads may keep blocks busy while they wait
// for peers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "dsm/block_list.hpp"
#include "dsm/block_state.hpp"
#include "dsm/counters.hpp"
#include "dsm/fetch.hpp"
#include "dsm/followers.hpp"
#include "dsm/mail.hpp"
#include "dsm/notices.hpp"
#include "dsm/peers.hpp"
#include "dsm/run_list.hpp"
#include "dsm/section_use.hpp"
#include "dsm/segment.hpp"
#include "dsm/twins.hpp"
#include "sys/lock.hpp"
#include "sys/sparse_memory.hpp"
#include "sys/uffd.hpp"

namespace hanare::dsm {

class HomeMemory {
public:
    // The segment's file is shown already, and outlives this.
    static Result<std::unique_ptr<HomeMemory>> make(Segment& segment, Peers& peers,
                                                    Counters& counters);
    HomeMemory(const HomeMemory&) = delete;
    HomeMemory& operator=(const HomeMemory&) = delete;

    // So that the access is worth another try.  In the thread that made it, with signals blocked.
    hanare_status resolve(uint32_t block, bool write) noexcept;

    // These allocate nothing, so that no block stays busy.
    //
    // Of what release() says; more than that is all blocks.
    static constexpr uint32_t kChangedRunsMax = 16 * 1024;
    // What was written by now is at the homes when this returns, and what `changed` gets are the
    // blocks of which others have copies that are old.
    hanare_status release(RunList& changed) noexcept;
    // Copies of these are dropped.  What was written to them here is sent home first.
    hanare_status invalidate(std::span<const Run> runs) noexcept;
    // What a home has sent of a block, with all changes of it that this task knows of.
    struct Update {
        uint32_t home;
        uint32_t block;
        const std::byte* data;
    };
    // What was dropped and had been needed since the last call is here again: from the updates,
    // which are in order, or fetched.  After a barrier.
    hanare_status refresh(std::span<const Update> updates) noexcept;
    // The first task from that one on for which there is an update before this barrier; or
    // Followers::kNobody.
    uint32_t next_follower(uint32_t from) noexcept;
    // Writes it to `room`, of update_bytes_max(); `known` are the notices that count by now, of all
    // tasks.  Its bytes, or 0.
    size_t make_update(uint32_t task, uint32_t barrier, std::span<const uint64_t> known,
                       std::byte* room) noexcept;
    // Fetches what of these is absent and has been fetched before, all of it at once; what cannot
    // be fetched now is left to faults.  In order.
    void fetch_before_missed(std::span<const uint32_t> blocks) noexcept;
    const RecentMisses& misses() const noexcept { return misses_; }

    // ---- what peers ask
    static constexpr uint32_t kClaimsMax = 256;
    // Another task is about to read copies.  False here and below: nobody asks that.
    bool note_fetch(uint64_t first, uint64_t count, HomeAnswer& answer) noexcept;
    // And `snapshot`, which has room for `count` blocks, gets what they hold.  `follower`: the
    // task, after a barrier; or Followers::kNobody.
    bool take_snapshot(uint64_t first, uint64_t count, uint32_t follower, HomeAnswer& answer,
                       std::byte* snapshot) noexcept;
    // And wants to be their home; `grants` has room for `count`.
    bool move_to(uint32_t task, uint64_t first, uint64_t count, HomeAnswer& answer,
                 uint8_t* grants) noexcept;
    // Diffs of blocks whose home this is; up to the first that has another one.
    bool apply(std::span<const std::byte> diffs, HomeAnswer& answer) noexcept;
    // Whose homes these blocks are (ranks, 2 bytes each); of the first `claims` of them it is
    // `task`'s, where they were nobody's, and of the others kNobodysHome.  False: this task does
    // not know that of these blocks.
    static constexpr uint16_t kNobodysHome = UINT16_MAX;
    bool claim_for(uint32_t task, uint64_t first, uint64_t count, uint64_t claims,
                   uint16_t* homes) noexcept;

private:
    // Who is asked for the homes of 256 blocks in a row.
    static constexpr uint32_t kDirectoryBlocks = 256;
    static constexpr uint32_t kClaimWindowMax = 64;
    // Of how many it is asked where they are, at least.
    static constexpr uint32_t kToldMin = 32;
    static constexpr uint32_t kFetchWindowMin = 4;
    static constexpr uint32_t kFetchWindowMax = Fetch::kBlocksMax;
    // What lies behind a word that several write to in turns does not go round with it.
    static constexpr uint32_t kMoveWindowMin = 1;
    static constexpr uint32_t kMoveWindowMax = 32;
    static constexpr uint32_t kWriteWindowMax = 32;
    // Of an array of which rows, or parts of them, are used by others.
    static constexpr uint32_t kRowGapMax = 16;
    static constexpr uint32_t kPauseMin = 16;
    static constexpr uint32_t kPauseMax = 1024;
    static constexpr uint64_t kPauseBlocks = 512;  // by then, what is in vain has cost something
    static constexpr uint32_t kFetchesAtOnce = 64;
    // Looking at that many takes some microseconds.
    static constexpr uint32_t kRememberedMax = 1024;
    // So many blocks are compared at each release, at most, which takes some ten microseconds, and
    // each for so many after it was changed, or fetched, last.
    static constexpr uint32_t kSteadyMax = 256;
    static constexpr uint32_t kIdleMax = 8;
    // Of how many copies that were dropped the memory is kept, since they come again: 64 MiB.
    static constexpr uint32_t kDroppedMax = 16 * 1024;

    struct Steady {
        uint32_t block;
        // For how many releases it has not changed, and nobody has fetched it.
        uint32_t unchanged = 0;
        uint32_t unread = 0;
        bool is_shared = true;  // others have copies without a notice
    };

    // How many blocks are had at once, where accesses go from one to the next.  Guesses of several
    // threads may mix: then less is had at once.
    struct Window {
        std::atomic<uint32_t> next{UINT32_MAX};
        std::atomic<uint32_t> blocks{0};
        // `gap`: so many may lie between.
        uint32_t take(uint32_t block, uint32_t least, uint32_t most, uint32_t gap = 0) noexcept;
    };

    HomeMemory(Segment& segment, Peers& peers, Counters& counters, sys::Userfault userfault,
               sys::SparseMemory states, sys::SparseMemory directory, sys::SparseMemory diffs,
               Twins twins, BlockList dirty, BlockList served, BlockList fetched, BlockList dropped,
               RunList early);

    std::atomic<uint32_t>& state(uint32_t block) const noexcept {
        return reinterpret_cast<std::atomic<uint32_t>*>(states_.address())[block];
    }
    // What is under way to that home.
    std::byte* diffs_of(uint32_t home) const noexcept {
        return diffs_.address() + home * kMailDiffBytes;
    }
    uint32_t directory_of(uint32_t block) const noexcept {
        return block / kDirectoryBlocks % peers_.size();
    }
    // Whether the block was in that state, and is this thread's now.
    bool try_take(uint32_t block, uint32_t& seen) noexcept;
    void take(uint32_t block, uint32_t& seen) noexcept;
    void give_back(uint32_t block) noexcept;

    hanare_status make_writable(uint32_t block, uint32_t seen) noexcept;
    hanare_status make_writable_here(uint32_t block, uint32_t seen) noexcept;
    hanare_status write_with_twin(uint32_t block) noexcept;
    hanare_status obtain_home(uint32_t block) noexcept;
    hanare_status become_home(Fetch& fetch, uint32_t taken, uint32_t rights) noexcept;
    bool note_fetch_of(uint32_t block) noexcept;
    void protect(uint64_t first, uint64_t count) noexcept;
    // note(block) for each, up to the first whose home is elsewhere.
    template <typename Note>
    bool note_each(uint64_t first, uint64_t count, HomeAnswer& answer, const Note& note) noexcept {
        if (first >= segment_.blocks() || count > segment_.blocks() - first) return false;
        answer = {};
        for (; answer.count < count; ++answer.count) {
            const auto block = static_cast<uint32_t>(first + answer.count);
            if (note(block)) continue;
            answer.home = BlockState::home(state(block).load());
            break;
        }
        return true;
    }
    bool may_move(uint32_t block, uint32_t seen) const noexcept;
    void give_away(uint32_t first, uint32_t count, uint32_t task) noexcept;
    void note_home(uint32_t block, uint32_t home) noexcept;
    void note_next_home(const Fetch& fetch) noexcept;
    uint32_t take_neighbours(uint32_t block, uint32_t like, uint32_t most) noexcept;
    hanare_status obtain(uint32_t block, bool write) noexcept;
    hanare_status obtain_here(uint32_t block) noexcept;
    hanare_status obtain_copy(uint32_t block, bool write) noexcept;
    hanare_status find_homes(uint32_t block) noexcept;
    hanare_status ask_for_homes(uint32_t block, uint32_t count, uint32_t claims,
                                uint16_t* homes) noexcept;
    int map(uint32_t first, uint32_t count, bool write_protected) noexcept;
    int forbid_writes(uint32_t first, uint32_t count) noexcept;
    // Before the program may write to it.
    void note_write(uint32_t block) noexcept;
    void finish(uint32_t block, uint32_t rights) noexcept;
    // It was fetched; others wait for it still.
    void note_fetched(uint32_t block) noexcept;
    // For refresh().
    void remember(uint32_t block) noexcept;
    hanare_status map_again(uint32_t block, uint32_t rights) noexcept;

    void close_served(std::span<uint32_t> served, RunList& changed) noexcept;
    void close_served_run(uint32_t first, uint32_t count, RunList& changed) noexcept;
    void close_moved(uint32_t block, RunList& changed) noexcept;
    void close_dirty(std::span<uint32_t> dirty, RunList& changed) noexcept;
    void close_dirty_copy(uint32_t block) noexcept;
    bool become_steady(uint32_t block) noexcept;
    void close_steady(RunList& changed) noexcept;
    bool close_steady_block(Steady& steady, RunList& changed) noexcept;
    bool copy_steady(uint32_t block, uint32_t follower, std::byte* to) noexcept;
    bool is_steady(uint32_t block) const noexcept {
        return BlockState::is_steady(state(block).load());
    }
    void end_steady(uint32_t block) noexcept;
    hanare_status drop(uint32_t first, uint32_t end) noexcept;
    uint32_t take_copies(uint32_t first, uint32_t end) noexcept;
    void trim() noexcept;
    void add_diff(uint32_t block, uint32_t home) noexcept;
    void note_failure(hanare_status status) noexcept {
        if (failure_ == HANARE_STATUS_OK) failure_ = status;
    }
    hanare_status send_diffs() noexcept;
    void send_to(uint32_t home) noexcept;
    hanare_status send(uint32_t home, std::span<const std::byte> diffs) noexcept;
    hanare_status send_part(uint32_t home, std::span<const std::byte> diffs,
                            HomeAnswer& answer) noexcept;
    enum class After { kBarrier, kLock };
    hanare_status fetch_all_again(std::span<const uint32_t> fetched, After after) noexcept;
    hanare_status fetch_again(std::span<const uint32_t> fetched, After after, size_t& used,
                              uint32_t& remembered) noexcept;
    hanare_status take_updates(std::span<const Update> updates,
                               std::span<const uint32_t> wanted) noexcept;
    bool take_update(const Update& update) noexcept;

    Segment& segment_;
    Peers& peers_;
    Counters& counters_;
    const sys::Userfault userfault_;
    const sys::SparseMemory states_;
    const sys::SparseMemory directory_;  // ranks plus one; 0: nobody's
    const sys::SparseMemory diffs_;      // kMailDiffBytes for each home
    Twins twins_;
    sys::RankedLock directory_lock_{sys::LockRank::kShared};
    Window claims_;
    Window fetches_;
    Window moves_;
    Window writes_;
    // Differences are under way, which blocks that move now would lack.
    std::atomic<bool> is_sending_{false};
    BlockList dirty_;
    BlockList served_;
    BlockList fetched_;  // since the last refresh
    BlockList dropped_;  // copies, since trim()
    RecentMisses misses_;

    // Steady blocks' twins, that they are steady, and who follows them.
    sys::RankedLock steady_lock_{sys::LockRank::kShared};
    Followers followers_ HANARE_GUARDED_BY(steady_lock_);

    std::mutex release_lock_;                   // what follows
    std::vector<size_t> diff_bytes_;            // by home
    hanare_status failure_ = HANARE_STATUS_OK;  // of what was sent, or protected, by now
    std::array<Steady, kSteadyMax> steady_;
    uint32_t steady_count_ = 0;
    std::vector<uint32_t> snapshots_;  // by home, of the refresh that is going on
    std::array<std::optional<Fetch>, kFetchesAtOnce> again_;  // and what is under way
    RunList early_;  // sent home since the last release, when they were dropped
    // Since a refresh was left out, which is done again after `pause_` of them.
    uint32_t refreshes_ = 0;
    uint64_t refreshed_blocks_ = 0;
    uint32_t pause_ = kPauseMin;
    size_t expected_ = 0;  // that are in fetched_, if nothing else is needed
};

}  // namespace hanare::dsm
