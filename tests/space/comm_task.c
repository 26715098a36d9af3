/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication between tasks of one space (`hanare launch -n 3 hanare space exec comm_task`):
 * operations on ordinary memory of a task that is stopped, that revokes its keys, that ends, or
 * closes its communicator (argument "close").
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "hanare/hanare.h"
#include "tasks.h"

enum { BYTES = 1 << 20, LIMIT_MS = 30000 };

static hanare_comm *comm;
static uint32_t rank, size;

static void done(hanare_status status, int line) {
    if (status == HANARE_STATUS_OK) return;
    char text[512];
    hanare_last_error(text, sizeof text);
    printf("line %d: %s\n", line, text);
    fflush(stdout);
    _exit(1);
}
#define DONE(call) done((call), __LINE__)

struct card {
    hanare_capability key;
    pid_t process;
};

static struct card cards[3];

static void exchange_keys(uint32_t region, uint32_t rights) {
    struct card own = {.process = getpid()};
    DONE(hanare_comm_capability(comm, region, rights, &own.key));
    DONE(hanare_comm_allgather(comm, &own, sizeof own, cards, LIMIT_MS));
}

static char state_of(pid_t process) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%*d %*s %c", &state) == 1);
    fclose(file);
    return state;
}

static hanare_status put(const unsigned char *memory, size_t bytes) {
    return hanare_comm_put(comm, 0, &cards[0].key, 0, memory, bytes, LIMIT_MS);
}

/* Its thread cannot answer: what is done is done here. */
static void use_a_stopped_task(void) {
    static unsigned char sent[BYTES], come[BYTES];
    for (size_t i = 0; i < BYTES; i++) sent[i] = (unsigned char)(i * 31 + i / 256);
    CHECK(kill(cards[0].process, SIGSTOP) == 0);
    while (state_of(cards[0].process) != 'T') usleep(1000);
    uint64_t before = 0;
    DONE(put(sent, BYTES));
    DONE(hanare_comm_get(comm, 0, &cards[0].key, 0, come, BYTES, LIMIT_MS));
    CHECK(memcmp(sent, come, BYTES) == 0);
    DONE(hanare_comm_fetch_op(comm, 0, &cards[0].key, 8, HANARE_FETCH_SWAP, 8, 77, 0, LIMIT_MS,
                              &before));
    CHECK(memcmp(&before, sent + 8, sizeof before) == 0);
    CHECK(hanare_comm_get(comm, 0, &cards[0].key, BYTES - 1, come, 2, LIMIT_MS) ==
          HANARE_STATUS_OUT_OF_RANGE);
    hanare_capability forged = cards[0].key;
    ((unsigned char *)&forged)[sizeof forged - 1] ^= 1;
    CHECK(hanare_comm_get(comm, 0, &forged, 0, come, 2, LIMIT_MS) == HANARE_STATUS_BAD_KEY);
    CHECK(kill(cards[0].process, SIGCONT) == 0);
}

static void put_until(hanare_status expected) {
    static unsigned char sent[BYTES / 4];
    memset(sent, (int)rank, sizeof sent);
    hanare_status status = HANARE_STATUS_OK;
    while (status == HANARE_STATUS_OK) status = put(sent, sizeof sent);
    if (status != expected) printf("%s\n", hanare_status_name(status));
    CHECK(status == expected);
}

static void withdraw_keys(uint32_t region, unsigned char *memory) {
    while (memory[1000] != 1 && memory[1000] != 2) usleep(1000);
    usleep(20000);
    DONE(hanare_comm_revoke(comm, region));
    memset(memory, 99, BYTES);
    usleep(20000);
    for (size_t i = 0; i < BYTES; i++) CHECK(memory[i] == 99);
}

int main(int argc, char **argv) {
    DONE(hanare_comm_open(NULL, &comm));
    DONE(hanare_comm_rank(comm, &rank));
    DONE(hanare_comm_size(comm, &size));
    CHECK(size == 3);
    const uint32_t rights = HANARE_RIGHT_READ | HANARE_RIGHT_WRITE | HANARE_RIGHT_FETCH_OP;
    unsigned char *memory = calloc(1, BYTES);
    uint32_t region = 0;
    DONE(hanare_comm_expose(comm, memory, BYTES, rights, &region));
    exchange_keys(region, rights);
    if (rank == 1) use_a_stopped_task();
    DONE(hanare_comm_barrier(comm, LIMIT_MS));

    if (rank == 0) {
        withdraw_keys(region, memory);
    } else {
        put_until(HANARE_STATUS_BAD_KEY);
    }
    exchange_keys(region, rights);
    if (rank == 0) {
        while (memory[1000] != 1 && memory[1000] != 2) usleep(1000);
        usleep(20000);
        if (argc > 1 && strcmp(argv[1], "close") == 0) {
            DONE(hanare_comm_close(comm));
            memset(memory, 99, BYTES);
            usleep(20000);
            for (size_t i = 0; i < BYTES; i++) CHECK(memory[i] == 99);
            free(memory);
        }
        _exit(0);
    }
    put_until(HANARE_STATUS_PEER_LOST);
    printf("right\n");
    fflush(stdout);
    _exit(0);
}
