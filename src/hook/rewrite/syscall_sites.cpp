// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/syscall_sites.hpp"

#include <sys/syscall.h>

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "hook/rewrite/instruction.hpp"
#include "hook/rewrite/instruction_step.hpp"

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

    // False when there is no room, or the instruction may not be moved.
    bool add(const Instruction& instruction) noexcept {
        const bool may_be_moved =
            instruction.kind == Kind::kPlain && !instruction.uses_stack_pointer;
        if (instruction.bytes == 0 || !may_be_moved || count == kMax) return false;
        bytes[count++] = instruction.bytes;
        return true;
    }
};

// Code of a function, and how far it may be read behind that.
struct Function {
    Code code;
    const uint8_t* readable_end = nullptr;

    // Not known near the end of the segment.
    InstructionStep step(size_t at) const noexcept {
        const uint8_t* const place = code.data() + at;
        if (static_cast<size_t>(readable_end - place) < kStepReadBytes) return {};
        const InstructionStep step = step_over(place);
        return step.bytes <= code.size() - at ? step : InstructionStep{};
    }
    Instruction decode(size_t at) const noexcept { return decode_instruction(code.subspan(at)); }
};

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

// Whether it is one of the usual instructions between that and a system call, which do not change
// eax: mov and xor of other registers, lea.
bool keeps_number(Code instruction) noexcept {
    const bool has_prefix = !instruction.empty() && (instruction[0] & 0xf0) == 0x40;
    const uint8_t prefix = has_prefix ? instruction[0] : 0;
    const Code code = instruction.subspan(has_prefix ? 1 : 0);
    if (code.size() < 2) return false;
    const auto is_other = [](unsigned number, unsigned extension) {
        return number != 0 || extension != 0;
    };
    const unsigned low = prefix & 1U;   // extends the register of opcodes, and of the operand `rm`
    const unsigned high = prefix & 4U;  // of the operand `reg`
    if (code[0] >= 0xb8 && code[0] <= 0xbf) return is_other(code[0] & 7U, low);
    const bool is_memory = code[1] >> 6 != 3;
    if (code[0] == 0x31 || code[0] == 0x89) return is_memory || is_other(code[1] & 7U, low);
    return (code[0] == 0x8b || code[0] == 0x8d) && is_other(code[1] >> 3 & 7U, high);
}

