/* Dense gradients that are summed over ranks as one. */
#ifndef PH_SHARD_GRADIENT_BUCKET_H
#define PH_SHARD_GRADIENT_BUCKET_H

#include "op/operator.h"
#include "shard/sharding.h"

enum { PH_BUCKET_MOST_GRADIENTS = PH_MAX_OPERANDS - 2 };

/* The attributes of the nodes that start its sum and wait for it. */
struct ph__gradient_bucket {
    struct ph__sharding *sharding;
    uint32_t index; /* of the program's buckets, in the order in which they are started */
    size_t count, num_elements;
    size_t elements[PH_BUCKET_MOST_GRADIENTS]; /* by gradient */
};

static inline const struct ph__gradient_bucket *ph__bucket_of(const struct ph__call *call)
{
    return call->attributes;
}

/* The rule for wait's outputs: its inputs behind those between it and start. */
static inline ph_status ph__bucket_wait_infer(struct ph__infer *infer, size_t num_between)
{
    for (size_t i = 0; i < infer->num_outputs; i++)
        infer->outputs[i] = infer->inputs[num_between + i];
    return PH_OK;
}

/* Start and wait: of the first num_between outputs of start and, for their types, the gradients, wait makes
 * the sums. */
struct ph__bucket_ops {
    const struct ph__op *start, *wait;
    size_t num_between;
};

/* ---- gradient_push.c ----
 *
 * Sums of dense gradients by a reducer, a parameter hub: start writes a bucket's gradients to where the
 * reducer takes them from and lets it go, wait takes the sums from where they lie. The program keeps no
 * memory for either. */

extern const struct ph__bucket_ops ph__bucket_push_ops;

/* Tells the reducer how many numbers each bucket has. PH_ERROR_CONFIG: gradients are to travel in a format
 * that it does not know; else what it fails with. */
ph_status ph__gradient_push_open(
    const struct ph__sharding *sharding, size_t num_buckets, const size_t *sizes);

#endif
