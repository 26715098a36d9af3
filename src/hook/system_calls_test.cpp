// SPDX-License-Identifier: Apache-2.0
//
// System calls of this process, through libc and ld.so as they are on this machine.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <fstream>
#include <thread>
#include <vector>

#include "base/sanitizers.hpp"
#include "hook/test_handlers.hpp"
#include "sys/test_tracing.hpp"
#include "sys/thread_count.hpp"

extern char** environ;

namespace hanare::hook::testing {
namespace {

SystemCall last = {};

GENERAL_REGISTERS Verdict remember(SystemCall& call) {
    last = call;
    call.finish(-EXDEV);
    return Verdict::kDone;
}

TEST_F(SystemCallsTest, AreAnsweredByTheHandler) {
    EXPECT_EQ(run_in_child([] {
                  const pid_t parent = getppid();
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  HOOK_CHECK(getppid() == kAnswer);
                  HOOK_CHECK(syscall(SYS_getppid) == kAnswer);
                  HOOK_CHECK(getpid() != kAnswer && parent != kAnswer);
                  HOOK_CHECK(calls == 2);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, ArriveWithNumberArgumentsAndPlace) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(remember, {SYS_mremap}));
                  errno = 0;
                  int here = 0;
                  auto* const target = reinterpret_cast<void*>(0x6000);
                  HOOK_CHECK(mremap(reinterpret_cast<void*>(0x1000), 0x2000, 0x3000,
                                    MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED);
                  HOOK_CHECK(errno == EXDEV);
                  HOOK_CHECK(last.number == SYS_mremap);
                  HOOK_CHECK(last.arguments[0] == 0x1000 && last.arguments[1] == 0x2000);
                  HOOK_CHECK(last.arguments[2] == 0x3000 && last.arguments[3] == 3);
                  HOOK_CHECK(last.arguments[4] == 0x6000);
                  const auto* const local = reinterpret_cast<const std::byte*>(&here);
                  HOOK_CHECK(last.stack < local && local - last.stack < 4096);
                  Dl_info caller = {};
                  HOOK_CHECK(dladdr(last.caller, &caller) != 0);
                  HOOK_CHECK(std::string(caller.dli_fname).find("libc.so") != std::string::npos);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, AreMadeAndThenMoreIsDone) {
    EXPECT_EQ(run_in_child([] {
                  const pid_t parent = getppid();
                  HOOK_CHECK(intercept(make_it_then_more, {SYS_getppid, SYS_read, SYS_mmap}));
                  HOOK_CHECK(getppid() == parent);
                  HOOK_CHECK(cleared == 0 && calls_after == 0);
                  watched = 1;
                  HOOK_CHECK(getppid() == parent);
                  HOOK_CHECK(cleared == 0 && calls_after == 1);
                  errno = 0;
                  char byte = 0;
                  HOOK_CHECK(read(-1, &byte, 1) == -1 && errno == EBADF);
                  HOOK_CHECK(calls_after == 2);
                  // Code that is mapped is rewritten all the same.
                  HOOK_CHECK(dlopen("libutil.so.1", RTLD_NOW) != nullptr);
                  HOOK_CHECK(cleared == 0 && calls_after > 2);
                  return std::string();
              }),
              "");
}

// What a system call leaves in registers and flags, with these values before.
struct Registers {
    uint64_t values[6];  // rdi, rsi, rdx, r10, r8, r9
    uint64_t flags;
    uint64_t result;
};

// The first address of a function of libc that makes the system call in its number's load's place.
Registers after_getppid(Registers before) {
    using Function = pid_t (*)();
    static const auto call = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getppid"));
    register uint64_t r10 asm("r10") = before.values[3];
    register uint64_t r8 asm("r8") = before.values[4];
    register uint64_t r9 asm("r9") = before.values[5];
    uint64_t flags = before.flags;
    uint64_t result = 0;
    asm volatile(
        "push %[flags]\n\t"
        "popfq\n\t"
        "call *%[call]\n\t"
        "pushfq\n\t"
        "pop %[flags]\n\t"
        "cld"
        : [flags] "+b"(flags), "=a"(result), "+D"(before.values[0]), "+S"(before.values[1]),
          "+d"(before.values[2]), "+r"(r10), "+r"(r8), "+r"(r9)
        : [call] "r"(call)
        : "rcx", "r11", "memory", "cc");
    before.values[3] = r10;
    before.values[4] = r8;
    before.values[5] = r9;
    before.flags = flags;
    before.result = result;
    return before;
}

TEST_F(SystemCallsTest, KeepRegistersAndFlags) {
    for (const SystemCallHandler handler : {count_only, make_it_here, make_it_then_more}) {
        for (const uint32_t seen_by : {0U, 1U}) {
            EXPECT_EQ(run_in_child([&] {
                          HOOK_CHECK(intercept(handler, {SYS_getppid}));
                          watched = seen_by;
                          // Carry, parity, zero, sign, overflow; and none of them.
                          for (const uint64_t flags : {0x8c5ULL, 0x0ULL}) {
                              const Registers before = {{1, 2, 3, 4, 5, 6}, 0x202 | flags, 0};
                              const Registers after = after_getppid(before);
                              for (size_t i = 0; i < 6; ++i) {
                                  HOOK_CHECK(after.values[i] == before.values[i]);
                              }
                              HOOK_CHECK((after.flags & 0x8c5) == flags);
                              HOOK_CHECK(after.result == static_cast<uint64_t>(getppid()));
                          }
                          return std::string();
                      }),
                      "");
        }
    }
}

// What transferred less than it should have.
std::atomic<uint64_t> short_calls{0};
std::atomic<int64_t> short_result{0};
Verdict short_verdict = Verdict::kDone;

GENERAL_REGISTERS Verdict note_short(SystemCall& call, int64_t result) {
    last = call;
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&short_calls), 1, __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<int64_t*>(&short_result), result, __ATOMIC_RELAXED);
    if (short_verdict == Verdict::kDone) call.finish(kAnswer);
    if (short_verdict == Verdict::kThenAfter) return make_it_then_more(call);
    return short_verdict;
}

// getppid, as if it told how many bytes it has transferred.
TEST_F(SystemCallsTest, TransfersBeginAtOnceWhereTheyMay) {
    for (const bool is_read_at_offset : {false, true}) {
        EXPECT_EQ(
            run_in_child([&] {
                const auto parent = static_cast<uint64_t>(getppid());
                constexpr uint32_t kNumbers[] = {SYS_getppid};
                Transfers transfers = {{}, {}, note_short};
                (is_read_at_offset ? transfers.reads_at_offsets : transfers.others) = kNumbers;
                HOOK_CHECK(intercept(count_only, {SYS_getppid}, {{SYS_getppid, 0b10}}, transfers));
                constexpr uintptr_t kMemory = 0x1234'0000'1000;
                note_handlers_memory(kMemory, kMemory + 4096);
                const auto make = [](uint64_t file, uint64_t address, uint64_t bytes,
                                     uint64_t result) {
                    calls = short_calls = calls_after = 0;
                    for (const uint64_t flags : {0x8c5ULL, 0x0ULL}) {
                        const Registers before = {
                            {file, address, bytes, 4, 5, 6}, 0x202 | flags, 0};
                        const Registers after = after_getppid(before);
                        if ((after.flags & 0x8c5) != flags || after.result != result) return false;
                        if (!std::equal(after.values, after.values + 6, before.values))
                            return false;
                    }
                    return true;
                };
                HOOK_CHECK(make(5, kMemory, parent, parent) && calls == 2);
                let_transfers_begin(5, !is_read_at_offset, is_read_at_offset);
                HOOK_CHECK(make(5, kMemory, parent, parent) && calls == 2);
                let_transfers_begin(5, is_read_at_offset, !is_read_at_offset);
                HOOK_CHECK(make(5, kMemory, parent, parent) && calls == 0 && short_calls == 0);
                // The upper half of an int may be anything.
                HOOK_CHECK(make(~0xffff'ffffUL | 5, kMemory, parent, parent) && calls == 0);
                HOOK_CHECK(make(0x10005, kMemory, parent, parent) && calls == 2);
                HOOK_CHECK(make(6, kMemory, parent, parent) && calls == 2);
                HOOK_CHECK(make(6, 4096, parent + 1, parent) && calls == 0 && short_calls == 0);
                // Not all of it.
                HOOK_CHECK(make(5, kMemory, parent + 1, kAnswer) && calls == 0);
                HOOK_CHECK(short_calls == 2 && short_result == static_cast<int64_t>(parent));
                HOOK_CHECK(last.number == SYS_getppid && last.arguments[0] == 5 &&
                           last.arguments[1] == kMemory && last.arguments[2] == parent + 1 &&
                           last.arguments[3] == 4 && last.arguments[5] == 6);
                short_verdict = Verdict::kNative;
                constexpr uint64_t kMost = INT64_MAX;
                HOOK_CHECK(make(5, kMemory, uint64_t{1} << 31, parent) && short_calls == 2);
                HOOK_CHECK(make(5, kMemory, kMost, parent) && calls == 0 && short_calls == 2);
                short_verdict = Verdict::kThenAfter;
                watched = 1;
                HOOK_CHECK(make(5, kMemory, kMost, parent) && short_calls == 2 && calls_after == 2);
                // The stack.
                const auto stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
                note_handlers_memory(far_in_front_of(stack - 4096), stack);
                HOOK_CHECK(make(5, kMemory, parent, parent) && calls == 2);
                return std::string();
            }),
            "");
    }
}

TEST_F(SystemCallsTest, WithAddressesArriveWhereTheHandlerCares) {
    EXPECT_EQ(run_in_child([] {
                  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
                  constexpr size_t kBytes = 8192;
                  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  HOOK_CHECK(zeros >= 0 && memory != MAP_FAILED);
                  HOOK_CHECK(intercept(count_only, {SYS_read, SYS_getppid}, {{SYS_read, 0b10}}));
                  HOOK_CHECK(read(zeros, memory, kBytes) == kBytes && calls == 0);
                  getppid();
                  HOOK_CHECK(calls == 1);
                  // In front of it, where a buffer may begin.
                  const auto begin = reinterpret_cast<uintptr_t>(memory);
                  note_handlers_memory(far_in_front_of(begin + 4096), begin + 8192);
                  HOOK_CHECK(is_near_handlers_memory(begin));
                  HOOK_CHECK(read(zeros, memory, kBytes) == kBytes && calls == 2);
                  // The stack.
                  const auto stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
                  note_handlers_memory(far_in_front_of(stack - 4096), stack);
                  HOOK_CHECK(read(zeros, nullptr, 0) == 0 && calls == 3);
                  return std::string();
              }),
              "");
}

// Of a place with such memory only what may reach into it.
TEST_F(SystemCallsTest, ArriveForTheirPartOfAPlace) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {SYS_getppid}, {{SYS_getppid, 0b10}}));
                  constexpr uintptr_t kMiB = 1 << 20;
                  constexpr uintptr_t kFront = 0x1234'8000'0000;
                  note_handlers_memory(kFront, kFront + 8 * kMiB);
                  const auto arrives = [](uintptr_t address) {
                      calls = 0;
                      syscall(SYS_getppid, 0, address);
                      // As code sees it that is compiled.
                      return calls == 1 && is_near_handlers_memory(address);
                  };
                  const auto passes = [](uintptr_t address) {
                      calls = 0;
                      syscall(SYS_getppid, 0, address);
                      return calls == 0 && !is_near_handlers_memory(address);
                  };
                  HOOK_CHECK(arrives(kFront) && arrives(kFront + 8 * kMiB - 1));
                  HOOK_CHECK(passes(kFront - 1) && passes(kFront + 8 * kMiB));
                  // The same parts of other places are none of it.
                  HOOK_CHECK(passes(kFront + kPlaceBytes) && passes(kFront - kPlaceBytes));
                  // Across two places: of the second one it is all.
                  constexpr uintptr_t kLong = 0x2345'f000'0000;
                  note_handlers_memory(kLong, kLong + kPlaceBytes);
                  HOOK_CHECK(passes(kLong - 1) && arrives(kLong));
                  HOOK_CHECK(arrives(kLong + kPlaceBytes - 1));
                  HOOK_CHECK(arrives((kLong / kPlaceBytes + 2) * kPlaceBytes - 1));
                  HOOK_CHECK(passes((kLong / kPlaceBytes + 2) * kPlaceBytes));
                  // Who knows no front for the same place means all of it.
                  note_handlers_memory(far_in_front_of(kFront + kPlaceBytes), kFront + kPlaceBytes);
                  HOOK_CHECK(arrives(kFront - 1) && arrives(kFront + 16 * kMiB));
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, ArriveForMemoryAtTheirAddressesOnly) {
    EXPECT_EQ(run_in_child([] {
                  // By argument whether it is an address: always asked for, or not; else it may be.
                  struct Case {
                      AddressedCall call;
                      std::string asked;
                  };
                  const Case cases[] = {
                      {{SYS_getppid, 0b000010}, "-+----"}, {{SYS_getpid, 0b000001}, "+?----"},
                      {{SYS_getuid, 0b000011}, "++----"},  {{SYS_geteuid, 0b000110}, "?++---"},
                      {{SYS_getgid, 0b001000}, "???+??"},  {{SYS_getegid, 0b010001}, "+???+?"},
                      {{SYS_gettid, 0b100000}, "?????+"},
                  };
                  std::vector<uint32_t> numbers;
                  std::vector<AddressedCall> addressed;
                  for (const Case& each : cases) {
                      numbers.push_back(each.call.number);
                      addressed.push_back(each.call);
                  }
                  HOOK_CHECK(intercept(count_only, numbers, addressed));
                  // Where nothing is mapped; the stack and other memory are far from it.
                  constexpr uintptr_t kMemory = 0x1234'0000'1000;
                  note_handlers_memory(far_in_front_of(kMemory), kMemory + 4096);
                  for (const Case& each : cases) {
                      for (size_t i = 0; i < each.asked.size(); ++i) {
                          uint64_t a[6] = {1, ~0UL, 0, 4096, 2, 3};
                          a[i] = kMemory;
                          calls = 0;
                          syscall(each.call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
                          HOOK_CHECK(each.asked[i] == '?' || calls == (each.asked[i] == '+'));
                      }
                      calls = 0;
                      syscall(each.call.number, 1, ~0UL, 0, 4096, 2, 3);
                      HOOK_CHECK(calls == 0);
                  }
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, OfLibcAndTheLoaderAreRewritten) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {}));
                  const RewriteReport report = rewrite_report();
                  HOOK_CHECK(report.modules >= 2);
                  HOOK_CHECK(report.rewritten > 300 && report.left < 10);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, AreInterceptedOnce) {
    EXPECT_EQ(run_in_child([] {
                  const std::array<uint32_t, 1> none_such = {512};
                  const auto unknown = prepare_system_calls(answer, none_such);
                  HOOK_CHECK(!unknown && unknown.error().status == HANARE_STATUS_INVALID_ARGUMENT);
                  HOOK_CHECK(intercept(answer, {}));
                  const auto again = prepare_system_calls(answer, {});
                  HOOK_CHECK(!again && again.error().status == HANARE_STATUS_BUSY);
                  return std::string();
              }),
              "");
}

// Threads that were there before, at work and in every kind of wait, do not notice.
std::string intercept_beside_threads() {
    std::atomic<bool> end{false};
    std::atomic<int> wrong{0};
    std::atomic<int> ready{0};
    int ends[2];
    HOOK_CHECK(pipe(ends) == 0);
    sem_t semaphore;
    HOOK_CHECK(sem_init(&semaphore, 0, 0) == 0);
    const pid_t parent = getppid();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            ++ready;
            while (!end.load()) {
                wrong += getppid() != parent;
                void* const memory =
                    mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                wrong += memory == MAP_FAILED || munmap(memory, 4096) != 0;
                wrong += poll(nullptr, 0, 0) != 0;
            }
        });
    }
    threads.emplace_back([&] {
        char byte = 0;
        ++ready;
        wrong += read(ends[0], &byte, 1) != 1;
    });
    threads.emplace_back([&] {
        ++ready;
        wrong += sem_wait(&semaphore) != 0;
    });
    threads.emplace_back([&] {
        pollfd wanted = {.fd = ends[0], .events = 0, .revents = 0};
        ++ready;
        while (!end.load()) wrong += poll(&wanted, 1, 1) != 0;
    });
    threads.emplace_back([&] {
        ++ready;
        end.wait(false);
    });
    threads.emplace_back([&] {
        const sys::OwnThread not_the_programs;
        ++ready;
        end.wait(false);
    });
    while (ready.load() < 9) sched_yield();
    const bool done = intercept(make_it_here, {SYS_getppid, SYS_mmap, SYS_futex, SYS_read});
    const uint64_t before = calls;
    for (int i = 0; i < 1000; ++i) wrong += getppid() != parent;
    wrong += calls - before < 1000;
    end = true;
    end.notify_all();
    wrong += write(ends[1], "x", 1) != 1;
    sem_post(&semaphore);
    for (std::thread& thread : threads) thread.join();
    HOOK_CHECK(done);
    HOOK_CHECK(wrong == 0);
    return {};
}

