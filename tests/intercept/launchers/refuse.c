// SPDX-License-Identifier: Apache-2.0
//
// Starts a program under a seccomp filter, as containers have them, that refuses system calls with
// EPERM.
//
//   refuse NAME... -- PROGRAM ARGUMENT...
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kCallsMax = 8 };

static const struct {
    const char* name;
    unsigned number;
} calls[] = {
    {"io_setup", SYS_io_setup},
    {"io_uring_setup", SYS_io_uring_setup},
    {"process_madvise", SYS_process_madvise},
    {"userfaultfd", SYS_userfaultfd},
};

static int number_of(const char* name, unsigned* number) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) != 0) continue;
        *number = calls[i].number;
        return 1;
    }
    return 0;
}

int main(int count, char** arguments) {
    struct sock_filter filter[2 * kCallsMax + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    unsigned short length = 1;
    int at = 1;
    for (; at < count && strcmp(arguments[at], "--") != 0; at++) {
        unsigned number = 0;
        if (at > kCallsMax || !number_of(arguments[at], &number)) break;
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    if (at + 1 >= count || strcmp(arguments[at], "--") != 0) {
        fputs("usage: refuse NAME... -- PROGRAM ARGUMENT...\n", stderr);
        return 126;
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refuse");
        return 126;
    }
    execvp(arguments[at + 1], arguments + at + 1);
    perror(arguments[at + 1]);
    return 127;
}
