// SPDX-License-Identifier: Apache-2.0
//
// As first_malloc.c, with an allocator of the program's own, which holds an ordinary mutex while it
// asks for memory.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPieces = 64, kBytes = 1 << 20, kAlignment = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char* next;
static char* end;

// Each piece has its size in front; none is ever given back.
void* malloc(size_t bytes) {
    bytes = (bytes + 2 * kAlignment - 1) & ~(size_t)(kAlignment - 1);
    pthread_mutex_lock(&lock);
    if ((size_t)(end - next) < bytes) {
        const size_t wanted = bytes > kBytes ? bytes : kBytes;
        next = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + wanted;
    }
    char* const piece = next;
    next += bytes;
    pthread_mutex_unlock(&lock);
    *(size_t*)(void*)piece = bytes - kAlignment;
    return piece + kAlignment;
}

void free(void* memory) { (void)memory; }

void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }

void* realloc(void* memory, size_t bytes) {
    char* const moved = malloc(bytes);
    if (memory == NULL) return moved;
    const size_t before = *(size_t*)(void*)((char*)memory - kAlignment);
    return memcpy(moved, memory, before < bytes ? before : bytes);
}

int main(void) {
    static char* pieces[kPieces];
    long id = SYS_getpid;
    __asm__ volatile("syscall" : "+a"(id) : : "rcx", "r11", "memory");
    for (int i = 0; i < kPieces; ++i) {
        pieces[i] = malloc(kBytes);
        memset(pieces[i], i + 1, kBytes);
    }
    for (int i = 0; i < kPieces; ++i) {
        if (pieces[i][i * 1000] != i + 1) return 1;
    }
    puts(id == getpid() ? "done" : "failed");
    return 0;
}
