// SPDX-License-Identifier: Apache-2.0
//
// Message forms of programs on grids whose rows are shared out: what a process sends to those that
// have the rows above and below its own.  halo_mpi.c or halo_pvm.c.
#ifndef HANARE_BENCH_DSM_HALO_H
#define HANARE_BENCH_DSM_HALO_H

#include <stddef.h>

// A process's rows of a grid, `own` of them, between one row of each neighbour; rows follow each
// other.
struct halo {
    double *rows;  // own + 2 rows
    long own;
    size_t width;  // numbers in a row
};

// Collective: the rows around the own ones become those of the neighbours, where there are such.
void halo_exchange(const struct halo *halo);

#endif
