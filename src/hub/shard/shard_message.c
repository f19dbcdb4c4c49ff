/* Takes messages of workers and answers them: checks and carries them out, finds memory for gradients, and
 * sends replies. See shard.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "hub/shard/shard_state.h"
#include "hub/shard/shard_trace.h"

/* ---- places of received gradients ---- */

/* A chunk that comes is summed soon, and its place is free again. The place freed last is used next, so that
 * what is received and summed stays in the caches of the core that does both, however large the job.
 *
 * The places are the room of workers that send their gradients, as large as all that these may have under
 * way: a place is always free. Chunks shorter than chunk_bytes, at the ends of keys, keep their own places,
 * and so do all chunks of wide jobs, whose keys have to lie in one piece. Only the shard's own thread deals
 * places out; their pages belong to its NUMA node once it has received something there. */

static bool is_dealt_out(const struct ph__shard *shard, const struct ph__chunk_place *chunk)
{
    return shard->job->wide == NULL && chunk->gradient_bytes == shard->job->memory->layout->chunk_bytes;
}

static char *own_place(const struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph__job_memory *memory = shard->job->memory;
    return memory->workers[worker].gradients[iteration % memory->depth] +
           memory->layout->chunks[chunk].gradient_offset;
}

/* Adds the places of a worker. The first chunk's is added last, and so used first. There may be fewer chunks
 * than the shard was made for: autotune_measure.c changes the layout. */
void ph__shard_add_places(struct ph__shard *shard, uint32_t worker)
{
    const struct ph__layout *layout = shard->job->memory->layout;
    for (uint32_t iteration = 0; iteration < shard->job->service.depth; iteration++) {
        for (size_t i = shard->num_chunks; i-- > 0;) {
            const uint32_t chunk = shard->chunks[i];
            if (chunk < layout->sizes.num_chunks && is_dealt_out(shard, &layout->chunks[chunk]))
                shard->places[shard->num_places++] = own_place(shard, chunk, worker, iteration);
        }
    }
}

void ph__shard_deal_places(struct ph__shard *shard)
{
    shard->num_places = 0;
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        if (ph__shard_is_live(shard, worker) && shard->links[worker].has_payloads)
            ph__shard_add_places(shard, worker);
    }
}

/* Returns the place for a gradient that comes over a connection. */
static char *take_place(struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph__job_memory *memory = shard->job->memory;
    if (!is_dealt_out(shard, &memory->layout->chunks[chunk]))
        return own_place(shard, chunk, worker, iteration);
    char **received = &ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    if (*received == NULL) {
        assert(shard->num_places > 0);
        *received = shard->places[--shard->num_places];
    }
    return *received;
}

char *ph__shard_gradient(const struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph__job_memory *memory = shard->job->memory;
    char *received = ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    return received != NULL ? received : own_place(shard, chunk, worker, iteration);
}

void ph__shard_free_place(struct ph__shard *shard, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    const struct ph__job_memory *memory = shard->job->memory;
    char **received = &ph__request(memory, chunk, worker)->received[iteration % memory->depth];
    if (*received != NULL)
        shard->places[shard->num_places++] = *received;
    *received = NULL;
}

/* ---- replies ---- */

/* Copies the chunk's results to the worker's own parameters of this iteration, if it has any. */
static void copy_own_parameters(struct ph__shard *shard, uint32_t worker, uint32_t chunk, uint64_t iteration)
{
    const struct ph__job_memory *memory = shard->job->memory;
    char *parameters = memory->workers[worker].parameters[iteration % memory->depth];
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const char *results = memory->results[memory->chunks[chunk].version % memory->num_versions];
    if (parameters == NULL)
        return;
    memcpy(parameters + place->gradient_offset, results + place->gradient_offset, place->gradient_bytes);
    shard->bytes_done += place->gradient_bytes;
}

