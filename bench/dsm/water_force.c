// SPDX-License-Identifier: Apache-2.0
//
// SPC/Fw: springs for the two bonds and the angle between them; between molecules charges on all
// sites and Lennard-Jones' potential of the oxygens.  The cutoff is of the oxygens' distance, and
// the energy goes smoothly to zero over its last tenth, so that the total is conserved.
#include <math.h>

#include "water.h"

static const double kBond = 1059.162, kBondLength = 1.012;        // kcal/mol/A^2, A
static const double kAngle = 75.90, kAngleAtRest = 1.9764108449;  // kcal/mol/rad^2; 113.24 degrees
static const double kCharge[kAtoms] = {-0.82, 0.41, 0.41};
static const double kCoulomb = 332.0637;  // kcal A/mol
static const double kSigma = 3.165492, kEpsilon = 0.1554252;

static double dot(const double *a, const double *b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double bond(const double *vector, double length, double *force_o, double *force_h) {
    const double stretch = length - kBondLength;
    for (int axis = 0; axis < kAxes; ++axis) {
        const double force = kBond * stretch * vector[axis] / length;
        force_o[axis] += force;
        force_h[axis] -= force;
    }
    return 0.5 * kBond * stretch * stretch;
}

double water_inside(const molecule at, molecule force) {
    double to[2][kAxes], length[2];
    double energy = 0;
    for (int h = 0; h < 2; ++h) {
        for (int axis = 0; axis < kAxes; ++axis) {
            to[h][axis] = at[(h + 1) * kAxes + axis] - at[axis];
        }
        length[h] = sqrt(dot(to[h], to[h]));
        energy += bond(to[h], length[h], force, force + (ptrdiff_t)(h + 1) * kAxes);
    }
    const double cosine = dot(to[0], to[1]) / (length[0] * length[1]);
    const double bend = acos(cosine) - kAngleAtRest;
    const double slope = kAngle * bend / sqrt(1 - cosine * cosine);  // -dE/dcosine
    for (int h = 0; h < 2; ++h) {
        for (int axis = 0; axis < kAxes; ++axis) {
            const double own = to[h][axis] / length[h], other = to[1 - h][axis] / length[1 - h];
            const double pull = slope * (other - cosine * own) / length[h];
            force[(h + 1) * kAxes + axis] += pull;
            force[axis] -= pull;
        }
    }
    return energy + 0.5 * kAngle * bend * bend;
}

// What the energy is multiplied by, and its derivative.
static double taper(double distance, double cutoff, double *slope) {
    const double begin = 0.9 * cutoff, width = cutoff - begin;
    *slope = 0;
    if (distance <= begin) return 1;
    const double t = (distance - begin) / width;
    *slope = -30 * t * t * (1 - t) * (1 - t) / width;
    return 1 - t * t * t * (10 - t * (15 - 6 * t));
}

// Adds the forces by charges to both molecules', times `scale`; returns the energy, not scaled.
static double charges(const molecule a, const molecule b, const double *shift, double scale,
                      molecule force_a, molecule force_b) {
    double energy = 0;
    for (int i = 0; i < kNumbers; i += kAxes) {
        for (int j = 0; j < kNumbers; j += kAxes) {
            const double x = a[i] - b[j] - shift[0];
            const double y = a[i + 1] - b[j + 1] - shift[1];
            const double z = a[i + 2] - b[j + 2] - shift[2];
            const double square = x * x + y * y + z * z;
            const double own = kCoulomb * kCharge[i / kAxes] * kCharge[j / kAxes] / sqrt(square);
            const double pull = scale * own / square;
            energy += own;
            force_a[i] += pull * x;
            force_a[i + 1] += pull * y;
            force_a[i + 2] += pull * z;
            force_b[j] -= pull * x;
            force_b[j + 1] -= pull * y;
            force_b[j + 2] -= pull * z;
        }
    }
    return energy;
}

double water_between(const struct water *water, const molecule a, const molecule b,
                     molecule force_a, molecule force_b) {
    double shift[kAxes], vector[kAxes];
    for (int axis = 0; axis < kAxes; ++axis) {
        shift[axis] = water->box * rint((a[axis] - b[axis]) / water->box);
        vector[axis] = a[axis] - b[axis] - shift[axis];
    }
    const double square = dot(vector, vector);
    if (square >= water->cutoff * water->cutoff) return 0;
    const double distance = sqrt(square);
    double slope = 0;
    const double scale = taper(distance, water->cutoff, &slope);
    const double sixth = pow(kSigma * kSigma / square, 3);
    const double dispersion = 4 * kEpsilon * sixth * (sixth - 1);
    const double energy = dispersion + charges(a, b, shift, scale, force_a, force_b);
    // Of the oxygens: Lennard-Jones', and that of the taper.
    const double pull =
        scale * 24 * kEpsilon * sixth * (2 * sixth - 1) / square - slope * energy / distance;
    for (int axis = 0; axis < kAxes; ++axis) {
        force_a[axis] += pull * vector[axis];
        force_b[axis] -= pull * vector[axis];
    }
    return scale * energy;
}
