// SPDX-License-Identifier: Apache-2.0
//
// What the programs share whatever their form: arguments, the clock, shares of an array, digests,
// and the line that says how a run ended.  Functions that are declared here and not defined are in
// dsm_bench.c; those that are collective say so.
#ifndef HANARE_BENCH_DSM_BENCH_H
#define HANARE_BENCH_DSM_BENCH_H

#include "dlm_bench.h"
#include "form.h"

// Arguments that all programs take.  dsm_init_by: -1, each process initialises its share of the
// shared data, or 0: process 0 does all, which is the worst placement where the first to touch
// memory has it (Tmk forms only).  dsm_spoil: 1 changes the result before it is verified, for
// tests of the verification.
extern long dsm_init_by;
extern long dsm_spoil;

// Collective.  Parses the arguments before `--` and starts the form.  A bad argument ends the
// program with one line and status 2.
void dsm_begin(int argc, char **argv, const struct bench_option *options, size_t count);

// Collective: the end of the program, with one line and status 2, unless `allowed`.
void dsm_require(bool allowed, const char *rule);

// Collective; all wait for each other, and process 0's seconds are those of the slowest.
double dsm_start(void);
double dsm_stop(double start);

// Zeroed memory of this process, for free(); never NULL.
void *dsm_allocate(size_t count, size_t size);

struct dsm_result {
    const char *name;     // "sor-z"
    double seconds;       // of what is timed, without start and initialisation
    const char *details;  // "rows=10 columns=5"
    uint64_t digest;      // equal for equal results, whatever the form; 0: the program has none
    const char *wrong;    // NULL: verified; otherwise what is wrong
};

// Collective, and the end of the program: what process 0 says of the result is printed and is the
// status, 0 verified or 1.
_Noreturn void dsm_finish(const struct dsm_result *result);

// Elements begin to before end.
struct share {
    long begin, end;
};

// `part`'s share of `count` elements among `parts`: shares follow each other and differ by one
// element at most.
static inline struct share share_of(long count, unsigned part, unsigned parts) {
    const struct share share = {count * (long)part / (long)parts,
                                count * ((long)part + 1) / (long)parts};
    return share;
}

static inline struct share own_share(long count) {
    return share_of(count, form_process, form_processes);
}

// The share of the process after this one: who checks it sees what another one has written.
static inline struct share next_share(long count) {
    return share_of(count, (form_process + 1) % form_processes, form_processes);
}

// An element's part in a digest, which is their sum in any order.
static inline uint64_t dsm_mix(uint64_t index, uint64_t bits) {
    uint64_t mixed =
        (bits ^ (index + 1) * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed >> 31;
    mixed *= UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 29;
}

static inline uint64_t dsm_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// Of `count` numbers, the first of which has the number `index` in the whole.
uint64_t dsm_digest(uint64_t index, const double *values, size_t count);

#endif
