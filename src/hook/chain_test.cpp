// SPDX-License-Identifier: Apache-2.0
//
// What is not Hanare's happens as if there were no Hanare: the program's handlers with their masks
// and flags, default actions, signals that are sent, blocked, waited for.
#include <gtest/gtest.h>

#include <csetjmp>

#include "hook/test_support.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // sighold and its family

namespace hanare::hook::testing {
namespace {

using sys::testing::run_in_child;

std::atomic<int> handled{0};
std::atomic<int> last_code{0};
std::atomic<pid_t> last_pid{0};
std::atomic<const void*> last_address{nullptr};
std::atomic<uint64_t> seen_blocked{0};

void note_mask_and_repair() {
    uint64_t blocked = 0;
    for (const int number : {SIGBUS, SIGUSR1, SIGUSR2, SIGTERM}) {
        if (is_blocked(number)) blocked |= uint64_t{1} << number;
    }
    seen_blocked = blocked;
    handled.fetch_add(1);
    foreign_page->repair();
}

bool saw_blocked(int number) { return (seen_blocked.load() >> number & 1) != 0; }

void plain_handler(int) { note_mask_and_repair(); }

void info_handler(int, siginfo_t* info, void* context) {
    last_code = info->si_code;
    last_pid = info->si_pid;
    last_address = info->si_addr;
    if (context != nullptr) note_mask_and_repair();
}

using Install = void (*)();

void by_sigaction() {
    struct sigaction action = {};
    action.sa_handler = plain_handler;
    sigaction(SIGBUS, &action, nullptr);
}
void by_siginfo() {
    struct sigaction action = {};
    action.sa_sigaction = info_handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}
void by_signal() { std::signal(SIGBUS, plain_handler); }
void by_bsd_signal() { ssignal(SIGBUS, plain_handler); }
void by_sysv_signal() { sysv_signal(SIGBUS, plain_handler); }

class ChainedHandler : public ::testing::TestWithParam<std::tuple<Install, bool>> {};

TEST_P(ChainedHandler, GetsForeignFaults) {
    const Install install = std::get<0>(GetParam());
    const bool installed_first = std::get<1>(GetParam());
#if defined(HANARE_TSAN)
    if (installed_first && (install == by_signal || install == by_bsd_signal)) {
        GTEST_SKIP() << "the thread sanitizer's signal() blocks all signals in the handler";
    }
#endif
    EXPECT_EQ(run_in_child([install, installed_first] {
                  Scene scene;
                  if (installed_first) install();
                  HOOK_CHECK(Scene::claim());
                  if (!installed_first) install();
                  HOOK_CHECK(Scene::fault_is_served());
                  foreign_page->touch();
                  HOOK_CHECK(handled == 1);
                  HOOK_CHECK(saw_blocked(SIGBUS) == (install != by_sysv_signal));
                  HOOK_CHECK(!saw_blocked(SIGTERM) && !is_blocked(SIGBUS));
                  if (install == by_siginfo) {
                      HOOK_CHECK(last_code == BUS_ADRERR);
                      HOOK_CHECK(foreign_page->contains(last_address.load()));
                  }
                  HOOK_CHECK(Scene::fault_is_served());
                  if (install == by_sysv_signal) return std::string();  // it is reset by now
                  foreign_page->break_again();
                  foreign_page->touch();
                  HOOK_CHECK(handled == 2);
                  return std::string();
              }),
              "");
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ChainedHandler,
                         ::testing::Combine(::testing::Values(by_sigaction, by_siginfo, by_signal,
                                                              by_bsd_signal, by_sysv_signal),
                                            ::testing::Bool()));

TEST(Chain, RunsHandlersWithTheirMask) {
    for (const bool nodefer : {false, true}) {
        EXPECT_EQ(run_in_child([nodefer] {
                      Scene scene;
                      HOOK_CHECK(Scene::claim());
                      struct sigaction action = {};
                      action.sa_handler = plain_handler;
                      action.sa_mask = set_of({SIGUSR1});
                      action.sa_flags = nodefer ? SA_NODEFER : 0;
                      sigaction(SIGBUS, &action, nullptr);
                      const sigset_t mine = set_of({SIGUSR2});
                      sigprocmask(SIG_SETMASK, &mine, nullptr);
                      foreign_page->touch();
                      HOOK_CHECK(handled == 1);
                      HOOK_CHECK(saw_blocked(SIGUSR1) && saw_blocked(SIGUSR2));
                      HOOK_CHECK(!saw_blocked(SIGTERM) && saw_blocked(SIGBUS) == !nodefer);
                      HOOK_CHECK(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
                      HOOK_CHECK(!is_blocked(SIGBUS));
                      return std::string();
                  }),
                  "");
    }
}

TEST(Chain, ReturnsWhatTheProgramSet) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  by_signal();
                  struct sigaction action = {};
                  action.sa_sigaction = info_handler;
                  action.sa_mask = set_of({SIGBUS, SIGUSR1});
                  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
                  struct sigaction old = {};
                  HOOK_CHECK(sigaction(SIGBUS, &action, &old) == 0);
                  HOOK_CHECK(old.sa_handler == plain_handler && (old.sa_flags & SA_RESTART) != 0);
                  HOOK_CHECK(sigaction(SIGBUS, nullptr, &old) == 0);
                  HOOK_CHECK(old.sa_sigaction == info_handler && old.sa_flags == action.sa_flags);
                  HOOK_CHECK(sigismember(&old.sa_mask, SIGBUS) == 1);
                  HOOK_CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1);
                  HOOK_CHECK(sigismember(&old.sa_mask, SIGUSR2) == 0);
                  const auto previous = reinterpret_cast<uintptr_t>(std::signal(SIGBUS, SIG_IGN));
                  HOOK_CHECK(previous == reinterpret_cast<uintptr_t>(&info_handler));
                  HOOK_CHECK(std::signal(SIGBUS, SIG_DFL) == SIG_IGN);
                  HOOK_CHECK(std::signal(SIGBUS, SIG_ERR) == SIG_ERR && errno == EINVAL);
                  HOOK_CHECK(sigset(SIGBUS, SIG_HOLD) == SIG_DFL && is_blocked(SIGBUS));
                  HOOK_CHECK(sigset(SIGBUS, plain_handler) == SIG_HOLD && !is_blocked(SIGBUS));
                  HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

TEST(Chain, ResetsOneShotHandlers) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  struct sigaction action = {};
                  action.sa_handler = plain_handler;
                  action.sa_flags = static_cast<int>(SA_RESETHAND);
                  sigaction(SIGBUS, &action, nullptr);
                  foreign_page->touch();
                  HOOK_CHECK(handled == 1);
                  HOOK_CHECK(sigaction(SIGBUS, nullptr, &action) == 0);
                  HOOK_CHECK(action.sa_handler == SIG_DFL);
                  HOOK_CHECK(Scene::fault_is_served());
                  foreign_page->break_again();
                  foreign_page->touch();
                  return std::string("survived");
              }),
              died_of(SIGBUS));
}

