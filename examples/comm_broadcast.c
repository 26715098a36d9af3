/* SPDX-License-Identifier: Apache-2.0
 *
 * Every task in turn broadcasts a table, and all vote on what they have got.  Run with
 * `hanare launch -n 4 example_comm_broadcast`.
 */
#include "comm_example.h"

enum { COUNT = 50000 };

static uint32_t entry(uint32_t root, uint32_t i) { return (root + 1) * 2654435761u ^ i; }

int main(void) {
    struct shared s = share(sizeof(uint64_t), HANARE_RIGHT_FETCH_OP);
    uint32_t *table = malloc(COUNT * sizeof *table);
    expect(table != NULL, "memory");
    for (uint32_t root = 0; root < s.size; root++) {
        for (uint32_t i = 0; i < COUNT; i++) table[i] = s.rank == root ? entry(root, i) : 0;
        check(hanare_comm_broadcast(s.comm, table, COUNT * sizeof *table, root, LIMIT),
              "broadcast");
        for (uint32_t i = 0; i < COUNT; i++) expect(table[i] == entry(root, i), "the table");
        check(hanare_comm_fetch_op(s.comm, root, &s.keys[root], 0, HANARE_FETCH_ADD, 8, 1, 0, LIMIT,
                                   NULL),
              "vote");
    }
    /* Behind the barrier everybody has voted. */
    check(hanare_comm_barrier(s.comm, LIMIT), "barrier");
    expect(*(const uint64_t *)s.memory == s.size, "a vote of each task");
    free(table);
    finish(&s, "broadcast");
    return 0;
}
