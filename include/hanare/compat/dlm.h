/* SPDX-License-Identifier: Apache-2.0
 *
 * The programming interface of DLM (Midorikawa, Kurokawa, Himeno: The Design of Distributed Large
 * Memory System DLM, 2009, sections 2.2 and 2.3), on Hanare's far memory.
 *
 *     dlm double a[N][N], x[N];            in far memory, if need be larger than main memory
 *     int *p = dlm_alloc(sizeof(int) * n);
 *
 * hanare-cc, hanare-c++ and dlmc include this file by themselves.  The word `dlm` stands at the
 * beginning of a declaration: of a global, of a static variable of a function, or behind `static`
 * or `extern`.  Such arrays are zero at first and have no initialiser.  They are in place before
 * constructors run.  With another compiler the word needs what docs/dlm.md says; the functions need
 * only -ldlm -lhanare.
 *
 * One pool serves a program.  Its settings are those of every pool: HANARE_* variables and the
 * configuration file (docs/dlm.md).  Below `hanare run` the memory is that of the program there.
 * What cannot be had at start ends the program with one line and status 70.
 *
 * System calls may be given far memory.  A child of fork() does not have it: touching it ends the
 * child with SIGBUS and one line.
 */
#ifndef HANARE_COMPAT_DLM_H
#define HANARE_COMPAT_DLM_H

/* hanare-cc includes this before assembly that is preprocessed, too. */
#ifndef __ASSEMBLER__

#include <stddef.h>

/* gcc keeps exactly `.lbss`, clang `.bss.*` free of bytes in object files, and only in these models
 * can code reach them far away. */
#if defined(__clang__) && defined(__code_model_large__)
#define dlm __attribute__((section(".bss.dlm")))
#elif !defined(__clang__) && (defined(__code_model_medium__) || defined(__code_model_large__))
#define dlm __attribute__((section(".lbss")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Far memory of `bytes`, zero-filled, aligned to the block size; in whole blocks, so it is for
 * large arrays.  NULL, errno ENOMEM and one line on standard error when the stores or the address
 * space have no room, or `bytes` is 0.  Any thread. */
void *dlm_alloc(size_t bytes);

/* Gives back what dlm_alloc returned; NULL does nothing, and what else it is ends the program with
 * one line.  No other thread may use the memory.  Any thread. */
void dlm_free(void *address);

/* For programs in which the paper's compiler has not put them.  dlm_init opens the pool now: a pool
 * that is opened before the program has threads lets system calls be given far memory, too.
 * Returns 0; ends the program with one line and status 70 when there can be none.  The arguments
 * are not looked at: `hanare run -f` reads host files.
 * dlm_exit ends the pool: nothing of it, `dlm` arrays included, may be used any more; what was
 * lent by memory servers is given back.  It is not needed: so does the end of the program. */
int dlm_init(int argc, char **argv);
void dlm_exit(void);

/* Writes what has changed of all far memory to the stores, and returns when it is there; it stays
 * in local memory.  Returns 0; below `hanare run` it does nothing and returns 0, too.  -1, errno
 * EIO and one line on standard error when a store cannot take it.  What other threads write
 * meanwhile may be left out.  Any thread, but not beside dlm_exit. */
int dlm_flush(void);

/* What the paper's compiler makes of `dlm` declarations (Fig. 4(a)), so that its output, too, can
 * be built: an array of as many elements as the product of `dimensions`, which end with -1.  The
 * other arguments said how it was to be divided, and are not looked at. */
void *dlm_mapalloc(const int *dimensions, const int *division, size_t element_bytes, int kind,
                   int processes);
extern int __dlm_dim[];
extern int __dlm_div[];
extern int dlm_nproc;
/* The process that computes; memory servers are programs of their own here. */
#define MYPID 0

#ifdef __cplusplus
}
#endif

#endif
#endif
