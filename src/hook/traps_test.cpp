// SPDX-License-Identifier: Apache-2.0
//
// System calls that the kernel stops, and how that ends.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "hook/kernel_signals.hpp"
#include "hook/test_handlers.hpp"
#include "sys/signal.hpp"
#include "sys/signal_stack.hpp"

extern char** environ;

namespace hanare::hook::testing {
namespace {

bool begin(SystemCallHandler handler, std::vector<uint32_t> numbers) {
    auto done = prepare_system_calls(handler, numbers);
    if (done) done = trap_system_calls();
    if (!done) std::fprintf(stderr, "%s\n", done.error().text);
    return done.has_value();
}

// As after exec, whatever other tests have made the process handle, libc's own signals included.
void forget_handlers() {
    const KernelSigaction none = {};
    for (int number = 1; number < NSIG; ++number) {
        syscall(SYS_rt_sigaction, number, &none, nullptr, sizeof none.mask);
    }
}

bool give_stack() {
    stack_t stack = {};
    stack.ss_size = sys::signal_stack_bytes(size_t{64} << 10);
    stack.ss_sp = sys::map_signal_stack(stack.ss_size);
    return stack.ss_sp != nullptr && sigaltstack(&stack, nullptr) == 0;
}

bool trap(SystemCallHandler handler, std::vector<uint32_t> numbers) {
    forget_handlers();
    if (!give_stack()) return false;
    return begin(handler, std::move(numbers));
}

bool are_trapped() { return rewrite_report().rewritten == 0; }

bool is_default(int signal_number) {
    struct sigaction action = {};
    return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

class TrapsTest : public SystemCallsTest {};

TEST_F(TrapsTest, AreAnsweredByTheHandler) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid, SYS_lseek}));
                  HOOK_CHECK(are_trapped());
                  errno = EDOM;
                  HOOK_CHECK(getppid() == kAnswer && syscall(SYS_getppid) == kAnswer);
                  HOOK_CHECK(lseek(-1, 0, SEEK_SET) == kAnswer);
                  HOOK_CHECK(errno == EDOM && calls == 3);
                  HOOK_CHECK(getpid() != kAnswer);
                  HOOK_CHECK(close(-1) == -1 && errno == EBADF);
                  HOOK_CHECK(are_trapped());
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, AreMadeAndThenMoreIsDone) {
    EXPECT_EQ(run_in_child([] {
                  const pid_t parent = getppid();
                  HOOK_CHECK(trap(make_it_then_more, {SYS_getppid}));
                  watched = 1;
                  HOOK_CHECK(getppid() == parent && cleared == 0 && calls_after == 1);
                  HOOK_CHECK(are_trapped());
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndWhereSomebodyCatchesAll) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  HOOK_CHECK(getppid() == kAnswer && are_trapped());
                  HOOK_CHECK(catch_system_calls() && catch_system_calls());
                  HOOK_CHECK(!are_trapped() && is_default(SIGSYS));
                  HOOK_CHECK(getppid() == kAnswer && calls == 2);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndWhenThereWereMany) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  for (int i = 0; i < 10; ++i) HOOK_CHECK(getppid() == kAnswer);
                  HOOK_CHECK(are_trapped());
                  for (int i = 0; i < 1000; ++i) HOOK_CHECK(getppid() == kAnswer);
                  HOOK_CHECK(!are_trapped() && calls == 1010);
                  return std::string();
              }),
              "");
}

int taken = 0;

