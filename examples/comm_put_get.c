/* SPDX-License-Identifier: Apache-2.0
 *
 * Every task puts a row of numbers into its neighbour's memory, and gets it back from there.
 * Run with `hanare launch -n 4 example_comm_put_get`; alone it is its own neighbour.
 */
#include <string.h>

#include "comm_example.h"

enum { COUNT = 100000 };

int main(void) {
    const size_t bytes = COUNT * sizeof(uint32_t);
    struct shared s = share(bytes, HANARE_RIGHT_READ | HANARE_RIGHT_WRITE);
    const uint32_t next = (s.rank + 1) % s.size;
    const uint32_t before = (s.rank + s.size - 1) % s.size;

    uint32_t *numbers = malloc(bytes);
    uint32_t *again = malloc(bytes);
    expect(numbers != NULL && again != NULL, "memory");
    for (uint32_t i = 0; i < COUNT; i++) numbers[i] = s.rank * COUNT + i;
    check(hanare_comm_put(s.comm, next, &s.keys[next], 0, numbers, bytes, LIMIT), "put");

    /* The get is behind the put, since both are this task's and on the same other. */
    check(hanare_comm_get(s.comm, next, &s.keys[next], 0, again, bytes, LIMIT), "get");
    expect(memcmp(numbers, again, bytes) == 0, "what comes back");

    check(hanare_comm_barrier(s.comm, LIMIT), "barrier");
    const uint32_t *here = s.memory;
    for (uint32_t i = 0; i < COUNT; i++) expect(here[i] == before * COUNT + i, "what came here");

    /* A capability allows what it says, and no more than its region. */
    const hanare_status status =
        hanare_comm_put(s.comm, next, &s.keys[next], bytes - 1, numbers, 2, LIMIT);
    expect(status == HANARE_STATUS_OUT_OF_RANGE, "a put beyond the end");

    free(numbers);
    free(again);
    finish(&s, "put and get");
    return 0;
}
