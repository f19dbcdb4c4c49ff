/* Shards of logical tensors: which rows and columns of a whole one a tensor has (struct ph_tensor).
 *
 * A tensor is seen as a matrix here: a number is (1, 1), a vector is (n, 1), and of more dimensions all but
 * the first are columns. Matrices are cut into areas of rows and columns, vectors into runs. */
#ifndef PH_STORE_TENSOR_SHARD_H
#define PH_STORE_TENSOR_SHARD_H

#include <stdbool.h>

#include "base/memory/arena.h"
#include "phloem/store.h"

/* Which shard of a logical tensor (whole_rows, whole_columns) a slice is: its rows from first_row on, and as
 * many columns as the table has from first_column on, a multiple of PH_SHARD_COLUMN_STEP. Its values are
 * those that the whole one has there: the initial ones, and what updates round by chance. */
struct ph__slice_shard {
    size_t first_row, whole_rows; /* whole_rows < 2^32 */
    size_t first_column, whole_columns;
};
#define PH_SHARD_COLUMN_STEP \
    4 /* random numbers are drawn for as many columns at once (store/init.c, kernel/kernel.h) */

bool ph__shape_equal(const struct ph_shape *a, const struct ph_shape *b);

/* Not all of its logical tensor. */
bool ph__tensor_is_shard(const struct ph_tensor *tensor);
/* The shape of the logical tensor, which is the tensor's own where it is whole. */
struct ph_shape ph__tensor_whole(const struct ph_tensor *tensor);

/* Two tensors of one name cannot both be in a store or a checkpoint, unless they are shards of one whole that
 * have no element in common. */
bool ph__tensor_excludes(const struct ph_tensor *a, const struct ph_tensor *b);

/* Rows and columns of a matrix. */
struct ph__area {
    size_t first_row, num_rows, first_column, num_columns;
};
struct ph__area ph__shape_area(const struct ph_shape *shape); /* all of it */
/* What the tensor is of its logical tensor. */
struct ph__area ph__tensor_area(const struct ph_tensor *tensor);
/* What both have, relative to the whole; of no rows where they have nothing. */
struct ph__area ph__area_common(const struct ph__area *a, const struct ph__area *b);
bool ph__area_is_within(const struct ph__area *area, const struct ph__area *whole);

/* "embedding.user[0:500,0:32]", "slot.s:embedding.user[0:500]": rows, and columns where the shape has them.
 * NULL: no memory. */
const char *ph__area_name(
    struct ph__arena *arena, const char *name, const struct ph_shape *shape, const struct ph__area *area);

/* Areas within a whole one have each of its elements exactly once. Otherwise false, and what is missing or
 * there twice. Changes the order of the areas. */
bool ph__areas_cover(const struct ph__area *whole, struct ph__area *areas, size_t num_areas,
    struct ph__area *fault_out, bool *is_missing_out);

/* A slice of a table as a logical tensor or a shard of one: all but its values. */
struct ph_tensor ph__slice_tensor(
    const struct ph_table_slice *slice, const struct ph__slice_shard *shard, size_t dim);

#endif
