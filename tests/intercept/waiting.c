// SPDX-License-Identifier: Apache-2.0
//
// System calls that wait: for descriptors, time, signals, children, messages and futex words, which
// all tell their result in far memory.
#include "far.h"

#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#define PIPES 40

static uint64_t random_state = 12;
static uint64_t digest;
static int ends[PIPES][2];

static void wait_for_descriptors(void) {
    for (int i = 0; i < PIPES; ++i) CHECK(pipe(ends[i]) == 0);
    const int epoll = epoll_create1(0);
    for (int i = 0; i < PIPES; ++i) {
        struct epoll_event* event = (struct epoll_event*)cold(sizeof *event);
        *event = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data = {.u64 = (uint64_t)i}};
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[i][0], event) == 0);
    }
    for (int turn = 0; turn < 60; ++turn) {
        const int ready = (int)below(&random_state, PIPES);
        CHECK(write(ends[ready][1], "x", 1) == 1);

        struct pollfd* poll_set = (struct pollfd*)cold(PIPES * sizeof *poll_set);
        for (int i = 0; i < PIPES; ++i) poll_set[i] = (struct pollfd){ends[i][0], POLLIN, 0};
        CHECK(poll(poll_set, PIPES, -1) == 1);
        for (int i = 0; i < PIPES; ++i) CHECK((poll_set[i].revents == POLLIN) == (i == ready));

        fd_set* set = (fd_set*)cold(sizeof *set);
        FD_ZERO(set);
        int most = 0;
        for (int i = 0; i < PIPES; ++i) {
            FD_SET(ends[i][0], set);
            if (ends[i][0] > most) most = ends[i][0];
        }
        struct timeval* limit = (struct timeval*)cold(sizeof *limit);
        *limit = (struct timeval){30, 0};
        CHECK(select(most + 1, set, NULL, NULL, limit) == 1 && FD_ISSET(ends[ready][0], set));
        sigset_t* mask = (sigset_t*)cold(sizeof *mask);
        sigfillset(mask);
        struct timespec* time = (struct timespec*)cold(sizeof *time);
        *time = (struct timespec){30, 0};
        CHECK(pselect(most + 1, set, NULL, NULL, time, mask) == 1);
        CHECK(FD_ISSET(ends[ready][0], set));
        CHECK(ppoll(poll_set, PIPES, time, mask) == 1);

        // An edge is told once.
        struct epoll_event* events = (struct epoll_event*)cold(64 * sizeof *events);
        CHECK(epoll_pwait(epoll, events, 64, 30000, mask) == 1);
        CHECK(events[0].data.u64 == (uint64_t)ready);
        CHECK(epoll_wait(epoll, events, 64, 0) == 0);
        CHECK(read(ends[ready][0], cold(1), 1) == 1);
        digest = mix(digest, (uint64_t)ready);
    }
    CHECK(close(epoll) == 0);
    for (int i = 0; i < PIPES; ++i) CHECK(close(ends[i][0]) == 0 && close(ends[i][1]) == 0);
}

static volatile int alarms;
static void count_alarm(int number) {
    (void)number;
    ++alarms;
}

