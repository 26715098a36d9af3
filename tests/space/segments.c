/* SPDX-License-Identifier: Apache-2.0
 *
 * segments DIRECTORY SEGMENT: all tasks attach a segment of System V, twice, and write where the
 * others read; one detaches it, and one is killed, while the others go on.  Prints where the first
 * attachment is. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tasks.h"

static unsigned long attached(int segment) {
    struct shmid_ds status;
    CHECK(shmctl(segment, IPC_STAT, &status) == 0);
    return status.shm_nattch;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int task = own_task();
    const int tasks = task_count();
    const int segment = atoi(argv[2]);
    char *first = shmat(segment, NULL, 0);
    char *second = shmat(segment, NULL, 0);
    const char *reads = shmat(segment, NULL, SHM_RDONLY);
    CHECK(first != (void *)-1 && second != (void *)-1 && reads != (void *)-1);
    CHECK(first != second && first != reads && second != reads);
    first[task * 64] = (char)(task + 1);
    wait_for_all(argv[1], ".written");
    for (int other = 0; other < tasks; other++) {
        CHECK(second[other * 64] == other + 1 && reads[other * 64] == other + 1);
    }
    CHECK(attached(segment) == 3ul * tasks);
    wait_for_all(argv[1], ".counted");
    /* A child has them as well, and lets go of them by itself. */
    if (task == 0) {
        const pid_t child = fork();
        if (child == 0) {
            second[8192] = 7;
            _exit(shmdt(first) == 0 && reads[8192] == 7 ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0 && first[8192] == 7);
    }
    wait_for_all(argv[1], ".read");
    printf("%p\n", (void *)first);
    fflush(stdout);
    errno = 0;
    CHECK(shmdt(first + 4096) == -1 && errno == EINVAL);
    if (task == 1) {
        CHECK(shmdt(first) == 0 && attached(segment) == 3ul * tasks - 1);
        CHECK(shmdt(first) == -1 && errno == EINVAL);
    }
    wait_for_all(argv[1], ".detached");
    if (task != 1) CHECK(first[64] == 2);
    CHECK(second[64] == 2);
    wait_for_all(argv[1], ".looked");
    if (task == 2) {
        come_to(argv[1], ".seen");
        raise(SIGKILL);
    }
    /* What it had goes with it. */
    while (attached(segment) != 3ul * (tasks - 1) - 1) usleep(1000);
    CHECK(second[128] == 3);
    wait_for_all(argv[1], ".seen");
    return 0;
}
