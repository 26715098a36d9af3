// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/syscall_sites.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "hook/rewrite/instruction.hpp"

namespace hanare::hook {

namespace {

using Kind = Instruction::Kind;

constexpr uint8_t kSyscallCode[] = {0x0f, 0x05};

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

// From the beginning of the function to the system call.
SyscallSite examine(Code function, const uint8_t* syscall) noexcept {
    SyscallSite site{.syscall = syscall};
    const size_t goal = static_cast<size_t>(syscall - function.data());
    Neighbours before;
    Code last;
    size_t at = 0;
    while (at < goal) {
        const Instruction instruction = decode_instruction(function.subspan(at));
        if (instruction.bytes == 0) return {};
        if (may_be_moved(instruction)) {
            before.push_front(instruction.bytes);
        } else {
            before.count = 0;
        }
        last = function.subspan(at, instruction.bytes);
        at += instruction.bytes;
    }
    if (at != goal) return {};  // in the middle of another instruction
    if (before.count > 0) site.number = number_loaded_by(last);
    choose_window(site, function, before);
    return site;
}

}  // namespace

void find_syscall_sites(const CodeImage& image,
                        void (*visit)(const SyscallSite& site, void* context), void* context) {
    for (const Code& segment : image.code()) {
        const uint8_t* from = segment.data();
        const uint8_t* const end = segment.data() + segment.size();
        for (;;) {
            const auto* found = static_cast<const uint8_t*>(
                memmem(from, static_cast<size_t>(end - from), kSyscallCode, sizeof kSyscallCode));
            if (found == nullptr) break;
            const SyscallSite site = image.is_signal_trampoline(found)
                                         ? SyscallSite{.syscall = found, .number = SYS_rt_sigreturn}
                                         : examine(image.function_around(found), found);
            if (site.syscall != nullptr) visit(site, context);
            from = found + 1;
        }
    }
}

}  // namespace hanare::hook
