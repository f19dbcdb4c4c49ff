#include "support/shard_walk.h"

const struct ph_hub_optimizer walk_optimizers[WALK_NUM_OPTIMIZERS] = {
    {.is_none = true},
    {.rule.kind = PH_SGD, .learning_rate = 0.1F, .l2 = 1e-3F},
    {.rule.kind = PH_MOMENTUM, .learning_rate = 0.05F, .rule.momentum = 0.9F},
    {.rule.kind = PH_MOMENTUM,
        .rule.is_nesterov = true,
        .learning_rate = 0.05F,
        .rule.momentum = 0.8F,
        .l2 = 1e-2F},
    {.rule.kind = PH_ADAGRAD, .learning_rate = 0.1F, .rule.epsilon = 1e-8F},
    {.rule.kind = PH_ADAM,
        .learning_rate = 1e-2F,
        .rule.beta1 = 0.9F,
        .rule.beta2 = 0.999F,
        .rule.epsilon = 1e-8F},
    {.rule.kind = PH_ADAMW,
        .learning_rate = 1e-2F,
        .rule.beta1 = 0.8F,
        .rule.beta2 = 0.99F,
        .rule.epsilon = 1e-6F,
        .rule.weight_decay = 0.1F},
};

struct trial_job shard_walk_job(const struct ph__kernels *kernels, const struct ph_hub_optimizer *optimizers,
    uint32_t num_optimizers, uint64_t seed)
{
    static const struct {
        size_t num_elements;
        enum ph_dtype dtype;
    } shapes[] = {{100, PH_F32}, {77, PH_BF16}, {5, PH_F16}, {16, PH_F32}, {1, PH_BF16}};
    enum { NUM_KEYS = sizeof shapes / sizeof *shapes };
    static struct trial_key keys[WALK_NUM_OPTIMIZERS + 1][NUM_KEYS];
    for (uint32_t i = 0; i < NUM_KEYS; i++)
        keys[num_optimizers][i] = (struct trial_key){.num_elements = shapes[i].num_elements,
            .dtype = shapes[i].dtype,
            .optimizer = i % num_optimizers};
    return (struct trial_job){.kernels = kernels,
        .keys = keys[num_optimizers],
        .num_keys = NUM_KEYS,
        .chunk_bytes = 64,
        .optimizers = optimizers,
        .num_optimizers = num_optimizers,
        .seed = seed};
}

/* ---- steps ---- */

struct state {
    struct shard_trial *trial;
    const struct shard_walk *walk;
    struct ph__rng_sequence *random;
    size_t num_removed;
    uint32_t dying;           /* worker; num_workers: none */
    uint16_t num_shards_left; /* that the dying worker has left */
};

static uint32_t draw(struct state *state, size_t bound)
{
    return (uint32_t)ph__rng_below(state->random, bound);
}

static bool is_live(const struct state *state, uint32_t worker, uint32_t chunk)
{
    return state->trial->links[state->trial->core_of_chunk[chunk]][worker].is_live;
}

static void maybe_push(struct state *state, uint32_t worker, uint32_t chunk)
{
    const struct trial_request *request = shard_trial_request(state->trial, worker, chunk);
    if (shard_trial_may_push(state->trial, worker, chunk) && request->pushed < state->walk->num_iterations)
        shard_trial_push(state->trial, worker, chunk, draw(state, 3) == 0 ? PH_HUB_PUSH : PH_HUB_PUSHPULL);
}

static void maybe_pull(struct state *state, uint32_t worker, uint32_t chunk)
{
    if (is_live(state, worker, chunk) && !shard_trial_request(state->trial, worker, chunk)->is_pulling)
        shard_trial_pull(state->trial, worker, chunk);
}

static void run_some(struct state *state)
{
    static const size_t limits[] = {0, 1, 300, SIZE_MAX};
    const uint16_t shard = (uint16_t)draw(state, state->trial->options.num_shards);
    shard_trial_run(state->trial, shard, limits[draw(state, sizeof limits / sizeof *limits)]);
}

static void let_some_leave(struct state *state, uint32_t worker)
{
    const uint16_t shard = (uint16_t)draw(state, state->trial->options.num_shards);
    if (state->trial->options.transports[worker] == TRIAL_PAYLOADS &&
        state->trial->links[shard][worker].is_live)
        shard_trial_let_leave(state->trial, shard, worker, draw(state, 6));
}

static void maybe_change_learning_rate(struct state *state)
{
    const uint32_t optimizer = draw(state, state->trial->options.job.num_optimizers);
    if (state->walk->changes_learning_rates && draw(state, 4) == 0)
        shard_trial_set_learning_rate(state->trial, optimizer, (float)(1 + draw(state, 100)) * 1e-3F);
}

/* Makes a worker die: the shards learn of it one by one, with other steps between. */
static void maybe_remove(struct state *state)
{
    const uint32_t num_workers = state->trial->options.num_workers;
    if (state->dying == num_workers) {
        const uint32_t worker = draw(state, num_workers);
        if (state->num_removed == state->walk->num_removals || draw(state, 10) != 0 ||
            !state->trial->links[0][worker].is_live)
            return;
        state->dying = worker;
        state->num_removed++;
        state->num_shards_left = 0;
    }
    shard_trial_remove(state->trial, state->num_shards_left++, state->dying);
    if (state->num_shards_left == state->trial->options.num_shards)
        state->dying = num_workers;
}

static void step(struct state *state)
{
    const uint32_t worker = draw(state, state->trial->options.num_workers);
    const uint32_t chunk = draw(state, state->trial->layout->sizes.num_chunks);
    const uint32_t kind = draw(state, 16);
    if (kind < 8)
        maybe_push(state, worker, chunk);
    else if (kind < 9)
        maybe_pull(state, worker, chunk);
    else if (kind < 12)
        run_some(state);
    else if (kind < 14)
        let_some_leave(state, worker);
    else if (kind < 15)
        maybe_change_learning_rate(state);
    else
        maybe_remove(state);
}

/* ---- the whole walk ---- */

static bool is_pushed(const struct state *state)
{
    for (uint32_t chunk = 0; chunk < state->trial->layout->sizes.num_chunks; chunk++) {
        for (uint32_t worker = 0; worker < state->trial->options.num_workers; worker++) {
            if (is_live(state, worker, chunk) &&
                shard_trial_request(state->trial, worker, chunk)->pushed < state->walk->num_iterations)
                return false;
        }
    }
    return true;
}

static void push_the_rest(struct state *state)
{
    for (size_t round = 0; !is_pushed(state); round++) {
        trial_require(round < 1000);
        for (uint32_t chunk = 0; chunk < state->trial->layout->sizes.num_chunks; chunk++) {
            for (uint32_t worker = 0; worker < state->trial->options.num_workers; worker++)
                maybe_push(state, worker, chunk);
        }
        shard_trial_settle(state->trial);
    }
}

void shard_walk(struct shard_trial *trial, const struct shard_walk *walk, struct ph__rng_sequence *random)
{
    struct state state = {
        .trial = trial, .walk = walk, .random = random, .dying = trial->options.num_workers};
    const size_t num_pushes =
        trial->layout->sizes.num_chunks * trial->options.num_workers * (size_t)walk->num_iterations;
    for (size_t i = 0; i < 3 * num_pushes; i++)
        step(&state);
    while (state.dying < trial->options.num_workers || state.num_removed < walk->num_removals)
        maybe_remove(&state);
    push_the_rest(&state);
    shard_trial_check_end(trial, walk->num_iterations);
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++)
        trial_require(trial->num_failures[worker] == 0);
}
