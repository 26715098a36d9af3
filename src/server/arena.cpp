// SPDX-License-Identifier: Apache-2.0
#include "server/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "sys/futex.hpp"
#include "sys/memory_limits.hpp"
#include "sys/populate.hpp"
#include "sys/signal.hpp"
#include "telemetry/log.hpp"

namespace hanare::server {
namespace {

// How many steps are touched before it is looked again what others have left.
constexpr uint64_t kStepsUntilLook = 64;
// Of what this process may have, for everything else.
constexpr uint64_t kOtherShare = 16;

}  // namespace

Result<std::unique_ptr<Arena>> Arena::open(const Settings& settings) {
    const uint64_t bytes = round_down(settings.bytes, kStepBytes);
    if (bytes == 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "memory to lend out: %s; at least %s is needed",
                    format_size(settings.bytes).c_str(), format_size(kStepBytes).c_str());
    }
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(bytes, kStepBytes));
    HANARE_TRY(memory.hide_from_children());
    // Other people's data is for nobody who looks at a core file; where the kernel does not know
    // of that, or of huge pages, it is as it is.
    memory.advise(MADV_DONTDUMP);
    if (settings.wants_huge_pages) memory.advise(MADV_HUGEPAGE);
    return std::unique_ptr<Arena>(new Arena(std::move(memory)));
}

Arena::Arena(sys::Mapping memory)
    : memory_(std::move(memory)),
      extents_(memory_.bytes()),
      free_bytes_(memory_.bytes()),
      is_touched_(memory_.bytes() / kStepBytes) {}

std::optional<std::span<std::byte>> Arena::allocate(uint64_t bytes) {
    HANARE_ASSERT(bytes > 0 && bytes % kStepBytes == 0);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    if (unwiped_.capacity() <= pieces_out_) unwiped_.reserve(2 * pieces_out_ + 16);
    const std::optional<uint64_t> offset = extents_.reserve(bytes);
    if (!offset) return std::nullopt;
    ++pieces_out_;
    free_bytes_ -= bytes;
    return std::span(memory_.address() + *offset, bytes);
}

void Arena::give_back(std::span<std::byte> piece) noexcept {
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(lock_);
        HANARE_ASSERT(unwiped_.size() < unwiped_.capacity());
        unwiped_.push_back(piece);
        unwiped_bytes_ += piece.size();
    }
    tell();
}

void Arena::give_back_untouched(std::span<std::byte> piece) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    HANARE_ASSERT(pieces_out_ > 0);
    --pieces_out_;
    free_bytes_ += piece.size();
    extents_.release(offset_of(piece), piece.size());
}

Arena::Room Arena::room() const noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    return {free_bytes_, extents_.largest_bytes(), unwiped_bytes_};
}

uint64_t Arena::offset_of(std::span<const std::byte> piece) const noexcept {
    const auto offset = static_cast<uint64_t>(piece.data() - memory_.address());
    HANARE_ASSERT(offset < memory_.bytes() && piece.size() <= memory_.bytes() - offset);
    return offset;
}

// ---- the thread

void Arena::run() noexcept {
    while (!is_ending_.load()) {
        const uint32_t seen = news_.load();
        if (wipe_one() || touch_some()) continue;
        if (!is_ending_.load()) sys::futex_wait(news_, seen);
    }
}

void Arena::stop() noexcept {
    is_ending_.store(true);
    tell();
}

void Arena::tell() noexcept {
    news_.fetch_add(1);
    sys::futex_wake_all(news_);
}

// The one that was given back last, if there is any: which is free first makes no difference.
bool Arena::wipe_one() noexcept {
    std::span<std::byte> piece;
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard guard(lock_);
        if (unwiped_.empty()) return false;
        piece = unwiped_.back();
        unwiped_.pop_back();
    }
    wipe(piece);
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    HANARE_ASSERT(pieces_out_ > 0);
    --pieces_out_;
    unwiped_bytes_ -= piece.size();
    free_bytes_ += piece.size();
    extents_.release(offset_of(piece), piece.size());
    return true;
}

// The kernel gives zeros for what it has taken, and takes nothing of locked memory.
void Arena::wipe(std::span<std::byte> piece) noexcept {
    if (sys::advise(piece.data(), piece.size(), MADV_DONTNEED) != 0) {
        std::memset(piece.data(), 0, piece.size());
        return;
    }
    const size_t first = offset_of(piece) / kStepBytes;
    for (size_t step = first; step < first + piece.size() / kStepBytes; ++step) {
        if (!is_touched_[step]) continue;
        is_touched_[step] = false;
        touched_bytes_.fetch_sub(kStepBytes);
        if (step < next_step_) next_step_ = step;
    }
}

// One step; whether there may be more to do.
bool Arena::touch_some() noexcept {
    while (next_step_ < is_touched_.size() && is_touched_[next_step_]) ++next_step_;
    if (!touches_ || next_step_ == is_touched_.size() || !may_touch()) return false;
    const int error = sys::populate(memory_.address() + next_step_ * kStepBytes, kStepBytes);
    if (error != 0) {
        stop_touching(std::strerror(error));
        return false;
    }
    is_touched_[next_step_] = true;
    touched_bytes_.fetch_add(kStepBytes);
    return true;
}

// The kernel gives what is not there, too, and then ends processes: so it is asked before.
bool Arena::may_touch() noexcept {
    const uint64_t touched = touched_bytes_.load();
    if (touched + kStepBytes <= touched_bytes_max_ &&
        (touched / kStepBytes) % kStepsUntilLook != 0) {
        return true;
    }
    try {
        const auto limit = sys::effective_memory_limit();
        if (!limit) return true;  // nobody knows
        const uint64_t for_others = limit->bytes / kOtherShare;
        const uint64_t until_look =
            std::min(kStepsUntilLook * kStepBytes, memory_.bytes() - touched);
        if (touched_bytes_max_ == 0) touched_bytes_max_ = touched + limit->bytes - for_others;
        if (touched + kStepBytes <= touched_bytes_max_ && until_look + for_others <= limit->bytes) {
            return true;
        }
        stop_touching(limit->origin.c_str());
    } catch (const std::bad_alloc&) {
        stop_touching("no memory");
    }
    return false;
}

void Arena::stop_touching(const char* why) noexcept {
    touches_ = false;
    telemetry::log(telemetry::LogLevel::kWarn,
                   "server: of %llu MiB to lend out, %llu MiB are known to be there; the rest is "
                   "not touched ahead: %s",
                   static_cast<unsigned long long>(total_bytes() / kMiB),
                   static_cast<unsigned long long>(touched_bytes() / kMiB), why);
}

}  // namespace hanare::server
