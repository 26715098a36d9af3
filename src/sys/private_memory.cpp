// SPDX-License-Identifier: Apache-2.0
#include "sys/private_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <sys/mman.h>

#include "sys/lock.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

struct alignas(16) Header {
    Header* next;    // while free
    uint32_t order;  // of the block, with its header
};

constexpr uint32_t kOrderMin = 5;
constexpr uint32_t kOrderMax = 40;
constexpr size_t kChunkBytes = size_t{256} << 10;

constinit RankedLock lock{LockRank::kPrivateMemory};
constinit Header* free_blocks[kOrderMax] = {};
constinit std::byte* chunk = nullptr;
constinit size_t chunk_left = 0;

void* map(size_t bytes) noexcept {
    void* memory = raw::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

Header* take(uint32_t order) noexcept {
    if (Header* header = free_blocks[order]) {
        free_blocks[order] = header->next;
        return header;
    }
    const size_t bytes = size_t{1} << order;
    if (bytes >= kChunkBytes / 4) return static_cast<Header*>(map(bytes));
    if (chunk_left < bytes) {
        auto* fresh = static_cast<std::byte*>(map(kChunkBytes));
        if (fresh == nullptr) return nullptr;
        chunk = fresh;
        chunk_left = kChunkBytes;
    }
    auto* header = reinterpret_cast<Header*>(chunk);
    chunk += bytes;
    chunk_left -= bytes;
    return header;
}

}  // namespace

void* allocate_private(size_t bytes) noexcept {
    if (bytes > (size_t{1} << (kOrderMax - 1)) - sizeof(Header)) return nullptr;
    const auto order =
        std::max(kOrderMin, static_cast<uint32_t>(std::bit_width(bytes + sizeof(Header) - 1)));
    const LockGuard guard(lock);
    Header* const header = take(order);
    if (header == nullptr) return nullptr;
    header->order = order;
    return header + 1;
}

void release_private(void* memory) noexcept {
    if (memory == nullptr) return;
    Header* const header = static_cast<Header*>(memory) - 1;
    const LockGuard guard(lock);
    header->next = free_blocks[header->order];
    free_blocks[header->order] = header;
}

void lock_private_memory() noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS { lock.lock(); }
void unlock_private_memory() noexcept HANARE_NO_THREAD_SAFETY_ANALYSIS { lock.unlock(); }

}  // namespace hanare::sys
