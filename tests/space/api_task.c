/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of api_test.cpp, or of `hanare space run`:
 *
 *   self            prints which it is
 *   list NAME N     publishes a list of N nodes, waits until somebody has doubled its values
 *   walk NAME       finds it, doubles the values by following its pointers
 *   hold NAME       publishes a robust mutex that it holds, and waits to be killed
 *   take NAME       publishes "seen" once it has found it, and takes it from who was killed
 *   found NAME      waits until somebody has published it
 *   ready           prints "ready" and waits to be killed
 *   forked          in a child of fork there is no space
 *   names COUNT     publishes and withdraws so many, in two threads
 *   pool            adds up an array of a pool of its own, larger than its local memory
 *   share NAME      publishes an array of a pool of engine thread, waits until it has changed
 *   change NAME     changes it
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include "hanare/hanare.h"
#include "tasks.h"

enum { WAIT_MS = 60000, THREADS = 2, ARRAY_BYTES = 64 << 20, LOCAL_BYTES = 8 << 20 };

static void done(hanare_status status, int line) {
    if (status == HANARE_STATUS_OK) return;
    char text[512];
    hanare_last_error(text, sizeof text);
    printf("line %d: %s\n", line, text);
    exit(1);
}
#define DONE(call) done((call), __LINE__)

static void wait_for(_Atomic int *word) {
    while (atomic_load(word) == 0) usleep(1000);
}

struct node {
    uint64_t value;
    struct node *next;
};

struct list {
    struct node *first;
    _Atomic int doubled;
};

static void make_list(const char *name, uint64_t count) {
    struct list *list = calloc(1, sizeof *list);
    for (uint64_t i = 0; i < count; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){.value = i, .next = list->first};
        list->first = node;
    }
    DONE(hanare_space_publish(name, list));
    wait_for(&list->doubled);
    uint64_t sum = 0;
    for (const struct node *node = list->first; node != NULL; node = node->next) sum += node->value;
    CHECK(sum == count * (count - 1));
    DONE(hanare_space_withdraw(name));
    void *found = NULL;
    CHECK(hanare_space_find(name, 0, &found) == HANARE_STATUS_TIMEOUT);
}

static void walk(const char *name) {
    void *found = NULL;
    DONE(hanare_space_find(name, WAIT_MS, &found));
    struct list *list = found;
    for (struct node *node = list->first; node != NULL; node = node->next) node->value *= 2;
    atomic_store(&list->doubled, 1);
}

__attribute__((noinline)) static void wait_to_be_killed(void) {
    for (;;) pause();
}

static void hold(const char *name) {
    static pthread_mutex_t mutex;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    void *found = NULL;
    DONE(hanare_space_find("mutex", WAIT_MS, &found));
    pthread_mutex_t *shared = found;
    CHECK(pthread_mutex_init(shared, &kind) == 0 && pthread_mutex_lock(shared) == 0);
    DONE(hanare_space_publish(name, &mutex));
    wait_to_be_killed();
}

/* The mutex lies here, and its first holder is another task. Names go with who published them, so
 * that the holder may be killed only once its name has been found: "seen" says so. */
static void take(const char *name) {
    static pthread_mutex_t mutex;
    DONE(hanare_space_publish("mutex", &mutex));
    void *found = NULL;
    DONE(hanare_space_find(name, WAIT_MS, &found));
    DONE(hanare_space_publish("seen", &mutex));
    CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    /* Its names go as soon as the space has seen its end. */
    while (hanare_space_find(name, 0, &found) == HANARE_STATUS_OK) usleep(1000);
}

