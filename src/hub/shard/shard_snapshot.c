/* Copies a shard's chunks into snapshots while the job runs, and reads them back before it runs; see shard.h.
 *
 * A chunk is copied when its version is the wanted one: at once, as work among the rest, or, if its next
 * update comes first, just before that (copy on write). A chunk that has not reached the version is copied
 * with the update that does, while it is in the cache. Where no snapshot is under way, an update looks at one
 * byte of its chunk and at one number. */
#include <string.h>

#include "hub/keep/snapshot.h"
#include "hub/shard/shard_state.h"

#define NEVER UINT64_MAX

void ph__shard_hold(struct ph__shard *shard)
{
    shard->is_held = true;
}

void ph__shard_release(struct ph__shard *shard)
{
    shard->is_held = false;
}

static void copy_numbers(
    struct ph__shard *shard, const struct ph__chunk_place *place, float *to, const float *from)
{
    if (to == NULL)
        return;
    memcpy(to + place->first_weight, from + place->first_weight, place->num_elements * sizeof(float));
    shard->bytes_done += place->num_elements * sizeof(float);
}

void ph__shard_copy_chunk(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const struct ph__snapshot *snapshot = shard->snapshot;
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    state->is_wanted = false;
    copy_numbers(shard, place, snapshot->weights, memory->weights[state->version % memory->num_versions]);
    copy_numbers(shard, place, snapshot->m, memory->m);
    copy_numbers(shard, place, snapshot->s, memory->s);
    snapshot->chunks[chunk] =
        (struct ph__snapshot_chunk){.version = state->version, .learning_rate = state->learning_rate};
}

static void finish_chunk(struct ph__shard *shard)
{
    if (--shard->num_uncopied > 0)
        return;
    shard->snapshot = NULL;
    shard->snapshot_version = NEVER;
    shard->callbacks.copied(shard->callbacks.context);
}

/* Begins a copy. Counts one more than the chunks, so that a shard without chunks finishes the same way. */
static void begin(struct ph__shard *shard, struct ph__snapshot *snapshot)
{
    shard->snapshot = snapshot;
    shard->num_uncopied = shard->num_chunks + 1;
}

void ph__shard_begin_snapshot(struct ph__shard *shard, struct ph__snapshot *snapshot, uint64_t version)
{
    begin(shard, snapshot);
    shard->snapshot_version = version;
    for (size_t i = 0; i < shard->num_chunks; i++) {
        struct ph__chunk_state *state = ph__shard_state(shard, shard->chunks[i]);
        if (version != PH_SNAPSHOT_NOW && state->version != version)
            continue;
        state->is_wanted = true;
        ph__shard_add_work(shard, PH_WORK_COPY, shard->chunks[i], 0);
    }
    finish_chunk(shard);
}

void ph__shard_watch(struct ph__shard *shard, uint64_t version)
{
    shard->snapshot_version = version;
}

void ph__shard_reach_version(struct ph__shard *shard, uint32_t chunk)
{
    if (shard->snapshot == NULL) {
        shard->snapshot_version = NEVER;
        shard->callbacks.reached(shard->callbacks.context);
        return;
    }
    ph__shard_copy_chunk(shard, chunk);
    finish_chunk(shard);
}

void ph__shard_work_copy(struct ph__shard *shard, uint32_t chunk)
{
    if (ph__shard_state(shard, chunk)->is_wanted)
        ph__shard_copy_chunk(shard, chunk);
    finish_chunk(shard);
}

/* ---- reading back ---- */

void ph__shard_begin_restore(struct ph__shard *shard, struct ph__snapshot *snapshot)
{
    begin(shard, snapshot);
    for (uint32_t i = 0; i < shard->job->service.num_optimizers; i++)
        shard->learning_rates[i] = snapshot->learning_rates[i];
    for (size_t i = 0; i < shard->num_chunks; i++) {
        const uint32_t chunk = shard->chunks[i];
        ph__shard_state(shard, chunk)->learning_rate = snapshot->chunks[chunk].learning_rate;
        ph__shard_add_work(shard, PH_WORK_RESTORE, chunk, 0);
    }
    finish_chunk(shard);
}

void ph__shard_work_restore(struct ph__shard *shard, uint32_t chunk)
{
    const struct ph__job_memory *memory = shard->job->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const struct ph__snapshot *snapshot = shard->snapshot;
    const size_t copy = ph__shard_state(shard, chunk)->version % memory->num_versions;
    copy_numbers(shard, place, memory->weights[copy], snapshot->weights);
    copy_numbers(shard, place, memory->m, snapshot->m);
    copy_numbers(shard, place, memory->s, snapshot->s);
    ph__shard_publish(shard, chunk);
    finish_chunk(shard);
}
