/* SPDX-License-Identifier: Apache-2.0
 *
 * What test0, test1 and swap_write do with their array of ints, `ints`, of COUNT elements: each int
 * is a function of its index and of the pass that wrote it, and no two pages are alike.
 */
#ifndef HANARE_BENCH_INT_PASSES_H
#define HANARE_BENCH_INT_PASSES_H

#include "dlm_bench.h"

/* Of the operating system; the paper's programs write one int of each in their second pass. */
#define PAGE_INTS ((size_t)1024)

static inline uint32_t value_of(size_t index, uint32_t pass) {
    return (uint32_t)index * 0x9e3779b1u + pass * 0x85ebca6bu;
}

static inline void write_all(uint32_t *ints, size_t count, uint32_t pass) {
    for (size_t i = 0; i < count; ++i) ints[i] = value_of(i, pass);
}

/* One int of each `step`, from the first. */
static inline void write_some(uint32_t *ints, size_t count, size_t step, uint32_t pass) {
    for (size_t i = 0; i < count; i += step) ints[i] = value_of(i, pass);
}

/* How many of the ints are not those of `pass`. */
static inline size_t count_wrong(const uint32_t *ints, size_t from, size_t to, uint32_t pass) {
    size_t wrong = 0;
    for (size_t i = from; i < to; ++i) wrong += ints[i] != value_of(i, pass);
    return wrong;
}

/* Whether the first int of each `step` is of `first_pass` and all others of `pass`.  Digests what
 * it reads, and writes the first ints again as they are: each page leaves this as the pass before
 * has left it, dirty and in order. */
static inline bool check_ints(volatile uint32_t *ints, size_t count, size_t step,
                              uint32_t first_pass, uint32_t pass, uint64_t *digest) {
    const uint32_t *const plain = (const uint32_t *)(uintptr_t)ints;
    bool is_right = true;
    for (size_t at = 0; at < count; at += step) {
        const size_t end = count - at < step ? count : at + step;
        const uint32_t first = ints[at];
        is_right &= first == value_of(at, first_pass);
        is_right &= count_wrong(plain, at + 1, end, pass) == 0;
        *digest = bench_digest(*digest, plain + at, (end - at) * sizeof(*plain));
        for (size_t page = at; page < end; page += PAGE_INTS) {
            const uint32_t value = ints[page];
            ints[page] = value;
        }
    }
    return is_right;
}

static inline void print_pass(const char *name, size_t writes, double seconds) {
    printf("%-30s %12zu writes %12.6f s %10.1f ns each\n", name, writes, seconds,
           seconds / (double)writes * 1e9);
}

#endif