static void wait_for_time(void) {
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const int counter = eventfd(0, 0);
    for (int turn = 0; turn < 40; ++turn) {
        struct itimerspec* spec = (struct itimerspec*)cold(sizeof *spec);
        *spec = (struct itimerspec){{0, 0}, {0, 200000}};
        struct itimerspec* old = (struct itimerspec*)cold(sizeof *old);
        CHECK(timerfd_settime(timer, 0, spec, old) == 0 && old->it_value.tv_sec == 0);
        uint64_t* expired = (uint64_t*)cold(sizeof *expired);
        CHECK(read(timer, expired, sizeof *expired) == sizeof *expired && *expired == 1);
        uint64_t* word = (uint64_t*)cold(sizeof *word);
        *word = 7 + (uint64_t)turn;
        CHECK(write(counter, word, sizeof *word) == sizeof *word);
        uint64_t* told = (uint64_t*)cold(sizeof *told);
        CHECK(read(counter, told, sizeof *told) == sizeof *told && *told == 7 + (uint64_t)turn);
        struct timespec* before = (struct timespec*)cold(sizeof *before);
        struct timespec* after = (struct timespec*)cold(sizeof *after);
        CHECK(clock_gettime(CLOCK_MONOTONIC, before) == 0);
        struct timespec* pause = (struct timespec*)cold(sizeof *pause);
        *pause = (struct timespec){0, 100000};
        CHECK(nanosleep(pause, NULL) == 0);
        CHECK(clock_gettime(CLOCK_MONOTONIC, after) == 0);
        CHECK((after->tv_sec - before->tv_sec) * 1000000000L + after->tv_nsec - before->tv_nsec >=
              100000);
        CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, after) == 0);
    }
    CHECK(close(timer) == 0 && close(counter) == 0);
    // An interrupted sleep tells what is left.
    const struct sigaction action = {.sa_handler = count_alarm};
    CHECK(sigaction(SIGALRM, &action, (struct sigaction*)cold(sizeof action)) == 0);
    for (int turn = 0; turn < 20; ++turn) {
        struct itimerval* soon = (struct itimerval*)cold(sizeof *soon);
        *soon = (struct itimerval){{0, 2000}, {0, 2000}};  // the first may come before
        const struct itimerval none = {{0, 0}, {0, 0}};
        struct timespec* pause = (struct timespec*)cold(sizeof *pause);
        struct timespec* rest = (struct timespec*)cold(sizeof *rest);
        *pause = (struct timespec){50, 0};
        rest->tv_sec = -1;
        CHECK(setitimer(ITIMER_REAL, soon, NULL) == 0);
        CHECK(nanosleep(pause, rest) == -1 && errno == EINTR);
        CHECK(rest->tv_sec >= 0 && rest->tv_sec < 50);
        CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
    }
    CHECK(alarms >= 20);
}

static void wait_for_signals(void) {
    sigset_t* set = (sigset_t*)cold(sizeof *set);
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGRTMIN + 1);
    CHECK(pthread_sigmask(SIG_BLOCK, set, NULL) == 0);
    const int file = signalfd(-1, set, 0);
    for (int turn = 0; turn < 100; ++turn) {
        union sigval value;
        value.sival_int = turn;
        CHECK(sigqueue(getpid(), SIGRTMIN + 1, value) == 0);
        if (turn % 2 == 0) {
            struct signalfd_siginfo* info = (struct signalfd_siginfo*)cold(sizeof *info);
            CHECK(read(file, info, sizeof *info) == sizeof *info);
            CHECK(info->ssi_int == turn);
        } else {
            siginfo_t* info = (siginfo_t*)cold(sizeof *info);
            struct timespec* limit = (struct timespec*)cold(sizeof *limit);
            *limit = (struct timespec){30, 0};
            CHECK(sigtimedwait(set, info, limit) == SIGRTMIN + 1);
            CHECK(info->si_value.sival_int == turn);
        }
        sigset_t* pending = (sigset_t*)cold(sizeof *pending);
        CHECK(sigpending(pending) == 0 && !sigismember(pending, SIGRTMIN + 1));
    }
    CHECK(close(file) == 0);
}

static void wait_for_children(void) {
    for (int turn = 0; turn < 30; ++turn) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(turn);
        int* status = (int*)cold(sizeof *status);
        struct rusage* usage = (struct rusage*)cold(sizeof *usage);
        *status = -1;
        memset(usage, 0xff, sizeof *usage);
        if (turn % 2 == 0) {
            CHECK(wait4(child, status, 0, usage) == child);
            CHECK(WIFEXITED(*status) && WEXITSTATUS(*status) == turn);
            CHECK(usage->ru_utime.tv_usec >= 0 && usage->ru_utime.tv_sec >= 0);
        } else {
            siginfo_t* info = (siginfo_t*)cold(sizeof *info);
            CHECK(waitid(P_PID, (id_t)child, info, WEXITED) == 0);
            CHECK(info->si_pid == child && info->si_status == turn);
        }
        struct rlimit* limit = (struct rlimit*)cold(sizeof *limit);
        CHECK(getrlimit(RLIMIT_NOFILE, limit) == 0 && limit->rlim_cur > 0);
    }
    CHECK(waitpid(-1, (int*)cold(sizeof(int)), 0) == -1 && errno == ECHILD);
}

