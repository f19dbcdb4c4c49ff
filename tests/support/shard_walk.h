/* Random walks of shards on trial: workers push, pull and die, shards run and replies leave, in an order that
 * a seed determines, until each remaining worker has pushed all its iterations. Then everything is settled
 * and compared with the oracle. */
#ifndef PH_TEST_SHARD_WALK_H
#define PH_TEST_SHARD_WALK_H

#include "base/rng.h"
#include "support/shard_trial.h"

struct shard_walk {
    uint64_t num_iterations;
    size_t num_removals;         /* workers that die on the way, at one shard after another */
    bool changes_learning_rates; /* rank 0, while it lives */
};

void shard_walk(struct shard_trial *trial, const struct shard_walk *walk, struct ph__rng_sequence *random);

/* Returns a job of five keys in all dtypes, of 13 chunks; a key's optimizer is key % num_optimizers. */
struct trial_job shard_walk_job(const struct ph__kernels *kernels, const struct ph_hub_optimizer *optimizers,
    uint32_t num_optimizers, uint64_t seed);

/* One optimizer of each kind that a hub has. */
enum { WALK_NUM_OPTIMIZERS = 7 };
extern const struct ph_hub_optimizer walk_optimizers[WALK_NUM_OPTIMIZERS];

#endif
