/* Wide aggregation against the tall one, bit by bit, and what it does not do. */
#include <string.h>

#include "base/thread/cpu.h"
#include "hub/shard/shard_wide.h"
#include "support/hub_thread.h"
#include "support/shard_walk.h"

#define NUM_KEYS 5
#define NUM_ITERATIONS 6

struct job {
    enum ph_dtype dtype;
    struct ph_hub_optimizer optimizer;
    uint32_t num_workers, depth, num_threads;
    bool is_mean, has_own_parameters;
    enum ph_hub_transport transport;
};

static void run_job(
    const struct job *job, bool is_wide, const struct ph_hub_key *keys, struct hub_workers *workers)
{
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.aggregation = is_wide ? PH_HUB_WIDE : PH_HUB_TALL,
                               .num_threads = job->num_threads});
    hub.options.has_own_parameters = job->has_own_parameters;
    struct ph_hub_service service = hub_thread_service("job", job->num_workers);
    service.optimizers = &job->optimizer;
    service.is_mean = job->is_mean;
    service.depth = job->depth;
    service.chunk_bytes = 4096;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(workers, &hub, &service, keys, NUM_KEYS, NUM_ITERATIONS, job->transport);
    hub_workers_wait(workers);
    hub_workers_end(workers);
    hub_thread_end(&hub);
}

static void check_job(const struct job *job)
{
    static const size_t sizes[NUM_KEYS] = {1, 63, 1000, 20000, 8193};
    struct ph_hub_key keys[NUM_KEYS];
    struct hub_workers tall, wide;
    for (size_t key = 0; key < NUM_KEYS; key++)
        keys[key] = (struct ph_hub_key){.num_elements = sizes[key], .dtype = job->dtype};
    run_job(job, false, keys, &tall);
    run_job(job, true, keys, &wide);
    for (uint32_t rank = 0; rank < job->num_workers; rank++) {
        for (size_t key = 0; key < NUM_KEYS; key++)
            assert_memory_equal(wide.workers[rank].parameters[key], tall.workers[rank].parameters[key],
                sizes[key] * ph_dtype_size(job->dtype));
    }
    hub_workers_fini(&tall);
    hub_workers_fini(&wide);
}

static const struct ph_hub_optimizer momentum = {
    .rule.kind = PH_MOMENTUM, .rule.is_nesterov = true, .learning_rate = .1F, .rule.momentum = .9F};
static const struct ph_hub_optimizer adam = {.rule.kind = PH_ADAM,
    .learning_rate = .01F,
    .rule.beta1 = .9F,
    .rule.beta2 = .999F,
    .rule.epsilon = 1e-8F};

static void wide_gives_the_bits_of_tall(void **state)
{
    (void)state;
    for (uint32_t num_workers = 1; num_workers <= 3; num_workers++)
        check_job(&(struct job){.dtype = PH_F32, .optimizer = momentum, .num_workers = num_workers});
    check_job(&(struct job){.dtype = PH_F32, .optimizer = adam, .num_workers = 2, .num_threads = 3});
    check_job(&(struct job){.dtype = PH_F32,
        .optimizer = {.is_none = true},
        .num_workers = 3,
        .is_mean = true,
        .num_threads = 1});
}

static void wide_gives_them_in_each_dtype(void **state)
{
    (void)state;
    check_job(&(struct job){.dtype = PH_F16, .optimizer = momentum, .num_workers = 3, .num_threads = 3});
    check_job(&(struct job){.dtype = PH_BF16, .optimizer = adam, .num_workers = 2, .is_mean = true});
}

static void wide_gives_them_however_workers_are_connected(void **state)
{
    (void)state;
    check_job(&(struct job){
        .dtype = PH_F32, .optimizer = momentum, .num_workers = 2, .depth = 2, .transport = PH_HUB_TCP});
    check_job(&(struct job){.dtype = PH_BF16,
        .optimizer = momentum,
        .num_workers = 2,
        .depth = 2,
        .has_own_parameters = true,
        .transport = PH_HUB_SHARED_MEMORY});
}

