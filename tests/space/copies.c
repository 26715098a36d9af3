/* SPDX-License-Identifier: Apache-2.0
 *
 * copies DIRECTORY: process_vm_readv and process_vm_writev with the next task and with a forked
 * child, in pieces that do not match, and where the kernel refuses.  Prints "right". */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tasks.h"

enum { BYTES = 1 << 20 };

static char path[4096];
static const char *name_of(const char *directory, int task, const char *end) {
    snprintf(path, sizeof path, "%s/%d%s", directory, task, end);
    return path;
}

static unsigned char value(int task, size_t i) {
    return (unsigned char)(i * 7 + (size_t)task * 31);
}

/* A child has a memory of its own: for it the kernel copies. */
static void copy_with_child(unsigned char *own, unsigned char *got, int task) {
    memset(got, 0, BYTES);
    const pid_t child = fork();
    if (child == 0) {
        memset(own, 1, BYTES);
        const struct iovec to = {got, BYTES};
        CHECK(process_vm_readv(getppid(), &to, 1, &(struct iovec){own, BYTES}, 1, 0) == BYTES);
        for (size_t i = 0; i < BYTES; i++) CHECK(got[i] == value(task, i));
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(got[1] == 0);
}

/* From here on they fail with EXDEV. */
static void refuse_kernels_copies(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const int task = own_task();
    const int tasks = task_count();
    unsigned char *own = malloc(BYTES);
    unsigned char *room = calloc(1, BYTES);
    for (size_t i = 0; i < BYTES; i++) own[i] = value(task, i);

    FILE *file = fopen(name_of(argv[1], task, ".where"), "w");
    fprintf(file, "%d %p %p\n", (int)getpid(), (void *)own, (void *)room);
    fclose(file);
    wait_for_all(argv[1], ".told");

    int process = 0;
    void *theirs = NULL;
    void *their_room = NULL;
    const int next = (task + 1) % tasks;
    file = fopen(name_of(argv[1], next, ".where"), "r");
    CHECK(fscanf(file, "%d %p %p", &process, &theirs, &their_room) == 3);
    fclose(file);

    unsigned char *got = malloc(BYTES);
    copy_with_child(own, got, task);
    refuse_kernels_copies();
    const struct iovec to[3] = {{got, 10}, {got + 10, 100000}, {got + 100010, BYTES - 100010}};
    const struct iovec from[2] = {{theirs, 5000}, {(char *)theirs + 5000, BYTES - 5000}};
    CHECK(process_vm_readv(process, to, 3, from, 2, 0) == BYTES);
    for (size_t i = 0; i < BYTES; i++) CHECK(got[i] == value(next, i));
    CHECK(process_vm_readv(process, to, 1, from, 2, 0) == 10);
    CHECK(process_vm_readv(process, to, 3, from, 1, 0) == 5000);
    CHECK(process_vm_readv(process, to, 0, from, 1, 0) == 0);
    /* Which is how the kernel is asked. */
    CHECK(process_vm_readv(process, to, 3, from, 2, 1) == -1 && errno == EXDEV);
    CHECK(process_vm_readv(getppid(), to, 3, from, 2, 0) == -1 && errno == EXDEV);
    const struct iovec out = {own, BYTES};
    const struct iovec in = {their_room, BYTES};
    CHECK(process_vm_writev(process, &out, 1, &in, 1, 0) == BYTES);
    wait_for_all(argv[1], ".written");
    for (size_t i = 0; i < BYTES; i++) CHECK(room[i] == value((task + tasks - 1) % tasks, i));

    wait_for_all(argv[1], ".done");
    puts("right");
    return 0;
}
