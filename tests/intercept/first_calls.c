// SPDX-License-Identifier: Apache-2.0
//
// The first system calls of a program, from code in every shape, one of which makes so much memory
// its own that it becomes far.  argv[1] says which: each is the first of a process.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kBytes = 64 << 20 };

// The system call, one (`load`) with its number right in front of it, one (`copy`) with the number
// in a register, and one (`after`) of which a jump takes the instruction behind, too.  All add 7.
#define SHAPE(name, before, behind)                                                        \
    uintptr_t name(uintptr_t number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);  \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" \
            "mov %rdi, %r11\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\n"  \
            "mov $-1, %r8\nmov $0, %r9\nnop\njmp 1f\n1:\n" before "syscall\n" behind       \
            "ret\n.cfi_endproc\n.size " #name ", . - " #name "\n")

SHAPE(load_mmap, "mov $9, %eax\n", "cmp $0, %rax\nadd $7, %rax\n");
SHAPE(copy, "mov %r11d, %eax\nadd $0, %eax\n", "add $7, %rax\n");
SHAPE(after, "mov %r11d, %eax\n", "add $7, %rax\n");
SHAPE(alone, "mov %r11d, %eax\njmp 2f\n2:\n", "add $7, %rax\n");

typedef uintptr_t (*Shape)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void check(int holds, const char* what) {
    if (holds) return;
    printf("failed: %s\n", what);
    exit(1);
}

// Written at random, so that most of it is away when it is read.
static void use(unsigned char* memory) {
    for (size_t i = 0; i < kBytes; i += 512) memory[i] = (unsigned char)(i >> 9);
    for (size_t i = 0; i < kBytes; i += 512) check(memory[i] == (unsigned char)(i >> 9), "content");
}

// One that a signal handler may not make: the code around it is rewritten meanwhile.
static void ask_for_mask(Shape shape) {
    uint64_t mask = 0;
    check(shape(SYS_rt_sigprocmask, 0, 0, (uintptr_t)&mask, sizeof mask) == 7, "mask");
    check(mask == 0, "nothing is blocked");
    check(shape(SYS_getpid, 0, 0, 0, 0) == (uintptr_t)getpid() + 7, "the second time");
}

static unsigned char* mapped_by(Shape shape) {
    const uintptr_t memory = shape(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS) - 7;
    check(memory % 4096 == 0, "mmap");
    return (unsigned char*)memory;
}

int main(int count, char** arguments) {
    static const struct {
        const char* name;
        Shape shape;
    } shapes[] = {{"load", load_mmap}, {"copy", copy}, {"after", after}, {"alone", alone}};
    const char* wanted = count > 1 ? arguments[1] : "after";
    const int maps_first = count > 2;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
        if (strcmp(shapes[i].name, wanted) != 0) continue;
        if (!maps_first && shapes[i].shape != load_mmap) ask_for_mask(shapes[i].shape);
        use(mapped_by(shapes[i].shape));
        use(malloc(kBytes));
        puts("done");
        return 0;
    }
    return 2;
}
