// SPDX-License-Identifier: Apache-2.0
//
// 3D-FFT, sequential.
#include "fft.h"

void fft_allocate(struct fft *fft) {
    const size_t points = (size_t)fft->class->nz * fft_plane_z(fft);
    fft->by_z = dsm_allocate(points, sizeof(dcomplex));
    fft->by_y = dsm_allocate(points, sizeof(dcomplex));
    fft->values = fft->by_z;
    fft_fill(fft, fft->z, fft->by_z);
}

static void copy_rows(const dcomplex *from, dcomplex *to, int outer, int inner, int nx) {
    const size_t row = (size_t)nx;
    for (size_t i = 0; i < (size_t)outer; ++i) {
        for (size_t j = 0; j < (size_t)inner; ++j) {
            memcpy(to + (j * (size_t)outer + i) * row, from + (i * (size_t)inner + j) * row,
                   row * sizeof(dcomplex));
        }
    }
}

void fft_to_y(struct fft *fft) {
    copy_rows(fft->by_z, fft->by_y, fft->class->nz, fft->class->ny, fft->class->nx);
}

void fft_to_z(struct fft *fft) {
    copy_rows(fft->by_y, fft->values, fft->class->ny, fft->class->nz, fft->class->nx);
}

void fft_sum(struct fft *fft, int count) {
    (void)fft;
    (void)count;
}
