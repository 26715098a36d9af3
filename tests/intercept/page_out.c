// SPDX-License-Identifier: Apache-2.0
//
// Advises the system to page out all that is zero at first: an array, of which whole blocks are far
// memory, and what lies around it, which is not.
#include "far.h"

static uint64_t array[48 * MIB / 8];

// The linker's.
extern char edata[];
extern char _end[];

int main(void) {
    const size_t words = sizeof array / sizeof *array;
    const uintptr_t begin = ((uintptr_t)edata + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uint64_t digest = 0;
    for (uint64_t turn = 1; turn <= 3; ++turn) {
        for (size_t i = 0; i < words; ++i) array[i] += i * turn;
        CHECK(madvise((void*)begin, (uintptr_t)_end - begin, MADV_PAGEOUT) == 0);
        for (size_t i = 0; i < words; ++i) digest = digest * 31 + array[i];
    }
    printf("page_out %016llx\n", (unsigned long long)digest);
    return 0;
}
