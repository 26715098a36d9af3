// SPDX-License-Identifier: Apache-2.0
#include "intercept/far_call.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "intercept/file_kinds.hpp"
#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"
#include "pager/fault/residency.hpp"
#include "sys/futex.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"

namespace hanare::intercept {

namespace {

using Kind = ArgumentKind;

// An argument of that size is copied; what may be transferred sooner than it is copied is held,
// unless the call may sleep.
constexpr uint64_t kBounceBytesMax = 16 << 10;
// What is present is held sooner than more than this is copied.
constexpr uint64_t kCopiedSoonerBytesMax = 512;
constexpr uint64_t kBounceBytesMaxAsleep = 48 << 10;
constexpr uint64_t kTextBytesMax = 4096;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kVectorsMax = 1024;  // as the kernel's UIO_MAXIOV
constexpr uint32_t kRepeatsMax = 64;
constexpr uint64_t kPiecesHeldMax = 4;  // of one buffer

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// memcpy may use vector registers.
void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) noexcept {
    // It takes dozens of cycles to begin.
    constexpr size_t kShortBytes = 128;
    if (bytes > kShortBytes) {
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
        return;
    }
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
        uint64_t word;
        __builtin_memcpy(&word, from, sizeof word);
        __builtin_memcpy(to, &word, sizeof word);
        from += sizeof word;
        to += sizeof word;
    }
    for (; bytes > 0; --bytes) *to++ = *from++;
}

bool is_written(Kind kind) {
    return kind == Kind::kOut || kind == Kind::kInOut || kind == Kind::kVectorOut ||
           kind == Kind::kMessageOut || kind == Kind::kMessagesOut || kind == Kind::kWord;
}

bool is_regular(uint64_t file) noexcept {
    struct stat status;
    if (sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0) return false;
    return S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode);
}

// A message there may be cut short, as one that a signal interrupts; it must not be held as a
// whole, since it may be larger than local memory.
bool is_stream(uint64_t socket) noexcept {
    int type = 0;
    socklen_t bytes = sizeof type;
    const int64_t result =
        sys::raw_call6(SYS_getsockopt, socket, SOL_SOCKET, SO_TYPE,
                       reinterpret_cast<uint64_t>(&type), reinterpret_cast<uint64_t>(&bytes), 0);
    return result == 0 && type == SOCK_STREAM;
}

// Calls in whose place several shorter ones do the same.
bool may_be_divided(uint64_t number) {
    switch (number) {
        case SYS_read:
        case SYS_write:
        case SYS_pread64:
        case SYS_pwrite64:
        case SYS_sendto:
        case SYS_recvfrom:
        case SYS_readv:
        case SYS_writev:
        case SYS_preadv:
        case SYS_pwritev:
        case SYS_preadv2:
        case SYS_pwritev2: return true;
        default: return false;
    }
}

bool has_offset(uint64_t number) {
    switch (number) {
        case SYS_pread64:
        case SYS_pwrite64:
        case SYS_preadv:
        case SYS_pwritev:
        case SYS_preadv2:
        case SYS_pwritev2: return true;
        default: return false;
    }
}

// How long recvmmsg goes on once a message has come.
class Patience {
public:
    explicit Patience(timespec* limit) : limit_(limit) {
        if (limit != nullptr) end_ns_ = now_ns() + limit->tv_sec * kSecond_ns + limit->tv_nsec;
    }
    bool is_over() {
        const bool first = is_first_;
        is_first_ = false;
        return !first && limit_ != nullptr && now_ns() >= end_ns_;
    }
    void tell_rest() const {
        if (limit_ == nullptr) return;
        const int64_t rest_ns = std::max<int64_t>(end_ns_ - now_ns(), 0);
        limit_->tv_sec = rest_ns / kSecond_ns;
        limit_->tv_nsec = rest_ns % kSecond_ns;
    }

private:
    static constexpr int64_t kSecond_ns = 1'000'000'000;
    static int64_t now_ns() {
        timespec now;
        sys::raw_call3(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<uint64_t>(&now), 0);
        return now.tv_sec * kSecond_ns + now.tv_nsec;
    }
    timespec* const limit_;
    int64_t end_ns_ = 0;
    bool is_first_ = true;
};

