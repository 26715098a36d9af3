// SPDX-License-Identifier: Apache-2.0
//
// TSP: the shortest tour through cities by branch and bound (Midorikawa, Iizuka 1998, table 2: 19
// cities; Lu et al., JPDC 43, 1997, for the method).  Partial tours wait in a priority queue; the
// most promising one is taken, and one city longer each, goes back, until it has `depth` cities:
// all its tours are tried then by recursion.  Partial tours that cannot become shorter than the
// best one are dropped.
#ifndef HANARE_BENCH_DSM_TSP_H
#define HANARE_BENCH_DSM_TSP_H

#include "dsm_bench.h"

enum { kCitiesMax = 22 };

struct tsp {
    long cities, depth;
    int distance[kCitiesMax][kCitiesMax];
    int least_two[kCitiesMax];  // the sum of a city's shortest two edges
};

struct tour {
    int length;  // of the path so far
    int bound;   // no tour that begins so is shorter
    int count;   // cities, of which the first is 0
    unsigned char path[kCitiesMax];
};

// A heap, the most promising tour first.  It has no pointers, so that it can be shared memory.
struct tour_queue {
    long count, room;
    struct tour tours[];
};

// Room for all tours of that depth, or as many as there will be.
size_t tsp_queue_bytes(const struct tsp *tsp);
// The queue of the tour of one city.  `best` becomes a tour from each city to the nearest.
void tsp_begin(const struct tsp *tsp, struct tour_queue *queue, struct tour *best);

// Takes a tour to solve from the queue, with `depth` cities; false: there is none any more.
bool tsp_take(const struct tsp *tsp, struct tour_queue *queue, int best_length, struct tour *tour);

// Tries all tours that begin like `tour`; one shorter than *best becomes *best.
bool tsp_solve(const struct tsp *tsp, const struct tour *tour, struct tour *best);

// The form's: the shortest tour, in process 0; returns seconds.
double tsp_run(const struct tsp *tsp, struct tour *best);

#endif
