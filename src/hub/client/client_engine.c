/* Moves a worker's links and counts answers: see client_state.h. */
#include "hub/client/client_state.h"

#include <assert.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/parallel.h"
#include "net/waiter.h"

#define MESSAGES_A_TURN 1024
#define TAGS_A_TURN 8         /* between turns of the links, so that tagged payloads leave */
#define LONGEST_SLEEP_MS 1000 /* longest sleep of the thread, in case a ring of the bell is lost */

struct ph__client_engine {
    struct ph_hub_client *client;
    float *told_rates;      /* (num_links, PH_HUB_MAX_OPTIMIZERS) last rates sent; NAN: none */
    struct pollfd *polled;  /* (num_links + num_hubs + 1) of the thread that moves the links */
    struct pollfd *watched; /* (num_hubs + 1) of the caller, if a thread moves the links */
    bool has_thread;
    pthread_t thread;
    struct ph__waiter waiter; /* used by the thread */
    uint64_t num_came;        /* answers; this and has_finished belong to the thread that moves links */
    bool has_finished;        /* true: an operation is done, and the caller not yet told */
    /* Written by the caller, read by the thread: */
    struct ph__client_command *commands; /* a ring of `mask` + 1 */
    uint64_t mask;
    _Alignas(64) _Atomic uint64_t num_posted;
    _Atomic bool must_stop, is_caller_asleep;
    /* Written by the thread, read by the caller: */
    _Alignas(64) _Atomic uint64_t num_taken;
    _Atomic uint64_t num_answers;  /* answers that have come */
    _Atomic uint64_t num_finished; /* times that the caller was told of operations or of a failure */
    _Atomic bool is_asleep, has_failed;
    uint64_t seen_finished;         /* used by the caller */
    char text[PH_HUB_MAX_TEXT + 1]; /* written before has_failed */
    int bells[2][2];                /* [0]: rung for the thread, [1]: for the caller; [0] of each is polled */
};

/* ---- links ---- */

static ph_status name_hub(const struct ph_hub_client *client, uint32_t link, ph_status status)
{
    uint16_t hub = 0;
    if (status == PH_OK)
        return PH_OK;
    while (link >= client->hubs[hub].first_link + client->hubs[hub].job.num_cores)
        hub++;
    return ph__client_name(client, hub, status);
}

/* Sends the rate if the core thread of the link has another. So there are at most as many rates as pushes. */
static ph_status send_learning_rate(
    struct ph__client_engine *engine, uint32_t link, uint32_t optimizer, float rate)
{
    float *told = &engine->told_rates[link * PH_HUB_MAX_OPTIMIZERS + optimizer];
    struct ph__message message = {.kind = PH_HUB_LEARNING_RATE, .count = (uint16_t)optimizer};
    if (isnan(rate) || rate == *told)
        return PH_OK;
    memcpy(&message.chunk, &rate, sizeof message.chunk);
    *told = rate;
    return ph__link_send(engine->client->links[link], &message, NULL, 0);
}

static ph_status send_chunk(
    struct ph__client_engine *engine, const struct ph__client_command *command, uint32_t chunk)
{
    struct ph_hub_client *client = engine->client;
    const struct ph__chunk_place *place = &client->layout->chunks[chunk];
    const uint32_t link = client->link_of_chunk[chunk];
    const struct ph__message message = {
        .kind = command->kind, .iteration = command->iteration, .chunk = chunk};
    const bool is_push = command->kind == PH_HUB_PUSH || command->kind == PH_HUB_PUSHPULL;
    const bool has_payload = command->kind != PH_HUB_PULL && !client->is_shared;
    const char *gradients = client->gradients[command->iteration % client->joined.depth];
    client->asked[chunk] |= (uint8_t)(1u << command->slot);
    if (is_push)
        PH_TRY(
            send_learning_rate(engine, link, client->keys[command->key].optimizer, command->learning_rate));
    return ph__link_send(client->links[link], &message,
        has_payload ? gradients + place->gradient_offset : NULL, has_payload ? place->gradient_bytes : 0);
}