struct HoldRequest {
    const std::byte* begin;
    const std::byte* end;
    bool write;
    pager::FrameTable* frames;  // the answer
};

// Somebody may wait for what was held.
void note_progress(void* frames) {
    const sys::SignalBlockButFaults signals;
    static_cast<pager::FrameTable*>(frames)->note_progress();
}

// A handler of the program's may never come back, and the block would stay on its way for ever.
void hold_slowly(void* context) {
    const sys::SignalBlockButFaults signals;
    auto& request = *static_cast<HoldRequest*>(context);
    pager::Region* const region = pager::region_table().enter(request.begin);
    if (region == nullptr) return;
    request.frames = &region->pager->frames();
    const std::byte* const end = std::min<const std::byte*>(request.end, region->end());
    static_cast<void>(region->pager->hold(*region, request.begin, end, request.write));
    region->leave();
}

bool is_present(const pager::Region& region, uint64_t from, uint64_t to, bool write) {
    const uint32_t first = region.index_of(pointer(from));
    const uint32_t last = region.index_of(pointer(to - 1));
    for (uint32_t index = first; index <= last; ++index) {
        const uint32_t first_part = index == first ? region.part_of(pointer(from)) : 0;
        const uint32_t last_part =
            index == last ? region.part_of(pointer(to - 1)) : region.parts_per_block - 1;
        if (!pager::are_present(region, index, first_part, last_part, write)) return false;
    }
    return true;
}

}  // namespace

uint64_t size_of(const hook::SystemCall& call, const ArgumentSize& size) noexcept {
    const uint64_t count = count_of(call, size);
    switch (size.kind) {
        case ArgumentSize::Kind::kNone: return 0;
        case ArgumentSize::Kind::kFixed: return size.unit;
        case ArgumentSize::Kind::kCounted: return count * size.unit + size.extra;
        case ArgumentSize::Kind::kBits: return (count + 63) / 64 * 8;
        case ArgumentSize::Kind::kPages: return (count + kPageBytes - 1) / kPageBytes * size.unit;
        case ArgumentSize::Kind::kLengthAt:
            return count == 0 ? 0 : *reinterpret_cast<const uint32_t*>(count) + size.extra;
        case ArgumentSize::Kind::kIoctl: {
            const uint64_t told = call.arguments[1] >> 16 & 0x3fff;
            return told != 0 ? told : size.unit;
        }
    }
    return 0;
}

uint64_t FarCall::vectors_bytes(const Argument& argument) const {
    const auto* vectors = reinterpret_cast<const Vector*>(call_.arguments[argument.index]);
    const uint64_t count = std::min(count_of(call_, argument.size), kVectorsMax);
    uint64_t bytes = 0;
    for (uint64_t index = 0; index < count; ++index) {
        if (memory_.overlaps(vectors[index].base, vectors[index].base + vectors[index].bytes)) {
            bytes += vectors[index].bytes;
        }
    }
    return bytes;
}

bool FarCall::is_bulk(const SystemCallArguments& row, const Argument& argument) const {
    if (!may_be_divided(row.number) || call_.arguments[argument.index] == 0) return false;
    if (argument.kind == Kind::kVectorIn || argument.kind == Kind::kVectorOut) {
        return vectors_bytes(argument) > piece_bytes_;
    }
    return argument.index == 1 && size_of(call_, argument.size) > piece_bytes_;
}

