// SPDX-License-Identifier: Apache-2.0
//
// Memory that really faults, and a receiver that repairs it.  A claim lasts for the life of a
// process, so every test claims in a child of its own (sys::testing::run_in_child).
// Included by *_test.cpp only.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "base/sanitizers.hpp"
#include "hook/signals.hpp"
#include "sys/test_memory.hpp"
#include "sys/test_support.hpp"

// In a child: gives up with the failed expression.
#define HOOK_CHECK(expression)                                                                   \
    do {                                                                                         \
        if (!(expression)) return std::string(#expression ", line ") + std::to_string(__LINE__); \
    } while (false)

namespace hanare::hook::testing {

using sys::testing::FaultingPage;
using sys::testing::kPageBytes;

// Far memory is repaired by the receiver; foreign memory by the program's handler, or by nobody.
inline const FaultingPage* far_page = nullptr;
inline const FaultingPage* foreign_page = nullptr;
inline std::atomic<int> served{0};

inline bool serve(int, siginfo_t* info, void*) noexcept {
    errno = EDOM;  // must not be seen outside
    if (!far_page->contains(info->si_addr)) return false;
    far_page->repair();
    served.fetch_add(1);
    return true;
}

// For a child: the pages, and no handler of a sanitizer in the way.
class Scene {
public:
    Scene() {
        far_page = &far_;
        foreign_page = &foreign_;
        std::signal(SIGBUS, SIG_DFL);
    }
    static bool claim(SignalReceiver receiver = serve) {
        return claim_signal(SIGBUS, receiver).has_value();
    }
    // A fault on far memory, from the start.
    static bool fault_is_served() {
        far_page->break_again();
        const int before = served.load();
        errno = EXDEV;
        far_page->touch();
        return errno == EXDEV && served.load() == before + 1;
    }

private:
    FaultingPage far_;
    FaultingPage foreign_;
};

inline sigset_t set_of(std::initializer_list<int> numbers) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : numbers) sigaddset(&set, number);
    return set;
}

inline bool is_blocked(int number) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, number) == 1;
}

inline std::string died_of(int signal_number) {
    return "child died of signal " + std::to_string(signal_number);
}

}  // namespace hanare::hook::testing
