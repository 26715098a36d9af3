// SPDX-License-Identifier: Apache-2.0
//
// A program that knows nothing of Hanare and does what it is told, line by line: "fork" a child, or
// one that execs this program again ("exec"); and ends with its input.  Children stay until killed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t kBytes = (size_t)48 << 20;

static volatile char* touch(volatile char* memory) {
    for (size_t at = 0; at < kBytes; at += 4096) memory[at]++;
    return memory;
}

int main(int count, char** arguments) {
    char line[16];
    if (count > 1 && strcmp(arguments[1], "small") == 0) {
        // No memory to speak of before the child.
        if (fork() != 0) return fgets(line, sizeof line, stdin) == NULL ? 0 : 1;
    }
    volatile char* const memory = touch(malloc(kBytes));
    printf("%d\n", getpid());
    fflush(stdout);
    if (count > 1) pause();
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (fork() != 0) continue;
        if (strcmp(line, "exec\n") == 0) execl("/proc/self/exe", "again", "stay", (char*)NULL);
        touch(memory);
        printf("%d\n", getpid());
        fflush(stdout);
        pause();
    }
    return 0;
}
