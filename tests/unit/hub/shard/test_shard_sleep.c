/* Whether a shard's thread may sleep, and two threads that clip together. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "net/link/shared_link.h"
#include "net/waiter.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

static struct shard_trial_options job_of(uint32_t num_workers, uint16_t num_shards)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return (struct shard_trial_options){
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .num_workers = num_workers,
        .depth = 1,
        .num_shards = num_shards};
}

static void push_all(struct shard_trial *trial, uint32_t worker)
{
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
        shard_trial_push(trial, worker, chunk, PH_HUB_PUSHPULL);
}

/* Its links have no doorbells, so that only begin_sleep counts: end_sleep is done by hand where it matters.
 */
static bool may_sleep(struct shard_trial *trial, uint16_t shard)
{
    return ph__shard_begin_sleep(trial->shards[shard]);
}

static void a_thread_may_sleep_when_nothing_is_to_be_done(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(2, 1);
    struct shard_trial *trial = shard_trial_create(&options);
    assert_true(may_sleep(trial, 0));
    push_all(trial, 0);
    assert_false(may_sleep(trial, 0)); /* messages */
    shard_trial_run_all(trial);
    assert_true(may_sleep(trial, 0)); /* until worker 1 pushes */
    push_all(trial, 1);
    shard_trial_run(trial, 0, 0);
    assert_false(may_sleep(trial, 0)); /* work */
    shard_trial_run_all(trial);
    assert_true(may_sleep(trial, 0));
    assert_int_equal(ph__shard_num_workers(trial->shards[0]), 2);
    shard_trial_destroy(trial);
}

/* Its thread found nothing to do, then another one found the factor, and rang too early to be heard. */
static void nobody_sleeps_over_a_clip_factor(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(1, 2);
    options.job.clip_norm = 1;
    struct shard_trial *trial = shard_trial_create(&options);
    push_all(trial, 0);
    while (shard_trial_run(trial, 1, SIZE_MAX) > 0)
        ;
    assert_true(may_sleep(trial, 1)); /* as long as shard 0 has not summed */
    shard_trial_run(trial, 0, SIZE_MAX);
    assert_int_equal(trial->num_wakes, 1);
    assert_false(may_sleep(trial, 1));
    shard_trial_run_all(trial);
    assert_true(may_sleep(trial, 1));
    shard_trial_check_end(trial, 1);
    shard_trial_destroy(trial);
}

/* ---- a worker whose process ends ---- */

struct owner {
    size_t num_failures;
    uint32_t failed;
};

static void count_failure(void *context, uint32_t worker)
{
    struct owner *owner = context;
    owner->num_failures++;
    owner->failed = worker;
}

static void a_process_that_ends_wakes_the_thread_and_fails_its_worker(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(2, 1);
    struct shard_trial *trial = shard_trial_create(&options);
    struct owner owner = {0};
    const struct ph__shard_callbacks callbacks = {.context = &owner, .worker_failed = count_failure};
    struct ph__shard *shard;
    int bells[2][2];
    void *memory[2];
    assert_ok(ph__shard_create(&trial->job, 0, &callbacks, &shard));
    for (uint32_t worker = 0; worker < 2; worker++) {
        struct ph__link *link;
        assert_ok(ph__doorbell_create(bells[worker]));
        memory[worker] = aligned_alloc(64, ph__shared_link_bytes(4));
        memset(memory[worker], 0, ph__shared_link_bytes(4));
        const struct ph__shared_link_options link_options = {.memory = memory[worker],
            .capacity = 4,
            .is_hub = true,
            .doorbell = bells[worker][0],
            .owner = ph__shard_link_owner(shard, worker)};
        assert_ok(ph__shared_link_create(&link_options, &link));
        ph__shard_attach(shard, worker, link, false);
    }
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[2];
    assert_ok(ph__shard_watch_links(shard, epoll));
    assert_true(ph__shard_begin_sleep(shard));
    assert_int_equal(epoll_wait(epoll, events, 2, 0), 0);
    close(bells[1][1]);
    assert_int_equal(epoll_wait(epoll, events, 2, -1), 1);
    ph__shard_end_sleep(shard);
    assert_int_equal(owner.num_failures, 1);
    assert_int_equal(owner.failed, 1);
    assert_string_equal(ph_error_text(), "the process has ended");
    assert_true(ph__shard_begin_sleep(shard)); /* without the one that has failed */
    assert_int_equal(epoll_wait(epoll, events, 2, 0), 0);
    ph__shard_end_sleep(shard);
    assert_int_equal(owner.num_failures, 1);
    assert_true(ph__shard_begin_sleep(shard));
    ph__doorbell_ring(bells[0][1]);
    assert_int_equal(epoll_wait(epoll, events, 2, -1), 1);
    ph__shard_end_sleep(shard);
    assert_int_equal(epoll_wait(epoll, events, 2, 0), 0);
    close(epoll);
    close(bells[0][1]);
    ph__shard_destroy(shard);
    free(memory[0]);
    free(memory[1]);
    shard_trial_destroy(trial);
}

