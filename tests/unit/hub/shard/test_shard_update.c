/* Sums and steps: whatever the order in which messages come, replies leave and shards run, the bits are those
 * of the serial loop. Every walk is held against it by support/shard_trial.h, version by version and reply by
 * reply. */
#include "support/shard_walk.h"
#include "support/test_support.h"

#include <math.h>
#include <string.h>

#include "base/thread/cpu.h"

static struct ph__rng_sequence draws;

static int set_up(void **state)
{
    (void)state;
    draws = (struct ph__rng_sequence){.key.seed = test_seed()};
    return 0;
}

static enum ph__isa best_isa(void)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return isa;
}

/* Three workers and all optimizers, key by key. */
static struct shard_trial_options mixed_job(void)
{
    return (struct shard_trial_options){.job = shard_walk_job(ph__kernels_for(best_isa()), walk_optimizers,
                                            WALK_NUM_OPTIMIZERS, ph__rng_next(&draws)),
        .num_workers = 3,
        .depth = 1,
        .num_shards = 1};
}

static void walk(const struct shard_trial_options *options, size_t num_removals)
{
    struct shard_trial *trial = shard_trial_create(options);
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk += 2)
        shard_trial_assign(trial, chunk);
    shard_trial_settle(trial);
    shard_walk(trial,
        &(struct shard_walk){
            .num_iterations = 5, .num_removals = num_removals, .changes_learning_rates = true},
        &draws);
    assert_true(trial->num_values > 0);
    shard_trial_destroy(trial);
}

/* All mixtures of transports among three workers: TRIAL_PAYLOADS + 1 of them a worker. */
static void choose_transports(struct shard_trial_options *options, size_t mixture)
{
    for (size_t worker = 0; worker < 3; worker++, mixture /= TRIAL_PAYLOADS + 1)
        options->transports[worker] = (enum trial_transport)(mixture % (TRIAL_PAYLOADS + 1));
}

static void every_optimizer_steps_with_the_sum_in_worker_order(void **state)
{
    (void)state;
    for (int isa = PH_ISA_REF; isa <= (int)best_isa(); isa++) {
        for (size_t i = 0; i < WALK_NUM_OPTIMIZERS; i++) {
            struct shard_trial_options options = {.job = shard_walk_job(ph__kernels_for((enum ph__isa)isa),
                                                      &walk_optimizers[i], 1, ph__rng_next(&draws)),
                .num_workers = 3,
                .num_shards = 1};
            for (options.depth = 1; options.depth <= 2; options.depth++)
                walk(&options, 0);
        }
    }
}

static void over_every_transport_the_bits_are_the_same(void **state)
{
    (void)state;
    for (size_t mixture = 0; mixture < 27; mixture++) {
        struct shard_trial_options options = mixed_job();
        choose_transports(&options, mixture);
        for (options.depth = 1; options.depth <= 2; options.depth++) {
            options.num_shards = (uint16_t)(1 + mixture % TRIAL_MAX_SHARDS);
            walk(&options, 0);
        }
        options.depth = 1;
        for (options.num_versions = 1; options.num_versions <= 2; options.num_versions++)
            walk(&options, 0);
    }
}

static void one_worker_and_many_are_jobs_too(void **state)
{
    (void)state;
    for (uint32_t num_workers = 1; num_workers <= TRIAL_MAX_WORKERS; num_workers++) {
        struct shard_trial_options options = mixed_job();
        options.num_workers = num_workers;
        options.num_shards = 2;
        walk(&options, 0);
    }
}

static void a_mean_is_over_the_gradients_that_there_were(void **state)
{
    (void)state;
    for (size_t mixture = 0; mixture < 27; mixture += 5) {
        struct shard_trial_options options = mixed_job();
        options.job.is_mean = true;
        options.depth = 2;
        choose_transports(&options, mixture);
        walk(&options, 0);
        options.order = PH_HUB_ARRIVAL_ORDER;
        walk(&options, 0);
    }
}

static void stores_past_the_caches_change_nothing(void **state)
{
    (void)state;
    struct shard_trial_options options = mixed_job();
    options.is_non_temporal = true;
    choose_transports(&options, 5);
    for (options.depth = 1; options.depth <= 2; options.depth++)
        walk(&options, 0);
}

static void in_arrival_order_the_sum_is_in_the_order_of_arrival(void **state)
{
    (void)state;
    for (size_t mixture = 0; mixture < 27; mixture += 2) {
        struct shard_trial_options options = mixed_job();
        options.order = PH_HUB_ARRIVAL_ORDER;
        options.num_shards = 2;
        choose_transports(&options, mixture);
        for (options.depth = 1; options.depth <= 2; options.depth++)
            walk(&options, 0);
    }
}

