/* First touch: a page of memory belongs to the NUMA node whose processor writes to it first. So each shard writes to all
 * pages of its chunks before anybody else does, in its core thread and in turns as of its other work, since a new page costs
 * a fault: the job begins when all shards are done, and other jobs go on meanwhile.
 *
 * What is written is what was there, for parameters may come from a checkpoint. Pages of 2 MiB hold chunks of several
 * shards, and belong to the one that has the first byte. What is received from other hosts has places that no chunk owns
 * (shard_places.c): they are touched when something comes. */
#include <unistd.h>

#include "base/sizes.h"
#include "hub/shard/shard_state.h"

#define BYTES_A_TURN ((size_t)256 << 10)

static void touch(void *memory, size_t size, size_t page)
{
    char *begin = memory;
    for (size_t at = 0; at < size; at += page - (size_t)(begin + at) % page)
        __atomic_fetch_or(begin + at, 0, __ATOMIC_RELAXED);
}

/* What there is of an array for gradients or results, which lies in the region. Returns its bytes. */
static size_t touch_shared(
    const struct ph_region *region, char *array, const struct ph_chunk_place *place, size_t page)
{
    if (array == NULL)
        return 0;
    const size_t enlarged =
        ph__region_enlarge_pages(region, array + place->gradient_offset, place->gradient_bytes);
    touch(array + place->gradient_offset, place->gradient_bytes, page);
    return ph__max(enlarged, place->gradient_bytes);
}

static size_t touch_weights(float *array, const struct ph_chunk_place *place, size_t page)
{
    if (array == NULL)
        return 0;
    const size_t size = place->num_elements * sizeof *array;
    touch(array + place->first_weight, size, page);
    return size;
}

static size_t touch_worker(
    const struct ph_worker_memory *worker, const struct ph_chunk_place *place, size_t page)
{
    size_t size = 0;
    for (uint32_t i = 0; worker->received == NULL && i < PH_HUB_MAX_DEPTH; i++)
        size += touch_shared(&worker->region, worker->gradients[i], place, page) +
                touch_shared(&worker->region, worker->parameters[i], place, page);
    return size;
}

static size_t touch_job(const struct ph_job_memory *memory, const struct ph_chunk_place *place, size_t page)
{
    size_t size = touch_weights(memory->m, place, page) + touch_weights(memory->s, place, page);
    for (uint32_t i = 0; i < PH_HUB_MAX_DEPTH; i++) {
        size += touch_shared(&memory->region, memory->results[i], place, page) +
                touch_weights(memory->sums[i], place, page);
        if ((char *)memory->weights[i] != memory->results[i])
            size += touch_weights(memory->weights[i], place, page);
    }
    return size;
}

/* A step is what the job has of a chunk, or what one of its workers has. */
static size_t touch_next(struct ph_shard *shard, size_t page)
{
    const struct ph_job_memory *memory = shard->job->memory;
    const size_t steps_a_chunk = memory->num_workers + 1;
    const size_t chunk = shard->num_touched / steps_a_chunk, step = shard->num_touched % steps_a_chunk;
    const struct ph_chunk_place *place = &memory->layout->chunks[shard->chunks[chunk]];
    shard->num_touched++;
    return step == 0 ? touch_job(memory, place, page) : touch_worker(&memory->workers[step - 1], place, page);
}

void ph__shard_begin_touch(struct ph_shard *shard)
{
    shard->is_touching = true;
    shard->num_touched = 0;
}

size_t ph__shard_touch(struct ph_shard *shard, size_t max_bytes, size_t *bytes_out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = ph__min(max_bytes, BYTES_A_TURN);
    const size_t all = shard->num_chunks * (shard->job->memory->num_workers + 1);
    size_t size = 0, count = 0;
    for (; shard->num_touched < all && size < most; count++)
        size += touch_next(shard, page);
    *bytes_out = size;
    if (shard->num_touched == all) {
        shard->is_touching = false;
        shard->callbacks.touched(shard->callbacks.context);
        count++;
    }
    return count;
}
