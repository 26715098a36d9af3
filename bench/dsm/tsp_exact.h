// SPDX-License-Identifier: Apache-2.0
//
// TSP's cities, and the length of their shortest tour by another method.
#ifndef HANARE_BENCH_DSM_TSP_EXACT_H
#define HANARE_BENCH_DSM_TSP_EXACT_H

#include "tsp.h"

// Given tsp->cities: cities at random places of a square, and whole distances between them.
void tsp_make(struct tsp *tsp, uint64_t seed);

int tsp_exact_length(const struct tsp *tsp);

#endif
