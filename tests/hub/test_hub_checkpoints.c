/* Checkpoints of a hub's jobs, from files to workers: what is written while a job runs is of one iteration,
 * and what goes on from it ends as if nothing had been. */
#include "support/test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "hub/kept_job.h"
#include "kernel/kernel.h"

/* ---- files that are written while the job runs ---- */

enum { NUM_ITERATIONS = 300, MAX_FILES = 64 };

/* The file as it is at this moment, if it is of an iteration that was not collected yet. */
static bool collect(const char *folder, uint64_t *last_iteration, const char *path)
{
    struct ph__job_checkpoint_head head;
    unlink(path);
    if (link(kept_job_file(folder), path) != 0)
        return false;
    assert_ok(ph__job_checkpoint_read_head(path, &head));
    const bool is_new = head.num_keys > 0 && head.iteration != *last_iteration;
    *last_iteration = is_new ? head.iteration : *last_iteration;
    return is_new;
}

/* The numbers of an array of a snapshot, beside those wanted of all keys. */
static void assert_numbers(const struct ph__snapshot *snapshot, const float *array, const float *wanted)
{
    for (size_t key = 0; key < TRIAL_KEYS; key++)
        assert_memory_equal(array + snapshot->layout->keys[key].first_weight,
            wanted + trial_first_number[key], trial_key_elements[key] * sizeof(float));
}

/* The running mean of gradients that the optimizer has after each iteration, by its kernel alone. */
static void work_out_m(const struct kept_job *trial, uint64_t iteration, float *m_out)
{
    enum ph__isa isa;
    float sum[TRIAL_NUMBERS], weights[TRIAL_NUMBERS] = {0};
    assert_ok(ph__cpu_isa(&isa));
    const struct ph__optimizer_step step = {.kind = PH_MOMENTUM,
        .learning_rate = 0,
        .gradient_scale = 1,
        .momentum = (float)trial->optimizer.rule.momentum};
    memset(m_out, 0, TRIAL_NUMBERS * sizeof *m_out);
    for (uint64_t t = 1; t <= iteration; t++) {
        for (size_t i = 0; i < TRIAL_NUMBERS; i++)
            sum[i] = kept_job_gradient(0, t, i) + kept_job_gradient(1, t, i);
        ph__kernels_for(isa)->optimizer_update(&step, TRIAL_NUMBERS, sum, weights, m_out, NULL);
    }
}

static void check_file(const struct kept_job *trial, const char *path)
{
    static float m[TRIAL_NUMBERS];
    struct ph__snapshot *snapshot = kept_job_read_file(trial, path);
    assert_numbers(snapshot, snapshot->weights, trial->pulled + snapshot->iteration * TRIAL_NUMBERS);
    for (size_t i = 0; i < snapshot->layout->sizes.num_chunks; i++)
        assert_int_equal(snapshot->chunks[i].version, snapshot->iteration);
    if (trial->service.clip_norm == 0) {
        work_out_m(trial, snapshot->iteration, m);
        assert_numbers(snapshot, snapshot->m, m);
    }
    const float rate = kept_job_learning_rate(trial, snapshot->iteration);
    assert_memory_equal(&snapshot->learning_rates[0], &rate, sizeof rate);
    ph__snapshot_destroy(snapshot);
}

static bool has_any_failed(const struct test_worker workers[TRIAL_WORKERS])
{
    bool has_failed = false;
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++)
        has_failed |= test_worker_has_failed(&workers[rank]);
    return has_failed;
}

