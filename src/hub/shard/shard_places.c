/* Where gradients are received to. A chunk that comes is summed soon, and its place is free again: the place that was freed last
 * is the next to be used, so that what is received and summed stays in the caches of the core that does both, however large
 * the job.
 *
 * The places are the room of workers that send their gradients, as large as all that these may have under way: a place is always
 * free. Chunks that are shorter than chunk_bytes, at the ends of keys, keep their own, and so do wide jobs, whose keys have
 * to lie in one piece. Only the shard's own thread deals places out; they are pages of its NUMA node as soon as it has received
 * something there. */
#include <assert.h>

#include "hub/shard/shard_state.h"

static bool is_dealt_out(const struct ph_shard *shard, const struct ph_chunk_place *chunk)
{
    return shard->job->wide == NULL && chunk->gradient_bytes == shard->job->memory->layout->chunk_bytes;
}

static char *own_place(const struct ph_shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph_job_memory *memory = shard->job->memory;
    return memory->workers[worker].gradients[iteration % memory->depth] +
           memory->layout->chunks[chunk].gradient_offset;
}

/* The first chunk's comes last, and so is used first. There may be fewer chunks than the shard was made for:
 * autotune_measure.c changes the layout. */
void ph__shard_add_places(struct ph_shard *shard, uint32_t worker)
{
    const struct ph_layout *layout = shard->job->memory->layout;
    for (uint32_t iteration = 0; iteration < shard->job->depth; iteration++) {
        for (size_t i = shard->num_chunks; i-- > 0;) {
            const uint32_t chunk = shard->chunks[i];
            if (chunk < layout->sizes.num_chunks && is_dealt_out(shard, &layout->chunks[chunk]))
                shard->places[shard->num_places++] = own_place(shard, chunk, worker, iteration);
        }
    }
}

void ph__shard_deal_places(struct ph_shard *shard)
{
    shard->num_places = 0;
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        if (ph__shard_is_live(shard, worker) && shard->links[worker].has_payloads)
            ph__shard_add_places(shard, worker);
    }
}

char *ph__shard_take_place(struct ph_shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph_job_memory *memory = shard->job->memory;
    if (!is_dealt_out(shard, &memory->layout->chunks[chunk]))
        return own_place(shard, chunk, worker, iteration);
    char **received = &ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    if (*received == NULL) {
        assert(shard->num_places > 0);
        *received = shard->places[--shard->num_places];
    }
    return *received;
}

char *ph__shard_gradient(const struct ph_shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph_job_memory *memory = shard->job->memory;
    char *received = ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    return received != NULL ? received : own_place(shard, chunk, worker, iteration);
}

void ph__shard_free_place(struct ph_shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph_job_memory *memory = shard->job->memory;
    char **received = &ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    if (*received != NULL)
        shard->places[shard->num_places++] = *received;
    *received = NULL;
}
