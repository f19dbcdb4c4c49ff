/* Micro-batches: the parts of a step's batch, bound one after the other, that train.accumulation_steps cuts
 * it into.
 *
 * The samples of a batch are cut in order into parts whose sizes differ by at most one. With several ranks,
 * each cuts its own samples, and the remainder goes to the last part: of a part of n samples, rank r of W
 * then has [n r / W, n (r + 1) / W), as of a batch of that size. */
#ifndef PH_TRAIN_MICRO_BATCH_H
#define PH_TRAIN_MICRO_BATCH_H

#include "phloem/status.h"
#include "phloem/tensor.h"

/* Zero-initialised; call fini. */
struct ph__micro_batch {
    struct ph_batch batch; /* the latest part, borrowed from the whole batch and from the arrays below */
    int32_t *lengths;
    uint32_t *offsets;
    int64_t *ids;
    ph_real *id_weights;
    size_t lengths_capacity, offsets_capacity, ids_capacity, weights_capacity;
};

void ph__micro_batch_fini(struct ph__micro_batch *micro);

/* Returns the number of parts that a batch is cut into: `wanted`, but at least one, and no more than the
 * samples of the rank that has the fewest. */
size_t ph__micro_batch_count(const struct ph_batch *whole, size_t world_size, size_t wanted);
/* Returns the most samples of a rank that a part may have, for a batch of which the rank has num_samples. */
size_t ph__micro_batch_most_samples(size_t num_samples, size_t world_size, size_t wanted);

/* Makes part `number` of `count` micro->batch; with one part that is the whole. Allocates where a part is
 * larger than any before. PH_ERROR_MEMORY. */
ph_status ph__micro_batch_cut(struct ph__micro_batch *micro, const struct ph_batch *whole, size_t world_size,
    size_t number, size_t count);

/* Names what is known of a row that counts: its label, its teacher, or both. */
enum ph__known { PH_KNOWN_LABEL, PH_KNOWN_TEACHER, PH_KNOWN_BOTH };

/* Sums the weights of a batch's samples, each once a task that is known. */
double ph__batch_weight(const struct ph_batch *batch, enum ph__known known);

#endif