// Where the jumps of a function lead to near one of its system calls.  Everywhere, if one jumps
// through a register or a table, or something is not understood.
class NearTargets {
public:
    NearTargets(const Function& function, const uint8_t* syscall) noexcept {
        const Code code = function.code;
        for (size_t at = 0; at < code.size();) {
            const InstructionStep step = function.step(at);
            if (step.bytes != 0) {
                at += step.bytes;
                if (step.distance_bytes != 0) {
                    add(code.data() + at + distance_before(code.data() + at, step) - syscall);
                }
                continue;
            }
            const Instruction instruction = function.decode(at);
            const bool has_table = instruction.kind == Kind::kIndirect && !instruction.goes_on;
            if (instruction.bytes == 0 || has_table) {
                everywhere();
                return;
            }
            if (instruction.kind == Kind::kJump || instruction.kind == Kind::kCall) {
                add(code.data() + at + instruction.target - syscall);
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
    static ptrdiff_t distance_before(const uint8_t* end, const InstructionStep& step) noexcept {
        if (step.distance_bytes == 1) return static_cast<int8_t>(end[-1]);
        int32_t distance = 0;
        std::memcpy(&distance, end - sizeof distance, sizeof distance);
        return distance;
    }
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

Neighbours neighbours_behind(const Function& function, size_t syscall) noexcept {
    Neighbours behind;
    for (size_t at = syscall + SyscallSite::kSyscallBytes; at < function.code.size();) {
        const Instruction instruction = function.decode(at);
        if (!behind.add(instruction)) break;
        at += instruction.bytes;
    }
    return behind;
}

void choose_window(SyscallSite& site, const Function& function, const Neighbours& before) noexcept {
    // One instruction of five bytes: nothing between it and the system call to jump to, and the
    // system call itself stays where a thread that sleeps in it may return to.
    if (before.count > 0 && before.bytes[0] >= kJumpBytes) {
        site.before_bytes = before.bytes[0];
        return;
    }
    const NearTargets targets(function, site.syscall);
    const size_t at = static_cast<size_t>(site.syscall - function.code.data());
    const Neighbours behind = neighbours_behind(function, at);
    const Neighbours none;
    for (size_t count = 1; count <= before.count; ++count) {
        if (try_window(site, before, count, none, targets)) return;
    }
    for (size_t count = 0; count <= before.count; ++count) {
        if (try_window(site, before, count, behind, targets)) return;
    }
}

// From the beginning of a function to one system call after the other.  What an instruction does
// is looked at only near these.
class Walk {
public:
    Walk() = default;
    explicit Walk(const Function& function) noexcept : function_(function) {}

    bool is_in(const uint8_t* place) const noexcept {
        return place >= function_.code.data() + at_ &&
               place < function_.code.data() + function_.code.size();
    }
    SyscallSite examine(const uint8_t* syscall) noexcept {
        if (!is_in(syscall)) return {};  // of no function: tables, too, lie in segments of code
        const size_t goal = static_cast<size_t>(syscall - function_.code.data());
        while (!failed_ && at_ < goal) step();
        if (failed_ || at_ != goal) return {};  // in the middle of another instruction
        SyscallSite site{.syscall = syscall};
        site.number = number();
        choose_window(site, function_, neighbours_in_front());
        return site;
    }

private:
    void step() noexcept {
        size_t bytes = function_.step(at_).bytes;
        if (bytes == 0) bytes = function_.decode(at_).bytes;
        failed_ = bytes == 0;
        starts_[steps_++ % starts_.size()] = at_;
        at_ += bytes;
    }
    size_t start(size_t steps_ago) const noexcept {
        return starts_[(steps_ - steps_ago) % starts_.size()];
    }
    // -1: not known.
    int32_t number() const noexcept {
        size_t end = at_;
        for (size_t ago = 1; ago <= std::min(steps_, starts_.size() / 2); ++ago) {
            const Code instruction = function_.code.subspan(start(ago), end - start(ago));
            const int32_t loaded = number_loaded_by(instruction);
            if (loaded >= 0 || !keeps_number(instruction)) return loaded;
            end = start(ago);
        }
        return -1;
    }
    Neighbours neighbours_in_front() const noexcept {
        Neighbours before;
        for (size_t ago = 1; ago <= std::min(steps_, Neighbours::kMax); ++ago) {
            if (!before.add(function_.decode(start(ago)))) break;
        }
        return before;
    }

    Function function_;
    size_t at_ = 0;
    size_t steps_ = 0;
    std::array<size_t, 8> starts_ = {};  // of the last instructions
    bool failed_ = false;
};

// The next two bytes in [from, end) that are those of the instruction, or `end`.  Sixteen bytes at
// a time: all code of a program is looked through when it starts.
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

// As far as the bytes in front of the system call tell.
bool loads_number_of_sigreturn(const uint8_t* syscall, const uint8_t* begin) noexcept {
    int32_t number = -1;
    if (static_cast<size_t>(syscall - begin) < sizeof number) return false;
    std::memcpy(&number, syscall - sizeof number, sizeof number);
    return number == SYS_rt_sigreturn;
}

}  // namespace

SyscallBytes::SyscallBytes(Code code) noexcept : code_(code) {
    const uint8_t* const end = code.data() + code.size();
    for (const uint8_t* at = code.data(); (at = find_syscall_bytes(at, end)) != end; ++at) {
        const auto distance = static_cast<uint64_t>(at - code.data());
        if (count_ < kRememberedMax) remembered_[count_] = static_cast<uint32_t>(distance);
        ++count_;
    }
}

const uint8_t* SyscallBytes::place(size_t index, const uint8_t* before) const noexcept {
    if (index >= count_) return nullptr;
    const bool is_remembered = index < kRememberedMax && code_.size() <= UINT32_MAX;
    if (is_remembered) return code_.data() + remembered_[index];
    const uint8_t* const from = before == nullptr ? code_.data() : before + 1;
    return find_syscall_bytes(from, code_.data() + code_.size());
}

void find_syscall_sites(const CodeImage& image, const SyscallBytes& places,
                        void (*visit)(const SyscallSite& site, void* context), void* context) {
    const Code segment = places.code();
    const uint8_t* const end = segment.data() + segment.size();
    Walk walk;
    const uint8_t* place = nullptr;
    for (size_t index = 0; (place = places.place(index, place)) != nullptr; ++index) {
        SyscallSite site{.syscall = place, .number = SYS_rt_sigreturn};
        const bool is_trampoline =
            loads_number_of_sigreturn(place, segment.data()) && image.is_signal_trampoline(place);
        if (!is_trampoline) {
            if (!walk.is_in(place)) walk = Walk({image.function_around(place), end});
            site = walk.examine(place);
        }
        if (site.syscall != nullptr) visit(site, context);
    }
}

}  // namespace hanare::hook