TEST_F(TrapsTest, EndBeforeTheProgramHandlesSignals) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  HOOK_CHECK(is_default(SIGUSR1) && are_trapped());
                  std::signal(SIGUSR1, [](int) { taken += getppid() == kAnswer; });
                  HOOK_CHECK(!are_trapped());
                  std::raise(SIGUSR1);
                  HOOK_CHECK(taken == 1 && calls == 1);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndWhereTheKernelFailsOnAnAddress) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  errno = 0;
                  HOOK_CHECK(syscall(SYS_rt_sigaction, SIGUSR1, 8, nullptr, 8) == -1);
                  HOOK_CHECK(errno == EFAULT && !are_trapped());
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndBeforeTheProgramAsksForTheirSignal) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  HOOK_CHECK(is_default(SIGSYS) && !are_trapped());
                  std::signal(SIGSYS, [](int) { ++taken; });
                  std::raise(SIGSYS);
                  HOOK_CHECK(taken == 1 && getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndBeforeTheProgramBlocksTheirSignal) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  sigset_t all;
                  sigfillset(&all);
                  HOOK_CHECK(sigprocmask(SIG_BLOCK, &all, nullptr) == 0);
                  HOOK_CHECK(!are_trapped() && getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndBeforeThereAreThreadsAndChildren) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  const pid_t child = fork();
                  HOOK_CHECK(!are_trapped());
                  if (child == 0) _exit(getppid() == kAnswer ? 7 : 8);
                  int status = 0;
                  HOOK_CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  std::thread([] { taken = getppid() == kAnswer; }).join();
                  HOOK_CHECK(!are_trapped() && taken == 1 && getppid() == kAnswer);
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  const char* const command[] = {"/bin/sh", "-c", "exit 5", nullptr};
                  pid_t child = 0;
                  HOOK_CHECK(posix_spawn(&child, command[0], nullptr, nullptr,
                                         const_cast<char**>(command), environ) == 0);
                  int status = 0;
                  HOOK_CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
                  HOOK_CHECK(!are_trapped() && getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndBeforeALibraryIsLoaded) {
    constexpr const char* kLibrary = "libgomp.so.1";
    if (dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "it is loaded";
    EXPECT_EQ(run_in_child([=] {
                  HOOK_CHECK(trap(count_only, {SYS_getppid}));
                  if (dlopen(kLibrary, RTLD_NOW) == nullptr) return std::string();  // not here
                  HOOK_CHECK(!are_trapped());
                  // libc and ld.so were first, and it comes on top.
                  HOOK_CHECK(rewrite_report().modules >= 3);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, AreLeftBehindByExec) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  const char* const missing[] = {"/nowhere", nullptr};
                  HOOK_CHECK(execve(missing[0], const_cast<char**>(missing), environ) == -1);
                  HOOK_CHECK(errno == ENOENT && are_trapped());
                  // A status would be of the whole child; this one never comes back.
                  const char* const command[] = {"/bin/true", nullptr};
                  execve(command[0], const_cast<char**>(command), environ);
                  return std::string("exec failed");
              }),
              "");
}

