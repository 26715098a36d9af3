// SPDX-License-Identifier: Apache-2.0
//
// Memory that becomes far inside malloc, of a program that has a system call of its own, so that
// code is rewritten there.  The first call gives back what lies below the stack.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPieces = 24000, kBytes = 3000 };

static long own_call(long number) {
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    return result;
}

static void check(int holds, const char* what) {
    if (holds) return;
    printf("failed: %s\n", what);
    exit(1);
}

static void give_back_stack(void) {
    char here = 0;
    char* const page = (char*)((unsigned long)&here & ~4095UL);
    check(madvise(page - 8 * 4096, 7 * 4096, MADV_DONTNEED) == 0, "madvise");
}

int main(int count, char** arguments) {
    static char* pieces[kPieces];
    // One more trap makes a difference to where in malloc the last one comes.
    const int calls = count > 1 ? atoi(arguments[1]) : 0;
    if (calls == 0) give_back_stack();
    for (int i = 0; i < calls; ++i) check(own_call(SYS_getpid) > 0, "getpid");
    for (int i = 0; i < kPieces; ++i) {
        pieces[i] = malloc(kBytes);
        check(pieces[i] != NULL, "malloc");
        memset(pieces[i], i, kBytes);
    }
    for (int i = 0; i < kPieces; ++i) {
        for (int at = 0; at < kBytes; at += 100) check(pieces[i][at] == (char)i, "content");
        free(pieces[i]);
    }
    puts("done");
    return 0;
}
