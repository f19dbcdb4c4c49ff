/* The arrays that a path of format npy stands for, and the columns that they are.
 *
 * P_labels.npy (or P alone) stands for MLPerf's layout of Criteo: P_labels.npy (N), P_dense.npy (N,13) as columns I1, I2 ...,
 * and P_sparse_multi_hot.npz, whose members 0, 1 ... (N, hotness) are columns C1, C2 ..., or P_sparse.npy (N,26), one id a
 * column. A path that ends in .npz is one file whose members are columns by their names: of one dimension a value a row; of
 * two, whole numbers are a list and floats one column for each of theirs, NAME_1, NAME_2 ... */
#ifndef PH_DATA_SOURCE_NPY_H
#define PH_DATA_SOURCE_NPY_H

#include "base/text/name_index.h"
#include "data/source/array_file.h"
#include "data/source/input_file.h"

/* A column of the data: column `index` of an array, or all of them as a list. */
struct ph__array_column {
    char *name;
    size_t array, index;
    bool is_list;
};

struct ph__array_set { /* zero-initialised may be closed */
    struct ph__arena arena;
    struct ph__npz npz;
    struct ph__array_file *arrays;
    size_t num_arrays, arrays_capacity;
    struct ph__array_column *columns; /* in the data's order */
    size_t num_columns, columns_capacity;
    struct ph__name_index names; /* of the columns, in their order */
    uint64_t num_rows;           /* of every array */
};

/* Opens all arrays and compares their numbers of rows. Without needs_no_labels P_labels.npy must be there. To be closed
 * also on failure. PH_ERROR_DATA naming the array, or both that disagree. */
ph_status ph__array_set_open(struct ph__array_set *set, const char *path, bool needs_no_labels);
void ph__array_set_close(struct ph__array_set *set);

#endif
