// SPDX-License-Identifier: Apache-2.0
//
// NPB CG under MPI: estimates the greatest eigenvalue of a random sparse matrix by the inverse
// power method (RNR-94-007; distributed as in NPB 2); every iteration solves a system with 25 steps
// of the conjugate gradient method.  The estimate of the last one must be the official one.
//
// The ranks are a grid, with as many columns as rows or twice as many; each has the block of the
// matrix at its place.  Vectors are distributed by the grid's columns: all ranks of one column have
// the same part.  A product with the matrix gives each rank sums for its rows over its columns
// only; they are added up along the grid's row, and then go to the ranks whose columns are those
// rows.
#include <math.h>

#include "cg_block.h"
#include "npb_mpi.h"

enum { kSteps = 25, kRanksMax = 64, kTag = 1 };
static const double kTolerance = 1e-10;

static struct npb_world world;

// Rank number grid_row * grid_columns + grid_column; columns_per_row are 1 or 2.
static int grid_rows, grid_columns, grid_row, grid_column, columns_per_row;

static struct cg_block block;
static int length;  // of the rank's part of a vector

// The system is (matrix) z = x; r is what is left of it, p the direction of a step, q a product
// with the matrix.
static double *x, *z, *p, *q, *r;

// The rank's sums for its rows, and another rank's.
static double *row_sums, *incoming;

// The part of the row sums that this rank needs in full, since it sends them to transposed_rank,
// and the other part, which its neighbour in the grid's row needs; they count from the first row.
static struct cg_range kept, given;
static int transposed_rank;

static struct cg_range share_of(int index, int count) {
    const struct cg_range range = {(int)((long)NA * index / count),
                                   (int)((long)NA * (index + 1) / count)};
    return range;
}

// The rows of one column's range, as they count from the first row of this rank.
static struct cg_range rows_of_column(int column) {
    const struct cg_range columns = share_of(column, grid_columns);
    const struct cg_range range = {columns.begin - block.rows.begin,
                                   columns.end - block.rows.begin};
    return range;
}

static void prepare_grid(void) {
    grid_rows = 1;
    while (grid_rows * grid_rows * 4 <= world.ranks) grid_rows *= 2;
    grid_columns = world.ranks / grid_rows;
    columns_per_row = grid_columns / grid_rows;
    grid_row = world.rank / grid_columns;
    grid_column = world.rank % grid_columns;
}

// Who sends to whom is symmetric: grid places (row, column) and (column / n, row * n + column % n)
// exchange their sums, with n columns to a row.
static void prepare_transposition(void) {
    const int half = grid_column % columns_per_row;
    transposed_rank =
        grid_column / columns_per_row * grid_columns + grid_row * columns_per_row + half;
    kept = rows_of_column(grid_row * columns_per_row + half);
    if (columns_per_row == 2) given = rows_of_column(grid_row * 2 + 1 - half);
}

static void prepare(void) {
    prepare_grid();
    block =
        cg_make_block(&world, share_of(grid_row, grid_rows), share_of(grid_column, grid_columns));
    prepare_transposition();
    length = cg_length(block.columns);
    double **const vectors[] = {&x, &z, &p, &q, &r};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); ++i) {
        *vectors[i] = npb_allocate(&world, (size_t)length, sizeof(double));
    }
    row_sums = npb_allocate(&world, (size_t)cg_length(block.rows), sizeof(double));
    incoming = npb_allocate(&world, (size_t)cg_length(block.rows), sizeof(double));
}

static void release(void) {
    double *const vectors[] = {x, z, p, q, r, row_sums, incoming};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); ++i) free(vectors[i]);
    cg_free_block(&block);
}

