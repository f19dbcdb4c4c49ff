/* The memory of one batch, and how encoded rows become it. */
#ifndef PH_DATA_BATCH_BUFFER_H
#define PH_DATA_BATCH_BUFFER_H

#include "data/encode/encoder.h"
#include "data/encode/rows.h"

struct ph__batch_buffer { /* zero-initialised is empty; grows only */
    struct ph_batch batch;
    ph_real *reals; /* dense, labels, mask and weights, one after the other */
    size_t reals_capacity;
    int32_t *lengths;
    size_t lengths_capacity;
    uint32_t *offsets;
    size_t offsets_capacity;
    size_t
        num_single_bags; /* lengths and offsets are those of so many bags of one id each; 0: they are not */
    int64_t *ids;
    size_t ids_capacity;
    ph_real *id_weights;
    size_t id_weights_capacity;
    int64_t *groups;
    size_t groups_capacity;
};

/* Writes the rows, which the encoder has encoded, into buffer->batch in the combined format. Of no rows, too:
 * all arrays lie somewhere then, though nothing is in them. */
ph_status ph__batch_buffer_fill(struct ph__batch_buffer *buffer, const struct ph_encoder *encoder,
    const uint32_t *const *rows, size_t num_rows, uint64_t first_sample);
void ph__batch_buffer_fini(struct ph__batch_buffer *buffer);

#endif
