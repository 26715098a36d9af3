/* SPDX-License-Identifier: Apache-2.0
 *
 * test0 of the DLM paper (2009, section 4.1): an array of ints is written from its beginning to its
 * end, then again every 1024th element from the beginning, one int of each page of 4 KiB.
 */
#include "int_passes.h"

#ifndef SIZE_MIB
#define SIZE_MIB 512
#endif
#define COUNT ((size_t)SIZE_MIB * 1024 * 1024 / sizeof(uint32_t))

dlm uint32_t ints[COUNT];

int main(int argc, char **argv) {
    bench_arguments(argc, argv, NULL, 0);
    const double begin = bench_seconds();
    write_all(ints, COUNT, 1);
    BENCH_BARRIER();
    const double middle = bench_seconds();
    write_some(ints, COUNT, PAGE_INTS, 2);
    BENCH_BARRIER();
    const double end = bench_seconds();
    print_pass("first write", COUNT, middle - begin);
    print_pass("one int per page", COUNT / PAGE_INTS, end - middle);
    uint64_t digest = 0;
    const bool is_right = check_ints(ints, COUNT, PAGE_INTS, 2, 1, &digest);
    const struct bench_result result = {
        .program = "test0",
        .size = BENCH_TEXT(SIZE_MIB) "MiB",
        .bytes = sizeof(ints),
        .seconds = end - begin,
        .rate = 2e-6 * sizeof(ints) / (end - begin), /* of pages that were gone through */
        .unit = "MB/s",
        .digest = digest,
        .wrong = is_right ? NULL : "an int is not as it was written",
    };
    return bench_finish(&result);
}
