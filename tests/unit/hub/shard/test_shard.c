/* A shard's life: workers that die or leave at any moment, work in portions, and what is counted. Results are
 * held against the serial loop by support/shard_trial.h. */
#include "hub/shard/shard.h"

#include <string.h>

#include "base/thread/cpu.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

static struct ph__rng_sequence draws;

static int set_up(void **state)
{
    (void)state;
    draws = (struct ph__rng_sequence){.key.seed = test_seed()};
    return 0;
}

static struct shard_trial_options job_of(uint32_t num_workers, uint16_t num_shards, uint32_t depth)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return (struct shard_trial_options){.job = shard_walk_job(ph__kernels_for(isa), walk_optimizers,
                                            WALK_NUM_OPTIMIZERS, ph__rng_next(&draws)),
        .num_workers = num_workers,
        .depth = depth,
        .num_shards = num_shards};
}

static uint32_t count_chunks(const struct shard_trial *trial)
{
    return (uint32_t)trial->layout->sizes.num_chunks;
}

static void push_all(struct shard_trial *trial, uint32_t worker)
{
    for (uint32_t chunk = 0; chunk < count_chunks(trial); chunk++)
        shard_trial_push(trial, worker, chunk, PH_HUB_PUSHPULL);
}

static uint64_t version_of(const struct shard_trial *trial, uint32_t chunk)
{
    return trial->memory.chunks[chunk].version;
}

/* ---- workers that die ---- */

static void walk_with_deaths(const struct shard_trial_options *options, size_t num_removals)
{
    struct shard_trial *trial = shard_trial_create(options);
    shard_walk(trial,
        &(struct shard_walk){
            .num_iterations = 6, .num_removals = num_removals, .changes_learning_rates = true},
        &draws);
    shard_trial_destroy(trial);
}

/* Any transports that the mode can have. */
static void draw_transports(struct shard_trial_options *options)
{
    const size_t first = options->mode == PH_HUB_SYNCHRONOUS ? TRIAL_SHARED : TRIAL_OWN;
    for (uint32_t worker = 0; worker < options->num_workers; worker++)
        options->transports[worker] =
            (enum trial_transport)(first + ph__rng_below(&draws, TRIAL_PAYLOADS + 1 - first));
}

static void walk_all(enum ph_hub_mode mode, enum ph_hub_order order, float clip_norm)
{
    for (size_t round = 0; round < 24; round++) {
        struct shard_trial_options options =
            job_of(4, (uint16_t)(1 + round % TRIAL_MAX_SHARDS), 1 + (uint32_t)(round / 3) % 2);
        options.mode = mode;
        options.order = order;
        options.staleness = (uint32_t)(round % 3);
        options.job.clip_norm = clip_norm;
        options.job.is_mean = round % 5 == 0;
        draw_transports(&options);
        walk_with_deaths(&options, 1 + round % 3);
    }
}

static void when_workers_die_sums_hold_the_gradients_of_the_living(void **state)
{
    (void)state;
    walk_all(PH_HUB_SYNCHRONOUS, PH_HUB_WORKER_ORDER, 0);
}

static void in_arrival_order_too(void **state)
{
    (void)state;
    walk_all(PH_HUB_SYNCHRONOUS, PH_HUB_ARRIVAL_ORDER, 0);
}

static void with_clipping_too(void **state)
{
    (void)state;
    walk_all(PH_HUB_SYNCHRONOUS, PH_HUB_WORKER_ORDER, 5);
    walk_all(PH_HUB_SYNCHRONOUS, PH_HUB_ARRIVAL_ORDER, 5);
}

static void asynchronous_and_bounded_jobs_go_on_without_the_dead(void **state)
{
    (void)state;
    walk_all(PH_HUB_ASYNCHRONOUS, PH_HUB_WORKER_ORDER, 0);
    walk_all(PH_HUB_BOUNDED, PH_HUB_WORKER_ORDER, 0);
}

static void the_death_of_the_last_that_is_missing_completes_an_iteration(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(3, 1, 1);
    struct shard_trial *trial = shard_trial_create(&options);
    push_all(trial, 0);
    push_all(trial, 2);
    shard_trial_run_all(trial);
    assert_int_equal(version_of(trial, 0), 0);
    shard_trial_remove(trial, 0, 1);
    shard_trial_check_end(trial, 1);
    assert_int_equal(trial->memory.chunks[0].num_contributors, 2);
    shard_trial_destroy(trial);
}

