/* SPDX-License-Identifier: Apache-2.0
 *
 * test1 of the DLM paper (2009, section 5.1.1, Fig. 8): an array of ints is written (1) from its
 * beginning to its end for the first time, (2) one int of each page of 4 KiB, (3) from beginning to
 * end again.  The paper has 8 G ints and varies the part that is in local memory, and the DLM page.
 *
 * All ints are checked, outside of the times, after (2), where those of (1) and (2) are there, and
 * after (3).
 */
#include "int_passes.h"

#ifndef SIZE_MIB
#define SIZE_MIB 512
#endif
#define COUNT ((size_t)SIZE_MIB * 1024 * 1024 / sizeof(uint32_t))

dlm uint32_t ints[COUNT];

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    uint64_t digest = 0;
    double times[3];
    double begin = bench_seconds();
    write_all(ints, COUNT, 1);
    BENCH_BARRIER();
    times[0] = bench_seconds() - begin;

    begin = bench_seconds();
    write_some(ints, COUNT, PAGE_INTS, 2);
    BENCH_BARRIER();
    times[1] = bench_seconds() - begin;
    const bool is_middle_right = check_ints(ints, COUNT, PAGE_INTS, 2, 1, &digest);

    begin = bench_seconds();
    write_all(ints, COUNT, 3);
    BENCH_BARRIER();
    times[2] = bench_seconds() - begin;
    const bool is_end_right = check_ints(ints, COUNT, PAGE_INTS, 3, 3, &digest);

    print_pass("(1) first write", COUNT, times[0]);
    print_pass("(2) one int per page", COUNT / PAGE_INTS, times[1]);
    print_pass("(3) write again", COUNT, times[2]);
    const double seconds = times[0] + times[1] + times[2];
    const struct bench_result result = {
        .program = "test1",
        .size = BENCH_TEXT(SIZE_MIB) "MiB",
        .bytes = sizeof(ints),
        .seconds = seconds,
        .rate = 3e-6 * sizeof(ints) / seconds, /* of pages that were gone through */
        .unit = "MB/s",
        .digest = digest,
        .wrong = !is_middle_right ? "an int is not as (1) or (2) has written it"
                 : !is_end_right  ? "an int is not as (3) has written it"
                                  : NULL,
    };
    return bench_finish(&result);
}
