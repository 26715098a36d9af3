/* SPDX-License-Identifier: Apache-2.0
 *
 * A write with one swap (DLM paper, 2009, section 5.1.2, Fig. 13): WRITES ints, STRIDE_KIB apart,
 * are written in far memory, and the mean time of one is what counts.
 *
 * The whole array is written before, so that what goes out is dirty, and none of its blocks is
 * written twice by the writes that count.  Behind their places lie another REST_MIB, which are what
 * local memory holds before the first of them.  If it holds no more, and blocks are not above the
 * stride, each write fetches a block and puts out another.
 */
#include "int_passes.h"

#ifndef WRITES
#define WRITES 1000
#endif
#ifndef STRIDE_KIB
#define STRIDE_KIB 2048 /* the paper's, at least its largest page */
#endif
#ifndef REST_MIB
#define REST_MIB 40 /* in all just below 2 GiB, so that gcc needs no other memory model */
#endif
#define STEP ((size_t)STRIDE_KIB * 1024 / sizeof(uint32_t))
#define PLACES (WRITES * STEP)
#define COUNT (PLACES + (size_t)REST_MIB * 1024 * 1024 / sizeof(uint32_t))

dlm uint32_t ints[COUNT];

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    write_all(ints, COUNT, 1);
    BENCH_BARRIER();
    const double begin = bench_seconds();
    write_some(ints, PLACES, STEP, 2);
    BENCH_BARRIER();
    const double seconds = bench_seconds() - begin;
    print_pass("write with one swap", WRITES, seconds);
    uint64_t digest = 0;
    const bool are_places_right = check_ints(ints, PLACES, STEP, 2, 1, &digest);
    const bool is_rest_right = count_wrong(ints, PLACES, COUNT, 1) == 0;
    const struct bench_result result = {
        .program = "swap_write",
        .size = BENCH_TEXT(WRITES) "x" BENCH_TEXT(STRIDE_KIB) "KiB",
        .bytes = sizeof(ints),
        .seconds = seconds,
        .rate = seconds / WRITES * 1e6,
        .unit = "us",
        .digest = digest,
        .wrong = are_places_right && is_rest_right ? NULL : "an int is not as it was written",
    };
    return bench_finish(&result);
}
