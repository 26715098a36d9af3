// SPDX-License-Identifier: Apache-2.0
//
// Children that need memory while their parent uses all that it may have: each writes, and calls
// exec.  Prints for how many milliseconds the child in the middle, of all when sorted, wrote.
#include "far.h"

#include <sys/wait.h>
#include <time.h>

#define CHILDREN 9
#define DATA_BYTES (64 * MIB)
#define WRITTEN_BYTES (6 * MIB)

static double now_ms(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int in_order(const void* a, const void* b) {
    const double difference = *(const double*)a - *(const double*)b;
    return difference < 0 ? -1 : difference > 0;
}

int main(void) {
    unsigned char* data = (unsigned char*)far_memory(DATA_BYTES);
    double took_ms[CHILDREN];
    for (int turn = 0; turn < CHILDREN; ++turn) {
        for (size_t at = 0; at < DATA_BYTES; at += PAGE) data[at] = (unsigned char)(turn + 1);
        // The parent has learnt by then that the last child is gone.
        CHECK(usleep(250000) == 0);
        for (size_t at = 0; at < DATA_BYTES; at += PAGE) data[at] ^= 0x80;
        int ends[2];
        CHECK(pipe(ends) == 0);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            const double began_ms = now_ms();
            for (size_t at = 0; at < WRITTEN_BYTES; at += PAGE) {
                CHECK(data[at] == ((turn + 1) ^ 0x80));
                data[at] = 99;
            }
            const double ms = now_ms() - began_ms;
            CHECK(write(ends[1], &ms, sizeof ms) == (ssize_t)sizeof ms);
            execl("/bin/true", "true", (char*)NULL);
            _exit(1);
        }
        CHECK(read(ends[0], &took_ms[turn], sizeof(double)) == (ssize_t)sizeof(double));
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    }
    qsort(took_ms, CHILDREN, sizeof(double), in_order);
    printf("%.0f\n", took_ms[CHILDREN / 2]);
    return 0;
}
