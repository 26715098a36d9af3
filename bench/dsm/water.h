// SPDX-License-Identifier: Apache-2.0
//
// Water: molecular dynamics of water as SPLASH's program of that name does it (Singh, Weber, Gupta
// 1992; Midorikawa, Iizuka 1998, table 2: 288 and 1728 molecules, 5 steps): a periodic box, all
// pairs of molecules within a cutoff of half the box, Gear's predictor-corrector of order 6.  Each
// process has neighbouring molecules, and computes the pairs of each with the half of all that
// follows it.  SPLASH's potential cannot be had from its published descriptions; this one is SPC/Fw
// (Wu, Tepper, Voth 2006), flexible with three sites too, so energies are other ones.
//
// Units: Angstrom, femtosecond, kcal/mol, atomic masses.
#ifndef HANARE_BENCH_DSM_WATER_H
#define HANARE_BENCH_DSM_WATER_H

#include "dsm_bench.h"

enum { kAtoms = 3, kAxes = 3, kNumbers = kAtoms * kAxes, kOrder = 6, kStepsMax = 1000 };

// Coordinates or forces of a molecule's atoms: oxygen, and two hydrogens.
typedef double molecule[kNumbers];

struct water {
    long molecules, steps;
    double box, cutoff;
};

// What a process has of it.
struct water_part {
    const struct water *water;
    struct share own;
    // The form's memory, for all molecules: positions, of which the process writes its own; forces,
    // where the process's own ones are the sum over all processes after water_share_forces.
    molecule *positions, *forces;
    molecule *pair_forces;            // of all molecules, by the process's pairs
    molecule (*derivatives)[kOrder];  // own molecules': number i by time^i / i!
    double potential[kStepsMax + 1], kinetic[kStepsMax + 1];  // 0: at the beginning
    double momentum[kAxes];                                   // at the end
};

// How many of the molecules after it a molecule makes pairs with.
static inline long water_partners(const struct water *water, long index) {
    const long half = water->molecules / 2;
    return water->molecules % 2 == 0 && index >= half ? half - 1 : half;
}

// Both add the forces to those of the molecules, and return the potential energy.
double water_inside(const molecule at, molecule force);
double water_between(const struct water *water, const molecule a, const molecule b,
                     molecule force_a, molecule force_b);

// The form's functions, collective.  water_allocate gives zeroed memory.
void water_allocate(struct water_part *part);
// Positions become those of all molecules that the process makes pairs with.
void water_share_positions(struct water_part *part);
// Own forces become the sums of all processes' pair_forces.
void water_share_forces(struct water_part *part);
// In process 0: energies and momentum become the sums of all processes', and positions all.
void water_collect(struct water_part *part);

#endif