int64_t FarCall::make(const SystemCallArguments& row) {
    if (row.number == SYS_vmsplice) return make_copying_splice();
    if (row.number == SYS_getrandom) return make_random_in_pieces(row);
    if (row.number == SYS_sendmmsg || row.number == SYS_recvmmsg) return make_messages(row);
    for (const Argument& argument : row.pointers()) {
        if (!is_bulk(row, argument)) continue;
        const bool vector = argument.kind == Kind::kVectorIn || argument.kind == Kind::kVectorOut;
        return vector ? make_vector_in_pieces(row, argument) : make_in_pieces(row, argument);
    }
    return make_once(row);
}

// As one call of the kernel's that is interrupted or comes to the end: what was transferred until
// then.  A stream may have no more for now, so what has come is all that is waited for.
int64_t FarCall::make_in_pieces(const SystemCallArguments& row, const Argument& argument) {
    const uint64_t begin = call_.arguments[1];
    const uint64_t bytes = call_.arguments[2];
    const uint64_t offset = call_.arguments[3];
    constexpr uint64_t kWaitAll = MSG_WAITALL;
    const bool goes_on = argument.kind == Kind::kIn || is_regular(call_.arguments[0]) ||
                         (row.number == SYS_recvfrom && (call_.arguments[3] & kWaitAll) != 0);
    uint64_t done = 0;
    int64_t result = 0;
    while (done < bytes) {
        const uint64_t piece = std::min<uint64_t>(piece_bytes_, bytes - done);
        call_.arguments[1] = begin + done;
        call_.arguments[2] = piece;
        if (has_offset(row.number)) call_.arguments[3] = offset + done;
        result = make_once(row);
        if (result <= 0) break;
        done += static_cast<uint64_t>(result);
        if (static_cast<uint64_t>(result) < piece || !goes_on) break;
    }
    call_.arguments[1] = begin;
    call_.arguments[2] = bytes;
    call_.arguments[3] = offset;
    return done > 0 ? static_cast<int64_t>(done) : result;
}

// As above.  The kernel, too, stops between pieces where a signal comes.
int64_t FarCall::make_random_in_pieces(const SystemCallArguments& row) {
    const uint64_t begin = call_.arguments[0];
    const uint64_t bytes = call_.arguments[1];
    uint64_t done = 0;
    int64_t result = 0;
    do {
        const uint64_t piece = std::min<uint64_t>(piece_bytes_, bytes - done);
        call_.arguments[0] = begin + done;
        call_.arguments[1] = piece;
        result = make_once(row);
        if (result <= 0) break;
        done += static_cast<uint64_t>(result);
        if (static_cast<uint64_t>(result) < piece) break;
    } while (done < bytes);
    call_.arguments[0] = begin;
    call_.arguments[1] = bytes;
    return done > 0 ? static_cast<int64_t>(done) : result;
}

int64_t FarCall::make_vector_in_pieces(const SystemCallArguments& row, const Argument& argument) {
    constexpr size_t kAtOnce = 8;
    const uint64_t address = call_.arguments[1];
    const uint64_t count = call_.arguments[2];
    const uint64_t offset = call_.arguments[3];
    const auto* vectors = reinterpret_cast<const Vector*>(address);
    const bool goes_on = argument.kind == Kind::kVectorIn || is_regular(call_.arguments[0]);
    const bool moves_offset = has_offset(row.number) && offset != ~uint64_t{0};
    Vector piece[kAtOnce];
    uint64_t done = 0;
    uint64_t index = 0;
    uint64_t within = 0;  // of vectors[index], done already
    int64_t result = 0;
    while (index < count) {
        size_t pieces = 0;
        uint64_t wanted = 0;
        for (uint64_t at = index, from = within;
             at < count && pieces < kAtOnce && wanted < piece_bytes_; ++at, from = 0) {
            const uint64_t bytes = std::min(vectors[at].bytes - from, piece_bytes_ - wanted);
            piece[pieces].base = vectors[at].base + from;
            piece[pieces].bytes = bytes;
            ++pieces;
            wanted += bytes;
        }
        call_.arguments[1] = reinterpret_cast<uint64_t>(&piece[0]);
        call_.arguments[2] = pieces;
        if (moves_offset) call_.arguments[3] = offset + done;
        result = make_once(row);
        if (result <= 0 && wanted > 0) break;
        done += static_cast<uint64_t>(result);
        for (uint64_t left = static_cast<uint64_t>(result); index < count;) {
            const uint64_t rest = vectors[index].bytes - within;
            if (left < rest) {
                within += left;
                break;
            }
            left -= rest;
            within = 0;
            ++index;
        }
        if (static_cast<uint64_t>(result) < wanted || !goes_on) break;
    }
    call_.arguments[1] = address;
    call_.arguments[2] = count;
    call_.arguments[3] = offset;
    return done > 0 ? static_cast<int64_t>(done) : result;
}

