/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory-based communication between the tasks of a job (MBCF: Matsumoto et al., 2001: remote
 * memory operations of any size, fetch-ops, memory-based FIFO, hierarchical multicast with combined
 * acknowledgements).  A task exposes memory; whoever has a capability for it puts, gets and changes
 * words there, without the other task's program taking part.
 *
 * A place is (task, capability, offset): the rank of a task of the job, a capability for one of its
 * regions, and an offset in bytes in that region.  Capabilities are plain bytes that may be stored
 * and sent on.
 *
 * Success means: applied at the target, and the target has said so.  Operations of this task on one
 * other take effect in the order in which they were begun; those on different tasks have no order.
 * Operations of 4 or 8 bytes on words that are aligned read and write them as a whole.  After
 * TIMEOUT and PEER_LOST, and after BAD_KEY while the region is being revoked, an operation may have
 * been applied, or will be; of a put or get of more than 256 KiB parts may have been, whatever the
 * failure; so they may of a put of more than 1 KiB.
 *
 * A child of fork() keeps the connections of its parent open until it ends or calls exec: until
 * then others see TIMEOUT, not PEER_LOST, when the parent is gone.
 *
 * Memory that is named by an operation, or exposed, is ordinary memory; far memory (hanare_alloc)
 * has to be pinned for as long.  The functions of this header are not for signal handlers.
 *
 * Conventions as in pool.h.  Time limits are in milliseconds, negative for none.  Errors of all
 * functions that are given a communicator: INVALID_ARGUMENT; FORKED in a child of fork(), which is
 * no task of its parent's job and for which nothing of the parent's is ended.  Errors of
 * operations: BAD_KEY       the capability does not hold: made up, revoked, or of another task
 *   PERMISSION    it holds, and does not include the right
 *   OUT_OF_RANGE  beyond the end of the region
 *   PEER_LOST     the task is gone, or has closed; operations on other tasks are not concerned
 *   TIMEOUT       the time limit has passed
 *   SYSTEM, LIMIT no connection could be made, for want of descriptors; or who has started the job
 *                 cannot be asked any more where a task is
 */
#ifndef HANARE_COMM_H
#define HANARE_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "hanare/export.h"
#include "hanare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tasks */

/* A task's side of the communication in its job.  Opaque. */
typedef struct hanare_comm hanare_comm;

typedef struct hanare_comm_options {
    size_t struct_size;
    /* Of finding the job and telling the others how this task is reached; default 30 s. */
    int timeout_ms;
    /* How long who waits, and the thread that serves the others, look for something before they
     * sleep, in microseconds.  Faster where every task has two processors to itself, slow where
     * not. Default: 50 where the machine has two processors for each task of the job, else 0. */
    uint32_t spin_us;
    /* HANARE_COMM_* flags, or'ed. */
    uint32_t flags;
} hanare_comm_options;

/* Never look, always sleep. */
#define HANARE_COMM_NO_SPIN 0x1u
/* Over sockets also between tasks of one machine, which else have each other's memory. */
#define HANARE_COMM_NO_SHARED_MEMORY 0x2u
/* By UCX (libucp.so.0) to memory of hanare_comm_allocate that is exposed as a whole, between tasks
 * that both have this flag, where UCX puts, gets and does fetch-ops without the other task's part
 * in it: its shared memory, and, untried, network adapters with RDMA.  All else goes as without.
 * Tasks of this machine without the flag do not load and store in such memory themselves.  By what
 * another task is reached is decided when it is first used, in half of that operation's time limit
 * and two seconds at most.
 * The variable HANARE_COMM_UCX=1 does the same without a change of the program; UCX_TLS chooses
 * UCX's transports, on each machine for its own tasks.  UCX looks at no keys and encrypts nothing:
 * who can connect to a task reaches all such memory of it.  NOT_SUPPORTED, and the job is not
 * joined: UCX is not here, has no memory that others reach, or this library was built without. */
#define HANARE_COMM_UCX 0x4u

/* Joins the job that the environment speaks of: `hanare launch`, PMIx, PMI-1, Slurm; without any of
 * these this task is alone.  `options` may be NULL.  Once in a process: BUSY afterwards, also after
 * hanare_comm_close.  Does not wait for the other tasks.  Starts two threads, which serve the
 * others while this task computes; with UCX a third.  Errors: TIMEOUT, PEER_LOST (who started the
 * job does not answer), SYSTEM, NOT_SUPPORTED. */
