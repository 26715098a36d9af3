// SPDX-License-Identifier: Apache-2.0
//
// QSort under MPI: process 0 has the keys.  It divides them into ranges of about an eighth of a
// process's share, and sends one to each process that asks; that sorts it and sends it back, which
// is to ask for the next.  In between process 0 sorts ranges itself, and looks for answers after
// each leaf.
#include <mpi.h>

#include "quicksort.h"

enum { kRangeTag, kPartsAProcess = 8 };

static void sort_one_leaf(const struct quicksort *sort, int *keys, struct range_stack *stack) {
    struct share range;
    if (!range_pop(stack, &range)) return;
    while (!quicksort_is_leaf(sort, range)) {
        const long middle = quicksort_divide(keys, range);
        const struct share high = {middle, range.end};
        range_push(stack, high);
        range.end = middle;
    }
    quicksort_leaf(sort, keys, range);
}

static struct range_stack divide_coarsely(const struct quicksort *sort, int *keys) {
    const long enough = sort->keys / (kPartsAProcess * (long)form_processes);
    struct range_stack coarse = {0}, stack = {0};
    struct share range = {0, sort->keys};
    range_push(&stack, range);
    while (range_pop(&stack, &range)) {
        while (range.end - range.begin > enough && !quicksort_is_leaf(sort, range)) {
            const long middle = quicksort_divide(keys, range);
            const struct share high = {middle, range.end};
            range_push(&stack, high);
            range.end = middle;
        }
        range_push(&coarse, range);
    }
    free(stack.ranges);
    return coarse;
}

// Process 0's.
struct master {
    int *keys;
    struct range_stack ranges;
    struct share *given;  // to each process; empty: it has nothing to do
    unsigned busy;
};

// An empty message is the end.
static void give(struct master *master, int process) {
    struct share *const given = &master->given[process];
    *given = (struct share){0, 0};
    if (range_pop(&master->ranges, given)) ++master->busy;
    MPI_Send(master->keys + given->begin, (int)(given->end - given->begin), MPI_INT, process,
             kRangeTag, MPI_COMM_WORLD);
}

static void take_back(struct master *master, int process) {
    const struct share given = master->given[process];
    MPI_Recv(master->keys + given.begin, (int)(given.end - given.begin), MPI_INT, process,
             kRangeTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    --master->busy;
    give(master, process);
}

static void serve(const struct quicksort *sort, struct master *master) {
    struct range_stack own = {0};
    for (unsigned process = 1; process < form_processes; ++process) give(master, (int)process);
    while (master->busy > 0 || master->ranges.count > 0 || own.count > 0) {
        struct share range;
        if (own.count == 0 && range_pop(&master->ranges, &range)) range_push(&own, range);
        sort_one_leaf(sort, master->keys, &own);
        const bool nothing_to_do = own.count == 0 && master->ranges.count == 0;
        int is_there = 0;
        MPI_Status status;
        do {
            if (master->busy == 0) break;
            if (nothing_to_do) {
                MPI_Probe(MPI_ANY_SOURCE, kRangeTag, MPI_COMM_WORLD, &status);
                is_there = 1;
            } else {
                MPI_Iprobe(MPI_ANY_SOURCE, kRangeTag, MPI_COMM_WORLD, &is_there, &status);
            }
            if (is_there) take_back(master, status.MPI_SOURCE);
        } while (is_there);
    }
    free(own.ranges);
}

static void work(const struct quicksort *sort) {
    int *const keys = dsm_allocate((size_t)sort->keys, sizeof(int));
    struct range_stack stack = {0};
    for (;;) {
        MPI_Status status;
        int count = 0;
        MPI_Recv(keys, (int)sort->keys, MPI_INT, 0, kRangeTag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        if (count == 0) break;
        const struct share range = {0, count};
        range_push(&stack, range);
        while (stack.count > 0) sort_one_leaf(sort, keys, &stack);
        MPI_Send(keys, count, MPI_INT, 0, kRangeTag, MPI_COMM_WORLD);
    }
    free(stack.ranges);
    free(keys);
}

double quicksort_run(const struct quicksort *sort, int **keys) {
    if (form_process == 0) {
        *keys = dsm_allocate((size_t)sort->keys, sizeof(int));
        quicksort_fill(sort, *keys);
    }
    const double start = dsm_start();
    if (form_process == 0) {
        struct master master = {.keys = *keys, .ranges = divide_coarsely(sort, *keys)};
        master.given = dsm_allocate(form_processes, sizeof(struct share));
        serve(sort, &master);
        free(master.given);
        free(master.ranges.ranges);
    } else {
        work(sort);
    }
    return dsm_stop(start);
}