// One at a time: a message that is half received is lost, and so many cannot all be held.
int64_t FarCall::make_messages(const SystemCallArguments& row) {
    const bool receives = row.number == SYS_recvmmsg;
    const SystemCallArguments& single = arguments_of(receives ? SYS_recvmsg : SYS_sendmsg);
    auto* const messages = reinterpret_cast<mmsghdr*>(call_.arguments[1]);
    const auto wanted = static_cast<uint32_t>(call_.arguments[2]);
    const uint64_t count = std::min<uint64_t>(wanted, kVectorsMax);
    uint64_t saved[6];
    for (size_t index = 0; index < 6; ++index) saved[index] = call_.arguments[index];
    Patience patience(receives ? reinterpret_cast<timespec*>(saved[4]) : nullptr);
    uint64_t flags = static_cast<uint32_t>(saved[3]);
    constexpr uint64_t kForOne = MSG_WAITFORONE;
    constexpr uint64_t kDoNotWait = MSG_DONTWAIT;
    uint64_t done = 0;
    int64_t result = 0;
    while (done < count && !patience.is_over()) {
        mmsghdr& message = messages[done];
        const auto at = reinterpret_cast<uint64_t>(&message);
        if (is_far(at) && !memory_.may_access(at, sizeof message)) {
            result = -EFAULT;
            break;
        }
        call_.arguments[1] = at;
        call_.arguments[2] = flags & ~kForOne;
        result = make_once(single);
        if (result < 0) break;
        message.msg_len = static_cast<uint32_t>(result);
        ++done;
        if (receives && (flags & kForOne) != 0) flags |= kDoNotWait;
    }
    for (size_t index = 0; index < 6; ++index) call_.arguments[index] = saved[index];
    if (done == 0) return result;
    patience.tell_rest();
    return static_cast<int64_t>(done);
}

// vmsplice by copies: pages in a pipe would be there until somebody reads it, and given new content
// meanwhile.
int64_t FarCall::make_copying_splice() {
    constexpr uint64_t kCurrentOffset = ~uint64_t{0};
    constexpr uint64_t kDoesNotWait = 8;  // RWF_NOWAIT
    struct stat status;
    const uint64_t file = call_.arguments[0];
    const int64_t flags = sys::raw_call3(SYS_fcntl, file, F_GETFL, 0);
    if (flags < 0 || sys::raw_call3(SYS_fstat, file, reinterpret_cast<uint64_t>(&status), 0) != 0 ||
        !S_ISFIFO(status.st_mode)) {
        return -EBADF;
    }
    const uint64_t splice_flags = call_.arguments[3];
    const bool is_read = (flags & O_ACCMODE) == O_RDONLY;
    call_.arguments[3] = kCurrentOffset;
    call_.arguments[4] = 0;
    call_.arguments[5] = (splice_flags & SPLICE_F_NONBLOCK) != 0 ? kDoesNotWait : 0;
    const SystemCallArguments& row = arguments_of(is_read ? SYS_preadv2 : SYS_pwritev2);
    int64_t result = make(row);
    if (result == -EOPNOTSUPP) {  // before Linux 6.4 pipes know only their own flag
        call_.arguments[5] = 0;
        result = make(row);
    }
    call_.arguments[3] = splice_flags;
    return result;
}