sigjmp_buf before_probe;

void leave_by_jump(int) { siglongjmp(before_probe, 1); }

TEST(Chain, LetsHandlersJumpOut) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  std::signal(SIGBUS, leave_by_jump);
                  static int jumps;
                  for (jumps = 0; jumps < 1000;) {
                      if (sigsetjmp(before_probe, 1) != 0) {
                          ++jumps;
                          HOOK_CHECK(!is_blocked(SIGBUS) && !is_blocked(SIGTERM));
                      } else {
                          foreign_page->touch();
                          return std::string("no fault");
                      }
                  }
                  HOOK_CHECK(Scene::fault_is_served());
                  return std::string();
              }),
              "");
}

void touch_far_and_repair(int) {
    far_page->touch();
    plain_handler(SIGBUS);
}

TEST(Chain, ServesFaultsInsideTheProgramsHandler) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  std::signal(SIGBUS, touch_far_and_repair);
                  foreign_page->touch();
                  HOOK_CHECK(handled == 1 && served == 1 && saw_blocked(SIGBUS));
                  return std::string();
              }),
              "");
}

void fault_again(int) {
    handled.fetch_add(1);
    foreign_page->touch();
}

TEST(Chain, KillsForAForeignFaultInsideTheHandler) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  std::signal(SIGBUS, fault_again);
                  foreign_page->touch();
                  return std::string("survived");
              }),
              died_of(SIGBUS));
}

TEST(Chain, TakesTheDefaultActionForFaults) {
    for (const sighandler_t disposition : {SIG_DFL, SIG_IGN}) {
        for (const bool blocked : {false, true}) {
            EXPECT_EQ(run_in_child([disposition, blocked] {
                          Scene scene;
                          HOOK_CHECK(Scene::claim());
                          std::signal(SIGBUS, disposition);
                          if (blocked) sighold(SIGBUS);
                          HOOK_CHECK(Scene::fault_is_served());
                          foreign_page->touch();
                          return std::string("survived");
                      }),
                      died_of(SIGBUS));
        }
    }
}

TEST(Chain, KillsForABlockedFaultAlthoughThereIsAHandler) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  by_signal();
                  sighold(SIGBUS);
                  foreign_page->touch();
                  return std::string("survived");
              }),
              died_of(SIGBUS));
}

TEST(Chain, TreatsSentSignalsByDisposition) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  std::signal(SIGBUS, SIG_IGN);
                  kill(getpid(), SIGBUS);
                  raise(SIGBUS);
                  by_siginfo();
                  kill(getpid(), SIGBUS);
                  HOOK_CHECK(handled == 1 && last_code == SI_USER && last_pid == getpid());
                  raise(SIGBUS);
                  HOOK_CHECK(handled == 2 && last_code == SI_TKILL && last_pid == getpid());
                  HOOK_CHECK(served == 0 && Scene::fault_is_served());
                  std::signal(SIGBUS, SIG_DFL);
                  kill(getpid(), SIGBUS);
                  return std::string("survived");
              }),
              died_of(SIGBUS));
}

TEST(Chain, HoldsBackSentSignalsWhileBlocked) {
    EXPECT_EQ(run_in_child([] {
                  Scene scene;
                  HOOK_CHECK(Scene::claim());
                  by_siginfo();
                  sighold(SIGBUS);
                  kill(getpid(), SIGBUS);
                  sigset_t pending;
                  HOOK_CHECK(handled == 0 && sigpending(&pending) == 0);
                  HOOK_CHECK(sigismember(&pending, SIGBUS) == 1);
                  HOOK_CHECK(Scene::fault_is_served() && handled == 0);
                  sigrelse(SIGBUS);
                  HOOK_CHECK(handled == 1 && last_code == SI_USER && last_pid == getpid());
                  sighold(SIGBUS);
                  raise(SIGBUS);
                  const sigset_t bus = set_of({SIGBUS});
                  siginfo_t info = {};
                  HOOK_CHECK(sigwaitinfo(&bus, &info) == SIGBUS);
                  HOOK_CHECK(info.si_signo == SIGBUS && info.si_code == SI_TKILL);
                  HOOK_CHECK(info.si_pid == getpid() && handled == 1);
                  kill(getpid(), SIGBUS);
                  int number = 0;
                  HOOK_CHECK(sigwait(&bus, &number) == 0 && number == SIGBUS && handled == 1);
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
