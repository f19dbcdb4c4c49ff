/* Micro-batches: the parts of a step's batch that are bound one after the other where
 * train.accumulation_steps cuts it.
 *
 * The samples of a batch are cut in order into parts of sizes that differ by one at most. Where several ranks
 * have them, each cuts its own, and what is over goes to the last part, so that of each part the ranks have
 * what they would have of a batch of its size: rank r of W the samples [n r / W, n (r + 1) / W) of its n. */
#ifndef PH_TRAIN_MICRO_BATCH_H
#define PH_TRAIN_MICRO_BATCH_H

#include "phloem/status.h"
#include "phloem/tensor.h"

/* Zero-initialised; to be finished. */
struct ph__micro_batch {
    struct ph_batch batch; /* of the latest cut, borrowed from the whole one and from here */
    int32_t *lengths;
    uint32_t *offsets;
    int64_t *ids;
    ph_real *id_weights;
    size_t lengths_capacity, offsets_capacity, ids_capacity, weights_capacity;
};

void ph__micro_batch_fini(struct ph__micro_batch *micro);

/* Into how many parts a batch is cut: `wanted`, but no more than any rank has samples, and one at least. */
size_t ph__micro_batch_count(const struct ph_batch *whole, size_t world_size, size_t wanted);
/* Samples of a rank that the largest part has at most, of a batch of which it has num_samples. */
size_t ph__micro_batch_most_samples(size_t num_samples, size_t world_size, size_t wanted);

/* Part `number` of `count`; of one part the whole as it is. Allocates where a part is larger than any before.
 * PH_ERROR_MEMORY. */
ph_status ph__micro_batch_cut(struct ph__micro_batch *micro, const struct ph_batch *whole, size_t world_size,
    size_t number, size_t count);

/* Of a batch's labels: known ones, each by the weight of its sample. */
double ph__batch_weight(const struct ph_batch *batch);

#endif
