/* SPDX-License-Identifier: Apache-2.0
 *
 * The random sparse matrix of NPB CG (RNR-94-007): the weighted sum of the outer
 * products of NA sparse random vectors with themselves, with weights that fall from 1 to kRcond,
 * and kRcond - SHIFT added on the diagonal.  All products are listed first, then put in their rows,
 * and then those of the same place are added up.
 */
#include "cg_matrix.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Rows are filled in so many groups, one after another: writes are in random order within one, and
 * shall have few pages to go to. */
enum { kRowGroups = 4 };

dlm double a[NZ];
dlm int colidx[NZ], rowstr[NA + 1];

/* The products by row, column and value; for each row or column a place in a. */
static dlm double aelt[NZ];
static dlm int arow[NZ], acol[NZ];
static dlm int iv[NA];

const unsigned long cg_matrix_bytes = sizeof(a) + sizeof(colidx) + sizeof(rowstr) + sizeof(aelt) +
                                      sizeof(arow) + sizeof(acol) + sizeof(iv);

/* Returns how many there are. */
static int list_products(void) {
    uint64_t seed = NPB_SEED;
    (void)npb_random(&seed); /* the specified sequence begins with the second number */
    const double ratio = pow(kRcond, 1.0 / NA);
    double weight = 1;
    int count = 0;
    for (int i = 0; i < NA; ++i, weight *= ratio) {
        struct sparse_vector vector;
        make_vector(&vector, i, &seed);
        for (int row = 0; row < vector.count; ++row) {
            for (int column = 0; column < vector.count; ++column, ++count) {
                arow[count] = vector.index[row];
                acol[count] = vector.index[column];
                aelt[count] = vector.value[row] * (weight * vector.value[column]);
            }
        }
        arow[count] = acol[count] = i;
        aelt[count++] = kRcond - SHIFT;
    }
    return count;
}

/* Puts the products in their rows, in the order of the list, several of one place still. */
static void fill_rows(int count) {
    memset(rowstr, 0, sizeof(rowstr));
    for (int at = 0; at < count; ++at) ++rowstr[arow[at] + 1];
    for (int row = 0; row < NA; ++row) {
        rowstr[row + 1] += rowstr[row];
        iv[row] = rowstr[row];
    }
    for (int group = 0; group < kRowGroups; ++group) {
        const int first = (int)((long)NA * group / kRowGroups);
        const int end = (int)((long)NA * (group + 1) / kRowGroups);
        for (int at = 0; at < count; ++at) {
            if (arow[at] < first || arow[at] >= end) continue;
            const int to = iv[arow[at]]++;
            a[to] = aelt[at];
            colidx[to] = acol[at];
        }
    }
}

/* Adds up what is of one place; rows move to the front. */
static void merge_rows(void) {
    for (int column = 0; column < NA; ++column) iv[column] = -1;
    int begin = 0, to = 0;
    for (int row = 0; row < NA; ++row) {
        const int end = rowstr[row + 1];
        const int merged = rowstr[row] = to;
        for (int at = begin; at < end; ++at) {
            const int column = colidx[at];
            if (iv[column] >= merged) {
                a[iv[column]] += a[at];
                continue;
            }
            iv[column] = to;
            colidx[to] = column;
            a[to++] = a[at];
        }
        begin = end;
    }
    rowstr[NA] = to;
}

void cg_make_matrix(void) {
    fill_rows(list_products());
    merge_rows();
}
