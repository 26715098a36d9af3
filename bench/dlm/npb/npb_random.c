/* SPDX-License-Identifier: Apache-2.0
 *
 * Jumps and runs of the generator.
 */
#include "npb_random.h"

uint64_t npb_random_jump(uint64_t seed, uint64_t count) {
    uint64_t power = NPB_RANDOM_MULTIPLIER; /* to 1, 2, 4, 8 ... */
    for (; count != 0; count >>= 1) {
        if (count & 1) seed = seed * power & NPB_RANDOM_MASK;
        power = power * power & NPB_RANDOM_MASK;
    }
    return seed;
}

/* Two sequences, of the odd and the even numbers, since each product waits for the one before. */
void npb_random_fill(uint64_t *seed, uint64_t count, double *numbers) {
    const uint64_t twice = npb_random_jump(NPB_RANDOM_MULTIPLIER, 1);
    uint64_t odd = npb_random_jump(*seed, 1);
    uint64_t even = npb_random_jump(*seed, 2);
    uint64_t at = 0;
    for (; at + 2 <= count; at += 2) {
        numbers[at] = (double)(int64_t)odd * 0x1p-46;
        numbers[at + 1] = (double)(int64_t)even * 0x1p-46;
        odd = odd * twice & NPB_RANDOM_MASK;
        even = even * twice & NPB_RANDOM_MASK;
    }
    if (at < count) numbers[at] = (double)(int64_t)odd * 0x1p-46;
    *seed = npb_random_jump(*seed, count);
}
