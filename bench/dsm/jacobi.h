// SPDX-License-Identifier: Apache-2.0
//
// Jacobi's iteration on a square grid: each inner element becomes the mean of its four neighbours,
// in a second grid, and the two change places (Midorikawa, Iizuka 1998, section 5: 1536 x 1536, 20
// iterations; Amza et al., IEEE Computer 2/1996).  Elements of the border keep their values.
#ifndef HANARE_BENCH_DSM_JACOBI_H
#define HANARE_BENCH_DSM_JACOBI_H

#include "dsm_bench.h"

struct jacobi {
    long size, iterations;
};

struct jacobi_outcome {
    double seconds;
    uint64_t digest;  // of all processes
};

// The initial values of a row: random ones, so that no page of them is like another.
void jacobi_fill_row(const struct jacobi *jacobi, long row, double *values);

// Row number `row`, neither first nor last, of the next grid; the others are neighbours in this
// one.
void jacobi_row(const struct jacobi *jacobi, double *restrict to, const double *restrict above,
                const double *restrict here, const double *restrict below);

// Of `rows`, the first of which is at `values`.
uint64_t jacobi_digest(const struct jacobi *jacobi, struct share rows, const double *values);

// The form's.
struct jacobi_outcome jacobi_run(const struct jacobi *jacobi);

#endif
