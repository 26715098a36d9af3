// SPDX-License-Identifier: Apache-2.0
#include "sys/processor.hpp"

#include <cpuid.h>

#include <atomic>

namespace hanare::sys {

namespace {

enum Answer : int { kUnknown, kNo, kYes };
constinit std::atomic<int> avx2{kUnknown};

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

}  // namespace

bool has_avx2() noexcept {
    int answer = avx2.load(std::memory_order_relaxed);
    if (answer == kUnknown) {
        answer = ask_for_avx2() ? kYes : kNo;
        avx2.store(answer, std::memory_order_relaxed);
    }
    return answer == kYes;
}

}  // namespace hanare::sys
