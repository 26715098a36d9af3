// SPDX-License-Identifier: Apache-2.0
//
// Goes along the columns of an array of rows, which needs a few pages of each block, pass after
// pass the same ones.
#include "far.h"

#define ROW ((size_t)64 << 10)
#define ROWS ((size_t)1024)
#define COLUMNS 64

int main(void) {
    uint64_t* const array =
        mmap(NULL, ROWS * ROW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(array != MAP_FAILED);
    const size_t words = ROW / sizeof *array;
    for (size_t i = 0; i < ROWS * words; ++i) array[i] = i * 0x9e3779b97f4a7c15u;
    uint64_t sum = 0;
    for (size_t column = 0; column < COLUMNS; ++column) {
        for (size_t row = 0; row < ROWS; ++row) {
            const size_t i = row * words + column;
            CHECK(array[i] == i * 0x9e3779b97f4a7c15u);
            sum += array[i] * (column + 1);
        }
    }
    printf("%llx\n", (unsigned long long)sum);
    return 0;
}
