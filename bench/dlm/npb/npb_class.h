/* SPDX-License-Identifier: Apache-2.0
 *
 * The class of an NPB program: -DNPB_CLASS=S (the default), W, A or B.  Sources compare NPB_NUMBER
 * with NPB_NUMBER_S and so on; BENCH_TEXT(NPB_CLASS) is the letter as text.
 */
#ifndef HANARE_NPB_CLASS_H
#define HANARE_NPB_CLASS_H

#ifndef NPB_CLASS
#define NPB_CLASS S
#endif

#define NPB_NUMBER_S 1
#define NPB_NUMBER_W 2
#define NPB_NUMBER_A 3
#define NPB_NUMBER_B 4
#define NPB_JOIN_(a, b) a##b
#define NPB_JOIN(a, b) NPB_JOIN_(a, b)
#define NPB_NUMBER NPB_JOIN(NPB_NUMBER_, NPB_CLASS)

#if NPB_NUMBER < NPB_NUMBER_S || NPB_NUMBER > NPB_NUMBER_B
#error "NPB_CLASS is S, W, A or B"
#endif

/* What starts the random sequence of every benchmark; another one is for tests, and fails. */
#ifndef NPB_SEED
#define NPB_SEED 314159265
#endif

#endif
