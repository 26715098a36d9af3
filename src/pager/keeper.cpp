// SPDX-License-Identifier: Apache-2.0
#include "pager/keeper.hpp"

#include <algorithm>
#include <atomic>

#include "base/units.hpp"
#include "pager/fault/holds.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"
#include "sys/thread_count.hpp"

namespace hanare::pager {

namespace {

static_assert(WriteBackDepth::kAloneShare * FrameTable::kLowWaterBytesMax <=
              store::IoChannel::kInFlightBytesMax);

// In flight of a flush, also beside reads.
constexpr uint64_t kFlushBytesMin = 8 * kMiB;
// Evicted before the device is told: it takes neighbouring blocks in one transfer.
constexpr uint64_t kEvictionBatchBytes = 1 * kMiB;
// Looked at in one turn.
constexpr uint32_t kReadAheadBlocksMax = 256;

}  // namespace

Result<void> Keeper::start() {
    const sys::SignalBlock inherited_by_the_thread;
    const auto body = [](void* self) -> void* {
        static_cast<Keeper*>(self)->loop();
        return nullptr;
    };
    if (const int error = pthread_create(&thread_, nullptr, body, this); error != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot start the keeper thread");
    }
    pthread_setname_np(thread_, "hanare-keeper");
    running_ = true;
    return {};
}

void Keeper::serve(void (*tick)() noexcept, int every_ms) noexcept {
    tick_ = tick;
    tick_every_ms_ = every_ms;
    for (;;) loop();
}

void Keeper::pause() noexcept {
    pausing_.store(1, std::memory_order_seq_cst);
    if (!works_.load(std::memory_order_seq_cst)) return;
    kick();
    while (paused_.load(std::memory_order_seq_cst) == 0) sys::futex_wait(paused_, 0);
}

void Keeper::resume() noexcept {
    pausing_.store(0, std::memory_order_seq_cst);
    sys::futex_wake_all(pausing_);
}

void Keeper::forget_in_child() noexcept {
    works_.store(false);
    paused_.store(0);
    pausing_.store(0);
}

void Keeper::stay_paused() noexcept {
    paused_.store(1, std::memory_order_seq_cst);
    sys::futex_wake_all(paused_);
    while (pausing_.load(std::memory_order_seq_cst) != 0) sys::futex_wait(pausing_, 1);
    paused_.store(0, std::memory_order_seq_cst);
}

void Keeper::sleep() noexcept {
    asleep_.store(true, std::memory_order_seq_cst);
    if (!kicked_.exchange(false, std::memory_order_seq_cst)) channel_->wait(tick_every_ms_);
    asleep_.store(false, std::memory_order_seq_cst);
}

void Keeper::watch(int descriptor, void (*readable)() noexcept) noexcept {
    readable_.store(readable, std::memory_order_relaxed);
    watched_.store(descriptor, std::memory_order_relaxed);
    watch_changes_.fetch_add(1, std::memory_order_release);
    kick();
}

void Keeper::serve_watched() noexcept {
    const uint32_t changes = watch_changes_.load(std::memory_order_acquire);
    if (changes != watch_changes_seen_) {
        watch_changes_seen_ = changes;
        channel_->watch(watched_.load(std::memory_order_relaxed));
    }
    if (changes != 0 && channel_->take_watched()) readable_.load(std::memory_order_relaxed)();
}

void Keeper::stop() noexcept {
    if (!running_) return;
    stopping_.store(true, std::memory_order_seq_cst);
    kick();
    pthread_join(thread_, nullptr);
    running_ = false;
}

void Keeper::kick() noexcept {
    kicked_.store(true, std::memory_order_seq_cst);
    if (asleep_.exchange(false, std::memory_order_seq_cst)) channel_->notify();
}

// What a write-back of the frame is about, all the time that it takes.
uint64_t Keeper::bytes_cleaned(const Frame& frame) noexcept {
    return frame.sparse ? frame.region->bytes_of_parts(frame.leaving) : frame.bytes;
}

bool Keeper::is_cleaning_at_most() const noexcept {
    return cleaning_bytes_.load(std::memory_order_relaxed) >=
           cleaning_bytes_max_.load(std::memory_order_relaxed);
}

void Keeper::run(FlushJob& job) noexcept {
    {
        const sys::LockGuard guard(jobs_lock_);
        jobs_.push_back(&job);
    }
    kick();
    while (job.done.load(std::memory_order_acquire) == 0) sys::futex_wait(job.done, 0);
}

void Keeper::loop() noexcept {
    const sys::SignalBlock none_here;
    const sys::OwnThread own;
    works_.store(true, std::memory_order_seq_cst);
    for (;;) {
        const bool pausing = pausing_.load(std::memory_order_seq_cst) != 0;
        if (pausing) {
            while (complete_some() || submit_waiting()) {
            }
            channel_->flush();
            if (channel_->in_flight() > 0) {
                channel_->wait(-1);
            } else {
                stay_paused();
            }
            continue;
        }
        if (tick_ != nullptr) {
            constexpr uint64_t kNsPerMs = 1'000'000;
            const uint64_t now_ns = sys::now_ns();
            if (now_ns - ticked_ns_ >= static_cast<uint64_t>(tick_every_ms_) * kNsPerMs) {
                ticked_ns_ = now_ns;
                tends_store_ = true;
                tick_();
            }
        }
        serve_watched();
        bool progress = complete_some();
        progress |= submit_waiting();
        progress |= read_ahead_some();
        progress |= flush_some();
        progress |= evict_some();
        progress |= tend_store(!progress && channel_->in_flight() == 0);
        if (progress) continue;
        channel_->flush();
        if (pager_.populate_ahead()) continue;
        if (stopping_.load(std::memory_order_acquire) && channel_->in_flight() == 0) break;
        sleep();
        write_failed_ = false;
    }
    if (has_request_) drop_request();
}

// Beside other work it gets a third of the time at most.
bool Keeper::tend_store(bool is_idle) noexcept {
    if (!tends_store_) return false;
    const uint64_t begin_ns = sys::now_ns();
    if (!is_idle && begin_ns < tend_at_ns_) return false;
    tends_store_ = pager_.tend_store();
    const uint64_t end_ns = sys::now_ns();
    tend_at_ns_ = end_ns + 2 * (end_ns - begin_ns);
    return tends_store_;
}

bool Keeper::submit_waiting() noexcept {
    bool any = false;
    while (waiting_ != nullptr || !continuing_.empty()) {
        if (waiting_ == nullptr) {
            waiting_ = continuing_.front();
            continuing_.remove(waiting_);
        }
        if (!channel_->submit(waiting_->io)) break;
        waiting_ = nullptr;
        any = true;
    }
    return any;
}

bool Keeper::complete_some() noexcept {
    bool any = false;
    while (store::IoRequest* request = channel_->next_completed()) {
        complete(*static_cast<FrameIo*>(request)->frame);
        any = true;
    }
    return any;
}

void Keeper::complete(Frame& frame) noexcept {
    const hanare_status status = frame.io.status;
    if (frame.io.kind == store::IoKind::kRead) {
        frame.in_keeper = false;
        pager_.finish_fill(frame, status);
        return;
    }
    if (status == HANARE_STATUS_OK && pager_.prepare_next_write(frame)) {
        continuing_.push_back(&frame);
        return;
    }
    cleaning_bytes_ -= bytes_cleaned(frame);
    if (frame.job == nullptr) leaving_bytes_ -= bytes_cleaned(frame);
    frame.in_keeper = false;
    FlushJob* job = std::exchange(frame.job, nullptr);
    if (status != HANARE_STATUS_OK) write_failed_ = true;
    pager_.finish_write(frame, status, frame.park);
    if (job == nullptr) return;
    --job->in_flight;
    if (status != HANARE_STATUS_OK) job->status = status;
    finish_if_done(*job);
}

bool Keeper::submit(Frame& frame) noexcept {
    frame.in_keeper = true;
    if (waiting_ != nullptr) {
        continuing_.push_back(&frame);
        return false;
    }
    if (channel_->submit(frame.io)) return true;
    waiting_ = &frame;
    return false;
}

bool Keeper::read_ahead_some() noexcept {
    bool any = false;
    // A bounded part, since completions and evictions wait meanwhile.
    for (uint32_t blocks = 0; waiting_ == nullptr && blocks < kReadAheadBlocksMax; ++blocks) {
        if (!has_request_) {
            if (!pager_.next_read_ahead(request_)) return any;
            has_request_ = true;
        }
        if (request_.count == 0 || request_.region->is_closing()) {
            drop_request();
            any = true;
            continue;
        }
        Frame* frame = nullptr;
        const Pager::FillStart start =
            pager_.start_fill(*request_.region, request_.first, Pager::Reader::kKeeper, &frame);
        if (start == Pager::FillStart::kNoFrame) {
            // Write-backs in flight will bring one, and so will new frames; else the advice is not
            // worth evicting what may be in use.
            if (cleaning_bytes_ == 0 && !evicting_ && !pager_.frames().is_populating()) {
                drop_request();
            }
            return any;
        }
        request_.first += static_cast<uint32_t>(request_.step);
        --request_.count;
        any = true;
        if (start == Pager::FillStart::kStarted) submit(*frame);
    }
    return any;
}

void Keeper::drop_request() noexcept {
    request_.region->leave();
    has_request_ = false;
}

bool Keeper::evict_some() noexcept {
    uint64_t bytes = 0;
    while (bytes < kEvictionBatchBytes) {
        const uint64_t evicted = evict_next();
        if (evicted == 0) break;
        bytes += evicted;
        if (channel_->has_completed()) break;  // somebody may wait for it
    }
    return bytes > 0;
}

uint64_t Keeper::cleaning_bytes_max(uint64_t low_bytes) noexcept {
    write_back_depth_.note_program(pager_.reads_begun(), pager_.begun_bytes(),
                                   pager_.frames().frame_budget_bytes());
    return write_back_depth_.bytes_max(low_bytes);
}

// The size of the block that it has evicted or begun to write back, 0 if none.
uint64_t Keeper::evict_next() noexcept {
    if (waiting_ != nullptr || write_failed_) return 0;
    if (pager_.frames().excess_bytes() > 0) {
        pager_.poll_transfers();
        pager_.frames().trim();
    }
    // What is being written counts until it has left.
    const uint64_t leaving = leaving_bytes_ + pager_.storing_bytes();
    const bool excess = pager_.frames().excess_bytes() > leaving;
    if (!pager_.evicts_ahead() && !excess) {
        evicting_ = false;
        return 0;
    }
    const uint64_t low = pager_.frames().low_water_bytes();
    cleaning_bytes_max_ = cleaning_bytes_max(low);
    const uint64_t available =
        pager_.frames().available_bytes() + cleaning_bytes_ + pager_.storing_bytes();
    // Frames that are on their way need nobody's room.
    const bool is_low = available < low && !pager_.frames().is_populating();
    if (is_low || excess) evicting_ = true;
    if (available >= 2 * low && !excess) evicting_ = false;
    // What is written for the first time and will not fit: the device need not be idle until then.
    const bool keeps = pager_.frames().replacement() == Replacement::kSecondChance;
    const bool ahead = keeps && write_back_depth_.is_ahead_of_need(
                                    pager_.frames().frame_budget_bytes(), available);
    if ((!evicting_ && !ahead) || is_cleaning_at_most()) return 0;

    // A budget that shrinks by little must not withdraw what is in use.
    FrameQueue queue = FrameQueue::kNone;
    Frame* frame = pager_.frames().select_victim(queue, false, excess);
    if (frame == nullptr) return 0;
    if (pager_.frames().wants_hidden(*frame, queue)) {
        const uint64_t hidden_bytes = frame->bytes;
        return pager_.hide_victim(*frame) ? hidden_bytes : 0;
    }
    const bool is_dropped = queue == FrameQueue::kDrop && evicting_;
    const Park park = is_dropped || !keeps ? Park::kFree : Park::kSecondChance;
    FrameRun run(*frame);
    const Pager::Together together = pager_.withdraw_run(*frame, queue, park, true, run);
    if (together == Pager::Together::kFailed) return 0;
    uint64_t evicted_bytes = 0;
    for (uint32_t i = 0; i < run.count(); ++i) {
        const uint64_t bytes = run[i].bytes;
        bool dirty = (run[i].region->block(run[i].block).load() & block_word::kDirty) != 0;
        if (together == Pager::Together::kNo &&
            pager_.withdraw(run[i], park, &dirty) != HANARE_STATUS_OK) {
            continue;
        }
        if (!dirty) write_back_depth_.note_clean(bytes);
        finish_or_write(run[i], dirty, park, nullptr);
        evicted_bytes += bytes;
    }
    return evicted_bytes;
}

void Keeper::start_write(Frame& frame, Park park, FlushJob* job) noexcept {
    if (const hanare_status status = pager_.prepare_write(frame); status != HANARE_STATUS_OK) {
        write_failed_ = true;
        pager_.finish_write(frame, status, park);
        if (job != nullptr) job->status = status;
        return;
    }
    frame.park = park;
    frame.job = job;
    if (job != nullptr) ++job->in_flight;
    cleaning_bytes_ += bytes_cleaned(frame);
    if (job == nullptr) leaving_bytes_ += bytes_cleaned(frame);
    write_back_depth_.note_written(frame.io.bytes);
    submit(frame);
}

// Somebody waits for a flush, so it takes more of the device than write-back does.
uint64_t Keeper::flush_bytes_max() noexcept {
    return std::max(kFlushBytesMin, cleaning_bytes_max(pager_.frames().low_water_bytes()));
}

bool Keeper::flush_some() noexcept {
    FlushJob* job = nullptr;
    {
        const sys::LockGuard guard(jobs_lock_);
        job = jobs_.front();
    }
    if (job == nullptr) return false;
    if (job->drop && job->next == job->first) {
        // What was to be read ahead is not wanted any more.
        pager_.drop_read_ahead(*job->region, job->first, job->last);
        pager_.poll_transfers();
        if (has_request_ && request_.region == job->region &&
            request_.overlaps(job->first, job->last)) {
            drop_request();
        }
    }
    bool any = false;
    while (job->next < job->last && waiting_ == nullptr && cleaning_bytes_ < flush_bytes_max()) {
        if (flush_block(*job) == Step::kWait) return any;
        ++job->next;
        any = true;
    }
    return finish_if_done(*job) || any;
}

bool Keeper::finish_if_done(FlushJob& job) noexcept {
    if (job.next < job.last || job.in_flight > 0) return false;
    {
        const sys::LockGuard guard(jobs_lock_);
        if (!job.linked()) return false;
        jobs_.remove(&job);
    }
    job.done.store(1, std::memory_order_release);
    sys::futex_wake_all(job.done);
    return true;
}

// One block of a flush: kNext when it is dealt with, kWait when a transfer of ours must end first.
Keeper::Step Keeper::flush_block(FlushJob& job) noexcept {
    Block& block = job.region->block(job.next);
    for (;;) {
        const uint32_t word = block.load();
        switch (block_word::state(word)) {
            case BlockState::kAbsent:
            case BlockState::kFilling:  // not mapped, and equal to the store
            case BlockState::kReading: return Step::kNext;
            case BlockState::kStaged:
                if ((word & block_word::kDirty) == 0 && !job.drop) return Step::kNext;
                if (block.try_enter(word, BlockState::kWriting)) {
                    flush_staged(job, block, (word & block_word::kDirty) != 0);
                    return Step::kNext;
                }
                break;
            case BlockState::kReadOnly:
                if (!job.drop) return Step::kNext;
                [[fallthrough]];
            case BlockState::kSparse:
                if ((word & block_word::kDirty) == 0 && !job.drop) return Step::kNext;
                [[fallthrough]];
            case BlockState::kWritable:
                if (block_word::pinned(word)) {
                    if ((word & block_word::kDirty) != 0) ++job.pinned_dirty;
                    return Step::kNext;
                }
                if (block.try_enter(word, BlockState::kWithdrawing)) {
                    // A system call that uses it is a pin that nobody has to ask for.
                    if (holds.living_cover(job.region->address_of(job.next),
                                           job.region->block_bytes)) {
                        block.leave(block_word::state(word));
                        if ((word & block_word::kDirty) != 0) ++job.pinned_dirty;
                        return Step::kNext;
                    }
                    flush_mapped(job, block);
                    return Step::kNext;
                }
                break;
            case BlockState::kWriting:
            case BlockState::kExtending:
                if (job.region->frame_of(block)->in_keeper) return Step::kWait;
                [[fallthrough]];
            default: pager_.wait(block, word);  // its owner does not need the keeper
        }
    }
}

void Keeper::flush_mapped(FlushJob& job, Block& block) noexcept {
    Frame& frame = *job.region->frame_of(block);
    pager_.frames().dequeue(frame);
    // Who drops it may be halfway through it.
    if (job.drop) std::atomic_ref(frame.use).store(StreamUse::kNone, std::memory_order_relaxed);
    job.region->enter();
    bool dirty = false;
    const Park park = job.drop ? Park::kFree : Park::kKeep;
    const hanare_status status = pager_.withdraw(frame, park, &dirty, true);
    if (status != HANARE_STATUS_OK) {
        job.status = status;
        return;
    }
    finish_or_write(frame, dirty, park, &job);
}

void Keeper::flush_staged(FlushJob& job, Block& block, bool dirty) noexcept {
    Frame& frame = *job.region->frame_of(block);
    pager_.frames().dequeue(frame);
    job.region->enter();
    finish_or_write(frame, dirty, job.drop ? Park::kFree : Park::kKeep, &job);
}

// Ends the eviction of a withdrawn block.
void Keeper::finish_or_write(Frame& frame, bool dirty, Park park, FlushJob* job) noexcept {
    if (dirty) {
        start_write(frame, park, job);
    } else {
        pager_.finish_clean(frame, park);
    }
}

}  // namespace hanare::pager
