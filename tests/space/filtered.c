/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter of system calls is a task's own: task 0 has one, by which getppid fails, and the others
 * have none. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tasks.h"

static void refuse_getppid(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

int main(int count, char **words) {
    CHECK(count == 2);
    if (own_task() == 0) refuse_getppid();
    wait_for_all(words[1], "filtered");
    const long parent = syscall(SYS_getppid);
    CHECK(own_task() == 0 ? parent == -1 && errno == EPERM : parent > 0);
    for (int i = 0; i < 100; i++) {
        char *const memory = malloc(1 << 20);
        memset(memory, i, 1 << 20);
        free(memory);
    }
    puts("right");
    return 0;
}
