// SPDX-License-Identifier: Apache-2.0
//
// FarCall: one system call of the program's some of whose arguments lie in far memory.  Makes the
// call so that the kernel never meets absent memory, which it would answer with EFAULT, or with
// half of what was asked for, after it may have taken a datagram, a connection or a child's status:
//
//   small arguments   are copied to local memory and back (bounce.hpp)
//   bulk buffers      are brought in and held (pager/fault/holds.hpp) while the call lasts
//   longer transfers  are made in pieces, so that buffers may be larger than local memory
//   strings           are copied as far as they fit
//   futex words, and what no table describes, are touched, and the call repeated after EFAULT
//
// Async-signal-safe; compiled for general registers only.  Not noexcept: a cancelled thread unwinds
// through it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"
#include "intercept/arguments.hpp"
#include "intercept/bounce.hpp"
#include "intercept/far_memory.hpp"
#include "pager/fault/frame_table.hpp"
#include "pager/fault/holds.hpp"

namespace hanare::intercept {

// A counted argument: the upper half of an int's register is anything.
inline uint64_t count_of(const hook::SystemCall& call, const ArgumentSize& size) noexcept {
    const uint64_t count = call.arguments[size.argument];
    return size.is_int ? static_cast<uint32_t>(count) : count;
}
// How much lies at an argument that is a single structure or buffer.
uint64_t size_of(const hook::SystemCall& call, const ArgumentSize& size) noexcept;

class FarCall {
public:
    // `most_bytes`: of far memory, held at a time.
    FarCall(FarMemory& memory, hook::SystemCall& call, size_t most_bytes)
        : memory_(memory),
          call_(call),
          bounce_(reinterpret_cast<uintptr_t>(call.stack)),
          piece_bytes_(most_bytes) {}

    // Whether some argument lies in far memory.
    static bool is_wanted(const FarMemory& memory, const hook::SystemCall& call,
                          const SystemCallArguments& row);

    // Makes it; the result.
    int64_t make(const SystemCallArguments& row);

private:
    // What has to be copied back to far memory after the call.
    struct Copy {
        std::byte* far;
        const std::byte* local;
        size_t bytes;
        uint16_t result_unit;
        uint16_t extra;
    };
    struct Vector {
        uint64_t base;
        uint64_t bytes;
    };

    bool is_far(uint64_t address) const noexcept { return memory_.contains(address); }
    int64_t make_in_pieces(const SystemCallArguments& row, const Argument& argument);
    int64_t make_random_in_pieces(const SystemCallArguments& row);
    int64_t make_vector_in_pieces(const SystemCallArguments& row, const Argument& argument);
    int64_t make_messages(const SystemCallArguments& row);
    int64_t make_once(const SystemCallArguments& row);
    int64_t make_copying_splice();
    int64_t make_prepared(const SystemCallArguments& row, uint64_t (&arguments)[6],
                          uint32_t repeats);
    bool is_bulk(const SystemCallArguments& row, const Argument& argument) const;
    uint64_t vectors_bytes(const Argument& argument) const;

    bool is_held_sooner(uint64_t address, uint64_t bytes, bool write) const;
    uint64_t place(const Argument& argument, uint64_t address, uint64_t bytes, bool may_block);
    uint64_t place_text(uint64_t address);
    uint64_t place_vectors(uint64_t address, uint64_t count, bool writes, bool may_block,
                           uint64_t bytes_max = UINT64_MAX);
    uint64_t place_message(uint64_t address, bool writes, bool may_block);
    uint64_t place_texts(uint64_t address);
    void hold(uint64_t address, uint64_t bytes, bool write);
    uint64_t accessible_end(const pager::Region& region, uint64_t from, uint64_t to) const;
    bool is_used_by_futex(const Argument& argument) const noexcept;
    void touch(uint64_t address, uint64_t bytes, bool write);
    void touch_named(const Argument& argument, uint32_t repeats);
    bool may_be_absent(uint64_t address) const;
    void copy_back(int64_t result);
    void copy_vectors_back(int64_t result);
    void copy_message_back(int64_t result);
    void release();

    static constexpr size_t kTextsMax = 2;  // argv and envp
    static constexpr size_t kCopiesMax = 8;
    static constexpr size_t kHoldsMax = pager::Holds::kPerThread;

    FarMemory& memory_;
    hook::SystemCall& call_;
    BounceFrame bounce_;
    const size_t piece_bytes_;
    size_t copies_count_ = 0;
    size_t texts_count_ = 0;
    uint64_t texts_[kTextsMax] = {};
    uint64_t texts_bytes_[kTextsMax] = {};
    size_t holds_count_ = 0;
    bool is_touched_ = false;  // something is neither held nor copied
    // Of a vector or message: the program's iovecs and those that the kernel was given.
    uint64_t vectors_far_ = 0;
    const Vector* vectors_local_ = nullptr;
    uint64_t vectors_count_ = 0;
    uint64_t message_far_ = 0;
    const std::byte* message_local_ = nullptr;
    Copy copies_[kCopiesMax];
    pager::Holds::Hold* holds_[kHoldsMax];
    pager::FrameTable* frames_[kHoldsMax];  // of what is held; nullptr: it was gone
};

}  // namespace hanare::intercept