/* Moves all links. max_messages: most to receive on each. */
static ph_status move_links(struct ph_hub_client *client, size_t max_messages, size_t *num_moved_out)
{
    size_t num_moved = 0;
    for (uint32_t link = 0; link < client->num_links; link++) {
        size_t moved;
        PH_TRY(name_hub(client, link, ph__link_progress(client->links[link], max_messages, &moved)));
        num_moved += moved;
    }
    *num_moved_out = num_moved;
    return PH_OK;
}

/* Sends the chunks of a command. With a secret, each payload is read for its tag as it is queued: meanwhile
 * tagged ones leave. */
static ph_status carry_out(struct ph__client_engine *engine, const struct ph__client_command *command)
{
    struct ph_hub_client *client = engine->client;
    const struct ph__key_place *key = &client->layout->keys[command->key];
    const bool has_tags = client->secret != NULL && !client->is_shared && command->kind != PH_HUB_PULL;
    for (uint32_t i = 0; i < key->num_chunks; i++) {
        const uint32_t chunk = key->first_chunk + i;
        size_t num_moved;
        PH_TRY(name_hub(client, client->link_of_chunk[chunk], send_chunk(engine, command, chunk)));
        if (has_tags && (i + 1) % TAGS_A_TURN == 0)
            PH_TRY(move_links(client, 0, &num_moved));
    }
    return PH_OK;
}

static bool begin_links_sleep(struct ph_hub_client *client)
{
    bool may_sleep = true;
    for (uint32_t link = 0; link < client->num_links; link++)
        may_sleep &= ph__link_begin_sleep(client->links[link]);
    return may_sleep;
}

static ph_status end_links_sleep(struct ph_hub_client *client)
{
    uint32_t gone = client->num_links;
    for (uint32_t link = client->num_links; link-- > 0;)
        gone = ph__link_end_sleep(client->links[link]) ? gone : link;
    if (gone == client->num_links)
        return PH_OK;
    return name_hub(client, gone, ph_fail(PH_ERROR_PEER, "the hub has stopped serving this worker"));
}

static void list_links(const struct ph_hub_client *client, struct pollfd *polled_out)
{
    for (uint32_t link = 0; link < client->num_links; link++)
        polled_out[link] = (struct pollfd){
            .fd = client->links[link]->descriptor, .events = ph__link_poll_events(client->links[link])};
}

static void list_hubs(const struct ph_hub_client *client, struct pollfd *polled_out)
{
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        polled_out[hub] =
            (struct pollfd){.fd = ph__control_stream_socket(client->hubs[hub].stream), .events = POLLIN};
}

/* Returns true if `polled` shows news on the control connection of any hub. */
static bool has_news(const struct ph_hub_client *client, const struct pollfd *polled)
{
    bool is_any = false;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        is_any |= polled[hub].revents != 0;
    return is_any;
}

/* ---- the thread ---- */

static ph_status take_commands(struct ph__client_engine *engine, size_t *num_taken)
{
    const uint64_t num_posted = atomic_load_explicit(&engine->num_posted, memory_order_acquire);
    uint64_t at = atomic_load_explicit(&engine->num_taken, memory_order_relaxed);
    for (; at != num_posted; at++) {
        PH_TRY(carry_out(engine, &engine->commands[at & engine->mask]));
        atomic_store_explicit(&engine->num_taken, at + 1, memory_order_release);
        (*num_taken)++;
    }
    return PH_OK;
}

static void poll_links_and_bell(struct ph__client_engine *engine)
{
    const uint32_t num_links = engine->client->num_links;
    list_links(engine->client, engine->polled);
    engine->polled[num_links] = (struct pollfd){.fd = engine->bells[0][0], .events = POLLIN};
    poll(engine->polled, (nfds_t)num_links + 1, LONGEST_SLEEP_MS);
}

static ph_status sleep_thread(struct ph__client_engine *engine)
{
    atomic_store(&engine->is_asleep, true);
    const bool has_commands =
        atomic_load(&engine->num_posted) != atomic_load_explicit(&engine->num_taken, memory_order_relaxed);
    if (begin_links_sleep(engine->client) && !has_commands && !atomic_load(&engine->must_stop))
        poll_links_and_bell(engine);
    atomic_store_explicit(&engine->is_asleep, false, memory_order_relaxed);
    ph__doorbell_answer(engine->bells[0][0]);
    return end_links_sleep(engine->client);
}

