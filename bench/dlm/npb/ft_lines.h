/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of many lines of numbers at once: kLines lines side by side, so that every
 * step is the same for neighbouring numbers in memory, whatever the direction of the lines in the
 * array that they come from.  One static workspace: one thread at a time.
 */
#ifndef HANARE_NPB_FT_LINES_H
#define HANARE_NPB_FT_LINES_H

#include <stddef.h>

typedef struct {
    double re, im;
} dcomplex;

enum { kLines = 8, kLineMax = 512 };

/* The sign of the exponent, -1 or +1; neither divides by the length. */
enum ft_direction { kForward, kInverse };

/* Computes the roots of unity; before any transform. */
void ft_prepare(void);

/* Transforms the kLines lines that begin at in[0 .. kLines) and whose `length` elements are
 * `stride` apart; out may be in. */
void ft_transform_across(const dcomplex *in, dcomplex *out, int length, size_t stride,
                         enum ft_direction direction);

/* The same for lines of neighbouring elements, which begin `stride` apart. */
void ft_transform_along(const dcomplex *in, dcomplex *out, int length, size_t stride,
                        enum ft_direction direction);

#endif
