// SPDX-License-Identifier: Apache-2.0
//
// Water under MPI: a process gets the positions of those that have molecules which it makes pairs
// with, and sends them the forces back.
#include <mpi.h>

#include "water.h"

enum { kPositionsTag, kForcesTag };

static molecule *received;     // forces, by the process that sent them
static MPI_Request *requests;  // two for each process

static struct share share_of_process(const struct water_part *part, unsigned process) {
    return share_of(part->water->molecules, process, form_processes);
}

// Whether `process` makes pairs with molecules of `other`: those of its first molecule begin after
// that, those of its last one are the farthest.
static bool needs(const struct water_part *part, unsigned process, unsigned other) {
    if (process == other) return false;
    const long all = part->water->molecules;
    const struct share own = share_of_process(part, process);
    const struct share theirs = share_of_process(part, other);
    const long farthest = own.end - 1 - own.begin + all / 2;
    return (theirs.begin - own.begin + all) % all <= farthest ||
           (theirs.end - 1 - own.begin + all) % all <= farthest;
}

void water_allocate(struct water_part *part) {
    const size_t count = (size_t)part->water->molecules;
    const size_t own = (size_t)(part->own.end - part->own.begin);
    part->positions = dsm_allocate(count, sizeof(molecule));
    part->forces = dsm_allocate(count, sizeof(molecule));
    received = dsm_allocate(own * form_processes, sizeof(molecule));
    requests = dsm_allocate((size_t)form_processes * 2, sizeof(MPI_Request));
}

static int numbers_of(struct share share) { return (int)(share.end - share.begin) * kNumbers; }

void water_share_positions(struct water_part *part) {
    int count = 0;
    for (unsigned other = 0; other < form_processes; ++other) {
        const struct share theirs = share_of_process(part, other);
        if (needs(part, form_process, other)) {
            MPI_Irecv(part->positions[theirs.begin], numbers_of(theirs), MPI_DOUBLE, (int)other,
                      kPositionsTag, MPI_COMM_WORLD, &requests[count++]);
        }
        if (needs(part, other, form_process)) {
            MPI_Isend(part->positions[part->own.begin], numbers_of(part->own), MPI_DOUBLE,
                      (int)other, kPositionsTag, MPI_COMM_WORLD, &requests[count++]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

// In the order of the processes, so that runs have the same bits.
static void add_forces(struct water_part *part) {
    const long own = part->own.end - part->own.begin;
    memcpy(part->forces + part->own.begin, part->pair_forces + part->own.begin,
           (size_t)own * sizeof(molecule));
    for (unsigned other = 0; other < form_processes; ++other) {
        if (!needs(part, other, form_process)) continue;
        for (long at = 0; at < own; ++at) {
            const double *const theirs = received[(long)other * own + at];
            for (int i = 0; i < kNumbers; ++i) part->forces[part->own.begin + at][i] += theirs[i];
        }
    }
}

void water_share_forces(struct water_part *part) {
    const long own = part->own.end - part->own.begin;
    int count = 0;
    for (unsigned other = 0; other < form_processes; ++other) {
        const struct share theirs = share_of_process(part, other);
        if (needs(part, other, form_process)) {
            MPI_Irecv(received[(long)other * own], numbers_of(part->own), MPI_DOUBLE, (int)other,
                      kForcesTag, MPI_COMM_WORLD, &requests[count++]);
        }
        if (needs(part, form_process, other)) {
            MPI_Isend(part->pair_forces[theirs.begin], numbers_of(theirs), MPI_DOUBLE, (int)other,
                      kForcesTag, MPI_COMM_WORLD, &requests[count++]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    add_forces(part);
}

static void sum_up(double *values, int count) {
    const void *const from = form_process == 0 ? MPI_IN_PLACE : values;
    MPI_Reduce(from, values, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

void water_collect(struct water_part *part) {
    sum_up(part->potential, (int)part->water->steps + 1);
    sum_up(part->kinetic, (int)part->water->steps + 1);
    sum_up(part->momentum, kAxes);
    if (form_process != 0) {
        MPI_Send(part->positions[part->own.begin], numbers_of(part->own), MPI_DOUBLE, 0,
                 kPositionsTag, MPI_COMM_WORLD);
        return;
    }
    for (unsigned other = 1; other < form_processes; ++other) {
        const struct share theirs = share_of_process(part, other);
        MPI_Recv(part->positions[theirs.begin], numbers_of(theirs), MPI_DOUBLE, (int)other,
                 kPositionsTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
