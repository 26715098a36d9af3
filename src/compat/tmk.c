/* SPDX-License-Identifier: Apache-2.0
 *
 * TreadMarks' interface (hanare/compat/Tmk.h) on hanare_dsm_*: archive libtmk.a, in C and on the
 * public interface alone.  Whatever fails ends the process with a line and status 70, and so the
 * whole job, since the others find it lost.
 *
 * Threads: as hanare/dsm.h; the variables are set before Tmk_startup returns. */
#include "hanare/compat/Tmk.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hanare/dsm.h"
#include "hanare/status.h"

/* A program that was built for masks links the other name. */
#undef Tmk_barrier

unsigned Tmk_proc_id;
unsigned Tmk_nprocs = 1;
unsigned Tmk_mask = 1;
unsigned Tmk_page_size = 4096;

enum { kFailure = 70, kMaskBits = 32, kTextBytes = 512, kTasksMax = 65536 };

static hanare_dsm *dsm;

static _Noreturn void leave(void) {
    fflush(NULL);
    _exit(kFailure);
}

void Tmk_errexit(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    const size_t length = strlen(format);
    if (length == 0 || format[length - 1] != '\n') fputc('\n', stderr);
    leave();
}

static void check(const char *function, hanare_status status) {
    if (status == HANARE_STATUS_OK) return;
    char text[kTextBytes];
    if (hanare_last_error(text, sizeof text) <= 1) {
        snprintf(text, sizeof text, "%s", hanare_status_text(status));
    }
    fflush(stdout);
    fprintf(stderr, "%s: process %u: %s\n", function, Tmk_proc_id, text);
    leave();
}

static hanare_dsm *started(const char *function) {
    if (dsm != NULL) return dsm;
    fprintf(stderr, "%s: Tmk_startup comes first\n", function);
    leave();
}

/* ---- starting */

struct options {
    const char *processes;
    const char *hosts;
};

static struct options read_options(int argc, char **argv, int *end) {
    struct options options = {NULL, NULL};
    *end = argc;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--") == 0) {
            *end = i;
            break;
        }
    }
    for (int i = *end + 1; i < argc; ++i) {
        const char **place = NULL;
        if (strncmp(argv[i], "-n", 2) == 0) place = &options.processes;
        if (strncmp(argv[i], "-f", 2) == 0) place = &options.hosts;
        if (place == NULL) Tmk_errexit("Tmk_startup: %s; behind -- are -n N and -f FILE", argv[i]);
        if (argv[i][2] != '\0') {
            *place = argv[i] + 2;
        } else if (i + 1 < argc) {
            *place = argv[++i];
        } else {
            Tmk_errexit("Tmk_startup: %s without a value", argv[i]);
        }
    }
    return options;
}

/* As the library finds a job; a batch script of Slurm is no task of one, and starts them itself. */
static bool is_launched(void) {
    static const char *const kVariables[] = {"HANARE_RANK", "PMIX_RANK", "PMI_FD", "SLURM_STEP_ID"};
    for (size_t i = 0; i < sizeof kVariables / sizeof kVariables[0]; ++i) {
        if (getenv(kVariables[i]) != NULL) return true;
    }
    return false;
}