HANARE_API hanare_status hanare_comm_open(const hanare_comm_options *options, hanare_comm **comm);

/* Ends it: what is exposed is so no more, and this task is lost to the others; a barrier before
 * lets them finish.  Windows end, too, and what hanare_comm_allocate gave.  No other thread may use
 * it any more.  BUSY, and nothing is ended, while there are operations that were not freed. */
HANARE_API hanare_status hanare_comm_close(hanare_comm *comm);

/* Tasks have ranks from 0 to size - 1. */
HANARE_API hanare_status hanare_comm_rank(hanare_comm *comm, uint32_t *rank);
HANARE_API hanare_status hanare_comm_size(hanare_comm *comm, uint32_t *size);

/* ---- memory */

/* Memory that is good for being exposed: zero-filled, aligned to pages.  Where all of it is exposed
 * as one region, tasks of this user on this machine load and store there themselves; it does not
 * matter then whether this task is stopped.  A child of fork() shares it, until a region of it is
 * revoked or concealed.  NO_MEMORY. */
HANARE_API hanare_status hanare_comm_allocate(hanare_comm *comm, size_t bytes, void **address);
/* What hanare_comm_allocate gave.  NOT_FOUND; BUSY: some of it is exposed. */
HANARE_API hanare_status hanare_comm_free(hanare_comm *comm, void *address);

/* What a capability allows, or'ed. */
#define HANARE_RIGHT_READ 0x1u
#define HANARE_RIGHT_WRITE 0x2u
#define HANARE_RIGHT_FETCH_OP 0x4u
#define HANARE_RIGHT_PUSH 0x8u
#define HANARE_RIGHT_POP 0x10u
#define HANARE_RIGHT_SIGNAL 0x20u /* of hanare_comm_signal_capability only */

typedef struct hanare_capability {
    unsigned char bytes[32];
} hanare_capability;

/* Exposes memory of this task, with all rights that capabilities for it may have.  It must stay
 * valid until it is concealed.  LIMIT: there are 1024 regions already, some of them the library's.
 */
HANARE_API hanare_status hanare_comm_expose(hanare_comm *comm, void *address, size_t bytes,
                                            uint32_t rights, uint32_t *region);
/* A capability with some or all of the region's rights.  NOT_FOUND. */
HANARE_API hanare_status hanare_comm_capability(hanare_comm *comm, uint32_t region, uint32_t rights,
                                                hanare_capability *capability);
/* No capability that was made before holds when this returns.  What this task itself writes to
 * memory of hanare_comm_allocate meanwhile may be lost, and what others do to it by another region
 * of the same memory.  After another error than NOT_FOUND the region is concealed. */
HANARE_API hanare_status hanare_comm_revoke(hanare_comm *comm, uint32_t region);
/* Nobody touches the memory for this region when this returns.  If it is UCX's, what this task
 * itself writes meanwhile may be lost, and what others do to it by another region of the same
 * memory; and there has to be room for a copy.  NOT_FOUND; BUSY: of a window.  After any other
 * error it is concealed, but what had begun by UCX may still be applied. */
HANARE_API hanare_status hanare_comm_conceal(hanare_comm *comm, uint32_t region);

/* ---- operations: begin, and wait until it is done
 *
 * The first operation on a task connects to it, and waits for it to open its communicator. */

HANARE_API hanare_status hanare_comm_put(hanare_comm *comm, uint32_t task,
                                         const hanare_capability *capability, uint64_t offset,
                                         const void *source, size_t bytes, int timeout_ms);
/* The destination is unspecified if it fails. */
HANARE_API hanare_status hanare_comm_get(hanare_comm *comm, uint32_t task,
                                         const hanare_capability *capability, uint64_t offset,
                                         void *destination, size_t bytes, int timeout_ms);

/* What becomes of the word w. */
typedef enum hanare_fetch_op {
    HANARE_FETCH_ADD = 1,             /* w + operand */
    HANARE_FETCH_AND = 2,             /* w & operand */
    HANARE_FETCH_OR = 3,              /* w | operand */
    HANARE_FETCH_XOR = 4,             /* w ^ operand */
    HANARE_FETCH_SWAP = 5,            /* operand */
    HANARE_FETCH_COMPARE_SWAP = 6,    /* operand if w == compare, else w */
    HANARE_FETCH_OP_INT_ = 0x7fffffff /* not an operation: makes every int a value of the type */
} hanare_fetch_op;