/* SGD without memory: the parameters are minus the sum, whose bits tell its order. */
static void the_two_orders_differ_when_gradients_come_backwards(void **state)
{
    (void)state;
    static const struct ph_hub_optimizer sum = {.is_none = true};
    struct shard_trial *trials[2];
    for (int i = 0; i < 2; i++) {
        struct shard_trial_options options = mixed_job();
        options.job = shard_walk_job(ph__kernels_for(best_isa()), &sum, 1, test_seed());
        options.order = i == 0 ? PH_HUB_WORKER_ORDER : PH_HUB_ARRIVAL_ORDER;
        trials[i] = shard_trial_create(&options);
        for (uint32_t worker = 3; worker-- > 0;) {
            for (uint32_t chunk = 0; chunk < trials[i]->layout->sizes.num_chunks; chunk++)
                shard_trial_push(trials[i], worker, chunk, PH_HUB_PUSHPULL);
            shard_trial_run_all(trials[i]);
        }
        shard_trial_check_end(trials[i], 1);
    }
    const size_t size = trials[0]->layout->sizes.num_weights * sizeof(float);
    assert_int_not_equal(memcmp(trials[0]->memory.weights[0], trials[1]->memory.weights[0], size), 0);
    shard_trial_destroy(trials[0]);
    shard_trial_destroy(trials[1]);
}

static void asynchronous_gradients_are_updates_in_the_order_of_their_arrival(void **state)
{
    (void)state;
    for (size_t mixture = 0; mixture < 8; mixture++) {
        struct shard_trial_options options = mixed_job();
        options.mode = PH_HUB_ASYNCHRONOUS;
        options.num_shards = (uint16_t)(1 + mixture % 2);
        for (size_t worker = 0; worker < 3; worker++)
            options.transports[worker] = (mixture >> worker & 1) != 0 ? TRIAL_OWN : TRIAL_PAYLOADS;
        for (options.depth = 1; options.depth <= 2; options.depth++)
            walk(&options, 0);
        options.depth = 1;
        options.num_versions = 1;
        walk(&options, 0);
    }
}

static void bounded_gradients_are_updates_too(void **state)
{
    (void)state;
    for (size_t mixture = 0; mixture < 8; mixture++) {
        struct shard_trial_options options = mixed_job();
        options.mode = PH_HUB_BOUNDED;
        for (size_t worker = 0; worker < 3; worker++)
            options.transports[worker] = (mixture >> worker & 1) != 0 ? TRIAL_OWN : TRIAL_PAYLOADS;
        for (options.staleness = 0; options.staleness < 3; options.staleness++) {
            options.depth = 1 + options.staleness % 2;
            walk(&options, 0);
        }
    }
}

/* ---- clipping ---- */

static void the_norm_of_all_keys_together_is_clipped(void **state)
{
    (void)state;
    static const float norms[] = {1e-3F, 10, 1e9F};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        for (uint16_t num_shards = 1; num_shards <= TRIAL_MAX_SHARDS; num_shards++) {
            for (uint32_t depth = 1; depth <= 2; depth++) {
                struct shard_trial_options options = mixed_job();
                options.job.clip_norm = norms[i];
                options.job.is_mean = depth == num_shards;
                options.num_shards = num_shards;
                options.depth = depth;
                choose_transports(&options, ph__rng_below(&draws, 27));
                walk(&options, 0);
                options.order = PH_HUB_ARRIVAL_ORDER;
                walk(&options, 0);
            }
        }
    }
}

static double norm_of(const struct shard_trial *trial)
{
    double sum = 0;
    for (size_t i = 0; i < trial->layout->sizes.num_weights; i++) /* what lies between keys is zeros */
        sum += (double)trial->memory.weights[0][i] * (double)trial->memory.weights[0][i];
    return sqrt(sum);
}

/* Without an optimizer, what is pulled is the sum itself. */
static void what_is_clipped_has_the_norm_that_was_asked_for(void **state)
{
    (void)state;
    static const struct ph_hub_optimizer sum = {.is_none = true};
    static const float norms[] = {0, 0.25F, 1e6F};
    double got[3];
    for (size_t i = 0; i < 3; i++) {
        struct shard_trial_options options = mixed_job();
        options.job = shard_walk_job(ph__kernels_for(best_isa()), &sum, 1, test_seed());
        options.job.clip_norm = norms[i];
        options.num_shards = 3;
        struct shard_trial *trial = shard_trial_create(&options);
        for (uint32_t worker = 0; worker < 3; worker++) {
            for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
                shard_trial_push(trial, worker, chunk, PH_HUB_PUSH);
        }
        shard_trial_check_end(trial, 1);
        assert_int_equal(trial->num_wakes, norms[i] > 0);
        got[i] = norm_of(trial);
        shard_trial_destroy(trial);
    }
    assert_true(got[0] > 1);
    assert_near(got[1], 0.25, 0, 1e-5);
    assert_true(got[2] == got[0]);
}

#define UPDATE_TEST(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UPDATE_TEST(every_optimizer_steps_with_the_sum_in_worker_order),
        UPDATE_TEST(over_every_transport_the_bits_are_the_same),
        UPDATE_TEST(one_worker_and_many_are_jobs_too),
        UPDATE_TEST(a_mean_is_over_the_gradients_that_there_were),
        UPDATE_TEST(stores_past_the_caches_change_nothing),
        UPDATE_TEST(in_arrival_order_the_sum_is_in_the_order_of_arrival),
        UPDATE_TEST(the_two_orders_differ_when_gradients_come_backwards),
        UPDATE_TEST(asynchronous_gradients_are_updates_in_the_order_of_their_arrival),
        UPDATE_TEST(bounded_gradients_are_updates_too),
        UPDATE_TEST(the_norm_of_all_keys_together_is_clipped),
        UPDATE_TEST(what_is_clipped_has_the_norm_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