static void tell_caller(struct ph__client_engine *engine)
{
    atomic_fetch_add(&engine->num_finished, 1);
    if (atomic_load(&engine->is_caller_asleep))
        ph__doorbell_ring(engine->bells[1][1]);
}

/* Publishes answers once a turn, and tells the caller only of finished operations: a caller that sleeps until
 * a large key is done is not woken for each chunk, to compete with this thread for a processor. */
static void tell_what_came(struct ph__client_engine *engine)
{
    if (atomic_load_explicit(&engine->num_answers, memory_order_relaxed) != engine->num_came)
        atomic_store_explicit(&engine->num_answers, engine->num_came, memory_order_relaxed);
    if (engine->has_finished)
        tell_caller(engine);
    engine->has_finished = false;
}

static ph_status turn(struct ph__client_engine *engine)
{
    size_t num_taken = 0, num_moved;
    PH_TRY(take_commands(engine, &num_taken));
    PH_TRY(move_links(engine->client, MESSAGES_A_TURN, &num_moved));
    tell_what_came(engine);
    if (num_taken + num_moved > 0)
        ph__waiter_reset(&engine->waiter);
    else if (ph__waiter_should_sleep(&engine->waiter))
        return sleep_thread(engine);
    return PH_OK;
}

static void *run(void *context)
{
    struct ph__client_engine *engine = context;
    ph_status status = PH_OK;
    while (status == PH_OK && !atomic_load_explicit(&engine->must_stop, memory_order_acquire))
        status = turn(engine);
    if (status != PH_OK) {
        snprintf(engine->text, sizeof engine->text, "%s", ph_error_text());
        atomic_store(&engine->has_failed, true);
        tell_caller(engine);
    }
    return NULL;
}

/* ---- messages of hubs over links: answers, each once ---- */

/* Returns true if the message answers the operation. */
static bool is_of(const struct ph__client_operation *operation, const struct ph__message *message)
{
    const uint8_t kind = atomic_load_explicit(&operation->kind, memory_order_relaxed);
    const bool wants_value = kind == PH_HUB_PULL || kind == PH_HUB_PUSHPULL;
    return wants_value == (message->kind == PH_HUB_VALUE) &&
           atomic_load_explicit(&operation->iteration, memory_order_relaxed) == message->iteration;
}

/* Gives the slot of the operation that the message answers. PH_ERROR_PEER also when it comes over another
 * link than the chunk's. */
static ph_status find_slot(
    const struct ph__client_end *end, const struct ph__message *message, uint32_t *slot_out)
{
    const struct ph_hub_client *client = end->client;
    const struct ph__client_key *key = &client->keys[client->layout->chunks[message->chunk].key];
    const uint8_t asked =
        client->link_of_chunk[message->chunk] == end->link ? client->asked[message->chunk] : 0;
    for (uint32_t slot = 0; slot < PH_CLIENT_MAX_OPERATIONS; slot++) {
        if ((asked & 1u << slot) != 0 && is_of(&key->operations[slot], message)) {
            *slot_out = slot;
            return PH_OK;
        }
    }
    return ph_fail(PH_ERROR_PEER, "the hub sent an answer without a request: iteration %llu of chunk %u",
        (unsigned long long)message->iteration, message->chunk);
}

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    struct ph__client_end *end = context;
    const struct ph_hub_client *client = end->client;
    const bool is_value = message->kind == PH_HUB_VALUE;
    if ((!is_value && message->kind != PH_HUB_TAKEN) || message->chunk >= client->layout->sizes.num_chunks)
        return ph_fail(PH_ERROR_PEER, "the hub sent an invalid message: kind %u, chunk %u", message->kind,
            message->chunk);
    const struct ph__chunk_place *chunk = &client->layout->chunks[message->chunk];
    PH_TRY(find_slot(end, message, &end->slot));
    if (payload_bytes != (is_value && !client->is_shared ? chunk->gradient_bytes : 0))
        return ph_fail(PH_ERROR_PEER, "the hub sent a wrong size for a chunk: %zu bytes for chunk %u",
            payload_bytes, message->chunk);
    *memory_out = client->parameters[message->iteration % client->num_parameters] + chunk->gradient_offset;
    return PH_OK;
}

