// SPDX-License-Identifier: Apache-2.0
//
// QSort, sequential.
#include "quicksort.h"

double quicksort_run(const struct quicksort *sort, int **keys) {
    *keys = dsm_allocate((size_t)sort->keys, sizeof(int));
    quicksort_fill(sort, *keys);
    struct range_stack stack = {0};
    struct share range = {0, sort->keys};
    const double start = dsm_start();
    range_push(&stack, range);
    while (range_pop(&stack, &range)) {
        while (!quicksort_is_leaf(sort, range)) {
            const long middle = quicksort_divide(*keys, range);
            const struct share high = {middle, range.end};
            range_push(&stack, high);
            range.end = middle;
        }
        quicksort_leaf(sort, *keys, range);
    }
    const double seconds = dsm_stop(start);
    free(stack.ranges);
    return seconds;
}
