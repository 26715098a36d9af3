// SPDX-License-Identifier: Apache-2.0
//
// SOR: the kernel, and its verification: process 0 computes the result another time, in one grid
// and by element, and all bits must be the same.
#include "sor.h"

#include "npb_random.h"

static const uint64_t kSeed = 314159265;
static const double kOmega = 1.25;

static double initial(const struct sor *sor, long row, long column, uint64_t *seed) {
    const double number = npb_random(seed);
    if (!sor->zero) return number;
    const bool border =
        row == 0 || row == sor->rows - 1 || column == 0 || column == sor->columns - 1;
    return border ? 1 : 0;
}

void sor_fill_row(const struct sor *sor, long row, double *red, double *black) {
    uint64_t seed = npb_random_jump(kSeed, (uint64_t)row * (uint64_t)sor->columns);
    for (long column = 0; column < sor->columns; ++column) {
        double *const colour = (row + column) % 2 == 0 ? red : black;
        colour[column / 2] = initial(sor, row, column, &seed);
    }
}

void sor_row(const struct sor *sor, enum sor_colour colour, long row, double *restrict elements,
             const double *restrict other, const double *restrict above,
             const double *restrict below) {
    const long half = sor->columns / 2;
    // 1 where this colour's element of a pair is the second: element k is between `other` number k
    // and k + 1 then, else between k - 1 and k.
    const long second = (row + (colour == kBlack)) % 2;
    const double *const left = other + second - 1, *const right = other + second;
    for (long k = 1 - second; k < half - second; ++k) {
        const double mean = 0.25 * ((above[k] + below[k]) + (left[k] + right[k]));
        elements[k] += kOmega * (mean - elements[k]);
    }
}

uint64_t sor_digest(const struct sor *sor, struct share rows, const double *red,
                    const double *black) {
    const size_t half = (size_t)sor->columns / 2;
    const size_t first = (size_t)rows.begin * half, count = (size_t)(rows.end - rows.begin) * half;
    const size_t all = (size_t)sor->rows * half;
    const uint64_t digest = dsm_digest(first, red, count) + dsm_digest(all + first, black, count);
    return rows.begin == 0 && dsm_spoil ? digest + 1 : digest;
}

static void relax_by_element(const struct sor *sor, double *grid, long colour) {
    const long width = sor->columns;
    for (long at = width; at < (sor->rows - 1) * width; ++at) {
        const long row = at / width, column = at % width;
        if ((row + column) % 2 != colour || column == 0 || column == width - 1) continue;
        const double sum = (grid[at - width] + grid[at + width]) + (grid[at - 1] + grid[at + 1]);
        grid[at] += kOmega * (sum / 4 - grid[at]);
    }
}

static uint64_t reference_digest(const struct sor *sor) {
    const long width = sor->columns, count = sor->rows * width;
    double *const grid = dsm_allocate((size_t)count, sizeof(double));
    uint64_t seed = kSeed;
    for (long at = 0; at < count; ++at) grid[at] = initial(sor, at / width, at % width, &seed);
    for (long i = 0; i < sor->iterations; ++i) {
        relax_by_element(sor, grid, kRed);
        relax_by_element(sor, grid, kBlack);
    }
    uint64_t digest = 0;
    for (long at = 0; at < count; ++at) {
        const bool black = (at / width + at % width) % 2 == 1;
        digest += dsm_mix((uint64_t)(at / 2 + (black ? count / 2 : 0)), dsm_bits(grid[at]));
    }
    free(grid);
    return digest;
}

int main(int argc, char **argv) {
    struct sor sor = {.rows = 1024, .columns = 3072, .iterations = 50, .zero = 0};
    const struct bench_option options[] = {{"--zero", &sor.zero, 0, 1},
                                           {"--rows", &sor.rows, 3, 1 << 20},
                                           {"--columns", &sor.columns, 4, 1 << 20},
                                           {"--iterations", &sor.iterations, 1, 1 << 20}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    dsm_require(sor.rows >= (long)form_processes, "at least as many rows as processes");
    dsm_require(sor.columns % 2 == 0, "an even number of columns");
    const struct sor_outcome outcome = sor_run(&sor);
    char details[96];
    snprintf(details, sizeof(details), "rows=%ld columns=%ld iterations=%ld", sor.rows, sor.columns,
             sor.iterations);
    struct dsm_result result = {sor.zero ? "sor-z" : "sor-nz", outcome.seconds, details,
                                outcome.digest, NULL};
    if (form_process == 0 && outcome.digest != reference_digest(&sor)) {
        result.wrong = "the grid differs from the one that is computed by element";
    }
    dsm_finish(&result);
}
