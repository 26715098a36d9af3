/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue with many producers: all tasks push messages into the queue of task 0, which adds them
 * up. The queue is small, so that pushes find it full.  Run with `hanare launch -n 4
 * example_comm_queue`.
 */
#include <string.h>

#include "comm_example.h"

enum { MESSAGES = 2000, QUEUE_BYTES = 4096 };

struct message {
    uint32_t task, number;
};

/* All that is there; each task's messages come in the order in which it has pushed them. */
static void take_all(struct shared *s, uint32_t *next, uint64_t *taken) {
    struct message message;
    size_t bytes = 0;
    for (;;) {
        const hanare_status status =
            hanare_comm_pop(s->comm, 0, &s->keys[0], &message, sizeof message, LIMIT, &bytes);
        if (status == HANARE_STATUS_EMPTY || status == HANARE_STATUS_BUSY) return;
        check(status, "pop");
        expect(bytes == sizeof message && message.task < s->size, "a message");
        expect(message.number == next[message.task]++, "the order of one task's messages");
        ++*taken;
    }
}

int main(void) {
    struct shared s = share(QUEUE_BYTES, HANARE_RIGHT_PUSH | HANARE_RIGHT_POP);
    check(hanare_queue_format(s.memory, QUEUE_BYTES), "format");
    check(hanare_comm_barrier(s.comm, LIMIT), "barrier");
    uint32_t *next = calloc(s.size, sizeof *next);
    expect(next != NULL, "memory");
    uint64_t taken = 0;
    for (uint32_t number = 0; number < MESSAGES; number++) {
        const struct message message = {s.rank, number};
        hanare_status status;
        do {
            if (s.rank == 0) take_all(&s, next, &taken);
            status = hanare_comm_push(s.comm, 0, &s.keys[0], &message, sizeof message, LIMIT);
        } while (status == HANARE_STATUS_FULL || status == HANARE_STATUS_BUSY);
        check(status, "push");
    }
    while (s.rank == 0 && taken < (uint64_t)MESSAGES * s.size) take_all(&s, next, &taken);
    free(next);
    finish(&s, "queue");
    return 0;
}
