/* SPDX-License-Identifier: Apache-2.0
 *
 * stopping map FILE: maps shared memory and gives it back, again and again, until it is killed;
 * stopping fork: forks, with much memory.  Says "ready" when it has begun. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20, MUCH = 64 << 20 };

static void map_again(int file) {
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED || munmap(memory, BYTES) != 0) exit(1);
}

static void fork_again(void) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, NULL, 0) != child) exit(1);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const int file = argc > 2 ? open(argv[2], O_RDWR) : -1;
    memset(malloc(MUCH), 1, MUCH);
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (file >= 0) {
            map_again(file);
        } else {
            fork_again();
        }
    }
}
