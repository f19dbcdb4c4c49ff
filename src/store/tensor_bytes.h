/* A logical tensor as a checkpoint has it: an array of its dtype, whatever way the store holds it. Rows of bf16_split are
 * joined into the fp32 numbers that they are, piece by piece, so that no copy of a table is ever in memory. */
#ifndef PH_STORE_TENSOR_BYTES_H
#define PH_STORE_TENSOR_BYTES_H

#include "store/safetensors.h"

/* Calls visit with the tensor's bytes, in order, in one piece or more; what it returns but PH_OK ends the walk. */
typedef ph_status (*ph_bytes_visit)(void *context, const void *bytes, size_t size);
ph_status ph__tensor_visit_bytes(const struct ph_tensor *tensor, ph_bytes_visit visit, void *context);

/* Whether numbers of one dtype are read as those of the other. */
bool ph__dtype_converts(enum ph_dtype from, enum ph_dtype to);

/* Gives rows of a matrix, as its dtype has them: num_rows from first_row on into bytes. */
typedef ph_status (*ph_rows_read)(const void *context, size_t first_row, size_t num_rows, void *bytes);

/* Fills the tensor, seen as a matrix (store/tensor_part.h), from rows of its shape whose dtype converts. */
ph_status ph__tensor_fill(
    const struct ph_tensor *tensor, enum ph_dtype dtype, ph_rows_read read, const void *context);

#endif
