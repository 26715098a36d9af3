/* SPDX-License-Identifier: Apache-2.0
 *
 * What is against the rules of shared memory, or at their edges; one case in a run.
 *
 *     rules CASE        below `hanare launch -n N`
 *
 * Prints "right" in each task, or says what is wrong and returns 1. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hanare/comm.h"
#include "task.h"

static void locks(void) {
    expect(HANARE_STATUS_INVALID_ARGUMENT, hanare_dsm_unlock(dsm, 3), "unlock of a free lock");
    expect(HANARE_STATUS_INVALID_ARGUMENT, hanare_dsm_lock(dsm, HANARE_DSM_LOCKS), "no such lock");
    must(hanare_dsm_lock(dsm, 3), "lock");
    expect(HANARE_STATUS_BUSY, hanare_dsm_lock(dsm, 3), "lock twice");
    must(hanare_dsm_unlock(dsm, 3), "unlock");
    expect(HANARE_STATUS_INVALID_ARGUMENT, hanare_dsm_unlock(dsm, 3), "unlock twice");
}

static void barriers(void) {
    expect(size == 1 ? HANARE_STATUS_OK : HANARE_STATUS_INVALID_ARGUMENT,
           hanare_dsm_barrier(dsm, 10 + rank), "different barriers");
    must(hanare_dsm_barrier(dsm, 20), "the same barrier afterwards");
}

static void memory(void) {
    void *address = NULL;
    expect(HANARE_STATUS_NO_MEMORY, hanare_dsm_allocate(dsm, (size_t)1 << 45, &address),
           "more than there is");
    expect(HANARE_STATUS_NOT_FOUND, hanare_dsm_free(dsm, &address), "free of a variable");
    must(hanare_dsm_free(dsm, NULL), "free of NULL");
    for (int round = 0; round < 3; ++round) {
        must(hanare_dsm_lock(dsm, 7), "lock");
        must(hanare_dsm_allocate(dsm, 100000, &address), "allocate");
        must(hanare_dsm_unlock(dsm, 7), "unlock");
        for (size_t i = 0; i < 100000; ++i) {
            if (((char *)address)[i] != 0) wrong("memory that is not zero", HANARE_STATUS_OK);
        }
        memset(address, 1, 100000);
        /* So that nobody else gets it between. */
        must(hanare_dsm_lock(dsm, 7), "lock");
        must(hanare_dsm_free(dsm, address), "free");
        expect(HANARE_STATUS_NOT_FOUND, hanare_dsm_free(dsm, address), "free twice");
        must(hanare_dsm_unlock(dsm, 7), "unlock");
    }
    int local = 0;
    expect(HANARE_STATUS_INVALID_ARGUMENT, hanare_dsm_distribute(dsm, &local, sizeof local),
           "distribute of the stack");
}

static void communication(void) {
    hanare_comm *comm = NULL;
    expect(HANARE_STATUS_BUSY, hanare_comm_open(NULL, &comm), "communication, too");
    hanare_dsm *second = NULL;
    expect(HANARE_STATUS_BUSY, hanare_dsm_start(NULL, &second), "started twice");
}

/* A large variable, in many questions. */
static char large[100000];
static void distribution(void) {
    if (rank == size - 1) {
        for (size_t i = 0; i < sizeof large; ++i) large[i] = (char)(i * 7);
        must(hanare_dsm_distribute(dsm, large, sizeof large), "distribute");
    }
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (size_t i = 0; i < sizeof large; ++i) {
        if (large[i] != (char)(i * 7))
            wrong("a variable that was not distributed", HANARE_STATUS_OK);
    }
}

