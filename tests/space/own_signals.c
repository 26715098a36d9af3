/* SPDX-License-Identifier: Apache-2.0
 *
 * Own handlers: a wild access on an alternate stack, left by siglongjmp; a timer.  Prints
 * "right". */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t ticks;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}
static const char *map_and_unmap(void) {
    char *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return "no memory";
    if (piece[0] != 0) return "memory of somebody else";
    piece[0] = 1;
    return munmap(piece, 1 << 20) == 0 ? NULL : "munmap fails";
}
static void on_tick(int number) {
    (void)number;
    if (map_and_unmap() == NULL) ticks++;
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    action = (struct sigaction){.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile int faults = 0;
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(back, 1) == 0) {
            closed[i] = 1;
        } else {
            faults++;
        }
    }
    const struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, NULL);
    /* Handlers, which map memory too, come in the middle of mapping and unmapping. */
    while (ticks < 50) {
        const char *piece = map_and_unmap();
        if (piece != NULL) return puts(piece), 1;
    }
    if (faults != 100) return puts("faults are missing"), 1;
    puts("right");
    return 0;
}