struct mail {
    long type;
    unsigned char text[4000];
};

static void wait_for_mail(void) {
    const int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (queue == -1) return;  // a system without
    for (int turn = 0; turn < 100; ++turn) {
        const size_t bytes = below(&random_state, 4000);
        struct mail* sent = (struct mail*)cold(sizeof *sent);
        struct mail* got = (struct mail*)cold(sizeof *got);
        sent->type = 1 + turn;
        fill(sent->text, bytes, (uint64_t)turn);
        CHECK(msgsnd(queue, sent, bytes, 0) == 0);
        CHECK(msgrcv(queue, got, sizeof got->text, 0, 0) == (ssize_t)bytes);
        CHECK(got->type == 1 + turn && holds(got->text, bytes, (uint64_t)turn));
    }
    CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
}

// Each in a block of its own.
struct shared {
    pthread_mutex_t* mutex;
    pthread_cond_t* changed;
    sem_t* tokens;
    pthread_barrier_t* barrier;
    uint64_t* turn;
    uint64_t* sum;
};

#define THREADS 4
#define TURNS 150

static struct shared shared;

static void* take_turns(void* context) {
    const uint64_t own = (uint64_t)(uintptr_t)context;
    pthread_barrier_wait(shared.barrier);
    for (int i = 0; i < TURNS; ++i) {
        CHECK(pthread_mutex_lock(shared.mutex) == 0);
        while (*shared.turn % THREADS != own) {
            if (i % 2 == 0) {
                CHECK(pthread_cond_wait(shared.changed, shared.mutex) == 0);
            } else {
                struct timespec limit;
                CHECK(clock_gettime(CLOCK_REALTIME, &limit) == 0);
                limit.tv_sec += 100;
                CHECK(pthread_cond_timedwait(shared.changed, shared.mutex, &limit) == 0);
            }
        }
        ++*shared.turn;
        *shared.sum = mix(*shared.sum, own);
        CHECK(pthread_cond_broadcast(shared.changed) == 0);
        CHECK(pthread_mutex_unlock(shared.mutex) == 0);
        CHECK(sem_wait(shared.tokens) == 0);
        CHECK(sem_post(shared.tokens) == 0);
    }
    pthread_barrier_wait(shared.barrier);
    return NULL;
}

static void wait_for_threads(void) {
    shared.mutex = (pthread_mutex_t*)cold(sizeof *shared.mutex);
    shared.changed = (pthread_cond_t*)cold(sizeof *shared.changed);
    shared.tokens = (sem_t*)cold(sizeof *shared.tokens);
    shared.barrier = (pthread_barrier_t*)cold(sizeof *shared.barrier);
    shared.turn = (uint64_t*)cold(8);
    shared.sum = (uint64_t*)cold(8);
    *shared.turn = *shared.sum = 0;
    CHECK(pthread_mutex_init(shared.mutex, NULL) == 0);
    CHECK(pthread_cond_init(shared.changed, NULL) == 0);
    CHECK(sem_init(shared.tokens, 0, 2) == 0);
    CHECK(pthread_barrier_init(shared.barrier, NULL, THREADS) == 0);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; ++i) {
        CHECK(pthread_create(&threads[i], NULL, take_turns, (void*)i) == 0);
    }
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(*shared.turn == THREADS * TURNS);
    digest = mix(digest, *shared.sum);
}

int main(void) {
    prepare();
    start_pressure();
    wait_for_descriptors();
    wait_for_time();
    wait_for_signals();
    wait_for_mail();
    wait_for_threads();
    wait_for_children();
    stop_pressure();
    printf("waiting %016llx\n", (unsigned long long)digest);
    return 0;
}