/* On a word of 4 or 8 bytes (`width`), aligned in the target's memory: INVALID_ARGUMENT.  `before`,
 * which may be NULL, is what the word was.  Wakes nobody: hanare_comm_put_notify does, also with a
 * put of nothing. */
HANARE_API hanare_status hanare_comm_fetch_op(hanare_comm *comm, uint32_t task,
                                              const hanare_capability *capability, uint64_t offset,
                                              hanare_fetch_op op, uint32_t width, uint64_t operand,
                                              uint64_t compare, int timeout_ms, uint64_t *before);

/* Puts, and then adds `operand` to the 8-byte word at `flag_offset` of the same region, which wakes
 * who waits for it (hanare_comm_wait_word) and sees all that was put.  The flag changes only if the
 * put was applied.  Fastest where the flag lies behind what is put. */
HANARE_API hanare_status hanare_comm_put_notify(hanare_comm *comm, uint32_t task,
                                                const hanare_capability *capability,
                                                uint64_t offset, const void *source, size_t bytes,
                                                uint64_t flag_offset, uint64_t operand,
                                                int timeout_ms);

typedef enum hanare_wait_until {
    HANARE_WAIT_NOT_EQUAL = 1,
    HANARE_WAIT_EQUAL = 2,
    HANARE_WAIT_AT_LEAST = 3,
    HANARE_WAIT_UNTIL_INT_ = 0x7fffffff /* not a condition: makes every int a value of the type */
} hanare_wait_until;

/* Waits until a word of this task's memory, of 4 or 8 bytes and aligned, is as wanted; `seen`,
 * which may be NULL, is what it was then.  hanare_comm_put_notify wakes at once; what else changes
 * the word is noticed within some milliseconds.  TIMEOUT. */
HANARE_API hanare_status hanare_comm_wait_word(hanare_comm *comm, const void *word, uint32_t width,
                                               hanare_wait_until until, uint64_t value,
                                               int timeout_ms, uint64_t *seen);

/* ---- queues: messages of up to 2048 bytes, of many tasks, in an exposed region */

#define HANARE_QUEUE_MESSAGE_BYTES_MAX 2048

/* Makes an empty queue of memory that is aligned to 64 bytes; a header takes 256, each message its
 * size, rounded up to 8, and 8.  Expose all of it, and nothing else, as one region. */
HANARE_API hanare_status hanare_queue_format(void *memory, size_t bytes);

/* Full and empty are answers, nobody waits for them.  FULL; OUT_OF_RANGE: larger than the queue;
 * BUSY: somebody who uses the queue does not run at the moment; CORRUPT: it is no queue. */
HANARE_API hanare_status hanare_comm_push(hanare_comm *comm, uint32_t task,
                                          const hanare_capability *queue, const void *message,
                                          size_t bytes, int timeout_ms);
/* The oldest message; also of a queue of this task's own.  EMPTY; OUT_OF_RANGE: it has more bytes
 * than there is room for, and stays; BUSY, CORRUPT. */
HANARE_API hanare_status hanare_comm_pop(hanare_comm *comm, uint32_t task,
                                         const hanare_capability *queue, void *room,
                                         size_t room_bytes, int timeout_ms, size_t *bytes);

/* ---- signals: a handler of the other task runs, also while it computes
 *
 * A task has one queue of signals.  Those that come are handled in the thread that has asked to be
 * interrupted, whatever it does; else when the task polls or waits for them. */

#define HANARE_SIGNAL_HANDLERS 64
#define HANARE_SIGNAL_BYTES_MAX 2040

/* `arguments` have `bytes` bytes and are the handler's until it returns.  In a thread that is
 * interrupted it runs as the handler of a POSIX signal: it may call what is async-signal-safe, and
 * no function of this library. */
typedef void (*hanare_signal_handler)(void *context, const void *arguments, size_t bytes);

/* Numbers 0 to HANARE_SIGNAL_HANDLERS - 1; NULL: such signals are dropped, as at first. */
HANARE_API hanare_status hanare_comm_set_signal_handler(hanare_comm *comm, uint32_t number,
                                                        hanare_signal_handler handler,
                                                        void *context);
/* With it others signal to this task, and do nothing else. */
HANARE_API hanare_status hanare_comm_signal_capability(hanare_comm *comm,
                                                       hanare_capability *capability);
/* From now on signals interrupt the calling thread (1) or none (0), as at first.  Before that
 * thread ends, and before exec, none must be interrupted.  Uses the POSIX signal number 60.  BUSY:
 * the program has a handler for that. */
