/* What workers say: whether they may, and what it brings about. See shard.h. */
#include <math.h>
#include <string.h>

#include "hub/shard/shard_state.h"
#include "hub/shard/shard_trace.h"

/* ---- what a message may say ---- */

static ph_status check_chunk(const struct ph_shard *shard, const struct ph_message *message)
{
    const struct ph_job_memory *memory = shard->job->memory;
    if (message->chunk >= memory->layout->sizes.num_chunks)
        return ph_fail(PH_ERROR_PEER, "chunk %u of %zu", message->chunk, memory->layout->sizes.num_chunks);
    if (shard->job->core_of_chunk[message->chunk] != shard->core)
        return ph_fail(PH_ERROR_PEER, "chunk %u is not of core thread %u", message->chunk, shard->core);
    return PH_OK;
}

ph_status ph__shard_check_nobody_left(const struct ph_shard *shard, uint32_t chunk, uint64_t iteration)
{
    for (uint32_t worker = 0; shard->num_left > 0 && worker < shard->job->num_workers; worker++) {
        if (shard->links[worker].has_left &&
            ph__request(shard->job->memory, chunk, worker)->pushed < iteration)
            return ph_fail(PH_ERROR_PEER, "chunk %u: worker %u has left before iteration %llu", chunk, worker,
                (unsigned long long)iteration);
    }
    return PH_OK;
}

static ph_status check_push(const struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    const struct ph_chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    if (message->iteration != request->pushed + 1)
        return ph_fail(PH_ERROR_PEER, "chunk %u: iteration %llu is pushed after %llu", message->chunk,
            (unsigned long long)message->iteration, (unsigned long long)request->pushed);
    if (message->iteration > request->answered + shard->job->depth)
        return ph_fail(PH_ERROR_PEER, "chunk %u: iteration %llu is pushed while %llu waits", message->chunk,
            (unsigned long long)message->iteration, (unsigned long long)request->answered + 1);
    return ph__shard_check_nobody_left(shard, message->chunk, message->iteration);
}

static ph_status check_pull(const struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    const struct ph_chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    if (request->is_pulling || message->iteration != request->pushed)
        return ph_fail(PH_ERROR_PEER, "chunk %u: a pull of iteration %llu, %s", message->chunk,
            (unsigned long long)message->iteration,
            request->is_pulling ? "while another waits" : "which is not its last");
    return PH_OK;
}

static ph_status check_assign(const struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    if (worker != 0 || message->iteration != 0 || ph__shard_state(shard, message->chunk)->version != 0 ||
        ph__request(shard->job->memory, message->chunk, 0)->pushed != 0)
        return ph_fail(
            PH_ERROR_PEER, "chunk %u: parameters are given by rank 0, before all pushes", message->chunk);
    return PH_OK;
}

static ph_status check_learning_rate(
    const struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    float rate;
    memcpy(&rate, &message->chunk, sizeof rate);
    if (worker != 0 || message->count >= shard->job->num_optimizers || !isfinite(rate))
        return ph_fail(PH_ERROR_PEER, "a learning rate of %g for optimizer %u by rank %u", (double)rate,
            message->count, worker);
    return PH_OK;
}

static ph_status check_message(
    const struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    if (message->kind == PH_HUB_LEARNING_RATE)
        return check_learning_rate(shard, worker, message);
    PH_TRY(check_chunk(shard, message));
    switch (message->kind) {
    case PH_HUB_PUSH:
    case PH_HUB_PUSHPULL:
        return check_push(shard, worker, message);
    case PH_HUB_PULL:
        return check_pull(shard, worker, message);
    case PH_HUB_ASSIGN:
        return check_assign(shard, worker, message);
    default:
        return ph_fail(PH_ERROR_PEER, "a message of kind %u", message->kind);
    }
}

static bool has_gradient(const struct ph_message *message)
{
    return message->kind == PH_HUB_PUSH || message->kind == PH_HUB_PUSHPULL || message->kind == PH_HUB_ASSIGN;
}

