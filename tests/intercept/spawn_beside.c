// SPDX-License-Identifier: Apache-2.0
//
// A thread waits in a call with arguments in far memory while others, which have made no such call
// before, have children that exec a program whose name is in far memory: what the kernel writes for
// the one is not what it reads for the others.
#include "far.h"

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#define FILES 16
#define ROUNDS 60

static int ends[FILES][2];
static int told[2];

static void* wait_for_files(void* unused) {
    struct pollfd* const files = (struct pollfd*)cold(FILES * sizeof *files);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < FILES; ++i) files[i] = (struct pollfd){ends[i][0], POLLIN, 0};
        CHECK(write(told[1], "w", 1) == 1);
        CHECK(poll(files, FILES, -1) == 1);
        for (int i = 0; i < FILES; ++i) {
            CHECK(files[i].fd == ends[i][0] && files[i].events == POLLIN);
            CHECK(files[i].revents == (i == round % FILES ? POLLIN : 0));
        }
        char byte;
        CHECK(read(ends[round % FILES][0], &byte, 1) == 1);
    }
    return unused;
}

static void* spawn(void* unused) {
    char* const program = cold_text("/bin/true");
    char* const arguments[] = {program, NULL};
    char* const environment[] = {NULL};
    pid_t child;
    CHECK(posix_spawn(&child, program, NULL, NULL, arguments, environment) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return unused;
}

int main(void) {
    prepare();
    CHECK(pipe(told) == 0);
    for (int i = 0; i < FILES; ++i) CHECK(pipe(ends[i]) == 0);
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, wait_for_files, NULL) == 0);
    for (int round = 0; round < ROUNDS; ++round) {
        char byte;
        CHECK(read(told[0], &byte, 1) == 1);
        for (int i = 0; i < 3; ++i) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, spawn, NULL) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        CHECK(write(ends[round % FILES][1], "x", 1) == 1);
    }
    CHECK(pthread_join(waiting, NULL) == 0);
    sweep();
    puts("each has its own");
    return 0;
}
