// SPDX-License-Identifier: Apache-2.0
//
// System calls of this process, through libc and ld.so as they are on this machine.  They are
// rewritten for the life of a process, so every test does so in a child of its own.
#include "hook/system_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <fstream>
#include <thread>
#include <vector>

#include "hook/test_support.hpp"
#include "sys/thread_count.hpp"

extern char** environ;

#define GENERAL_REGISTERS [[gnu::target("general-regs-only")]]

namespace hanare::hook::testing {
namespace {

using sys::testing::run_in_child;

class SystemCallsTest : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
        GTEST_SKIP() << "a sanitizer's own system calls would be rewritten as well";
#endif
    }
};

std::atomic<uint64_t> calls{0};
SystemCall last = {};

constexpr int64_t kAnswer = 4711;

GENERAL_REGISTERS Verdict answer(SystemCall& call) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    call.finish(kAnswer);
    return Verdict::kDone;
}

GENERAL_REGISTERS Verdict count_only(SystemCall&) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    return Verdict::kNative;
}

GENERAL_REGISTERS Verdict make_it_here(SystemCall& call) {
    __atomic_fetch_add(reinterpret_cast<uint64_t*>(&calls), 1, __ATOMIC_RELAXED);
    call.finish(raw_system_call(call.number, call.arguments));
    return Verdict::kDone;
}

GENERAL_REGISTERS Verdict remember(SystemCall& call) {
    last = call;
    call.finish(-EXDEV);
    return Verdict::kDone;
}

bool intercept(SystemCallHandler handler, std::vector<uint32_t> numbers) {
    const auto report = intercept_system_calls(handler, numbers);
    if (!report) std::fprintf(stderr, "%s\n", report.error().text);
    return report.has_value();
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

TEST_F(SystemCallsTest, OfLibcAndTheLoaderAreRewritten) {
    EXPECT_EQ(run_in_child([] {
                  const auto report = intercept_system_calls(count_only, {});
                  HOOK_CHECK(report && report->modules >= 2);
                  HOOK_CHECK(report->rewritten > 300 && report->left < 10);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, AreInterceptedOnceAndBeforeThereAreThreads) {
    EXPECT_EQ(run_in_child([] {
                  const std::array<uint32_t, 1> none_such = {512};
                  const auto unknown = intercept_system_calls(answer, none_such);
                  HOOK_CHECK(!unknown && unknown.error().status == HANARE_STATUS_INVALID_ARGUMENT);
                  std::atomic<bool> end{false};
                  std::thread other([&] { end.wait(false); });
                  const auto threaded = intercept_system_calls(answer, {});
                  end = true;
                  end.notify_all();
                  other.join();
                  HOOK_CHECK(!threaded && threaded.error().status == HANARE_STATUS_NOT_SUPPORTED);
                  std::atomic<bool> has_begun{false};
                  end = false;
                  std::thread own([&] {
                      const sys::OwnThread not_the_programs;
                      has_begun = true;
                      has_begun.notify_all();
                      end.wait(false);
                  });
                  has_begun.wait(false);
                  const auto beside_own = intercept_system_calls(answer, {});
                  end = true;
                  end.notify_all();
                  own.join();
                  HOOK_CHECK(!beside_own);
                  // A joined thread is there until the kernel is done with it.
                  while (!sys::ThreadCount().is_alone()) sched_yield();
                  HOOK_CHECK(intercept(answer, {}));
                  const auto again = intercept_system_calls(answer, {});
                  HOOK_CHECK(!again && again.error().status == HANARE_STATUS_BUSY);
                  return std::string();
              }),
              "");
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
std::string make_processes() {
    for (int i = 0; i < 20; ++i) {
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
        HOOK_CHECK(posix_spawn(&spawned, program, nullptr, nullptr, arguments.data(), environ) ==
                   0);
        HOOK_CHECK(waitpid(spawned, &status, 0) == spawned);
        HOOK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 41);
        const pid_t borrowed = vfork();
        if (borrowed == 0) _exit(42);
        HOOK_CHECK(waitpid(borrowed, &status, 0) == borrowed);
        HOOK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
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

struct Cleanup {
    explicit Cleanup(std::atomic<int>& count_) : count(count_) {}
    ~Cleanup() { ++count; }
    std::atomic<int>& count;
};

struct Blocked {
    int pipe_ends[2] = {-1, -1};
    std::atomic<pid_t> reader{0};
    std::atomic<int> cleaned{0};
};

void* read_for_ever(void* context) {
    auto& blocked = *static_cast<Blocked*>(context);
    const Cleanup outer(blocked.cleaned);
    [&] {
        const Cleanup inner(blocked.cleaned);
        blocked.reader = gettid();
        blocked.reader.notify_all();
        char byte = 0;
        if (read(blocked.pipe_ends[0], &byte, 1) == 1) blocked.cleaned = 100;
    }();
    return nullptr;
}

// Until the thread sleeps in a system call.
void wait_until_asleep(pid_t thread) {
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
    for (std::string word; word != "S";) {
        std::ifstream(path) >> word >> word >> word;
        sched_yield();
    }
}

std::string cancel_a_reader() {
    Blocked blocked;
    HOOK_CHECK(pipe(blocked.pipe_ends) == 0);
    pthread_t thread;
    HOOK_CHECK(pthread_create(&thread, nullptr, read_for_ever, &blocked) == 0);
    blocked.reader.wait(0);
    wait_until_asleep(blocked.reader);
    HOOK_CHECK(pthread_cancel(thread) == 0);
    void* result = nullptr;
    HOOK_CHECK(pthread_join(thread, &result) == 0);
    HOOK_CHECK(result == PTHREAD_CANCELED);
    HOOK_CHECK(blocked.cleaned == 2);  // destructors ran, in both frames
    return {};
}

TEST_F(SystemCallsTest, AreCancelledInTheStubWithAllDestructors) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {}));
                  return cancel_a_reader();
              }),
              "");
}

