/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the `dlm` arrays of an executable into far memory before any constructor runs, those of
 * libraries included; so nothing of C++ may be needed here.  The linker has given them addresses of
 * their own (compiler/link), and the loader has mapped nothing there. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "far_memory.h"

/* What a region may have to be aligned to: the largest block.  Nothing else is that near. */
enum { kRegionAlignment = 4 << 20 };

/* The linker's.  Far from here and from each other, so they are read from memory: code of any model
 * can do that. */
extern char __dlm_start[] __attribute__((weak));
extern char __dlm_end[] __attribute__((weak));
static char *const volatile array_begin = __dlm_start;
static char *const volatile array_end = __dlm_end;

/* Another file of this archive has it if the program calls dlm_alloc and the like: then the pool is
 * opened here, too, as long as there is one thread. */
extern const char hanare_dlm_functions __attribute__((weak));

/* What the C library sets later, and is needed now. */
static void set_up_libc(int argc, char **argv, char **environment) {
    if (environ == NULL) environ = environment;
    if (argc < 1) return;
    const char *const slash = strrchr(argv[0], '/');
    program_invocation_name = argv[0];
    program_invocation_short_name = slash != NULL ? argv[0] + (slash - argv[0]) + 1 : argv[0];
}

static void map_arrays(void) {
    if (array_begin == array_end) return;
    const uintptr_t start = (uintptr_t)array_begin & ~(uintptr_t)(kRegionAlignment - 1);
    const size_t bytes = (uintptr_t)array_end - start;
    if (far_memory_map((void *)start, bytes) == NULL) {
        far_memory_die("no far memory for %zu MiB of dlm arrays: %s", bytes >> 20,
                       far_memory_error());
    }
}

/* Below `hanare run` the memory is plain, and its library, which begins later, finds it by the
 * program header. */
static void begin(int argc, char **argv, char **environment) {
    set_up_libc(argc, argv, environment);
    if (&hanare_dlm_functions != NULL && !far_memory_is_below_run()) far_memory_open();
    map_arrays();
}

/* hanare-cc names this symbol to the linker, which then takes the file. */
extern void (*const hanare_dlm_start)(int, char **, char **);
__attribute__((section(".preinit_array"), used)) void (*const hanare_dlm_start)(int, char **,
                                                                                char **) = begin;
