// SPDX-License-Identifier: Apache-2.0
//
// One rank's block of NPB CG's random sparse matrix (RNR-94-007): some rows, and of these some
// columns.
#ifndef HANARE_NPB_CG_BLOCK_H
#define HANARE_NPB_CG_BLOCK_H

#include "cg_vector.h"
#include "npb_mpi.h"

// Numbers from begin to before end.
struct cg_range {
    int begin, end;
};

static inline int cg_length(struct cg_range range) { return range.end - range.begin; }

// The elements of row rows.begin + i are at row_begins[i] .. row_begins[i + 1] of `values`; their
// columns in `columns_of_values` count from columns.begin.
struct cg_block {
    struct cg_range rows, columns;
    int *row_begins;
    int *columns_of_values;
    double *values;
};

// Generates the block from the random sequence that begins with NPB_SEED.  Every rank runs through
// the whole sequence, since what is drawn tells how much of it a row uses up, but keeps its own
// block only.
struct cg_block cg_make_block(const struct npb_world *world, struct cg_range rows,
                              struct cg_range columns);

void cg_free_block(struct cg_block *block);

#endif
