// SPDX-License-Identifier: Apache-2.0
//
// A form of a program: how its processes start, wait for each other and end.  One of form_seq.c,
// form_tmk.c, form_mpi.c and form_pvm.c is linked into each program, beside that program's own file
// of the same form.  All functions are collective and for one thread.
#ifndef HANARE_BENCH_DSM_FORM_H
#define HANARE_BENCH_DSM_FORM_H

#include <stdbool.h>
#include <stdint.h>

extern const char form_name[];   // "tmk"
extern unsigned form_process;    // 0 to form_processes - 1
extern unsigned form_processes;  // set by form_begin

// What this process has sent so far, where the form counts it, as form_count() has found it.
// Message forms: messages between processes but for those of barriers, and the programs' bytes in
// them.  A sum over processes counts as one message from each but one to have it in one, and as
// many more to have it in all.  Tmk: the library's counters (hanare/dsm.h); messages are what is
// asked of others, bytes go either way.
enum { FORM_COUNTS_MAX = 12 };
extern const char *const form_count_names[];  // "messages", "bytes"
extern const unsigned form_count_total;       // how many; 0: it does not count
void form_count(uint64_t counts[FORM_COUNTS_MAX]);

// `argc` and `argv` are main's; what follows `--` in them is for the form.
void form_begin(int argc, char **argv);

void form_barrier(void);

// The sum over all processes, modulo 2^64, in all of them.  Not for what is timed.
uint64_t form_sum(uint64_t own);

// Ends this process when all others are there too; process 0's status is the job's.
_Noreturn void form_end(int status);

// Ends the whole job, from any one process, with a line on standard error and status 1.
_Noreturn void form_abort(const char *what);

#endif
