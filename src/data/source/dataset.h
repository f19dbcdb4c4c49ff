/* The struct of a dataset (phloem/data.h), its batches with their columns, and passes over the batches. */
#ifndef PH_DATA_DATASET_H
#define PH_DATA_DATASET_H

#include <pthread.h>

#include "data/source/arrow_column.h"

struct ph__dataset_batch {
    struct ArrowArray array;          /* owned, in a dataset; otherwise empty */
    struct ph__arrow_column *columns; /* (num_columns) owned by an arena */
    size_t num_columns;
    uint64_t num_rows;
    const unsigned char *validity; /* bitmap of whole rows; NULL: no row is null */
    int64_t offset;                /* bit of row 0 in the bitmap */
};

/* Lays out a record batch with its schema, both borrowed: the buffers until the batch is released, the schema
 * during the call. PH_ERROR_DATA or PH_ERROR_USAGE when they do not fit or have been released. */
ph_status ph__dataset_batch_init(struct ph__arena *arena, const struct ArrowArray *array,
    const struct ArrowSchema *schema, struct ph__dataset_batch *batch_out);

/* Source of the streams of a dataset. Passes of several threads may share it. */
struct ph__dataset_streams {
    struct ph_stream_opener opener;
    pthread_mutex_t lock; /* held while a stream is opened; guards num_rows */
    uint64_t num_rows;    /* rows of the first pass that came to its end; 0: none has */
};

struct ph_dataset {
    struct ph__arena arena;
    const char *name; /* name in errors */
    struct ph__dataset_batch *batches;
    size_t num_batches, batches_capacity;
    uint64_t num_rows;
    struct ph__dataset_streams *streams; /* NULL: batches in memory */
};

/* A pass over the batches, in memory or of one stream. One thread at a time. */
struct ph__dataset_reader { /* zero-initialised is closed */
    const struct ph_dataset *dataset;
    size_t num_read; /* batches given */
    /* of a stream */
    struct ArrowArrayStream stream; /* released: closed */
    struct ArrowSchema schema;
    struct ph__dataset_batch batch; /* given last */
    struct ph__arena arena;         /* owns its columns */
    uint64_t num_rows;              /* rows of the batches given */
};

/* Begins a pass. Close the reader also on failure. */
ph_status ph__dataset_reader_open(struct ph__dataset_reader *reader, const struct ph_dataset *dataset);
/* Gives the next batch, NULL at the end; borrowed until the next call or close. */
ph_status ph__dataset_reader_next(
    struct ph__dataset_reader *reader, const struct ph__dataset_batch **batch_out);
void ph__dataset_reader_close(struct ph__dataset_reader *reader);

/* Begins a pass and gives its first batch, for the columns. PH_ERROR_DATA when there is none. */
ph_status ph__dataset_reader_first(struct ph__dataset_reader *reader, const struct ph_dataset *dataset,
    const struct ph__dataset_batch **batch_out);

#endif