int64_t FarCall::make_once(const SystemCallArguments& row) {
    pager::holds.drop_left(reinterpret_cast<uintptr_t>(call_.stack));
    for (uint32_t repeats = 0;; ++repeats) {
        uint64_t arguments[6];
        const int64_t result = make_prepared(row, arguments, repeats);
        // What was only touched may have gone before the kernel came to it.
        if (result != -EFAULT || !is_touched_ || row.consumes || repeats == kRepeatsMax) {
            return result;
        }
    }
}

// A futex operation's registers that it does not use may hold anything.
bool FarCall::is_used_by_futex(const Argument& argument) const noexcept {
    if (call_.number != SYS_futex || !argument.uncertain) return true;
    const auto operation = static_cast<int>(call_.arguments[1]);
    return argument.kind == ArgumentKind::kWord ? sys::has_second_futex(operation)
                                                : sys::has_futex_timeout(operation);
}

int64_t FarCall::make_prepared(const SystemCallArguments& row, uint64_t (&arguments)[6],
                               uint32_t repeats) {
    for (size_t index = 0; index < 6; ++index) arguments[index] = call_.arguments[index];
    copies_count_ = 0;
    holds_count_ = 0;
    vectors_local_ = nullptr;
    message_local_ = nullptr;
    for (const Argument& argument : row.pointers()) {
        const uint64_t address = arguments[argument.index];
        if (address == 0 || !is_used_by_futex(argument)) continue;
        const bool writes = is_written(argument.kind);
        uint64_t& placed = arguments[argument.index];
        switch (argument.kind) {
            case Kind::kText:
                if (argument.uncertain) {
                    touch(address, kTextBytesMax, false);
                } else {
                    placed = place_text(address);
                }
                break;
            case Kind::kTexts: placed = place_texts(address); break;
            case Kind::kVectorIn:
            case Kind::kVectorOut:
                if (argument.uncertain || argument.kept) {
                    touch(address, size_of(call_, argument.size), true);
                } else {
                    placed = place_vectors(address, count_of(call_, argument.size), writes,
                                           row.may_block);
                }
                break;
            case Kind::kMessageIn:
            case Kind::kMessageOut: placed = place_message(address, writes, row.may_block); break;
            case Kind::kMessagesIn:
            case Kind::kMessagesOut: break;  // make_messages()
            case Kind::kWord: touch(address, sizeof(uint32_t), false); break;
            case Kind::kIn:
            case Kind::kOut:
            case Kind::kInOut: {
                const uint64_t bytes = size_of(call_, argument.size);
                if (argument.uncertain || argument.kept) {
                    touch(address, bytes, writes);
                } else {
                    placed = place(argument, address, bytes, row.may_block);
                }
                if (argument.holds_addresses) touch_named(argument, repeats);
                break;
            }
        }
    }
    const int64_t result = hook::raw_system_call(row.number, arguments);
    copy_vectors_back(result);
    copy_message_back(result);
    copy_back(result);
    release();
    return result;
}

// Only where that brings nothing in.
bool FarCall::is_held_sooner(uint64_t address, uint64_t bytes, bool write) const {
    if (bytes <= kCopiedSoonerBytesMax || !may_be_divided(call_.number)) return false;
    const uint64_t end = address + bytes;
    bool is_there = false;
    memory_.for_each_part(address, end, [&](size_t index, uint64_t from, uint64_t to) {
        if (from != address || to != end) return;
        const pager::Region* const region = memory_.lasting_region(index);
        is_there = region != nullptr && is_present(*region, from, to, write);
    });
    return is_there && transfers_promptly(call_.arguments[0]);
}

