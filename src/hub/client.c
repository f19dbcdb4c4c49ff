/* A worker's side of the hub: what is started, what has come, and the wait for it. See phloem/hub.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hub/client_state.h"

#define MESSAGES_A_TURN 1024
#define TURNS_A_LOOK 4096 /* at the control connection, while spinning */

/* ---- what the hub says ---- */

static struct ph_client_operation *find_operation(struct ph_client_key *key, const struct ph_message *message)
{
    const bool is_value = message->kind == PH_HUB_VALUE;
    for (uint32_t i = 0; i < key->num_operations; i++) {
        struct ph_client_operation *operation = &key->operations[i];
        const bool wants_value = operation->kind == PH_HUB_PULL || operation->kind == PH_HUB_PUSHPULL;
        if (operation->iteration == message->iteration && wants_value == is_value &&
            operation->num_missing > 0)
            return operation;
    }
    return NULL;
}

static ph_status place(
    void *context, const struct ph_message *message, size_t payload_bytes, void **memory_out)
{
    struct ph_hub_client *client = context;
    const bool is_value = message->kind == PH_HUB_VALUE;
    if ((!is_value && message->kind != PH_HUB_TAKEN) || message->chunk >= client->layout->sizes.num_chunks)
        return ph_fail(PH_ERROR_PEER, "the hub says something that makes no sense: kind %u of chunk %u",
            message->kind, message->chunk);
    const struct ph_chunk_place *chunk = &client->layout->chunks[message->chunk];
    if (find_operation(&client->keys[chunk->key], message) == NULL)
        return ph_fail(PH_ERROR_PEER, "the hub answers what was not asked: iteration %llu of chunk %u",
            (unsigned long long)message->iteration, message->chunk);
    if (payload_bytes != (is_value && !client->is_shared ? chunk->gradient_bytes : 0))
        return ph_fail(PH_ERROR_PEER, "the hub sends %zu bytes for chunk %u", payload_bytes, message->chunk);
    *memory_out = client->parameters[message->iteration % client->num_parameters] + chunk->gradient_offset;
    return PH_OK;
}

static ph_status arrived(void *context, const struct ph_message *message)
{
    struct ph_hub_client *client = context;
    struct ph_client_key *key = &client->keys[client->layout->chunks[message->chunk].key];
    struct ph_client_operation *operation = find_operation(key, message);
    operation->num_missing--;
    if (message->kind == PH_HUB_VALUE && message->count < operation->num_contributors)
        operation->num_contributors = message->count;
    return PH_OK;
}

static void sent(void *context, const struct ph_message *message)
{
    (void)context;
    (void)message;
}

struct ph_link_owner ph__client_link_owner(struct ph_hub_client *client)
{
    return (struct ph_link_owner){.context = client, .place = place, .arrived = arrived, .sent = sent};
}

/* ---- moving on ---- */

static ph_status take_control_frame(const struct ph_control_frame *frame)
{
    struct ph_answer answer;
    if (frame->type != PH_FRAME_FAILED)
        return ph_fail(
            PH_ERROR_PEER, "the hub sends a message of type %u that was not asked for", frame->type);
    PH_TRY(ph__get_answer(frame->body, frame->size, &answer));
    return ph_fail(PH_ERROR_PEER, "%s", answer.text);
}

/* Bad news, if there are any: of the job, or that the hub has gone. */
static ph_status look_at_control(struct ph_hub_client *client)
{
    struct ph_control_frame frame;
    bool is_there;
    client->num_turns = 0;
    const ph_status received = ph__control_stream_receive(client->stream);
    PH_TRY(ph__control_stream_take(client->stream, &frame, &is_there));
    if (is_there)
        return take_control_frame(&frame);
    return received == PH_OK ? PH_OK : ph_fail(PH_ERROR_PEER, "the hub has ended");
}

static ph_status progress(struct ph_hub_client *client, size_t *num_moved_out)
{
    size_t num_moved = 0;
    for (uint16_t core = 0; core < client->job.num_cores; core++) {
        size_t moved;
        PH_TRY(ph__link_progress(client->links[core], MESSAGES_A_TURN, &moved));
        num_moved += moved;
    }
    *num_moved_out = num_moved;
    return PH_OK;
}

static bool begin_sleep(struct ph_hub_client *client)
{
    bool may_sleep = true;
    for (uint16_t core = 0; core < client->job.num_cores; core++)
        may_sleep &= ph__link_begin_sleep(client->links[core]);
    return may_sleep;
}

static ph_status end_sleep(struct ph_hub_client *client)
{
    bool is_there = true;
    for (uint16_t core = 0; core < client->job.num_cores; core++)
        is_there &= ph__link_end_sleep(client->links[core]);
    if (is_there)
        return PH_OK;
    PH_TRY(look_at_control(client)); /* knows more */
    return ph_fail(PH_ERROR_PEER, "the hub does not serve this worker any more");
}

