// SPDX-License-Identifier: Apache-2.0
//
// Encodings of the frame description: DWARF 5, sections 6.4 and 7.7.
#include "hook/rewrite/stub.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "base/units.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/instruction.hpp"
#include "hook/rewrite/stub_pool.hpp"
#include "sys/code_memory.hpp"

extern "C" {
// libgcc: a sequence of descriptions that a zero ends, and 48 bytes for its own record of it.  Not
// __register_frame(), which allocates that: code may be rewritten inside the program's malloc.
void __register_frame_info(const void* frames, void* record);
void* __deregister_frame_info(const void* frames);
}

namespace hanare::hook {

namespace {

constexpr size_t kBeforeEnd = 16;
constexpr size_t kShiftedFrom = 21;
constexpr size_t kCallBytes = 6;
constexpr size_t kSyscallBegin = 31;
constexpr size_t kAfterBegin = 33;
constexpr size_t kJumpInPlace = kAfterBegin + kJumpBytes;

constexpr std::array<uint8_t, kAfterBegin - kBeforeEnd> kMiddle = {
    0x48, 0x8d, 0x64, 0x24, 0x80,     // lea -128(%rsp), %rsp
    0xff, 0x15, 0,    0,    0,    0,  // call *entry(%rip), or in the pool call entry
    0xe3, 0x02,                       // jrcxz to the system call
    0xff, 0xe1,                       // jmp *%rcx
    0x0f, 0x05,                       // syscall
};
static_assert(kSyscallBegin - kStubCallEnd == kStubSyscallAt);
static_assert(kStubCallBytes == kAfterBegin - kBeforeEnd);
static_assert(kBeforeEnd == SyscallSite::kBeforeBytesMax);
static_assert(kAfterBegin + SyscallSite::kAfterBytesMax + kJumpBytes <= kStubBehindAt &&
              kJumpInPlace + kJumpBytes <= kStubBehindAt);

constexpr uint8_t kDefCfaExpression = 0x0f, kValExpression = 0x16;
constexpr uint8_t kRip = 16;
constexpr uint8_t kFrameAddress[] = {HANARE_STUB_FRAME};
constexpr uint8_t kReturnAddress[] = {HANARE_STUB_RETURN};
static_assert(sizeof kFrameAddress == HANARE_STUB_FRAME_BYTES);
static_assert(sizeof kReturnAddress == HANARE_STUB_RETURN_BYTES);
static_assert(kFrameAddress[9] == kShiftedFrom && kFrameAddress[13] == kStubCallEnd &&
              kFrameAddress[5] == kStubBytes - 1 && kStubRedZoneBytes == 1U << 7 &&
              kReturnAddress[7] == kStubReturnAt);

// One common part, one description of the frames of [begin, begin + bytes), and a zero.
struct [[gnu::packed]] FrameDescription {
    struct [[gnu::packed]] Common {
        uint32_t length = sizeof(Common) - sizeof length;
        uint32_t id = 0;
        uint8_t version = 1;
        char augmentation[4] = {'z', 'R', 'S', 0};  // the return address is exact, as of a signal
        uint8_t code_alignment = 1;
        uint8_t data_alignment = 0x78;  // -8
        uint8_t return_register = kRip;
        uint8_t augmentation_bytes = 1;
        uint8_t pointer_encoding = 0;  // 8 bytes, absolute
        uint8_t frame_rule = kDefCfaExpression;
        uint8_t frame_bytes = sizeof kFrameAddress;
        uint8_t frame[sizeof kFrameAddress];
        uint8_t return_rule[2] = {kValExpression, kRip};
        uint8_t return_bytes = sizeof kReturnAddress;
        uint8_t return_address[sizeof kReturnAddress];
        uint8_t padding[5] = {};  // DW_CFA_nop
    } common;
    struct [[gnu::packed]] Frames {
        uint32_t length = sizeof(Frames) - sizeof length;
        uint32_t to_common = sizeof(Common) + sizeof length;
        uint64_t begin = 0;
        uint64_t bytes = 0;
        uint8_t augmentation_bytes = 0;
        uint8_t padding[7] = {};
    } frames;
    uint32_t end = 0;
};
static_assert(sizeof(FrameDescription::Common) % 8 == 0);
static_assert(sizeof(FrameDescription::Frames) % 8 == 0);

// Of the frames that libgcc knows.  One thread at a time.
class FrameRecords {
public:
    static void* take() noexcept {
        for (Record& record : records_) {
            if (record.frames == nullptr) return &record;
        }
        return nullptr;
    }
    static void set_owner(void* record, const void* frames) noexcept {
        static_cast<Record*>(record)->frames = frames;
    }
    static void give_back(const void* frames) noexcept {
        for (Record& record : records_) {
            if (record.frames == frames) record.frames = nullptr;
        }
    }

private:
    struct Record {
        alignas(16) std::byte of_libgcc[64];
        const void* frames;
    };
    inline static constinit std::array<Record, 1024> records_ = {};
};

bool fits(int64_t distance) noexcept { return distance == static_cast<int32_t>(distance); }

// Copies whole instructions and mends what they say relative to their own place.
bool move_instructions(uint8_t* target, const uint8_t* source, const uint8_t* place,
                       size_t bytes) noexcept {
    std::memcpy(target, source, bytes);
    for (size_t at = 0; at < bytes;) {
        const Instruction instruction = decode_instruction({source + at, bytes - at});
        if (instruction.bytes == 0) return false;
        if (instruction.relative_at != 0) {
            int32_t relative = 0;
            std::memcpy(&relative, source + at + instruction.relative_at, sizeof relative);
            const int64_t moved = relative + (place - target);
            if (!fits(moved)) return false;
            relative = static_cast<int32_t>(moved);
            std::memcpy(target + at + instruction.relative_at, &relative, sizeof relative);
        }
        at += instruction.bytes;
    }
    return true;
}

}  // namespace

bool write_jump(uint8_t* writable, const uint8_t* place, const uint8_t* target) noexcept {
    const int64_t distance = target - (place + kJumpBytes);
    if (!fits(distance)) return false;
    const auto relative = static_cast<int32_t>(distance);
    writable[0] = 0xe9;
    std::memcpy(writable + 1, &relative, sizeof relative);
    return true;
}

Result<StubArea> StubArea::reserve(const uint8_t* begin, const uint8_t* end, size_t count) {
    StubArea area;
    area.stubs_ = StubPool::take(begin, end, count);
    if (area.stubs_ == nullptr) return map(begin, end, count);
    area.capacity_ = count;
    return area;
}

Result<StubArea> StubArea::map(const uint8_t* begin, const uint8_t* end, size_t count) {
    StubArea area;
    const size_t bytes = bytes_for(count);
    HANARE_TRY_ASSIGN(uint8_t* const memory, sys::map_near(begin, end, bytes));
    area.begin_inside(memory, bytes, count);
    return area;
}

size_t StubArea::bytes_for(size_t count) noexcept {
    return round_up((count + 1) * kStubBytes + sizeof(FrameDescription), kOsPageBytes);
}

void StubArea::begin_inside(uint8_t* memory, size_t bytes, size_t count) noexcept {
    memory_ = memory;
    bytes_ = bytes;
    capacity_ = count;
    stubs_ = memory + kStubBytes;
    const auto entry = reinterpret_cast<uint64_t>(&hanare_hook_entry);
    std::memset(memory, 0xcc, bytes);  // int3
    std::memcpy(memory, &entry, sizeof entry);
}

StubArea StubArea::inside(std::span<uint8_t> memory, size_t count) noexcept {
    StubArea area;
    area.begin_inside(memory.data(), memory.size(), count);
    return area;
}

bool StubArea::seal_inside() const noexcept { return sys::protect_code(memory_, bytes_, false); }

const uint8_t* StubArea::add(const SyscallSite& site, const uint8_t* place) noexcept {
    if (count_ == capacity_) return nullptr;
    uint8_t* const code = stub(count_);
    uint8_t* const begin = code + kBeforeEnd - site.before_bytes;
    const uint8_t* const goes_on = place + (site.end() - site.syscall);
    const uint8_t* const after = site.syscall + SyscallSite::kSyscallBytes;
    uint8_t* const jump = code + kAfterBegin + site.after_bytes;
    if (!move_instructions(begin, site.begin(), place - site.before_bytes, site.before_bytes) ||
        !move_instructions(code + kAfterBegin, after, place + SyscallSite::kSyscallBytes,
                           site.after_bytes) ||
        !write_jump(jump, jump, goes_on)) {
        return nullptr;
    }
    std::memcpy(code + kBeforeEnd, kMiddle.data(), kMiddle.size());
    write_call(code + kStubCallEnd);
    if (site.stays()) {
        if (!write_jump(code + kJumpInPlace, code + kJumpInPlace, place)) return nullptr;
        code[kStubCallEnd + 1] = kJumpInPlace - kStubCallEnd - 2;
    }
    const uint8_t* const behind = site.after_bytes == 0 ? goes_on : code + kAfterBegin;
    std::memcpy(code + kStubBehindAt, &behind, sizeof behind);
    std::memcpy(code + kStubReturnAt, &goes_on, sizeof goes_on);
    ++count_;
    return begin;
}

// The pool is linked with the entry, and in its reach.
void StubArea::write_call(uint8_t* end) const noexcept {
    constexpr uint8_t kDirectCall[] = {0x67, 0xe8};  // the prefix is there for its length
    const bool is_in_pool = memory_ == nullptr;
    if (is_in_pool) std::memcpy(end - kCallBytes, kDirectCall, sizeof kDirectCall);
    const auto* const target =
        is_in_pool ? reinterpret_cast<const uint8_t*>(&hanare_hook_entry) : memory_;
    const auto to_target = static_cast<int32_t>(target - end);
    std::memcpy(end - sizeof to_target, &to_target, sizeof to_target);
}

void StubArea::describe_frames() const noexcept {
    FrameDescription description;
    std::memcpy(description.common.frame, kFrameAddress, sizeof kFrameAddress);
    std::memcpy(description.common.return_address, kReturnAddress, sizeof kReturnAddress);
    description.frames.begin = reinterpret_cast<uint64_t>(stub(0));
    description.frames.bytes = capacity_ * kStubBytes;
    std::memcpy(frame_description(), &description, sizeof description);
}

Result<void> StubArea::seal() noexcept {
    if (memory_ == nullptr) {
        StubPool::give_back(stub(count_), capacity_ - count_);
        const size_t writable = std::exchange(capacity_, count_);
        if (StubPool::seal(stubs_, writable)) return {};
        return fail(HANARE_STATUS_NOT_SUPPORTED, "code of our own stays writable");
    }
    describe_frames();
    HANARE_TRY(sys::make_executable(memory_, bytes_));
    void* const record = FrameRecords::take();
    if (record == nullptr) return fail(HANARE_STATUS_LIMIT, "too many modules with stubs");
    FrameRecords::set_owner(record, frame_description());
    __register_frame_info(frame_description(), record);
    registered_ = true;
    return {};
}

void StubArea::release() noexcept {
    if (stubs_ == nullptr) return;
    if (registered_) {
        __deregister_frame_info(frame_description());
        FrameRecords::give_back(frame_description());
    }
    if (memory_ == nullptr) {
        StubPool::seal(stubs_, capacity_);
        StubPool::give_back(stubs_, capacity_);
    } else {
        sys::unmap_code(memory_, bytes_);
    }
    *this = {};
}

}  // namespace hanare::hook
