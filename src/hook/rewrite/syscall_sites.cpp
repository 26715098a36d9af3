// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/syscall_sites.hpp"

#include <sys/syscall.h>

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "hook/rewrite/instruction.hpp"

namespace hanare::hook {

namespace {

using Kind = Instruction::Kind;

constexpr uint8_t kFirstByte = 0x0f;
constexpr uint8_t kSecondByte = 0x05;

// The instructions in front of a system call and behind it, as far as they may be replaced, the
// nearest first.
struct Neighbours {
    static constexpr size_t kMax = 5;
    std::array<uint8_t, kMax> bytes = {};
    size_t count = 0;

    void push_front(uint8_t length) noexcept {
        std::copy_backward(bytes.begin(), bytes.end() - 1, bytes.end());
        bytes[0] = length;
        count = std::min(count + 1, kMax);
    }
};

bool may_be_moved(const Instruction& instruction) noexcept {
    return instruction.kind == Kind::kPlain && !instruction.uses_stack_pointer;
}

// mov $number, %eax; mov $number, %rax; xor %eax, %eax.
int32_t number_loaded_by(Code instruction) noexcept {
    int32_t number = -1;
    if (instruction.size() == 5 && instruction[0] == 0xb8) {
        std::memcpy(&number, instruction.data() + 1, sizeof number);
    } else if (instruction.size() == 7 && instruction[0] == 0x48 && instruction[1] == 0xc7 &&
               instruction[2] == 0xc0) {
        std::memcpy(&number, instruction.data() + 3, sizeof number);
    } else if (instruction.size() == 2 && instruction[0] == 0x31 && instruction[1] == 0xc0) {
        number = 0;
    }
    return number;
}

// Where the jumps of a function lead to near one of its system calls.  Everywhere, if one jumps
// through a register or a table, or something is not understood.
class NearTargets {
public:
    NearTargets(Code function, const uint8_t* syscall) noexcept {
        for (size_t at = 0; at < function.size();) {
            const Instruction instruction = decode_instruction(function.subspan(at));
            const bool has_table = instruction.kind == Kind::kIndirect && !instruction.goes_on;
            if (instruction.bytes == 0 || has_table) {
                everywhere();
                return;
            }
            if (instruction.kind == Kind::kJump || instruction.kind == Kind::kCall) {
                add(function.data() + at + instruction.target - syscall);
            }
            at += instruction.bytes;
        }
    }
    bool contains(ptrdiff_t distance) const noexcept {
        return distance < -kBefore || distance >= kBehind ||
               (bits_ >> (distance + kBefore) & 1) != 0;
    }

private:
    static constexpr ptrdiff_t kBefore = 32;
    static constexpr ptrdiff_t kBehind = 32;
    void add(ptrdiff_t distance) noexcept {
        if (distance >= -kBefore && distance < kBehind)
            bits_ |= uint64_t{1} << (distance + kBefore);
    }
    void everywhere() noexcept { bits_ = ~uint64_t{0}; }
    uint64_t bits_ = 0;
};

// With `before` instructions in front replaced: how many bytes behind the system call are needed,
// and whether nothing jumps between.  False where there is no such window.
bool try_window(SyscallSite& site, const Neighbours& before, size_t before_count,
                const Neighbours& behind, const NearTargets& targets) noexcept {
    size_t before_bytes = 0;
    for (size_t index = 0; index < before_count; ++index) {
        // The first replaced instruction may be a target; those between it and the system call not.
        if (index > 0 && targets.contains(-static_cast<ptrdiff_t>(before_bytes))) return false;
        before_bytes += before.bytes[index];
    }
    if (before_bytes > SyscallSite::kBeforeBytesMax) return false;
    size_t after_bytes = 0;
    if (before_bytes < kJumpBytes) {
        if (before_bytes > 0 && targets.contains(0)) return false;
        size_t index = 0;
        while (before_bytes + SyscallSite::kSyscallBytes + after_bytes < kJumpBytes) {
            const auto next = static_cast<ptrdiff_t>(SyscallSite::kSyscallBytes + after_bytes);
            if (index == behind.count || targets.contains(next)) return false;
            after_bytes += behind.bytes[index++];
        }
        if (after_bytes > SyscallSite::kAfterBytesMax) return false;
    }
    // Not even into the middle of an instruction, behind a prefix.
    for (ptrdiff_t at = 1; at < static_cast<ptrdiff_t>(kJumpBytes); ++at) {
        if (targets.contains(at - static_cast<ptrdiff_t>(before_bytes))) return false;
    }
    site.before_bytes = static_cast<uint8_t>(before_bytes);
    site.after_bytes = static_cast<uint8_t>(after_bytes);
    return true;
}

Neighbours neighbours_behind(Code rest) noexcept {
    Neighbours behind;
    size_t at = SyscallSite::kSyscallBytes;
    while (behind.count < Neighbours::kMax && at < rest.size()) {
        const Instruction instruction = decode_instruction(rest.subspan(at));
        if (instruction.bytes == 0 || !may_be_moved(instruction)) break;
        behind.bytes[behind.count++] = instruction.bytes;
        at += instruction.bytes;
    }
    return behind;
}

void choose_window(SyscallSite& site, Code function, const Neighbours& before) noexcept {
    // One instruction of five bytes: nothing between it and the system call to jump to, and the
    // system call itself stays where a thread that sleeps in it may return to.
    if (before.count > 0 && before.bytes[0] >= kJumpBytes) {
        site.before_bytes = before.bytes[0];
        return;
    }
    const NearTargets targets(function, site.syscall);
    const size_t at = static_cast<size_t>(site.syscall - function.data());
    const Neighbours behind = neighbours_behind(function.subspan(at));
    const Neighbours none;
    for (size_t count = 1; count <= before.count; ++count) {
        if (try_window(site, before, count, none, targets)) return;
    }
    for (size_t count = 0; count <= before.count; ++count) {
        if (try_window(site, before, count, behind, targets)) return;
    }
}

// From the beginning of a function to one system call after the other.
class Walk {
public:
    SyscallSite examine(Code function, const uint8_t* syscall) noexcept {
        const size_t goal = static_cast<size_t>(syscall - function.data());
        if (function.data() != function_.data() || at_ > goal) *this = Walk(function);
        while (!failed_ && at_ < goal) step();
        if (failed_ || at_ != goal) return {};  // in the middle of another instruction
        SyscallSite site{.syscall = syscall};
        if (before_.count > 0) site.number = number_loaded_by(last_);
        choose_window(site, function_, before_);
        return site;
    }
    Walk() = default;

private:
    explicit Walk(Code function) noexcept : function_(function) {}

