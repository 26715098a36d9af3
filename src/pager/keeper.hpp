// SPDX-License-Identifier: Apache-2.0
//
// Keeper: the pool's background thread.  It writes back before frames run out, flushes, and reads
// ahead what faulting threads leave to it; so that a fault normally finds its block staged or a
// frame free.  All asynchronous I/O but what faults start (fault_transfers.hpp) is started and
// completed here.  The thread runs with every signal blocked and never touches far memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>

#include "base/intrusive_list.hpp"
#include "base/result.hpp"
#include "pager/fault/pager.hpp"
#include "pager/write_back_depth.hpp"

namespace hanare::pager {

// Write every dirty, unpinned block of [first, last) back; lives on the stack of the thread that
// waits for it.  `drop` also gives the frames up.
struct FlushJob : ListLink {
    Region* region = nullptr;
    uint32_t first = 0;
    uint32_t next = 0;
    uint32_t last = 0;
    bool drop = false;
    uint32_t in_flight = 0;
    uint64_t pinned_dirty = 0;  // blocks left dirty because they are pinned
    hanare_status status = HANARE_STATUS_OK;
    std::atomic<uint32_t> done{0};
};

class Keeper final : public KeeperSignal {
public:
    Keeper(Pager& pager, std::unique_ptr<store::IoChannel> channel)
        : pager_(pager), channel_(std::move(channel)) {}
    ~Keeper() override { stop(); }

    Result<void> start();
    // Does the keeper's work in the calling thread, which does nothing else any more, and calls
    // `tick` about so often.
    [[noreturn]] void serve(void (*tick)() noexcept, int every_ms) noexcept;
    // Returns when nothing is in flight and the keeper does nothing, until resume(); at once if it
    // does not run.  By one thread at a time, with no lock held that anybody may hold who waits for
    // a transfer.
    void pause() noexcept;
    void resume() noexcept;
    // In the child of a fork there is none, whatever the parent's was about to do.
    void forget_in_child() noexcept;

    // From now on the keeper's thread calls `readable` when the descriptor is, soon if not at once;
    // -1: no more, though a call may be under way.  It neither waits nor allocates, nor takes a
    // lock that anybody holds who waits for the keeper.  Any thread.
    void watch(int descriptor, void (*readable)() noexcept) noexcept;

    // Finishes what is in flight and joins the thread.  Idempotent.
    void stop() noexcept;

    void kick() noexcept override;
    bool is_cleaning_at_most() const noexcept override;

    // Whether somebody is there who runs jobs.
    bool works() const noexcept { return works_.load(std::memory_order_seq_cst); }

    // Runs the job in the keeper and returns when it is done.  Normal context.
    void run(FlushJob& job) noexcept;

private:
    void loop() noexcept;
    void sleep() noexcept;
    void serve_watched() noexcept;
    void stay_paused() noexcept;
    bool complete_some() noexcept;
    bool submit_waiting() noexcept;
    bool read_ahead_some() noexcept;
    bool evict_some() noexcept;
    static uint64_t bytes_cleaned(const Frame& frame) noexcept;
    uint64_t cleaning_bytes_max(uint64_t low_bytes) noexcept;
    uint64_t flush_bytes_max() noexcept;
    uint64_t evict_next() noexcept;
    bool flush_some() noexcept;
    bool tend_store(bool is_idle) noexcept;

    bool submit(Frame& frame) noexcept;
    void complete(Frame& frame) noexcept;
    void start_write(Frame& frame, Park park, FlushJob* job) noexcept;
    void finish_or_write(Frame& frame, bool dirty, Park park, FlushJob* job) noexcept;
    void drop_request() noexcept;

    enum class Step { kNext, kWait };
    Step flush_block(FlushJob& job) noexcept;
    void flush_mapped(FlushJob& job, Block& block) noexcept;
    void flush_staged(FlushJob& job, Block& block, bool dirty) noexcept;
    bool finish_if_done(FlushJob& job) noexcept;

    Pager& pager_;
    std::unique_ptr<store::IoChannel> channel_;
    pthread_t thread_{};
    bool running_ = false;
    void (*tick_)() noexcept = nullptr;
    int tick_every_ms_ = -1;
    uint64_t ticked_ns_ = 0;
    std::atomic<int> watched_{-1};
    std::atomic<void (*)() noexcept> readable_{nullptr};
    std::atomic<uint32_t> watch_changes_{0};
    uint32_t watch_changes_seen_ = 0;  // the keeper's own
    std::atomic<bool> stopping_{false};
    std::atomic<bool> works_{false};    // the loop has begun
    std::atomic<uint32_t> pausing_{0};  // futexes
    std::atomic<uint32_t> paused_{0};
    std::atomic<bool> kicked_{false};
    std::atomic<bool> asleep_{false};

    // Write-backs in flight, and how many may be; only the keeper writes them.
    std::atomic<uint64_t> cleaning_bytes_{0};
    std::atomic<uint64_t> cleaning_bytes_max_{WriteBackDepth::kBesideReadsBytesMax};

    // The keeper's own.
    uint64_t leaving_bytes_ = 0;  // of the write-backs, those of evictions
    bool has_request_ = false;
    ReadAhead request_;
    bool evicting_ = false;  // on the way from the low to the high water mark
    WriteBackDepth write_back_depth_;
    bool tends_store_ = false;
    uint64_t tend_at_ns_ = 0;          // not before, beside other work
    bool write_failed_ = false;        // the store refuses writes: no more before the next wake-up
    Frame* waiting_ = nullptr;         // prepared, but the channel was full
    IntrusiveList<Frame> continuing_;  // sparse, the next write is prepared

    sys::RankedLock jobs_lock_{sys::LockRank::kRequests};
    IntrusiveList<FlushJob> jobs_ HANARE_GUARDED_BY(jobs_lock_);
};

}  // namespace hanare::pager
