// SPDX-License-Identifier: Apache-2.0
#include "fabric/byte_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hanare::fabric {
namespace {

// Whether somebody is owed a bell; only one who asks hears so.
bool takes_sleeper(std::atomic<uint32_t>& sleeps) noexcept {
    return sleeps.load() != 0 && sleeps.exchange(0) != 0;
}

}  // namespace

ptrdiff_t ByteRing::write(std::span<const sys::Part> parts, bool& owes_bell) noexcept {
    const uint64_t begin = position_.load(std::memory_order_relaxed);
    const uint64_t used = begin - head_.read.load(std::memory_order_acquire);
    if (used > kCapacity) return -EBADMSG;
    uint64_t at = begin;
    size_t room = kCapacity - used;
    for (const sys::Part& part : parts) {
        const size_t bytes = std::min(part.bytes, room);
        const size_t place = at % kCapacity;
        const size_t straight = std::min(bytes, kCapacity - place);
        if (straight != 0) std::memcpy(data_ + place, part.address, straight);
        if (bytes != straight) std::memcpy(data_, part.address + straight, bytes - straight);
        at += bytes;
        room -= bytes;
        if (room == 0) break;
    }
    if (at == begin) return -EAGAIN;
    position_.store(at, std::memory_order_relaxed);
    // Before the look at who sleeps; the reader says so before it looks here.
    head_.written.store(at);
    if (takes_sleeper(head_.reader_sleeps)) owes_bell = true;
    return static_cast<ptrdiff_t>(at - begin);
}

ptrdiff_t ByteRing::read(std::span<const sys::Part> parts, bool& owes_bell) noexcept {
    const uint64_t begin = position_.load(std::memory_order_relaxed);
    size_t left = head_.written.load(std::memory_order_acquire) - begin;
    if (left > kCapacity) return -EBADMSG;
    uint64_t at = begin;
    for (const sys::Part& part : parts) {
        const size_t bytes = std::min(part.bytes, left);
        const size_t place = at % kCapacity;
        const size_t straight = std::min(bytes, kCapacity - place);
        if (straight != 0) std::memcpy(part.address, data_ + place, straight);
        if (bytes != straight) std::memcpy(part.address + straight, data_, bytes - straight);
        at += bytes;
        left -= bytes;
        if (left == 0) break;
    }
    if (at == begin) return -EAGAIN;
    position_.store(at, std::memory_order_relaxed);
    head_.read.store(at);
    if (takes_sleeper(head_.writer_sleeps)) owes_bell = true;
    return static_cast<ptrdiff_t>(at - begin);
}

}  // namespace hanare::fabric
