// SPDX-License-Identifier: Apache-2.0
//
// Rows at the border by MPI_Sendrecv, first downwards and then upwards.
#include <mpi.h>

#include "form.h"
#include "halo.h"

void halo_exchange(const struct halo *halo) {
    const int above = form_process == 0 ? MPI_PROC_NULL : (int)form_process - 1;
    const int below = form_process + 1 == form_processes ? MPI_PROC_NULL : (int)form_process + 1;
    const int count = (int)halo->width;
    double *const first = halo->rows + halo->width;
    double *const after_last = first + (size_t)halo->own * halo->width;
    MPI_Sendrecv(after_last - count, count, MPI_DOUBLE, below, 0, halo->rows, count, MPI_DOUBLE,
                 above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(first, count, MPI_DOUBLE, above, 1, after_last, count, MPI_DOUBLE, below, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
