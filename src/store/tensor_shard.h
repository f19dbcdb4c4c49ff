/* Shards of logical tensors: the rows and columns of a whole tensor that a tensor has (struct ph_tensor).
 *
 * A tensor is seen as a matrix here: a number is (1, 1), a vector is (n, 1); of more dimensions, all but the
 * first are columns. Matrices are cut into areas of rows and columns, vectors into runs. */
#ifndef PH_STORE_TENSOR_SHARD_H
#define PH_STORE_TENSOR_SHARD_H

#include <stdbool.h>

#include "base/memory/arena.h"
#include "phloem/store.h"

/* The shard of a logical tensor (whole_rows, whole_columns) that a slice is: its rows from first_row on, and
 * as many columns as the table has from first_column on, a multiple of PH_SHARD_COLUMN_STEP. Its values equal
 * those of the whole tensor there, initial ones and randomly rounded updates included. */
struct ph__slice_shard {
    size_t first_row, whole_rows; /* whole_rows < 2^32 */
    size_t first_column, whole_columns;
};
#define PH_SHARD_COLUMN_STEP 4 /* columns per draw of random numbers (store/init.c, kernel/kernel.h) */

bool ph__shape_equal(const struct ph_shape *a, const struct ph_shape *b);

/* Tells whether the tensor is a part of its logical tensor. */
bool ph__tensor_is_shard(const struct ph_tensor *tensor);
/* Returns the shape of the logical tensor. */
struct ph_shape ph__tensor_whole(const struct ph_tensor *tensor);

/* Tells whether one store or checkpoint cannot have both tensors: they have one name and are not disjoint
 * shards of one whole. */
bool ph__tensor_excludes(const struct ph_tensor *a, const struct ph_tensor *b);

/* Rows and columns of a matrix. */
struct ph__area {
    size_t first_row, num_rows, first_column, num_columns;
};
struct ph__area ph__shape_area(const struct ph_shape *shape); /* all of it */
/* Returns the area that the tensor has of its logical tensor. */
struct ph__area ph__tensor_area(const struct ph_tensor *tensor);
/* Returns the common area, relative to the whole; without rows when there is none. */
struct ph__area ph__area_common(const struct ph__area *a, const struct ph__area *b);
bool ph__area_is_within(const struct ph__area *area, const struct ph__area *whole);

/* Returns "embedding.user[0:500,0:32]", "slot.s:embedding.user[0:500]": rows, and columns when the shape has
 * them. NULL when out of memory. */
const char *ph__area_name(
    struct ph__arena *arena, const char *name, const struct ph_shape *shape, const struct ph__area *area);

/* Tells whether areas within a whole one have each of its elements exactly once. Otherwise gives an area that
 * is missing or there twice. Reorders the areas. */
bool ph__areas_cover(const struct ph__area *whole, struct ph__area *areas, size_t num_areas,
    struct ph__area *fault_out, bool *is_missing_out);

/* Returns a slice of a table as a logical tensor or a shard of one, without its values. */
struct ph_tensor ph__slice_tensor(
    const struct ph_table_slice *slice, const struct ph__slice_shard *shard, size_t dim);

#endif