/* Counts an answer; is_last: the last of its operation. */
static void count_answer(struct ph__client_engine *engine, bool is_last)
{
    engine->num_came++;
    engine->has_finished |= is_last;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    const struct ph__client_end *end = context;
    struct ph_hub_client *client = end->client;
    struct ph__client_key *key = &client->keys[client->layout->chunks[message->chunk].key];
    struct ph__client_operation *operation = &key->operations[end->slot];
    client->asked[message->chunk] &= (uint8_t) ~(1u << end->slot);
    if (message->kind == PH_HUB_VALUE &&
        message->count < atomic_load_explicit(&operation->num_contributors, memory_order_relaxed))
        atomic_store_explicit(&operation->num_contributors, message->count, memory_order_relaxed);
    const uint32_t num_missing = atomic_fetch_sub_explicit(&operation->num_missing, 1, memory_order_release);
    count_answer(client->engine, num_missing == 1);
    return PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    (void)context;
    (void)message;
}

struct ph__link_owner ph__client_link_owner(struct ph_hub_client *client, uint32_t link)
{
    struct ph__client_end *end = &client->ends[link];
    *end = (struct ph__client_end){.client = client, .link = link};
    return (struct ph__link_owner){.context = end, .place = place, .arrived = arrived, .sent = sent};
}

/* ---- the caller ---- */

static ph_status check_thread(struct ph__client_engine *engine)
{
    return atomic_load(&engine->has_failed) ? ph_fail(PH_ERROR_PEER, "%s", engine->text) : PH_OK;
}

ph_status ph__client_engine_post(struct ph__client_engine *engine, const struct ph__client_command *command)
{
    bool has_moved;
    if (!engine->has_thread) {
        PH_TRY(carry_out(engine, command));
        return ph__client_engine_progress(engine, &has_moved);
    }
    PH_TRY(check_thread(engine));
    const uint64_t at = atomic_load_explicit(&engine->num_posted, memory_order_relaxed);
    if (at - atomic_load_explicit(&engine->num_taken, memory_order_acquire) > engine->mask)
        return ph_fail(PH_ERROR_USAGE, "too many operations are under way: wait for some first");
    engine->commands[at & engine->mask] = *command;
    atomic_store(&engine->num_posted, at + 1);
    if (atomic_load(&engine->is_asleep))
        ph__doorbell_ring(engine->bells[0][1]);
    return PH_OK;
}

ph_status ph__client_engine_progress(struct ph__client_engine *engine, bool *has_moved_out)
{
    size_t num_moved;
    if (!engine->has_thread) {
        PH_TRY(move_links(engine->client, MESSAGES_A_TURN, &num_moved));
        *has_moved_out = num_moved > 0;
        return PH_OK;
    }
    PH_TRY(check_thread(engine));
    const uint64_t num_finished = atomic_load_explicit(&engine->num_finished, memory_order_acquire);
    *has_moved_out = num_finished != engine->seen_finished;
    engine->seen_finished = num_finished;
    return PH_OK;
}

uint64_t ph__client_engine_num_answers(const struct ph__client_engine *engine)
{
    return engine->has_thread ? atomic_load_explicit(&engine->num_answers, memory_order_relaxed)
                              : engine->num_came;
}

static bool poll_links_and_hubs(struct ph__client_engine *engine, int timeout_ms)
{
    const struct ph_hub_client *client = engine->client;
    struct pollfd *hubs = engine->polled + client->num_links;
    list_links(client, engine->polled);
    list_hubs(client, hubs);
    return poll(engine->polled, (nfds_t)client->num_links + client->list.num_hubs, timeout_ms) > 0 &&
           has_news(client, hubs);
}

static bool poll_bell_and_hubs(struct ph__client_engine *engine, int timeout_ms)
{
    const struct ph_hub_client *client = engine->client;
    engine->watched[0] = (struct pollfd){.fd = engine->bells[1][0], .events = POLLIN};
    list_hubs(client, engine->watched + 1);
    return poll(engine->watched, (nfds_t)client->list.num_hubs + 1, timeout_ms) > 0 &&
           has_news(client, engine->watched + 1);
}