uint64_t FarCall::place(const Argument& argument, uint64_t address, uint64_t bytes,
                        bool may_block) {
    if (bytes == 0 || address + bytes < address || !memory_.overlaps(address, address + bytes)) {
        return address;
    }
    const bool writes = is_written(argument.kind);
    const uint64_t most = may_block ? kBounceBytesMaxAsleep : kBounceBytesMax;
    if (bytes > most || !memory_.may_access(address, bytes) ||
        is_held_sooner(address, bytes, writes)) {
        hold(address, bytes, writes);
        return address;
    }
    std::byte* const local = copies_count_ < kCopiesMax ? bounce_.take(bytes, address) : nullptr;
    if (local == nullptr) {
        hold(address, bytes, writes);
        return address;
    }
    // What the kernel does not write must be as it was.
    if (!writes || argument.result_unit == 0) copy_bytes(local, pointer(address), bytes);
    if (writes) {
        Copy& noted = copies_[copies_count_++];
        noted.far = pointer(address);
        noted.local = local;
        noted.bytes = bytes;
        noted.result_unit = argument.result_unit;
        noted.extra = argument.size.extra;
    }
    return reinterpret_cast<uint64_t>(local);
}

uint64_t FarCall::place_text(uint64_t address) {
    if (!memory_.overlaps(address, address + kTextBytesMax)) return address;
    std::byte* const local =
        bounce_.left() >= kTextBytesMax ? bounce_.take(kTextBytesMax) : nullptr;
    if (local == nullptr) {
        touch(address, kTextBytesMax, false);
        return address;
    }
    for (uint64_t at = 0; at < kTextBytesMax; ++at) {
        // Where the program has nothing mapped, that is what the kernel shall find, too.
        if ((at == 0 || (address + at) % kPageBytes == 0) && !memory_.may_access(address + at, 1)) {
            return address;
        }
        local[at] = *pointer(address + at);
        if (local[at] == std::byte{0}) return reinterpret_cast<uint64_t>(local);
    }
    return address;  // too long for a path; for other texts it is held by being touched
}

uint64_t FarCall::place_vectors(uint64_t address, uint64_t count, bool writes, bool may_block,
                                uint64_t bytes_max) {
    if (count == 0 || count > kVectorsMax) return address;
    const auto* vectors = reinterpret_cast<const Vector*>(address);
    if (memory_.overlaps(address, address + count * sizeof(Vector)) &&
        !memory_.may_access(address, count * sizeof(Vector))) {
        return address;
    }
    auto* const local = reinterpret_cast<Vector*>(bounce_.take(count * sizeof(Vector)));
    if (local == nullptr) {
        touch(address, count * sizeof(Vector), false);
        for (uint64_t index = 0; index < count; ++index) {
            touch(vectors[index].base, vectors[index].bytes, writes);
        }
        return address;
    }
    const uint64_t most = may_block ? kBounceBytesMaxAsleep : kBounceBytesMax;
    for (uint64_t index = 0; index < count; ++index) {
        const uint64_t base = vectors[index].base;
        const uint64_t bytes = std::min(vectors[index].bytes, bytes_max);
        bytes_max -= bytes;
        local[index].base = base;
        local[index].bytes = bytes;
        if (bytes == 0 || base + bytes < base || !memory_.overlaps(base, base + bytes)) continue;
        const bool copies = bytes <= most && memory_.may_access(base, bytes) &&
                            !is_held_sooner(base, bytes, writes);
        std::byte* const copied = copies ? bounce_.take(bytes, base) : nullptr;
        if (copied == nullptr) {
            hold(base, bytes, writes);
            continue;
        }
        if (!writes) copy_bytes(copied, pointer(base), bytes);
        local[index].base = reinterpret_cast<uint64_t>(copied);
    }
    if (writes) {
        vectors_far_ = address;
        vectors_local_ = local;
        vectors_count_ = count;
    }
    return reinterpret_cast<uint64_t>(local);
}

