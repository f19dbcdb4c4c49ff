/* Memory of one batch, and the filling of it from encoded rows (batches.c). */
#ifndef PH_DATA_BATCH_BUFFER_H
#define PH_DATA_BATCH_BUFFER_H

#include "data/encode/encoder.h"
#include "data/encode/rows.h"

struct ph__batch_buffer { /* zero-initialised is empty; grows only */
    struct ph_batch batch;
    ph_real *reals; /* dense, labels, teachers, their masks and weights, one after the other */
    size_t reals_capacity;
    int32_t *lengths;
    size_t lengths_capacity;
    uint32_t *offsets;
    size_t offsets_capacity;
    size_t num_single_bags; /* count of one-id bags that lengths and offsets describe; 0: other bags */
    int64_t *ids;
    size_t ids_capacity;
    ph_real *id_weights;
    size_t id_weights_capacity;
    int64_t *groups;
    size_t groups_capacity;
};

/* Writes rows that the encoder encoded into buffer->batch, in the combined format. With num_rows 0 the arrays
 * are still allocated, and empty. */
ph_status ph__batch_buffer_fill(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const uint32_t *const *rows, size_t num_rows, uint64_t first_sample);
void ph__batch_buffer_fini(struct ph__batch_buffer *buffer);

#endif