static void exchange(int rank, const double *from, int from_count, double *to, int to_count) {
    MPI_Request request;
    MPI_Irecv(to, to_count, MPI_DOUBLE, rank, kTag, MPI_COMM_WORLD, &request);
    MPI_Send(from, from_count, MPI_DOUBLE, rank, kTag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Adds the same numbers of the ranks whose columns differ by first_distance, and its multiples by
// powers of two.  Each pair adds the same two numbers, so all of these ranks get the same bits.
static void add_along_row(double *numbers, int count, int first_distance) {
    for (int distance = first_distance; distance < grid_columns; distance *= 2) {
        exchange(world.rank ^ distance, numbers, count, incoming, count);
        for (int i = 0; i < count; ++i) numbers[i] += incoming[i];
    }
}

static void add_up_row_sums(void) {
    double *const own = row_sums + kept.begin;
    const int count = cg_length(kept);
    if (columns_per_row == 2) {
        exchange(world.rank ^ 1, row_sums + given.begin, cg_length(given), incoming, count);
        for (int i = 0; i < count; ++i) own[i] += incoming[i];
    }
    add_along_row(own, count, columns_per_row);
}

// Four sums a row, since additions to one would wait for each other.
static void multiply_block(const double *restrict vector) {
    for (int row = 0; row < cg_length(block.rows); ++row) {
        const int end = block.row_begins[row + 1];
        double sum[4] = {0, 0, 0, 0};
        int at = block.row_begins[row];
        for (; at + 4 <= end; at += 4) {
            for (int i = 0; i < 4; ++i) {
                sum[i] += block.values[at + i] * vector[block.columns_of_values[at + i]];
            }
        }
        for (; at < end; ++at) sum[0] += block.values[at] * vector[block.columns_of_values[at]];
        row_sums[row] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

static void multiply(const double *vector, double *product) {
    multiply_block(vector);
    add_up_row_sums();
    const double *const own = row_sums + kept.begin;
    if (transposed_rank == world.rank) {
        memcpy(product, own, (size_t)length * sizeof(double));
    } else {
        exchange(transposed_rank, own, cg_length(kept), product, length);
    }
}

static double dot(const double *left, const double *right) {
    double sum = 0;
    for (int i = 0; i < length; ++i) sum += left[i] * right[i];
    add_along_row(&sum, 1, 1);
    return sum;
}

// Solves into z; returns the norm of x - (matrix) z.
static double solve(void) {
    for (int i = 0; i < length; ++i) {
        z[i] = 0;
        r[i] = p[i] = x[i];
    }
    double rho = dot(r, r);
    for (int step = 0; step < kSteps; ++step) {
        multiply(p, q);
        const double alpha = rho / dot(p, q);
        for (int i = 0; i < length; ++i) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        const double before = rho;
        rho = dot(r, r);
        const double beta = rho / before;
        for (int i = 0; i < length; ++i) p[i] = r[i] + beta * p[i];
    }
    multiply(z, r);
    for (int i = 0; i < length; ++i) r[i] = x[i] - r[i];
    return sqrt(dot(r, r));
}

// One iteration of the power method; returns its estimate.
static double iterate(double *residual) {
    *residual = solve();
    const double zeta = SHIFT + 1.0 / dot(x, z);
    const double scale = 1.0 / sqrt(dot(z, z));
    for (int i = 0; i < length; ++i) x[i] = scale * z[i];
    return zeta;
}

static void reset(void) {
    for (int i = 0; i < length; ++i) x[i] = 1;
}

// Rank 0 prints the estimates; returns what is wrong, or NULL.
static const char *verify(const double *zeta, const double *residual) {
    if (world.rank == 0) {
        printf("NPB CG class %s: %d rows, %d x %d ranks, %d iterations\n", BENCH_TEXT(NPB_CLASS),
               NA, grid_rows, grid_columns, OFFICIAL_ITERATIONS);
        for (int i = 0; i < OFFICIAL_ITERATIONS; ++i) {
            printf("iteration %2d: zeta %.13f residual %.6e\n", i + 1, zeta[i], residual[i]);
        }
    }
    const bool good = fabs(zeta[OFFICIAL_ITERATIONS - 1] - OFFICIAL_ZETA) <= kTolerance;
    return good ? NULL : "zeta is not the official one";
}

// Millions of operations by the benchmark's own count.
static double operations(void) {
    const double products = NONZER * (NONZER + 1);
    return 1e-6 * 2 * OFFICIAL_ITERATIONS * NA * (3 + products + kSteps * (5 + products) + 3);
}

int main(int argc, char **argv) {
    world = npb_begin("cg", argc, argv);
    npb_require_ranks(&world, npb_is_power_of_two(world.ranks) && world.ranks <= kRanksMax,
                      "a power of two from 1 to 64");
    double residual[OFFICIAL_ITERATIONS], zeta[OFFICIAL_ITERATIONS];
    prepare();
    reset();
    (void)iterate(&residual[0]);  // untimed: touches all memory
    reset();

    const double start = npb_start();
    for (int i = 0; i < OFFICIAL_ITERATIONS; ++i) zeta[i] = iterate(&residual[i]);
    const double seconds = npb_stop(start);

    const struct npb_result result = {
        .seconds = seconds, .mops = operations() / seconds, .wrong = verify(zeta, residual)};
    release();
    return npb_finish(&world, &result);
}
