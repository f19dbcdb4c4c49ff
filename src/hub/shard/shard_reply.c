/* What goes back to workers: see shard.h. */
#include <string.h>

#include "hub/shard/shard_state.h"
#include "hub/shard/shard_trace.h"

/* A worker with parameters of its own gets them where it looks for those of this iteration. */
static void copy_own_parameters(struct ph_shard *shard, uint32_t worker, uint32_t chunk, uint64_t iteration)
{
    const struct ph_job_memory *memory = shard->job->memory;
    char *parameters = memory->workers[worker].parameters[iteration % memory->depth];
    const struct ph_chunk_place *place = &memory->layout->chunks[chunk];
    const char *results = memory->results[memory->chunks[chunk].version % memory->num_versions];
    if (parameters == NULL)
        return;
    memcpy(parameters + place->gradient_offset, results + place->gradient_offset, place->gradient_bytes);
    shard->bytes_done += place->gradient_bytes;
}

void ph__shard_reply(struct ph_shard *shard, uint32_t worker, uint32_t chunk, enum ph_hub_message_kind kind,
    uint64_t iteration)
{
    struct ph_shard_link *link = &shard->links[worker];
    const struct ph_job_memory *memory = shard->job->memory;
    struct ph_chunk_state *state = ph__shard_state(shard, chunk);
    struct ph_chunk_worker *request = ph__request(memory, chunk, worker);
    struct ph_message message = {.kind = (uint8_t)kind,
        .count = (uint16_t)state->num_contributors,
        .chunk = chunk,
        .iteration = iteration};
    const void *payload = NULL;
    size_t payload_bytes = 0;
    if (link->link == NULL || link->has_failed)
        return;
    if (kind == PH_HUB_VALUE && link->has_payloads) {
        const struct ph_chunk_place *place = &memory->layout->chunks[chunk];
        message.flags = (uint8_t)(state->version % memory->num_versions);
        payload = memory->results[message.flags] + place->gradient_offset;
        payload_bytes = place->gradient_bytes;
        state->num_sending[message.flags]++;
        request->num_sending[message.flags]++;
    }
    const ph_status status = ph__link_send(link->link, &message, payload, payload_bytes);
    if (status == PH_OK && payload == NULL && shard->job->trace != NULL)
        ph__shard_trace_reply(shard, worker, &message);
    if (status == PH_OK)
        return;
    if (payload != NULL) {
        state->num_sending[message.flags]--;
        request->num_sending[message.flags]--;
    }
    ph__shard_fail_worker(shard, worker);
}

static void answer_push(struct ph_shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph_chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    request->answered++;
    const uint8_t kind = request->kinds[request->answered % PH_HUB_MAX_DEPTH];
    ph__shard_reply(
        shard, worker, chunk, kind == PH_HUB_PUSH ? PH_HUB_TAKEN : PH_HUB_VALUE, request->answered);
}

void ph__shard_answer_pull(struct ph_shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph_chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    if (!request->is_pulling || request->answered < request->pulled)
        return;
    request->is_pulling = false;
    copy_own_parameters(shard, worker, chunk, request->pulled);
    ph__shard_reply(shard, worker, chunk, PH_HUB_VALUE, request->pulled);
}

void ph__shard_answer_iteration(struct ph_shard *shard, uint32_t chunk)
{
    const uint64_t version = ph__shard_state(shard, chunk)->version;
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        const struct ph_chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
        if (!ph__shard_is_live(shard, worker))
            continue;
        if (request->answered < version && request->pushed >= version)
            answer_push(shard, chunk, worker);
        ph__shard_answer_pull(shard, chunk, worker);
    }
}

/* The fewest updates that a live worker has made of the chunk. */
static uint64_t slowest(const struct ph_shard *shard, uint32_t chunk)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        const uint64_t counted = ph__request(shard->job->memory, chunk, worker)->counted;
        if (ph__shard_is_live(shard, worker) && counted < least)
            least = counted;
    }
    return least;
}

uint64_t ph__shard_last_answerable(const struct ph_shard *shard, uint32_t chunk)
{
    return shard->job->mode == PH_HUB_BOUNDED ? slowest(shard, chunk) + shard->job->staleness : UINT64_MAX;
}

static void answer_gradient(struct ph_shard *shard, uint32_t chunk, uint32_t worker, bool is_written)
{
    const struct ph_chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    const uint64_t iteration = request->answered + 1;
    if (!is_written && request->kinds[iteration % PH_HUB_MAX_DEPTH] == PH_HUB_PUSHPULL)
        copy_own_parameters(shard, worker, chunk, iteration);
    answer_push(shard, chunk, worker);
}

void ph__shard_answer_gradients(struct ph_shard *shard, uint32_t chunk, bool is_written)
{
    const uint64_t last = ph__shard_last_answerable(shard, chunk);
    for (uint32_t worker = 0; worker < shard->job->num_workers; worker++) {
        const struct ph_chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
        while (ph__shard_is_live(shard, worker) && request->answered < request->counted &&
               request->answered < last)
            answer_gradient(shard, chunk, worker, is_written && request->answered + 1 == request->counted);
        ph__shard_answer_pull(shard, chunk, worker);
    }
}
