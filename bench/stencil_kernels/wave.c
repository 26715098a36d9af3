/* SPDX-License-Identifier: Apache-2.0
 *
 * By hand: a wave of second order in time and eighth in space, 25 points, with a coefficient of
 * each cell, double: u = 2 u - old u + c lap(u).  Fused products; stores begin at multiples of 64
 * bytes, and what is before and after is masked.
 */
#include <immintrin.h>

#define LOAD(from) _mm512_maskz_loadu_pd(mask, from)

struct row {
    const double *planes[9]; /* u at z - 4 to z + 4 */
    const double *c;
    double *out; /* there is what u was before */
    int64_t stride;
};

static inline __m512d ring(const struct row *r, int64_t j, int d, __mmask8 mask) {
    const double *u = r->planes[4] + j;
    const __m512d x = _mm512_add_pd(LOAD(u + d), LOAD(u - d));
    const __m512d y = _mm512_add_pd(LOAD(u + d * r->stride), LOAD(u - d * r->stride));
    const __m512d z = _mm512_add_pd(LOAD(r->planes[4 + d] + j), LOAD(r->planes[4 - d] + j));
    return _mm512_add_pd(_mm512_add_pd(x, y), z);
}

static inline void vector(const struct row *r, int64_t j, __mmask8 mask) {
    const __m512d u = LOAD(r->planes[4] + j);
    __m512d lap = _mm512_mul_pd(_mm512_set1_pd(3 * -205. / 72), u);
    lap = _mm512_fmadd_pd(_mm512_set1_pd(8. / 5), ring(r, j, 1, mask), lap);
    lap = _mm512_fmadd_pd(_mm512_set1_pd(-1. / 5), ring(r, j, 2, mask), lap);
    lap = _mm512_fmadd_pd(_mm512_set1_pd(8. / 315), ring(r, j, 3, mask), lap);
    lap = _mm512_fmadd_pd(_mm512_set1_pd(-1. / 560), ring(r, j, 4, mask), lap);
    const __m512d rest = _mm512_fmsub_pd(_mm512_set1_pd(2), u, LOAD(r->out + j));
    _mm512_mask_storeu_pd(r->out + j, mask, _mm512_fmadd_pd(LOAD(r->c + j), lap, rest));
}

void kernel(const hanare_stencil_box *box) {
    const int64_t n = box->columns;
    for (int64_t i = 0; i < box->rows; ++i) {
        const int64_t at = i * box->row_stride;
        struct row r = {.c = (const double *)box->in[9] + at,
                        .out = (double *)box->out[0] + at,
                        .stride = box->row_stride};
        for (int d = 0; d < 9; ++d) r.planes[d] = (const double *)box->in[d] + at;
        int64_t j = (int64_t)(-(uintptr_t)r.out / sizeof(double)) & 7;
        if (j > n) j = n;
        if (j > 0) vector(&r, 0, (__mmask8)((1u << j) - 1));
        for (; j + 8 <= n; j += 8) vector(&r, j, 0xff);
        if (j < n) vector(&r, j, (__mmask8)((1u << (n - j)) - 1));
    }
}
