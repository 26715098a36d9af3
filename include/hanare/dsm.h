/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributed shared memory: the tasks of a job have one memory, at equal addresses, on one machine
 * or several, and use it with plain loads and stores.  Consistency is lazy release consistency with
 * several writers (Keleher, Cox, Zwaenepoel 1992; as TreadMarks in Midorikawa, Iizuka 1998, section
 * 2): what a task writes is seen by those that synchronise with it afterwards, by the functions
 * here. Programs must be free of data races; two tasks may write different bytes of a block at the
 * same time. compat/Tmk.h has TreadMarks' interface to the same; method and cost: docs/dsm.md.
 *
 * Conventions as in pool.h.  Any thread, but not signal handlers; what is collective is called by
 * one thread of each task, in the same order.  System calls that are given shared memory which is
 * not here, or may not be written, fail with EFAULT, between machines at any time: let them use
 * memory of the task's own.  A child of fork() has none of it: FORKED, and SIGSEGV on access.
 *
 * A task that ends or is killed makes these functions fail with PEER_LOST in all others, within
 * five seconds, where they have to ask or await somebody; the text (hanare_last_error) says which
 * one.  After an error in the middle of an unlock, a lock or a barrier all of these fail in this
 * task, which should end: others wait for it.  An access to memory that only it had ends the
 * program with a line.
 */
#ifndef HANARE_DSM_H
#define HANARE_DSM_H

#include <stddef.h>
#include <stdint.h>

#include "hanare/export.h"
#include "hanare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This task's part in the shared memory of its job.  Opaque. */
typedef struct hanare_dsm hanare_dsm;

typedef struct hanare_dsm_options {
    size_t struct_size;
    /* Addresses for shared memory; what was touched takes memory.  Default: the variable
     * HANARE_DSM_MEMORY, else 64 GiB. */
    uint64_t memory_bytes;
    int timeout_ms; /* of finding the other tasks; default 30 s */
    uint32_t flags; /* HANARE_DSM_*, or'ed */
} hanare_dsm_options;

/* Over sockets also between tasks of one machine, which else share their memory itself; as the
 * variable HANARE_DSM_SHARED=off. */
#define HANARE_DSM_NO_SHARED_MEMORY 0x1u

/* Collective.  Joins the job as hanare_comm_open does, which is BUSY in this process then, and the
 * other way round.  `options` may be NULL.  Errors: NOT_SUPPORTED (no userfaultfd for this user, a
 * kernel before 6.4), NO_MEMORY (no addresses that are free in all tasks), INVALID_ARGUMENT (sizes
 * differ between tasks), LIMIT (more than 253 tasks), TIMEOUT, PEER_LOST, SYSTEM. */
HANARE_API hanare_status hanare_dsm_start(const hanare_dsm_options *options, hanare_dsm **dsm);
/* Collective: waits for the others, and gives the memory back.  The handle is gone in any case. */
HANARE_API hanare_status hanare_dsm_finish(hanare_dsm *dsm);
/* What this process has started and not finished, for those that were not given it: programs of
 * compat/Tmk.h, libraries.  NOT_FOUND: nothing. */
HANARE_API hanare_status hanare_dsm_running(hanare_dsm **dsm);

HANARE_API hanare_status hanare_dsm_rank(const hanare_dsm *dsm, uint32_t *rank);
HANARE_API hanare_status hanare_dsm_size(const hanare_dsm *dsm, uint32_t *size);

/* Shared memory of zeros, aligned to 64 bytes and, from a page on, to pages.  Only the calling task
 * has the address, until it has told the others.  NO_MEMORY: beyond memory_bytes. */
HANARE_API hanare_status hanare_dsm_allocate(hanare_dsm *dsm, size_t bytes, void **address);
/* What any task has allocated; nobody uses it any more, and who allocates it again has synchronised
 * with those that did.  NOT_FOUND. */
HANARE_API hanare_status hanare_dsm_free(hanare_dsm *dsm, void *address);

/* Copies `bytes` from `address` to the same variable of all other tasks, which take no part; they
 * find it after the next barrier.  It is a variable of the program or one of its libraries, which
 * may lie at different addresses in the tasks: INVALID_ARGUMENT otherwise.  NOT_FOUND: another task
 * runs another program, or another build of it. */
HANARE_API hanare_status hanare_dsm_distribute(hanare_dsm *dsm, const void *address, size_t bytes);

/* Collective: what all tasks wrote before is seen by all afterwards.  `id` is any number, the same
 * in all: INVALID_ARGUMENT, in all tasks that find it different. */
