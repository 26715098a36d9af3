/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB IS's sizes, and keys with known ranks, by class.
 */
#ifndef HANARE_NPB_IS_OFFICIAL_H
#define HANARE_NPB_IS_OFFICIAL_H

#include "npb_class.h"

#if NPB_NUMBER == NPB_NUMBER_S
enum { kKeysLog2 = 16, kMaxKeyLog2 = 11 };
#elif NPB_NUMBER == NPB_NUMBER_W
enum { kKeysLog2 = 20, kMaxKeyLog2 = 16 };
#elif NPB_NUMBER == NPB_NUMBER_A
enum { kKeysLog2 = 23, kMaxKeyLog2 = 19 };
#else
enum { kKeysLog2 = 25, kMaxKeyLog2 = 21 };
#endif

enum { kKeys = 1 << kKeysLog2, kMaxKey = 1 << kMaxKeyLog2, kIterations = 10, kTestKeys = 5 };

/* Key number `index` has rank `rank` + `step` * (iteration - `origin`). */
struct test_key {
    int index, rank, step, origin;
};

static const struct test_key test_keys[kTestKeys] = {
#if NPB_NUMBER == NPB_NUMBER_S
    {48427, 0, 1, 0},      {17148, 18, 1, 0},    {23627, 346, 1, 0},
    {62548, 64917, -1, 0}, {4431, 65463, -1, 0},
#elif NPB_NUMBER == NPB_NUMBER_W
    {357773, 1249, 1, 2},     {934767, 11698, 1, 2},    {875723, 1039987, -1, 0},
    {898999, 1043896, -1, 0}, {404505, 1048018, -1, 0},
#elif NPB_NUMBER == NPB_NUMBER_A
    {2112377, 104, 1, 1},      {662041, 17523, 1, 1},     {5336171, 123928, 1, 1},
    {3642833, 8288932, -1, 1}, {4250760, 8388264, -1, 1},
#else
    {41869, 33422937, -1, 0},    {812306, 10244, 1, 0}, {5102857, 59149, 1, 0},
    {18232239, 33135281, -1, 0}, {26860214, 99, 1, 0},
#endif
};

#endif