void ph__shard_reply(struct ph__shard *shard, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind,
    uint64_t iteration)
{
    struct ph__shard_link *link = &shard->links[worker];
    const struct ph__job_memory *memory = shard->job->memory;
    struct ph__chunk_state *state = ph__shard_state(shard, chunk);
    struct ph__chunk_worker *request = ph__request(memory, chunk, worker);
    struct ph__message message = {.kind = (uint8_t)kind,
        .count = (uint16_t)state->num_contributors,
        .chunk = chunk,
        .iteration = iteration};
    const void *payload = NULL;
    size_t payload_bytes = 0;
    if (link->link == NULL || link->has_failed)
        return;
    if (kind == PH_HUB_VALUE && link->has_payloads) {
        const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
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

static void answer_push(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    request->answered++;
    const uint8_t kind = request->kinds[request->answered % PH_HUB_MAX_DEPTH];
    ph__shard_reply(
        shard, worker, chunk, kind == PH_HUB_PUSH ? PH_HUB_TAKEN : PH_HUB_VALUE, request->answered);
}

static void answer_pull(struct ph__shard *shard, uint32_t chunk, uint32_t worker)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    if (!request->is_pulling || request->answered < request->pulled)
        return;
    request->is_pulling = false;
    copy_own_parameters(shard, worker, chunk, request->pulled);
    ph__shard_reply(shard, worker, chunk, PH_HUB_VALUE, request->pulled);
}

void ph__shard_answer_iteration(struct ph__shard *shard, uint32_t chunk)
{
    const uint64_t version = ph__shard_state(shard, chunk)->version;
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        const struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
        if (!ph__shard_is_live(shard, worker))
            continue;
        if (request->answered < version && request->pushed >= version)
            answer_push(shard, chunk, worker);
        answer_pull(shard, chunk, worker);
    }
}

/* Returns the fewest updates of the chunk by any live worker. */
static uint64_t slowest(const struct ph__shard *shard, uint32_t chunk)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        const uint64_t counted = ph__request(shard->job->memory, chunk, worker)->counted;
        if (ph__shard_is_live(shard, worker) && counted < least)
            least = counted;
    }
    return least;
}

uint64_t ph__shard_last_answerable(const struct ph__shard *shard, uint32_t chunk)
{
    return shard->job->service.mode == PH_HUB_BOUNDED ? slowest(shard, chunk) + shard->job->service.staleness
                                                      : UINT64_MAX;
}

static void answer_gradient(struct ph__shard *shard, uint32_t chunk, uint32_t worker, bool is_written)
{
    const struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
    const uint64_t iteration = request->answered + 1;
    if (!is_written && request->kinds[iteration % PH_HUB_MAX_DEPTH] == PH_HUB_PUSHPULL)
        copy_own_parameters(shard, worker, chunk, iteration);
    answer_push(shard, chunk, worker);
}

void ph__shard_answer_gradients(struct ph__shard *shard, uint32_t chunk, bool is_written)
{
    const uint64_t last = ph__shard_last_answerable(shard, chunk);
    for (uint32_t worker = 0; worker < shard->job->service.num_workers; worker++) {
        const struct ph__chunk_worker *request = ph__request(shard->job->memory, chunk, worker);
        while (ph__shard_is_live(shard, worker) && request->answered < request->counted &&
               request->answered < last)
            answer_gradient(shard, chunk, worker, is_written && request->answered + 1 == request->counted);
        answer_pull(shard, chunk, worker);
    }
}
/* ---- checks of messages ---- */

static ph_status check_chunk(const struct ph__shard *shard, const struct ph__message *message)
{
    const struct ph__job_memory *memory = shard->job->memory;
    if (message->chunk >= memory->layout->sizes.num_chunks)
        return ph_fail(PH_ERROR_PEER, "chunk %u does not exist: the job has %zu chunks", message->chunk,
            memory->layout->sizes.num_chunks);
    if (shard->job->core_of_chunk[message->chunk] != shard->core)
        return ph_fail(
            PH_ERROR_PEER, "chunk %u does not belong to core thread %u", message->chunk, shard->core);
    return PH_OK;
}

ph_status ph__shard_check_nobody_left(const struct ph__shard *shard, uint32_t chunk, uint64_t iteration)
{
    for (uint32_t worker = 0; shard->num_left > 0 && worker < shard->job->service.num_workers; worker++) {
        if (shard->links[worker].has_left &&
            ph__request(shard->job->memory, chunk, worker)->pushed < iteration)
            return ph_fail(PH_ERROR_PEER, "chunk %u: worker %u has left before iteration %llu", chunk, worker,
                (unsigned long long)iteration);
    }
    return PH_OK;
}

static ph_status check_push(const struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    const struct ph__chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    if (message->iteration != request->pushed + 1)
        return ph_fail(PH_ERROR_PEER, "chunk %u: iteration %llu is pushed after %llu", message->chunk,
            (unsigned long long)message->iteration, (unsigned long long)request->pushed);
    if (message->iteration > request->answered + shard->job->service.depth)
        return ph_fail(PH_ERROR_PEER, "chunk %u: iteration %llu is pushed while %llu waits", message->chunk,
            (unsigned long long)message->iteration, (unsigned long long)request->answered + 1);
    return ph__shard_check_nobody_left(shard, message->chunk, message->iteration);
}

static ph_status check_pull(const struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    const struct ph__chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    if (request->is_pulling || message->iteration != request->pushed)
        return ph_fail(PH_ERROR_PEER, "chunk %u: a pull of iteration %llu %s", message->chunk,
            (unsigned long long)message->iteration,
            request->is_pulling ? "came while another waits" : "is not of the last push");
    return PH_OK;
}

