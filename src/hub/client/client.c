/* A worker's operations on keys: starts pushes and pulls, waits for them, and gives their memory. */
#include <math.h>

#include "base/thread/clock.h"
#include "hub/client/client_state.h"

#define TURNS_A_LOOK 4096       /* between looks at the control connections, while spinning */
#define TEST_LOOK_NS 100000000u /* between looks while testing, where turns may be far apart */

/* ---- progress ---- */

static struct ph__client_operation *operation_at(struct ph__client_key *key, uint32_t index)
{
    return &key->operations[(key->oldest + index) % PH_CLIENT_MAX_OPERATIONS];
}

static ph_status sleep_until_rung(struct ph_hub_client *client, int timeout_ms)
{
    bool has_news;
    client->num_turns = 0;
    PH_TRY(ph__client_explain(client, ph__client_engine_sleep(client->engine, timeout_ms, &has_news)));
    return has_news ? ph__client_look_at_hubs(client) : PH_OK;
}

/* Spins or sleeps a little, after finding nothing to do. */
static ph_status wait_a_little(struct ph_hub_client *client, struct ph__wait *wait)
{
    if (ph__waiter_should_sleep(&client->waiter))
        return sleep_until_rung(client, ph__wait_ms(wait));
    return ++client->num_turns >= TURNS_A_LOOK ? ph__client_look_at_hubs(client) : PH_OK;
}

static ph_status check_wait(struct ph_hub_client *client, size_t key, struct ph__wait *wait)
{
    const struct ph__client_operation *oldest = operation_at(&client->keys[key], 0);
    if (ph__wait_ms(wait) > 0)
        return PH_OK;
    if (wait->is_stopped)
        return ph__wait_stopped(wait);
    return ph_fail(PH_ERROR_PEER,
        "key %zu, iteration %llu: %u of %u chunks timed out after %u ms: a worker has not pushed the key, or "
        "the hub has stalled",
        key, (unsigned long long)oldest->iteration, oldest->num_missing, client->layout->keys[key].num_chunks,
        client->timeout.ms);
}

/* ---- starting ---- */

/* Checks the key, and that init has finished: it makes the engine last. */
static ph_status check_key(const struct ph_hub_client *client, size_t key)
{
    if (client->engine == NULL)
        return ph_fail(PH_ERROR_USAGE, "keys can be used only after ph_hub_init");
    if (key >= client->layout->sizes.num_keys)
        return ph_fail(PH_ERROR_USAGE, "key %zu does not exist: the job has %zu keys", key,
            client->layout->sizes.num_keys);
    if (client->has_left)
        return ph_fail(PH_ERROR_USAGE, "this worker has left its job");
    return PH_OK;
}

ph_status ph__client_begin(struct ph_hub_client *client, size_t key, enum ph__hub_message_kind kind)
{
    struct ph__client_key *state = &client->keys[key];
    const uint32_t slot = (state->oldest + state->num_operations++) % PH_CLIENT_MAX_OPERATIONS;
    const struct ph__client_command command = {.kind = (uint8_t)kind,
        .slot = (uint8_t)slot,
        .learning_rate = client->learning_rates[state->optimizer],
        .key = (uint32_t)key,
        .iteration = state->pushed};
    struct ph__client_operation *operation = &state->operations[slot];
    atomic_store_explicit(&operation->kind, (uint8_t)kind, memory_order_relaxed);
    atomic_store_explicit(&operation->iteration, state->pushed, memory_order_relaxed);
    atomic_store_explicit(&operation->num_contributors, UINT32_MAX, memory_order_relaxed);
    atomic_store_explicit(
        &operation->num_missing, client->layout->keys[key].num_chunks, memory_order_release);
    return ph__client_explain(client, ph__client_engine_post(client->engine, &command));
}

static uint32_t count_pushes(struct ph__client_key *state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < state->num_operations; i++)
        count += operation_at(state, i)->kind != PH_HUB_PULL;
    return count;
}

/* Returns true if the next push may overwrite what a pull is bringing: parameters of an iteration stay until
 * the iteration `depth` later is pushed. */
static bool would_overwrite_pull(const struct ph_hub_client *client, struct ph__client_key *state)
{
    for (uint32_t i = 0; i < state->num_operations; i++) {
        const struct ph__client_operation *operation = operation_at(state, i);
        if (operation->kind == PH_HUB_PULL &&
            state->pushed + 1 >= operation->iteration + client->joined.depth)
            return true;
    }
    return false;
}

static ph_status start_push(struct ph_hub_client *client, size_t key, enum ph__hub_message_kind kind)
{
    PH_TRY(check_key(client, key));
    struct ph__client_key *state = &client->keys[key];
    if (count_pushes(state) >= client->joined.depth)
        return ph_fail(PH_ERROR_USAGE,
            "key %zu: %u pushes are under way, as many as depth allows: wait for one first", key,
            client->joined.depth);
    if (would_overwrite_pull(client, state))
        return ph_fail(PH_ERROR_USAGE, "key %zu: a pull is under way: wait for it before the next push", key);
    PH_TRY(ph__client_look_at_parts(client));
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
    struct ph__client_key *state = &client->keys[key];
    for (uint32_t i = 0; i < state->num_operations; i++) {
        const struct ph__client_operation *operation = operation_at(state, i);
        const bool is_newest = operation->iteration == state->pushed;
        if (operation->kind == PH_HUB_PULL || (operation->kind == PH_HUB_PUSHPULL && is_newest))
            return ph_fail(PH_ERROR_USAGE, "key %zu: a pull is under way already", key);
    }
    return ph__client_begin(client, key, PH_HUB_PULL);
}

