/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program would have left in memory at its end is written out, and how long that takes is
 * said in a line behind its result.  Linked with a program of this folder; what its arrays lie in
 * is said when it is compiled: FINAL_FLUSH_DLM far memory, FINAL_FLUSH_MAPPED a mapped file,
 * neither the kernel's memory and swap. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dlm_bench.h"

#if defined(FINAL_FLUSH_DLM)
#include "hanare/compat/dlm.h"

static int flush(void) { return dlm_flush(); }

#else

#if defined(FINAL_FLUSH_MAPPED)
/* The linker's. */
extern char __dlm_start[];
extern char __dlm_end[];
static char *const volatile first = __dlm_start;
static char *const volatile end = __dlm_end;
#else
/* What is zero at start, the arrays among it. */
extern char edata[];
extern char _end[];
static char *const volatile first = edata;
static char *const volatile end = _end;

/* No call waits until the kernel has written what it swaps out, and nothing tells.  Where others
 * write all the time it is not known, and non-zero is returned. */
static int wait_for_writes(void) {
    const struct timespec pause = {.tv_nsec = 2000000};
    const double patience_s = 20;
    const double began = bench_seconds();
    long kib = 1;
    while (kib > 0 && bench_seconds() - began < patience_s) {
        char line[128];
        FILE *const file = fopen("/proc/meminfo", "re");
        kib = 0;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            if (sscanf(line, "Writeback: %ld", &kib) == 1) break;
        }
        if (file != NULL) fclose(file);
        if (kib > 0) nanosleep(&pause, NULL);
    }
    return kib > 0;
}
#endif

static int flush(void) {
    const uintptr_t page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    const uintptr_t begin = ((uintptr_t)first + page_mask) & ~page_mask;
    const size_t bytes = (uintptr_t)end - begin;
#if defined(FINAL_FLUSH_MAPPED)
    return msync((void *)begin, bytes, MS_SYNC);
#else
    if (madvise((void *)begin, bytes, MADV_PAGEOUT) != 0) return -1;
    /* `hanare run` has written it when the call returns. */
    return getenv("HANARE_RUN_PAGE") != NULL ? 0 : wait_for_writes();
#endif
}

#endif

__attribute__((destructor)) static void flush_at_end(void) {
    const double began = bench_seconds();
    if (flush() != 0) return;
    dprintf(STDOUT_FILENO, "flush: flush_seconds=%.9f\n", bench_seconds() - began);
}
