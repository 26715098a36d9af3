// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this folder share: their beginning and end under MPI, the clock, memory, and
// the line that says how one ended.  All functions but npb_is_power_of_two() and npb_allocate() are
// collective: all ranks of MPI_COMM_WORLD call them in the same order.
#ifndef HANARE_NPB_MPI_H
#define HANARE_NPB_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlm_bench.h"
#include "npb_class.h"

struct npb_world {
    const char *program;  // "is"
    int rank, ranks;
};

// Starts MPI.  The programs take no arguments: one ends all ranks with status 2.
struct npb_world npb_begin(const char *program, int argc, char **argv);

bool npb_is_power_of_two(int number);

// Unless `allowed`, prints one line on standard error, of the number of ranks there are and the
// numbers that `allowed_ranks` names ("a power of two from 1 to 64"), and ends all ranks with
// status 2.
void npb_require_ranks(const struct npb_world *world, bool allowed, const char *allowed_ranks);

// Zeroed memory for `count` > 0 elements of `size` bytes; never NULL: without memory, all ranks end
// with status 1.  For free().
void *npb_allocate(const struct npb_world *world, size_t count, size_t size);

// Waits for all ranks and returns the time; npb_stop() returns the seconds since then that the
// slowest rank needed, on all ranks.
double npb_start(void);
double npb_stop(double start);

struct npb_result {
    double seconds;
    double mops;        // millions of operations, as the benchmark counts them, a second
    const char *wrong;  // NULL: this rank found nothing wrong; otherwise what is wrong
};

// Rank 0 prints the result as the last line; ranks that found something wrong say so on standard
// error.  Ends MPI and returns main's status: 0 if no rank found anything wrong, 1 otherwise.
int npb_finish(const struct npb_world *world, const struct npb_result *result);

#endif