HANARE_API hanare_status hanare_dsm_barrier(hanare_dsm *dsm, uint32_t id);
/* The same for some tasks, the caller's among them: ranks in any order, the same in all of them;
 * groups that have a task in common, and are at barriers at the same time, need different ids.  One
 * thread of each task at a time.  INVALID_ARGUMENT: a rank that is wrong or there twice, the
 * caller's is not there, or others are at `id` with another group of the same first task; LIMIT:
 * more than 4096 different ones. */
HANARE_API hanare_status hanare_dsm_barrier_group(hanare_dsm *dsm, uint32_t id,
                                                  const uint32_t *tasks, size_t count);

#define HANARE_DSM_LOCKS 65536
/* Numbers below HANARE_DSM_LOCKS.  One thread of one task has it, which sees what those that had it
 * before have written, then or earlier.  BUSY: this thread has it already. */
HANARE_API hanare_status hanare_dsm_lock(hanare_dsm *dsm, uint32_t lock);
/* INVALID_ARGUMENT: this thread does not have it. */
HANARE_API hanare_status hanare_dsm_unlock(hanare_dsm *dsm, uint32_t lock);

#define HANARE_DSM_CONDITIONS 65536
/* Condition variables are numbers below HANARE_DSM_CONDITIONS; each belongs to the lock by which it
 * is waited for as long as somebody does.  The calling thread has that lock: INVALID_ARGUMENT
 * otherwise, or if others wait for the condition with another lock.
 *
 * Gives the lock back, waits until another thread of any task has signalled, and has the lock
 * again; who signals before that lock is given back is not heard.  Nobody wakes by himself, but
 * what was signalled may not hold any more: others may have had the lock between.  After PEER_LOST
 * the thread does not have the lock. */
HANARE_API hanare_status hanare_dsm_wait(hanare_dsm *dsm, uint32_t lock, uint32_t condition);
/* Wakes who has waited longest, if anybody does, or all that wait; they go on as they get the lock,
 * and see what those that had it before have written. */
HANARE_API hanare_status hanare_dsm_signal(hanare_dsm *dsm, uint32_t lock, uint32_t condition);
HANARE_API hanare_status hanare_dsm_broadcast(hanare_dsm *dsm, uint32_t lock, uint32_t condition);

#define HANARE_DSM_SEMAPHORES 65536
#define HANARE_DSM_SEMAPHORE_MAX (1u << 30)
/* Semaphores are numbers below HANARE_DSM_SEMAPHORES; one task makes each, with a count, and tells
 * the others by synchronising with them.  BUSY: there is one; LIMIT: the count is above
 * HANARE_DSM_SEMAPHORE_MAX. */
HANARE_API hanare_status hanare_dsm_semaphore_make(hanare_dsm *dsm, uint32_t semaphore,
                                                   uint32_t count);
/* Its number may be used anew.  BUSY: somebody waits; NOT_FOUND: there is none. */
HANARE_API hanare_status hanare_dsm_semaphore_end(hanare_dsm *dsm, uint32_t semaphore);
/* Takes one off the count, once it is not 0; sees what those that posted before have written.
 * NOT_FOUND: there is none, or it has ended meanwhile. */
HANARE_API hanare_status hanare_dsm_semaphore_wait(hanare_dsm *dsm, uint32_t semaphore);
/* Adds one to the count.  Any thread, whether it has waited or not.  NOT_FOUND, LIMIT. */
HANARE_API hanare_status hanare_dsm_semaphore_post(hanare_dsm *dsm, uint32_t semaphore);

/* What this task has done since it began.  Messages are requests to other tasks, which each have an
 * answer, and their bytes are those of data that go there or come with it; those of barriers apart.
 */
typedef struct hanare_dsm_counters {
    size_t struct_size;
    uint64_t read_faults;
    uint64_t write_faults;
    uint64_t fetched_blocks;
    uint64_t invalidated_blocks;
    uint64_t twins;
    uint64_t diffs;
    uint64_t diff_bytes;
    uint64_t messages;
    uint64_t message_bytes;
    uint64_t barrier_messages;
    uint64_t barrier_bytes;
    uint64_t barriers;
    uint64_t locks;        /* acquired */
    uint64_t remote_locks; /* of these, from another task */
    uint64_t wait_ns;      /* in barriers */
} hanare_dsm_counters;

/* Set counters->struct_size before the call. */
HANARE_API hanare_status hanare_dsm_count(const hanare_dsm *dsm, hanare_dsm_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