/* Children have none of it, and do no harm. */
static void forks(void) {
    get_shared(4096);
    shared[rank] = rank;
    const pid_t child = fork();
    if (child == 0) {
        if (hanare_dsm_barrier(dsm, 1) != HANARE_STATUS_FORKED) _exit(1);
        if (hanare_dsm_lock(dsm, 1) != HANARE_STATUS_FORKED) _exit(2);
        signal(SIGSEGV, SIG_DFL);
        *(volatile uint64_t *)shared = 99;
        _exit(3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) wrong("waitpid", HANARE_STATUS_OK);
    if (!WIFSIGNALED(status)) wrong("a child that goes on", HANARE_STATUS_OK);
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (uint32_t task = 0; task < size; ++task) {
        if (shared[task] != task) wrong("memory after fork", HANARE_STATUS_OK);
    }
}

/* Memory that is not here yet: system calls fail, or find it. */
static void system_calls(void) {
    get_shared(1 << 20);
    int ends[2];
    if (pipe(ends) != 0) wrong("pipe", HANARE_STATUS_OK);
    if (write(ends[1], "abcdefgh", 8) != 8) wrong("write", HANARE_STATUS_OK);
    uint64_t *const place = shared + 4096 * (size_t)(rank + 1) / 8 * 16;
    const ssize_t got = read(ends[0], place, 8);
    if (got < 0 && errno == EFAULT) {
        *place = 1;
        if (read(ends[0], place, 8) != 8) wrong("read into touched memory", HANARE_STATUS_OK);
    } else if (got != 8) {
        wrong("read", HANARE_STATUS_OK);
    }
    if (memcmp(place, "abcdefgh", 8) != 0) wrong("what was read", HANARE_STATUS_OK);
}

/* How many MiB a line of /proc/self/status says. */
static uint64_t status_mib(const char *name) {
    FILE *const file = fopen("/proc/self/status", "r");
    char line[200];
    unsigned long long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
    }
    if (file != NULL) fclose(file);
    return kib / 1024;
}

/* What copies and twins took comes back: of the first there stay 64 MiB, of the second 32. */
enum { kMib = 120, kPages = kMib * 256, kRewrites = 20 };
static void memory_comes_back(void) {
    const uint64_t anon_mib = status_mib("RssAnon:");
    const size_t words = 4096 / sizeof *shared;
    get_shared((size_t)kPages * 4096);
    for (uint64_t round = 0; round < kRewrites; ++round) {
        for (size_t page = 0; rank == 0 && page < kPages; ++page) shared[page * words] = round;
        must(hanare_dsm_barrier(dsm, 1), "barrier");
        /* The last one reads now and then, others write beside. */
        for (size_t page = 0; rank != 0 && page < kPages && round % 10 == 0; ++page) {
            if (shared[page * words] != round) wrong("what was written", HANARE_STATUS_OK);
            if (rank != size - 1 && round == 0) shared[page * words + rank] = rank;
        }
        must(hanare_dsm_barrier(dsm, 2), "barrier");
    }
    const uint64_t more_mib = status_mib("RssAnon:") - anon_mib;
    if (more_mib > 32 + 24) {
        fprintf(stderr, "task %u: %d MiB more of its own\n", rank, (int)more_mib);
        exit(1);
    }
    if (rank == size - 1 && rank != 0 && getenv("RULES_APART") != NULL &&
        status_mib("RssShmem:") > 64 + 24) {
        fprintf(stderr, "task %u: %d MiB in common\n", rank, (int)status_mib("RssShmem:"));
        exit(1);
    }
}

/* Several threads of each task, on the same blocks and the same locks. */
enum { kThreads = 4, kRounds = 300 };
static void *raise_sums(void *argument) {
    const uint64_t thread = (uint64_t)(uintptr_t)argument;
    const uint64_t own = 1 + rank * kThreads + thread;
    for (uint64_t round = 1; round <= kRounds; ++round) {
        must(hanare_dsm_lock(dsm, (uint32_t)(round % 3)), "lock");
        shared[600 * (round % 3)] += 1;
        must(hanare_dsm_unlock(dsm, (uint32_t)(round % 3)), "unlock");
        shared[2048 + own] += round;
    }
    return NULL;
}
static void threads(void) {
    get_shared(1 << 16);
    pthread_t ids[kThreads];
    for (uint64_t i = 0; i < kThreads; ++i) {
        if (pthread_create(&ids[i], NULL, raise_sums, (void *)(uintptr_t)i) != 0) {
            wrong("pthread_create", HANARE_STATUS_OK);
        }
    }
    for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    for (int lock = 0; lock < 3; ++lock) {
        if (shared[600 * lock] != (uint64_t)size * kThreads * kRounds / 3) {
            wrong("a sum under a lock", HANARE_STATUS_OK);
        }
    }
    for (uint32_t i = 1; i <= size * kThreads; ++i) {
        if (shared[2048 + i] != (uint64_t)kRounds * (kRounds + 1) / 2) {
            wrong("a sum of a thread", HANARE_STATUS_OK);
        }
    }
}

