/* SPDX-License-Identifier: Apache-2.0
 *
 * Task 0 puts new parameters into the memory of all tasks, over a tree and without it, while the
 * others compute and look at their own memory only.  Run with `hanare launch -n 4
 * example_comm_multicast`.
 */
#include <stdatomic.h>

#include "comm_example.h"

enum { COUNT = 20000, GENERATIONS = 20 };

struct parameters {
    uint32_t values[COUNT];
    uint64_t generation; /* a word of its own: put when the values are everywhere */
};

static uint64_t generation_of(const struct parameters *p) {
    return atomic_load((const _Atomic uint64_t *)&p->generation);
}

static void distribute(struct shared *s, hanare_comm_window *window, uint64_t generation) {
    const hanare_multicast_options options = {
        .struct_size = sizeof options,
        .arity = 2,
        .flags = generation % 2 == 0 ? HANARE_MULTICAST_FLAT : 0};
    hanare_multicast_counts counts = {.struct_size = sizeof counts};
    uint32_t *values = malloc(COUNT * sizeof *values);
    expect(values != NULL, "memory");
    for (uint32_t i = 0; i < COUNT; i++) values[i] = (uint32_t)generation * 1000003u + i;
    check(hanare_comm_multicast_put(window, 0, values, COUNT * sizeof *values, LIMIT, &options,
                                    &counts),
          "multicast");
    const uint32_t others = s->size - 1;
    const uint32_t children = generation % 2 != 0 && others > 2 ? 2 : others;
    expect(counts.puts == children, "what the root has sent");
    check(hanare_comm_multicast_put(window, offsetof(struct parameters, generation), &generation,
                                    sizeof generation, LIMIT, &options, NULL),
          "multicast");
    free(values);
}

int main(void) {
    struct shared s = share(sizeof(struct parameters), HANARE_RIGHT_WRITE);
    const struct parameters *here = s.memory;
    hanare_comm_window *window = NULL;
    check(hanare_comm_window_open(s.comm, s.region, LIMIT, &window), "window");
    for (uint64_t generation = 1; generation <= GENERATIONS; generation++) {
        if (s.rank == 0) distribute(&s, window, generation);
        while (generation_of(here) < generation) {
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            expect(here->values[i] == (uint32_t)generation * 1000003u + i, "the parameters");
        }
        /* Nobody gets new ones while it looks at these. */
        check(hanare_comm_barrier(s.comm, LIMIT), "barrier");
    }
    check(hanare_comm_window_close(window, LIMIT), "close");
    finish(&s, "multicast");
    return 0;
}
