/* The results that a job of the hub must have, by a serial loop: gradients that are a function of worker,
 * element and iteration, sums of one number after another, and steps by the kernel optimizer_update. Keeps
 * every version of every chunk. */
#ifndef PH_TEST_SHARD_ORACLE_H
#define PH_TEST_SHARD_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/layout/layout.h"
#include "kernel/kernel.h"
#include "phloem/hub.h"

/* Ends the process when the condition is false, and prints it: works in threads and fuzz targets, where
 * cmocka cannot. */
#define trial_require(condition) ((condition) ? (void)0 : trial__broken(#condition, __FILE__, __LINE__))
_Noreturn void trial__broken(const char *condition, const char *file, int line);

struct trial_key {
    size_t num_elements;
    enum ph_dtype dtype;
    uint32_t optimizer;
};

struct trial_job { /* pointers are borrowed until destroy */
    const struct ph__kernels *kernels;
    const struct trial_key *keys;
    size_t num_keys, chunk_bytes;
    const struct ph_hub_optimizer *optimizers;
    uint32_t num_optimizers;
    bool is_mean;
    float clip_norm;
    uint64_t seed; /* of gradients and first parameters */
};

struct oracle_push {
    uint32_t worker;
    uint64_t iteration;
};

struct shard_oracle;

struct shard_oracle *shard_oracle_create(const struct trial_job *job, const struct ph__layout *layout);
void shard_oracle_destroy(struct shard_oracle *oracle); /* NULL is fine */

/* Computes the gradient that the worker pushes for the chunk in this iteration, in the chunk's dtype; for
 * ORACLE_INITIAL, the first parameters. */
#define ORACLE_INITIAL UINT32_MAX
void shard_oracle_gradient(const struct shard_oracle *oracle, uint32_t worker, uint32_t chunk,
    uint64_t iteration, void *numbers_out);

/* Gives the chunk its first parameters instead of zeros. */
void shard_oracle_assign(struct shard_oracle *oracle, uint32_t chunk);

/* Sums the pushes in their order, or steps with the sum to the next version. With clipping, all chunks are
 * summed before the first is stepped. */
void shard_oracle_sum(
    struct shard_oracle *oracle, uint32_t chunk, const struct oracle_push *pushes, size_t num_pushes);
bool shard_oracle_is_summed(const struct shard_oracle *oracle, uint32_t chunk);
void shard_oracle_step(struct shard_oracle *oracle, uint32_t chunk, float learning_rate);

uint64_t shard_oracle_version(const struct shard_oracle *oracle, uint32_t chunk);
/* Tells whether this version of the chunk, in its dtype, has the bits of `numbers`, or returns the number of
 * gradients in its sum. */
bool shard_oracle_is(
    const struct shard_oracle *oracle, uint32_t chunk, uint64_t version, const void *numbers);
uint32_t shard_oracle_contributors(const struct shard_oracle *oracle, uint32_t chunk, uint64_t version);
/* Returns the fp32 weights of the newest version. */
const float *shard_oracle_weights(const struct shard_oracle *oracle, uint32_t chunk);

#endif
