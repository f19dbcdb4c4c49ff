/* Dense gradients that are summed over ranks as one. */
#ifndef PH_SHARD_GRADIENT_BUCKET_H
#define PH_SHARD_GRADIENT_BUCKET_H

#include "op/operator.h"
#include "shard/sharding.h"

enum { PH_BUCKET_MOST_GRADIENTS = PH_MAX_OPERANDS - 3 };

/* Attributes of the nodes that start the bucket's sum and wait for it. */
struct ph__gradient_bucket {
    struct ph__sharding *sharding;
    const struct ph__group *group; /* ranks whose gradients are summed; a reducer sums those of all */
    uint32_t index;                /* among the program's buckets, in the order in which they start */
    size_t count, num_elements;
    size_t elements[PH_BUCKET_MOST_GRADIENTS]; /* by gradient */
};

static inline const struct ph__gradient_bucket *ph__bucket_of(const struct ph__call *call)
{
    return call->attributes;
}

/* Infers wait's outputs: the inputs behind those between wait and start. */
static inline ph_status ph__bucket_wait_infer(struct ph__infer *infer, size_t num_between)
{
    for (size_t i = 0; i < infer->num_outputs; i++)
        infer->outputs[i] = infer->inputs[num_between + i];
    return PH_OK;
}

/* A pair of operators. Wait reads start's first num_between outputs and, for their types, the gradients; it
 * gives the sums. */
struct ph__bucket_ops {
    const struct ph__op *start, *wait;
    size_t num_between;
};

/* ---- gradient_push.c ----
 *
 * Sums of dense gradients by a reducer, a parameter hub: start writes a bucket's gradients into the reducer's
 * memory and starts its sum there; wait reads the sums in the reducer's memory. The program keeps no memory
 * for either. */

extern const struct ph__bucket_ops ph__bucket_push_ops;

/* Tells the reducer how many numbers each bucket has. PH_ERROR_CONFIG: the reducer does not know the
 * gradients' wire format; the reducer's errors. */
ph_status ph__gradient_push_open(
    const struct ph__sharding *sharding, size_t num_buckets, const size_t *sizes);

#endif
