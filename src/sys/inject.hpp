// SPDX-License-Identifier: Apache-2.0
//
// Fault injection for tests: makes chosen system calls of this folder fail or come back short.
// Disarmed (always, outside tests) it costs one relaxed load per call.  Thread-safe and
// async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace hanare::sys::inject {

enum class Call : uint32_t {
    kMmap,
    kOpen,
    kFallocate,
    kRead,   // pread and ring reads
    kWrite,  // pwrite and ring writes
    kUringSetup,
    kUserfaultfd,
    kMove,     // UFFDIO_MOVE; fails behind the first page
    kFill,     // UFFDIO_COPY, UFFDIO_ZEROPAGE; of several pages, fails behind the first one
    kPoison,   // UFFDIO_POISON
    kRemap,    // moving a mapping
    kProtect,  // mprotect
    kSeveral,  // process_madvise
    kSend,     // to a TCP peer
    kReceive,  // from one
    kMessage,  // to a process of this machine
    kPopulate,
    kCount,
};

// From now on the calls number skip+1 .. skip+times fail with `os_errno`; os_errno 0 means "short"
// for kRead, kWrite, kSend and kReceive (half of the bytes).  Replaces an earlier rule for the same
// call.
void arm(Call call, int os_errno, uint64_t skip = 0, uint64_t times = UINT64_MAX) noexcept;
// Calls `observer` before each of the calls, until disarm_all().
void observe(void (*observer)(Call call) noexcept) noexcept;
void disarm_all() noexcept;

inline constexpr int kShort = -1;

namespace detail {
extern std::atomic<bool> armed;
int next_errno_slow(Call call) noexcept;
}  // namespace detail

// 0: make the real call.  > 0: fail with this errno.  kShort: transfer half.
inline int next_errno(Call call) noexcept {
    return detail::armed.load(std::memory_order_relaxed) ? detail::next_errno_slow(call) : 0;
}

}  // namespace hanare::sys::inject
