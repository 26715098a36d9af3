// SPDX-License-Identifier: Apache-2.0
//
// Water: beginning, predictor and corrector, and the verification by three criteria: the total
// energy is conserved, which forces that are not the potential's derivatives would not do; momentum
// is; and process 0, which computes all steps another time, each pair once in the order of the
// molecules, finds the same positions but for rounding.
#include "water.h"

#include <math.h>

#include "npb_random.h"

static const uint64_t kSeed = 314159265;
static const double kStep = 0.2;      // fs
static const double kVolume = 29.92;  // of a molecule, at 0.997 g/cm^3
static const double kMass[kAtoms] = {15.9994, 1.00794, 1.00794};
static const double kAcceleration = 4.184e-4;  // A/fs^2 by kcal/mol/A by mass
static const double kBoltzmann = 1.987204e-3;  // kcal/mol/K
static const double kTemperature = 298;
// Of the kinetic energy; nearly all of it is lost in the first step, which begins without the
// higher derivatives. Steps are short, and a force that is wrong by a few hundredths exceeds it.
static const double kEnergyTolerance = 3e-3;
static const double kPositionTolerance = 1e-9;  // A

// Gear's coefficients of order 6 for equations of second order (Gear 1971).
static const double kCorrector[kOrder + 1] = {863.0 / 6048, 665.0 / 1008, 1,        25.0 / 36,
                                              35.0 / 144,   1.0 / 24,     1.0 / 360};

static void place(const struct water *water, long index, molecule at) {
    const double pi = acos(-1.0), half_angle = 113.24 / 2 * pi / 180;
    const long side = (long)ceil(cbrt((double)water->molecules) - 1e-9);
    const long site = index * side * side * side / water->molecules;
    const long cell[kAxes] = {site % side, site / side % side, site / side / side};
    uint64_t seed = npb_random_jump(kSeed, 100 * (uint64_t)index);
    // The direction between the hydrogens, and one across it.
    const double z = 2 * npb_random(&seed) - 1, turn = 2 * pi * npb_random(&seed);
    const double flat = sqrt(1 - z * z), roll = 2 * pi * npb_random(&seed);
    const double along[kAxes] = {flat * cos(turn), flat * sin(turn), z};
    const double one[kAxes] = {-sin(turn), cos(turn), 0};
    const double two[kAxes] = {-z * cos(turn), -z * sin(turn), flat};
    for (int axis = 0; axis < kAxes; ++axis) {
        const double across = cos(roll) * one[axis] + sin(roll) * two[axis];
        at[axis] = ((double)cell[axis] + 0.5) * water->box / (double)side;
        at[kAxes + axis] =
            at[axis] + 1.012 * (cos(half_angle) * along[axis] + sin(half_angle) * across);
        at[2 * kAxes + axis] =
            at[axis] + 1.012 * (cos(half_angle) * along[axis] - sin(half_angle) * across);
    }
}

// Random velocities; molecules 2 i and 2 i + 1 have opposite ones, so that there is no momentum.
static void push(const struct water *water, long index, molecule velocity) {
    if (index == water->molecules - 1 && index % 2 == 0) return;
    uint64_t seed = npb_random_jump(kSeed, 100 * (uint64_t)(index / 2) + 50);
    for (int i = 0; i < kNumbers; ++i) {
        double gauss = -6;
        for (int j = 0; j < 4; ++j) gauss += 3 * npb_random(&seed);
        const double mean = sqrt(kBoltzmann * kTemperature * kAcceleration / kMass[i / kAxes]);
        velocity[i] = (index % 2 == 0 ? 1 : -1) * mean * gauss * kStep / sqrt(3.0);
    }
}

static void predict(struct water_part *part) {
    for (long index = part->own.begin; index < part->own.end; ++index) {
        molecule *const derivative = part->derivatives[index - part->own.begin];
        for (int i = 0; i < kNumbers; ++i) {
            double terms[kOrder + 1];
            terms[0] = part->positions[index][i];
            for (int order = 1; order <= kOrder; ++order) terms[order] = derivative[order - 1][i];
            // Pascal's triangle, from the highest term down.
            for (int first = 0; first < kOrder; ++first) {
                for (int order = kOrder - 1; order >= first; --order) {
                    terms[order] += terms[order + 1];
                }
            }
            part->positions[index][i] = terms[0];
            for (int order = 1; order <= kOrder; ++order) derivative[order - 1][i] = terms[order];
        }
    }
}

// The second derivative by which a force moves an atom, as the derivatives are kept.
static double moved(double force, int number) {
    return 0.5 * kStep * kStep * kAcceleration * force / kMass[number / kAxes];
}

static double kinetic_energy(const struct water_part *part) {
    double energy = 0;
    for (long at = 0; at < part->own.end - part->own.begin; ++at) {
        for (int i = 0; i < kNumbers; ++i) {
            const double velocity = part->derivatives[at][0][i] / kStep;
            energy += 0.5 * kMass[i / kAxes] * velocity * velocity / kAcceleration;
        }
    }
    return energy;
}

static void correct(struct water_part *part) {
    for (long index = part->own.begin; index < part->own.end; ++index) {
        molecule *const derivative = part->derivatives[index - part->own.begin];
        for (int i = 0; i < kNumbers; ++i) {
            const double miss = moved(part->forces[index][i], i) - derivative[1][i];
            part->positions[index][i] += kCorrector[0] * miss;
            for (int order = 1; order <= kOrder; ++order) {
                derivative[order - 1][i] += kCorrector[order] * miss;
            }
        }
    }
}

