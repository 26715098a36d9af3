// SPDX-License-Identifier: Apache-2.0
//
// NAS FT, a partial differential equation solved by three-dimensional Fourier transforms
// (RNR-94-007, section 2.4), the DSM paper's 3D-FFT: 64 x 64 x 64, class S, 6 iterations.  Random
// values are transformed once; every iteration multiplies them by the solution's factors for its
// time, transforms them back, and adds up 1024 of the values.
//
// Values are shared out by z, planes [ny][nx], and transformed ones by y, planes [nz][nx]; lines
// along x and y are transformed in the first form, those along z in the second.  A form of the
// program gives the memory and goes from one to the other.
#ifndef HANARE_BENCH_DSM_FFT_H
#define HANARE_BENCH_DSM_FFT_H

#include "dsm_bench.h"
#include "ft_lines.h"

enum { kFftIterationsMax = 32 };

struct fft_class {
    char letter;
    int nx, ny, nz, iterations;
    const dcomplex *official;  // the checksum of each iteration
};

struct fft {
    const struct fft_class *class;
    struct share z, y;  // this process's planes
    // The form's memory, for the planes of the process: what is transformed first, by z; what is
    // transformed along z, by y; and the values after an iteration, by z.
    dcomplex *by_z, *by_y, *values;
    dcomplex *transformed;  // by y
    double *factors;        // of one iteration, for each of these
    dcomplex sums[kFftIterationsMax];
};

static inline size_t fft_plane_z(const struct fft *fft) {
    return (size_t)fft->class->ny * (size_t)fft->class->nx;
}
static inline size_t fft_plane_y(const struct fft *fft) {
    return (size_t)fft->class->nz * (size_t)fft->class->nx;
}

// Fills planes by z, the first of which is at `to`, with the initial values.
void fft_fill(const struct fft *fft, struct share planes, dcomplex *to);

// The form's functions, collective.  fft_allocate fills by_z, too.
void fft_allocate(struct fft *fft);
// by_y becomes all processes' by_z.
void fft_to_y(struct fft *fft);
// `values` become all processes' by_y, which may be another array afterwards.
void fft_to_z(struct fft *fft);
// The sums become those of all processes, in process 0.
void fft_sum(struct fft *fft, int count);

#endif
