// SPDX-License-Identifier: Apache-2.0
//
// Successive over-relaxation on a grid whose elements are red and black by turns, as on a board:
// each half of an iteration moves the elements of one colour towards the mean of their neighbours,
// which are all of the other (Midorikawa, Iizuka 1998, sections 3, 4.2.2: 1024 x 3072, 50
// iterations).  SOR-Z begins with ones on the border and zeros inside, SOR-NZ with random numbers.
//
// The two colours are two grids of half the width: element (row, 2 k) and (row, 2 k + 1) are number
// k of their rows, the first red in even rows.  Numbers are doubles: as floats, SOR-Z's would
// become denormal, and slow, where its ones arrive.
#ifndef HANARE_BENCH_DSM_SOR_H
#define HANARE_BENCH_DSM_SOR_H

#include "dsm_bench.h"

enum sor_colour { kRed, kBlack, kColours };

struct sor {
    long rows, columns, iterations;
    long zero;  // 1: SOR-Z
};

struct sor_outcome {
    double seconds;
    uint64_t digest;  // of all processes
};

// Both colours of a row's initial values.
void sor_fill_row(const struct sor *sor, long row, double *red, double *black);

// Relaxes the inner elements of `colour` in a row, neither first nor last, given its other colour
// and that of the rows above and below.
void sor_row(const struct sor *sor, enum sor_colour colour, long row, double *restrict elements,
             const double *restrict other, const double *restrict above,
             const double *restrict below);

// Of `rows`, the first of which is at `red` and `black`.
uint64_t sor_digest(const struct sor *sor, struct share rows, const double *red,
                    const double *black);

// The form's.
struct sor_outcome sor_run(const struct sor *sor);

#endif
