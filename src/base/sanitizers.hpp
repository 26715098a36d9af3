// SPDX-License-Identifier: Apache-2.0
//
// Which sanitizer this is built under, and what it has to be told.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HANARE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HANARE_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define HANARE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HANARE_TSAN 1
#endif
#endif

#if defined(HANARE_ASAN)
extern "C" void __asan_unpoison_memory_region(const volatile void* address, size_t bytes);
#endif

#if defined(HANARE_TSAN)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace hanare::base {

// While one lives, ThreadSanitizer looks away from what this thread reads and maps.  For reads of
// a block's pages: page protection and the kernel order them against the program's own accesses,
// which the sanitizer cannot see.  Nothing in other builds.
class UnseenByTsan {
public:
#if defined(HANARE_TSAN)
    UnseenByTsan() noexcept { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
    ~UnseenByTsan() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
    UnseenByTsan() noexcept {}
    ~UnseenByTsan() {}
#endif
    UnseenByTsan(const UnseenByTsan&) = delete;
    UnseenByTsan& operator=(const UnseenByTsan&) = delete;
};

// Cancellation unwinds past frames without running their ends, where AddressSanitizer takes back
// its marks.  This does, for the stack below the caller.  Nothing in other builds.
inline void forget_cancelled_frames() noexcept {
#if defined(HANARE_ASAN)
    constexpr size_t kBytes = size_t{32} << 10;
    __asan_unpoison_memory_region(static_cast<char*>(__builtin_frame_address(0)) - kBytes, kBytes);
#endif
}

}  // namespace hanare::base
