/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs of this folder share: their clock, arguments, digests, and the line that says
 * how one ended.  They are ordinary sequential programs and know nothing of Hanare but the word
 * `dlm` before their large arrays; `gcc -Ddlm= -O3` builds them plain.
 */
#ifndef HANARE_BENCH_DLM_BENCH_H
#define HANARE_BENCH_DLM_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* BENCH_TEXT(N) is the value of the macro N as text, for a size that -D sets. */
#define BENCH_TEXT_(x) #x
#define BENCH_TEXT(x) BENCH_TEXT_(x)

/* Seconds on a clock that only goes forward. */
static inline double bench_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Keeps the compiler from moving work on memory over it, as between a kernel and its clock. */
#define BENCH_BARRIER() __asm__ volatile("" ::: "memory")

/* An argument `NAME VALUE`; *value is its default before. */
struct bench_option {
    const char *name; /* "--repeat" */
    long *value;
    long least, most;
};

static inline const struct bench_option *bench_find_option(const struct bench_option *options,
                                                           size_t count, const char *name) {
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(options[i].name, name) == 0) return &options[i];
    }
    return NULL;
}

/* A bad argument ends the program with one line and status 2. */
static inline void bench_arguments(int argc, char **argv, const struct bench_option *options,
                                   size_t count) {
    for (int i = 1; i < argc; i += 2) {
        const struct bench_option *const option = bench_find_option(options, count, argv[i]);
        if (option == NULL) {
            fprintf(stderr, "%s: unknown argument %s; known:", argv[0], argv[i]);
            for (size_t at = 0; at < count; ++at) fprintf(stderr, " %s N", options[at].name);
            fputc('\n', stderr);
            exit(2);
        }
        char *end = NULL;
        const long value = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (end == NULL || end == argv[i + 1] || *end != '\0' || value < option->least ||
            value > option->most) {
            fprintf(stderr, "%s: %s takes a number from %ld to %ld\n", argv[0], option->name,
                    option->least, option->most);
            exit(2);
        }
        *option->value = value;
    }
}

/* Digests tell whether two builds of a program have left the same bits.  `bytes` is a multiple of
 * 4; begin with 0. */
static inline uint64_t bench_digest(uint64_t digest, const void *data, size_t bytes) {
    const unsigned char *const begin = (const unsigned char *)data;
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t word;
        memcpy(&word, begin + at, sizeof(word));
        digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
        digest ^= digest >> 32;
    }
    return digest;
}

struct bench_result {
    const char *program;
    const char *size;  /* the benchmark's own name of it, without spaces */
    size_t bytes;      /* of the arrays declared `dlm` */
    double seconds;    /* of what the benchmark times */
    double rate;       /* as the benchmark counts it, in `unit` */
    const char *unit;  /* "MB/s", "MFLOPS", "us" */
    uint64_t digest;   /* of the result */
    const char *wrong; /* NULL: verified by the benchmark's rule; otherwise what is wrong */
};

/* Prints the result as the last line, and what is wrong on standard error; returns main's status:
 * 0 verified, 1 not. */
static inline int bench_finish(const struct bench_result *result) {
    printf(
        "result: program=%s class=%s bytes=%zu seconds=%.9f rate=%.6g unit=%s digest=%016llx "
        "verified=%s\n",
        result->program, result->size, result->bytes, result->seconds, result->rate, result->unit,
        (unsigned long long)result->digest, result->wrong == NULL ? "yes" : "no");
    if (fflush(stdout) != 0) return 1;
    if (result->wrong == NULL) return 0;
    fprintf(stderr, "%s: wrong result: %s\n", result->program, result->wrong);
    return 1;
}

#endif
