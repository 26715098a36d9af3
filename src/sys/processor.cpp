// SPDX-License-Identifier: Apache-2.0
#include "sys/processor.hpp"

#include <cpuid.h>

#include <atomic>
#include <cstdint>

namespace hanare::sys {

namespace {

enum Answer : int { kUnknown, kNo, kYes };

// What a question found, asked by whoever comes first, or by several at once.
class Feature {
public:
    constexpr explicit Feature(bool (*ask)() noexcept) : ask_(ask) {}

    bool is_there() noexcept {
        int answer = answer_.load(std::memory_order_relaxed);
        if (answer == kUnknown) {
            answer = ask_() ? kYes : kNo;
            answer_.store(answer, std::memory_order_relaxed);
        }
        return answer == kYes;
    }

private:
    bool (*const ask_)() noexcept;
    std::atomic<int> answer_{kUnknown};
};

bool kernel_saves_ymm() noexcept {
    unsigned low = 0;
    unsigned high = 0;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr unsigned kXmmAndYmm = 6;
    return (low & kXmmAndYmm) == kXmmAndYmm;
}

bool ask_for_avx2() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0 || !kernel_saves_ymm()) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_AVX2) != 0;
}

bool ask_for_sse42() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

size_t ask_for_second_cache() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned kCaches = 0x80000006;  // of both makers; KiB in the upper half of ecx
    if (__get_cpuid(kCaches, &a, &b, &c, &d) == 0) return 0;
    return size_t{c >> 16} << 10;
}

constexpr size_t kNotAsked = SIZE_MAX;
constinit std::atomic<size_t> second_cache{kNotAsked};

constinit Feature avx2(ask_for_avx2);
constinit Feature sse42(ask_for_sse42);

}  // namespace

bool has_avx2() noexcept { return avx2.is_there(); }
bool has_sse42() noexcept { return sse42.is_there(); }

size_t second_cache_bytes() noexcept {
    size_t bytes = second_cache.load(std::memory_order_relaxed);
    if (bytes == kNotAsked) {
        bytes = ask_for_second_cache();
        second_cache.store(bytes, std::memory_order_relaxed);
    }
    return bytes;
}

}  // namespace hanare::sys