ph_status ph_hub_set_learning_rate(struct ph_hub_client *client, uint32_t optimizer, float learning_rate)
{
    if (client->engine == NULL || client->rank != 0)
        return ph_fail(PH_ERROR_USAGE, "only rank 0 can set learning rates, after ph_hub_init");
    if (optimizer >= client->joined.num_optimizers)
        return ph_fail(PH_ERROR_USAGE, "optimizer %u does not exist: the service has %u", optimizer,
            client->joined.num_optimizers);
    if (!isfinite(learning_rate))
        return ph_fail(PH_ERROR_USAGE, "optimizer %u: the learning rate must be finite, not %g", optimizer,
            (double)learning_rate);
    client->learning_rates[optimizer] = learning_rate;
    return PH_OK;
}

/* ---- waiting ---- */

static bool is_oldest_done(const struct ph__client_key *state)
{
    const struct ph__client_operation *oldest = &state->operations[state->oldest];
    return atomic_load_explicit(&oldest->num_missing, memory_order_acquire) == 0;
}

static void finish_oldest(struct ph_hub_client *client, size_t key)
{
    struct ph__client_key *state = &client->keys[key];
    const struct ph__client_operation *oldest = operation_at(state, 0);
    if (oldest->kind == PH_HUB_PULL || oldest->kind == PH_HUB_PUSHPULL) {
        state->pulled = oldest->iteration;
        client->num_contributors = oldest->num_contributors;
    }
    state->tested_since_ns = 0;
    state->num_operations--;
    state->oldest = (state->oldest + 1) % PH_CLIENT_MAX_OPERATIONS;
}

ph_status ph_hub_wait(struct ph_hub_client *client, size_t key)
{
    PH_TRY(check_key(client, key));
    const struct ph__client_key *state = &client->keys[key];
    if (state->num_operations == 0)
        return PH_OK;
    PH_TRY(ph__client_look_at_parts(client));
    struct ph__wait wait = ph__wait_begin(client->timeout);
    ph__waiter_reset(&client->waiter);
    while (!is_oldest_done(state)) {
        bool has_moved;
        PH_TRY(ph__client_explain(client, ph__client_engine_progress(client->engine, &has_moved)));
        if (has_moved) {
            ph__waiter_reset(&client->waiter);
            continue;
        }
        PH_TRY(wait_a_little(client, &wait));
        if (client->num_turns == 0)
            PH_TRY(check_wait(client, key, &wait));
    }
    finish_oldest(client, key);
    return PH_OK;
}

ph_status ph_hub_wait_all(struct ph_hub_client *client)
{
    if (client->engine == NULL)
        return PH_OK;
    for (size_t key = 0; key < client->layout->sizes.num_keys; key++) {
        while (client->keys[key].num_operations > 0)
            PH_TRY(ph_hub_wait(client, key));
    }
    return PH_OK;
}

/* Looks at the control connections now and then: over shared memory only they tell of a death. */
static ph_status look_now_and_then(struct ph_hub_client *client)
{
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns - client->looked_ns < TEST_LOOK_NS)
        return PH_OK;
    client->looked_ns = now_ns;
    return ph__client_look_at_hubs(client);
}

/* Fails like ph_hub_wait when a caller has tested for the timeout in vain. Answers in the meantime show that
 * the hub is alive, and restart the timeout. */
static ph_status check_patience(struct ph_hub_client *client, size_t key)
{
    struct ph__client_key *state = &client->keys[key];
    if (state->tested_since_ns == 0)
        state->tested_since_ns = ph__clock_ns();
    const uint64_t since_ns =
        client->answered_ns > state->tested_since_ns ? client->answered_ns : state->tested_since_ns;
    struct ph__wait wait = {.deadline_ns = since_ns + (uint64_t)client->timeout.ms * 1000000u};
    return check_wait(client, key, &wait);
}

static void note_answers(struct ph_hub_client *client)
{
    const uint64_t num_answers = ph__client_engine_num_answers(client->engine);
    if (num_answers != client->seen_answers)
        client->answered_ns = ph__clock_ns();
    client->seen_answers = num_answers;
}

ph_status ph_hub_test(struct ph_hub_client *client, size_t key, bool *is_done_out)
{
    bool has_moved;
    PH_TRY(check_key(client, key));
    PH_TRY(ph__client_explain(client, ph__client_engine_progress(client->engine, &has_moved)));
    note_answers(client);
    const bool is_done = client->keys[key].num_operations == 0 || is_oldest_done(&client->keys[key]);
    if (!is_done) {
        PH_TRY(look_now_and_then(client));
        PH_TRY(check_patience(client, key));
    }
    *is_done_out = is_done;
    return PH_OK;
}

/* ---- memory ---- */

void *ph_hub_gradient(struct ph_hub_client *client, size_t key)
{
    if (check_key(client, key) != PH_OK)
        return NULL;
    return client->gradients[(client->keys[key].pushed + 1) % client->joined.depth] +
           client->layout->keys[key].gradient_offset;
}

const void *ph_hub_parameters(const struct ph_hub_client *client, size_t key)
{
    if (check_key(client, key) != PH_OK)
        return NULL;
    return client->parameters[client->keys[key].pulled % client->num_parameters] +
           client->layout->keys[key].gradient_offset;
}

void ph_hub_client_describe(const struct ph_hub_client *client, struct ph_hub_client_info *info_out)
{
    *info_out = (struct ph_hub_client_info){
        .transport = client->is_shared ? "shared memory" : "tcp",
        .why = client->why,
        .chunk_bytes = client->layout != NULL ? (uint32_t)client->layout->chunk_bytes : 0,
        .num_chunks = client->layout != NULL ? (uint32_t)client->layout->sizes.num_chunks : 0,
        .num_cores = client->num_links,
        .num_workers = client->joined.num_workers,
        .num_contributors = client->num_contributors,
    };
}
