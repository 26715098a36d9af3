// SPDX-License-Identifier: Apache-2.0
//
// 3D-FFT on shared memory: a process writes its planes of one shared array and, after a barrier,
// reads its part of all others' planes.  The arrays by y are two that take turns, so that nobody
// waits for others to have read: they have before the next barrier.
#include "fft.h"
#include "form_tmk.h"

enum { kFilled, kWrittenByZ, kWrittenByY, kSummed };

static dcomplex *shared_z, *shared_y[2];
static int turn;
static double *shared_sums;  // of each process, by iteration, a row of its own

static dcomplex *own_planes_y(const struct fft *fft, dcomplex *shared) {
    return shared + (size_t)fft->y.begin * fft_plane_y(fft);
}

void fft_allocate(struct fft *fft) {
    const size_t bytes = (size_t)fft->class->nz * fft_plane_z(fft) * sizeof(dcomplex);
    shared_z = form_share(bytes);
    for (int i = 0; i < 2; ++i) shared_y[i] = form_share(bytes);
    shared_sums = form_share(form_processes * 2 * kFftIterationsMax * sizeof(double));
    fft->by_z = shared_z + (size_t)fft->z.begin * fft_plane_z(fft);
    fft->by_y = own_planes_y(fft, shared_y[0]);
    const size_t planes = (size_t)(fft->z.end - fft->z.begin);
    fft->values = dsm_allocate(planes * fft_plane_z(fft), sizeof(dcomplex));

    if (dsm_init_by == 0 && form_process == 0) {
        const struct share all = {0, fft->class->nz};
        fft_fill(fft, all, shared_z);
        for (int i = 0; i < 2; ++i) memset(shared_y[i], 0, bytes);
    } else if (dsm_init_by != 0) {
        fft_fill(fft, fft->z, fft->by_z);
        const size_t own = (size_t)(fft->y.end - fft->y.begin) * fft_plane_y(fft);
        for (int i = 0; i < 2; ++i) {
            memset(own_planes_y(fft, shared_y[i]), 0, own * sizeof(dcomplex));
        }
    }
    Tmk_barrier(kFilled);
}

// Row number `j` of each plane i of `from`, which have `rows` rows each, follows the one before in
// `to`.
static void gather_rows(const struct fft *fft, const dcomplex *from, int planes, int rows, long j,
                        dcomplex *to) {
    const size_t row = (size_t)fft->class->nx;
    for (long i = 0; i < planes; ++i) {
        memcpy(to + (size_t)i * row, from + (size_t)(i * rows + j) * row, row * sizeof(dcomplex));
    }
}

void fft_to_y(struct fft *fft) {
    Tmk_barrier(kWrittenByZ);
    for (long y = fft->y.begin; y < fft->y.end; ++y) {
        gather_rows(fft, shared_z, fft->class->nz, fft->class->ny, y,
                    fft->by_y + (size_t)(y - fft->y.begin) * fft_plane_y(fft));
    }
}

void fft_to_z(struct fft *fft) {
    Tmk_barrier(kWrittenByY);
    for (long z = fft->z.begin; z < fft->z.end; ++z) {
        gather_rows(fft, shared_y[turn], fft->class->ny, fft->class->nz, z,
                    fft->values + (size_t)(z - fft->z.begin) * fft_plane_z(fft));
    }
    turn = 1 - turn;
    fft->by_y = own_planes_y(fft, shared_y[turn]);
}

// In the order of the processes, so that runs have the same bits.
void fft_sum(struct fft *fft, int count) {
    double *const own = shared_sums + 2 * kFftIterationsMax * form_process;
    memcpy(own, fft->sums, (size_t)count * sizeof(dcomplex));
    Tmk_barrier(kSummed);
    if (form_process != 0) return;
    for (unsigned other = 1; other < form_processes; ++other) {
        const double *const others = shared_sums + 2 * kFftIterationsMax * other;
        for (int i = 0; i < count; ++i) {
            fft->sums[i].re += others[2 * i];
            fft->sums[i].im += others[2 * i + 1];
        }
    }
}