/* Between a chunk's sum and its step, which waits for the sums of another shard. */
static void a_worker_that_dies_while_its_sum_waits_for_the_clip_factor_leaves_no_trace(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 2; depth++) {
        struct shard_trial_options options = job_of(3, 2, depth);
        options.job.clip_norm = 1;
        struct shard_trial *trial = shard_trial_create(&options);
        for (uint32_t iteration = 0; iteration < depth; iteration++) {
            for (uint32_t worker = 0; worker < 3; worker++)
                push_all(trial, worker);
        }
        shard_trial_run(trial, 0, SIZE_MAX);
        assert_true(trial->memory.chunks[0].is_summed);
        shard_trial_remove(trial, 0, 2);
        shard_trial_run_all(trial);
        shard_trial_remove(trial, 1, 2);
        for (uint32_t iteration = depth; iteration < 6; iteration++) {
            shard_trial_run_all(trial);
            push_all(trial, 0);
            push_all(trial, 1);
        }
        shard_trial_check_end(trial, 6);
        assert_int_equal(trial->memory.chunks[0].num_contributors, 2);
        shard_trial_destroy(trial);
    }
}

static void when_all_die_over_a_complete_iteration_nothing_is_done(void **state)
{
    (void)state;
    for (int order = PH_HUB_WORKER_ORDER; order <= PH_HUB_ARRIVAL_ORDER; order++) {
        struct shard_trial_options options = job_of(2, 1, 1);
        size_t bytes;
        options.order = (enum ph_hub_order)order;
        options.is_lawless = true;
        struct shard_trial *trial = shard_trial_create(&options);
        push_all(trial, 0);
        push_all(trial, 1);
        assert_true(ph__shard_run(trial->shards[0], 0, &bytes) > 0); /* the messages, no work */
        for (uint32_t worker = 0; worker < 2; worker++) {
            ph__shard_remove_worker(trial->shards[0], worker);
            trial->links[0][worker].is_live = false;
        }
        shard_trial_run_all(trial);
        for (uint32_t chunk = 0; chunk < count_chunks(trial); chunk++)
            assert_int_equal(version_of(trial, chunk), 0);
        shard_trial_destroy(trial);
    }
}

static void what_waits_for_a_reply_to_the_dead_goes_on(void **state)
{
    (void)state;
    for (int mode = PH_HUB_SYNCHRONOUS; mode <= PH_HUB_ASYNCHRONOUS; mode++) {
        struct shard_trial_options options = job_of(2, 1, 1);
        options.mode = (enum ph_hub_mode)mode;
        options.num_versions = 1;
        options.transports[0] = TRIAL_OWN;
        options.transports[1] = TRIAL_PAYLOADS;
        struct shard_trial *trial = shard_trial_create(&options);
        shard_trial_pull(trial, 1, 0);
        shard_trial_run_all(trial); /* its reply does not leave */
        shard_trial_push(trial, 0, 0, PH_HUB_PUSHPULL);
        if (mode == PH_HUB_SYNCHRONOUS)
            shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PUSH, .iteration = 1}, 64);
        shard_trial_run_all(trial);
        assert_int_equal(version_of(trial, 0), 0);
        assert_true(trial->memory.chunks[0].is_waiting);
        shard_trial_remove(trial, 0, 1);
        shard_trial_run_all(trial);
        assert_int_equal(version_of(trial, 0), 1);
        assert_int_equal(shard_trial_request(trial, 0, 0)->answered, 1);
        shard_trial_destroy(trial);
    }
}

/* ---- workers that leave ---- */

static void a_worker_that_leaves_is_still_in_what_it_has_pushed(void **state)
{
    (void)state;
    for (int order = PH_HUB_WORKER_ORDER; order <= PH_HUB_ARRIVAL_ORDER; order++) {
        struct shard_trial_options options = job_of(3, 2, 2);
        options.order = (enum ph_hub_order)order;
        options.transports[1] = TRIAL_PAYLOADS;
        struct shard_trial *trial = shard_trial_create(&options);
        push_all(trial, 1);
        push_all(trial, 1);
        push_all(trial, 2);
        shard_trial_retire(trial, 1);
        assert_int_equal(version_of(trial, 0), 0);
        push_all(trial, 0);
        push_all(trial, 0);
        push_all(trial, 2);
        shard_trial_check_end(trial, 2);
        assert_int_equal(trial->memory.chunks[0].num_contributors, 3);
        assert_int_equal(trial->num_failures[0] + trial->num_failures[2], 0);
        shard_trial_destroy(trial);
    }
}