TEST_F(SystemCallsTest, AreCancelledInTheHandlerWithAllDestructors) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(make_it_here, {SYS_read}));
                  return cancel_a_reader();
              }),
              "");
}

std::atomic<int> ticks{0};
void tick(int) { ++ticks; }

// A read that a storm of signals interrupts: restarted, or EINTR, as it was asked for.
std::string read_in_a_storm(int flags) {
    struct sigaction action = {};
    action.sa_handler = tick;
    action.sa_flags = flags;
    HOOK_CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
    int ends[2];
    HOOK_CHECK(pipe(ends) == 0);
    const itimerval often = {{0, 500}, {0, 500}};
    const itimerval never = {};
    HOOK_CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
    std::thread writer([&] {
        sigset_t alarm = set_of({SIGALRM});
        pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
        for (int seen = ticks; ticks < seen + 200;) sched_yield();
        if (write(ends[1], "x", 1) != 1) abort();
    });
    char byte = 0;
    int interrupted = 0;
    ssize_t got = 0;
    while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) ++interrupted;
    setitimer(ITIMER_REAL, &never, nullptr);
    writer.join();
    HOOK_CHECK(got == 1 && byte == 'x');
    HOOK_CHECK(((flags & SA_RESTART) != 0) == (interrupted == 0));
    return {};
}

TEST_F(SystemCallsTest, AreInterruptedAndRestarted) {
    for (const SystemCallHandler handler : {count_only, make_it_here}) {
        EXPECT_EQ(run_in_child([&] {
                      HOOK_CHECK(intercept(handler, {SYS_read}));
                      const std::string restarted = read_in_a_storm(SA_RESTART);
                      return restarted.empty() ? read_in_a_storm(0) : restarted;
                  }),
                  "");
    }
}

sigjmp_buf way_out;
void leave(int) { siglongjmp(way_out, 1); }

TEST_F(SystemCallsTest, AreLeftByLongjmp) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(make_it_here, {SYS_pause, SYS_getppid}));
                  std::signal(SIGALRM, leave);
                  const pid_t parent = getppid();
                  static int i;  // keeps its value across the jump
                  for (i = 0; i < 50; ++i) {
                      if (sigsetjmp(way_out, 1) == 0) {
                          const itimerval soon = {{0, 0}, {0, 1000}};
                          setitimer(ITIMER_REAL, &soon, nullptr);
                          pause();
                          return std::string("pause came back");
                      }
                      HOOK_CHECK(getppid() == parent);
                  }
                  return std::string();
              }),
              "");
}

// The functions that are being executed, as an unwinder finds them from inside a handler.
std::atomic<int> frames_to_test{0};

[[gnu::noinline]] int call_getppid_from_here() {
    const int result = getppid();
    asm volatile("" ::: "memory");
    return result;
}

