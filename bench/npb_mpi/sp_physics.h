// SPDX-License-Identifier: Apache-2.0
//
// The constants of NPB SP's equations (RNR-94-007), and what its passes do to a cell.
#ifndef HANARE_NPB_MPI_SP_PHYSICS_H
#define HANARE_NPB_MPI_SP_PHYSICS_H

#include "sp_cells.h"

static const double kGamma = 1.4;        // k1 there
static const double kPressure = 0.4;     // k2
static const double kViscosity = 0.1;    // k3 k4
static const double kConduction = 1.96;  // k1 k5
static const double kDiffusion[kAxes] = {0.75, 0.75, 1.0};
static const double kDissipation = 0.25;
static const double kTimeStep = TIME_STEP;

static const double kPerStep = SIZE - 1;                       // 1 / (distance of points)
static const double kPerStepSquare = (SIZE - 1) * (SIZE - 1);  // factor of second differences
static const double kPerTwoSteps = (SIZE - 1) / 2.0;           // factor of central differences

// Fourth differences, by distance from -2 and place along an axis; at the boundary one-sided.
enum { kWeights = 5 };
extern const double sp_weights[kWeights][SIZE];

// The exact solution at a point of the unit cube.
void sp_exact(const double point[kAxes], double value[kComponents]);

// u between boundary values, which are exact.
void sp_begin(const struct sp_cells *all);

// The forcing with which the exact solution does not change in time.  Spoils u and rhs.
void sp_force(const struct sp_cells *all);

// rhs = what changes u in time: the forcing, and the differences of fluxes, which need u's halo.
void sp_residual(struct sp_cell *cell);

// One time step of the approximate factorization: rhs becomes what is to be added to u.
void sp_solve(const struct sp_cells *all);

#endif
