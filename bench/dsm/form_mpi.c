// SPDX-License-Identifier: Apache-2.0
//
// The form for MPI.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "form.h"

const char form_name[] = "mpi";
unsigned form_process;
unsigned form_processes;

void form_begin(int argc, char **argv) {
    int rank = 0, ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    form_process = (unsigned)rank;
    form_processes = (unsigned)ranks;
}

void form_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

uint64_t form_sum(uint64_t own) {
    uint64_t all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

void form_end(int status) {
    // mpirun takes any rank's status that is not 0.
    MPI_Finalize();
    exit(form_process == 0 ? status : 0);
}

void form_abort(const char *what) {
    fprintf(stderr, "process %u: %s\n", form_process, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();  // not reached; MPI_Abort is not declared as not returning
}
