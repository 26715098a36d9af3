// SPDX-License-Identifier: Apache-2.0
#include "intercept/bounce.hpp"

#include <sys/mman.h>

#include <atomic>

#include "sys/raw_thread.hpp"

namespace hanare::intercept {

namespace {

constexpr uint32_t kThreadsMax = 1024;
constexpr uint32_t kFramesMax = 4;
// A frame below on the same stack is not farther away; what is, may be on another stack.
constexpr uintptr_t kSameStackBytes = uintptr_t{256} << 10;

}  // namespace

struct alignas(64) ThreadBuffer {
    std::atomic<uint32_t> owner{0};
    uint32_t frames = 0;
    std::byte* memory = nullptr;
    struct {
        uintptr_t stack;
        size_t end;
    } frame[kFramesMax] = {};
};

namespace {

constinit ThreadBuffer buffers[kThreadsMax];
[[gnu::tls_model("initial-exec")]] thread_local ThreadBuffer* own = nullptr;

std::byte* map_buffer() noexcept {
    const int64_t mapped = sys::raw_call6(SYS_mmap, 0, BounceFrame::kBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0);
    return mapped < 0 ? nullptr : reinterpret_cast<std::byte*>(mapped);
}

ThreadBuffer* own_buffer() noexcept {
    if (own != nullptr) return own;
    if (sys::borrows_memory()) return nullptr;
    const uint32_t id = sys::raw_thread_id();
    for (ThreadBuffer& buffer : buffers) {
        uint32_t owner = buffer.owner.load(std::memory_order_relaxed);
        if (owner != 0 && owner != id && sys::raw_thread_lives(owner)) continue;
        if (!buffer.owner.compare_exchange_strong(owner, id)) continue;
        buffer.frames = 0;
        if (buffer.memory == nullptr) buffer.memory = map_buffer();
        if (buffer.memory == nullptr) {
            buffer.owner.store(0);
            return nullptr;
        }
        own = &buffer;
        return own;
    }
    return nullptr;
}

}  // namespace

bool BounceFrame::enter() noexcept {
    if (buffer_ != nullptr) return true;
    if (failed_) return false;
    ThreadBuffer* const buffer = own_buffer();
    failed_ = buffer == nullptr;
    if (failed_) return false;
    // What lies below on this stack was left without saying so.
    while (buffer->frames > 0) {
        const uintptr_t other = buffer->frame[buffer->frames - 1].stack;
        if (other > stack_ || stack_ - other > kSameStackBytes) break;
        --buffer->frames;
    }
    failed_ = buffer->frames == kFramesMax;
    if (failed_) return false;
    const size_t begin = buffer->frames == 0 ? 0 : buffer->frame[buffer->frames - 1].end;
    frame_ = buffer->frames;
    buffer->frame[frame_].stack = stack_;
    buffer->frame[frame_].end = begin;
    buffer->frames = frame_ + 1;
    buffer_ = buffer;
    return true;
}

void BounceFrame::leave() noexcept {
    if (buffer_ != nullptr && buffer_->frames > frame_) buffer_->frames = frame_;
    buffer_ = nullptr;
}

size_t BounceFrame::left() noexcept { return enter() ? kBytes - buffer_->frame[frame_].end : 0; }

std::byte* BounceFrame::take(size_t bytes, uintptr_t like) noexcept {
    constexpr size_t kSectorBytes = 512;
    constexpr size_t kPageBytes = 4096;
    bytes = (bytes + 15) & ~size_t{15};
    if (!enter()) return nullptr;
    size_t& end = buffer_->frame[frame_].end;
    const uintptr_t place = like | kPageBytes;
    const size_t alignment =
        like % kSectorBytes == 0 && like != 0 && bytes >= kSectorBytes ? place & -place : 16;
    const size_t begin = (end + alignment - 1) & ~(alignment - 1);
    if (begin > kBytes || kBytes - begin < bytes) return nullptr;
    end = begin + bytes;
    return buffer_->memory + begin;
}

void BounceFrame::forget_others_in_child() noexcept {
    for (ThreadBuffer& buffer : buffers) {
        if (&buffer == own) {
            buffer.owner.store(sys::raw_thread_id());
        } else if (buffer.owner.load(std::memory_order_relaxed) != 0) {
            buffer.owner.store(0);
        }
    }
}

}  // namespace hanare::intercept
