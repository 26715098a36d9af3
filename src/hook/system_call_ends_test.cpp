// SPDX-License-Identifier: Apache-2.0
//
// System calls that signals, cancellation and longjmp end, and how unwinders see them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unwind.h>

#include <csetjmp>
#include <fstream>
#include <thread>

#include "hook/test_handlers.hpp"

namespace hanare::hook::testing {
namespace {

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

void* poll_for_ever(void* context) {
    auto& blocked = *static_cast<Blocked*>(context);
    blocked.reader = gettid();
    blocked.reader.notify_all();
    pollfd polled = {.fd = blocked.pipe_ends[0], .events = POLLIN, .revents = 0};
    if (poll(&polled, 1, -1) == 1) blocked.cleaned = 100;
    return nullptr;
}

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

// Returns when the thread sleeps.
bool begin(Blocked& blocked, void* (*function)(void*), pthread_t& thread) {
    if (pipe(blocked.pipe_ends) != 0) return false;
    if (pthread_create(&thread, nullptr, function, &blocked) != 0) return false;
    blocked.reader.wait(0);
    wait_until_asleep(blocked.reader);
    return true;
}

std::string cancel_a_reader() {
    Blocked blocked;
    pthread_t thread;
    HOOK_CHECK(begin(blocked, read_for_ever, thread));
    HOOK_CHECK(pthread_cancel(thread) == 0);
    void* result = nullptr;
    HOOK_CHECK(pthread_join(thread, &result) == 0);
    HOOK_CHECK(result == PTHREAD_CANCELED);
    HOOK_CHECK(blocked.cleaned == 2);  // destructors ran, in both frames
    return {};
}

// Where a thread that sleeps in a system call goes on.
const void* place_of(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
    std::string place;
    for (std::string word; file >> word;) place = word;
    return reinterpret_cast<const void*>(std::stoull(place, nullptr, 16));
}

// There unwinders, debuggers and libc know where they are, and the processor where it goes on.
TEST_F(SystemCallsTest, ThatNobodyAskedForAreMadeWhereTheyWere) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(count_only, {}));
                  Blocked blocked;
                  pthread_t thread;
                  HOOK_CHECK(begin(blocked, poll_for_ever, thread));
                  Dl_info module = {};
                  Dl_info libc = {};
                  HOOK_CHECK(dladdr(place_of(blocked.reader), &module) != 0);
                  HOOK_CHECK(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) != 0);
                  HOOK_CHECK(module.dli_fbase == libc.dli_fbase);
                  HOOK_CHECK(write(blocked.pipe_ends[1], "x", 1) == 1);
                  HOOK_CHECK(pthread_join(thread, nullptr) == 0 && blocked.cleaned > 2);
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, AreCancelledWhereTheyWereWithAllDestructors) {
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

TEST_F(SystemCallsTest, AreCancelledInTheEntryWithAllDestructors) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(make_it_then_more, {SYS_read}));
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
    struct Case {
        SystemCallHandler handler;
        std::vector<uint32_t> numbers;
    };
    const Case cases[] = {{count_only, {}},
                          {count_only, {SYS_read}},
                          {make_it_here, {SYS_read}},
                          {make_it_then_more, {SYS_read}}};
    for (const auto& [handler, numbers] : cases) {
        EXPECT_EQ(run_in_child([&] {
                      HOOK_CHECK(intercept(handler, numbers));
                      const std::string restarted = read_in_a_storm(SA_RESTART);
                      return restarted.empty() ? read_in_a_storm(0) : restarted;
                  }),
                  "");
    }
}

sigjmp_buf way_out;
void leave(int) { siglongjmp(way_out, 1); }

std::string leave_by_longjmp(SystemCallHandler handler,
                             const std::vector<uint32_t>& numbers = {SYS_pause, SYS_getppid}) {
    return run_in_child([&] {
        HOOK_CHECK(intercept(handler, numbers));
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
    });
}

TEST_F(SystemCallsTest, AreLeftByLongjmp) {
    EXPECT_EQ(leave_by_longjmp(count_only, {}), "");
    EXPECT_EQ(leave_by_longjmp(make_it_here), "");
    EXPECT_EQ(leave_by_longjmp(make_it_then_more), "");
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

}  // namespace
}  // namespace hanare::hook::testing
