/* SPDX-License-Identifier: Apache-2.0
 *
 * Spaces: ordinary programs as tasks in one address space (PVAS: Shimada, Hori, Ishikawa, 2015,
 * section 3.2, whose system calls pvas_create, pvas_spawn and pvas_destroy are the first functions
 * here).  A task is a process with a number, descriptors, signal handlers and a libc of its own;
 * its memory is its partition of one address space, so that a pointer of one task means the same in
 * all others.  Tasks are not protected from each other's wild stores (section 6.3.2).
 *
 * The functions of the first part are for who starts the tasks and is none of them; those of the
 * second part are for tasks, also of `hanare space run` and `hanare space exec`.
 *
 * Locks between tasks: a pthread mutex with PTHREAD_PROCESS_SHARED and PTHREAD_MUTEX_ROBUST, in
 * memory of any task that lives longer, is given on with EOWNERDEAD when its holder is killed.
 *
 * Conventions as in pool.h.  Any thread, but not signal handlers.
 */
#ifndef HANARE_SPACE_H
#define HANARE_SPACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hanare/export.h"
#include "hanare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- who starts tasks */

/* A space.  Opaque. */
typedef struct hanare_space hanare_space;

typedef struct hanare_space_options {
    size_t struct_size;
} hanare_space_options;

typedef struct hanare_space_program {
    size_t struct_size;
    /* As for execvp(3): looked for in PATH where it has no slash.  Position-independent (PIE or
     * static-PIE), x86-64, not set-user-ID; scripts are run by such an interpreter. */
    const char *path;
    /* Both end with NULL.  NULL: the path alone; the environment of this process. */
    const char *const *arguments;
    const char *const *environment;
} hanare_space_program;

/* An empty space: a process that holds its memory, and ends with this one, whatever happens.
 * `options` may be NULL.  NOT_SUPPORTED: that process's program is not installed (it needs a static
 * C library to be built); SYSTEM; TIMEOUT. */
HANARE_API hanare_status hanare_space_create(const hanare_space_options *options,
                                             hanare_space **space);

/* Begins a program as a task, which has what the calling thread would hand on by exec: descriptors
 * without FD_CLOEXEC (not more than it may open itself), working directory, masks, limits, process
 * group.  `process` is its number, for kill(2); its parent is the space, so that the number may be
 * another process's once the task has ended, waited for or not.  Each task that was not waited for
 * takes a descriptor here.
 * NOT_FOUND, PERMISSION: no such program; NOT_SUPPORTED, INVALID_ARGUMENT: one that can be no task;
 * LIMIT: 1024 tasks, or vm.max_map_count; NO_MEMORY; SYSTEM: no more descriptors, or it was killed
 * before it had begun; TIMEOUT: the space does not answer; PEER_LOST: it has been killed. */
HANARE_API hanare_status hanare_space_spawn(hanare_space *space,
                                            const hanare_space_program *program, pid_t *process);

/* Waits until a task has ended, at most `timeout_ms` (negative: as long as it takes); 0 for
 * `process` is any.  `ended` and `wait_status` (as of waitpid(2)) may be NULL.  The memory of a
 * task that has ended is given back, whether it is waited for or not; others that still use
 * addresses in it fault. NOT_FOUND: no such task, or it was waited for; TIMEOUT; PEER_LOST: the
 * space has been killed. */
HANARE_API hanare_status hanare_space_wait(hanare_space *space, pid_t process, int timeout_ms,
                                           pid_t *ended, int *wait_status);

/* Kills the tasks that have not ended, and gives the space back once they have.  No other thread is
 * in a function with it.  TIMEOUT: they have not within ten seconds, and will; the handle is gone.
 */
HANARE_API hanare_status hanare_space_destroy(hanare_space *space);

/* ---- tasks */

/* Of the functions here NOT_FOUND, too: this process is no task of a space, or a child of one
 * (FORKED where it has pools). */

/* Which of the space's tasks this is, 0 to 1023: a number that no other task has now. */
HANARE_API hanare_status hanare_space_self(uint32_t *task);

/* Publishes an address under a name of 1 to 47 bytes, until this task ends or withdraws it.  What
 * was written before is there for who has found it.  BUSY: there is one of that name; LIMIT: 4096.
 */
HANARE_API hanare_status hanare_space_publish(const char *name, const void *address);
HANARE_API hanare_status hanare_space_withdraw(const char *name);

/* The address that a task has published, or will have within `timeout_ms` (negative: as long as it
 * takes; 0: now).  Nothing keeps it there: a task that ends takes its memory with it.  TIMEOUT. */
HANARE_API hanare_status hanare_space_find(const char *name, int timeout_ms, void **address);

#ifdef __cplusplus
}
#endif

#endif
