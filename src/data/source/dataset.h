/* A dataset's inside: the batches that it owns, and their columns. */
#ifndef PH_DATA_DATASET_H
#define PH_DATA_DATASET_H

#include "data/source/arrow_column.h"

#define PH_DATASET_NAME "dataset" /* in errors */

struct ph__dataset_batch {
    struct ArrowArray array;
    struct ph__arrow_column *columns; /* (num_columns) of the dataset's arena */
    size_t num_columns;
    uint64_t num_rows;
    const unsigned char *validity; /* of whole rows; NULL: none is null */
    int64_t offset;                /* of row 0 in it */
};

struct ph_dataset {
    struct ph__arena arena;
    struct ph__dataset_batch *batches;
    size_t num_batches, batches_capacity;
    uint64_t num_rows;
};

#endif