    void step() noexcept {
        const Instruction instruction = decode_instruction(function_.subspan(at_));
        failed_ = instruction.bytes == 0;
        if (may_be_moved(instruction)) {
            before_.push_front(instruction.bytes);
        } else {
            before_.count = 0;
        }
        last_ = function_.subspan(at_, instruction.bytes);
        at_ += instruction.bytes;
    }

    Code function_;
    size_t at_ = 0;
    Neighbours before_;
    Code last_;
    bool failed_ = false;
};

}  // namespace

// Sixteen bytes at a time: all code of a program is looked through when it starts.
const uint8_t* find_syscall_bytes(const uint8_t* from, const uint8_t* end) noexcept {
    const __m128i first = _mm_set1_epi8(kFirstByte);
    const __m128i second = _mm_set1_epi8(kSecondByte);
    const auto load = [](const uint8_t* place) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(place));
    };
    for (; end - from > 16; from += 16) {
        const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(load(from), first),
                                           _mm_cmpeq_epi8(load(from + 1), second));
        const auto found = static_cast<uint32_t>(_mm_movemask_epi8(both));
        if (found != 0) return from + std::countr_zero(found);
    }
    for (; end - from > 1; ++from) {
        if (from[0] == kFirstByte && from[1] == kSecondByte) return from;
    }
    return end;
}

void find_syscall_sites(const CodeImage& image,
                        void (*visit)(const SyscallSite& site, void* context), void* context) {
    for (const Code& segment : image.code()) {
        const uint8_t* from = segment.data();
        const uint8_t* const end = segment.data() + segment.size();
        Walk walk;
        for (;;) {
            const uint8_t* const found = find_syscall_bytes(from, end);
            if (found == end) break;
            const SyscallSite site = image.is_signal_trampoline(found)
                                         ? SyscallSite{.syscall = found, .number = SYS_rt_sigreturn}
                                         : walk.examine(image.function_around(found), found);
            if (site.syscall != nullptr) visit(site, context);
            from = found + 1;
        }
    }
}

}  // namespace hanare::hook
