// SPDX-License-Identifier: Apache-2.0
//
// All operators are symmetric: one weight each for a point itself, its 6 neighbours at distance 1,
// the 12 at distance sqrt(2), and the 8 at sqrt(3).
#include "mg_passes.h"

enum { kDistances = 4, kRow = SIZE + 2 };

static const double kMinusA[kDistances] = {8.0 / 3, 0, -1.0 / 6, -1.0 / 12};
#if NPB_NUMBER <= NPB_NUMBER_A
static const double kS[kDistances] = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
#else
static const double kS[kDistances] = {-3.0 / 17, 1.0 / 33, -1.0 / 61, 0};
#endif
static const double kP[kDistances] = {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};

// Of a row along x, the sums over the four rows beside it and over the four diagonal to it.  Every
// one of a point's 27 weights falls on these sums and the row, at the point and next to it.
struct beside {
    double near[kRow], far[kRow];
};

static inline void sum_beside(const struct mg_level *level, const double *row,
                              struct beside *sums) {
    const ptrdiff_t y = (ptrdiff_t)level->strides[1], z = (ptrdiff_t)level->strides[2];
    const int end = level->points[0] + 2;
    for (int x = 0; x < end; ++x) {
        const double *const at = row + x;
        sums->near[x] = (at[-y] + at[y]) + (at[-z] + at[z]);
        sums->far[x] = (at[-z - y] + at[-z + y]) + (at[z - y] + at[z + y]);
    }
}

// Weights are constants where this is inlined, and those of 0 cost nothing.
static inline __attribute__((always_inline)) double weigh(const double *weights, const double *row,
                                                          const struct beside *sums, int x) {
    double sum = weights[0] * row[x];
    if (weights[1] != 0) sum += weights[1] * (row[x - 1] + row[x + 1] + sums->near[x]);
    if (weights[2] != 0) {
        sum += weights[2] * (sums->near[x - 1] + sums->near[x + 1] + sums->far[x]);
    }
    if (weights[3] != 0) sum += weights[3] * (sums->far[x - 1] + sums->far[x + 1]);
    return sum;
}

// to = base + (operator) in
static inline __attribute__((always_inline)) void apply(const struct mg_level *level,
                                                        const double *weights, const double *in,
                                                        const double *base, double *to) {
    struct beside sums;
    for (int z = 1; z <= level->points[2]; ++z) {
        for (int y = 1; y <= level->points[1]; ++y) {
            const size_t begin = mg_at(level, 0, y, z);
            sum_beside(level, in + begin, &sums);
#pragma GCC ivdep  // base may be to, but then point by point
            for (int x = 1; x <= level->points[0]; ++x) {
                to[begin + x] = base[begin + x] + weigh(weights, in + begin, &sums, x);
            }
        }
    }
}

void mg_residual(const struct mg_level *level, int rank, const double *u, const double *v,
                 double *r) {
    apply(level, kMinusA, u, v, r);
    mg_exchange(level, rank, r);
}

void mg_smooth(const struct mg_level *level, int rank, const double *r, double *u) {
    apply(level, kS, r, u, u);
    mg_exchange(level, rank, u);
}

// A coarse point lies on a rank's every second fine one, or on its only one.
static int only(const struct mg_level *fine, int axis) { return fine->points[axis] == 1; }

void mg_project(const struct mg_level *fine, const struct mg_level *coarse, int rank) {
    struct beside sums;
    for (int z = 1; z <= coarse->points[2]; ++z) {
        for (int y = 1; y <= coarse->points[1]; ++y) {
            const double *const from =
                fine->r + mg_at(fine, 0, 2 * y - only(fine, 1), 2 * z - only(fine, 2));
            double *const to = coarse->r + mg_at(coarse, 0, y, z);
            sum_beside(fine, from, &sums);
            for (int x = 1; x <= coarse->points[0]; ++x) {
                to[x] = weigh(kP, from, &sums, 2 * x - only(fine, 0));
            }
        }
    }
    mg_exchange(coarse, rank, coarse->r);
}

// Fine points between two coarse ones get their mean, along each axis; so a fine row gets that of
// four coarse rows, some of them the same one.
static void mean_rows(const struct mg_level *coarse, int y, int z, double *mean) {
    const double *const u = coarse->u;
    const double *const a = u + mg_at(coarse, 0, y / 2, z / 2);
    const double *const b = u + mg_at(coarse, 0, (y + 1) / 2, z / 2);
    const double *const c = u + mg_at(coarse, 0, y / 2, (z + 1) / 2);
    const double *const d = u + mg_at(coarse, 0, (y + 1) / 2, (z + 1) / 2);
    for (int x = 0; x < coarse->points[0] + 2; ++x)
        mean[x] = 0.25 * ((a[x] + b[x]) + (c[x] + d[x]));
}

static void add_row(const struct mg_level *fine, const double *mean, double *row) {
    if (only(fine, 0)) {
        row[0] += 0.5 * (mean[0] + mean[1]);
        row[1] += mean[1];
        row[2] += 0.5 * (mean[1] + mean[2]);
        return;
    }
    for (int x = 0; x <= fine->points[0]; x += 2) {
        row[x] += mean[x / 2];
        row[x + 1] += 0.5 * (mean[x / 2] + mean[x / 2 + 1]);
    }
}

// Halo and all, as far as the coarse level has points here.
void mg_interpolate(const struct mg_level *coarse, const struct mg_level *fine) {
    double mean[kRow];
    for (int z = 0; coarse->alive && z < fine->points[2] + 2; ++z) {
        for (int y = 0; y < fine->points[1] + 2; ++y) {
            mean_rows(coarse, y + only(fine, 1), z + only(fine, 2), mean);
            add_row(fine, mean, fine->u + mg_at(fine, 0, y, z));
        }
    }
    mg_spread(fine, fine->u);
}