/* The workers run as fast as they can, while files are collected; what they must hold is known afterwards. */
static void files_are_of_one_iteration(struct kept_job *trial)
{
    const char *paths[MAX_FILES];
    struct hub_thread hub;
    struct test_worker workers[TRIAL_WORKERS];
    const char *folder = test_fresh_folder();
    size_t num_files = 0;
    uint64_t last_iteration = UINT64_MAX;
    trial->hub = &hub;
    trial->stop_at = NUM_ITERATIONS;
    trial->is_saved = true;
    trial->pulled = calloc((NUM_ITERATIONS + 1) * TRIAL_NUMBERS, sizeof(float));
    kept_job_begin_hub(&hub, folder);
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        workers[rank] = (struct test_worker){.rank = rank, .function = kept_job_train, .context = trial};
        test_worker_begin(&workers[rank]);
    }
    while (num_files < MAX_FILES && last_iteration != NUM_ITERATIONS && !has_any_failed(workers)) {
        char name[32];
        snprintf(name, sizeof name, "collected-%zu", num_files);
        paths[num_files] = test_path(name);
        while (!collect(folder, &last_iteration, paths[num_files]) && !has_any_failed(workers))
            continue;
        num_files++;
    }
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++)
        assert_ok(test_worker_end(&workers[rank]));
    memcpy(trial->pulled, trial->first, sizeof trial->first);
    assert_true(num_files > 1);
    for (size_t i = 0; i < num_files; i++)
        check_file(trial, paths[i]);
    hub_thread_end(&hub);
    free(trial->pulled);
}

static void a_file_is_of_one_iteration(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    trial.service.checkpoint_every = 3;
    files_are_of_one_iteration(&trial);
}

static void with_two_iterations_under_way_a_file_is_of_one(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    trial.service.checkpoint_every = 3;
    trial.service.depth = 2;
    files_are_of_one_iteration(&trial);
}

static void of_a_clipped_job_a_file_is_of_one_iteration(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    trial.service.checkpoint_every = 3;
    trial.service.clip_norm = 2;
    files_are_of_one_iteration(&trial);
}

/* ---- going on ---- */

/* The next run, which has to find what the last one has left. */
static void go_on_until(struct kept_job *trial, const char *folder, uint64_t iteration)
{
    static float left[TRIAL_NUMBERS];
    const uint64_t was_at = trial->stop_at;
    memcpy(left, trial->last, sizeof left);
    kept_job_run_until(trial, folder, iteration);
    assert_int_equal(trial->first_iteration, was_at);
    assert_memory_equal(trial->first, left, sizeof left);
}

static void goes_on_bit_for_bit(struct kept_job trial)
{
    static float undisturbed[TRIAL_NUMBERS];
    const char *folder = test_fresh_folder();
    kept_job_run_until(&trial, NULL, 30);
    memcpy(undisturbed, trial.last, sizeof undisturbed);
    kept_job_run_until(&trial, folder, 10);
    assert_int_equal(trial.first_iteration, 0);
    assert_int_equal(kept_job_iteration_of_file(folder), 10);
    go_on_until(&trial, folder, 19);
    go_on_until(&trial, folder, 30);
    assert_memory_equal(trial.last, undisturbed, sizeof undisturbed);
}

