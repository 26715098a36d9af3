// SPDX-License-Identifier: Apache-2.0
//
// Arguments, clock, memory, digests and end of the programs.
#include "dsm_bench.h"

enum { kOptionsMax = 8, kCommonOptions = 2 };

long dsm_init_by = -1;
long dsm_spoil = 0;

void dsm_begin(int argc, char **argv, const struct bench_option *options, size_t count) {
    struct bench_option all[kOptionsMax] = {{"--init-by", &dsm_init_by, -1, 0},
                                            {"--spoil", &dsm_spoil, 0, 1}};
    if (count > kOptionsMax - kCommonOptions) abort();
    for (size_t at = 0; at < count; ++at) all[kCommonOptions + at] = options[at];
    int own = 0;
    while (own < argc && strcmp(argv[own], "--") != 0) ++own;
    // Before the form begins: only one process is there then, or a launcher that ends the others.
    bench_arguments(own, argv, all, kCommonOptions + count);
    form_begin(argc, argv);
}

void dsm_require(bool allowed, const char *rule) {
    if (allowed) return;
    if (form_process == 0) fprintf(stderr, "needed: %s; processes: %u\n", rule, form_processes);
    form_end(2);
}

// What all processes have sent while it was timed.
static uint64_t counts[FORM_COUNTS_MAX];

double dsm_start(void) {
    form_barrier();
    form_count(counts);
    return bench_seconds();
}

double dsm_stop(double start) {
    uint64_t now[FORM_COUNTS_MAX];
    form_count(now);
    form_barrier();
    const double seconds = bench_seconds() - start;
    for (unsigned at = 0; at < form_count_total; ++at) {
        counts[at] = form_sum(now[at] - counts[at]);
    }
    return seconds;
}

void *dsm_allocate(size_t count, size_t size) {
    void *const memory = calloc(count == 0 ? 1 : count, size);
    if (memory == NULL) form_abort("no memory");
    return memory;
}

uint64_t dsm_digest(uint64_t index, const double *values, size_t count) {
    uint64_t digest = 0;
    for (size_t at = 0; at < count; ++at) digest += dsm_mix(index + at, dsm_bits(values[at]));
    return digest;
}

void dsm_finish(const struct dsm_result *result) {
    int status = 0;
    if (form_process == 0) {
        const bool verified = result->wrong == NULL;
        printf("name=%s form=%s processes=%u seconds=%.6f verified=%s digest=%016llx %s",
               result->name, form_name, form_processes, result->seconds, verified ? "yes" : "no",
               (unsigned long long)result->digest, result->details);
        for (unsigned at = 0; at < form_count_total; ++at) {
            printf(" %s=%llu", form_count_names[at], (unsigned long long)counts[at]);
        }
        putchar('\n');
        if (!verified) fprintf(stderr, "%s: wrong result: %s\n", result->name, result->wrong);
        status = fflush(stdout) != 0 || !verified;
    }
    form_end(status);
}
