/* Random walks of shards on trial: workers push, pull and die, shards run and replies leave, in an order that
 * a seed gives, until each worker that is left has pushed all its iterations and everything is settled and
 * held against the oracle. */
#ifndef PH_TEST_SHARD_WALK_H
#define PH_TEST_SHARD_WALK_H

#include "base/rng.h"
#include "support/shard_trial.h"

struct shard_walk {
    uint64_t num_iterations;
    size_t num_removals;         /* workers that die on the way, from one shard after the other */
    bool changes_learning_rates; /* rank 0, while it lives */
};

void shard_walk(struct shard_trial *trial, const struct shard_walk *walk, struct ph__rng_sequence *random);

/* What a job of five keys in all dtypes is, of 13 chunks; the key's optimizer is key % num_optimizers. */
struct trial_job shard_walk_job(const struct ph__kernels *kernels, const struct ph_hub_optimizer *optimizers,
    uint32_t num_optimizers, uint64_t seed);

/* Every kind of optimizer that a hub has. */
enum { WALK_NUM_OPTIMIZERS = 7 };
extern const struct ph_hub_optimizer walk_optimizers[WALK_NUM_OPTIMIZERS];

#endif
