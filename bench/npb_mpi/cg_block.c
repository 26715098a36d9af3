// SPDX-License-Identifier: Apache-2.0
//
// The matrix is the weighted sum of the outer products of NA sparse random vectors with themselves,
// with weights that fall from 1 to kRcond, and kRcond - SHIFT added on the diagonal.  The products
// within the block are generated twice, to be counted and to be put in their rows, which needs no
// room for a list of them; then those of the same place are added up, in the order of generation.
#include "cg_block.h"

#include <math.h>

static bool is_within(struct cg_range range, int index) {
    return index >= range.begin && index < range.end;
}

static struct sparse_vector part_within(const struct sparse_vector *vector, struct cg_range range) {
    struct sparse_vector part = {.count = 0};
    for (int i = 0; i < vector->count; ++i) {
        if (is_within(range, vector->index[i])) append(&part, vector->index[i], vector->value[i]);
    }
    return part;
}

// What becomes of a product; row and column count from the block's.
typedef void (*product_use)(struct cg_block *block, int *row_ends, int row, int column,
                            double value);

static void count_product(struct cg_block *block, int *row_ends, int row, int column,
                          double value) {
    (void)block, (void)column, (void)value;
    ++row_ends[row];
}

static void place_product(struct cg_block *block, int *row_ends, int row, int column,
                          double value) {
    const int at = row_ends[row]++;
    block->columns_of_values[at] = column;
    block->values[at] = value;
}

static void generate(struct cg_block *block, int *row_ends, product_use use) {
    const struct cg_range rows = block->rows, columns = block->columns;
    uint64_t seed = NPB_SEED;
    (void)npb_random(&seed);  // the specified sequence begins with the second number
    const double ratio = pow(kRcond, 1.0 / NA);
    double weight = 1;
    for (int i = 0; i < NA; ++i, weight *= ratio) {
        struct sparse_vector vector;
        make_vector(&vector, i, &seed);
        const struct sparse_vector left = part_within(&vector, rows);
        const struct sparse_vector right = part_within(&vector, columns);
        for (int row = 0; row < left.count; ++row) {
            for (int column = 0; column < right.count; ++column) {
                use(block, row_ends, left.index[row] - rows.begin,
                    right.index[column] - columns.begin,
                    left.value[row] * (weight * right.value[column]));
            }
        }
        if (is_within(rows, i) && is_within(columns, i)) {
            use(block, row_ends, i - rows.begin, i - columns.begin, kRcond - SHIFT);
        }
    }
}

// Adds up what is of one place; rows move to the front.  `places` has room for every column.
static void merge_rows(struct cg_block *block, int *places) {
    const int rows = cg_length(block->rows);
    for (int column = 0; column < cg_length(block->columns); ++column) places[column] = -1;
    int begin = 0, to = 0;
    for (int row = 0; row < rows; ++row) {
        const int end = block->row_begins[row + 1];
        const int merged = block->row_begins[row] = to;
        for (int at = begin; at < end; ++at) {
            const int column = block->columns_of_values[at];
            if (places[column] >= merged) {
                block->values[places[column]] += block->values[at];
                continue;
            }
            places[column] = to;
            block->columns_of_values[to] = column;
            block->values[to++] = block->values[at];
        }
        begin = end;
    }
    block->row_begins[rows] = to;
}

struct cg_block cg_make_block(const struct npb_world *world, struct cg_range rows,
                              struct cg_range columns) {
    struct cg_block block = {.rows = rows, .columns = columns};
    const int row_count = cg_length(rows);
    block.row_begins = npb_allocate(world, (size_t)row_count + 1, sizeof(int));
    int *const row_ends = npb_allocate(world, (size_t)row_count, sizeof(int));
    generate(&block, row_ends, count_product);
    for (int row = 0; row < row_count; ++row) {
        block.row_begins[row + 1] = block.row_begins[row] + row_ends[row];
        row_ends[row] = block.row_begins[row];
    }
    const size_t products = (size_t)block.row_begins[row_count];
    block.columns_of_values = npb_allocate(world, products + 1, sizeof(int));
    block.values = npb_allocate(world, products + 1, sizeof(double));
    generate(&block, row_ends, place_product);
    free(row_ends);

    int *const places = npb_allocate(world, (size_t)cg_length(columns), sizeof(int));
    merge_rows(&block, places);
    free(places);
    return block;
}

void cg_free_block(struct cg_block *block) {
    free(block->values);
    free(block->columns_of_values);
    free(block->row_begins);
}
