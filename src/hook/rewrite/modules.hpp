// SPDX-License-Identifier: Apache-2.0
//
// The modules whose system calls have been rewritten.  A table of fixed size that is read without
// locks, since every munmap asks it, those of malloc included.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "hook/rewrite/code_image.hpp"
#include "hook/system_calls.hpp"

namespace hanare::hook {

// The code that this code belongs to.
Code own_code() noexcept;

// A system call that the program has begun and that is not made yet: where it goes on, should its
// site be rewritten meanwhile.
struct PendingCall {
    const uint8_t* behind;             // the instruction
    const uint8_t* entry = nullptr;    // with the call still to be made; null: it was not rewritten
    const uint8_t* goes_on = nullptr;  // with its result; null: as without rewriting
    PendingCall* outer = nullptr;
};
// While alive, whoever rewrites knows of the call.  In one thread, nested.
class PendingCallNote {
public:
    explicit PendingCallNote(PendingCall& call) noexcept;
    ~PendingCallNote();
    PendingCallNote(const PendingCallNote&) = delete;
    PendingCallNote& operator=(const PendingCallNote&) = delete;
};

// All that are loaded, but for own_code(); other threads are stopped meanwhile.  Fails where they
// cannot be, or nothing could be rewritten at all; what is left otherwise is counted.
Result<void> rewrite_loaded_modules();

// What ld.so has just mapped, to be executed, from a file: `bytes` at `memory`, from `offset` of
// the file on.  Nothing of it has run yet.  What cannot be done is counted as left.
void rewrite_mapped_code(uint8_t* memory, size_t bytes, int descriptor, uint64_t offset) noexcept;

// Rewritten code lies in these ranges.  `end` is published last and withdrawn first; null: none.
struct CodeRange {
    std::atomic<const uint8_t*> begin{nullptr};
    std::atomic<const uint8_t*> end{nullptr};
};
inline constexpr size_t kModulesMax = 1024;
extern CodeRange code_ranges[kModulesMax];
extern std::atomic<size_t> code_range_count;  // of the table that have been in use

// Whether [memory, memory + bytes) has rewritten code.
inline bool has_rewritten_code(const uint8_t* memory, size_t bytes) noexcept {
    const size_t count = code_range_count.load(std::memory_order_acquire);
    for (size_t index = 0; index < count; ++index) {
        const CodeRange& range = code_ranges[index];
        const uint8_t* end = range.end.load(std::memory_order_acquire);
        if (end != nullptr && memory < end &&
            range.begin.load(std::memory_order_relaxed) < memory + bytes) {
            return true;
        }
    }
    return false;
}

// Such memory is about to be unmapped, and what became of that.  In between, somebody else may map
// code at the same place.
void withdraw_code(const uint8_t* memory, size_t bytes) noexcept;
void finish_withdrawal(const uint8_t* memory, size_t bytes, bool unmapped) noexcept;

RewriteReport count_modules() noexcept;

}  // namespace hanare::hook