static void whoever_pushes_beyond_one_that_left_fails(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(3, 1, 2);
    struct shard_trial *trial = shard_trial_create(&options);
    for (uint32_t worker = 0; worker < 3; worker++)
        push_all(trial, worker);
    push_all(trial, 2); /* ahead of who leaves */
    shard_trial_retire(trial, 1);
    assert_int_equal(trial->num_failures[2], 1);
    assert_string_equal(trial->failure, "chunk 0: worker 1 has left before iteration 2");
    assert_int_equal(trial->num_failures[0], 0);
    assert_int_equal(version_of(trial, 0), 1);
    shard_trial_push(trial, 0, 3, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_failures[0], 1);
    assert_string_equal(trial->failure, "chunk 3: worker 1 has left before iteration 2");
    assert_int_equal(version_of(trial, 3), 1);
    shard_trial_destroy(trial);
}

static void without_iterations_in_common_leaving_is_like_dying(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(3, 2, 1);
    options.mode = PH_HUB_BOUNDED;
    for (uint32_t worker = 0; worker < 3; worker++)
        options.transports[worker] = TRIAL_OWN;
    struct shard_trial *trial = shard_trial_create(&options);
    push_all(trial, 0);
    push_all(trial, 1);
    shard_trial_run_all(trial);
    assert_int_equal(shard_trial_request(trial, 0, 0)->answered, 0);
    shard_trial_retire(trial, 2);
    shard_trial_check_end(trial, 1);
    shard_trial_destroy(trial);
}

/* ---- work in portions ---- */

static void a_run_works_about_as_much_as_it_may(void **state)
{
    (void)state;
    static const float clip_norms[] = {0, 1};
    for (size_t i = 0; i < 2; i++) {
        struct shard_trial_options options = job_of(2, 1, 1);
        options.job.clip_norm = clip_norms[i];
        struct shard_trial *trial = shard_trial_create(&options);
        uint64_t num_bytes = 0, num_runs = 0;
        push_all(trial, 0);
        push_all(trial, 1);
        for (; version_of(trial, count_chunks(trial) - 1) == 0; num_runs++, num_bytes += trial->num_bytes) {
            assert_true(shard_trial_run(trial, 0, 1) > 0);
            assert_in_range(trial->num_bytes, 1, 128); /* a chunk of two workers, or its step */
        }
        uint64_t gradient_bytes = 0;
        for (uint32_t chunk = 0; chunk < count_chunks(trial); chunk++)
            gradient_bytes += trial->layout->chunks[chunk].gradient_bytes;
        assert_int_equal(ph__shard_counters(trial->shards[0])->update_bytes, 2 * gradient_bytes);
        assert_int_equal(num_bytes, (clip_norms[i] > 0 ? 3 : 2) * gradient_bytes);
        assert_int_equal(num_runs, (clip_norms[i] > 0 ? 2 : 1) * count_chunks(trial));
        shard_trial_check_end(trial, 1);
        shard_trial_destroy(trial);
    }
}

/* Else its thread would sleep over it. */
static void a_run_that_may_do_nothing_tells_that_there_is_work(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(2, 1, 2);
    struct shard_trial *trial = shard_trial_create(&options);
    size_t bytes = 1;
    assert_int_equal(ph__shard_run(trial->shards[0], 0, &bytes), 0);
    assert_int_equal(bytes, 0);
    for (uint32_t i = 0; i < 4; i++) {
        push_all(trial, i % 2);
        assert_true(ph__shard_run(trial->shards[0], 0, &bytes) > 0);
    }
    assert_int_equal(
        ph__shard_run(trial->shards[0], 0, &bytes), count_chunks(trial)); /* one after the other */
    assert_int_equal(version_of(trial, 0), 0);
    shard_trial_check_end(trial, 2);
    assert_int_equal(ph__shard_run(trial->shards[0], 0, &bytes), 0);
    shard_trial_destroy(trial);
}