void look_back(void*) {
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void*) {
            void* function =
                _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1));
            ++frames_to_test;
            return function == reinterpret_cast<void*>(&call_getppid_from_here) ? _URC_NORMAL_STOP
                                                                                : _URC_NO_REASON;
        },
        nullptr);
}

GENERAL_REGISTERS Verdict look_back_from_here(SystemCall&) {
    hanare_hook_with_vector_registers(look_back, nullptr);
    return Verdict::kNative;
}

TEST_F(SystemCallsTest, ShowInBacktracesWhoMadeThem) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(look_back_from_here, {SYS_getppid}));
                  call_getppid_from_here();
                  const int inside = frames_to_test;
                  // look_back, saving of registers, handler, dispatcher, entry, stub, getppid, we
                  HOOK_CHECK(inside >= 6 && inside <= 12);
                  return std::string();
              }),
              "");
}

// Code of our own as ld.so would map it: an ELF file with one executable segment, without a table
// of functions.
class CodeFile {
public:
    static constexpr size_t kCodeAt = 4096;

    explicit CodeFile(std::vector<uint8_t> code) : code_(std::move(code)) {
        ElfW(Ehdr) elf = {};
        std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
        elf.e_ident[EI_CLASS] = ELFCLASS64;
        elf.e_machine = EM_X86_64;
        elf.e_phentsize = sizeof(ElfW(Phdr));
        elf.e_phnum = 1;
        elf.e_phoff = sizeof elf;
        ElfW(Phdr) header = {};
        header.p_type = PT_LOAD;
        header.p_flags = PF_R | PF_X;
        header.p_offset = header.p_vaddr = kCodeAt;
        header.p_filesz = header.p_memsz = code_.size();
        put(&elf, sizeof elf, 0);
        put(&header, sizeof header, sizeof elf);
        put(code_.data(), code_.size(), kCodeAt);
    }
    ~CodeFile() {
        unmap();
        close(descriptor_);
    }
    CodeFile(const CodeFile&) = delete;
    CodeFile& operator=(const CodeFile&) = delete;

    // Calls the code, newly mapped near libc, as a function of one argument.
    uint64_t call(uint64_t argument, int flags = MAP_PRIVATE) {
        return call_at(nullptr, argument, flags);
    }
    // The same, near this program, in which Hanare's own code is.
    uint64_t call_near(uint64_t argument) {
        auto* const place = reinterpret_cast<std::byte*>(&rewrite_report) + (size_t{1} << 29);
        const auto page = reinterpret_cast<uintptr_t>(place) & ~uintptr_t{4095};
        return call_at(reinterpret_cast<void*>(page), argument, MAP_PRIVATE);
    }
    bool contains(const void* place) const {
        const auto* begin = static_cast<const std::byte*>(memory_);
        return place >= begin && place < begin + code_.size();
    }
    // What the jump in the place of the first instruction leads to.
    const void* jump_target() const {
        int32_t distance = 0;
        std::memcpy(&distance, static_cast<const std::byte*>(memory_) + 1, sizeof distance);
        return static_cast<const std::byte*>(memory_) + 5 + distance;
    }
    uint64_t call_at(void* hint, uint64_t argument, int flags) {
        unmap();
        memory_ = mmap(hint, code_.size(), PROT_READ | PROT_EXEC, flags, descriptor_, kCodeAt);
        return reinterpret_cast<uint64_t (*)(uint64_t)>(memory_)(argument);
    }
    bool is_rewritten() const { return std::memcmp(memory_, code_.data(), code_.size()) != 0; }
    bool is_unchanged_on_disk() const {
        std::vector<uint8_t> now(code_.size());
        return pread(descriptor_, now.data(), now.size(), kCodeAt) ==
                   static_cast<ssize_t>(now.size()) &&
               now == code_;
    }

private:
    void put(const void* data, size_t bytes, size_t at) const {
        if (pwrite(descriptor_, data, bytes, static_cast<off_t>(at)) < 0) abort();
    }
    void unmap() {
        if (memory_ != MAP_FAILED) munmap(memory_, code_.size());
    }
    const std::vector<uint8_t> code_;
    const int descriptor_ = memfd_create("code", MFD_CLOEXEC);
    void* memory_ = MAP_FAILED;
};

