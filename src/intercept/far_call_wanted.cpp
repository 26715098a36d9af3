// SPDX-License-Identifier: Apache-2.0
//
// FarCall: which calls are wanted, and what the structures name that hold addresses.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "intercept/far_call.hpp"
#include "intercept/may_read.hpp"
#include "pager/fault/region.hpp"

namespace hanare::intercept {

namespace {

using Kind = ArgumentKind;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kTextBytesMax = 4096;
constexpr uint64_t kVectorsMax = 1024;  // as the kernel's UIO_MAXIOV
// Of structures that hold addresses, and of what these name, as nobody says how much it is: more
// after each failure.
constexpr uint64_t kInnerBytesMax = 512;
constexpr uint64_t kNamedBytesMin = 256;
constexpr uint32_t kNamedDoublingsMax = 14;

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

bool is_far_message(const FarMemory& memory, const msghdr& message) {
    const auto is_far = [&](const void* at, size_t bytes) {
        const auto begin = reinterpret_cast<uint64_t>(at);
        return bytes != 0 && memory.overlaps(begin, begin + bytes);
    };
    if (is_far(message.msg_name, message.msg_namelen) ||
        is_far(message.msg_control, message.msg_controllen) ||
        is_far(message.msg_iov, message.msg_iovlen * sizeof(iovec))) {
        return true;
    }
    for (size_t index = 0; index < std::min(message.msg_iovlen, kVectorsMax); ++index) {
        const iovec& vector = message.msg_iov[index];
        if (is_far(vector.iov_base, vector.iov_len)) return true;
    }
    return false;
}

// Of an ioctl only what may hold addresses of memory that the program uses.
uint64_t bytes_with_addresses(const hook::SystemCall& call, const ArgumentSize& size) {
    constexpr uint64_t kScsi = 0x2285;   // SG_IO
    constexpr uint64_t kSockets = 0x89;  // SIOC...
    constexpr uint64_t kWireless = 0x8b;
    constexpr uint64_t kUserfault = 0xaa;  // UFFDIO_...: who serves faults must not have any
    const uint64_t number = static_cast<uint32_t>(call.arguments[1]);
    if (size.kind == ArgumentSize::Kind::kIoctl && (number >> 8 & 0xff) == kUserfault) return 0;
    const bool is_old = size.kind == ArgumentSize::Kind::kIoctl && number >> 16 == 0;
    if (is_old && number != kScsi && number >> 8 != kSockets && number >> 8 != kWireless) return 0;
    return size_of(call, size);
}

// Calls visit(word) for what may be addresses in a structure that holds some, until it says true.
template <typename Visit>
bool any_inner(const FarMemory& memory, const hook::SystemCall& call, const Argument& argument,
               Visit visit) {
    const uint64_t address = call.arguments[argument.index];
    const uint64_t bytes = std::min(bytes_with_addresses(call, argument.size), kInnerBytesMax);
    for (uint64_t at = address; at + sizeof(uint64_t) <= address + bytes; at += sizeof(uint64_t)) {
        const uint64_t in_page = at % kPageBytes;
        const bool begins =
            at == address || in_page < sizeof(uint64_t) || in_page > kPageBytes - sizeof(uint64_t);
        if (begins && !may_read(memory, call, at, sizeof(uint64_t))) return false;
        uint64_t word;
        __builtin_memcpy(&word, pointer(at), sizeof word);
        if (visit(word)) return true;
    }
    return false;
}

}  // namespace

bool FarCall::is_wanted(const FarMemory& memory, const hook::SystemCall& call,
                        const SystemCallArguments& row) {
    for (const Argument& argument : row.pointers()) {
        const uint64_t address = call.arguments[argument.index];
        if (address == 0) continue;
        if (memory.contains(address) || memory.contains(address + kTextBytesMax)) return true;
        // What lies elsewhere may tell of far memory.
        if (argument.holds_addresses) {
            const auto is_far = [&memory](uint64_t inner) { return memory.contains(inner); };
            if (any_inner(memory, call, argument, is_far)) return true;
            if (argument.uncertain) continue;
        }
        if (argument.kind == Kind::kVectorIn || argument.kind == Kind::kVectorOut) {
            const auto* vectors = reinterpret_cast<const iovec*>(address);
            const uint64_t count = std::min(count_of(call, argument.size), kVectorsMax);
            for (uint64_t index = 0; index < count; ++index) {
                const auto base = reinterpret_cast<uint64_t>(vectors[index].iov_base);
                if (memory.overlaps(base, base + vectors[index].iov_len)) return true;
            }
        } else if (argument.kind == Kind::kMessageIn || argument.kind == Kind::kMessageOut) {
            if (is_far_message(memory, *reinterpret_cast<const msghdr*>(address))) return true;
        } else if (argument.kind == Kind::kMessagesIn || argument.kind == Kind::kMessagesOut) {
            const auto* messages = reinterpret_cast<const mmsghdr*>(address);
            const uint64_t count = std::min(count_of(call, argument.size), kVectorsMax);
            if (memory.overlaps(address, address + count * sizeof(mmsghdr))) return true;
            for (uint64_t index = 0; index < count; ++index) {
                if (is_far_message(memory, messages[index].msg_hdr)) return true;
            }
        } else if (argument.kind == Kind::kTexts) {
            return true;
        } else if (argument.kind == Kind::kIn || argument.kind == Kind::kOut) {
            // A buffer may begin in front of far memory.
            if (argument.size.kind != ArgumentSize::Kind::kCounted) continue;
            const uint64_t bytes =
                count_of(call, argument.size) * argument.size.unit + argument.size.extra;
            if (address + bytes > address && memory.overlaps(address, address + bytes)) return true;
        }
    }
    return false;
}

// Not what is in memory for good, some of which may be protected.
bool FarCall::may_be_absent(uint64_t address) const {
    bool may_be = false;
    memory_.for_each_part(address, address + 1, [&](size_t index, uint64_t from, uint64_t) {
        const pager::Region* const region = memory_.lasting_region(index);
        may_be =
            region == nullptr ||
            region->access_of(region->index_of(pointer(from))).load(std::memory_order_relaxed) ==
                pager::block_access::kUsable;
    });
    return may_be;
}

// What a structure names, which is in no table.
void FarCall::touch_named(const Argument& argument, uint32_t repeats) {
    const uint64_t bytes = kNamedBytesMin << std::min(repeats, kNamedDoublingsMax);
    any_inner(memory_, call_, argument, [&](uint64_t inner) {
        if (is_far(inner)) touch(inner, bytes, true);
        return false;
    });
}

}  // namespace hanare::intercept