HANARE_API hanare_status hanare_comm_interrupt_this_thread(hanare_comm *comm, int enabled);
/* Runs the handlers of all that has come, in the calling thread; costs little where nothing has.
 * `handled`, which may be NULL, is how many. */
HANARE_API hanare_status hanare_comm_poll_signals(hanare_comm *comm, uint32_t *handled);
/* Sleeps until something has come since signals were polled or waited for last, and its handlers
 * have run; one thread at a time, the one that is interrupted if there is one.  TIMEOUT. */
HANARE_API hanare_status hanare_comm_wait_signal(hanare_comm *comm, int timeout_ms);

/* Success means: it is in the task's queue, and the task was told; not that the handler has run.
 * Signals of one task to another are handled in their order.  FULL: too many were not handled yet;
 * OUT_OF_RANGE: more than HANARE_SIGNAL_BYTES_MAX bytes; BUSY: somebody who uses the queue does not
 * run at the moment. */
HANARE_API hanare_status hanare_comm_signal(hanare_comm *comm, uint32_t task,
                                            const hanare_capability *capability, uint32_t handler,
                                            const void *arguments, size_t bytes, int timeout_ms);

/* ---- operations that are waited for later
 *
 * What they name must stay as it is until they are complete.  Their failures are found by test,
 * wait and callback; posting fails only for what no task could be asked. */

typedef struct hanare_comm_operation hanare_comm_operation;

/* Called once for an operation, when it is complete, by the thread that finds it so, in
 * hanare_comm_test, _wait, _flush, _flush_all or _progress, never by another one.  May call
 * everything here, also free the operation; then no other thread may wait for it. */
typedef void (*hanare_comm_callback)(hanare_comm_operation *operation, hanare_status status,
                                     void *context);

typedef struct hanare_comm_post_options {
    size_t struct_size;
    /* May be NULL. */
    hanare_comm_callback callback;
    void *context;
} hanare_comm_post_options;

/* `options` may be NULL.  The time limit is the operation's, from now on; also for connecting, for
 * which these wait. */
HANARE_API hanare_status hanare_comm_post_put(hanare_comm *comm, uint32_t task,
                                              const hanare_capability *capability, uint64_t offset,
                                              const void *source, size_t bytes, int timeout_ms,
                                              const hanare_comm_post_options *options,
                                              hanare_comm_operation **operation);
HANARE_API hanare_status hanare_comm_post_get(hanare_comm *comm, uint32_t task,
                                              const hanare_capability *capability, uint64_t offset,
                                              void *destination, size_t bytes, int timeout_ms,
                                              const hanare_comm_post_options *options,
                                              hanare_comm_operation **operation);
HANARE_API hanare_status hanare_comm_post_fetch_op(
    hanare_comm *comm, uint32_t task, const hanare_capability *capability, uint64_t offset,
    hanare_fetch_op op, uint32_t width, uint64_t operand, uint64_t compare, int timeout_ms,
    const hanare_comm_post_options *options, hanare_comm_operation **operation);
HANARE_API hanare_status hanare_comm_post_push(hanare_comm *comm, uint32_t task,
                                               const hanare_capability *queue, const void *message,
                                               size_t bytes, int timeout_ms,
                                               const hanare_comm_post_options *options,
                                               hanare_comm_operation **operation);
HANARE_API hanare_status hanare_comm_post_pop(hanare_comm *comm, uint32_t task,
                                              const hanare_capability *queue, void *room,
                                              size_t room_bytes, int timeout_ms,
                                              const hanare_comm_post_options *options,
                                              hanare_comm_operation **operation);

/* Whether it is complete (1 or 0); does what can be done for it without waiting. */
HANARE_API hanare_status hanare_comm_test(hanare_comm_operation *operation, int *complete);
/* Until it is complete, within its own time limit.  Its status. */
HANARE_API hanare_status hanare_comm_wait(hanare_comm_operation *operation);
/* Of a fetch-op that is complete: the word before; of a pop: the bytes of the message.  BUSY. */
HANARE_API hanare_status hanare_comm_value(hanare_comm_operation *operation, uint64_t *value);
/* BUSY while it is not complete. */
HANARE_API hanare_status hanare_comm_operation_free(hanare_comm_operation *operation);

/* Completes what is done of all that this task has posted, without waiting. */
HANARE_API hanare_status hanare_comm_progress(hanare_comm *comm);
/* Returns when all that was posted to the task before is complete, each operation with a status of
 * its own.  TIMEOUT, PEER_LOST. */