/* ---- by hand: two shards, one worker ---- */

static struct shard_trial *begin_trial(void)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    const struct shard_trial_options options = {
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .num_workers = 1,
        .depth = 1,
        .num_shards = 2,
        .is_lawless = true}; /* its bits are compared above */
    struct shard_trial *trial = shard_trial_create(&options);
    assert_ok(ph__wide_create(trial->layout->sizes.num_keys, 1, 2, &trial->job.wide));
    return trial;
}

static void end_trial(struct shard_trial *trial)
{
    ph__wide_destroy(trial->job.wide);
    trial->job.wide = NULL;
    shard_trial_destroy(trial);
}

/* A pass is one stripe of each shard. Whoever comes to it last goes on to the next one, and no further: then
 * its thread may sleep, and the other one's may not. */
static void no_pass_begins_before_the_last_has_ended_everywhere(void **state)
{
    (void)state;
    struct shard_trial *trial = begin_trial();
    const uint64_t num_stripes = 2 * 2 * trial->layout->sizes.num_keys;
    uint64_t least, most, num_done = 1;
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
        shard_trial_push(trial, 0, chunk, PH_HUB_PUSHPULL);
    shard_trial_run(trial, 1, 0); /* takes messages, may sum nothing */
    shard_trial_run(trial, 0, SIZE_MAX);
    for (uint16_t shard = 1; num_done < num_stripes; shard = 1 - shard) {
        assert_int_equal(atomic_load(&trial->job.wide->num_stripes), num_done);
        assert_true(ph__shard_begin_sleep(trial->shards[1 - shard]));
        assert_false(ph__shard_begin_sleep(trial->shards[shard]));
        shard_trial_run(trial, shard, SIZE_MAX);
        num_done += num_done + 1 < num_stripes ? 2 : 1;
    }
    shard_trial_run_all(trial);
    assert_int_equal(atomic_load(&trial->job.wide->num_stripes), num_stripes);
    for (size_t shard = 0; shard < 2; shard++) {
        ph__shard_versions(trial->shards[shard], &least, &most);
        assert_int_equal(most, 1);
        assert_true(ph__shard_begin_sleep(trial->shards[shard]));
    }
    assert_int_equal(trial->num_replies, trial->layout->sizes.num_chunks);
    end_trial(trial);
}

static void jobs_that_need_tall_are_refused(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_server *none;
    const struct ph_hub_service plain = hub_thread_service("job", 2);
    struct ph_hub_service services[] = {plain, plain, plain, plain};
    services[0].mode = PH_HUB_ASYNCHRONOUS;
    services[1].order = PH_HUB_ARRIVAL_ORDER;
    services[2].on_death = PH_HUB_SHRINK;
    services[3].clip_norm = 1;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.aggregation = PH_HUB_WIDE});
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        assert_fails(ph_hub_create_service(&hub.options, &services[i]), PH_ERROR_USAGE, "aggregates wide");
    assert_ok(ph_hub_create_service(&hub.options, &plain));
    hub_thread_end(&hub);
    const struct ph_hub_server_options kept = {
        .size = sizeof kept, .aggregation = PH_HUB_WIDE, .checkpoint_folder = test_folder()};
    assert_fails(ph_hub_server_create(&kept, &none), PH_ERROR_CONFIG, "PH_HUB_WIDE");
    assert_fails(ph_hub_server_create(&kept, &none), PH_ERROR_CONFIG, "checkpoint_folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_gives_the_bits_of_tall),
        cmocka_unit_test(wide_gives_them_in_each_dtype),
        cmocka_unit_test(wide_gives_them_however_workers_are_connected),
        cmocka_unit_test(no_pass_begins_before_the_last_has_ended_everywhere),
        cmocka_unit_test(jobs_that_need_tall_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
