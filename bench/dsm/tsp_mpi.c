// SPDX-License-Identifier: Apache-2.0
//
// TSP under MPI: process 0 has the queue.  The others send the best tour they know, which is to ask
// for more, and get a tour to solve with the length of the best one; in between process 0 solves
// tours itself, and answers after each.
#include <mpi.h>

#include "tsp.h"

enum { kTourTag, kBestTag };

struct task {
    struct tour tour;
    int best_length;
    int is_last;
};

static void answer(const struct tsp *tsp, struct tour_queue *queue, struct tour *best, int process,
                   unsigned *busy) {
    struct tour other;
    MPI_Recv(&other, (int)sizeof(other), MPI_BYTE, process, kBestTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (other.length < best->length) *best = other;
    struct task task = {.best_length = 0};
    task.is_last = !tsp_take(tsp, queue, best->length, &task.tour);
    task.best_length = best->length;
    if (task.is_last) --*busy;
    MPI_Send(&task, (int)sizeof(task), MPI_BYTE, process, kTourTag, MPI_COMM_WORLD);
}

static void serve(const struct tsp *tsp, struct tour_queue *queue, struct tour *best) {
    unsigned busy = form_processes - 1;
    for (;;) {
        struct tour tour;
        const bool taken = tsp_take(tsp, queue, best->length, &tour);
        if (taken) {
            (void)tsp_solve(tsp, &tour, best);
        } else if (busy == 0) {
            return;
        }
        // All that ask now, or, with nothing else to do, the next one.
        for (int waits = !taken, asks = 1; busy > 0 && asks; waits = 0) {
            MPI_Status status;
            if (waits) {
                MPI_Probe(MPI_ANY_SOURCE, kBestTag, MPI_COMM_WORLD, &status);
            } else {
                MPI_Iprobe(MPI_ANY_SOURCE, kBestTag, MPI_COMM_WORLD, &asks, &status);
            }
            if (asks) answer(tsp, queue, best, status.MPI_SOURCE, &busy);
        }
    }
}

static void work(const struct tsp *tsp, struct tour *best) {
    best->length = 1 << 30;
    for (;;) {
        struct task task;
        MPI_Sendrecv(best, (int)sizeof(*best), MPI_BYTE, 0, kBestTag, &task, (int)sizeof(task),
                     MPI_BYTE, 0, kTourTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task.is_last) return;
        if (task.best_length < best->length) best->length = task.best_length;
        (void)tsp_solve(tsp, &task.tour, best);
    }
}

double tsp_run(const struct tsp *tsp, struct tour *best) {
    struct tour_queue *queue = NULL;
    if (form_process == 0) queue = dsm_allocate(1, tsp_queue_bytes(tsp));
    *best = (struct tour){0};
    const double start = dsm_start();
    if (form_process == 0) {
        tsp_begin(tsp, queue, best);
        serve(tsp, queue, best);
    } else {
        work(tsp, best);
    }
    const double seconds = dsm_stop(start);
    free(queue);
    return seconds;
}
