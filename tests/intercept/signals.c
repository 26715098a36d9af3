// SPDX-License-Identifier: Apache-2.0
//
// Signals: the program's own handlers for faults, on an alternate stack in far memory; alarms while
// calls wait with far buffers; jumps out of handlers; coroutines whose stacks are far memory.
#include "far.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>

static sigjmp_buf back;
static volatile int caught;
static volatile int alarms;

static void jump_back(int number, siginfo_t* info, void* context) {
    (void)info;
    (void)context;
    caught = number;
    siglongjmp(back, 1);
}

static void count_alarm(int number) {
    (void)number;
    ++alarms;
}

static void every_us(long us) {
    const struct itimerval timer = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void use_own_fault_handlers(void) {
    const stack_t stack = {.ss_sp = malloc(512 * KIB), .ss_size = 512 * KIB};
    CHECK(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_sigaction = jump_back, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    const int file = open("short", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && unlink("short") == 0);
    volatile char* mapped = (volatile char*)mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    CHECK(mapped != MAP_FAILED);
    for (int turn = 0; turn < 200; ++turn) {
        caught = 0;
        if (sigsetjmp(back, 1) == 0) (void)*(volatile char*)(uintptr_t)(turn % 2 * 64);
        CHECK(caught == SIGSEGV);
        caught = 0;
        if (sigsetjmp(back, 1) == 0) (void)mapped[PAGE];
        CHECK(caught == SIGBUS);
        if (turn % 50 == 0) sweep();
    }
}

struct sender {
    int file;
    unsigned char* at;
    size_t bytes;
};

static void* send_slowly(void* context) {
    const struct sender* sender = (const struct sender*)context;
    for (size_t done = 0; done < sender->bytes;) {
        const size_t part = sender->bytes - done < 30000 ? sender->bytes - done : 30000;
        const ssize_t sent = write(sender->file, sender->at + done, part);
        CHECK(sent > 0);
        done += (size_t)sent;
    }
    return NULL;
}

static void use_alarms(void) {
    struct sigaction action = {.sa_handler = count_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    unsigned char* from = (unsigned char*)far_memory(8 * MIB);
    unsigned char* to = (unsigned char*)far_memory(8 * MIB);
    fill(from, 8 * MIB, 3);
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct sender sender = {ends[1], from, 8 * MIB};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, send_slowly, &sender) == 0);
    every_us(300);
    for (size_t done = 0; done < 8 * MIB;) {
        const ssize_t got = read(ends[0], to + done, 8 * MIB - done);
        CHECK(got > 0);
        done += (size_t)got;
    }
    while (alarms < 20) sweep();
    every_us(0);
    CHECK(pthread_join(thread, NULL) == 0 && holds(to, 8 * MIB, 3));
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(munmap(from, 8 * MIB) == 0 && munmap(to, 8 * MIB) == 0);
}

// Left in the middle of the call; nothing may stay behind that keeps blocks from leaving.
static void use_jumps(void) {
    const struct sigaction action = {.sa_sigaction = jump_back, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    unsigned char* to = (unsigned char*)far_memory(40 * MIB);
    fill(to, 40 * MIB, 9);
    int ends[2];
    CHECK(pipe(ends) == 0);
    static uint64_t random = 4;
    static volatile int turn;
    for (turn = 0; turn < 3000 * work_factor(); ++turn) {
        const struct itimerval soon = {{0, 0}, {0, 150}};
        const size_t at = below(&random, 38 * MIB);
        if (sigsetjmp(back, 1) == 0) {
            CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
            CHECK(read(ends[0], to + at, turn % 2 == 0 ? 1000 : 200000) != 0);
        }
    }
    CHECK(holds(to, 40 * MIB, 9));
    sweep();
    CHECK(holds(to, 40 * MIB, 9));
    CHECK(munmap(to, 40 * MIB) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

#define COROUTINES 64
#define STACK_BYTES (64 * KIB)

static ucontext_t scheduler, coroutine[COROUTINES];
static uint64_t results[COROUTINES];

static uint64_t descend(int own, int depth, uint64_t value) {
    volatile uint64_t local[40];
    for (int i = 0; i < 40; ++i) local[i] = value + (uint64_t)i;
    if (depth == 0) {
        CHECK(swapcontext(&coroutine[own], &scheduler) == 0);
    } else {
        value = descend(own, depth - 1, mix(value, (uint64_t)depth));
    }
    for (int i = 0; i < 40; ++i) value = mix(value, local[i]);
    return value;
}

static void run_coroutine(int own) {
    for (int turn = 0; turn < 5; ++turn) {
        results[own] = descend(own, 10 + turn * 10, (uint64_t)own + results[own]);
    }
}

static uint64_t use_coroutines(void) {
    const struct sigaction action = {.sa_handler = count_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    every_us(500);
    for (int i = 0; i < COROUTINES; ++i) {
        CHECK(getcontext(&coroutine[i]) == 0);
        coroutine[i].uc_stack.ss_sp = malloc(STACK_BYTES);
        coroutine[i].uc_stack.ss_size = STACK_BYTES;
        coroutine[i].uc_link = &scheduler;
        makecontext(&coroutine[i], (void (*)(void))run_coroutine, 1, i);
    }
    for (int turn = 0; turn < 6; ++turn) {
        for (int i = 0; i < COROUTINES; ++i) {
            CHECK(swapcontext(&scheduler, &coroutine[i]) == 0);
        }
        sweep();
    }
    every_us(0);
    uint64_t digest = 0;
    for (int i = 0; i < COROUTINES; ++i) digest = mix(digest, results[i]);
    return digest;
}

static void* block_all(void* unused) {
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    for (int i = 0; i < 5; ++i) sweep();
    CHECK(sigprocmask(SIG_SETMASK, NULL, &all) == 0 && sigismember(&all, SIGUSR1) == 1);
    return unused;
}

int main(void) {
    prepare();
    use_own_fault_handlers();
    use_alarms();
    use_jumps();
    const uint64_t digest = use_coroutines();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, block_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    printf("signals %016llx\n", (unsigned long long)digest);
    return 0;
}
