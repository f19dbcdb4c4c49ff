/* What goes back to workers, and when: pulls, parameters of one's own, staleness, and replies that leave
 * slowly. */
#include <string.h>

#include "base/thread/cpu.h"
#include "support/payload_link.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

static struct ph__rng_sequence draws;

static int set_up(void **state)
{
    (void)state;
    draws = (struct ph__rng_sequence){.key.seed = test_seed()};
    return 0;
}

static struct shard_trial_options job_of(
    enum ph_hub_mode mode, uint32_t num_workers, uint32_t depth, enum trial_transport transport)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    struct shard_trial_options options = {.job = shard_walk_job(ph__kernels_for(isa), walk_optimizers,
                                              WALK_NUM_OPTIMIZERS, ph__rng_next(&draws)),
        .mode = mode,
        .num_workers = num_workers,
        .depth = depth,
        .num_shards = 1};
    for (uint32_t worker = 0; worker < num_workers; worker++)
        options.transports[worker] = transport;
    return options;
}

/* Everything is about this chunk. */
enum { CHUNK = 7 };

static const struct trial_request *request_of(const struct shard_trial *trial, uint32_t worker)
{
    return shard_trial_request(trial, worker, CHUNK);
}

static uint64_t version_of(const struct shard_trial *trial)
{
    return trial->memory.chunks[CHUNK].version;
}

static void push(struct shard_trial *trial, uint32_t worker, enum ph__hub_message_kind kind)
{
    shard_trial_push(trial, worker, CHUNK, kind);
}

/* ---- pulls ---- */

static void parameters_can_be_pulled_before_all_pushes(void **state)
{
    (void)state;
    for (int transport = TRIAL_SHARED; transport <= TRIAL_PAYLOADS; transport++) {
        const struct shard_trial_options options =
            job_of(PH_HUB_SYNCHRONOUS, 2, 1, (enum trial_transport)transport);
        struct shard_trial *trial = shard_trial_create(&options);
        shard_trial_pull(trial, 1, CHUNK); /* zeros */
        shard_trial_settle(trial);
        assert_int_equal(trial->num_values, 1);
        shard_trial_assign(trial, CHUNK);
        shard_trial_settle(trial);
        for (uint32_t worker = 0; worker < 2; worker++) {
            shard_trial_pull(trial, worker, CHUNK);
            shard_trial_settle(trial);
            shard_trial_pull(trial, worker, CHUNK); /* as often as anybody wants */
            shard_trial_settle(trial);
        }
        assert_int_equal(trial->num_values, 5);
        shard_trial_destroy(trial);
    }
}

/* Bytes of a run in which one worker's pull is answered, and of one in which its push comes. */
static void count_bytes(enum trial_transport transport, size_t *pulled_out, size_t *pushed_out)
{
    const struct shard_trial_options options = job_of(PH_HUB_ASYNCHRONOUS, 1, 1, transport);
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_assign(trial, CHUNK);
    shard_trial_settle(trial);
    shard_trial_pull(trial, 0, CHUNK);
    if (transport == TRIAL_PAYLOADS)
        payload_link_allow(shard_trial_link(trial, 0, CHUNK)->hub_link, 1);
    shard_trial_run(trial, 0, SIZE_MAX);
    shard_trial_run(trial, 0, SIZE_MAX); /* what was answered leaves */
    *pulled_out = trial->num_bytes;
    push(trial, 0, PH_HUB_PUSH);
    shard_trial_run(trial, 0, SIZE_MAX);
    *pushed_out = trial->num_bytes;
    shard_trial_settle(trial);
    shard_trial_destroy(trial);
}

/* So that a job that only sends does not keep others waiting. */
static void what_a_network_carries_counts_as_work(void **state)
{
    (void)state;
    size_t pulled, pushed, pulled_alike, pushed_alike;
    const struct shard_trial_options options = job_of(PH_HUB_ASYNCHRONOUS, 1, 1, TRIAL_SHARED);
    struct shard_trial *trial = shard_trial_create(&options);
    const size_t chunk_bytes = trial->layout->chunks[CHUNK].gradient_bytes;
    shard_trial_destroy(trial);
    count_bytes(TRIAL_SHARED, &pulled, &pushed);
    count_bytes(TRIAL_PAYLOADS, &pulled_alike, &pushed_alike);
    assert_int_equal(pulled, 0);
    assert_int_equal(pulled_alike, chunk_bytes);
    assert_true(pushed > 0);
    assert_int_equal(pushed_alike, pushed + chunk_bytes);
}

