/* SPDX-License-Identifier: Apache-2.0
 *
 * shared DIRECTORY FILE: all tasks map FILE, which is of shared memory, twice, and write where the
 * others read; one unmaps it while the others go on.  Prints where the first mapping is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tasks.h"

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int task = own_task();
    const int tasks = task_count();
    const int file = open(argv[2], O_RDWR);
    CHECK(file >= 0);
    char *first = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *second = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *reads = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(first != MAP_FAILED && second != MAP_FAILED && reads != MAP_FAILED && own != MAP_FAILED);
    CHECK(second != first && reads != first && own != first);
    /* What the descriptor does not allow, it does not allow for what is mapped already either. */
    const int read_only = open(argv[2], O_RDONLY);
    CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, read_only, 0) == MAP_FAILED &&
          errno == EACCES);
    first[task * 64] = (char)(task + 1);
    own[4096 + task] = 99;
    wait_for_all(argv[1], ".written");
    for (int other = 0; other < tasks; other++) {
        CHECK(second[other * 64] == other + 1 && reads[other * 64] == other + 1);
    }
    CHECK(first[4096 + task] == 0);
    /* A child has a memory of its own, and this in common. */
    if (task == 0) {
        const pid_t child = fork();
        if (child == 0) {
            first[8192] = 7;
            char *again = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            const int is_right = again[8192] == 7 && munmap(again, BYTES) == 0;
            _exit(is_right && munmap(first, BYTES) == 0 ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0 && first[8192] == 7);
    }
    wait_for_all(argv[1], ".read");
    printf("%p\n", (void *)first);
    fflush(stdout);
    if (task == 1) CHECK(munmap(first, BYTES) == 0);
    wait_for_all(argv[1], ".unmapped");
    if (task != 1) CHECK(first[64] == 2);
    wait_for_all(argv[1], ".done");
    return 0;
}
