// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/ahead_reads.hpp"

#include <array>
#include <ctime>

#include "pager/fault/pager.hpp"

namespace hanare::pager {

namespace {

constexpr uint64_t kSpinNs = 100'000;
constexpr uint32_t kYields = 200;
constexpr uint32_t kPauseUs = 100;

uint64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

AheadReads::SpinTime::SpinTime() noexcept : end_ns_(now_ns() + kSpinNs) {}

bool AheadReads::SpinTime::is_over() const noexcept {
    __builtin_ia32_pause();
    return now_ns() >= end_ns_;
}

void AheadReads::start(Frame* const* frames, size_t count) noexcept {
    if (count == 0) return;
    std::array<store::IoRequest*, kBatch> requests{};
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        requests[i] = &frames[i]->io;
        bytes += frames[i]->io.bytes;
    }
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    // What has started belongs to whoever completes it, and may be completed already.
    const size_t started = reads_->start(requests.data(), count);
    in_flight_.fetch_add(static_cast<int32_t>(started), std::memory_order_seq_cst);
    // Who waits for a frame has seen that none was in flight, and may now wait for these.
    pager_.frames().note_progress();
    for (size_t i = started; i < count; ++i) {
        bytes_.fetch_sub(frames[i]->io.bytes, std::memory_order_relaxed);
        pager_.abandon_fill(*frames[i]);
    }
}

bool AheadReads::read(uint64_t offset, std::byte* memory, size_t bytes,
                      hanare_status* status) noexcept {
    if (reads_ == nullptr) return false;
    DirectRead direct;
    direct.kind = store::IoKind::kRead;
    direct.offset = offset;
    direct.memory = memory;
    direct.bytes = bytes;
    store::IoRequest* const request = &direct;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (reads_->start(&request, 1) == 0) {
        bytes_.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    in_flight_.fetch_add(1, std::memory_order_seq_cst);
    wait_while([&] { return !direct.done.load(std::memory_order_acquire); });
    *status = direct.status;
    return true;
}

// At first only to other threads that are ready; but the starter may have a lower priority.
void AheadReads::yield_to_starter(uint32_t turn) noexcept {
    sys::yield_for_us(turn < kYields ? 0 : kPauseUs);
}

void AheadReads::poll() noexcept {
    if (in_flight_.load(std::memory_order_relaxed) <= 0 || !try_lead()) return;
    while (complete_next(false)) {
    }
    stop_leading();
}

void AheadReads::stop_leading() noexcept {
    leading_.store(false, std::memory_order_seq_cst);
    if (followers_.load(std::memory_order_seq_cst) == 0) return;
    changes_.fetch_add(1, std::memory_order_seq_cst);
    sys::futex_wake_all(changes_);
}

// The caller leads.
bool AheadReads::complete_next(bool wait) noexcept {
    if (wait && in_flight_.load(std::memory_order_seq_cst) <= 0) return false;
    store::IoRequest* const request = reads_->next_completed(wait);
    if (request == nullptr) return false;
    in_flight_.fetch_sub(1, std::memory_order_seq_cst);
    bytes_.fetch_sub(request->bytes, std::memory_order_relaxed);
    auto* const io = static_cast<FrameIo*>(request);
    if (io->frame != nullptr) {
        pager_.finish_fill(*io->frame, io->status);
    } else {
        static_cast<DirectRead*>(io)->done.store(true, std::memory_order_release);
    }
    return true;
}

}  // namespace hanare::pager