static void forked(void) {
    const pid_t child = fork();
    if (child == 0) {
        uint32_t task = 0;
        _exit(hanare_space_self(&task) == HANARE_STATUS_NOT_FOUND ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

struct names {
    int thread;
    int count;
};

static void *publish_names(void *context) {
    const struct names *names = context;
    for (int i = 0; i < names->count; i++) {
        char name[48];
        snprintf(name, sizeof name, "%d.%d.%d", (int)getpid(), names->thread, i % 50);
        DONE(hanare_space_publish(name, name));
        CHECK(hanare_space_publish(name, name) == HANARE_STATUS_BUSY);
        void *found = NULL;
        DONE(hanare_space_find(name, 0, &found));
        CHECK(found == name);
        DONE(hanare_space_withdraw(name));
    }
    return NULL;
}

static void names(int count) {
    pthread_t threads[THREADS];
    struct names each[THREADS];
    for (int i = 0; i < THREADS; i++) {
        each[i] = (struct names){.thread = i, .count = count};
        CHECK(pthread_create(&threads[i], NULL, publish_names, &each[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static uint32_t *open_array(const char *engine, hanare_pool **pool) {
    const hanare_pool_options options = {
        .struct_size = sizeof options, .local_bytes = LOCAL_BYTES, .engine = engine};
    DONE(hanare_pool_open(&options, pool));
    void *memory = NULL;
    DONE(hanare_alloc(*pool, ARRAY_BYTES, NULL, &memory));
    uint32_t *array = memory;
    for (uint32_t i = 0; i < ARRAY_BYTES / sizeof *array; i++) array[i] = i * 2654435761u;
    return array;
}

static void check_array(const uint32_t *array, uint32_t added) {
    for (uint32_t i = 0; i < ARRAY_BYTES / sizeof *array; i++) {
        CHECK(array[i] == i * 2654435761u + added);
    }
}

static void close_array(hanare_pool *pool, uint32_t *array) {
    DONE(hanare_free(pool, array));
    DONE(hanare_pool_close(pool));
}

struct shared {
    uint32_t *array;
    _Atomic int changed;
};

static void share(const char *name) {
    hanare_pool *pool = NULL;
    static struct shared shared;
    shared.array = open_array("thread", &pool);
    DONE(hanare_space_publish(name, &shared));
    wait_for(&shared.changed);
    check_array(shared.array, 5);
    hanare_counters counters = {.struct_size = sizeof counters};
    DONE(hanare_stats(pool, NULL, &counters));
    CHECK(counters.frame_bytes <= LOCAL_BYTES);
    close_array(pool, shared.array);
}

static void change(const char *name) {
    void *found = NULL;
    DONE(hanare_space_find(name, WAIT_MS, &found));
    struct shared *shared = found;
    check_array(shared->array, 0);
    for (uint32_t i = 0; i < ARRAY_BYTES / sizeof *shared->array; i++) shared->array[i] += 5;
    atomic_store(&shared->changed, 1);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    const char *name = count > 2 ? words[2] : "";
    if (strcmp(what, "self") == 0) {
        uint32_t task = 0;
        DONE(hanare_space_self(&task));
        printf("%u\n", task);
        return 0;
    }
    if (strcmp(what, "list") == 0) make_list(name, strtoull(words[3], NULL, 10));
    if (strcmp(what, "walk") == 0) walk(name);
    if (strcmp(what, "hold") == 0) hold(name);
    if (strcmp(what, "take") == 0) take(name);
    if (strcmp(what, "found") == 0) {
        void *found = NULL;
        DONE(hanare_space_find(name, WAIT_MS, &found));
    }
    if (strcmp(what, "ready") == 0) {
        puts("ready");
        fflush(stdout);
        wait_to_be_killed();
    }
    if (strcmp(what, "forked") == 0) forked();
    if (strcmp(what, "names") == 0) names(atoi(name));
    if (strcmp(what, "pool") == 0) {
        hanare_pool *pool = NULL;
        uint32_t *array = open_array("auto", &pool);
        check_array(array, 0);
        close_array(pool, array);
    }
    if (strcmp(what, "share") == 0) share(name);
    if (strcmp(what, "change") == 0) change(name);
    puts("right");
    return 0;
}
