// SPDX-License-Identifier: Apache-2.0
//
// NAS EP, "embarrassingly parallel" (RNR-94-007, section 2.2): 2^n pairs of random numbers, of
// which those inside the unit circle become pairs of Gaussian deviates by the polar method; counted
// are the pairs with max(|X|, |Y|) between l and l + 1, and the deviates are added up.
#ifndef HANARE_BENCH_DSM_EP_H
#define HANARE_BENCH_DSM_EP_H

#include "dsm_bench.h"

enum { kRings = 10, kBatchLog2 = 16 };  // random numbers are made for 2^16 pairs at a time

struct ep_sums {
    double x, y;
    uint64_t rings[kRings];
};

// Adds the pairs of these batches to *sums.
void ep_count(struct share batches, struct ep_sums *sums);
void ep_add(struct ep_sums *sums, const struct ep_sums *other);

// The form's; the sums of all are in process 0.  Returns seconds.
double ep_run(long batches, struct ep_sums *sums);

#endif