// The forces of the process's pairs; returns their energy.
static double own_forces(struct water_part *part) {
    const struct water *const water = part->water;
    double energy = 0;
    memset(part->pair_forces, 0, (size_t)water->molecules * sizeof(molecule));
    for (long a = part->own.begin; a < part->own.end; ++a) {
        energy += water_inside(part->positions[a], part->pair_forces[a]);
        const long partners = water_partners(water, a);
        for (long next = 1; next <= partners; ++next) {
            const long b = (a + next) % water->molecules;
            energy += water_between(water, part->positions[a], part->positions[b],
                                    part->pair_forces[a], part->pair_forces[b]);
        }
    }
    return energy;
}

// The same for a process that has all molecules, each pair once.
static double all_forces(struct water_part *part) {
    const struct water *const water = part->water;
    double energy = 0;
    memset(part->forces, 0, (size_t)water->molecules * sizeof(molecule));
    for (long b = water->molecules - 1; b >= 0; --b) {
        for (long a = 0; a < b; ++a) {
            energy += water_between(water, part->positions[a], part->positions[b], part->forces[a],
                                    part->forces[b]);
        }
        energy += water_inside(part->positions[b], part->forces[b]);
    }
    return energy;
}

static void prepare(struct water_part *part) {
    const struct water *const water = part->water;
    const size_t count = (size_t)(part->own.end - part->own.begin);
    part->pair_forces = dsm_allocate((size_t)water->molecules, sizeof(molecule));
    part->derivatives = dsm_allocate(count, sizeof(*part->derivatives));
    for (long index = part->own.begin; index < part->own.end; ++index) {
        place(water, index, part->positions[index]);
        push(water, index, part->derivatives[index - part->own.begin][0]);
    }
}

static void compute_forces(struct water_part *part, long number, bool alone) {
    if (alone) {
        part->potential[number] = all_forces(part);
        return;
    }
    water_share_positions(part);
    part->potential[number] = own_forces(part);
    water_share_forces(part);
}

static void begin(struct water_part *part, bool alone) {
    compute_forces(part, 0, alone);
    for (long index = part->own.begin; index < part->own.end; ++index) {
        for (int i = 0; i < kNumbers; ++i) {
            part->derivatives[index - part->own.begin][1][i] = moved(part->forces[index][i], i);
        }
    }
    part->kinetic[0] = kinetic_energy(part);
}

static void step(struct water_part *part, long number, bool alone) {
    predict(part);
    compute_forces(part, number, alone);
    correct(part);
    part->kinetic[number] = kinetic_energy(part);
}

static void add_momentum(struct water_part *part) {
    for (long at = 0; at < part->own.end - part->own.begin; ++at) {
        for (int i = 0; i < kNumbers; ++i) {
            part->momentum[i % kAxes] += kMass[i / kAxes] * part->derivatives[at][0][i] / kStep;
        }
    }
}

// Between the positions and those that this process computes alone.
static double greatest_difference(const struct water_part *part) {
    const struct water *const water = part->water;
    struct water_part *const other = dsm_allocate(1, sizeof(*other));
    other->water = water;
    other->own = (struct share){0, water->molecules};
    other->positions = dsm_allocate((size_t)water->molecules, sizeof(molecule));
    prepare(other);
    other->forces = other->pair_forces;
    begin(other, true);
    for (long number = 1; number <= water->steps; ++number) step(other, number, true);
    double greatest = 0;
    for (long index = 0; index < water->molecules; ++index) {
        for (int i = 0; i < kNumbers; ++i) {
            const double difference = fabs(other->positions[index][i] - part->positions[index][i]);
            if (!(difference <= greatest)) greatest = difference;  // also if it is no number
        }
    }
    free(other->positions);
    free(other->pair_forces);
    free(other->derivatives);
    free(other);
    return greatest;
}

static const char *verify(const struct water_part *part) {
    const double total = part->potential[0] + part->kinetic[0];
    for (long number = 1; number <= part->water->steps; ++number) {
        const double change = part->potential[number] + part->kinetic[number] - total;
        if (!(fabs(change) <= kEnergyTolerance * part->kinetic[number])) {
            return "energy is not conserved";
        }
    }
    for (int axis = 0; axis < kAxes; ++axis) {
        if (!(fabs(part->momentum[axis]) <= 1e-9)) return "momentum is not conserved";
    }
    const bool same = greatest_difference(part) <= kPositionTolerance;
    return same ? NULL : "positions differ from those by single pairs";
}

static void report(const struct water_part *part, double seconds) {
    const struct water *const water = part->water;
    const double potential = part->potential[water->steps], kinetic = part->kinetic[water->steps];
    char details[160];
    snprintf(details, sizeof(details), "molecules=%ld steps=%ld potential=%.6f kinetic=%.6f",
             water->molecules, water->steps, potential, kinetic);
    struct dsm_result result = {"water", seconds, details, 0, NULL};
    if (form_process == 0) {
        if (dsm_spoil) part->positions[0][0] += 1e-6;
        result.wrong = verify(part);
    }
    dsm_finish(&result);
}

int main(int argc, char **argv) {
    struct water water = {.molecules = 288, .steps = 5};
    const struct bench_option options[] = {{"--molecules", &water.molecules, 8, 1 << 20},
                                           {"--steps", &water.steps, 1, kStepsMax}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    dsm_require(water.molecules >= (long)form_processes, "at least as many molecules as processes");
    water.box = cbrt(kVolume * (double)water.molecules);
    water.cutoff = 0.5 * water.box;
    struct water_part *const part = dsm_allocate(1, sizeof(*part));
    part->water = &water;
    part->own = own_share(water.molecules);
    water_allocate(part);
    prepare(part);
    begin(part, false);
    const double start = dsm_start();
    for (long number = 1; number <= water.steps; ++number) step(part, number, false);
    const double seconds = dsm_stop(start);
    add_momentum(part);
    water_collect(part);
    report(part, seconds);
}
