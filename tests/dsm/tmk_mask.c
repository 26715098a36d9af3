/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the time when a barrier took a mask of processors, in C as it was then: halves of
 * the processes pass barriers of their own.
 *
 *     tmk_mask [wrong|beyond] */
#include <stdio.h>

#define TMK_BARRIER_TAKES_MASK
#include "hanare/compat/Tmk.h"

int *numbers;

static unsigned make_mask(low, high)
unsigned low, high;
{
    unsigned mask = 0;
    for (; low < high; ++low) mask |= 1u << low;
    return mask;
}

int main(argc, argv)
int argc;
char **argv;
{
    unsigned half, low, high, round, i;
    Tmk_startup(argc, argv);
    if (argc > 1) Tmk_barrier(argv[1][0] == 'w' ? 1u << (1 - Tmk_proc_id) : 1u << 31 | Tmk_mask);
    if (Tmk_proc_id == 0) {
        numbers = (int *)Tmk_malloc(Tmk_nprocs * sizeof(int));
        Tmk_distribute((char *)&numbers, sizeof(numbers));
    }
    Tmk_barrier(Tmk_mask);
    half = Tmk_nprocs / 2;
    low = Tmk_proc_id < half ? 0 : half;
    high = Tmk_proc_id < half ? half : Tmk_nprocs;
    for (round = 1; round <= 50; ++round) {
        /* The halves are not in step. */
        numbers[Tmk_proc_id] = (int)round;
        Tmk_barrier(make_mask(low, high));
        for (i = low; i < high; ++i) {
            if (numbers[i] != (int)round) Tmk_errexit("process %u, round %u", i, round);
        }
        Tmk_barrier(make_mask(low, high));
    }
    Tmk_barrier(Tmk_mask);
    for (i = 0; i < Tmk_nprocs; ++i) {
        if (numbers[i] != 50) Tmk_errexit("process %u at the end", i);
    }
    if (Tmk_proc_id == 0) printf("right\n");
    Tmk_exit(0);
    return 0;
}
