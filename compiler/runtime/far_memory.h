/* SPDX-License-Identifier: Apache-2.0
 *
 * The far memory of a program that hanare-cc has linked: one pool, opened when it is first needed,
 * or plain memory below `hanare run`, which makes it far.  Any thread, except where it is said. */
#ifndef HANARE_COMPILER_FAR_MEMORY_H
#define HANARE_COMPILER_FAR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Internal status of Hanare's own failures, as of `hanare run`. */
#define FAR_MEMORY_FAILED 70

/* Whether `hanare run` has started this process. */
bool far_memory_is_below_run(void);
/* Opens it, unless it is open; dies when that cannot be. */
void far_memory_open(void);
/* Memory of whole blocks at `address`, NULL: anywhere.  NULL: there is none, `far_memory_error`
 * says why. */
void *far_memory_map(void *address, size_t bytes);
/* What far_memory_map returned.  Non-zero: it was not. */
int far_memory_unmap(void *address);
/* All of it to the stores.  Non-zero: that failed, `far_memory_error` says why. */
int far_memory_flush(void);
/* Ends it.  While no other thread uses it. */
void far_memory_close(void);

/* Of the calling thread's last failure. */
const char *far_memory_error(void);
/* One line on standard error, with the program's name. */
__attribute__((format(printf, 1, 2))) void far_memory_say(const char *format, ...);
/* And the end, with FAR_MEMORY_FAILED. */
__attribute__((noreturn, format(printf, 1, 2))) void far_memory_die(const char *format, ...);

#endif
