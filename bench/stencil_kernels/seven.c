/* SPDX-License-Identifier: Apache-2.0
 *
 * By hand: u = 0.4 u + 0.1 (the six cells around), double.  Two rows at a time, which have two
 * loads in common; stores begin at multiples of 64 bytes, and what is before and after is masked.
 */
#include <immintrin.h>

/* One vector of one row: its centre, and the row above or below that is loaded already or not. */
static inline __m512d cell(__m512d centre, __m512d up, __m512d down, __m512d before, __m512d after,
                           __m512d left, __m512d right) {
    const __m512d sides = _mm512_add_pd(_mm512_add_pd(up, down), _mm512_add_pd(left, right));
    const __m512d sum = _mm512_add_pd(_mm512_add_pd(before, after), sides);
    return _mm512_fmadd_pd(_mm512_set1_pd(0.1), sum, _mm512_mul_pd(_mm512_set1_pd(0.4), centre));
}

struct rows {
    const double *before, *here, *after;
    double *out;
    int64_t stride;
};

#define LOAD(from) _mm512_maskz_loadu_pd(mask, from)

static inline void one(const struct rows *r, int64_t j, __mmask8 mask) {
    const double *u = r->here + j;
    const __m512d value = cell(LOAD(u), LOAD(u - r->stride), LOAD(u + r->stride),
                               LOAD(r->before + j), LOAD(r->after + j), LOAD(u - 1), LOAD(u + 1));
    _mm512_mask_storeu_pd(r->out + j, mask, value);
}

static inline void two(const struct rows *r, int64_t j, __mmask8 mask) {
    const int64_t s = r->stride;
    const double *u = r->here + j;
    const __m512d first = LOAD(u), second = LOAD(u + s);
    const __m512d upper = cell(first, LOAD(u - s), second, LOAD(r->before + j), LOAD(r->after + j),
                               LOAD(u - 1), LOAD(u + 1));
    const __m512d lower = cell(second, first, LOAD(u + 2 * s), LOAD(r->before + j + s),
                               LOAD(r->after + j + s), LOAD(u + s - 1), LOAD(u + s + 1));
    _mm512_mask_storeu_pd(r->out + j, mask, upper);
    _mm512_mask_storeu_pd(r->out + j + s, mask, lower);
}

#define ROW(function)                                                  \
    do {                                                               \
        int64_t j = (int64_t)(-(uintptr_t)r.out / sizeof(double)) & 7; \
        if (j > n) j = n;                                              \
        if (j > 0) function(&r, 0, (__mmask8)((1u << j) - 1));         \
        for (; j + 8 <= n; j += 8) function(&r, j, 0xff);              \
        if (j < n) function(&r, j, (__mmask8)((1u << (n - j)) - 1));   \
    } while (0)

void kernel(const hanare_stencil_box *box) {
    const int64_t n = box->columns, s = box->row_stride;
    for (int64_t i = 0; i < box->rows;) {
        const struct rows r = {
            (const double *)box->in[0] + i * s, (const double *)box->in[1] + i * s,
            (const double *)box->in[2] + i * s, (double *)box->out[0] + i * s, s};
        if (i + 1 < box->rows) {
            ROW(two);
            i += 2;
        } else {
            ROW(one);
            i += 1;
        }
    }
}
