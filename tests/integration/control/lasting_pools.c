// SPDX-License-Identifier: Apache-2.0
//
// A program with two pools that does what it is told, line by line: "close" the one that was opened
// first, "open" one more, "fork" a child that stays until it is killed; and ends with its input.
#include <hanare/hanare.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPoolsMax = 8 };

static hanare_pool* pools[kPoolsMax];
static int first = 0, next = 0;

static void open_one(void) {
    const size_t bytes = (size_t)16 << 20;
    hanare_pool_options options = {sizeof options};
    options.local_bytes = (size_t)8 << 20;
    options.block_bytes = 64 << 10;
    void* memory = NULL;
    if (next == kPoolsMax || hanare_pool_open(&options, &pools[next]) != HANARE_STATUS_OK ||
        hanare_alloc(pools[next], bytes, NULL, &memory) != HANARE_STATUS_OK) {
        char text[256];
        hanare_last_error(text, sizeof text);
        fprintf(stderr, "%s\n", text);
        exit(1);
    }
    memset(memory, 1, bytes);
    ++next;
}

static void say(int number) {
    printf("%d\n", number);
    fflush(stdout);
}

int main(void) {
    open_one();
    open_one();
    say(getpid());
    for (char line[16]; fgets(line, sizeof line, stdin) != NULL;) {
        if (strcmp(line, "open\n") == 0) {
            open_one();
            say(next);
        } else if (strcmp(line, "close\n") == 0) {
            say(hanare_pool_close(pools[first++]));
        } else if (strcmp(line, "fork\n") == 0 && fork() == 0) {
            say(getpid());
            pause();
        }
    }
    return 0;
}
