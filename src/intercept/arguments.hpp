// SPDX-License-Identifier: Apache-2.0
//
// Which arguments of which system calls are addresses of the program's memory, and of how much: one
// table (arguments.def) for all of them.  Source: the system calls' manual pages (section 2) and the
// kernel's uapi headers, x86-64.
//
// Pure data; any thread; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hanare::intercept {

enum class ArgumentKind : uint8_t {
    kText,        // a string that ends with a zero byte; read
    kTexts,       // a vector of such strings that ends with a null pointer; read (argv)
    kIn,          // read by the kernel
    kOut,         // written by the kernel
    kInOut,       // both
    kVectorIn,    // an array of iovec whose buffers are read (writev); the size counts iovecs
    kVectorOut,   // an array of iovec whose buffers are written (readv)
    kMessageIn,   // msghdr of sendmsg
    kMessageOut,  // msghdr of recvmsg
    kMessagesIn,  // an array of mmsghdr of sendmmsg; the size counts elements
    kMessagesOut, // of recvmmsg
    kWord,        // a futex word
};

// How many bytes lie at an argument.
struct ArgumentSize {
    enum class Kind : uint8_t {
        kNone,        // kText, kTexts and the message kinds tell it themselves
        kFixed,       // `unit` bytes
        kCounted,     // argument `argument` (0 to 5) times `unit` bytes
        kBits,        // argument `argument` bits, in whole longs of 8 bytes (select)
        kLengthAt,    // the socklen_t (4 bytes) that argument `argument` points to
        kIoctl,       // what the ioctl's number, argument 1, says (_IOC_SIZE), see the .def
    };
    Kind kind = Kind::kNone;
    uint8_t argument = 0;
    uint16_t unit = 0;
};

struct Argument {
    uint8_t index = 0;  // 0 to 5
    ArgumentKind kind = ArgumentKind::kIn;
    ArgumentSize size;
    // Of kOut: the call's result, if positive, is how much was written, times `result_unit`; 0: it
    // does not tell, all of it may have been.
    uint16_t result_unit = 0;
};

struct SystemCallArguments {
    static constexpr size_t kMax = 6;
    uint16_t number = 0;
    bool known = false;       // the table has a row
    // It may take something away from where it comes before it fails for a bad address (a datagram,
    // a connection, a child's status), so that it must not be tried again.
    bool consumes = false;
    bool may_block = false;   // for ever
    uint8_t count = 0;
    Argument arguments[kMax] = {};

    std::span<const Argument> pointers() const noexcept { return {arguments, count}; }
};

inline constexpr size_t kSystemCallsMax = 512;

// Of a number of the x86-64 table; one that is not in the table has `known` false.
const SystemCallArguments& arguments_of(uint64_t number) noexcept;

}  // namespace hanare::intercept
