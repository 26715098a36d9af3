// SPDX-License-Identifier: Apache-2.0
//
// The checksum for processors with AVX2; checksum.cpp chooses.
#define HANARE_INSTRUCTION_SET avx2
#include "pager/fault/checksum_xxh3.inc"