static void a_pull_brings_what_was_pushed_before_it(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, 2, 1, TRIAL_OWN);
    struct shard_trial *trial = shard_trial_create(&options);
    push(trial, 0, PH_HUB_PUSH);
    shard_trial_pull(trial, 0, CHUNK);
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_values, 0);
    push(trial, 1, PH_HUB_PUSH);
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_values, 1);
    assert_int_equal(request_of(trial, 0)->value, 1);
    assert_false(request_of(trial, 1)->has_value);
    shard_trial_destroy(trial);
}

/* The next push of the worker is on its way already; the pull is answered with its own iteration, and in its
 * time: the others may wait for that before they push again. */
static void a_pull_does_not_wait_for_pushes_after_it(void **state)
{
    (void)state;
    for (int mode = PH_HUB_SYNCHRONOUS; mode <= PH_HUB_BOUNDED; mode++) {
        const struct shard_trial_options options = job_of((enum ph_hub_mode)mode, 2, 2, TRIAL_OWN);
        struct shard_trial *trial = shard_trial_create(&options);
        push(trial, 0, PH_HUB_PUSH);
        shard_trial_pull(trial, 0, CHUNK);
        push(trial, 0, PH_HUB_PUSHPULL);
        push(trial, 1, PH_HUB_PUSH);
        shard_trial_run_all(trial);
        assert_false(request_of(trial, 0)->is_pulling);
        assert_int_equal(request_of(trial, 0)->value, mode == PH_HUB_ASYNCHRONOUS ? 2 : 1);
        push(trial, 1, PH_HUB_PUSH);
        shard_trial_run_all(trial);
        assert_int_equal(request_of(trial, 0)->value, 2);
        shard_trial_destroy(trial);
    }
}

/* Whoever only pushes keeps what it has pulled. */
static void own_parameters_change_only_when_they_are_pulled(void **state)
{
    (void)state;
    for (int mode = PH_HUB_SYNCHRONOUS; mode <= PH_HUB_BOUNDED; mode++) {
        const struct shard_trial_options options = job_of((enum ph_hub_mode)mode, 1, 1, TRIAL_OWN);
        struct shard_trial *trial = shard_trial_create(&options);
        const struct ph__chunk_place *place = &trial->layout->chunks[CHUNK];
        char *own = trial->memory.workers[0].parameters[0] + place->gradient_offset;
        memset(own, 0x5a, place->gradient_bytes);
        push(trial, 0, PH_HUB_PUSH);
        shard_trial_run_all(trial);
        assert_int_equal(version_of(trial), 1);
        for (size_t i = 0; i < place->gradient_bytes; i++)
            assert_int_equal(own[i], 0x5a);
        push(trial, 0, PH_HUB_PUSHPULL);
        shard_trial_run_all(trial);
        assert_true(shard_oracle_is(trial->oracle, CHUNK, 2, own));
        shard_trial_destroy(trial);
    }
}

/* ---- replies that leave slowly ---- */

/* The payload link compares what leaves with what was sent. */
static void a_version_is_not_overwritten_while_it_is_sent(void **state)
{
    (void)state;
    for (uint32_t num_versions = 1; num_versions <= 2; num_versions++) {
        struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, 2, 1, TRIAL_SHARED);
        options.transports[1] = TRIAL_PAYLOADS;
        options.num_versions = num_versions;
        struct shard_trial *trial = shard_trial_create(&options);
        shard_trial_pull(trial, 1, CHUNK);
        shard_trial_run_all(trial);
        push(trial, 0, PH_HUB_PUSHPULL);
        push(trial, 1, PH_HUB_PUSHPULL); /* before the pull has come */
        shard_trial_run_all(trial);
        assert_int_equal(version_of(trial), num_versions - 1); /* the other copy is free */
        assert_int_equal(ph__shard_counters(trial->shards[0])->waits_for_replies, 2 - num_versions);
        shard_trial_let_leave(trial, 0, 1, 1);
        assert_int_equal(version_of(trial), 1);
        assert_int_equal(trial->num_values, 2); /* the pull, and worker 0's */
        shard_trial_destroy(trial);
    }
}