uint64_t FarCall::place_message(uint64_t address, bool writes, bool may_block) {
    if (memory_.overlaps(address, address + sizeof(msghdr)) &&
        !memory_.may_access(address, sizeof(msghdr))) {
        return address;
    }
    const auto* message = reinterpret_cast<const msghdr*>(address);
    auto* const local = reinterpret_cast<msghdr*>(bounce_.take(sizeof(msghdr)));
    if (local == nullptr) {
        touch(address, sizeof(msghdr), writes);
        return address;
    }
    copy_bytes(reinterpret_cast<std::byte*>(local), pointer(address), sizeof(msghdr));
    Argument part;
    part.kind = writes ? Kind::kInOut : Kind::kIn;
    local->msg_name = pointer(place(part, reinterpret_cast<uint64_t>(message->msg_name),
                                    message->msg_namelen, may_block));
    local->msg_control = pointer(place(part, reinterpret_cast<uint64_t>(message->msg_control),
                                       message->msg_controllen, may_block));
    local->msg_iov = reinterpret_cast<iovec*>(
        place_vectors(reinterpret_cast<uint64_t>(message->msg_iov), message->msg_iovlen, writes,
                      may_block, is_stream(call_.arguments[0]) ? piece_bytes_ : UINT64_MAX));
    if (writes) {
        message_far_ = address;
        message_local_ = reinterpret_cast<const std::byte*>(local);
    }
    return reinterpret_cast<uint64_t>(local);
}

// More than fits a bounce buffer, and all of it at once: a copy in memory of its own, which ends
// with the program that exec replaces, or with release().
uint64_t FarCall::place_texts(uint64_t address) {
    uint64_t count = 0;
    uint64_t bytes = 0;
    bool any = false;
    for (;; ++count) {
        const uint64_t at = address + count * 8;
        if (!memory_.may_access(at, 8)) return address;
        any = any || is_far(at);
        const uint64_t text = *reinterpret_cast<const uint64_t*>(at);
        if (text == 0) break;
        for (uint64_t character = text;; ++character) {
            const bool begins = character == text || character % kPageBytes == 0;
            if (begins && !memory_.may_access(character, 1)) return address;
            any = any || (begins && is_far(character));
            ++bytes;
            if (*pointer(character) == std::byte{0}) break;
        }
    }
    if (!any || texts_count_ == kTextsMax) return address;
    const uint64_t table = (count + 1) * 8;
    const int64_t mapped = sys::raw_call6(SYS_mmap, 0, table + bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0);
    if (mapped < 0) return address;
    const auto copied = static_cast<uint64_t>(mapped);
    uint64_t to = copied + table;
    for (uint64_t index = 0; index < count; ++index) {
        const uint64_t text = *reinterpret_cast<const uint64_t*>(address + index * 8);
        *reinterpret_cast<uint64_t*>(copied + index * 8) = to;
        for (uint64_t character = text; to < copied + table + bytes; ++character) {
            *pointer(to++) = *pointer(character);
            if (*pointer(to - 1) == std::byte{0}) break;
        }
    }
    texts_[texts_count_] = copied;
    texts_bytes_[texts_count_++] = table + bytes;
    return copied;
}

// Where memory ends that the program may access: the kernel transfers what is in front of that.
uint64_t FarCall::accessible_end(const pager::Region& region, uint64_t from, uint64_t to) const {
    while (from < to && !memory_.may_access(from, to - from)) {
        const auto* last = region.address_of(region.index_of(pointer(to - 1)));
        to = reinterpret_cast<uint64_t>(last);
    }
    return to;
}

