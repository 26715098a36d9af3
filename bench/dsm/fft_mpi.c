// SPDX-License-Identifier: Apache-2.0
//
// 3D-FFT under MPI: all processes exchange blocks, by MPI_Alltoallv, since shares differ where the
// number of processes does not divide that of planes.
#include <mpi.h>

#include "fft.h"

enum { kRanksMax = 512 };

static dcomplex *outgoing, *incoming;

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

void fft_allocate(struct fft *fft) {
    const size_t by_z = (size_t)(fft->z.end - fft->z.begin) * fft_plane_z(fft);
    const size_t by_y = (size_t)(fft->y.end - fft->y.begin) * fft_plane_y(fft);
    fft->by_z = dsm_allocate(by_z, sizeof(dcomplex));
    fft->by_y = dsm_allocate(by_y, sizeof(dcomplex));
    fft->values = fft->by_z;
    outgoing = dsm_allocate(most(by_z, by_y), sizeof(dcomplex));
    incoming = dsm_allocate(most(by_z, by_y), sizeof(dcomplex));
    fft_fill(fft, fft->z, fft->by_z);
}

// One direction: this process's planes `own` of [planes][rows][nx] go to the processes that have
// their rows, and its rows of all others' planes come, to be `to`, [own rows][all planes][nx].
struct turn {
    struct share own_planes, own_rows;
    int planes, rows;
};

// The blocks for each process, [its rows][own planes][nx].
static void pack(const struct turn *turn, size_t nx, const dcomplex *from) {
    dcomplex *block = outgoing;
    const size_t planes = (size_t)(turn->own_planes.end - turn->own_planes.begin);
    for (size_t row = 0; row < (size_t)turn->rows; ++row) {
        for (size_t plane = 0; plane < planes; ++plane, block += nx) {
            memcpy(block, from + (plane * (size_t)turn->rows + row) * nx, nx * sizeof(dcomplex));
        }
    }
}

static void unpack(const struct turn *turn, size_t nx, dcomplex *to) {
    const dcomplex *block = incoming;
    for (unsigned process = 0; process < form_processes; ++process) {
        const struct share planes = share_of(turn->planes, process, form_processes);
        const size_t count = (size_t)(planes.end - planes.begin) * nx;
        for (long row = 0; row < turn->own_rows.end - turn->own_rows.begin; ++row, block += count) {
            memcpy(to + (size_t)(row * turn->planes + planes.begin) * nx, block,
                   count * sizeof(dcomplex));
        }
    }
}

static void exchange(const struct turn *turn, int nx, const dcomplex *from, dcomplex *to) {
    int sent[kRanksMax], sent_begins[kRanksMax], received[kRanksMax], received_begins[kRanksMax];
    int out = 0, in = 0;
    for (unsigned process = 0; process < form_processes; ++process) {
        const struct share rows = share_of(turn->rows, process, form_processes);
        const struct share planes = share_of(turn->planes, process, form_processes);
        const long own_planes = turn->own_planes.end - turn->own_planes.begin;
        const long own_rows = turn->own_rows.end - turn->own_rows.begin;
        sent[process] = 2 * nx * (int)((rows.end - rows.begin) * own_planes);
        received[process] = 2 * nx * (int)((planes.end - planes.begin) * own_rows);
        sent_begins[process] = out;
        received_begins[process] = in;
        out += sent[process];
        in += received[process];
    }
    pack(turn, (size_t)nx, from);
    MPI_Alltoallv(outgoing, sent, sent_begins, MPI_DOUBLE, incoming, received, received_begins,
                  MPI_DOUBLE, MPI_COMM_WORLD);
    unpack(turn, (size_t)nx, to);
}

void fft_to_y(struct fft *fft) {
    const struct turn turn = {fft->z, fft->y, fft->class->nz, fft->class->ny};
    exchange(&turn, fft->class->nx, fft->by_z, fft->by_y);
}

void fft_to_z(struct fft *fft) {
    const struct turn turn = {fft->y, fft->z, fft->class->ny, fft->class->nz};
    exchange(&turn, fft->class->nx, fft->by_y, fft->values);
}

void fft_sum(struct fft *fft, int count) {
    dcomplex all[kFftIterationsMax];
    MPI_Reduce(&fft->sums[0].re, &all[0].re, 2 * count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (form_process == 0) memcpy(fft->sums, all, (size_t)count * sizeof(dcomplex));
}
