// SPDX-License-Identifier: Apache-2.0
//
// Which arguments of which system calls are addresses of the program's memory, and of how much: one
// table (arguments.def) for all of them.  Source: the manual pages of section 2 and the kernel's
// uapi headers, x86-64.
//
// Pure data; any thread; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::intercept {

enum class ArgumentKind : uint8_t {
    kText,         // a string that ends with a zero byte; read
    kTexts,        // a vector of such strings that ends with a null pointer; read (argv)
    kIn,           // read by the kernel
    kOut,          // written by the kernel
    kInOut,        // both
    kVectorIn,     // an array of iovec whose buffers are read (writev)
    kVectorOut,    // an array of iovec whose buffers are written (readv)
    kMessageIn,    // msghdr of sendmsg
    kMessageOut,   // msghdr of recvmsg
    kMessagesIn,   // an array of mmsghdr of sendmmsg, whose msg_len are written
    kMessagesOut,  // of recvmmsg
    kWord,         // a futex word
};

// How many bytes lie at an argument: of vectors and arrays of messages those of the array.  It is
// an upper bound: the kernel may look at less and write less, and what it leaves alone must stay.
struct ArgumentSize {
    enum class Kind : uint8_t {
        kNone,      // kText, kTexts, kMessageIn and kMessageOut tell it themselves
        kFixed,     // `unit` bytes
        kCounted,   // argument `argument` (0 to 5) times `unit` bytes, and `extra` bytes
        kBits,      // argument `argument` bits, in whole longs of 8 bytes (select)
        kPages,     // `unit` bytes for each page of 4096 bytes, also a part of one, of that many
        kLengthAt,  // the socklen_t (4 bytes) that argument `argument` points to, before the call,
                    // and `extra` bytes; that argument may be this one
        kIoctl,     // what the ioctl's number, argument 1, says (_IOC_SIZE); if that is 0: `unit`
    };
    Kind kind = Kind::kNone;
    uint8_t argument = 0;
    uint16_t unit = 0;
    uint16_t extra = 0;
    // The kernel takes that argument as an int: the upper half of its register is anything.  A
    // negative one is an error.
    bool is_int = false;
};

struct Argument {
    uint8_t index = 0;  // 0 to 5
    ArgumentKind kind = ArgumentKind::kIn;
    // What lies there holds more addresses, of which the table does not tell.
    bool holds_addresses = false;
    // The kernel uses the address after the call, too; or, if only it holds some, those.
    bool kept = false;
    // Other arguments decide whether it is an address at all, which way data goes and how much.  So
    // no copy can stand in its place, and not all of its bytes may be the program's.
    bool uncertain = false;
    ArgumentSize size;
    // Of kOut: the call's result, if positive, is how much was written, times `result_unit`, and
    // `size.extra` bytes, but never more than `size` (MSG_TRUNC); 0: it does not tell, all of it
    // may have been.
    uint16_t result_unit = 0;
};

struct SystemCallArguments {
    static constexpr size_t kMax = 6;
    uint16_t number = 0;
    bool known = false;  // the table has a row
    // It may have had an effect before it fails for a bad address (it took a datagram, a
    // connection, a child's status; it changed what it should have told the old value of), so that
    // it must not be tried again.  Where that depends on the file or on a command (read, readv,
    // ioctl, bpf), it is false: the caller has to know more.
    bool consumes = false;
    bool may_block = false;  // for ever
    uint8_t count = 0;
    Argument arguments[kMax] = {};

    constexpr std::span<const Argument> pointers() const noexcept { return {arguments, count}; }
};

inline constexpr size_t kSystemCallsMax = 512;

// Of a number of the x86-64 table; one that is not in the table has `known` false.  As in the
// kernel, the upper half of the register does not count.
const SystemCallArguments& arguments_of(uint64_t number) noexcept;

}  // namespace hanare::intercept
