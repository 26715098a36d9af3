/* SPDX-License-Identifier: Apache-2.0
 *
 * TreadMarks' interface: the numbers below COUNT, which each process adds up in part, under a lock.
 *
 *     tmk_sum COUNT [-- -n N] */
#include <stdio.h>
#include <stdlib.h>

#include "hanare/compat/Tmk.h"

static long *sum;
static int *numbers;

int main(int argc, char **argv) {
    Tmk_startup(argc, argv);
    const int count = argc > 1 ? atoi(argv[1]) : 0;
    if (count < 0 && Tmk_proc_id == Tmk_nprocs - 1) Tmk_errexit("tmk_sum: a negative count");
    if (Tmk_proc_id == 0) {
        sum = Tmk_sbrk(1);
        numbers = Tmk_malloc((size_t)(count < 0 ? 0 : count) * sizeof *numbers);
        if (sum == NULL || numbers == NULL) Tmk_errexit("tmk_sum: no memory for %d", count);
        for (int i = 0; i < count; ++i) numbers[i] = i;
        Tmk_distribute(&sum, sizeof sum);
        Tmk_distribute(&numbers, sizeof numbers);
    }
    Tmk_barrier_mask(Tmk_mask);
    long part = 0;
    for (int i = (int)Tmk_proc_id; i < count; i += (int)Tmk_nprocs) part += numbers[i];
    Tmk_lock_acquire(1);
    *sum += part;
    Tmk_lock_release(1);
    Tmk_barrier(1);
    if (Tmk_proc_id == 0) printf("%u processes: %ld\n", Tmk_nprocs, *sum);
    Tmk_free(Tmk_proc_id == 0 ? numbers : NULL);
    Tmk_exit(0);
    return 0;
}