/* ---- threads ---- */

enum { NUM_ITERATIONS = 50, NUM_WORKERS = 3 };

struct thread {
    pthread_t thread;
    struct ph__shard *shard;
    const _Atomic bool *must_stop;
};

static void *run_shard(void *context)
{
    const struct thread *thread = context;
    size_t bytes;
    while (!atomic_load(thread->must_stop)) {
        if (ph__shard_run(thread->shard, SIZE_MAX, &bytes) == 0)
            sched_yield();
    }
    return NULL;
}

static void push_and_await(struct shard_trial *trial)
{
    const uint64_t wanted = trial->num_replies + NUM_WORKERS * trial->layout->sizes.num_chunks;
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        push_all(trial, worker);
    while (trial->num_replies < wanted) {
        for (uint16_t shard = 0; shard < trial->options.num_shards; shard++) {
            for (uint32_t worker = 0; worker < NUM_WORKERS; worker++) {
                size_t num_moved;
                assert_ok(ph__link_progress(trial->links[shard][worker].worker_link, SIZE_MAX, &num_moved));
            }
        }
        sched_yield();
    }
}

static void check_serially(struct shard_trial *trial)
{
    const size_t num_chunks = trial->layout->sizes.num_chunks;
    for (uint64_t iteration = 1; iteration <= NUM_ITERATIONS; iteration++) {
        for (uint32_t chunk = 0; chunk < num_chunks; chunk++) {
            struct oracle_push pushes[NUM_WORKERS];
            for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
                pushes[worker] = (struct oracle_push){worker, iteration};
            shard_oracle_sum(trial->oracle, chunk, pushes, NUM_WORKERS);
        }
        for (uint32_t chunk = 0; chunk < num_chunks; chunk++)
            shard_oracle_step(trial->oracle, chunk,
                trial->options.job.optimizers[trial->optimizer_of_key[trial->layout->chunks[chunk].key]]
                    .learning_rate);
    }
    for (uint32_t chunk = 0; chunk < num_chunks; chunk++)
        assert_true(shard_oracle_is(trial->oracle, chunk, NUM_ITERATIONS,
            trial->memory.results[0] + trial->layout->chunks[chunk].gradient_offset));
}

static void threads_that_share_a_job_come_to_the_same_bits(void **state)
{
    (void)state;
    static const float clip_norms[] = {0, 1};
    for (size_t i = 0; i < 2; i++) {
        struct shard_trial_options options = job_of(NUM_WORKERS, 3);
        struct thread threads[3];
        _Atomic bool must_stop = false;
        options.job.clip_norm = clip_norms[i];
        options.is_lawless = true; /* held against the serial loop at the end */
        struct shard_trial *trial = shard_trial_create(&options);
        for (size_t t = 0; t < 3; t++) {
            threads[t] = (struct thread){.shard = trial->shards[t], .must_stop = &must_stop};
            assert_int_equal(pthread_create(&threads[t].thread, NULL, run_shard, &threads[t]), 0);
        }
        for (uint64_t iteration = 0; iteration < NUM_ITERATIONS; iteration++) {
            push_and_await(trial);
            for (size_t r = 0; r < NUM_WORKERS * trial->layout->sizes.num_chunks; r++)
                trial->requests[r].answered++;
        }
        atomic_store(&must_stop, true);
        for (size_t t = 0; t < 3; t++)
            pthread_join(threads[t].thread, NULL);
        assert_int_equal(trial->num_wakes, clip_norms[i] > 0 ? NUM_ITERATIONS : 0);
        check_serially(trial);
        shard_trial_destroy(trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_may_sleep_when_nothing_is_to_be_done),
        cmocka_unit_test(nobody_sleeps_over_a_clip_factor),
        cmocka_unit_test(a_process_that_ends_wakes_the_thread_and_fails_its_worker),
        cmocka_unit_test(threads_that_share_a_job_come_to_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
