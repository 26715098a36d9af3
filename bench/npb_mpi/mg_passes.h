// SPDX-License-Identifier: Apache-2.0
//
// The passes of NPB MG over one level or between two, by the names of RNR-94-007: residual (A),
// smoother (S), projection (P) and interpolation (Q).  Each leaves valid halos.  Ranks not alive on
// the level do not call.
#ifndef HANARE_NPB_MPI_MG_PASSES_H
#define HANARE_NPB_MPI_MG_PASSES_H

#include "mg_grid.h"

// r = v - A u; v may be r.
void mg_residual(const struct mg_level *level, int rank, const double *u, const double *v,
                 double *r);

// u = u + S r
void mg_smooth(const struct mg_level *level, int rank, const double *r, double *u);

// coarse r = P fine r.  Called by the ranks alive on the coarse level, and exchanges its halo.
void mg_project(const struct mg_level *fine, const struct mg_level *coarse, int rank);

// fine u = fine u + Q coarse u.  Where the coarse level has fewer ranks than the fine one, the
// fine u must be 0 before.
void mg_interpolate(const struct mg_level *coarse, const struct mg_level *fine);

#endif
