// SPDX-License-Identifier: Apache-2.0
//
// Jacobi: the kernel, and its verification: process 0 computes the result another time, by element
// and not by row, and all bits must be the same.
#include "jacobi.h"

#include "npb_random.h"

static const uint64_t kSeed = 314159265;

void jacobi_fill_row(const struct jacobi *jacobi, long row, double *values) {
    uint64_t seed = npb_random_jump(kSeed, (uint64_t)row * (uint64_t)jacobi->size);
    npb_random_fill(&seed, (uint64_t)jacobi->size, values);
}

void jacobi_row(const struct jacobi *jacobi, double *restrict to, const double *restrict above,
                const double *restrict here, const double *restrict below) {
    const long last = jacobi->size - 1;
    to[0] = here[0];
    to[last] = here[last];
    for (long j = 1; j < last; ++j) {
        to[j] = 0.25 * ((above[j] + below[j]) + (here[j - 1] + here[j + 1]));
    }
}

uint64_t jacobi_digest(const struct jacobi *jacobi, struct share rows, const double *values) {
    const size_t size = (size_t)jacobi->size;
    const uint64_t digest =
        dsm_digest((size_t)rows.begin * size, values, (size_t)(rows.end - rows.begin) * size);
    return rows.begin == 0 && dsm_spoil ? digest + 1 : digest;
}

static uint64_t reference_digest(const struct jacobi *jacobi) {
    const long n = jacobi->size;
    double *now = dsm_allocate((size_t)(n * n), sizeof(double));
    double *next = dsm_allocate((size_t)(n * n), sizeof(double));
    uint64_t seed = kSeed;
    for (long at = 0; at < n * n; ++at) now[at] = npb_random(&seed);
    for (long i = 0; i < jacobi->iterations; ++i) {
        for (long at = 0; at < n * n; ++at) {
            const long y = at / n, x = at % n;
            const bool inner = y > 0 && y < n - 1 && x > 0 && x < n - 1;
            next[at] =
                inner ? ((now[at - n] + now[at + n]) + (now[at - 1] + now[at + 1])) / 4 : now[at];
        }
        double *const then = now;
        now = next;
        next = then;
    }
    const uint64_t digest = dsm_digest(0, now, (size_t)(n * n));
    free(next);
    free(now);
    return digest;
}

int main(int argc, char **argv) {
    struct jacobi jacobi = {.size = 1536, .iterations = 20};
    const struct bench_option options[] = {{"--size", &jacobi.size, 3, 1 << 15},
                                           {"--iterations", &jacobi.iterations, 1, 1 << 20}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    dsm_require(jacobi.size >= (long)form_processes, "at least as many rows as processes");
    const struct jacobi_outcome outcome = jacobi_run(&jacobi);
    char details[64];
    snprintf(details, sizeof(details), "size=%ld iterations=%ld", jacobi.size, jacobi.iterations);
    struct dsm_result result = {"jacobi", outcome.seconds, details, outcome.digest, NULL};
    if (form_process == 0 && outcome.digest != reference_digest(&jacobi)) {
        result.wrong = "the grid differs from the one that is computed by element";
    }
    dsm_finish(&result);
}