static ph_status place(
    void *context, const struct ph_message *message, size_t payload_bytes, void **memory_out)
{
    const struct ph_shard_link *link = context;
    struct ph_shard *shard = link->shard;
    PH_TRY(check_message(shard, link->worker, message));
    const bool has_payload = has_gradient(message) && link->has_payloads;
    const size_t wanted_bytes =
        has_payload ? shard->job->memory->layout->chunks[message->chunk].gradient_bytes : 0;
    if (payload_bytes != wanted_bytes)
        return ph_fail(PH_ERROR_PEER, "chunk %u comes with %zu bytes instead of %zu", message->chunk,
            payload_bytes, wanted_bytes);
    *memory_out =
        has_payload ? ph__shard_take_place(shard, message->chunk, link->worker, message->iteration) : NULL;
    return PH_OK;
}

/* ---- what it brings about ---- */

static void take_push(struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    struct ph_chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    struct ph_chunk_state *state = ph__shard_state(shard, message->chunk);
    const size_t slot = message->iteration % PH_HUB_MAX_DEPTH;
    request->pushed = message->iteration;
    request->kinds[slot] = message->kind;
    shard->counters.pushes++;
    if (shard->job->trace != NULL)
        ph__shard_trace_push(shard, message);
    if (worker == 0)
        state->learning_rates[slot] = shard->learning_rates[ph__shard_optimizer(shard, message->chunk)];
    if (ph__shard_takes_gradients(shard)) {
        ph__shard_consider_gradients(shard, message->chunk, worker);
        return;
    }
    request->counted = message->iteration;
    state->num_arrived[slot]++;
    ph__shard_consider(shard, message->chunk);
}

static void take_learning_rate(struct ph_shard *shard, const struct ph_message *message)
{
    memcpy(&shard->learning_rates[message->count], &message->chunk, sizeof(float));
}

static void take_pull(struct ph_shard *shard, uint32_t worker, const struct ph_message *message)
{
    struct ph_chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    request->is_pulling = true;
    request->pulled = message->iteration;
    shard->counters.pulls++;
    ph__shard_answer_pull(shard, message->chunk, worker);
}

static void count_carried(struct ph_shard *shard, uint32_t chunk)
{
    shard->bytes_carried += shard->job->memory->layout->chunks[chunk].gradient_bytes;
}

static ph_status arrived(void *context, const struct ph_message *message)
{
    const struct ph_shard_link *link = context;
    struct ph_shard *shard = link->shard;
    if (link->has_payloads && has_gradient(message))
        count_carried(shard, message->chunk);
    switch (message->kind) {
    case PH_HUB_LEARNING_RATE:
        take_learning_rate(shard, message);
        break;
    case PH_HUB_ASSIGN:
        PH_TRY(check_assign(shard, link->worker, message)); /* again: updates do not wait for its payload */
        ph__shard_assign(shard, message->chunk);
        break;
    case PH_HUB_PULL:
        take_pull(shard, link->worker, message);
        break;
    default: /* again: another may have left while its payload came */
        PH_TRY(ph__shard_check_nobody_left(shard, message->chunk, message->iteration));
        take_push(shard, link->worker, message);
    }
    return PH_OK;
}

static void sent(void *context, const struct ph_message *message)
{
    const struct ph_shard_link *link = context;
    struct ph_shard *shard = link->shard;
    if (message->kind != PH_HUB_VALUE)
        return;
    count_carried(shard, message->chunk); /* those without payloads are not told of */
    if (shard->job->trace != NULL)
        ph__shard_trace_reply_left(shard, link->worker, message);
    struct ph_chunk_state *state = ph__shard_state(shard, message->chunk);
    state->num_sending[message->flags]--;
    ph__request(shard->job->memory, message->chunk, link->worker)->num_sending[message->flags]--;
    if (state->is_waiting && state->num_sending[message->flags] == 0) {
        state->is_waiting = false;
        ph__shard_consider(shard, message->chunk);
    }
}

struct ph_link_owner ph__shard_link_owner(struct ph_shard *shard, uint32_t worker)
{
    return (struct ph_link_owner){
        .context = &shard->links[worker], .place = place, .arrived = arrived, .sent = sent};
}