static ph_status check_assign(
    const struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    if (worker != 0 || message->iteration != 0 || ph__shard_state(shard, message->chunk)->version != 0 ||
        ph__request(shard->job->memory, message->chunk, 0)->pushed != 0)
        return ph_fail(
            PH_ERROR_PEER, "chunk %u: only rank 0 may set parameters, before all pushes", message->chunk);
    return PH_OK;
}

static ph_status check_learning_rate(
    const struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    float rate;
    memcpy(&rate, &message->chunk, sizeof rate);
    if (worker != 0 || message->count >= shard->job->service.num_optimizers || !isfinite(rate))
        return ph_fail(PH_ERROR_PEER, "a learning rate of %g for optimizer %u by rank %u is invalid",
            (double)rate, message->count, worker);
    return PH_OK;
}

static ph_status check_message(
    const struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
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
        return ph_fail(PH_ERROR_PEER, "a message of kind %u is unknown", message->kind);
    }
}

static bool has_gradient(const struct ph__message *message)
{
    return message->kind == PH_HUB_PUSH || message->kind == PH_HUB_PUSHPULL || message->kind == PH_HUB_ASSIGN;
}

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    const struct ph__shard_link *link = context;
    struct ph__shard *shard = link->shard;
    PH_TRY(check_message(shard, link->worker, message));
    const bool has_payload = has_gradient(message) && link->has_payloads;
    const size_t wanted_bytes =
        has_payload ? shard->job->memory->layout->chunks[message->chunk].gradient_bytes : 0;
    if (payload_bytes != wanted_bytes)
        return ph_fail(PH_ERROR_PEER, "chunk %u comes with %zu bytes instead of %zu", message->chunk,
            payload_bytes, wanted_bytes);
    *memory_out = has_payload ? take_place(shard, message->chunk, link->worker, message->iteration) : NULL;
    return PH_OK;
}

/* ---- effects of messages ---- */

static void take_push(struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    struct ph__chunk_state *state = ph__shard_state(shard, message->chunk);
    const size_t slot = message->iteration % PH_HUB_MAX_DEPTH;
    request->pushed = message->iteration;
    request->kinds[slot] = message->kind;
    shard->counters.pushes++;
    if (shard->job->trace != NULL)
        ph__shard_trace_push(shard, message);
    if (worker == 0)
        state->learning_rates[slot] = shard->learning_rates[ph__shard_optimizer(shard, message->chunk)];
    if (ph__shard_takes_gradients(&shard->job->service)) {
        ph__shard_consider_gradients(shard, message->chunk, worker);
        return;
    }
    request->counted = message->iteration;
    state->num_arrived[slot]++;
    ph__shard_consider(shard, message->chunk);
}

static void take_learning_rate(struct ph__shard *shard, const struct ph__message *message)
{
    memcpy(&shard->learning_rates[message->count], &message->chunk, sizeof(float));
}

static void take_pull(struct ph__shard *shard, uint32_t worker, const struct ph__message *message)
{
    struct ph__chunk_worker *request = ph__request(shard->job->memory, message->chunk, worker);
    request->is_pulling = true;
    request->pulled = message->iteration;
    shard->counters.pulls++;
    answer_pull(shard, message->chunk, worker);
}

static void count_carried(struct ph__shard *shard, uint32_t chunk)
{
    shard->bytes_carried += shard->job->memory->layout->chunks[chunk].gradient_bytes;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    const struct ph__shard_link *link = context;
    struct ph__shard *shard = link->shard;
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
    default: /* again: another worker may have left while the payload came */
        PH_TRY(ph__shard_check_nobody_left(shard, message->chunk, message->iteration));
        take_push(shard, link->worker, message);
    }
    return PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    const struct ph__shard_link *link = context;
    struct ph__shard *shard = link->shard;
    if (message->kind != PH_HUB_VALUE)
        return;
    count_carried(shard, message->chunk); /* `sent` is called only for messages with payloads */
    if (shard->job->trace != NULL)
        ph__shard_trace_reply_left(shard, link->worker, message);
    struct ph__chunk_state *state = ph__shard_state(shard, message->chunk);
    state->num_sending[message->flags]--;
    ph__request(shard->job->memory, message->chunk, link->worker)->num_sending[message->flags]--;
    if (state->is_waiting && state->num_sending[message->flags] == 0) {
        state->is_waiting = false;
        ph__shard_consider(shard, message->chunk);
    }
}

struct ph__link_owner ph__shard_link_owner(struct ph__shard *shard, uint32_t worker)
{
    return (struct ph__link_owner){
        .context = &shard->links[worker], .place = place, .arrived = arrived, .sent = sent};
}
