// SPDX-License-Identifier: Apache-2.0
//
// Threads have what the handler needs from their first to their last instruction, and leave
// nothing.
#include <gtest/gtest.h>

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <climits>
#include <fstream>
#include <thread>
#include <vector>

#include "hook/test_support.hpp"

namespace hanare::hook::testing {
namespace {

using sys::testing::run_in_child;

using Body = void* (*)(void*);

size_t count_mappings() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

// Whether `threads` threads left something.  Sanitizers keep a little for each thread's name, a
// forgotten stack would be two mappings.
bool left_mappings(size_t before, size_t threads) {
    const size_t now = count_mappings();
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    return now > before + threads / 2;
#else
    return threads > 0 && now != before;
#endif
}

size_t alternate_stack_bytes() {
    stack_t stack = {};
    sigaltstack(nullptr, &stack);
    return (stack.ss_flags & SS_DISABLE) != 0 ? 0 : stack.ss_size;
}

// Runs `body` in a thread, with attributes if given, and joins it.
std::string run_thread(Body body, const pthread_attr_t* attributes = nullptr) {
    pthread_t thread;
    static char token;
    HOOK_CHECK(pthread_create(&thread, attributes, body, &token) == 0);
    void* result = nullptr;
    HOOK_CHECK(pthread_join(thread, &result) == 0);
    return result == &token || result == PTHREAD_CANCELED ? "" : "the thread failed";
}

bool serve_with_8_kib(int number, siginfo_t* info, void* context) noexcept {
    volatile char room[8192];
    for (size_t i = 0; i < sizeof room; i += 64) room[i] = 1;
    return serve(number, info, context) && room[4096] == 1;
}

void* fault_once(void* argument) { return Scene::fault_is_served() ? argument : nullptr; }

void* fault_with_everything_blocked(void* argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    return fault_once(argument);
}

TEST(Threads, ServeFaultsOnTheSmallestStacks) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim(serve_with_8_kib));
                  pthread_attr_t attributes;
                  pthread_attr_init(&attributes);
                  const auto smallest = static_cast<size_t>(PTHREAD_STACK_MIN);
                  HOOK_CHECK(pthread_attr_setstacksize(&attributes, smallest) == 0);
                  for (const Body body : {fault_once, fault_with_everything_blocked}) {
                      const std::string failure = run_thread(body, &attributes);
                      if (!failure.empty()) return failure;
                  }
                  pthread_attr_destroy(&attributes);
                  return std::string();
              }),
              "");
}

TEST(Threads, BeginWithTheSignalUnblocked) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  pthread_attr_t attributes;
                  pthread_attr_init(&attributes);
                  sigset_t all;
                  sigfillset(&all);
                  HOOK_CHECK(pthread_attr_setsigmask_np(&attributes, &all) == 0);
                  const Body body = [](void* argument) {
                      const bool as_asked = is_blocked(SIGBUS) && is_blocked(SIGTERM);
                      return as_asked ? fault_once(argument) : nullptr;
                  };
                  return run_thread(body, &attributes);
              }),
              "");
}

TEST(Threads, OfBeforeTheClaimHaveTheStackToo) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  static sem_t claimed;
                  sem_init(&claimed, 0, 0);
                  bool good = false;
                  std::thread early([&] {
                      while (sem_wait(&claimed) != 0) {
                      }
                      good = alternate_stack_bytes() > 0 && Scene::fault_is_served();
                  });
                  const bool done = Scene::claim();
                  sem_post(&claimed);
                  early.join();
                  HOOK_CHECK(done && good);
                  return std::string();
              }),
              "");
}

void* note_stack(void* argument) { return alternate_stack_bytes() >= 16384 ? argument : nullptr; }
void* leave_by_exit(void*) { pthread_exit(PTHREAD_CANCELED); }
void* wait_for_cancel(void*) {
    for (;;) pause();
}

TEST(Threads, LeaveNoMappings) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(run_thread(note_stack).empty());
                  const size_t before = count_mappings();
                  for (int i = 0; i < 1000; ++i) HOOK_CHECK(run_thread(note_stack).empty());
                  HOOK_CHECK(!left_mappings(before, 1000));
                  return std::string();
              }),
              "");
}

TEST(Threads, LeaveNoMappingsByExitAndCancellation) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(run_thread(note_stack).empty());
                  const auto cancel_one = [] {
                      pthread_t thread;
                      HOOK_CHECK(pthread_create(&thread, nullptr, wait_for_cancel, nullptr) == 0);
                      HOOK_CHECK(pthread_cancel(thread) == 0);
                      void* result = nullptr;
                      HOOK_CHECK(pthread_join(thread, &result) == 0);
                      HOOK_CHECK(result == PTHREAD_CANCELED);
                      return std::string();
                  };
                  HOOK_CHECK(cancel_one().empty());  // loads the unwinder
                  const size_t before = count_mappings();
                  for (int i = 0; i < 100; ++i) {
                      HOOK_CHECK(run_thread(leave_by_exit).empty());
                      HOOK_CHECK(cancel_one().empty());
                  }
                  HOOK_CHECK(!left_mappings(before, 200));
                  return std::string();
              }),
              "");
}