TEST_F(SystemCallsTest, AreInterceptedBesideThreads) {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    GTEST_SKIP() << "a sanitizer has to know all processes";
#endif
    if (!sys::testing::may_be_traced()) GTEST_SKIP() << "ptrace(2) is refused here";
    for (int turn = 0; turn < 20; ++turn) EXPECT_EQ(run_in_child(intercept_beside_threads), "");
}

TEST_F(SystemCallsTest, WorkInThreads) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(make_it_here, {SYS_getppid, SYS_mmap, SYS_futex}));
                  const pid_t parent = getppid();
                  const uint64_t before = calls;
                  std::atomic<int> wrong{0};
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 8; ++i) {
                      threads.emplace_back([&] {
                          for (int k = 0; k < 10000; ++k) wrong += getppid() != parent;
                      });
                  }
                  for (std::thread& thread : threads) thread.join();
                  HOOK_CHECK(wrong == 0);
                  HOOK_CHECK(calls - before >= 80000);
                  return std::string();
              }),
              "");
}

// Every way to a new process, with the calls that make it going through the handler or not.
std::string make_a_process_each_way() {
    const pid_t child = fork();
    HOOK_CHECK(child >= 0);
    if (child == 0) _exit(getpid() == getppid() ? 1 : 40);
    int status = 0;
    HOOK_CHECK(waitpid(child, &status, 0) == child);
    HOOK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40);
    char program[] = "/bin/sh";
    char option[] = "-c";
    char command[] = "exit 41";
    std::array<char*, 4> arguments = {program, option, command, nullptr};
    pid_t spawned = 0;
    HOOK_CHECK(posix_spawn(&spawned, program, nullptr, nullptr, arguments.data(), environ) == 0);
    HOOK_CHECK(waitpid(spawned, &status, 0) == spawned);
    HOOK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 41);
    const pid_t borrowed = vfork();
    if (borrowed == 0) _exit(42);
    HOOK_CHECK(waitpid(borrowed, &status, 0) == borrowed);
    HOOK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return {};
}

