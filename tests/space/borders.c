/* SPDX-License-Identifier: Apache-2.0
 *
 * borders DIRECTORY FILE: what one of two tasks does to memory of the other, or to what they share,
 * by system calls that take an address.  Prints "right". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tasks.h"

enum { BYTES = 1 << 20 };

static char path[4096];
static const char *where_of(const char *directory, int task) {
    snprintf(path, sizeof path, "%s/%d.where", directory, task);
    return path;
}

/* Who may only read does not keep others from writing. */
static void map_by_two_descriptors(const char *directory, const char *name, int task) {
    const int file = open(name, task == 0 ? O_RDONLY : O_RDWR);
    if (task == 1) wait_for_all(directory, ".first");
    char *memory = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED);
    if (task == 0) wait_for_all(directory, ".first");
    const int error = mprotect(memory, BYTES, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
    CHECK(error == (task == 0 ? EACCES : 0));
    wait_for_all(directory, ".mapped");
}

/* What is sealed since another task has mapped it is not mapped for writing. */
static void map_what_is_sealed(const char *directory, int task) {
    snprintf(path, sizeof path, "%s/memory", directory);
    if (task == 0) {
        const int file = memfd_create("sealed", MFD_ALLOW_SEALING);
        CHECK(file >= 0 && ftruncate(file, BYTES) == 0);
        CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED);
        CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
        char link[64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), file);
        CHECK(symlink(link, path) == 0);
        wait_for_all(directory, ".sealed");
    } else {
        wait_for_all(directory, ".sealed");
        const int file = open(path, O_RDWR);
        CHECK(file >= 0);
        CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED &&
              errno == EPERM);
    }
    wait_for_all(directory, ".tried");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const int task = own_task();
    char *own = malloc(BYTES);
    memset(own, 7, BYTES);
    FILE *file = fopen(where_of(argv[1], task), "w");
    fprintf(file, "%d %p\n", (int)getpid(), (void *)own);
    fclose(file);
    wait_for_all(argv[1], ".told");
    int process = 0;
    char *theirs = NULL;
    file = fopen(where_of(argv[1], 1 - task), "r");
    CHECK(fscanf(file, "%d %p", &process, (void **)&theirs) == 2);
    fclose(file);

    void *const over = (void *)((unsigned long)theirs / 4096 * 4096 + 4096);
    CHECK(mmap(over, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              MAP_FAILED &&
          errno == ENOMEM);
    wait_for_all(argv[1], ".over");
    CHECK(own[5000] == 7);
    CHECK(syscall(SYS_clone3, 8, 64) == -1 && errno == EFAULT);
    map_by_two_descriptors(argv[1], argv[2], task);
    map_what_is_sealed(argv[1], task);

    /* A program that cannot be executed leaves the task what it was; one that can has none of its
     * memory. */
    char *const words[] = {"sleep", "1000", NULL};
    CHECK(execv("/nowhere", words) == -1 && errno == ENOENT);
    char got[16];
    const struct iovec to = {got, sizeof got};
    const struct iovec from = {theirs, sizeof got};
    wait_for_all(argv[1], ".failed");
    CHECK(process_vm_readv(process, &to, 1, &from, 1, 0) == sizeof got && got[3] == 7);
    wait_for_all(argv[1], ".read");
    if (task == 1) execv("/bin/sleep", words);
    snprintf(path, sizeof path, "/proc/%d/exe", process);
    for (char program[64] = "";; usleep(1000)) {
        const ssize_t bytes = readlink(path, program, sizeof program - 1);
        CHECK(bytes > 0);
        program[bytes] = '\0';
        if (strstr(program, "hanare-space-root") == NULL) break;
    }
    /* Or the kernel lets nobody look. */
    CHECK(process_vm_readv(process, &to, 1, &from, 1, 0) == -1 &&
          (errno == EFAULT || errno == EPERM));
    CHECK(kill(process, SIGTERM) == 0);
    puts("right");
    return 0;
}
