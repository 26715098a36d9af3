/* SPDX-License-Identifier: Apache-2.0
 *
 * Children of a task: forked ones have a memory of their own; programs begun by them and by
 * posix_spawn; threads that map memory meanwhile.  Prints "right". */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool is_over;

static char *map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *keep_mapping(void *unused) {
    while (!atomic_load(&is_over)) {
        char *piece = map(1 << 20);
        piece[1 << 10] = 1;
        munmap(piece, 1 << 20);
    }
    return unused;
}

static int child(int number, char *memory) {
    memset(memory, number, 4096);
    for (int i = 0; i < 100; i++) {
        const size_t bytes = (size_t)1 << (12 + i % 12);
        char *piece = map(bytes);
        piece[0] = (char)i;
        munmap(piece, bytes);
    }
    return memory[4095] == number ? number : 255;
}

static int on_another_stack(void *number) { return *(int *)number + 1; }

/* Made by the kernel alone, whatever others have forked. */
static int clone_has_memory(void) {
    enum { BYTES = 1 << 16 };
    char *stack = map(BYTES);
    int number = 20;
    const pid_t process = clone(on_another_stack, stack + BYTES, SIGCHLD, &number);
    int status = 0;
    if (waitpid(process, &status, 0) != process) return 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 21;
}

static int advice_is_kept(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    volatile char *memory = map(4096);
    memory[0] = 1;
    if (madvise((void *)memory, 4096, MADV_DONTFORK) != 0) return 0;
    const pid_t process = fork();
    if (process == 0) _exit(memory[0]);
    int status = 0;
    return waitpid(process, &status, 0) == process && WIFSIGNALED(status);
}

int main(void) {
    char *memory = calloc(1, 4096);
    pthread_t thread;
    pthread_create(&thread, NULL, keep_mapping, NULL);
    for (int number = 1; number < 40; number++) {
        const pid_t process = fork();
        if (process == 0) _exit(child(number, memory));
        int status = 0;
        if (process < 0 || waitpid(process, &status, 0) != process) return puts("no child"), 1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != number) {
            return printf("child %d: status %#x\n", number, status), 1;
        }
        if (memory[0] != 0) return puts("a child has written to its parent"), 1;
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    if (!clone_has_memory()) return puts("a child on another stack has no memory"), 1;
    if (!advice_is_kept()) return puts("a child got memory that it should not"), 1;
    char line[100] = "";
    FILE *pipe = popen("echo begun", "r");
    if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL || pclose(pipe) != 0 ||
        strcmp(line, "begun\n") != 0) {
        return puts("no program"), 1;
    }
    if (system("exit 3") != 3 << 8) return puts("another status"), 1;
    puts("right");
    return 0;
}