static void an_update_waits_once_whatever_else_comes(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, 2, 2, TRIAL_OWN);
    options.transports[1] = TRIAL_PAYLOADS;
    options.num_versions = 1;
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_pull(trial, 1, CHUNK);
    shard_trial_run_all(trial);
    for (uint32_t i = 0; i < 4; i++) {
        push(trial, i % 2, PH_HUB_PUSHPULL);
        shard_trial_run_all(trial);
    }
    assert_int_equal(version_of(trial), 0);
    assert_int_equal(ph__shard_counters(trial->shards[0])->waits_for_replies, 1);
    shard_trial_settle(trial);
    assert_int_equal(version_of(trial), 2);
    shard_trial_destroy(trial);
}

static void a_slow_reply_holds_up_its_own_copy_alone(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_ASYNCHRONOUS, 3, 1, TRIAL_OWN);
    options.transports[2] = TRIAL_PAYLOADS;
    struct shard_trial *trial = shard_trial_create(&options);
    push(trial, 2, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial); /* version 1 is being sent */
    push(trial, 0, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
    assert_int_equal(version_of(trial), 2);
    push(trial, 1, PH_HUB_PUSHPULL);
    push(trial, 0, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
    assert_int_equal(version_of(trial), 2); /* version 3 would overwrite version 1 */
    assert_int_equal(ph__shard_counters(trial->shards[0])->waits_for_replies, 2);
    shard_trial_let_leave(trial, 0, 2, 1);
    assert_int_equal(version_of(trial), 4);
    assert_int_equal(request_of(trial, 2)->value_version, 1);
    shard_trial_destroy(trial);
}

static void in_arrival_order_gradients_are_added_while_the_update_waits(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, 2, 2, TRIAL_SHARED);
    options.order = PH_HUB_ARRIVAL_ORDER;
    options.num_versions = 1; /* so that all versions wait */
    options.transports[0] = options.transports[1] = TRIAL_PAYLOADS;
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_pull(trial, 0, CHUNK);
    shard_trial_run_all(trial);
    for (uint32_t i = 0; i < 4; i++)
        push(trial, 1 - i % 2, i < 2 ? PH_HUB_PUSHPULL : PH_HUB_PUSH);
    shard_trial_run_all(trial);
    assert_int_equal(version_of(trial), 0);
    assert_int_equal(trial->memory.chunks[CHUNK].num_added[0] + trial->memory.chunks[CHUNK].num_added[1], 4);
    shard_trial_let_leave(trial, 0, 0, 1);
    assert_int_equal(version_of(trial), 1);
    shard_trial_let_leave(trial, 0, 0, 1);
    assert_int_equal(version_of(trial), 1); /* one of two */
    shard_trial_let_leave(trial, 0, 1, 1);
    assert_int_equal(version_of(trial), 2);
    shard_trial_settle(trial);
    assert_int_equal(request_of(trial, 0)->answered + request_of(trial, 1)->answered, 4);
    shard_trial_destroy(trial);
}

static void a_reply_that_cannot_be_sent_fails_its_worker_and_holds_up_nobody(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_ASYNCHRONOUS, 2, 1, TRIAL_OWN);
    options.transports[1] = TRIAL_PAYLOADS;
    options.num_versions = 1;
    struct shard_trial *trial = shard_trial_create(&options);
    payload_link_break(trial->links[0][1].hub_link);
    shard_trial_pull(trial, 1, CHUNK);
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_failures[1], 1);
    assert_string_equal(trial->failure, "the link is broken");
    for (uint64_t version = 1; version <= 3; version++) {
        push(trial, 0, PH_HUB_PUSHPULL);
        shard_trial_run_all(trial);
        assert_int_equal(version_of(trial), version);
    }
    assert_int_equal(trial->num_failures[0], 0);
    shard_trial_destroy(trial);
}

/* ---- staleness ---- */

