// SPDX-License-Identifier: Apache-2.0
//
// Water on shared memory: positions and forces are shared.  Forces are added up in private memory,
// and then added to the shared ones, one process's molecules at a time, under the lock of these.
#include "form_tmk.h"
#include "water.h"

enum { kMoved, kForcesAdded, kCollected, kCollectLock = 1 };

// Sums over the processes, at the end.
static struct water_sums {
    double potential[kStepsMax + 1], kinetic[kStepsMax + 1], momentum[kAxes];
} *sums;

void water_allocate(struct water_part *part) {
    const size_t bytes = (size_t)part->water->molecules * sizeof(molecule);
    part->positions = form_share(bytes);
    part->forces = form_share(bytes);
    sums = form_share(sizeof(*sums));
    if (dsm_init_by == 0) {
        if (form_process == 0) {
            memset(part->positions, 0, bytes);
            memset(part->forces, 0, bytes);
        }
        Tmk_barrier(kMoved);
    }
}

static void clear_own_forces(struct water_part *part) {
    const size_t count = (size_t)(part->own.end - part->own.begin);
    memset(part->forces + part->own.begin, 0, count * sizeof(molecule));
}

void water_share_positions(struct water_part *part) {
    clear_own_forces(part);  // the process has used them; others add after the barrier
    Tmk_barrier(kMoved);
}

static bool has_force(const molecule force) {
    for (int i = 0; i < kNumbers; ++i) {
        if (force[i] != 0) return true;
    }
    return false;
}

static void add_forces(struct water_part *part, unsigned process) {
    const struct share share = share_of(part->water->molecules, process, form_processes);
    long begin = share.begin;
    while (begin < share.end && !has_force(part->pair_forces[begin])) ++begin;
    if (begin == share.end) return;
    Tmk_lock_acquire(FORM_LOCKS_MANY + process);
    for (long index = begin; index < share.end; ++index) {
        if (!has_force(part->pair_forces[index])) continue;
        for (int i = 0; i < kNumbers; ++i) part->forces[index][i] += part->pair_forces[index][i];
    }
    Tmk_lock_release(FORM_LOCKS_MANY + process);
}

void water_share_forces(struct water_part *part) {
    for (unsigned step = 0; step < form_processes; ++step) {
        add_forces(part, (form_process + step) % form_processes);
    }
    Tmk_barrier(kForcesAdded);
}

void water_collect(struct water_part *part) {
    Tmk_lock_acquire(kCollectLock);
    for (long number = 0; number <= part->water->steps; ++number) {
        sums->potential[number] += part->potential[number];
        sums->kinetic[number] += part->kinetic[number];
    }
    for (int axis = 0; axis < kAxes; ++axis) sums->momentum[axis] += part->momentum[axis];
    Tmk_lock_release(kCollectLock);
    Tmk_barrier(kCollected);
    memcpy(part->potential, sums->potential, sizeof(sums->potential));
    memcpy(part->kinetic, sums->kinetic, sizeof(sums->kinetic));
    memcpy(part->momentum, sums->momentum, sizeof(sums->momentum));
}
