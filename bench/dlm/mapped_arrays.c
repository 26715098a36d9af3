/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own way to have arrays larger than memory: a shared mapping of a file.  Linked with
 * a program that hanare-cc compiles, this puts its dlm arrays into an unnamed file in $DLM_FOLDER
 * instead of far memory; the program is the same otherwise.  It stands in for what hanare-cc would
 * take from its archive under the same name. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The linker's.  Far from here, so they are read from memory. */
extern char __dlm_start[] __attribute__((weak));
extern char __dlm_end[] __attribute__((weak));
static char *const volatile array_begin = __dlm_start;
static char *const volatile array_end = __dlm_end;

static void fail(const char *what) {
    dprintf(STDERR_FILENO, "dlm arrays in a mapped file: %s: %s\n", what, strerror(errno));
    _exit(2);
}

static const char *folder_of(char **environment) {
    static const char name[] = "DLM_FOLDER=";
    for (; *environment != NULL; ++environment) {
        if (strncmp(*environment, name, sizeof name - 1) == 0)
            return *environment + sizeof name - 1;
    }
    return ".";
}

static void map_arrays(int argc, char **argv, char **environment) {
    (void)argc;
    (void)argv;
    const uintptr_t page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    const uintptr_t begin = (uintptr_t)array_begin & ~page_mask;
    const size_t bytes = (((uintptr_t)array_end + page_mask) & ~page_mask) - begin;
    const int file = open(folder_of(environment), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) fail("creating a file");
    if (ftruncate(file, (off_t)bytes) != 0) fail("its size");
    if (mmap((void *)begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file,
             0) == MAP_FAILED) {
        fail("mapping it");
    }
    close(file);
}

/* Before any constructor; hanare-cc names this symbol to the linker. */
extern void (*const hanare_dlm_start)(int, char **, char **);
__attribute__((section(".preinit_array"),
               used)) void (*const hanare_dlm_start)(int, char **, char **) = map_arrays;