/* A thread has a lock that other tasks want before they come to the barrier where its task is. */
static _Atomic int is_at_barrier;
static void *give_lock(void *argument) {
    (void)argument;
    must(hanare_dsm_lock(dsm, 9), "lock");
    is_at_barrier = -1;
    while (is_at_barrier != 1) sched_yield();
    for (int i = 0; i < 1000; ++i) sched_yield();
    shared[1] += 1;
    must(hanare_dsm_unlock(dsm, 9), "unlock");
    return NULL;
}
static void thread_in_barrier(void) {
    get_shared(4096);
    pthread_t thread;
    if (rank == 0) {
        if (pthread_create(&thread, NULL, give_lock, NULL) != 0) {
            wrong("pthread_create", HANARE_STATUS_OK);
        }
        while (is_at_barrier != -1) sched_yield();
    }
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    if (rank == 0) {
        is_at_barrier = 1;
    } else {
        must(hanare_dsm_lock(dsm, 9), "lock");
        if (shared[1] != 1) wrong("what was written under the lock", HANARE_STATUS_OK);
        must(hanare_dsm_unlock(dsm, 9), "unlock");
    }
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    if (rank == 0) pthread_join(thread, NULL);
}

/* The last task goes away; the others wait for it. */
/* A write at the beginning of memory takes no more with it than one elsewhere does. */
static void first_block(void) {
    enum { WORDS = 512, BLOCKS = 2000 };
    get_shared((size_t)BLOCKS * WORDS * sizeof *shared);
    if (rank == 0) memset(shared, 1, (size_t)BLOCKS * WORDS * sizeof *shared);
    must(hanare_dsm_barrier(dsm, 1), "barrier");
    volatile uint64_t sum = 0;
    for (int i = 0; i < BLOCKS; ++i) sum += shared[i * WORDS];
    must(hanare_dsm_barrier(dsm, 2), "barrier");
    if (rank == 0) shared[0] = 2;
    must(hanare_dsm_barrier(dsm, 3), "barrier");
    hanare_dsm_counters counters = {.struct_size = sizeof counters};
    must(hanare_dsm_count(dsm, &counters), "count");
    if (counters.invalidated_blocks > 1) wrong("blocks nobody has written to", HANARE_STATUS_OK);
    if (shared[0] != 2) wrong("the block somebody has written to", HANARE_STATUS_OK);
}

static void lost_in_barrier(void) {
    if (rank == size - 1) kill(getpid(), SIGKILL);
    expect(HANARE_STATUS_PEER_LOST, hanare_dsm_barrier(dsm, 1), "barrier without a task");
    _exit(0);
}
/* Who is the last to say that it is there may not hear that it was heard. */
static void pass_before_loss(void) {
    const hanare_status status = hanare_dsm_barrier(dsm, 1);
    if (status != HANARE_STATUS_PEER_LOST) must(status, "barrier");
}
static void lost_with_lock(void) {
    if (rank == size - 1) must(hanare_dsm_lock(dsm, 5), "lock");
    pass_before_loss();
    if (rank == size - 1) kill(getpid(), SIGKILL);
    expect(HANARE_STATUS_PEER_LOST, hanare_dsm_lock(dsm, 5), "lock of a lost task");
    _exit(0);
}
static void lost_home(void) {
    get_shared(1 << 20);
    uint64_t *const place = shared + (1 << 16);
    if (rank == size - 1) *place = 5;
    pass_before_loss();
    if (rank == size - 1) kill(getpid(), SIGKILL);
    if (hanare_dsm_barrier(dsm, 2) != HANARE_STATUS_PEER_LOST) wrong("barrier", HANARE_STATUS_OK);
    fprintf(stderr, "reading %d\n", (int)*(volatile uint64_t *)place);
    _exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} kCases[] = {
    {"locks", locks},
    {"barriers", barriers},
    {"memory", memory},
    {"communication", communication},
    {"distribution", distribution},
    {"forks", forks},
    {"system_calls", system_calls},
    {"first_block", first_block},
    {"memory_comes_back", memory_comes_back},
    {"threads", threads},
    {"thread_in_barrier", thread_in_barrier},
    {"lost_in_barrier", lost_in_barrier},
    {"lost_with_lock", lost_with_lock},
    {"lost_home", lost_home},
};

/* So that one task has something where shared memory would lie. */
static void occupy(void) {
    const char *const where = getenv("RULES_OCCUPIED");
    if (where == NULL || strcmp(getenv("HANARE_RANK"), "1") != 0) return;
    void *const place = (void *)strtoull(where, NULL, 0);
    if (mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
        place) {
        wrong("occupied", HANARE_STATUS_OK);
    }
}

int main(int argc, char **argv) {
    occupy();
    begin();
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
        if (argc < 2 || strcmp(kCases[i].name, argv[1]) != 0) continue;
        kCases[i].run();
        must(hanare_dsm_finish(dsm), "finish");
        printf("right\n");
        return 0;
    }
    fprintf(stderr, "rules: no such case\n");
    return 2;
}