TEST_F(TrapsTest, AreNotBegunWhereSomebodyWouldNotice) {
    EXPECT_EQ(run_in_child([] {
                  forget_handlers();  // and no stack
                  const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
                  HOOK_CHECK(sigaltstack(&none, nullptr) == 0);
                  HOOK_CHECK(begin(answer, {SYS_getppid}) && !are_trapped());
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(give_stack());
                  std::signal(SIGUSR1, [](int) {});
                  HOOK_CHECK(begin(answer, {SYS_getppid}) && !are_trapped());
                  HOOK_CHECK(getppid() == kAnswer);
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  forget_handlers();
                  HOOK_CHECK(give_stack());
                  std::signal(SIGSYS, SIG_IGN);
                  HOOK_CHECK(begin(answer, {SYS_getppid}) && !are_trapped());
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  forget_handlers();
                  HOOK_CHECK(give_stack());
                  const sys::SignalBlock all;
                  HOOK_CHECK(begin(answer, {SYS_getppid}) && !are_trapped());
                  HOOK_CHECK(getppid() == kAnswer);
                  return std::string();
              }),
              "");
    EXPECT_EQ(run_in_child([] {
                  forget_handlers();
                  HOOK_CHECK(give_stack());
                  HOOK_CHECK(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0);
                  HOOK_CHECK(begin(answer, {SYS_getppid}) && !are_trapped());
                  HOOK_CHECK(getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

TEST_F(TrapsTest, EndBeforeTheProgramChangesMappingsOfCode) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  HOOK_CHECK(mprotect(nullptr, 0, PROT_READ) == 0);
                  HOOK_CHECK(!are_trapped() && getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

// Where code may not be written: known then, for good, and the program goes on.
TEST_F(TrapsTest, EndInPlainCallsWhereRewritingFails) {
    constexpr int kSetMemoryDenyWriteExecute = 65;  // prctl(2), Linux 6.3
    const auto deny = [] { return prctl(kSetMemoryDenyWriteExecute, 1, 0, 0, 0) == 0; };
    if (!run_in_child([=] { return std::string(deny() ? "" : "refused"); }).empty()) {
        GTEST_SKIP() << "the kernel cannot forbid writing code";
    }
    EXPECT_EQ(run_in_child([=] {
                  const pid_t parent = getppid();
                  HOOK_CHECK(deny() && trap(answer, {SYS_getppid}));
                  HOOK_CHECK(getppid() == kAnswer);
                  std::signal(SIGUSR1, [](int) { ++taken; });
                  std::raise(SIGUSR1);
                  HOOK_CHECK(taken == 1 && getppid() == parent && are_trapped());
                  HOOK_CHECK(!catch_system_calls() && !trap_system_calls());
                  return std::string();
              }),
              "");
}

// Signals are blocked around code that may call libc.
TEST_F(TrapsTest, ArriveWhereHanareBlocksSignals) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(trap(answer, {SYS_getppid}));
                  {
                      const sys::SignalBlock all;
                      HOOK_CHECK(getppid() == kAnswer);
                  }
                  HOOK_CHECK(are_trapped() && catch_system_calls());
                  const sys::SignalBlock all;
                  sigset_t blocked;
                  HOOK_CHECK(sigprocmask(SIG_BLOCK, nullptr, &blocked) == 0);
                  HOOK_CHECK(sigismember(&blocked, SIGSYS) == 1);
                  return std::string();
              }),
              "");
}

// From this test's own code, whose system calls are not stopped.
void send_to_itself(int signal_number) {
    const int64_t id = raw_system_call(SYS_getpid, {});
    raw_system_call(SYS_kill, {static_cast<uint64_t>(id), static_cast<uint64_t>(signal_number)});
}

// SIGSYS, in the handler that Hanare has for the signal.
bool is_blocked_in_handler(int signal_number) {
    KernelSigaction action = {};
    raw_system_call(SYS_rt_sigaction, {static_cast<uint64_t>(signal_number), 0,
                                       reinterpret_cast<uint64_t>(&action), sizeof action.mask});
    return (action.mask >> (SIGSYS - 1) & 1) != 0;
}

// Of signals that Hanare keeps for itself, and which the program does not handle.
TEST_F(TrapsTest, OutliveKeptSignals) {
    for (const int number : {SIGBUS, SIGSEGV}) {
        EXPECT_EQ(run_in_child([=] {
                      forget_handlers();
                      HOOK_CHECK(give_stack());
                      std::signal(number, SIG_IGN);
                      HOOK_CHECK(claim_signal(number, serve).has_value());
                      HOOK_CHECK(begin(answer, {SYS_getppid}) && are_trapped());
                      send_to_itself(number);
                      HOOK_CHECK(getppid() == kAnswer && are_trapped());
                      HOOK_CHECK(!is_blocked_in_handler(number) && catch_system_calls());
                      HOOK_CHECK(is_blocked_in_handler(number));
                      return std::string();
                  }),
                  "");
        EXPECT_EQ(run_in_child([=] {
                      forget_handlers();
                      HOOK_CHECK(give_stack());
                      HOOK_CHECK(claim_signal(number, serve).has_value());
                      HOOK_CHECK(begin(answer, {SYS_getppid}) && are_trapped());
                      send_to_itself(number);
                      return std::string("it went on");
                  }),
                  "child died of signal " + std::to_string(number));
    }
}

// int $0x80: other numbers, and none of the handler's.
long getpid_of_32_bits() {
    long number = 20;
    asm volatile("int $0x80" : "+a"(number) : : "r8", "r9", "r10", "r11", "memory");
    return number;
}

TEST_F(TrapsTest, OfOtherTablesAreNotTheHandlers) {
    if (!run_in_child([] {
             return std::string(getpid_of_32_bits() == getpid() ? "" : "other");
         }).empty()) {
        GTEST_SKIP() << "the kernel has no 32-bit system calls";
    }
    // Of code outside Hanare's: that lies in this test's own.
    EXPECT_EQ(run_in_child([] {
                  constexpr uint8_t kCode[] = {0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3};
                  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  HOOK_CHECK(memory != MAP_FAILED);
                  std::memcpy(memory, kCode, sizeof kCode);
                  HOOK_CHECK(trap(answer, {20, SYS_getppid}) && are_trapped());
                  const pid_t id = getpid();
                  HOOK_CHECK(reinterpret_cast<int (*)()>(memory)() == id && calls == 0);
                  HOOK_CHECK(!are_trapped() && getppid() == kAnswer);
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
