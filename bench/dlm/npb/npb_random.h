/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of the NAS Parallel Benchmarks (RNR-94-007): x(k+1) = a x(k)
 * mod 2^46 with a = 5^13, as numbers x(k) 2^-46 between 0 and 1.  In 64-bit integers, whose own
 * modulus is a multiple of 2^46, so every product is exact in its last 46 bits.  No state but the
 * caller's.
 */
#ifndef HANARE_NPB_RANDOM_H
#define HANARE_NPB_RANDOM_H

#include <stdint.h>

#define NPB_RANDOM_MULTIPLIER UINT64_C(1220703125)
#define NPB_RANDOM_MASK ((UINT64_C(1) << 46) - 1)

/* Steps *seed, and returns it as a number between 0 and 1. */
static inline double npb_random(uint64_t *seed) {
    *seed = *seed * NPB_RANDOM_MULTIPLIER & NPB_RANDOM_MASK;
    return (double)(int64_t)*seed * 0x1p-46; /* signed: one instruction */
}

/* The seed that `count` steps make of `seed`. */
uint64_t npb_random_jump(uint64_t seed, uint64_t count);

/* The next `count` numbers. */
void npb_random_fill(uint64_t *seed, uint64_t count, double *numbers);

#endif
