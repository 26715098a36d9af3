// SPDX-License-Identifier: Apache-2.0
//
// System calls made here and not in libc, so that nobody who intercepts libc's sees them: Hanare
// may itself be who does (src/intercept), and its own memory and rings are none of the program's.
// As libc's functions of the same names: -1 or MAP_FAILED, and errno.  Async-signal-safe, no
// cancellation points.
//
// Sanitizers must see mappings come and go, so there it is libc that is called.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/sanitizers.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::sys::raw {

#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
using ::madvise;
using ::mmap;
using ::mprotect;
using ::munmap;
using ::syscall;
inline void* mremap(void* from, size_t bytes, size_t new_bytes, int flags, void* to) noexcept {
    return ::mremap(from, bytes, new_bytes, flags, to);
}
#else
template <typename Argument>
uint64_t bits_of(Argument argument) noexcept {
    if constexpr (std::is_null_pointer_v<Argument>) {
        return 0;
    } else if constexpr (std::is_pointer_v<Argument>) {
        return reinterpret_cast<uint64_t>(argument);
    } else {
        return static_cast<uint64_t>(argument);
    }
}

template <typename A = int, typename B = int, typename C = int, typename D = int, typename E = int,
          typename F = int>
long syscall(long number, A a = {}, B b = {}, C c = {}, D d = {}, E e = {}, F f = {}) noexcept {
    const int64_t result =
        raw_call6(number, bits_of(a), bits_of(b), bits_of(c), bits_of(d), bits_of(e), bits_of(f));
    if (result >= 0 || result < -4095) return result;
    errno = static_cast<int>(-result);
    return -1;
}

inline void* mmap(void* address, size_t bytes, int protection, int flags, int file,
                  int64_t offset) noexcept {
    return reinterpret_cast<void*>(
        syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
inline int munmap(void* address, size_t bytes) noexcept {
    return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
inline int mprotect(void* address, size_t bytes, int protection) noexcept {
    return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}
inline int madvise(void* address, size_t bytes, int advice) noexcept {
    return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}
inline void* mremap(void* from, size_t bytes, size_t new_bytes, int flags, void* to) noexcept {
    return reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, to));
}
#endif

}  // namespace hanare::sys::raw
