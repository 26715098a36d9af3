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
    Header* block;   // where it begins; the next free one while it is free
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
    void* memory =
        raw::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

Header* take(uint32_t order) noexcept {
    if (Header* header = free_blocks[order]) {
        free_blocks[order] = header->block;
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

void* allocate_private(size_t bytes, size_t alignment) noexcept {
    const size_t slack = alignment > sizeof(Header) ? alignment : 0;
    if (bytes > (size_t{1} << (kOrderMax - 1)) - sizeof(Header) - slack) return nullptr;
    const size_t needed = bytes + sizeof(Header) + slack;
    const auto order = std::max(kOrderMin, static_cast<uint32_t>(std::bit_width(needed - 1)));
    const LockGuard guard(lock);
    Header* const block = take(order);
    if (block == nullptr) return nullptr;
    const uintptr_t first = reinterpret_cast<uintptr_t>(block + 1);
    auto* const memory =
        reinterpret_cast<Header*>(slack == 0 ? first : (first + alignment - 1) & ~(alignment - 1));
    *(memory - 1) = {block, order};
    return memory;
}

void release_private(void* memory) noexcept {
    if (memory == nullptr) return;
    const Header header = *(static_cast<Header*>(memory) - 1);
    const LockGuard guard(lock);
    header.block->block = free_blocks[header.order];
    free_blocks[header.order] = header.block;
}

}  // namespace hanare::sys
