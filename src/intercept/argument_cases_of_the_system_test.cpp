// SPDX-License-Identifier: Apache-2.0
//
// Cases of arguments_sizes_test.cpp: time, scheduling, queues and the rest.
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cstring>
#include <ctime>

#include "intercept/argument_cases.hpp"

namespace hanare::intercept::argument_cases {

namespace {

// clang-format off
std::vector<Case> time_cases() {
    static Things& t = things();
    return {
        {"nanosleep", SYS_nanosleep, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 0}; }, Bytes(16)},
        {"clock_nanosleep", SYS_clock_nanosleep, 2, Size::kExact,
         [](uint64_t p) { return Words{CLOCK_MONOTONIC, 0, p, 0}; }, Bytes(16)},
        {"clock_gettime", SYS_clock_gettime, 1, Size::kExact,
         [](uint64_t p) { return Words{CLOCK_MONOTONIC, p}; }},
        {"clock_getres", SYS_clock_getres, 1, Size::kExact,
         [](uint64_t p) { return Words{CLOCK_MONOTONIC, p}; }},
        {"clock_adjtime", SYS_clock_adjtime, 1, Size::kExact,
         [](uint64_t p) { return Words{CLOCK_REALTIME, p}; }, Bytes(208)},
        {"adjtimex", SYS_adjtimex, 0, Size::kExact, [](uint64_t p) { return Words{p}; },
         Bytes(208)},
        {"time", SYS_time, 0, Size::kExact, [](uint64_t p) { return Words{p}; }},
        {"gettimeofday", SYS_gettimeofday, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 0}; }},
        {"gettimeofday_zone", SYS_gettimeofday, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p}; }},
        {"getitimer", SYS_getitimer, 1, Size::kExact,
         [](uint64_t p) { return Words{ITIMER_VIRTUAL, p}; }},
        {"setitimer", SYS_setitimer, 1, Size::kExact,
         [](uint64_t p) { return Words{ITIMER_VIRTUAL, p, 0}; }, Bytes(32)},
        {"setitimer_old", SYS_setitimer, 2, Size::kExact,
         [](uint64_t p) { return Words{ITIMER_VIRTUAL, word_of(&t.scratch), p}; }, {},
         [] { t.scratch = {}; }},
        {"timer_create", SYS_timer_create, 1, Size::kExact,
         [](uint64_t p) { return Words{CLOCK_MONOTONIC, p, word_of(&t.scratch)}; }, Bytes(64)},
        {"timer_create_id", SYS_timer_create, 2, Size::kAtMost,  // small numbers
         [](uint64_t p) { return Words{CLOCK_MONOTONIC, 0, p}; }},
        {"timer_gettime", SYS_timer_gettime, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.timer), p}; }},
        {"timer_settime", SYS_timer_settime, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.timer), 0, p, 0}; }, Bytes(32)},
        {"timerfd_gettime", SYS_timerfd_gettime, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.timerfd), p}; }},
        {"timerfd_settime", SYS_timerfd_settime, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.timerfd), 0, p, 0}; }, Bytes(32)},
        {"timerfd_settime_old", SYS_timerfd_settime, 3, Size::kExact,
         [](uint64_t p) { return Words{fd(t.timerfd), 0, word_of(&t.scratch), p}; }, {},
         [] { t.scratch = {}; }},
    };
}

std::vector<Case> scheduling_cases() {
    static Things& t = things();
    void* pages = mmap(nullptr, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    static uint64_t page = word_of(pages);
    memset(pages, 1, 4 * 4096);
    cpu_set_t processors;
    sched_getaffinity(0, sizeof processors, &processors);
    return {
        {"sched_getparam", SYS_sched_getparam, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p}; }},
        {"sched_setparam", SYS_sched_setparam, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p}; }, Bytes(4)},
        {"sched_rr_get_interval", SYS_sched_rr_get_interval, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p}; }},
        {"sched_getattr", SYS_sched_getattr, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p, 56, 0}; }},
        {"sched_getaffinity", SYS_sched_getaffinity, 2, Size::kExact,
         [](uint64_t p) { return Words{0, 2048, p}; }},
        {"sched_setaffinity", SYS_sched_setaffinity, 2, Size::kAtMost,
         [](uint64_t p) { return Words{0, sizeof(cpu_set_t), p}; }, bytes_of(processors)},
        {"mincore", SYS_mincore, 2, Size::kExact,
         [](uint64_t p) { return Words{page, 3 * 4096 + 1, p}; }},
        {"mbind", SYS_mbind, 3, Size::kExact,
         [](uint64_t p) { return Words{page, 4096, 0, p, 64, 0}; }, Bytes(8)},
        {"set_mempolicy", SYS_set_mempolicy, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p, 64}; }, Bytes(8)},
        {"get_mempolicy", SYS_get_mempolicy, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 0, 0, 0, 0}; }},
        {"get_mempolicy_nodes", SYS_get_mempolicy, 1, Size::kExact,
         [](uint64_t p) { return Words{0, p, 1024, 0, 0}; }},
        {"move_pages", SYS_move_pages, 2, Size::kExact,
         [](uint64_t p) { return Words{0, 1, p, 0, word_of(&t.scratch), 0}; }, bytes_of(page)},
        {"move_pages_status", SYS_move_pages, 4, Size::kExact,
         [](uint64_t p) { return Words{0, 1, word_of(&page), 0, p, 0}; }},
    };
}