std::string make_processes() {
    for (int i = 0; i < 20; ++i) {
        if (std::string what = make_a_process_each_way(); !what.empty()) return what;
    }
    return {};
}

TEST_F(SystemCallsTest, MakeProcesses) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork,
                                                    SYS_execve, SYS_wait4, SYS_exit_group}));
                  const std::string result = make_processes();
                  HOOK_CHECK(calls >= 60);
                  return result;
              }),
              "");
}

TEST_F(SystemCallsTest, ThatNobodyAskedForMakeProcesses) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {}));
                  return make_processes();
              }),
              "");
}

// The program keeps all vector registers, whatever the handler does with them.
void destroy_vector_registers(void*) {
    asm volatile("pxor %%xmm0, %%xmm0\n\tpxor %%xmm7, %%xmm7\n\tpxor %%xmm15, %%xmm15" ::
                     : "xmm0", "xmm7", "xmm15");
}

GENERAL_REGISTERS Verdict with_vector_registers(SystemCall& call) {
    hanare_hook_with_vector_registers(destroy_vector_registers, nullptr);
    call.finish(kAnswer);
    return Verdict::kDone;
}

TEST_F(SystemCallsTest, KeepVectorRegisters) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(with_vector_registers, {SYS_getppid}));
                  const auto function = &getppid;
                  std::array<uint64_t, 3> seen = {};
                  uint64_t result = 0;
                  const uint64_t value = 0x123456789abcdef0;
                  asm volatile(
                      "movq %[value], %%xmm0\n\t"
                      "movq %[value], %%xmm7\n\t"
                      "movq %[value], %%xmm15\n\t"
                      "movq %%rsp, %%rbx\n\t"
                      "subq $256, %%rsp\n\t"
                      "andq $-16, %%rsp\n\t"
                      "call *%[function]\n\t"
                      "movq %%rbx, %%rsp\n\t"
                      "movq %%xmm0, %[first]\n\t"
                      "movq %%xmm7, %[second]\n\t"
                      "movq %%xmm15, %[third]\n\t"
                      : "=a"(result), [first] "=&r"(seen[0]), [second] "=&r"(seen[1]),
                        [third] "=&r"(seen[2])
                      : [value] "r"(value), [function] "r"(function)
                      : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm7",
                        "xmm15", "memory", "cc");
                  HOOK_CHECK(static_cast<int32_t>(result) == kAnswer);
                  for (const uint64_t register_value : seen) HOOK_CHECK(register_value == value);
                  return std::string();
              }),
              "");
}

