// SPDX-License-Identifier: Apache-2.0
//
// The table as a whole: which calls it knows, which of them must not be tried again and which may
// wait for ever.  arguments_effects_test.cpp and arguments_sizes_test.cpp compare it with the
// running kernel.
#include "intercept/arguments.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <set>
#include <utility>

namespace hanare::intercept {
namespace {

struct NamedNumber {
    unsigned number;
    const char* name;
    bool has_pointers;
};

constexpr NamedNumber kNamed[] = {
#define CALL(name, ...) {SYS_##name, #name, true},
#define CALL_NUMBER(number, name, ...) {number, #name, true},
#define NO_POINTERS(name, ...) {SYS_##name, #name, false},
#define NO_POINTERS_NUMBER(number, name) {number, #name, false},
#include "intercept/arguments.def"
#undef CALL
#undef CALL_NUMBER
#undef NO_POINTERS
#undef NO_POINTERS_NUMBER
};

bool consumes(long number) { return arguments_of(static_cast<uint64_t>(number)).consumes; }

bool is_known(unsigned number) { return arguments_of(number).known; }

TEST(Arguments, KnowsEveryNumberOfTheTable) {
    for (unsigned number = 0; number <= 334; ++number) EXPECT_TRUE(is_known(number)) << number;
    for (unsigned number = 424; number <= 469; ++number) EXPECT_TRUE(is_known(number)) << number;
    // The kernel's probes; then a gap, after which numbers are those of all architectures.
    EXPECT_TRUE(is_known(335));
    EXPECT_TRUE(is_known(336));
    for (unsigned number = 337; number <= 423; ++number) EXPECT_FALSE(is_known(number)) << number;
    for (unsigned number = 470; number < 1024; ++number) EXPECT_FALSE(is_known(number)) << number;
}

TEST(Arguments, NumbersBeyondTheTableAreUnknown) {
    EXPECT_FALSE(arguments_of(kSystemCallsMax).known);
    EXPECT_FALSE(arguments_of(0x40000000U).known);  // the first of x32
    EXPECT_FALSE(arguments_of(UINT32_MAX).known);
    EXPECT_FALSE(arguments_of(UINT64_MAX).known);
}

TEST(Arguments, UpperHalfOfTheRegisterDoesNotCount) {
    EXPECT_EQ(&arguments_of(0xdead'0000'0000'0000U | SYS_read), &arguments_of(SYS_read));
}

TEST(Arguments, EveryRowIsWhereItsNumberSays) {
    std::set<unsigned> numbers;
    for (const NamedNumber& named : kNamed) {
        SCOPED_TRACE(named.name);
        EXPECT_TRUE(numbers.insert(named.number).second);
        const SystemCallArguments& call = arguments_of(named.number);
        EXPECT_EQ(call.number, named.number);
        EXPECT_TRUE(call.known);
        EXPECT_EQ(!call.pointers().empty(), named.has_pointers);
    }
    EXPECT_EQ(numbers.size(), 335U + 2U + 46U);
}

// The *at calls differ from the older ones by what stands before the path; a row copied with a
// wrong index would show.
TEST(Arguments, OfCallsWithDirectoryAreOneFurther) {
    const std::pair<long, long> pairs[] = {
        {SYS_open, SYS_openat},         {SYS_access, SYS_faccessat}, {SYS_mkdir, SYS_mkdirat},
        {SYS_mknod, SYS_mknodat},       {SYS_unlink, SYS_unlinkat},  {SYS_chmod, SYS_fchmodat},
        {SYS_chown, SYS_fchownat},      {SYS_utimes, SYS_futimesat}, {SYS_stat, SYS_newfstatat},
        {SYS_readlink, SYS_readlinkat}, {SYS_execve, SYS_execveat},
    };
    for (const auto& [plain_number, at_number] : pairs) {
        SCOPED_TRACE(at_number);
        const auto plain = arguments_of(static_cast<uint64_t>(plain_number)).pointers();
        const auto at = arguments_of(static_cast<uint64_t>(at_number)).pointers();
        ASSERT_EQ(plain.size(), at.size());
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(plain[i].index + 1, at[i].index);
            EXPECT_EQ(plain[i].kind, at[i].kind);
            EXPECT_EQ(plain[i].size.unit, at[i].size.unit);
        }
    }
}

TEST(Arguments, WhatMustNotBeTriedAgain) {
    const std::set<long> expected = {
        SYS_sendfile,    SYS_splice,          SYS_copy_file_range, SYS_accept,
        SYS_accept4,     SYS_getsockopt,      SYS_recvfrom,        SYS_recvmsg,
        SYS_sendmmsg,    SYS_recvmmsg,        SYS_wait4,           SYS_waitid,
        SYS_prlimit64,   SYS_rt_sigaction,    SYS_rt_sigprocmask,  SYS_rt_sigtimedwait,
        SYS_sigaltstack, SYS_nanosleep,       SYS_clock_nanosleep, SYS_clock_adjtime,
        SYS_adjtimex,    SYS_setitimer,       SYS_timer_settime,   SYS_timerfd_settime,
        SYS_msgrcv,      SYS_mq_timedreceive, SYS_mq_getsetattr,   SYS_syslog,
    };
    for (const NamedNumber& named : kNamed)
        EXPECT_EQ(consumes(named.number), expected.contains(named.number)) << named.name;
}

TEST(Arguments, WhatMayWaitForEver) {
    // clang-format off
    const long waits[] = {
        SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_connect, SYS_accept, SYS_accept4,
        SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_poll,
        SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2,
        SYS_futex, SYS_futex_waitv, SYS_wait4, SYS_waitid, SYS_nanosleep, SYS_semop,
        SYS_semtimedop, SYS_msgsnd, SYS_msgrcv, SYS_mq_timedsend, SYS_splice, SYS_sendfile,
        SYS_mq_timedreceive, SYS_rt_sigsuspend, SYS_pause, SYS_flock, SYS_fcntl,
        SYS_rt_sigtimedwait, SYS_clock_nanosleep, SYS_open, SYS_io_getevents, SYS_io_pgetevents,
        SYS_io_uring_enter, SYS_openat, 455,
    };
    const long returns[] = {
        SYS_stat, SYS_fstat, SYS_getdents64, SYS_readlink, SYS_uname, SYS_getsockname,
        SYS_getsockopt, SYS_epoll_ctl, SYS_clock_gettime, SYS_rt_sigaction, SYS_rt_sigprocmask,
        SYS_pipe2, SYS_timer_settime, SYS_set_robust_list, SYS_getpid, 454, 456,
    };
    // clang-format on
    for (const long number : waits)
        EXPECT_TRUE(arguments_of(static_cast<uint64_t>(number)).may_block) << number;
    for (const long number : returns)
        EXPECT_FALSE(arguments_of(static_cast<uint64_t>(number)).may_block) << number;
}

}  // namespace
}  // namespace hanare::intercept
