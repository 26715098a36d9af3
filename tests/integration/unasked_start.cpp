// SPDX-License-Identifier: Apache-2.0
//
// A static program whose C library does not ask the processor (sys/unasked_processor.hpp), run by
// itself with SIGSEGV ignored, blocked, and faulting before main() and in it.
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "sys/unasked_processor.hpp"

namespace {

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::_Exit(1);                                                       \
        }                                                                        \
    } while (0)

bool was_answered = false;

std::string maker() {
    unsigned a = 0;
    unsigned name[3] = {};
    __cpuid(0, a, name[0], name[2], name[1]);
    return {reinterpret_cast<const char*>(name), strnlen(reinterpret_cast<const char*>(name), 12)};
}

// Another one than that of `cpuid`: nothing is mapped there.
void fault() { asm volatile("movl $0, 8"); }

[[gnu::constructor]] void look_before_main() {
    was_answered = maker().empty();
    if (std::getenv("FAULT_BEFORE_MAIN") != nullptr) fault();
}

std::string maker_in_cpuinfo() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("vendor_id")) return line.substr(line.find(": ") + 2);
    }
    return "";
}

// The C library has chosen its functions by what it was told.
void check_copies() {
    hanare::Prng random(1);
    constexpr size_t kRoom = 9 << 20;
    std::vector<unsigned char> from(kRoom);
    for (unsigned char& byte : from) byte = static_cast<unsigned char>(random.next());
    for (size_t bytes = 1; bytes < (8 << 20); bytes = bytes * 5 / 2 + 1) {
        const size_t shift = random.below(4096);
        std::vector<unsigned char> to(kRoom);
        std::memcpy(to.data() + shift, from.data(), bytes);
        for (size_t i = 0; i < bytes; ++i) CHECK(to[shift + i] == from[i]);
        CHECK(to[shift + bytes] == 0);
        std::memmove(to.data() + shift / 2, to.data() + shift, bytes);
        CHECK(std::memcmp(to.data() + shift / 2, from.data(), bytes) == 0);
        std::memset(to.data(), 7, bytes);
        for (size_t i = 0; i < bytes; ++i) CHECK(to[i] == 7);
        CHECK(std::memchr(to.data(), 8, bytes) == nullptr);
        to[bytes] = 0;
        CHECK(std::strlen(reinterpret_cast<const char*>(to.data())) == bytes);
    }
}

int act(const std::string& what) {
    if (what == "fault") fault();
    struct sigaction action = {};
    sigset_t mask;
    CHECK(sigaction(SIGSEGV, nullptr, &action) == 0);
    CHECK(sigprocmask(SIG_BLOCK, nullptr, &mask) == 0);
    CHECK(action.sa_handler == (what == "ignored" ? SIG_IGN : SIG_DFL));
    CHECK(sigismember(&mask, SIGSEGV) == (what == "blocked" ? 1 : 0));
    CHECK(!was_answered || what != "blocked");
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0) == 1);
    CHECK(maker() == maker_in_cpuinfo());
    check_copies();
    return was_answered ? 10 : 0;
}

int run(const char* what, void (*prepare)()) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prepare();
        execl("/proc/self/exe", "unasked_start", what, nullptr);
        _exit(127);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

bool ended_well(int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 10);
}
bool ended_by_fault(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV; }

}  // namespace

int main(int argc, char** argv) {
    hanare::sys::ask_processor_again();
    if (argc > 1) return act(argv[1]);
    const int usual = run("usual", [] {});
    CHECK(ended_well(usual));
    CHECK(ended_well(run("ignored", [] { signal(SIGSEGV, SIG_IGN); })));
    CHECK(ended_well(run("blocked", [] {
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGSEGV);
        sigprocmask(SIG_BLOCK, &mask, nullptr);
    })));
    CHECK(ended_by_fault(run("fault", [] {})));
    CHECK(ended_by_fault(run("usual", [] { setenv("FAULT_BEFORE_MAIN", "1", 1); })));
    std::printf("the processor %s asked when the program starts\n",
                WEXITSTATUS(usual) == 10 ? "is not" : "does not let itself be kept from being");
}
