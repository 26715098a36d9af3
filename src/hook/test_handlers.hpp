// SPDX-License-Identifier: Apache-2.0
//
// Handlers of system calls.  These are rewritten for the life of a process, so every test does so
// in a child of its own.  Included by *_test.cpp only.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/sanitizers.hpp"
#include "hook/system_calls.hpp"
#include "hook/test_support.hpp"

// Handlers run where the program expects its vector registers to be kept.
#define GENERAL_REGISTERS [[gnu::target("general-regs-only")]]

namespace hanare::hook::testing {

using sys::testing::run_in_child;

class SystemCallsTest : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
        GTEST_SKIP() << "a sanitizer's own system calls would be rewritten as well";
#endif
    }
};

inline std::atomic<uint64_t> calls{0};  // that handlers have got
inline constexpr int64_t kAnswer = 4711;

GENERAL_REGISTERS inline Verdict answer(SystemCall& call) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    call.finish(kAnswer);
    return Verdict::kDone;
}

GENERAL_REGISTERS inline Verdict count_only(SystemCall&) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    return Verdict::kNative;
}

GENERAL_REGISTERS inline Verdict make_it_here(SystemCall& call) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    call.finish(raw_system_call(call.number, call.arguments));
    return Verdict::kDone;
}

inline std::atomic<uintptr_t> cleared{0};
inline std::atomic<uint32_t> watched{0};
inline std::atomic<uint64_t> calls_after{0};

GENERAL_REGISTERS inline void count_after(SystemCall&) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls_after), 1, __ATOMIC_RELAXED);
}

GENERAL_REGISTERS inline Verdict make_it_then_more(SystemCall& call) {
    __atomic_store_n(reinterpret_cast<uintptr_t*>(&cleared), 1, __ATOMIC_RELAXED);
    call.cleared = &cleared;
    call.watched = &watched;
    call.after = count_after;
    return Verdict::kThenAfter;
}

inline bool intercept(SystemCallHandler handler, std::vector<uint32_t> numbers,
                      std::vector<AddressedCall> addressed = {}, Transfers transfers = {}) {
    auto done = prepare_system_calls(handler, numbers, addressed, transfers);
    if (done) done = catch_system_calls();
    if (!done) std::fprintf(stderr, "%s\n", done.error().text);
    return done.has_value();
}

}  // namespace hanare::hook::testing
