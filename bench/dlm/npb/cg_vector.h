/* SPDX-License-Identifier: Apache-2.0
 *
 * NPB CG's sizes and official results by class, and the random vectors that its matrix is made of.
 */
#ifndef HANARE_NPB_CG_VECTOR_H
#define HANARE_NPB_CG_VECTOR_H

#include "npb_class.h"
#include "npb_random.h"

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

static const double kRcond = 0.1;

/* Elements of a vector, all of them or some. */
struct sparse_vector {
    int count;
    int index[NONZER + 1];
    double value[NONZER + 1];
};

static inline int find_index(const struct sparse_vector *vector, int index) {
    int at = 0;
    while (at < vector->count && vector->index[at] != index) ++at;
    return at;
}

static inline void append(struct sparse_vector *vector, int index, double value) {
    vector->index[vector->count] = index;
    vector->value[vector->count++] = value;
}

/* NONZER random elements at different random places; of a place outside, or one that is taken
 * already, the element is dropped, but the two numbers are used up.  Then the element at `own`
 * becomes 1/2. */
static inline void make_vector(struct sparse_vector *vector, int own, uint64_t *seed) {
    int power = 2;
    while (power < NA) power *= 2;
    vector->count = 0;
    while (vector->count < NONZER) {
        const double value = npb_random(seed);
        const int index = (int)(power * npb_random(seed));
        if (index >= NA || find_index(vector, index) < vector->count) continue;
        append(vector, index, value);
    }
    const int at = find_index(vector, own);
    if (at == vector->count) append(vector, own, 0);
    vector->value[at] = 0.5;
}

#endif
