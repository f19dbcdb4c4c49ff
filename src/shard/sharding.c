#include "shard/sharding.h"

#include <stdlib.h>

#include "base/sizes.h"
#include "shard/lookup/request_exchange.h"

ph_status ph__sharding_create(
    const struct ph_distribution_options *options, struct ph_sharding **sharding_out)
{
    const size_t world_size = ph_comm_world_size(options->comm);
    struct ph_sharding *sharding = calloc(1, sizeof *sharding);
    if (sharding == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a program's shards");
    *sharding = (struct ph_sharding){.comm = options->comm,
        .plan = options->plan,
        .forward = options->forward,
        .backward = options->backward,
        .dense = options->dense,
        .bucket_bytes = options->bucket_bytes,
        .overlaps = options->overlaps,
        .reducer = options->reducer,
        .rank = ph_comm_rank(options->comm),
        .world_size = world_size,
        .streams = calloc(world_size, sizeof *sharding->streams),
        .bounds = calloc(world_size + 1, sizeof *sharding->bounds)};
    ph_status status = sharding->streams != NULL && sharding->bounds != NULL
                           ? ph__request_buffers_create(&sharding->requests)
                           : ph_fail(PH_ERROR_MEMORY, "no memory for the shards of %zu ranks", world_size);
    if (status != PH_OK) {
        ph__sharding_destroy(sharding);
        return status;
    }
    *sharding_out = sharding;
    return PH_OK;
}

void ph__sharding_destroy(struct ph_sharding *sharding)
{
    if (sharding == NULL)
        return;
    for (size_t rank = 0; sharding->streams != NULL && rank < sharding->world_size; rank++)
        free(sharding->streams[rank].items);
    free(sharding->streams);
    free(sharding->exchanges);
    free(sharding->tables);
    free(sharding->bounds);
    ph__request_buffers_destroy(sharding->requests);
    ph__arena_fini(&sharding->arena);
    free(sharding);
}

size_t ph__sharding_bound(const struct ph_sharding *sharding, size_t num_samples, size_t rank)
{
    return ph__part_start(num_samples, rank, sharding->world_size);
}

size_t ph__sharding_samples(const struct ph_sharding *sharding, size_t rank)
{
    return sharding->bounds[rank + 1] - sharding->bounds[rank];
}
