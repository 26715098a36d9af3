/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals: task 0 computes and never looks at the library, and the handlers of what the others
 * signal run all the same, in its thread.  Run with `hanare launch -n 4 example_comm_signal`.
 */
#include "comm_example.h"

#include <string.h>

enum { SIGNALS = 200, ADD = 7 };

static volatile uint64_t sum;
static volatile uint32_t handled;

/* Interrupts what task 0 does: as in a signal handler. */
static void add(void *context, const void *arguments, size_t bytes) {
    uint64_t number = 0;
    (void)context;
    if (bytes == sizeof number) memcpy(&number, arguments, sizeof number);
    sum = sum + number;
    handled = handled + 1;
}

int main(void) {
    hanare_comm *comm;
    uint32_t rank, size;
    check(hanare_comm_open(NULL, &comm), "open");
    check(hanare_comm_rank(comm, &rank), "rank");
    check(hanare_comm_size(comm, &size), "size");
    hanare_capability key;
    check(hanare_comm_set_signal_handler(comm, ADD, add, NULL), "handler");
    check(hanare_comm_signal_capability(comm, &key), "capability");
    if (rank == 0) check(hanare_comm_interrupt_this_thread(comm, 1), "interrupt");
    check(hanare_comm_broadcast(comm, &key, sizeof key, 0, LIMIT), "broadcast");
    if (rank == 0) {
        volatile double value = 1;
        while (handled < SIGNALS * (size - 1)) value = value * 1.000001 + 1;
        uint64_t expected = 0;
        for (uint32_t task = 1; task < size; task++) expected += (uint64_t)SIGNALS * task;
        expect(sum == expected, "the sum of what was signalled");
        check(hanare_comm_interrupt_this_thread(comm, 0), "interrupt no more");
    } else {
        const uint64_t number = rank;
        for (int i = 0; i < SIGNALS; i++) {
            hanare_status status;
            do {
                status = hanare_comm_signal(comm, 0, &key, ADD, &number, sizeof number, LIMIT);
            } while (status == HANARE_STATUS_FULL || status == HANARE_STATUS_BUSY);
            check(status, "signal");
        }
    }
    check(hanare_comm_barrier(comm, LIMIT), "barrier");
    if (rank == 0) printf("signals: as expected, %u tasks\n", size);
    check(hanare_comm_close(comm), "close");
    return 0;
}
