/* SPDX-License-Identifier: Apache-2.0
 *
 * Tickets: all tasks draw numbers from one counter in the memory of task 0, by fetch-ops, several
 * at a time; nobody gets a number twice.  Run with `hanare launch -n 4 example_comm_counter`.
 */
#include "comm_example.h"

enum { TICKETS = 1000, AT_ONCE = 8 };

/* Word 0 is the counter; behind it is a flag for each ticket. */
static uint64_t offset_of(uint64_t ticket) { return (1 + ticket) * sizeof(uint64_t); }

static void note_ticket(hanare_comm_operation *operation, hanare_status status, void *context) {
    uint64_t ticket = 0;
    check(status, "fetch-op");
    check(hanare_comm_value(operation, &ticket), "value");
    uint64_t **next = context;
    *(*next)++ = ticket;
    check(hanare_comm_operation_free(operation), "free");
}

int main(void) {
    struct shared s = share((1 + (size_t)TICKETS * 1024) * sizeof(uint64_t),
                            HANARE_RIGHT_READ | HANARE_RIGHT_FETCH_OP);
    expect(s.size <= 1024, "at most 1024 tasks");
    uint64_t mine[TICKETS];
    uint64_t *next = mine;
    const hanare_comm_post_options options = {
        .struct_size = sizeof options, .callback = note_ticket, .context = &next};
    for (int drawn = 0; drawn < TICKETS; drawn += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            hanare_comm_operation *operation = NULL;
            check(hanare_comm_post_fetch_op(s.comm, 0, &s.keys[0], 0, HANARE_FETCH_ADD, 8, 1, 0,
                                            LIMIT, &options, &operation),
                  "post");
        }
        check(hanare_comm_flush(s.comm, 0, LIMIT), "flush");
    }
    expect(next == mine + TICKETS, "a callback for each");

    /* Each flag is raised once. */
    for (int i = 0; i < TICKETS; i++) {
        uint64_t before = 1;
        check(hanare_comm_fetch_op(s.comm, 0, &s.keys[0], offset_of(mine[i]), HANARE_FETCH_SWAP, 8,
                                   1, 0, LIMIT, &before),
              "swap");
        expect(before == 0, "a ticket that somebody else has, too");
    }
    check(hanare_comm_barrier(s.comm, LIMIT), "barrier");
    if (s.rank == 0) {
        const uint64_t *words = s.memory;
        const uint64_t all = (uint64_t)TICKETS * s.size;
        expect(words[0] == all, "the counter");
        for (uint64_t ticket = 0; ticket < all; ticket++) expect(words[1 + ticket] == 1, "flags");
    }
    finish(&s, "tickets");
    return 0;
}
