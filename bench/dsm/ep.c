// SPDX-License-Identifier: Apache-2.0
//
// EP: the kernel, and its verification by the official sums for classes S, W, A and B (2^24, 2^25,
// 2^28, 2^30 pairs), and else by process 0, which makes all pairs another time, one by one and with
// the random generator in double precision that the report describes.
#include "ep.h"

#include <math.h>

#include "npb_random.h"

static const uint64_t kSeed = 271828183;
static const double kTolerance = 1e-8;  // the benchmark's

static const struct official {
    long log2;
    double x, y;
} official[] = {{24, -3.247834652034740e3, -6.958407078382297e3},
                {25, -2.863319731645753e3, -6.320053679109499e3},
                {28, -4.295875165629892e3, -1.580732573678431e4},
                {30, 4.033815542441498e4, -2.660669192809235e4}};

static void count_pair(double a, double b, struct ep_sums *sums) {
    const double x = 2 * a - 1, y = 2 * b - 1;
    const double t = x * x + y * y;
    if (t > 1) return;
    const double factor = sqrt(-2 * log(t) / t);
    const double gx = x * factor, gy = y * factor;
    ++sums->rings[(int)fmax(fabs(gx), fabs(gy))];
    sums->x += gx;
    sums->y += gy;
}

void ep_count(struct share batches, struct ep_sums *sums) {
    enum { kNumbers = 2 << kBatchLog2 };
    double *const numbers = dsm_allocate(kNumbers, sizeof(double));
    for (long batch = batches.begin; batch < batches.end; ++batch) {
        struct ep_sums own = {0};  // of each batch by itself, so that sums stay exact
        uint64_t seed = npb_random_jump(kSeed, (uint64_t)batch * kNumbers);
        npb_random_fill(&seed, kNumbers, numbers);
        for (long at = 0; at < kNumbers; at += 2) count_pair(numbers[at], numbers[at + 1], &own);
        ep_add(sums, &own);
    }
    free(numbers);
}

void ep_add(struct ep_sums *sums, const struct ep_sums *other) {
    sums->x += other->x;
    sums->y += other->y;
    for (int ring = 0; ring < kRings; ++ring) sums->rings[ring] += other->rings[ring];
}

// The report's generator (section 2.3): products of 46 bits from halves of 23, all in doubles.
static double random_in_doubles(double *x) {
    const double a = 1220703125.0, a1 = floor(0x1p-23 * a), a2 = a - 0x1p23 * a1;
    const double x1 = floor(0x1p-23 * *x), x2 = *x - 0x1p23 * x1;
    const double t1 = a1 * x2 + a2 * x1;
    const double z = t1 - 0x1p23 * floor(0x1p-23 * t1);
    const double t3 = 0x1p23 * z + a2 * x2;
    *x = t3 - 0x1p46 * floor(0x1p-46 * t3);
    return 0x1p-46 * *x;
}

static bool is_near(double value, double wanted) {
    return fabs((value - wanted) / wanted) <= kTolerance;
}

static const char *verify(long log2_pairs, const struct ep_sums *sums) {
    for (size_t i = 0; i < sizeof(official) / sizeof(official[0]); ++i) {
        if (official[i].log2 != log2_pairs) continue;
        const bool good = is_near(sums->x, official[i].x) && is_near(sums->y, official[i].y);
        return good ? NULL : "sums differ from the official ones";
    }
    struct ep_sums wanted = {0};
    double seed = (double)kSeed;
    for (long pair = 0; pair < 1L << log2_pairs; ++pair) {
        const double a = random_in_doubles(&seed);
        count_pair(a, random_in_doubles(&seed), &wanted);
    }
    if (memcmp(sums->rings, wanted.rings, sizeof(wanted.rings)) != 0) return "counts are wrong";
    return is_near(sums->x, wanted.x) && is_near(sums->y, wanted.y) ? NULL : "sums are wrong";
}

int main(int argc, char **argv) {
    long log2_pairs = 28;
    const struct bench_option options[] = {{"--log2", &log2_pairs, kBatchLog2, 36}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    struct ep_sums sums = {0};
    const double seconds = ep_run(1L << (log2_pairs - kBatchLog2), &sums);
    char details[64];
    snprintf(details, sizeof(details), "log2=%ld", log2_pairs);
    struct dsm_result result = {"ep", seconds, details, 0, NULL};
    if (form_process == 0) {
        if (dsm_spoil) sums.x *= 1.0001;
        for (uint64_t ring = 0; ring < kRings; ++ring) {
            result.digest += dsm_mix(ring, sums.rings[ring]);
        }
        result.wrong = verify(log2_pairs, &sums);
    }
    dsm_finish(&result);
}