size_t mapping_count() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

// A library with system calls of its own that this process has not loaded.
bool can_be_loaded_later(const char* library) {
    if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) != nullptr) return false;
    return run_in_child(
               [=] { return std::string(dlopen(library, RTLD_NOW) != nullptr ? "" : "not here"); })
        .empty();
}

TEST_F(SystemCallsTest, OfLibrariesThatAreLoadedLaterAreRewritten) {
    constexpr const char* kLibrary = "libgomp.so.1";
    if (!can_be_loaded_later(kLibrary)) GTEST_SKIP() << kLibrary << " is not here, or loaded";
    EXPECT_EQ(run_in_child([=] {
                  HOOK_CHECK(intercept(count_only, {}));
                  const RewriteReport before = rewrite_report();
                  void* library = dlopen(kLibrary, RTLD_NOW);
                  HOOK_CHECK(library != nullptr);
                  const RewriteReport after = rewrite_report();
                  HOOK_CHECK(after.modules == before.modules + 1);
                  HOOK_CHECK(after.rewritten > before.rewritten + 10);
                  const auto processors =
                      reinterpret_cast<int (*)()>(dlsym(library, "omp_get_num_procs"));
                  HOOK_CHECK(processors != nullptr && processors() > 0);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, LeaveNothingBehindWithTheLibrary) {
    constexpr const char* kLibrary = "liburing.so.2";
    if (!can_be_loaded_later(kLibrary)) GTEST_SKIP() << kLibrary << " is not here, or loaded";
    EXPECT_EQ(run_in_child([=] {
                  HOOK_CHECK(intercept(count_only, {}));
                  size_t mappings = 0;
                  for (int i = 0; i < 40; ++i) {
                      void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
                      HOOK_CHECK(library != nullptr);
                      dlclose(library);
                      if (i == 1) mappings = mapping_count();
                  }
                  HOOK_CHECK(rewrite_report().modules >= 30);
                  HOOK_CHECK(mapping_count() <= mappings + 2);
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