TEST_F(SystemCallsTest, DoWhatTheReplacedInstructionsDid) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  constexpr uint8_t kNumber = SYS_getppid;
                  // mov $number, %eax; syscall; ret
                  CodeFile load({0xb8, kNumber, 0, 0, 0, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(load.call(0) == kAnswer && load.is_rewritten());
                  // mov %rdi, %rax; syscall; ret
                  CodeFile copy({0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(copy.call(kNumber) == kAnswer && copy.is_rewritten());
                  // mov %edi, %eax; syscall; add $1, %rax; ret
                  CodeFile after({0x89, 0xf8, 0x0f, 0x05, 0x48, 0x83, 0xc0, 0x01, 0xc3});
                  HOOK_CHECK(after.call(kNumber) == kAnswer + 1 && after.is_rewritten());
                  // mov number(%rip), %eax; syscall; ret; number
                  CodeFile relative({0x8b, 0x05, 0x03, 0, 0, 0, 0x0f, 0x05, 0xc3,  //
                                     kNumber, 0, 0, 0});
                  HOOK_CHECK(relative.call(0) == kAnswer && relative.is_rewritten());
                  // Too short to be replaced: mov %edi, %eax; syscall; ret
                  CodeFile left({0x89, 0xf8, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(left.call(SYS_getpid) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(!left.is_rewritten());
                  return std::string();
              }),
              "");
}

std::vector<const void*> places_seen;

GENERAL_REGISTERS Verdict note_places(SystemCall& call) {
    hanare_hook_with_vector_registers(
        [](void*) {
            _Unwind_Backtrace(
                [](_Unwind_Context* context, void*) {
                    places_seen.push_back(reinterpret_cast<const void*>(_Unwind_GetIP(context)));
                    return _URC_NO_REASON;
                },
                nullptr);
        },
        nullptr);
    call.finish(kAnswer);
    return Verdict::kDone;
}

bool is_in_this_program(const void* place) {
    Dl_info where = {};
    Dl_info here = {};
    return dladdr(place, &where) != 0 &&
           dladdr(reinterpret_cast<const void*>(&rewrite_report), &here) != 0 &&
           where.dli_fbase == here.dli_fbase;
}

TEST_F(SystemCallsTest, HaveStubsInHanaresOwnCodeWhereThatIsNear) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(note_places, {SYS_getppid}));
                  const std::vector<uint8_t> code = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};
                  CodeFile near(code);
                  CodeFile far(code);
                  for (int i = 0; i < 3000; ++i) {  // more than there is room for at once
                      HOOK_CHECK(near.call_near(0) == kAnswer && near.is_rewritten());
                      HOOK_CHECK(is_in_this_program(near.jump_target()));
                  }
                  HOOK_CHECK(far.call(0) == kAnswer && far.is_rewritten());
                  HOOK_CHECK(!is_in_this_program(far.jump_target()));
                  // Unwinding gets through either stub, to the code that jumped there.
                  for (CodeFile* file : {&near, &far}) {
                      const auto seen =
                          std::count_if(places_seen.begin(), places_seen.end(),
                                        [&](const void* place) { return file->contains(place); });
                      HOOK_CHECK(seen >= 1);
                  }
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, BesideEachOtherAreNotMixedUp) {
    EXPECT_EQ(
        run_in_child([] {
            HOOK_CHECK(intercept(answer, {SYS_getppid}));
            // mov %edi, %eax; syscall; mov $getpid, %eax; syscall; ret: the first needs the
            // load of the second.
            CodeFile both({0x89, 0xf8, 0x0f, 0x05, 0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3});
            HOOK_CHECK(both.call(SYS_getppid) == static_cast<uint64_t>(getpid()));
            HOOK_CHECK(both.is_rewritten() && calls == 1);
            return std::string();
        }),
        "");
}

TEST_F(SystemCallsTest, KeepFlags) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  for (const uint8_t number : {uint8_t{SYS_getppid}, uint8_t{SYS_getpid}}) {
                      // cmp $7, %edi; mov $number, %eax; syscall; sete %al; movzbl %al, %eax; ret
                      CodeFile code({0x83, 0xff, 0x07, 0xb8, number, 0, 0, 0, 0x0f, 0x05,  //
                                     0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3});
                      HOOK_CHECK(code.call(7) == 1 && code.call(8) == 0 && code.is_rewritten());
                  }
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, OfSharedMappingsAreLeftSinceTheseAreTheFile) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  CodeFile code({0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(code.call(0, MAP_SHARED) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(!code.is_rewritten() && code.is_unchanged_on_disk());
                  HOOK_CHECK(code.call(0) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(code.is_rewritten() && code.is_unchanged_on_disk());
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
