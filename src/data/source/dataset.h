/* The struct of a dataset (phloem/data.h): its batches, and their columns. */
#ifndef PH_DATA_DATASET_H
#define PH_DATA_DATASET_H

#include "data/source/arrow_column.h"

#define PH_DATASET_NAME "dataset" /* name in errors */

struct ph__dataset_batch {
    struct ArrowArray array;
    struct ph__arrow_column *columns; /* (num_columns) owned by the dataset's arena */
    size_t num_columns;
    uint64_t num_rows;
    const unsigned char *validity; /* bitmap of whole rows; NULL: no row is null */
    int64_t offset;                /* bit of row 0 in the bitmap */
};

struct ph_dataset {
    struct ph__arena arena;
    struct ph__dataset_batch *batches;
    size_t num_batches, batches_capacity;
    uint64_t num_rows;
};

#endif
