// SPDX-License-Identifier: Apache-2.0
//
// A static array that is several times larger than local memory.  It ends where a block does, and
// so without randomisation the heap begins with a block.
#include "far.h"

enum { kBlock = 256 << 10 };
static uint64_t array[64 * MIB / 8] __attribute__((aligned(kBlock)));

int main(void) {
    uint64_t random = 3;
    uint64_t digest = 0;
    const size_t words = sizeof array / sizeof *array;
    for (size_t i = 0; i < words; i += 97) CHECK(array[i] == 0);
    for (size_t i = 0; i < words; ++i) array[i] = i * 3;
    for (int i = 0; i < 20000; ++i) {
        const size_t at = below(&random, words);
        CHECK(array[at] >= at * 3);
        array[at] += 1 + (uint64_t)i;
    }
    for (size_t i = 0; i < words; ++i) digest = digest * 31 + array[i];
    printf("static_array %016llx\n", (unsigned long long)digest);
    return 0;
}
