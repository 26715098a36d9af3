// SPDX-License-Identifier: Apache-2.0
//
// A program that changes its user while its threads fault and fork, and gives up its rights when it
// has long been running: whatever threads there are have given them up when setuid returns.
#include "far.h"

#include <dirent.h>
#include <grp.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { kBytes = 48 * 1024 * 1024, kUser = 61235, kGroup = 61236, kOther = 61237 };

// Of one thread, as the kernel has it: "Uid: ...", "Gid: ...", "Groups: ...", "CapEff: ...".
static void check_thread(const char* thread, int is_root) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread);
    FILE* const status = fopen(path, "r");
    CHECK(status != NULL);
    char line[512];
    int seen = 0;
    CHECK(fgets(line, sizeof line, status) != NULL);
    // Those that the kernel makes for io_uring never run a program's code.
    if (strncmp(line, "Name:\tiou-wrk-", 14) == 0) {
        fclose(status);
        return;
    }
    while (fgets(line, sizeof line, status) != NULL) {
        unsigned long ids[4];
        char name[16];
        const int found =
            sscanf(line, "%15[^:]: %lu %lu %lu %lu", name, &ids[0], &ids[1], &ids[2], &ids[3]);
        if (found == 5 && strcmp(name, "Uid") == 0) {
            for (int i = 0; is_root && i < 4; ++i) CHECK(ids[i] == kUser);
            ++seen;
        } else if (found == 5 && strcmp(name, "Gid") == 0) {
            for (int i = 0; is_root && i < 4; ++i) CHECK(ids[i] == kGroup);
            ++seen;
        } else if (strncmp(line, "Groups:", 7) == 0) {
            unsigned group = 0;
            CHECK(!is_root || (sscanf(line, "Groups: %u", &group) == 1 && group == kOther));
            ++seen;
        } else if (strncmp(line, "CapEff:", 7) == 0) {
            unsigned long long capabilities = 1;
            CHECK(sscanf(line, "CapEff: %llx", &capabilities) == 1);
            CHECK(!is_root || capabilities == 0);
            ++seen;
        }
    }
    CHECK(seen == 4);
    fclose(status);
}

enum { kChanges = 200 };
static atomic_int is_over;

static void* walk(void* memory) {
    while (!is_over) CHECK(holds(memory, kBytes, 1));
    return NULL;
}

static void* fork_on(void* memory) {
    while (!is_over) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(holds(memory, PAGE, 1) ? 0 : 1);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return NULL;
}

static void change_beside_threads(unsigned char* memory) {
    void* (*const bodies[])(void*) = {walk, walk, fork_on};
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) {
        CHECK(pthread_create(&threads[i], NULL, bodies[i], memory) == 0);
    }
    const uid_t before = geteuid();
    for (int i = 0; i < kChanges; ++i) {
        const uid_t user = before == 0 && i % 2 == 0 ? kUser : before;
        CHECK(setresuid((uid_t)-1, user, (uid_t)-1) == 0);
    }
    is_over = 1;
    for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    unsigned char* const memory = malloc(kBytes);
    CHECK(memory != NULL);
    fill(memory, kBytes, 1);
    CHECK(holds(memory, kBytes, 1));
    change_beside_threads(memory);
    const int is_root = geteuid() == 0;
    if (is_root) {
        const gid_t other = kOther;
        CHECK(setgroups(1, &other) == 0);
        CHECK(setgid(kGroup) == 0);
        CHECK(setuid(kUser) == 0);
        CHECK(setuid(0) == -1 && errno == EPERM);
    }
    DIR* const threads = opendir("/proc/self/task");
    CHECK(threads != NULL);
    int count = 0;
    for (struct dirent* thread; (thread = readdir(threads)) != NULL;) {
        if (thread->d_name[0] == '.') continue;
        check_thread(thread->d_name, is_root);
        ++count;
    }
    closedir(threads);
    CHECK(count > 0);
    CHECK(holds(memory, kBytes, 1));
    fill(memory, kBytes, 2);
    CHECK(holds(memory, kBytes, 2));
    puts("identity: as wanted");
    return 0;
}