/* Each pull may make the shard copy a chunk, so that many of large ones would keep other jobs waiting. */
static void of_large_chunks_few_messages_are_taken_a_turn(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(2, 1, 1);
    size_t bytes;
    options.is_lawless = true;
    options.job.chunk_bytes = PH_HUB_MAX_CHUNK_BYTES;
    options.transports[0] = options.transports[1] = TRIAL_OWN;
    struct shard_trial *trial = shard_trial_create(&options);
    for (size_t i = 0; i < 3; i++)
        shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PULL}, 0);
    for (uint64_t i = 1; i <= 3; i++) {
        ph__shard_run(trial->shards[0], SIZE_MAX, &bytes);
        assert_int_equal(ph__shard_counters(trial->shards[0])->pulls, i);
        assert_int_equal(bytes, trial->layout->chunks[0].gradient_bytes);
    }
    shard_trial_destroy(trial);
}

/* ---- what is told ---- */

static void versions_and_counters_are_those_of_its_chunks(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(2, 2, 1);
    struct shard_trial *trial = shard_trial_create(&options);
    uint64_t least, most;
    shard_trial_push(trial, 0, 2, PH_HUB_PUSH);
    shard_trial_push(trial, 1, 2, PH_HUB_PUSHPULL);
    shard_trial_pull(trial, 0, 4);
    shard_trial_run_all(trial);
    ph__shard_versions(trial->shards[0], &least, &most);
    assert_int_equal(least, 0);
    assert_int_equal(most, 1);
    ph__shard_versions(trial->shards[1], &least, &most);
    assert_int_equal(most, 0);
    const struct ph__shard_counters *counters = ph__shard_counters(trial->shards[0]);
    assert_int_equal(counters->updates, 1);
    assert_int_equal(counters->update_bytes, 2 * trial->layout->chunks[2].gradient_bytes);
    assert_int_equal(counters->pushes, 2);
    assert_int_equal(counters->pulls, 1);
    assert_int_equal(counters->waits_for_replies, 0);
    assert_int_equal(ph__shard_counters(trial->shards[1])->pushes, 0);
    shard_trial_destroy(trial);
}

static void a_shard_may_have_no_chunks(void **state)
{
    (void)state;
    static const struct trial_key key = {.num_elements = 3, .dtype = PH_F32, .optimizer = 0};
    struct shard_trial_options options = job_of(2, 2, 1);
    uint64_t least, most;
    options.job.keys = &key;
    options.job.num_keys = 1;
    options.job.clip_norm = 1;
    struct shard_trial *trial = shard_trial_create(&options);
    push_all(trial, 0);
    push_all(trial, 1);
    shard_trial_check_end(trial, 1);
    ph__shard_versions(trial->shards[1], &least, &most);
    assert_true(least == UINT64_MAX && most == 0);
    shard_trial_remove(trial, 1, 0);
    assert_null(ph__shard_link(trial->shards[1], 0));
    assert_non_null(ph__shard_link(trial->shards[1], 1));
    ph__shard_remove_worker(trial->shards[1], 0); /* once more: nothing */
    ph__shard_destroy(NULL);
    shard_trial_destroy(trial);
}

#define SHARD_TEST(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARD_TEST(when_workers_die_sums_hold_the_gradients_of_the_living),
        SHARD_TEST(in_arrival_order_too),
        SHARD_TEST(with_clipping_too),
        SHARD_TEST(asynchronous_and_bounded_jobs_go_on_without_the_dead),
        SHARD_TEST(the_death_of_the_last_that_is_missing_completes_an_iteration),
        SHARD_TEST(a_worker_that_dies_while_its_sum_waits_for_the_clip_factor_leaves_no_trace),
        SHARD_TEST(when_all_die_over_a_complete_iteration_nothing_is_done),
        SHARD_TEST(what_waits_for_a_reply_to_the_dead_goes_on),
        SHARD_TEST(a_worker_that_leaves_is_still_in_what_it_has_pushed),
        SHARD_TEST(whoever_pushes_beyond_one_that_left_fails),
        SHARD_TEST(without_iterations_in_common_leaving_is_like_dying),
        SHARD_TEST(a_run_works_about_as_much_as_it_may),
        SHARD_TEST(a_run_that_may_do_nothing_tells_that_there_is_work),
        SHARD_TEST(of_large_chunks_few_messages_are_taken_a_turn),
        SHARD_TEST(versions_and_counters_are_those_of_its_chunks),
        SHARD_TEST(a_shard_may_have_no_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