// Published first, then looked at: whoever evicts does it the other way round.
// Of what cannot be made in pieces, no more than so many: few calls use all that they are given.
void FarCall::hold(uint64_t address, uint64_t bytes, bool write) {
    const uint64_t most = kPiecesHeldMax * piece_bytes_;
    if (bytes > most) {
        bytes = most;
        is_touched_ = true;
    }
    memory_.for_each_part(address, address + bytes, [&](size_t index, uint64_t from, uint64_t to) {
        pager::Region* const region = memory_.lasting_region(index);
        if (region != nullptr) to = accessible_end(*region, from, to);
        if (from >= to) return;
        pager::Holds::Hold* const held =
            holds_count_ < kHoldsMax
                ? pager::holds.publish(from, to, reinterpret_cast<uintptr_t>(call_.stack))
                : nullptr;
        HoldRequest request;
        request.begin = pointer(from);
        request.end = pointer(to);
        request.write = write;
        request.frames = region != nullptr ? &region->pager->frames() : nullptr;
        if (region == nullptr || !is_present(*region, from, to, write)) {
            hook::hanare_hook_with_vector_registers(hold_slowly, &request);
        }
        if (held != nullptr) {
            frames_[holds_count_] = request.frames;
            holds_[holds_count_++] = held;
        } else {
            is_touched_ = true;
        }
    });
}

void FarCall::touch(uint64_t address, uint64_t bytes, bool write) {
    if (bytes == 0 || address + bytes < address || !memory_.overlaps(address, address + bytes)) {
        return;
    }
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end; at = (at / kPageBytes + 1) * kPageBytes) {
        if (!is_far(at)) continue;
        if (!memory_.may_access(at, 1)) return;
        if (!may_be_absent(at)) continue;
        is_touched_ = true;
        auto* const byte = reinterpret_cast<uint8_t*>(at);
        if (write) {
            __atomic_fetch_or(byte, uint8_t{0}, __ATOMIC_RELAXED);
        } else {
            static_cast<void>(*static_cast<volatile uint8_t*>(byte));
        }
    }
}

void FarCall::copy_back(int64_t result) {
    for (size_t index = 0; index < copies_count_; ++index) {
        const Copy& noted = copies_[index];
        uint64_t bytes = noted.bytes;
        if (noted.result_unit != 0) {
            if (result < 0 || (result == 0 && noted.extra == 0)) continue;
            bytes =
                std::min(bytes, static_cast<uint64_t>(result) * noted.result_unit + noted.extra);
        }
        copy_bytes(noted.far, noted.local, bytes);
    }
}

void FarCall::copy_vectors_back(int64_t result) {
    if (vectors_local_ == nullptr || result <= 0) return;
    const auto* vectors = reinterpret_cast<const Vector*>(vectors_far_);
    auto left = static_cast<uint64_t>(result);
    for (uint64_t index = 0; index < vectors_count_ && left > 0; ++index) {
        const uint64_t bytes = std::min(left, vectors[index].bytes);
        if (vectors_local_[index].base != vectors[index].base) {
            copy_bytes(pointer(vectors[index].base), pointer(vectors_local_[index].base), bytes);
        }
        left -= bytes;
    }
}

// Lengths and flags; addresses stay the program's.
void FarCall::copy_message_back(int64_t result) {
    if (message_local_ == nullptr || result < 0) return;
    const auto* local = reinterpret_cast<const msghdr*>(message_local_);
    auto* const message = reinterpret_cast<msghdr*>(message_far_);
    message->msg_namelen = local->msg_namelen;
    message->msg_controllen = local->msg_controllen;
    message->msg_flags = local->msg_flags;
}

void FarCall::release() {
    for (size_t index = 0; index < texts_count_; ++index) {
        sys::raw_call3(SYS_munmap, texts_[index], texts_bytes_[index], 0);
    }
    texts_count_ = 0;
    for (size_t index = 0; index < holds_count_; ++index) {
        pager::Holds::release(*holds_[index]);
    }
    for (size_t index = 0; index < holds_count_; ++index) {
        if (frames_[index] == nullptr || !frames_[index]->is_waited_for()) continue;
        hook::hanare_hook_with_vector_registers(note_progress, frames_[index]);
    }
    bounce_.leave();
}

}  // namespace hanare::intercept
