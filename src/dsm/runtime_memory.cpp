// SPDX-License-Identifier: Apache-2.0
//
// The heap, variables that are copied to all tasks, and what peers ask.
#include <algorithm>
#include <cstring>
#include <exception>

#include "dsm/modules.hpp"
#include "dsm/runtime.hpp"

namespace hanare::dsm {

// ---- the heap

hanare_status Runtime::allocate_here(uint64_t bytes, Range& range) {
    const auto offset = heap_->allocate(bytes);
    if (!offset) return HANARE_STATUS_NO_MEMORY;
    const uint64_t end = *offset + bytes;
    uint64_t high = high_.load();
    range = {*offset, high > *offset ? std::min(high - *offset, bytes) : 0};
    while (high < end && !high_.compare_exchange_weak(high, end)) {
    }
    return HANARE_STATUS_OK;
}

Result<Runtime::Range> Runtime::ask_heap(uint64_t bytes) {
    Range range;
    hanare_status status = HANARE_STATUS_OK;
    if (rank() == 0) {
        status = allocate_here(bytes, range);
    } else {
        const Question question = {.kind = QuestionKind::kAllocate, .from = rank(), .begin = bytes};
        fabric::Operation call;
        call.kind = fabric::Kind::kCall;
        call.source = std::as_bytes(std::span(&question, 1));
        call.destination = std::as_writable_bytes(std::span(&range, 1));
        HANARE_TRY(communicator_->carry_out(0, call));
        if (call.value() != sizeof range) status = HANARE_STATUS_NO_MEMORY;
    }
    if (status == HANARE_STATUS_OK) return range;
    return fail(status, "no room for %llu bytes in shared memory of %zu (HANARE_DSM_MEMORY)",
                static_cast<unsigned long long>(bytes), segment_.bytes());
}

Result<std::byte*> Runtime::allocate(uint64_t bytes) {
    HANARE_TRY_ASSIGN(const Range range, ask_heap(bytes));
    std::byte* const address = segment_.base() + range.offset;
    if (range.used_bytes > 0) std::memset(address, 0, range.used_bytes);
    return address;
}

Result<void> Runtime::free(const void* address) {
    const bool is_ours = segment_.contains(address);
    const uint64_t offset =
        is_ours ? static_cast<uint64_t>(static_cast<const std::byte*>(address) - segment_.base())
                : 0;
    const auto unknown = [&] {
        return fail(HANARE_STATUS_NOT_FOUND, "no shared memory was allocated at %p", address);
    };
    if (!is_ours) return unknown();
    if (rank() == 0) {
        if (!heap_->free(offset)) return unknown();
        return {};
    }
    const Question question = {.kind = QuestionKind::kFree, .from = rank(), .begin = offset};
    uint32_t is_freed = 0;
    fabric::Operation call;
    call.kind = fabric::Kind::kCall;
    call.source = std::as_bytes(std::span(&question, 1));
    call.destination = std::as_writable_bytes(std::span(&is_freed, 1));
    HANARE_TRY(communicator_->carry_out(0, call));
    if (is_freed == 0) return unknown();
    return {};
}

// ---- variables

Result<void> Runtime::distribute(const void* address, size_t bytes) {
    const auto variable = find_variable(address, bytes);
    if (!variable) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%zu bytes at %p are no variable of the program or one of its libraries", bytes,
                    address);
    }
    const auto* data = static_cast<const std::byte*>(address);
    uint64_t offset = variable->offset;
    while (bytes > 0) {
        QuestionText text({.kind = QuestionKind::kDistribute,
                           .from = rank(),
                           .begin = offset,
                           .count = variable->module.size()});
        if (variable->module.size() >= text.room()) {
            return fail(HANARE_STATUS_LIMIT, "the library's name is too long: %s",
                        variable->module.c_str());
        }
        text.append(variable->module.data(), variable->module.size());
        const size_t part = std::min(bytes, text.room());
        text.append(data, part);
        for (uint32_t task = 0; task < size(); ++task) {
            if (task == rank()) continue;
            HANARE_TRY(tell_variable(task, text.bytes().data(), text.bytes().size()));
        }
        data += part;
        offset += part;
        bytes -= part;
    }
    return {};
}

Result<void> Runtime::tell_variable(uint32_t task, const void* question, size_t bytes) {
    uint32_t is_done = 0;
    fabric::Operation call;
    call.kind = fabric::Kind::kCall;
    call.source = {static_cast<const std::byte*>(question), bytes};
    call.destination = std::as_writable_bytes(std::span(&is_done, 1));
    HANARE_TRY(communicator_->carry_out(task, call));
    if (is_done != 0) return {};
    return fail(HANARE_STATUS_NOT_FOUND, "task %u has no such variable: is it another program?",
                task);
}

// ---- locks

Result<void> Runtime::lock(uint32_t number) {
    if (number < kLocks) return protocol_->lock(number);
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "lock %u; there are 0 to %u", number, kLocks - 1);
}

Result<void> Runtime::unlock(uint32_t number) {
    if (number < kLocks) return protocol_->unlock(number);
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "lock %u; there are 0 to %u", number, kLocks - 1);
}

// ---- what peers ask

hanare_status Runtime::answer_call(uint64_t, std::span<const std::byte> question,
                                   std::span<std::byte> room, size_t& bytes) noexcept {
    bytes = 0;
    Question head;
    if (question.size() < sizeof head) return HANARE_STATUS_INVALID_ARGUMENT;
    std::memcpy(&head, question.data(), sizeof head);
    try {
        return answer(head, question.subspan(sizeof head), room, bytes);
    } catch (const std::exception&) {
        return HANARE_STATUS_NO_MEMORY;
    }
}

hanare_status Runtime::answer(const Question& question, std::span<const std::byte> rest,
                              std::span<std::byte> room, size_t& bytes) {
    HomeProtocol* const home = home_.load(std::memory_order_acquire);
    if (home != nullptr && home->knows(question.kind)) {
        return home->answer(question, rest, room, bytes);
    }
    const auto give = [&](const void* answer, size_t size) {
        if (room.size() < size) return HANARE_STATUS_OUT_OF_RANGE;
        std::memcpy(room.data(), answer, size);
        bytes = size;
        return HANARE_STATUS_OK;
    };
    switch (question.kind) {
        case QuestionKind::kAllocate: {
            Range range;
            if (heap_ == nullptr || allocate_here(question.begin, range) != HANARE_STATUS_OK) {
                return HANARE_STATUS_OK;
            }
            return give(&range, sizeof range);
        }
        case QuestionKind::kFree: {
            const uint32_t is_freed = heap_ != nullptr && heap_->free(question.begin).has_value();
            return give(&is_freed, sizeof is_freed);
        }
        case QuestionKind::kDistribute: {
            if (question.count > rest.size()) return HANARE_STATUS_INVALID_ARGUMENT;
            const auto* const name = reinterpret_cast<const char*>(rest.data());
            const auto data = rest.subspan(question.count);
            std::byte* const place =
                address_of({std::string(name, question.count), question.begin}, data.size());
            const uint32_t is_done = place != nullptr;
            if (place != nullptr) std::memcpy(place, data.data(), data.size());
            return give(&is_done, sizeof is_done);
        }
        default: return HANARE_STATUS_NOT_SUPPORTED;
    }
}

}  // namespace hanare::dsm
