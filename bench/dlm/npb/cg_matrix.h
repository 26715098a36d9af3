/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB CG's sizes and official results by class, and its arrays, as one-dimensional global ones.
 */
#ifndef HANARE_NPB_CG_MATRIX_H
#define HANARE_NPB_CG_MATRIX_H

#include "npb_class.h"

/* Rows; elements of a random vector before its own index is set; iterations; eigenvalue shift. */
#if NPB_NUMBER == NPB_NUMBER_S
enum { NA = 1400, NONZER = 7, OFFICIAL_ITERATIONS = 15, SHIFT = 10 };
#define OFFICIAL_ZETA 8.5971775078648
#elif NPB_NUMBER == NPB_NUMBER_W
enum { NA = 7000, NONZER = 8, OFFICIAL_ITERATIONS = 15, SHIFT = 12 };
#define OFFICIAL_ZETA 10.362595087124
#elif NPB_NUMBER == NPB_NUMBER_A
enum { NA = 14000, NONZER = 11, OFFICIAL_ITERATIONS = 15, SHIFT = 20 };
#define OFFICIAL_ZETA 17.130235054029
#else
enum { NA = 75000, NONZER = 13, OFFICIAL_ITERATIONS = 75, SHIFT = 60 };
#define OFFICIAL_ZETA 22.712745482631
#endif

/* Room for the elements before those of the same place are added up; a little more than there can
 * be, as NPB 2 has it. */
enum { NZ = NA * (NONZER + 1) * (NONZER + 1) + NA * (NONZER + 2) };

/* The matrix: of row i, elements rowstr[i] .. rowstr[i + 1) of a and their columns. */
extern dlm double a[NZ];
extern dlm int colidx[NZ], rowstr[NA + 1];

/* Generates it from the random sequence that begins with NPB_SEED. */
void cg_make_matrix(void);

/* The bytes of what it is made of, all declared `dlm`. */
extern const unsigned long cg_matrix_bytes;

#endif
