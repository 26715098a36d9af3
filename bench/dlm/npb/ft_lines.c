/* SPDX-License-Identifier: Apache-2.0
 *
 * Stockham's algorithm with radix 4, and a last step of radix 2 for odd powers.  Real and imaginary
 * parts are apart, so that the inner loops are plain vector loops; the inverse transform is the
 * forward one with the two parts exchanged.
 */
#include "ft_lines.h"

#include <math.h>

/* Of kLines lines: element number i of line l is at [i][l]. */
struct parts {
    double re[kLineMax][kLines];
    double im[kLineMax][kLines];
};

static struct parts workspace[2];
static dcomplex roots[kLineMax]; /* exp(-2 pi i k / kLineMax) */

void ft_prepare(void) {
    const double step = 2.0 * acos(-1.0) / kLineMax;
    for (int k = 0; k < kLineMax; ++k) {
        roots[k].re = cos(step * k);
        roots[k].im = -sin(step * k);
    }
}

/* One butterfly of four for `count` numbers in a row: inputs are `quarter` apart, outputs `count`;
 * outputs 1, 2, 3 are multiplied by w1, w2, w3. */
static inline void butterflies(const double *restrict xr, const double *restrict xi,
                               double *restrict yr, double *restrict yi, int count, int quarter,
                               dcomplex w1, dcomplex w2, dcomplex w3) {
    for (int i = 0; i < count; ++i) {
        const double ar = xr[i] + xr[i + 2 * quarter], ai = xi[i] + xi[i + 2 * quarter];
        const double br = xr[i] - xr[i + 2 * quarter], bi = xi[i] - xi[i + 2 * quarter];
        const double cr = xr[i + quarter] + xr[i + 3 * quarter];
        const double ci = xi[i + quarter] + xi[i + 3 * quarter];
        const double dr = xr[i + quarter] - xr[i + 3 * quarter];
        const double di = xi[i + quarter] - xi[i + 3 * quarter];
        const double y1r = br + di, y1i = bi - dr;
        const double y2r = ar - cr, y2i = ai - ci;
        const double y3r = br - di, y3i = bi + dr;
        yr[i] = ar + cr;
        yi[i] = ai + ci;
        yr[i + count] = w1.re * y1r - w1.im * y1i;
        yi[i + count] = w1.re * y1i + w1.im * y1r;
        yr[i + 2 * count] = w2.re * y2r - w2.im * y2i;
        yi[i + 2 * count] = w2.re * y2i + w2.im * y2r;
        yr[i + 3 * count] = w3.re * y3r - w3.im * y3i;
        yi[i + 3 * count] = w3.re * y3i + w3.im * y3r;
    }
}

/* A step for pieces of length `piece`, of which `rows` lie interleaved. */
static void step_of_four(const double *restrict xr, const double *restrict xi, double *restrict yr,
                         double *restrict yi, int piece, int rows) {
    const int count = rows * kLines;
    const int quarter = count * (piece / 4);
    const int root = kLineMax / piece;
    for (int p = 0; p < piece / 4; ++p) {
        butterflies(xr + p * count, xi + p * count, yr + 4 * p * count, yi + 4 * p * count, count,
                    quarter, roots[p * root], roots[2 * p * root], roots[3 * p * root]);
    }
}

static void step_of_two(const double *restrict xr, const double *restrict xi, double *restrict yr,
                        double *restrict yi, int rows) {
    const int count = rows * kLines;
    for (int i = 0; i < count; ++i) {
        yr[i] = xr[i] + xr[i + count];
        yi[i] = xi[i] + xi[i + count];
        yr[i + count] = xr[i] - xr[i + count];
        yi[i + count] = xi[i] - xi[i + count];
    }
}

/* Transforms workspace[0], and returns which of the two the result is in. */
static int transform(int length, enum ft_direction direction) {
    double *re[2], *im[2];
    for (int i = 0; i < 2; ++i) {
        double *const first = &workspace[i].re[0][0], *const second = &workspace[i].im[0][0];
        re[i] = direction == kForward ? first : second;
        im[i] = direction == kForward ? second : first;
    }
    int from = 0, rows = 1;
    for (int piece = length; piece >= 2;) {
        if (piece == 2) {
            step_of_two(re[from], im[from], re[1 - from], im[1 - from], rows);
            piece = 1;
        } else {
            step_of_four(re[from], im[from], re[1 - from], im[1 - from], piece, rows);
            rows *= 4;
            piece /= 4;
        }
        from = 1 - from;
    }
    return from;
}

void ft_transform_across(const dcomplex *in, dcomplex *out, int length, size_t stride,
                         enum ft_direction direction) {
    struct parts *parts = &workspace[0];
    for (int i = 0; i < length; ++i) {
        const dcomplex *const row = in + (size_t)i * stride;
        for (int line = 0; line < kLines; ++line) {
            parts->re[i][line] = row[line].re;
            parts->im[i][line] = row[line].im;
        }
    }
    parts = &workspace[transform(length, direction)];
    for (int i = 0; i < length; ++i) {
        dcomplex *const row = out + (size_t)i * stride;
        for (int line = 0; line < kLines; ++line) {
            row[line].re = parts->re[i][line];
            row[line].im = parts->im[i][line];
        }
    }
}

/* Four elements of each line at a time, which is what a cache line holds: the lines' places in the
 * cache may well be the same. */
void ft_transform_along(const dcomplex *in, dcomplex *out, int length, size_t stride,
                        enum ft_direction direction) {
    struct parts *parts = &workspace[0];
    for (int begin = 0; begin < length; begin += 4) {
        for (int line = 0; line < kLines; ++line) {
            const dcomplex *const piece = in + (size_t)line * stride + begin;
            for (int i = 0; i < 4; ++i) {
                parts->re[begin + i][line] = piece[i].re;
                parts->im[begin + i][line] = piece[i].im;
            }
        }
    }
    parts = &workspace[transform(length, direction)];
    for (int begin = 0; begin < length; begin += 4) {
        for (int line = 0; line < kLines; ++line) {
            dcomplex *const piece = out + (size_t)line * stride + begin;
            for (int i = 0; i < 4; ++i) {
                piece[i].re = parts->re[begin + i][line];
                piece[i].im = parts->im[begin + i][line];
            }
        }
    }
}