ph_status ph__client_engine_sleep(struct ph__client_engine *engine, int timeout_ms, bool *has_news_out)
{
    *has_news_out = false;
    if (!engine->has_thread) {
        if (begin_links_sleep(engine->client))
            *has_news_out = poll_links_and_hubs(engine, timeout_ms);
        return end_links_sleep(engine->client);
    }
    atomic_store(&engine->is_caller_asleep, true);
    if (atomic_load(&engine->num_finished) == engine->seen_finished)
        *has_news_out = poll_bell_and_hubs(engine, timeout_ms);
    atomic_store_explicit(&engine->is_caller_asleep, false, memory_order_relaxed);
    ph__doorbell_answer(engine->bells[1][0]);
    return PH_OK;
}

/* ---- life ---- */

/* Returns the capacity of the ring: all operations of all keys. */
static size_t count_commands(const struct ph_hub_client *client)
{
    size_t capacity = 1;
    while (capacity < client->layout->sizes.num_keys * PH_CLIENT_MAX_OPERATIONS)
        capacity *= 2;
    return capacity;
}

static ph_status make_arrays(struct ph__client_engine *engine)
{
    const struct ph_hub_client *client = engine->client;
    const size_t num_hubs = client->list.num_hubs, num_commands = count_commands(client);
    const size_t num_rates = (size_t)client->num_links * PH_HUB_MAX_OPTIMIZERS;
    engine->mask = num_commands - 1;
    engine->told_rates = calloc(num_rates, sizeof *engine->told_rates);
    engine->polled = calloc(client->num_links + num_hubs + 1, sizeof *engine->polled);
    engine->watched = calloc(num_hubs + 1, sizeof *engine->watched);
    engine->commands = calloc(num_commands, sizeof *engine->commands);
    if (engine->told_rates == NULL || engine->polled == NULL || engine->watched == NULL ||
        engine->commands == NULL)
        return ph__out_of_memory("a worker's links");
    for (size_t i = 0; i < num_rates; i++)
        engine->told_rates[i] = NAN;
    return PH_OK;
}

static ph_status make_bells(struct ph__client_engine *engine)
{
    for (size_t i = 0; i < 2; i++)
        PH_TRY(ph__doorbell_create(engine->bells[i]));
    return PH_OK;
}

static ph_status start_thread(struct ph__client_engine *engine)
{
    const int error = ph__thread_start(&engine->thread, run, engine);
    engine->has_thread = error == 0;
    return error == 0
               ? PH_OK
               : ph_fail(PH_ERROR_MEMORY, "cannot start a thread for a worker's links: %s", strerror(error));
}

ph_status ph__client_engine_create(
    struct ph_hub_client *client, bool has_thread, struct ph__client_engine **engine_out)
{
    struct ph__client_engine *engine = aligned_alloc(64, sizeof *engine);
    if (engine == NULL)
        return ph__out_of_memory("a worker's links");
    memset(engine, 0, sizeof *engine);
    memset(engine->bells, -1, sizeof engine->bells);
    engine->client = client;
    engine->waiter = client->waiter;
    ph_status status = make_arrays(engine);
    if (status == PH_OK && has_thread)
        status = make_bells(engine);
    if (status == PH_OK && has_thread)
        status = start_thread(engine);
    if (status != PH_OK) {
        ph__client_engine_destroy(engine);
        return status;
    }
    *engine_out = engine;
    return PH_OK;
}

void ph__client_engine_destroy(struct ph__client_engine *engine)
{
    if (engine == NULL)
        return;
    if (engine->has_thread) {
        atomic_store(&engine->must_stop, true);
        ph__doorbell_ring(engine->bells[0][1]);
        pthread_join(engine->thread, NULL);
    }
    for (size_t i = 0; i < 4; i++) {
        if (engine->bells[i / 2][i % 2] >= 0)
            close(engine->bells[i / 2][i % 2]);
    }
    free(engine->told_rates);
    free(engine->polled);
    free(engine->watched);
    free(engine->commands);
    free(engine);
}
