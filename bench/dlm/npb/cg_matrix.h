/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB CG's arrays, as one-dimensional global ones.
 */
#ifndef HANARE_NPB_CG_MATRIX_H
#define HANARE_NPB_CG_MATRIX_H

#include "cg_vector.h"

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
