/* Parts of logical tensors: which rows and columns of a whole matrix a tensor has (struct ph_tensor). */
#ifndef PH_STORE_TENSOR_PART_H
#define PH_STORE_TENSOR_PART_H

#include <stdbool.h>

#include "store/store.h"

bool ph__shape_equal(const struct ph_shape *a, const struct ph_shape *b);

/* Not all of its logical tensor. */
bool ph__tensor_is_part(const struct ph_tensor *tensor);
/* The shape of the logical tensor, which is the tensor's own where it is whole. */
struct ph_shape ph__tensor_whole(const struct ph_tensor *tensor);

/* Two tensors of one name cannot both be in a store or a checkpoint, unless they are parts of one whole that have no
 * element in common. */
bool ph__tensor_excludes(const struct ph_tensor *a, const struct ph_tensor *b);

/* A slice of a table as a logical tensor or a part of one: all but its values. */
struct ph_tensor ph__slice_tensor(
    const struct ph_table_slice *slice, const struct ph_slice_part *part, size_t dim);

#endif
