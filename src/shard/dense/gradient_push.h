/* Sums of dense gradients by a reducer, a parameter hub: start writes a bucket's gradients to where the reducer takes them from
 * and lets it go, wait takes the sums from where they lie. The program keeps no memory for either. */
#ifndef PH_SHARD_GRADIENT_PUSH_H
#define PH_SHARD_GRADIENT_PUSH_H

#include "shard/dense/gradient_bucket.h"

extern const struct ph_bucket_ops ph__bucket_push_ops;

/* The reducer hears how many numbers each bucket has. PH_ERROR_CONFIG: gradients are to travel in a format that it does not
 * know; else what it fails with. */
ph_status ph__gradient_push_open(const struct ph_sharding *sharding, size_t num_buckets, const size_t *sizes);

#endif
