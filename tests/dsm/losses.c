/* SPDX-License-Identifier: Apache-2.0
 *
 * What locks say when a task is lost in the middle of something; one case in a run.
 *
 *     losses CASE FOLDER       below `hanare launch -n 3`; an empty folder
 *
 * Ends with status 0 in each task that is left, or says what is wrong and returns 1. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "task.h"

enum { WORDS = 512, BLOCKS = 2000 }; /* of a block; and so many */

static const char *folder;

static volatile uint64_t *block(int number) { return shared + number * WORDS; }

static char path[4096];
static const char *path_of(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static void make_file(const char *name) { fclose(fopen(path_of(name), "w")); }
static void await_file(const char *name) {
    while (access(path_of(name), F_OK) != 0) usleep(1000);
}
/* Past the last barrier, after which a task may go: who is the last to say that it is there may not
 * hear that it was heard. */
static void meet(void) {
    static const char *const kNames[] = {"past-0", "past-1", "past-2"};
    make_file(kNames[rank]);
    for (int i = 0; i < 3; ++i) await_file(kNames[i]);
}

/* The last task is lost before others have read what it has written to.  Memory that is lost with
 * it ends the program; what it held before is not read. */
static void *take_unlearnt(void *unused) {
    (void)unused;
    const hanare_status status = hanare_dsm_lock(dsm, 2);
    if (status == HANARE_STATUS_PEER_LOST) return NULL;
    must(status, "lock");
    for (int i = 0; i < BLOCKS; i += 2) {
        if (*block(i) != 2) wrong("a lock with memory that is old", status);
    }
    must(hanare_dsm_unlock(dsm, 2), "unlock");
    return NULL;
}
static void notices(void) {
    get_shared((size_t)BLOCKS * WORDS * sizeof *shared);
    if (rank == 2) {
        for (int i = 0; i < BLOCKS; ++i) *block(i) = 1;
    }
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    uint64_t sum = 0;
    for (int i = 0; rank == 0 && i < BLOCKS; ++i) sum += *block(i);
    if (rank == 0 && sum != BLOCKS) wrong("sum", HANARE_STATUS_OK);
    if (rank == 2) must(hanare_dsm_lock(dsm, 2), "lock");
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    meet();
    if (rank == 2) {
        /* More runs than a message has room for. */
        for (int i = 0; i < BLOCKS; i += 2) *block(i) = 2;
        usleep(200000); /* for the others to wait, as below */
        must(hanare_dsm_unlock(dsm, 2), "unlock");
        _exit(0);
    }
    if (rank == 1) return;
    pthread_t other;
    pthread_create(&other, NULL, take_unlearnt, NULL);
    take_unlearnt(NULL);
    pthread_join(other, NULL);
}

/* That another lock comes and goes all the time does not hide that this one does not come.  Where
 * it is in the end, nobody is asked for it. */
static void *pass_on(void *unused) {
    (void)unused;
    enum { SECONDS = 2 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const time_t end = now.tv_sec + SECONDS;
    while (now.tv_sec <= end && hanare_dsm_lock(dsm, 7) == HANARE_STATUS_OK) {
        if (hanare_dsm_unlock(dsm, 7) != HANARE_STATUS_OK) break;
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return NULL;
}
static void traffic(void) {
    if (rank == 2) must(hanare_dsm_lock(dsm, 5), "lock");
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    meet();
    if (rank == 2) {
        usleep(200000); /* for the others to wait: nothing shows that they do */
        kill(getpid(), SIGKILL);
    }
    if (rank == 1) {
        pass_on(NULL);
        return;
    }
    pthread_t other;
    pthread_create(&other, NULL, pass_on, NULL);
    expect(HANARE_STATUS_PEER_LOST, hanare_dsm_lock(dsm, 5), "lock of a lost task");
    pthread_join(other, NULL);
}

/* What could not be sent home once is not said to be there the next time. */
static void release(void) {
    get_shared(WORDS * sizeof *shared);
    /* The block's home stays where it is in the end. */
    for (int i = 0; i < 16; ++i) {
        if (rank == (uint32_t)i % 2) *block(0) = (uint64_t)i;
        must(hanare_dsm_barrier(dsm, 1), "barrier");
    }
    hanare_dsm_counters before = {.struct_size = sizeof before};
    hanare_dsm_counters after = {.struct_size = sizeof after};
    must(hanare_dsm_count(dsm, &before), "count");
    block(0)[1 + rank] = 1;
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    must(hanare_dsm_count(dsm, &after), "count");
    const int is_home = after.diffs == before.diffs;
    if (rank < 2 && is_home) block(0)[100] = (uint64_t)getpid();
    must(hanare_dsm_barrier(dsm, 3), "barrier");
    const pid_t home_process = (pid_t)block(0)[100];
    meet();
    if (rank < 2 && is_home) {
        /* Nothing of shared memory shows that the other has written, without sending it home. */
        await_file("written");
        make_file("gone");
        kill(getpid(), SIGKILL);
    }
    must(hanare_dsm_lock(dsm, rank), "lock");
    if (rank < 2) {
        block(0)[10 + rank] = 1;
        make_file("written");
        await_file("gone");
        while (kill(home_process, 0) == 0) usleep(1000);
        expect(HANARE_STATUS_PEER_LOST, hanare_dsm_unlock(dsm, rank), "unlock");
        expect(HANARE_STATUS_PEER_LOST, hanare_dsm_unlock(dsm, rank), "unlock once more");
    }
    expect(HANARE_STATUS_PEER_LOST, hanare_dsm_barrier(dsm, 4), "barrier afterwards");
}

static const struct {
    const char *name;
    void (*run)(void);
} kCases[] = {{"notices", notices}, {"traffic", traffic}, {"release", release}};

int main(int argc, char **argv) {
    begin();
    folder = argc > 2 ? argv[2] : ".";
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
        if (argc < 3 || strcmp(kCases[i].name, argv[1]) != 0) continue;
        kCases[i].run();
        _exit(0);
    }
    fprintf(stderr, "losses: no such case\n");
    return 2;
}
