/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs of which each is one of the tasks of `hanare space run`. */
#ifndef HANARE_TESTS_SPACE_TASKS_H
#define HANARE_TESTS_SPACE_TASKS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(what)                                   \
    do {                                              \
        if (!(what)) {                                \
            printf("line %d: %s\n", __LINE__, #what); \
            exit(1);                                  \
        }                                             \
    } while (0)

static inline int own_task(void) { return atoi(getenv("HANARE_SPACE_TASK")); }
static inline int task_count(void) { return atoi(getenv("HANARE_SPACE_TASKS")); }

/* For others that wait here. */
static inline void come_to(const char *directory, const char *end) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d%s", directory, own_task(), end);
    fclose(fopen(path, "w"));
}

/* Until all have come here; `end` names the place. */
static inline void wait_for_all(const char *directory, const char *end) {
    char path[4096];
    come_to(directory, end);
    for (int other = 0; other < task_count(); other++) {
        snprintf(path, sizeof path, "%s/%d%s", directory, other, end);
        while (access(path, F_OK) != 0) usleep(1000);
    }
}

#endif