static void each_optimizer_goes_on_bit_for_bit(void **state)
{
    static const struct ph_hub_optimizer optimizers[] = {
        {.rule.kind = PH_SGD, .learning_rate = .1F, .l2 = 1e-3F},
        {.rule.kind = PH_MOMENTUM, .rule.is_nesterov = true, .learning_rate = .1F, .rule.momentum = .9F},
        {.rule.kind = PH_ADAM,
            .learning_rate = .01F,
            .rule.beta1 = .9F,
            .rule.beta2 = .999F,
            .rule.epsilon = 1e-8F},
        {.rule.kind = PH_ADAMW,
            .learning_rate = .01F,
            .rule.beta1 = .8F,
            .rule.beta2 = .99F,
            .rule.epsilon = 1e-8F,
            .rule.weight_decay = .1F},
        {.rule.kind = PH_ADAGRAD, .learning_rate = .1F, .rule.epsilon = 1e-8F},
        {.is_none = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        goes_on_bit_for_bit(kept_job_make(optimizers[i]));
}

static void each_kind_of_job_goes_on_bit_for_bit(void **state)
{
    (void)state;
    struct kept_job half = kept_job_make(trial_momentum), brain = half, deep = half, clipped = half,
                    mean = half, own = half, tcp = half;
    half.dtype = PH_F16;
    brain.dtype = PH_BF16;
    deep.service.depth = 2;
    clipped.service.clip_norm = 1;
    mean.service.is_mean = true;
    own.has_own_parameters = true;
    tcp.transport = PH_HUB_TCP;
    tcp.dtype = PH_BF16;
    goes_on_bit_for_bit(half);
    goes_on_bit_for_bit(brain);
    goes_on_bit_for_bit(deep);
    goes_on_bit_for_bit(clipped);
    goes_on_bit_for_bit(mean);
    goes_on_bit_for_bit(own);
    goes_on_bit_for_bit(tcp);
}

/* A hub that chooses the size of chunks by itself takes the one that the job began with. */
static void chunks_stay_as_they_were(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct ph__job_checkpoint_head head;
    const char *folder = test_fresh_folder();
    trial.service.chunk_bytes = 0;
    kept_job_run_until(&trial, folder, 5);
    assert_ok(ph__job_checkpoint_read_head(kept_job_file(folder), &head));
    assert_true(head.chunk_bytes > 0);
    kept_job_run_until(&trial, folder, 9);
    assert_int_equal(trial.first_iteration, 5);
}

/* The hub stays, the workers die, and come back: to the last checkpoint. */
static void a_worker_that_dies_sends_its_job_back(void **state)
{
    (void)state;
    static float undisturbed[TRIAL_NUMBERS];
    struct hub_thread hub;
    struct kept_job trial = kept_job_make(trial_momentum);
    kept_job_run_until(&trial, NULL, 16);
    memcpy(undisturbed, trial.last, sizeof undisturbed);
    kept_job_begin_hub(&hub, test_fresh_folder());
    trial.hub = &hub;
    trial.is_saved = trial.has_left = false;
    trial.save_at = 8;
    trial.stop_at = 11;
    const ph_status status = kept_job_run(&trial);
    if (status != PH_OK) /* whoever is slower hears of the other's death */
        assert_fails(status, PH_ERROR_PEER, "of service 'job' failed");
    trial.has_left = true;
    trial.stop_at = 16;
    assert_ok(kept_job_run(&trial));
    assert_in_range(trial.first_iteration, 8, 11);
    assert_memory_equal(trial.last, undisturbed, sizeof undisturbed);
    hub_thread_end(&hub);
}

/* ---- asynchronous ---- */

static void an_asynchronous_job_goes_on_from_about_where_it_was(void **state)
{
    (void)state;
    static const enum ph_hub_mode modes[] = {PH_HUB_ASYNCHRONOUS, PH_HUB_BOUNDED};
    for (size_t i = 0; i < 2; i++) {
        struct kept_job trial = kept_job_make(trial_momentum);
        const char *folder = test_fresh_folder();
        trial.service.mode = modes[i];
        trial.service.staleness = 2;
        kept_job_run_until(&trial, folder, 20);
        const uint64_t iteration = kept_job_iteration_of_file(folder);
        assert_true(
            iteration >= 10 && iteration <= 20); /* rank 0 has done 20 when it asks, the other any number */
        kept_job_run_until(&trial, folder, 40);
        assert_int_equal(trial.first_iteration, iteration);
        assert_true(kept_job_iteration_of_file(folder) > iteration);
    }
}

static void an_asynchronous_job_is_saved_now_and_then(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct kept_job trial = kept_job_make(trial_momentum);
    const char *folder = test_fresh_folder();
    kept_job_begin_hub(&hub, folder);
    trial.hub = &hub;
    trial.service.mode = PH_HUB_ASYNCHRONOUS;
    trial.service.checkpoint_every = 5;
    trial.stop_at = 400;
    assert_ok(kept_job_run(&trial));
    hub_thread_end(&hub);
    assert_true(kept_job_iteration_of_file(folder) >= 5);
    struct ph__snapshot *snapshot = kept_job_read_file(&trial, kept_job_file(folder));
    ph__snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_of_one_iteration),
        cmocka_unit_test(with_two_iterations_under_way_a_file_is_of_one),
        cmocka_unit_test(of_a_clipped_job_a_file_is_of_one_iteration),
        cmocka_unit_test(each_optimizer_goes_on_bit_for_bit),
        cmocka_unit_test(each_kind_of_job_goes_on_bit_for_bit),
        cmocka_unit_test(chunks_stay_as_they_were),
        cmocka_unit_test(a_worker_that_dies_sends_its_job_back),
        cmocka_unit_test(an_asynchronous_job_goes_on_from_about_where_it_was),
        cmocka_unit_test(an_asynchronous_job_is_saved_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
