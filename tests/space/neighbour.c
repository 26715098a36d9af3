/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbour DIRECTORY: each task says in a file where its array is, reads that of the next task
 * where it lies, writes a word into it, and waits for the word of the task before it.  Prints
 * "right". */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 100000 };

static char path[4096];

static const char *name_of(const char *directory, int task, const char *end) {
    snprintf(path, sizeof path, "%s/%d%s", directory, task, end);
    return path;
}

static uint64_t *published(const char *directory, int task) {
    void *address = NULL;
    FILE *file;
    while ((file = fopen(name_of(directory, task, ""), "r")) == NULL) usleep(1000);
    if (fscanf(file, "%p", &address) != 1) abort();
    fclose(file);
    return address;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const int task = atoi(getenv("HANARE_SPACE_TASK"));
    const int tasks = atoi(getenv("HANARE_SPACE_TASKS"));
    uint64_t *own = malloc((WORDS + 1) * sizeof *own);
    for (uint64_t i = 0; i < WORDS; i++) own[i] = i * 3 + (uint64_t)task;
    own[WORDS] = 0;

    char partial[4096];
    snprintf(partial, sizeof partial, "%s", name_of(argv[1], task, ".new"));
    FILE *file = fopen(partial, "w");
    fprintf(file, "%p\n", (void *)own);
    fclose(file);
    if (rename(partial, name_of(argv[1], task, "")) != 0) return 1;

    const int next = (task + 1) % tasks;
    uint64_t *theirs = published(argv[1], next);
    for (uint64_t i = 0; i < WORDS; i++) {
        if (theirs[i] != i * 3 + (uint64_t)next) return puts("something else lies there"), 1;
    }
    atomic_store((_Atomic uint64_t *)&theirs[WORDS], 1000 + (uint64_t)task);
    const uint64_t wanted = 1000 + (uint64_t)((task + tasks - 1) % tasks);
    while (atomic_load((_Atomic uint64_t *)&own[WORDS]) != wanted) usleep(1000);
    puts("right");
    /* Not before all have read. */
    file = fopen(name_of(argv[1], task, ".done"), "w");
    fclose(file);
    for (int other = 0; other < tasks; other++) {
        while (access(name_of(argv[1], other, ".done"), F_OK) != 0) usleep(1000);
    }
    return 0;
}
