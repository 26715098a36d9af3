// SPDX-License-Identifier: Apache-2.0
//
// The form for MPI.  The functions by which the programs send are here a second time, as MPI's
// profiling interface allows: they count, and call MPI's own.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "form.h"

const char form_name[] = "mpi";
const char *const form_count_names[] = {"messages", "bytes"};
const unsigned form_count_total = 2;
static uint64_t messages, bytes_sent;
unsigned form_process;
unsigned form_processes;

static void count(uint64_t more, int elements, MPI_Datatype type) {
    int size = 0;
    PMPI_Type_size(type, &size);
    messages += more;
    bytes_sent += more * (uint64_t)elements * (uint64_t)size;
}

void form_count(uint64_t counts[FORM_COUNTS_MAX]) {
    counts[0] = messages;
    counts[1] = bytes_sent;
}

int MPI_Send(const void *data, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    count(1, elements, type);
    return PMPI_Send(data, elements, type, to, tag, comm);
}

int MPI_Isend(const void *data, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    count(1, elements, type);
    return PMPI_Isend(data, elements, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void *data, int elements, MPI_Datatype type, int to, int tag, void *received,
                 int received_elements, MPI_Datatype received_type, int from, int received_tag,
                 MPI_Comm comm, MPI_Status *status) {
    if (to != MPI_PROC_NULL) count(1, elements, type);
    return PMPI_Sendrecv(data, elements, type, to, tag, received, received_elements, received_type,
                         from, received_tag, comm, status);
}

int MPI_Alltoallv(const void *data, const int *elements, const int *begins, MPI_Datatype type,
                  void *received, const int *received_elements, const int *received_begins,
                  MPI_Datatype received_type, MPI_Comm comm) {
    for (unsigned to = 0; to < form_processes; ++to) {
        if (to != form_process && elements[to] > 0) count(1, elements[to], type);
    }
    return PMPI_Alltoallv(data, elements, begins, type, received, received_elements,
                          received_begins, received_type, comm);
}

int MPI_Reduce(const void *data, void *sum, int elements, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    if ((int)form_process != root) count(1, elements, type);
    return PMPI_Reduce(data, sum, elements, type, op, root, comm);
}

int MPI_Allreduce(const void *data, void *sum, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    if (form_process != 0) count(2, elements, type);
    return PMPI_Allreduce(data, sum, elements, type, op, comm);
}

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
