// SPDX-License-Identifier: Apache-2.0
//
// Faults on claimed memory are served wherever they happen: whatever the thread or a handler
// blocks.
#include <gtest/gtest.h>

#include <poll.h>

#include "hook/test_support.hpp"

namespace hanare::hook::testing {
namespace {

using sys::testing::run_in_child;

std::atomic<bool> receiver_blocked_all{false};

bool note_mask(int, siginfo_t*, void*) noexcept {
    receiver_blocked_all = is_blocked(SIGTERM) && is_blocked(SIGALRM) && is_blocked(SIGSEGV);
    far_page->repair();
    return true;
}

TEST(Claim, ServesFaultsAndKeepsErrno) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  for (int i = 0; i < 100; ++i) HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

TEST(Claim, BlocksAllSignalsInTheReceiver) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim(note_mask));
                  far_page->touch();
                  HOOK_CHECK(receiver_blocked_all);
                  HOOK_CHECK(!is_blocked(SIGTERM));
                  return std::string();
              }),
              "");
}

TEST(Claim, IsRefusedTwiceAndForOtherSignals) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  const Result<void> other = claim_signal(SIGUSR1, serve);
                  HOOK_CHECK(!other && other.error().status == HANARE_STATUS_INVALID_ARGUMENT);
                  HOOK_CHECK(Scene::claim());
                  const Result<void> again = claim_signal(SIGBUS, serve);
                  HOOK_CHECK(!again && again.error().status == HANARE_STATUS_BUSY);
                  return std::string();
              }),
              "");
}

TEST(Claim, WorksForTwoSignals) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  std::signal(SIGSEGV, SIG_DFL);
                  HOOK_CHECK(Scene::claim());
                  const auto allow = [](int, siginfo_t* info, void*) noexcept {
                      return mprotect(info->si_addr, kPageBytes, PROT_READ | PROT_WRITE) == 0;
                  };
                  HOOK_CHECK(claim_signal(SIGSEGV, allow).has_value());
                  void* page =
                      mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  const sigset_t both = set_of({SIGSEGV, SIGBUS});
                  pthread_sigmask(SIG_BLOCK, &both, nullptr);
                  HOOK_CHECK(is_blocked(SIGSEGV) && is_blocked(SIGBUS));
                  *static_cast<volatile char*>(page) = 1;
                  HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

volatile sig_atomic_t bus_code = 0;

TEST(Claim, AReceiverMayMakeTheFaultAnotherSignal) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  struct sigaction action = {};
                  action.sa_flags = SA_SIGINFO;
                  action.sa_sigaction = [](int number, siginfo_t* info, void*) {
                      bus_code = number == SIGBUS ? info->si_code : -1;
                      mprotect(info->si_addr, kPageBytes, PROT_READ | PROT_WRITE);
                  };
                  sigaction(SIGBUS, &action, nullptr);
                  std::signal(SIGSEGV, SIG_DFL);
                  HOOK_CHECK(Scene::claim());
                  const auto turn = [](int, siginfo_t* info, void*) noexcept {
                      info->si_signo = SIGBUS;
                      info->si_code = BUS_ADRERR;
                      return false;
                  };
                  HOOK_CHECK(claim_signal(SIGSEGV, turn).has_value());
                  void* page =
                      mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  *static_cast<volatile char*>(page) = 1;
                  HOOK_CHECK(bus_code == BUS_ADRERR);
                  return std::string();
              }),
              "");
}

TEST(Claim, ServesAThreadThatBlockedTheSignalBefore) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  const sigset_t bus = set_of({SIGBUS});
                  sigprocmask(SIG_BLOCK, &bus, nullptr);
                  HOOK_CHECK(Scene::claim());
                  HOOK_CHECK(is_blocked(SIGBUS));
                  HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

