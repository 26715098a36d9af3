// SPDX-License-Identifier: Apache-2.0
//
// One class's sizes and official checksums, as the variable fft_class_S or so: compiled once for
// each class, by -DNPB_CLASS.
#include "fft.h"
#include "ft_official.h"

extern const struct fft_class NPB_JOIN(fft_class_, NPB_CLASS);
const struct fft_class NPB_JOIN(fft_class_, NPB_CLASS) = {BENCH_TEXT(NPB_CLASS)[0], NX,      NY, NZ,
                                                          OFFICIAL_ITERATIONS,      official};
