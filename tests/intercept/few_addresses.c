// SPDX-License-Identifier: Apache-2.0
//
// Memory in one piece, which leaves little else of what `ulimit -v` allows.
#include "far.h"

#define DATA_BYTES (120 * MIB)

int main(void) {
    unsigned char* data = (unsigned char*)far_memory(DATA_BYTES);
    fill(data, DATA_BYTES, 3);
    CHECK(holds(data, DATA_BYTES, 3));
    // For those who tell of plain memory from a thread of their own.
    CHECK(usleep(100000) == 0);
    printf("%zu MiB\n", DATA_BYTES / MIB);
    return 0;
}