static ph_status sleep_until_rung(struct ph_hub_client *client, int timeout_ms)
{
    bool has_news = false;
    if (begin_sleep(client)) {
        const uint16_t num_cores = client->job.num_cores;
        for (uint16_t core = 0; core < num_cores; core++)
            client->polled[core] = (struct pollfd){
                .fd = client->links[core]->descriptor, .events = ph__link_poll_events(client->links[core])};
        client->polled[num_cores] =
            (struct pollfd){.fd = ph__control_stream_socket(client->stream), .events = POLLIN};
        poll(client->polled, (nfds_t)num_cores + 1, timeout_ms);
        has_news = client->polled[num_cores].revents != 0;
    }
    client->num_turns = 0;
    PH_TRY(end_sleep(client));
    return has_news ? look_at_control(client) : PH_OK;
}

/* Spins or sleeps a little, having found nothing to do. */
static ph_status wait_a_little(struct ph_hub_client *client, uint64_t deadline_ns)
{
    if (ph__waiter_should_sleep(&client->waiter)) {
        const uint64_t now_ns = ph__clock_ns();
        const uint64_t left_ms = now_ns < deadline_ns ? (deadline_ns - now_ns) / 1000000u + 1 : 0;
        return sleep_until_rung(client, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
    }
    return ++client->num_turns >= TURNS_A_LOOK ? look_at_control(client) : PH_OK;
}

static ph_status check_deadline(const struct ph_hub_client *client, size_t key, uint64_t deadline_ns)
{
    const struct ph_client_operation *oldest = &client->keys[key].operations[0];
    if (ph__clock_ns() < deadline_ns)
        return PH_OK;
    return ph_fail(PH_ERROR_PEER,
        "key %zu, iteration %llu: %u of %u chunks were not answered within %u ms; does each worker push it?",
        key, (unsigned long long)oldest->iteration, oldest->num_missing, client->layout->keys[key].num_chunks,
        client->timeout_ms);
}

/* ---- starting ---- */

static ph_status check_key(const struct ph_hub_client *client, size_t key)
{
    if (client->layout == NULL)
        return ph_fail(PH_ERROR_USAGE, "keys are used after ph_hub_init");
    if (key >= client->layout->sizes.num_keys)
        return ph_fail(PH_ERROR_USAGE, "key %zu of %zu", key, client->layout->sizes.num_keys);
    if (client->has_left)
        return ph_fail(PH_ERROR_USAGE, "this worker has left its job");
    return PH_OK;
}

ph_status ph__client_push_learning_rates(struct ph_hub_client *client)
{
    for (uint16_t i = 0; i < PH_HUB_MAX_OPTIMIZERS; i++) {
        struct ph_message message = {.kind = PH_HUB_LEARNING_RATE, .count = i};
        if (isnan(client->learning_rates[i]))
            continue;
        memcpy(&message.chunk, &client->learning_rates[i], sizeof message.chunk);
        client->learning_rates[i] = NAN;
        for (uint16_t core = 0; core < client->job.num_cores; core++)
            PH_TRY(ph__link_send(client->links[core], &message, NULL, 0));
    }
    return PH_OK;
}

ph_status ph__client_begin(struct ph_hub_client *client, size_t key, enum ph_hub_message_kind kind)
{
    const struct ph_key_place *place_of_key = &client->layout->keys[key];
    struct ph_client_key *state = &client->keys[key];
    size_t num_moved;
    struct ph_message message = {.kind = (uint8_t)kind, .iteration = state->pushed};
    state->operations[state->num_operations++] = (struct ph_client_operation){.kind = kind,
        .iteration = message.iteration,
        .num_missing = place_of_key->num_chunks,
        .num_contributors = UINT32_MAX};
    const bool has_payload = kind != PH_HUB_PULL && !client->is_shared;
    const char *gradients = client->gradients[message.iteration % client->joined.depth];
    for (uint32_t i = 0; i < place_of_key->num_chunks; i++) {
        message.chunk = place_of_key->first_chunk + i;
        const struct ph_chunk_place *chunk = &client->layout->chunks[message.chunk];
        PH_TRY(ph__link_send(client->links[client->core_of_chunk[message.chunk]], &message,
            has_payload ? gradients + chunk->gradient_offset : NULL,
            has_payload ? chunk->gradient_bytes : 0));
    }
    return progress(client, &num_moved);
}

static size_t count_operations(const struct ph_client_key *state, bool are_pulls)
{
    size_t count = 0;
    for (uint32_t i = 0; i < state->num_operations; i++) {
        const enum ph_hub_message_kind kind = state->operations[i].kind;
        count += are_pulls ? kind == PH_HUB_PULL : kind == PH_HUB_PUSH || kind == PH_HUB_PUSHPULL;
    }
    return count;
}

static ph_status start_push(struct ph_hub_client *client, size_t key, enum ph_hub_message_kind kind)
{
    PH_TRY(check_key(client, key));
    struct ph_client_key *state = &client->keys[key];
    if (count_operations(state, false) >= client->joined.depth)
        return ph_fail(PH_ERROR_USAGE,
            "key %zu: a push was started while %u are under way, as many as may be", key,
            client->joined.depth);
    PH_TRY(ph__client_push_learning_rates(client));
    state->pushed++;
    return ph__client_begin(client, key, kind);
}

ph_status ph_hub_push_start(struct ph_hub_client *client, size_t key)
{
    return start_push(client, key, PH_HUB_PUSH);
}

ph_status ph_hub_pushpull_start(struct ph_hub_client *client, size_t key)
{
    return start_push(client, key, PH_HUB_PUSHPULL);
}

ph_status ph_hub_pull_start(struct ph_hub_client *client, size_t key)
{
    PH_TRY(check_key(client, key));
    const struct ph_client_key *state = &client->keys[key];
    for (uint32_t i = 0; i < state->num_operations; i++) {
        if (state->operations[i].kind == PH_HUB_PULL || state->operations[i].iteration == state->pushed)
            if (state->operations[i].kind != PH_HUB_PUSH)
                return ph_fail(PH_ERROR_USAGE, "key %zu: it is being pulled already", key);
    }
    return ph__client_begin(client, key, PH_HUB_PULL);
}

ph_status ph_hub_set_learning_rate(struct ph_hub_client *client, uint32_t optimizer, float learning_rate)
{
    if (client->layout == NULL || client->rank != 0)
        return ph_fail(PH_ERROR_USAGE, "learning rates are set by rank 0, after ph_hub_init");
    if (optimizer >= PH_HUB_MAX_OPTIMIZERS || !isfinite(learning_rate))
        return ph_fail(PH_ERROR_USAGE, "optimizer %u cannot have a learning rate of %g", optimizer,
            (double)learning_rate);
    client->learning_rates[optimizer] = learning_rate;
    return PH_OK;
}

/* ---- waiting ---- */

static void finish_oldest(struct ph_hub_client *client, size_t key)
{
    struct ph_client_key *state = &client->keys[key];
    const struct ph_client_operation *oldest = &state->operations[0];
    if (oldest->kind == PH_HUB_PULL || oldest->kind == PH_HUB_PUSHPULL) {
        state->pulled = oldest->iteration;
        client->num_contributors = oldest->num_contributors;
    }
    state->num_operations--;
    memmove(state->operations, state->operations + 1, state->num_operations * sizeof *state->operations);
}

ph_status ph_hub_wait(struct ph_hub_client *client, size_t key)
{
    PH_TRY(check_key(client, key));
    const struct ph_client_key *state = &client->keys[key];
    if (state->num_operations == 0)
        return PH_OK;
    const uint64_t deadline_ns = ph__clock_ns() + (uint64_t)client->timeout_ms * 1000000u;
    ph__waiter_reset(&client->waiter);
    while (state->operations[0].num_missing > 0) {
        size_t num_moved;
        PH_TRY(progress(client, &num_moved));
        if (num_moved > 0) {
            ph__waiter_reset(&client->waiter);
            continue;
        }
        PH_TRY(wait_a_little(client, deadline_ns));
        if (client->num_turns == 0)
            PH_TRY(check_deadline(client, key, deadline_ns));
    }
    finish_oldest(client, key);
    return PH_OK;
}

ph_status ph_hub_wait_all(struct ph_hub_client *client)
{
    if (client->layout == NULL)
        return PH_OK;
    for (size_t key = 0; key < client->layout->sizes.num_keys; key++) {
        while (client->keys[key].num_operations > 0)
            PH_TRY(ph_hub_wait(client, key));
    }
    return PH_OK;
}

ph_status ph_hub_test(struct ph_hub_client *client, size_t key, bool *is_done_out)
{
    size_t num_moved;
    PH_TRY(check_key(client, key));
    PH_TRY(progress(client, &num_moved));
    if (++client->num_turns >= TURNS_A_LOOK)
        PH_TRY(look_at_control(client));
    *is_done_out = client->keys[key].num_operations == 0 || client->keys[key].operations[0].num_missing == 0;
    return PH_OK;
}

/* ---- memory ---- */

void *ph_hub_gradient(struct ph_hub_client *client, size_t key)
{
    return client->gradients[(client->keys[key].pushed + 1) % client->joined.depth] +
           client->layout->keys[key].gradient_offset;
}

const void *ph_hub_parameters(const struct ph_hub_client *client, size_t key)
{
    return client->parameters[client->keys[key].pulled % client->num_parameters] +
           client->layout->keys[key].gradient_offset;
}

void ph_hub_client_describe(const struct ph_hub_client *client, struct ph_hub_client_info *info_out)
{
    *info_out = (struct ph_hub_client_info){
        .transport = client->is_shared ? "shared memory" : "tcp",
        .why = client->why,
        .chunk_bytes = client->job.chunk_bytes,
        .num_chunks = client->layout != NULL ? (uint32_t)client->layout->sizes.num_chunks : 0,
        .num_cores = client->job.num_cores,
        .num_contributors = client->num_contributors,
    };
}