HANARE_API hanare_status hanare_comm_flush(hanare_comm *comm, uint32_t task, int timeout_ms);
/* The same for all tasks; the first failure. */
HANARE_API hanare_status hanare_comm_flush_all(hanare_comm *comm, int timeout_ms);
/* What this task begins on that one afterwards takes effect after what it has begun before, without
 * waiting.  So it is without a fence, too; it says so in the program. */
HANARE_API hanare_status hanare_comm_fence(hanare_comm *comm, uint32_t task);

/* ---- groups: what all tasks call, in the same order, one thread of each (BUSY)
 *
 * A task that is lost makes these fail in all others, from then on, with PEER_LOST; the text says
 * which one (hanare_last_error).  After TIMEOUT a barrier may be called again, and goes on.  A
 * broadcast or allgather that fails in one task otherwise fails with the same status in those that
 * would have got the data by it, at once (by their own time limit, if it was the root's rank that
 * was wrong); and in the one by which it would have, of a gathering in all, but that may show only
 * when the task calls its next collective operation.  Who has to tell of a failure takes up to a
 * second longer than its time limit.  Every call counts in the order, also one that is refused for
 * its arguments; BUSY does not. */

/* Returns when all tasks have called it. */
HANARE_API hanare_status hanare_comm_barrier(hanare_comm *comm, int timeout_ms);
/* The root's data to all, over a tree; as many bytes everywhere. */
HANARE_API hanare_status hanare_comm_broadcast(hanare_comm *comm, void *data, size_t bytes,
                                               uint32_t root, int timeout_ms);
/* `all` gets `bytes` bytes of every task, in the order of the ranks.  For small data, such as
 * capabilities: task 0 sends all of it to the others. */
HANARE_API hanare_status hanare_comm_allgather(hanare_comm *comm, const void *own, size_t bytes,
                                               void *all, int timeout_ms);

/* ---- multicast: one task puts data into the memory of all, whatever the others do */

/* One region of each task, which all of them know.  Opaque. */
typedef struct hanare_comm_window hanare_comm_window;

/* Called by all tasks, each with a region of its own that is exposed with HANARE_RIGHT_WRITE, and
 * stays so until the window is closed. */
HANARE_API hanare_status hanare_comm_window_open(hanare_comm *comm, uint32_t region, int timeout_ms,
                                                 hanare_comm_window **window);
/* Called by all tasks.  PEER_LOST: others are no more; the window is closed here all the same.
 * After any other failure (TIMEOUT: others are late, or a multicast still uses it; BUSY: another
 * thread is in a collective operation) it stays open: call this again before any other collective
 * operation. */
HANARE_API hanare_status hanare_comm_window_close(hanare_comm_window *window, int timeout_ms);

typedef struct hanare_multicast_options {
    size_t struct_size;
    /* To how many others a task passes the data on: 1 to 32, default 8. */
    uint32_t arity;
    /* HANARE_MULTICAST_* flags, or'ed. */
    uint32_t flags;
} hanare_multicast_options;

/* The root puts the data into every task's memory itself: what it sends and receives grows with the
 * number of tasks.  For comparison. */
#define HANARE_MULTICAST_FLAT 0x1u

/* What the calling task has sent and received for a multicast. */
typedef struct hanare_multicast_counts {
    size_t struct_size;
    uint64_t puts;             /* of the data, each answered */
    uint64_t notices;          /* to tasks that pass it on */
    uint64_t acknowledgements; /* from these, each for all tasks below it */
} hanare_multicast_counts;

/* Puts `bytes` bytes at `offset` of every task's region of the window, this one's included.  The
 * data goes over a tree; tasks on the way pass it on out of their own memory, by a thread of the
 * library's, and acknowledgements come back combined: a root handles no more messages than the
 * tree's arity tells, however many tasks there are.  Returns when all have it.  By any task at any
 * time; one at a time in a task.  `options` and `counts` may be NULL; set counts->struct_size.
 * A failure names the first task that it concerns: only tasks that would have got the data by that
 * one may lack it, too.  Errors: as those of a put; NOT_FOUND: that task has closed the window. */
HANARE_API hanare_status hanare_comm_multicast_put(hanare_comm_window *window, uint64_t offset,
                                                   const void *data, size_t bytes, int timeout_ms,
                                                   const hanare_multicast_options *options,
                                                   hanare_multicast_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
