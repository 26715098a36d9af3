/* SPDX-License-Identifier: Apache-2.0
 *
 * What the examples of communication share: ending with a line when something is wrong.
 */
#ifndef COMM_EXAMPLE_H
#define COMM_EXAMPLE_H

#include <hanare/hanare.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of every call here, in milliseconds. */
#define LIMIT 30000

/* The example cannot go on. */
static inline void check(hanare_status status, const char *what) {
    if (status == HANARE_STATUS_OK) return;
    char text[256] = "";
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", what, hanare_status_name(status), text);
    exit(1);
}

/* The result is as it must be. */
static inline void expect(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

/* Memory of this task, exposed, and the capabilities for that of all tasks. */
struct shared {
    hanare_comm *comm;
    uint32_t rank, size;
    void *memory;
    uint32_t region;
    hanare_capability *keys;
};

static inline struct shared share(size_t bytes, uint32_t rights) {
    struct shared s;
    check(hanare_comm_open(NULL, &s.comm), "open");
    check(hanare_comm_rank(s.comm, &s.rank), "rank");
    check(hanare_comm_size(s.comm, &s.size), "size");
    check(hanare_comm_allocate(s.comm, bytes, &s.memory), "allocate");
    check(hanare_comm_expose(s.comm, s.memory, bytes, rights, &s.region), "expose");
    hanare_capability own;
    check(hanare_comm_capability(s.comm, s.region, rights, &own), "capability");
    s.keys = malloc(s.size * sizeof own);
    expect(s.keys != NULL, "memory for keys");
    check(hanare_comm_allgather(s.comm, &own, sizeof own, s.keys, LIMIT), "allgather");
    return s;
}

/* Nobody leaves while others still use its memory. */
static inline void finish(struct shared *s, const char *what) {
    check(hanare_comm_barrier(s->comm, LIMIT), "barrier");
    if (s->rank == 0) printf("%s: as expected, %u tasks\n", what, s->size);
    check(hanare_comm_close(s->comm), "close");
    free(s->keys);
}

#endif
