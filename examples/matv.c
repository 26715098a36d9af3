/* SPDX-License-Identifier: Apache-2.0
 *
 * y = a * x with a matrix larger than the local budget (DLM 2009, Fig. 3), in plain C.
 *
 *     matv [N [LOCAL_MIB]]      N x N doubles (default 8192: 512 MiB), local budget (default 128)
 *
 * The only lines that know about far memory are those that open the pool and allocate.  The row
 * sums are known in closed form, which is what the result is compared with.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <hanare/hanare.h>

static void require(hanare_status status, const char *what) {
    if (status == HANARE_STATUS_OK) return;
    char text[256] = "";
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "matv: %s: %s: %s\n", what, hanare_status_text(status), text);
    exit(1);
}

static double *new_doubles(hanare_pool *pool, size_t count) {
    void *address = NULL;
    require(hanare_alloc(pool, count * sizeof(double), NULL, &address), "allocate");
    return address;
}

/* Largest relative difference between y and sum over j of (i + j) * (j + 1). */
static double largest_error(const double *y, size_t n) {
    const double sum_j1 = (double)n * ((double)n + 1) / 2;
    const double sum_jj1 = ((double)n - 1) * (double)n * ((double)n + 1) / 3;
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        const double expected = (double)i * sum_j1 + sum_jj1;
        error = fmax(error, fabs(y[i] - expected) / expected);
    }
    return error;
}

int main(int argc, char **argv) {
    const size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 8192;
    const uint64_t local_mib = argc > 2 ? strtoull(argv[2], NULL, 10) : 128;
    if (n < 2 || n > 1u << 20 || local_mib == 0) {
        fprintf(stderr, "usage: matv [N [LOCAL_MIB]], N from 2 to 1048576\n");
        return 2;
    }

    hanare_pool *pool = NULL;
    const hanare_pool_options options = {.struct_size = sizeof options,
                                         .local_bytes = local_mib << 20};
    require(hanare_pool_open(&options, &pool), "open a pool");
    double *a = new_doubles(pool, n * n);
    double *x = new_doubles(pool, n);
    double *y = new_doubles(pool, n);

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) a[i * n + j] = (double)(i + j);
    }
    for (size_t j = 0; j < n; j++) x[j] = (double)(j + 1);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) sum += a[i * n + j] * x[j];
        y[i] = sum;
    }

    const double error = largest_error(y, n);
    hanare_counters counters = {.struct_size = sizeof counters};
    require(hanare_stats(pool, NULL, &counters), "read the statistics");
    printf("matv: %zu x %zu, %zu MiB through %llu MiB of local memory; largest error %.1e\n", n, n,
           n * n * sizeof(double) >> 20, (unsigned long long)local_mib, error);
    printf("matv: %llu read faults, %llu write faults, %llu MiB read, %llu MiB written\n",
           (unsigned long long)counters.read_faults, (unsigned long long)counters.write_faults,
           (unsigned long long)(counters.read_bytes >> 20),
           (unsigned long long)(counters.written_bytes >> 20));
    require(hanare_pool_close(pool), "close the pool");
    return error < 1e-12 ? 0 : 1;
}