/* This process becomes `hanare launch`, which starts the program again. */
static void launch(struct options options, int argc, char **argv) {
    char *end = NULL;
    const char *const wanted = options.processes != NULL ? options.processes : "1";
    errno = 0;
    const long processes = strtol(wanted, &end, 10);
    if (errno != 0 || end == wanted || *end != '\0' || processes < 1 || processes > kTasksMax) {
        Tmk_errexit("Tmk_startup: -n %s; allowed is a number from 1 to %d", wanted, kTasksMax);
    }
    if (processes == 1 && options.hosts == NULL) return;
    const char *const binary = getenv("HANARE_BINARY");
    char **const command = calloc((size_t)argc + 8, sizeof *command);
    if (command == NULL) Tmk_errexit("Tmk_startup: out of memory");
    size_t used = 0;
    command[used++] = strdup(binary != NULL ? binary : "hanare");
    command[used++] = strdup("launch");
    /* As many as the file has hosts, where nothing else is said. */
    if (options.processes != NULL || options.hosts == NULL) {
        command[used++] = strdup("-n");
        command[used++] = strdup(wanted);
    }
    if (options.hosts != NULL) {
        command[used++] = strdup("--hosts");
        command[used++] = strdup(options.hosts);
    }
    command[used++] = strdup("--");
    for (int i = 0; i < argc; ++i) command[used++] = argv[i];
    execvp(command[0], command);
    Tmk_errexit("Tmk_startup: cannot run %s launch: %s", command[0], strerror(errno));
}

void Tmk_startup(int argc, char **argv) {
    int end = argc;
    const struct options options = read_options(argc, argv, &end);
    if (!is_launched()) launch(options, end, argv);
    argv[end] = NULL;
    check("Tmk_startup", hanare_dsm_start(NULL, &dsm));
    uint32_t rank = 0;
    uint32_t size = 0;
    check("Tmk_startup", hanare_dsm_rank(dsm, &rank));
    check("Tmk_startup", hanare_dsm_size(dsm, &size));
    Tmk_proc_id = rank;
    Tmk_nprocs = size;
    Tmk_mask = size >= kMaskBits ? UINT_MAX : (1u << size) - 1;
}

void Tmk_exit(int status) {
    if (dsm != NULL) check("Tmk_exit", hanare_dsm_finish(dsm));
    exit(status);
}

/* ---- memory */

void *Tmk_malloc(size_t bytes) {
    void *address = NULL;
    const hanare_status status = hanare_dsm_allocate(started("Tmk_malloc"), bytes, &address);
    if (status == HANARE_STATUS_NO_MEMORY) return NULL;
    check("Tmk_malloc", status);
    return address;
}

void Tmk_free(void *address) { check("Tmk_free", hanare_dsm_free(started("Tmk_free"), address)); }

void *Tmk_sbrk(size_t bytes) {
    const size_t pages = (bytes + Tmk_page_size - 1) / Tmk_page_size;
    return Tmk_malloc((pages > 0 ? pages : 1) * Tmk_page_size);
}

void Tmk_distribute(const void *variable, size_t bytes) {
    check("Tmk_distribute", hanare_dsm_distribute(started("Tmk_distribute"), variable, bytes));
}

/* ---- synchronisation */

void Tmk_barrier(unsigned id) {
    check("Tmk_barrier", hanare_dsm_barrier(started("Tmk_barrier"), id));
}

void Tmk_barrier_mask(unsigned mask) {
    hanare_dsm *const all = started("Tmk_barrier");
    if (mask == Tmk_mask) {
        Tmk_barrier(0);
        return;
    }
    if (Tmk_nprocs > kMaskBits) Tmk_errexit("Tmk_barrier: masks are for %d processes", kMaskBits);
    if ((mask & ~Tmk_mask) != 0 || (mask & 1u << Tmk_proc_id) == 0) {
        Tmk_errexit("Tmk_barrier: mask 0x%x; a part of 0x%x with the bit of process %u", mask,
                    Tmk_mask, Tmk_proc_id);
    }
    uint32_t tasks[kMaskBits];
    size_t count = 0;
    for (uint32_t task = 0; task < Tmk_nprocs; ++task) {
        if ((mask & 1u << task) != 0) tasks[count++] = task;
    }
    check("Tmk_barrier", hanare_dsm_barrier_group(all, mask, tasks, count));
}

void Tmk_lock_acquire(unsigned id) {
    check("Tmk_lock_acquire", hanare_dsm_lock(started("Tmk_lock_acquire"), id));
}

void Tmk_lock_release(unsigned id) {
    check("Tmk_lock_release", hanare_dsm_unlock(started("Tmk_lock_release"), id));
}
