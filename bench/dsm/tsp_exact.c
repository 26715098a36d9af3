// SPDX-License-Identifier: Apache-2.0
//
// Held and Karp's dynamic programming (1962): for every set of cities and every city of it, the
// shortest path from city 0 through the set to that city.  2^(n-1) (n-1) lengths; 19 MB for 19
// cities.
#include "tsp_exact.h"

#include <math.h>

#include "npb_random.h"

void tsp_make(struct tsp *tsp, uint64_t seed) {
    enum { kSide = 10000 };
    double x[kCitiesMax], y[kCitiesMax];
    seed = npb_random_jump(314159265, 1000 * seed);
    for (int city = 0; city < tsp->cities; ++city) {
        x[city] = kSide * npb_random(&seed);
        y[city] = kSide * npb_random(&seed);
    }
    for (int i = 0; i < tsp->cities; ++i) {
        int least[2] = {4 * kSide, 4 * kSide};
        for (int j = 0; j < tsp->cities; ++j) {
            const int distance = (int)lround(hypot(x[i] - x[j], y[i] - y[j]));
            tsp->distance[i][j] = distance;
            if (i == j || distance >= least[1]) continue;
            least[1] = distance < least[0] ? least[0] : distance;
            least[0] = distance < least[0] ? distance : least[0];
        }
        tsp->least_two[i] = least[0] + least[1];
    }
}

int tsp_exact_length(const struct tsp *tsp) {
    const int others = (int)tsp->cities - 1;  // city i + 1 is bit i
    const size_t sets = (size_t)1 << others;
    int *const shortest = dsm_allocate(sets * (size_t)others, sizeof(int));
    for (size_t set = 1; set < sets; ++set) {
        for (int last = 0; last < others; ++last) {
            if ((set >> last & 1) == 0) continue;
            const size_t before = set & ~((size_t)1 << last);
            int length = before == 0 ? tsp->distance[0][last + 1] : 1 << 30;
            for (int city = 0; city < others; ++city) {
                if ((before >> city & 1) == 0) continue;
                const int longer = shortest[before * (size_t)others + (size_t)city] +
                                   tsp->distance[city + 1][last + 1];
                if (longer < length) length = longer;
            }
            shortest[set * (size_t)others + (size_t)last] = length;
        }
    }
    int best = 1 << 30;
    for (int last = 0; last < others; ++last) {
        const int length =
            shortest[(sets - 1) * (size_t)others + (size_t)last] + tsp->distance[last + 1][0];
        if (length < best) best = length;
    }
    free(shortest);
    return best;
}
