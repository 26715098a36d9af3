// SPDX-License-Identifier: Apache-2.0
//
// Ends with a full pipe as standard output, so that its end takes until somebody reads.
#include "far.h"

#include <fcntl.h>

int main(void) {
    uint8_t* const memory = malloc(40 * MIB);
    for (size_t at = 0; at < 40 * MIB; at += PAGE) memory[at] = (uint8_t)at;
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    CHECK(fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) == 0);
    while (write(STDOUT_FILENO, ".", 1) == 1) {
    }
    CHECK(fcntl(STDOUT_FILENO, F_SETFL, flags) == 0);
    printf("done\n");
    return 0;
}