TEST(Claim, ServesAThreadThatBlocksTheSignalAfterwards) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  sigset_t all;
                  sigset_t old;
                  sigfillset(&all);
                  HOOK_CHECK(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
                  HOOK_CHECK(sigismember(&old, SIGBUS) == 0 && Scene::fault_is_served());
                  HOOK_CHECK(sigprocmask(SIG_SETMASK, &all, &old) == 0);
                  HOOK_CHECK(sigismember(&old, SIGBUS) == 1 && sigismember(&old, SIGTERM) == 1);
                  HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

TEST(Claim, ShowsTheProgramTheMaskThatItSet) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  const sigset_t bus = set_of({SIGBUS});
                  sigset_t all_but_bus;
                  sigfillset(&all_but_bus);
                  sigdelset(&all_but_bus, SIGBUS);
                  sigprocmask(SIG_BLOCK, &bus, nullptr);
                  HOOK_CHECK(is_blocked(SIGBUS) && !is_blocked(SIGTERM));
                  sigprocmask(SIG_SETMASK, &all_but_bus, nullptr);
                  HOOK_CHECK(!is_blocked(SIGBUS) && is_blocked(SIGTERM));
                  sigprocmask(SIG_BLOCK, &bus, nullptr);
                  sigprocmask(SIG_UNBLOCK, &all_but_bus, nullptr);
                  HOOK_CHECK(is_blocked(SIGBUS) && !is_blocked(SIGTERM));
                  sigprocmask(SIG_UNBLOCK, &bus, nullptr);
                  HOOK_CHECK(!is_blocked(SIGBUS));
                  sigset_t mask;
                  HOOK_CHECK(sigprocmask(12345, &bus, &mask) == -1 && errno == EINVAL);
                  return std::string();
              }),
              "");
}

std::atomic<int> alarms{0};

void fault_in_alarm(int) {
    far_page->break_again();
    far_page->touch();
    alarms.fetch_add(1);
}

struct sigaction alarm_action() {
    struct sigaction action = {};
    action.sa_handler = fault_in_alarm;
    sigfillset(&action.sa_mask);
    return action;
}

TEST(Claim, ServesHandlersThatBlockEverything) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "the thread sanitizer runs handlers of sent signals with all signals blocked";
#endif
    for (const bool installed_first : {true, false}) {
        EXPECT_EQ(run_in_child([installed_first] {
                      Scene scene;
                      const struct sigaction action = alarm_action();
                      if (installed_first) sigaction(SIGALRM, &action, nullptr);
                      HOOK_CHECK(Scene::claim());
                      if (!installed_first) sigaction(SIGALRM, &action, nullptr);
                      raise(SIGALRM);
                      HOOK_CHECK(alarms == 1 && served == 1);
                      struct sigaction old = {};
                      HOOK_CHECK(sigaction(SIGALRM, nullptr, &old) == 0);
                      HOOK_CHECK(old.sa_handler == fault_in_alarm);
                      HOOK_CHECK(sigismember(&old.sa_mask, SIGBUS) == 1);
                      HOOK_CHECK(sigismember(&old.sa_mask, SIGTERM) == 1);
                      return std::string();
                  }),
                  "")
            << "installed first: " << installed_first;
    }
}

TEST(Claim, ServesHandlersDuringWaitsThatBlockEverything) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "the thread sanitizer runs handlers of sent signals with all signals blocked";
#endif
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  const struct sigaction action = alarm_action();
                  sigaction(SIGALRM, &action, nullptr);
                  const sigset_t alarm_only = set_of({SIGALRM});
                  sigset_t all_but_alarm;
                  sigfillset(&all_but_alarm);
                  sigdelset(&all_but_alarm, SIGALRM);
                  sigprocmask(SIG_BLOCK, &alarm_only, nullptr);
                  raise(SIGALRM);
                  HOOK_CHECK(sigsuspend(&all_but_alarm) == -1 && errno == EINTR);
                  HOOK_CHECK(alarms == 1 && served == 1);
                  raise(SIGALRM);
                  HOOK_CHECK(ppoll(nullptr, 0, nullptr, &all_but_alarm) == -1 && errno == EINTR);
                  HOOK_CHECK(alarms == 2 && served == 2);
                  raise(SIGALRM);
                  HOOK_CHECK(pselect(0, nullptr, nullptr, nullptr, nullptr, &all_but_alarm) == -1);
                  HOOK_CHECK(alarms == 3 && served == 3);
                  return std::string();
              }),
              "");
}

TEST(Claim, SurvivesFork) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  return run_in_child([] {
                      HOOK_CHECK(Scene::fault_is_served());
                      return std::string();
                  });
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
