/* SPDX-License-Identifier: Apache-2.0
 *
 * The programming interface of TreadMarks, as papers and public programs show it (Amza et al.:
 * TreadMarks: Shared Memory Computing on Networks of Workstations, IEEE Computer, February 1996;
 * Midorikawa, Iizuka 1998), on Hanare's distributed shared memory: dsm.h says what holds for it.
 *
 *     Tmk_startup(argc, argv);
 *     if (Tmk_proc_id == 0) {
 *         grid = Tmk_malloc(n * n * sizeof(double));
 *         Tmk_distribute(&grid, sizeof(grid));
 *     }
 *     Tmk_barrier(0);
 *
 * Link with -ltmk -lhanare.  Programs are started by `hanare launch -n N`, mpirun, srun; alone they
 * are one process, or as many as options behind `--` say: `-n N`, `-f HOSTFILE` (a host per line;
 * without -n a process on each).
 *
 * Programs of the time when a barrier took a mask of processors define TMK_BARRIER_TAKES_MASK
 * before they include this; they need -std=gnu89 -fcommon as a rule.
 *
 * Any error ends the whole job, with one line and status 70.
 */
#ifndef HANARE_COMPAT_TMK_H
#define HANARE_COMPAT_TMK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set by Tmk_startup, to be read only. */
extern unsigned Tmk_proc_id; /* 0 to Tmk_nprocs - 1 */
extern unsigned Tmk_nprocs;
extern unsigned Tmk_mask; /* a bit for each process; all ones from 32 processes on */
extern unsigned Tmk_page_size;

/* Collective; what follows `--` is for it, and argv ends there for the program (argc is its own).
 */
void Tmk_startup(int argc, char **argv);
/* Collective: waits for all others, and ends the process. */
void Tmk_exit(int status);
/* Ends the whole job with a line, printf's way.  Also before Tmk_startup.  Old programs declare it
 * themselves, without arguments. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
void Tmk_errexit(const char *format, ...);
#else
void Tmk_errexit();
#endif

/* Shared memory of zeros, for the calling process until it has told the others; NULL: no more. */
void *Tmk_malloc(size_t bytes);
void Tmk_free(void *address);
/* The same in whole pages, never given back. */
void *Tmk_sbrk(size_t bytes);

/* To the same private variable of all other processes, which find it after the next barrier. */
void Tmk_distribute(const void *variable, size_t bytes);

/* All processes; any number, the same in all. */
void Tmk_barrier(unsigned id);
/* The processes of a mask, the caller among them; up to 32 processes, or all. */
void Tmk_barrier_mask(unsigned mask);
#ifdef TMK_BARRIER_TAKES_MASK
#define Tmk_barrier(mask) Tmk_barrier_mask(mask)
#endif

/* 0 to 65535. */
void Tmk_lock_acquire(unsigned id);
void Tmk_lock_release(unsigned id);

#ifdef __cplusplus
}
#endif

#endif
