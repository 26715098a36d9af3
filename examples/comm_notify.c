/* SPDX-License-Identifier: Apache-2.0
 *
 * A token goes round: each task waits for its flag, which says that the data before it is there,
 * adds its share, and puts it into the next one's memory.  Run with `hanare launch -n 4
 * example_comm_notify`.
 */
#include "comm_example.h"

enum { ROUNDS = 50, COUNT = 5000 };

struct token {
    uint64_t numbers[COUNT];
    uint64_t flag;
};

int main(void) {
    struct shared s = share(sizeof(struct token), HANARE_RIGHT_WRITE | HANARE_RIGHT_FETCH_OP);
    struct token *here = s.memory;
    const uint32_t next = (s.rank + 1) % s.size;
    uint64_t *numbers = malloc(sizeof here->numbers);
    expect(numbers != NULL, "memory");
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const int is_begin = round == 0 && s.rank == 0;
        if (!is_begin) {
            /* Task 0 has begun, so that what it waits for comes a round later. */
            const uint64_t expected = s.rank == 0 ? round : round + 1;
            check(hanare_comm_wait_word(s.comm, &here->flag, 8, HANARE_WAIT_EQUAL, expected, LIMIT,
                                        NULL),
                  "wait");
        }
        for (int i = 0; i < COUNT; i++) numbers[i] = (is_begin ? 0 : here->numbers[i]) + 1;
        check(hanare_comm_put_notify(s.comm, next, &s.keys[next], 0, numbers, sizeof here->numbers,
                                     offsetof(struct token, flag), 1, LIMIT),
              "put");
    }
    if (s.rank == 0) {
        check(hanare_comm_wait_word(s.comm, &here->flag, 8, HANARE_WAIT_EQUAL, ROUNDS, LIMIT, NULL),
              "wait");
        for (int i = 0; i < COUNT; i++) {
            expect(here->numbers[i] == (uint64_t)ROUNDS * s.size, "every task's share");
        }
    }
    free(numbers);
    finish(&s, "put and notify");
    return 0;
}
