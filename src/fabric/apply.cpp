// SPDX-License-Identifier: Apache-2.0
#include "fabric/apply.hpp"

#include <atomic>
#include <cstring>

#include "fabric/fifo.hpp"
#include "sys/futex.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::fabric {
namespace {

bool is_aligned(const std::byte* address, size_t bytes) noexcept {
    return (reinterpret_cast<uintptr_t>(address) & (bytes - 1)) == 0;
}

template <typename Word>
void copy_word(std::byte* to, const std::byte* from) noexcept {
    Word word;
    if (is_aligned(from, sizeof(Word))) {
        word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_ACQUIRE);
    } else {
        std::memcpy(&word, from, sizeof word);
    }
    if (is_aligned(to, sizeof(Word))) {
        __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELEASE);
    } else {
        std::memcpy(to, &word, sizeof word);
    }
}

template <typename Word>
Word fetch_op_on(std::byte* address, FetchOp op, Word operand, Word compare) noexcept {
    std::atomic_ref<Word> word(*reinterpret_cast<Word*>(address));
    switch (op) {
        case FetchOp::kAdd: return word.fetch_add(operand);
        case FetchOp::kAnd: return word.fetch_and(operand);
        case FetchOp::kOr: return word.fetch_or(operand);
        case FetchOp::kXor: return word.fetch_xor(operand);
        case FetchOp::kSwap: return word.exchange(operand);
        case FetchOp::kCompareSwap: word.compare_exchange_strong(compare, operand); return compare;
    }
    return 0;
}

}  // namespace

void copy_words(std::byte* to, const std::byte* from, size_t bytes) noexcept {
    switch (bytes) {
        case 0: break;
        case sizeof(uint32_t): copy_word<uint32_t>(to, from); break;
        case sizeof(uint64_t): copy_word<uint64_t>(to, from); break;
        default: std::memcpy(to, from, bytes); break;
    }
}

namespace {

// Of 8 bytes the first 4, which everybody waits on.
void wake_at(std::byte* word) noexcept {
    sys::shared_futex_wake_all(*reinterpret_cast<const std::atomic<uint32_t>*>(word));
}

hanare_status fetch_at(std::byte* word, const FetchRequest& request, uint64_t& before) noexcept {
    if (!is_aligned(word, request.width)) return HANARE_STATUS_INVALID_ARGUMENT;
    fetch_op(word, request.op, request.width, request.operand, request.compare, before);
    if (request.wakes) wake_at(word);
    return HANARE_STATUS_OK;
}

hanare_status signal(std::span<std::byte> region, int owner, std::span<const std::byte> message,
                     uint64_t patience_ns) noexcept {
    Fifo queue(region);
    const hanare_status status = queue.push(message, patience_ns);
    // Who is not told that it is full would never make room.
    if (status == HANARE_STATUS_OK || status == HANARE_STATUS_FULL) queue.ring_bell(owner);
    return status;
}

}  // namespace

void fetch_op(std::byte* word, FetchOp op, uint8_t width, uint64_t operand, uint64_t compare,
              uint64_t& before) noexcept {
    if (width == sizeof(uint32_t)) {
        before = fetch_op_on<uint32_t>(word, op, static_cast<uint32_t>(operand),
                                       static_cast<uint32_t>(compare));
    } else {
        before = fetch_op_on<uint64_t>(word, op, operand, compare);
    }
}

hanare_status apply_put(ExposedRegions& regions, const Capability& capability, uint64_t offset,
                        std::span<const std::byte> source) noexcept {
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(capability, kWrite, offset, source.size(), access);
    if (status == HANARE_STATUS_OK) copy_words(access.address(), source.data(), source.size());
    return status;
}

hanare_status apply_fetch(ExposedRegions& regions, const Capability& capability, uint64_t offset,
                          const FetchRequest& request, uint64_t& before) noexcept {
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(capability, kAtomic, offset, request.width, access);
    if (status != HANARE_STATUS_OK) return status;
    return fetch_at(access.address(), request, before);
}

hanare_status apply_push(ExposedRegions& regions, const Capability& capability,
                         std::span<const std::byte> message, uint64_t patience_ns) noexcept {
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(capability, kPush, 0, 0, access);
    return status == HANARE_STATUS_OK ? Fifo(access.region()).push(message, patience_ns) : status;
}

hanare_status apply_signal(ExposedRegions& regions, const Capability& capability,
                           std::span<const std::byte> message, uint64_t patience_ns) noexcept {
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(capability, kSignal, 0, 0, access);
    if (status != HANARE_STATUS_OK) return status;
    return signal(access.region(), static_cast<int>(sys::raw_process_id()), message, patience_ns);
}

hanare_status apply_pop(ExposedRegions& regions, const Capability& capability,
                        std::span<std::byte> room, size_t& bytes, uint64_t patience_ns) noexcept {
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(capability, kPop, 0, 0, access);
    return status == HANARE_STATUS_OK ? Fifo(access.region()).pop(room, bytes, patience_ns)
                                      : status;
}

Rights rights_for(Kind kind) noexcept {
    switch (kind) {
        case Kind::kPut: return kWrite;
        case Kind::kGet: return kRead;
        case Kind::kFetch: return kAtomic;
        case Kind::kPush: return kPush;
        case Kind::kPop: return kPop;
        case Kind::kSignal: return kSignal;
        case Kind::kCall: break;
    }
    return kAllRights;
}

uint64_t offset_in(const Operation& operation) noexcept {
    return is_on_queue(operation.kind) ? 0 : operation.offset;
}

uint64_t bytes_in(const Operation& operation) noexcept {
    return is_on_queue(operation.kind) ? 0 : operation.bytes();
}

hanare_status apply_to(std::span<std::byte> region, int owner, Operation& operation) noexcept {
    std::byte* const place = region.data() + offset_in(operation);
    uint64_t value = 0;
    hanare_status status = HANARE_STATUS_OK;
    switch (operation.kind) {
        case Kind::kPut:
            copy_words(place, operation.source.data(), operation.source.size());
            return HANARE_STATUS_OK;
        case Kind::kGet:
            copy_words(operation.destination.data(), place, operation.destination.size());
            return HANARE_STATUS_OK;
        case Kind::kPush: return Fifo(region).push(operation.source);
        case Kind::kSignal: return signal(region, owner, operation.source, Fifo::kPatience_ns);
        case Kind::kFetch:
            status = fetch_at(place,
                              {operation.fetch_op, operation.width, operation.wakes,
                               operation.operand, operation.compare},
                              value);
            break;
        case Kind::kPop: status = Fifo(region).pop(operation.destination, value); break;
        case Kind::kCall: return HANARE_STATUS_NOT_SUPPORTED;  // nobody asks himself
    }
    operation.note_value(value);
    return status;
}

hanare_status apply(ExposedRegions& regions, Operation& operation) noexcept {
    if (operation.kind == Kind::kCall) return HANARE_STATUS_NOT_SUPPORTED;
    ExposedRegions::Access access;
    const hanare_status status = regions.enter(operation.capability, rights_for(operation.kind),
                                               offset_in(operation), bytes_in(operation), access);
    if (status != HANARE_STATUS_OK) return status;
    return apply_to(access.region(), static_cast<int>(sys::raw_process_id()), operation);
}

}  // namespace hanare::fabric