TEST(Threads, FailAsLibcDoesAndLeaveNothing) {
    EXPECT_EQ(
        run_in_child([] {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            const size_t absurd = size_t{1} << 50;
            HOOK_CHECK(pthread_attr_setstacksize(&attributes, absurd) == 0);
            HOOK_CHECK(run_thread(note_stack).empty());
            const size_t before = count_mappings();
            for (int i = 0; i < 100; ++i) {
                pthread_t thread;
                HOOK_CHECK(pthread_create(&thread, &attributes, note_stack, nullptr) == EAGAIN);
            }
            HOOK_CHECK(!left_mappings(before, 100));
            return std::string();
        }),
        "");
}

pthread_key_t program_key;
std::atomic<bool> served_in_destructor{false};

TEST(Threads, ServeFaultsOfTheProgramsDestructors) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  const auto destroy = [](void*) {
                      served_in_destructor =
                          alternate_stack_bytes() > 0 && Scene::fault_is_served();
                  };
                  HOOK_CHECK(pthread_key_create(&program_key, destroy) == 0);
                  const Body body = [](void* argument) {
                      pthread_setspecific(program_key, argument);
                      return argument;
                  };
                  HOOK_CHECK(run_thread(body).empty());
                  HOOK_CHECK(served_in_destructor);
                  return std::string();
              }),
              "");
}

TEST(Threads, KeepAnAlternateStackOfTheProgram) {
#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
    GTEST_SKIP() << "sanitizers unmap whatever alternate stack they find when a thread ends";
#endif
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(run_thread(note_stack).empty());
                  const Body body = [](void* argument) -> void* {
                      static char own[65536];
                      stack_t stack = {};
                      stack.ss_sp = own;
                      stack.ss_size = sizeof own;
                      if (sigaltstack(&stack, nullptr) != 0) return nullptr;
                      return argument;
                  };
                  const size_t before = count_mappings();
                  HOOK_CHECK(run_thread(body).empty());
                  HOOK_CHECK(count_mappings() == before);
                  return std::string();
              }),
              "");
}

TEST(Threads, MayBeDetached) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  static sem_t done;
                  sem_init(&done, 0, 0);
                  HOOK_CHECK(Scene::claim());
                  std::thread([] {
                      if (Scene::fault_is_served()) sem_post(&done);
                  }).detach();
                  while (sem_wait(&done) != 0) {
                  }
                  return std::string();
              }),
              "");
}

TEST(Threads, OfC11AreServed) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "the thread sanitizer does not know threads made by thrd_create";
#endif
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  thrd_t thread;
                  const thrd_start_t body = [](void*) {
                      return alternate_stack_bytes() > 0 && Scene::fault_is_served() ? 42 : 1;
                  };
                  HOOK_CHECK(thrd_create(&thread, body, nullptr) == thrd_success);
                  int result = 0;
                  HOOK_CHECK(thrd_join(thread, &result) == thrd_success && result == 42);
                  return std::string();
              }),
              "");
}

TEST(Threads, TerminateOnAnEscapingException) {
    EXPECT_EQ(run_in_child([] {
                  std::signal(SIGABRT, SIG_DFL);
                  close(STDERR_FILENO);
                  const Body body = [](void*) -> void* { throw 1; };
                  return run_thread(body);
              }),
              died_of(SIGABRT));
}

std::atomic<int> calls{0};
std::atomic<bool> mixed_up{false};

template <int kSignal>
void handler_with(int) {
    if (!is_blocked(kSignal)) mixed_up = true;
    calls.fetch_add(1);
}

TEST(Threads, MayRaceChangingTheHandler) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  std::signal(SIGBUS, SIG_IGN);
                  std::atomic<bool> stop{false};
                  const auto change = [&stop](void (*handler)(int), int blocks) {
                      struct sigaction action = {};
                      action.sa_handler = handler;
                      action.sa_mask = set_of({blocks});
                      while (!stop) {
                          struct sigaction old = {};
                          sigaction(SIGBUS, &action, &old);
                      }
                  };
                  std::thread one(change, handler_with<SIGUSR1>, SIGUSR1);
                  std::thread two(change, handler_with<SIGUSR2>, SIGUSR2);
                  bool good = true;
                  for (int i = 0; i < 2000; ++i) {
                      raise(SIGBUS);
                      good = good && Scene::fault_is_served();
                  }
                  while (calls == 0) raise(SIGBUS);
                  stop = true;
                  one.join();
                  two.join();
                  HOOK_CHECK(good && !mixed_up);
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