std::vector<Case> queue_and_system_cases() {
    static Things& t = things();
    const uint32_t perf_words[] = {1, 144, 0xffffffff};  // an event of software that is none
    return {
        {"mq_timedsend", SYS_mq_timedsend, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.queue), p, 8, 0, 0}; }, {},
         [] { mq_receive(t.queue, t.scratch.data(), 8, nullptr); }},
        {"mq_timedreceive", SYS_mq_timedreceive, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.queue), p, 20, 0, 0}; }, {},
         [] { t.send_to_queue(); }},
        {"mq_timedreceive_priority", SYS_mq_timedreceive, 3, Size::kExact,
         [](uint64_t p) { return Words{fd(t.queue), word_of(&t.scratch), 20, p, 0}; }, {},
         [] { t.send_to_queue(); }},
        {"mq_getsetattr", SYS_mq_getsetattr, 1, Size::kExact,
         [](uint64_t p) { return Words{fd(t.queue), p, 0}; },
         bytes_of(uint64_t{O_NONBLOCK}, std::array<uint64_t, 7>{})},
        {"mq_getsetattr_old", SYS_mq_getsetattr, 2, Size::kExact,
         [](uint64_t p) { return Words{fd(t.queue), 0, p}; }},
        {"mq_notify", SYS_mq_notify, 1, Size::kExact,
         [](uint64_t p) { return Words{kNone, p}; }, Bytes(64)},
        {"msgctl", SYS_msgctl, 2, Size::kAtMost,
         [](uint64_t p) { return Words{0, 3, p}; }},  // IPC_INFO
        {"semctl", SYS_semctl, 3, Size::kAtMost,
         [](uint64_t p) { return Words{0, 0, 3, p}; }},
        {"shmctl_info", SYS_shmctl, 2, Size::kAtMost,
         [](uint64_t p) { return Words{0, 3, p}; }},
        {"io_setup", SYS_io_setup, 1, Size::kExact, [](uint64_t p) { return Words{1, p}; },
         Bytes(8)},
        {"io_getevents_time", SYS_io_getevents, 4, Size::kExact,
         [](uint64_t p) { return Words{t.aio, 0, 1, word_of(&t.scratch), p}; }, Bytes(16)},
        {"io_submit", SYS_io_submit, 2, Size::kExact,
         [](uint64_t p) { return Words{t.aio, 1, p}; }, bytes_of(word_of(&t.scratch)),
         [] { t.scratch = {}; }},
        {"io_uring_setup", SYS_io_uring_setup, 1, Size::kExact,
         [](uint64_t p) { return Words{1, p}; }, Bytes(120)},
        {"uname", SYS_uname, 0, Size::kExact, [](uint64_t p) { return Words{p}; }},
        {"sysinfo", SYS_sysinfo, 0, Size::kExact, [](uint64_t p) { return Words{p}; }},
        {"getrandom", SYS_getrandom, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 100, 0}; }},
        {"perf_event_open", SYS_perf_event_open, 0, Size::kExactAsRead,
         [](uint64_t p) { return Words{p, 0, kNone, kNone, 0}; },
         bytes_of(perf_words, std::array<uint32_t, 33>{})},
        {"landlock_create_ruleset", SYS_landlock_create_ruleset, 0, Size::kExact,
         [](uint64_t p) { return Words{p, 8, 0}; }, bytes_of(uint64_t{1})},
        {"seccomp", SYS_seccomp, 2, Size::kAtMost,
         [](uint64_t p) { return Words{3, 0, p}; }},  // SECCOMP_GET_NOTIF_SIZES
        {"add_key", SYS_add_key, 2, Size::kExact,
         [](uint64_t p) { return Words{word_of("user"), word_of("hanare"), p, 7, 0}; }, Bytes(7)},
        {"lsm_list_modules", 461, 0, Size::kAtMost,
         [](uint64_t p) { return Words{p, word_of(&t.many), 0}; }, {},
         [] { t.many = 256; }},
    };
}

// clang-format on

}  // namespace

std::vector<Case> cases_of_the_system() {
    return joined({time_cases(), scheduling_cases(), queue_and_system_cases()});
}

}  // namespace hanare::intercept::argument_cases
