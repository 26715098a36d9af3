/* SPDX-License-Identifier: Apache-2.0
 *
 * Linked to a program of bench/dlm with --wrap=clock_gettime: when the program has looked at its
 * clock twice, a bit of the byte OFFSET of its array ARRAY is another, and so it is later when the
 * program has written there again.
 */
#include <time.h>

extern unsigned char ARRAY[];
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    static int calls = 0;
    static unsigned char damaged;
    unsigned char *const byte = ARRAY + OFFSET;
    if (++calls >= 2 && *byte != damaged) {
        *byte ^= 0x10;
        damaged = *byte;
    }
    return __real_clock_gettime(clock, time);
}