/* Of worker 0, while nobody else pushes: what it hears the end of is `staleness` ahead, what it can push and
 * the hub uses `depth` more. */
static void run_ahead(struct shard_trial *trial)
{
    const uint64_t staleness = trial->options.staleness, depth = trial->options.depth;
    for (uint64_t pushed = 1; pushed <= staleness + depth; pushed++) {
        push(trial, 0, PH_HUB_PUSHPULL);
        shard_trial_settle(trial);
        assert_int_equal(version_of(trial), pushed);
        assert_int_equal(request_of(trial, 0)->answered, pushed < staleness ? pushed : staleness);
    }
}

static void nobody_gets_further_ahead_than_staleness_and_depth(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        struct shard_trial_options options = job_of(PH_HUB_BOUNDED, 3, 1 + i % 2, TRIAL_OWN);
        options.staleness = i / 2;
        options.transports[1] = TRIAL_PAYLOADS;
        struct shard_trial *trial = shard_trial_create(&options);
        run_ahead(trial);
        push(trial, 1, PH_HUB_PUSH);
        shard_trial_settle(trial);
        assert_int_equal(request_of(trial, 0)->answered, options.staleness); /* worker 2 is slower still */
        push(trial, 2, PH_HUB_PUSHPULL);
        shard_trial_settle(trial);
        assert_int_equal(request_of(trial, 0)->answered, options.staleness + 1);
        shard_trial_destroy(trial);
    }
}

/* One push more than may wait for the slowest fails whoever makes it. */
static void no_push_is_further_ahead(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 2; depth++) {
        struct shard_trial_options options = job_of(PH_HUB_BOUNDED, 2, depth, TRIAL_OWN);
        options.staleness = 1;
        options.is_lawless = true;
        struct shard_trial *trial = shard_trial_create(&options);
        for (uint32_t pushed = 0; pushed < options.staleness + depth; pushed++) {
            push(trial, 0, PH_HUB_PUSH);
            shard_trial_settle(trial);
            assert_int_equal(trial->num_failures[0], 0);
        }
        push(trial, 0, PH_HUB_PUSH);
        shard_trial_settle(trial);
        assert_int_equal(trial->num_failures[0], 1);
        assert_int_equal(version_of(trial), options.staleness + depth);
        shard_trial_destroy(trial);
    }
}

static void whoever_waits_for_the_slowest_goes_on_when_that_dies(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_BOUNDED, 3, 2, TRIAL_OWN);
    struct shard_trial *trial = shard_trial_create(&options);
    for (uint32_t worker = 0; worker < 2; worker++) {
        push(trial, worker, PH_HUB_PUSHPULL);
        push(trial, worker, PH_HUB_PUSH);
        shard_trial_pull(trial, worker, CHUNK);
    }
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_replies, 0);
    shard_trial_remove(trial, 0, 2);
    shard_trial_run_all(trial);
    for (uint32_t worker = 0; worker < 2; worker++) {
        assert_int_equal(request_of(trial, worker)->answered, 2);
        assert_int_equal(request_of(trial, worker)->value, 2);
    }
    shard_trial_destroy(trial);
}

#define REPLY_TEST(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REPLY_TEST(parameters_can_be_pulled_before_all_pushes),
        REPLY_TEST(what_a_network_carries_counts_as_work),
        REPLY_TEST(a_pull_brings_what_was_pushed_before_it),
        REPLY_TEST(a_pull_does_not_wait_for_pushes_after_it),
        REPLY_TEST(own_parameters_change_only_when_they_are_pulled),
        REPLY_TEST(a_version_is_not_overwritten_while_it_is_sent),
        REPLY_TEST(an_update_waits_once_whatever_else_comes),
        REPLY_TEST(a_slow_reply_holds_up_its_own_copy_alone),
        REPLY_TEST(in_arrival_order_gradients_are_added_while_the_update_waits),
        REPLY_TEST(a_reply_that_cannot_be_sent_fails_its_worker_and_holds_up_nobody),
        REPLY_TEST(nobody_gets_further_ahead_than_staleness_and_depth),
        REPLY_TEST(no_push_is_further_ahead),
        REPLY_TEST(whoever_waits_for_the_slowest_goes_on_when_that_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
