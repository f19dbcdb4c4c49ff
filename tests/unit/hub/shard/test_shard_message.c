/* What a worker must not say: it fails, alone and with a clear line, and the others' results stay those of
 * the serial loop. */
#include <math.h>
#include <string.h>

#include "base/thread/cpu.h"
#include "hub/shard/shard_state.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

static struct ph__rng_sequence draws;

static int set_up(void **state)
{
    (void)state;
    draws = (struct ph__rng_sequence){.key.seed = test_seed()};
    return 0;
}

static struct shard_trial_options job_of(enum ph_hub_mode mode, enum trial_transport transport)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return (struct shard_trial_options){.job = shard_walk_job(ph__kernels_for(isa), walk_optimizers,
                                            WALK_NUM_OPTIMIZERS, ph__rng_next(&draws)),
        .mode = mode,
        .num_workers = 3,
        .depth = 2,
        .num_shards = 2,
        .transports = {transport, transport, transport}};
}

/* The worker has failed with this line, nobody else has, and the others go on without it. */
static void check_failed(struct shard_trial *trial, uint32_t failed, const char *text)
{
    shard_trial_run_all(trial);
    for (uint32_t worker = 0; worker < 3; worker++)
        assert_int_equal(trial->num_failures[worker], worker == failed);
    assert_string_equal(trial->failure, text);
    trial->num_failures[failed] = 0;
    shard_trial_remove_everywhere(trial, failed);
    shard_walk(trial, &(struct shard_walk){.num_iterations = 4}, &draws);
    shard_trial_destroy(trial);
}

/* ---- messages that are wrong whenever they come ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void what_makes_no_sense_fails_its_worker(void **state)
{
    (void)state;
    const struct {
        uint32_t worker;
        struct ph__message message; /* to shard 0, whose chunks are even */
        const char *text;
    } cases[] = {
        {1, {.kind = PH_HUB_PUSH, .chunk = 13, .iteration = 1},
            "chunk 13 does not exist: the job has 13 chunks"},
        {2, {.kind = PH_HUB_PULL, .chunk = UINT32_MAX},
            "chunk 4294967295 does not exist: the job has 13 chunks"},
        {1, {.kind = PH_HUB_PUSH, .chunk = 3, .iteration = 1}, "chunk 3 does not belong to core thread 0"},
        {0, {.kind = PH_HUB_ASSIGN, .chunk = 3}, "chunk 3 does not belong to core thread 0"},
        {1, {.kind = PH_HUB_PUSH, .chunk = 2, .iteration = 0}, "chunk 2: iteration 0 is pushed after 0"},
        {1, {.kind = PH_HUB_PUSHPULL, .chunk = 2, .iteration = 2}, "chunk 2: iteration 2 is pushed after 0"},
        {1, {.kind = PH_HUB_PUSH, .chunk = 2, .iteration = UINT64_MAX},
            "chunk 2: iteration 18446744073709551615 is pushed after 0"},
        {2, {.kind = PH_HUB_PULL, .chunk = 4, .iteration = 1},
            "chunk 4: a pull of iteration 1 is not of the last push"},
        {1, {.kind = PH_HUB_ASSIGN, .chunk = 2},
            "chunk 2: only rank 0 may set parameters, before all pushes"},
        {0, {.kind = PH_HUB_ASSIGN, .chunk = 2, .iteration = 1},
            "chunk 2: only rank 0 may set parameters, before all pushes"},
        {0, {.kind = PH_HUB_LEARNING_RATE, .chunk = bits_of(NAN)},
            "a learning rate of nan for optimizer 0 by rank 0 is invalid"},
        {0, {.kind = PH_HUB_LEARNING_RATE, .chunk = bits_of(INFINITY), .count = 2},
            "a learning rate of inf for optimizer 2 by rank 0 is invalid"},
        {0, {.kind = PH_HUB_LEARNING_RATE, .chunk = bits_of(.5F), .count = 7},
            "a learning rate of 0.5 for optimizer 7 by rank 0 is invalid"},
        {2, {.kind = PH_HUB_LEARNING_RATE, .chunk = bits_of(.5F)},
            "a learning rate of 0.5 for optimizer 0 by rank 2 is invalid"},
        {1, {.kind = 0}, "a message of kind 0 is unknown"},
        {1, {.kind = PH_HUB_TAKEN}, "a message of kind 6 is unknown"},
        {2, {.kind = PH_HUB_VALUE, .flags = 255}, "a message of kind 7 is unknown"},
        {1, {.kind = 255}, "a message of kind 255 is unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
        struct shard_trial *trial = shard_trial_create(&options);
        assert_int_equal(trial->layout->sizes.num_chunks, 13);
        shard_trial_send(trial, 0, cases[i].worker, &cases[i].message, 0);
        check_failed(trial, cases[i].worker, cases[i].text);
    }
}

static void in_the_midst_of_a_job_too(void **state)
{
    (void)state;
    for (int mode = PH_HUB_SYNCHRONOUS; mode <= PH_HUB_BOUNDED; mode++) {
        for (size_t round = 0; round < 10; round++) {
            const struct shard_trial_options options =
                job_of((enum ph_hub_mode)mode, round % 2 == 0 ? TRIAL_OWN : TRIAL_PAYLOADS);
            const struct ph__message wrong = {.kind = PH_HUB_PUSHPULL, .chunk = 6, .iteration = 9};
            struct shard_trial *trial = shard_trial_create(&options);
            shard_walk(trial, &(struct shard_walk){.num_iterations = 3}, &draws);
            for (uint32_t worker = 0; worker < 3; worker++)
                shard_trial_push(trial, worker, (uint32_t)(2 * round % 13), PH_HUB_PUSHPULL);
            shard_trial_send(trial, 0, 1, &wrong, 64);
            check_failed(trial, 1,
                6 == 2 * round % 13 ? "chunk 6: iteration 9 is pushed after 4"
                                    : "chunk 6: iteration 9 is pushed after 3");
        }
    }
}

/* ---- messages that are wrong at their time ---- */

static void pushing_further_ahead_than_the_depth_fails(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 2; depth++) {
        struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
        options.depth = depth;
        struct shard_trial *trial = shard_trial_create(&options);
        for (uint32_t i = 0; i < depth; i++)
            shard_trial_push(trial, 1, 2, PH_HUB_PUSHPULL);
        shard_trial_run_all(trial);
        assert_int_equal(trial->num_failures[1], 0);
        shard_trial_send(
            trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PUSH, .chunk = 2, .iteration = depth + 1}, 0);
        check_failed(trial, 1,
            depth == 1 ? "chunk 2: iteration 2 is pushed while 1 waits"
                       : "chunk 2: iteration 3 is pushed while 1 waits");
    }
}

static void staleness_is_no_licence_to_push_ahead(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_BOUNDED, TRIAL_OWN);
    options.depth = 1;
    struct shard_trial *trial = shard_trial_create(&options); /* of staleness 0: no reply yet */
    shard_trial_push(trial, 1, 2, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
    shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PUSH, .chunk = 2, .iteration = 2}, 0);
    check_failed(trial, 1, "chunk 2: iteration 2 is pushed while 1 waits");
}

static void a_second_pull_fails(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_push(trial, 1, 2, PH_HUB_PUSH);
    shard_trial_pull(trial, 1, 2);
    shard_trial_run_all(trial);
    shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PULL, .chunk = 2, .iteration = 1}, 0);
    check_failed(trial, 1, "chunk 2: a pull of iteration 1 came while another waits");
}

static void an_old_pull_fails(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_push(trial, 1, 2, PH_HUB_PUSH);
    shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PULL, .chunk = 2}, 0);
    check_failed(trial, 1, "chunk 2: a pull of iteration 0 is not of the last push");
}

static void parameters_cannot_be_given_after_a_push(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
    struct shard_trial *trial = shard_trial_create(&options);
    shard_trial_push(trial, 0, 2, PH_HUB_PUSH);
    shard_trial_send(trial, 0, 0, &(struct ph__message){.kind = PH_HUB_ASSIGN, .chunk = 2}, 0);
    check_failed(trial, 0, "chunk 2: only rank 0 may set parameters, before all pushes");
}

/* The head comes in time, the rest does not: another worker's gradient has become version 1 in between. */
static void nor_can_they_come_late(void **state)
{
    (void)state;
    static const char parameters[64] = {1};
    struct shard_trial_options options = job_of(PH_HUB_ASYNCHRONOUS, TRIAL_PAYLOADS);
    struct shard_trial *trial = shard_trial_create(&options);
    struct ph__link *link = trial->links[0][0].hub_link;
    payload_link_put(
        link, &(struct ph__message){.kind = PH_HUB_ASSIGN, .chunk = 2}, parameters, sizeof parameters, false);
    shard_trial_run_all(trial);
    assert_int_equal(trial->num_failures[0], 0);
    shard_trial_push(trial, 1, 2, PH_HUB_PUSHPULL);
    shard_trial_settle(trial);
    assert_int_equal(trial->memory.chunks[2].version, 1);
    payload_link_complete(link);
    check_failed(trial, 0, "chunk 2: only rank 0 may set parameters, before all pushes");
}

/* ---- payloads ---- */

static void payloads_of_another_size_fail(void **state)
{
    (void)state;
    static const struct {
        struct ph__message message;
        size_t payload_bytes;
        const char *text;
    } cases[] = {
        {{.kind = PH_HUB_PUSH, .chunk = 2, .iteration = 1}, 60, "chunk 2 comes with 60 bytes instead of 64"},
        {{.kind = PH_HUB_PUSH, .chunk = 2, .iteration = 1}, 0, "chunk 2 comes with 0 bytes instead of 64"},
        {{.kind = PH_HUB_PUSHPULL, .chunk = 6, .iteration = 1}, 64,
            "chunk 6 comes with 64 bytes instead of 16"},
        {{.kind = PH_HUB_PULL, .chunk = 2}, 64, "chunk 2 comes with 64 bytes instead of 0"},
        {{.kind = PH_HUB_PULL, .chunk = 2}, 1, "chunk 2 comes with 1 bytes instead of 0"},
        {{.kind = PH_HUB_LEARNING_RATE}, 4, "chunk 0 comes with 4 bytes instead of 0"},
        {{.kind = PH_HUB_ASSIGN, .chunk = 12}, 64, "chunk 12 comes with 64 bytes instead of 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char payload[64];
        const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_PAYLOADS);
        struct shard_trial *trial = shard_trial_create(&options);
        payload_link_put(
            trial->links[0][0].hub_link, &cases[i].message, payload, cases[i].payload_bytes, true);
        check_failed(trial, 0, cases[i].text);
    }
}

/* ---- links that break ---- */

static void whoever_does_not_take_its_replies_fails(void **state)
{
    (void)state;
    struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
    options.ring_capacity = 16;
    options.is_lawless = true;
    struct shard_trial *trial = shard_trial_create(&options);
    size_t bytes;
    for (size_t i = 0; i < 17; i++) {
        shard_trial_send(trial, 0, 1, &(struct ph__message){.kind = PH_HUB_PULL, .chunk = 2}, 0);
        ph__shard_run(trial->shards[0], SIZE_MAX, &bytes);
        assert_int_equal(trial->num_failures[1], i == 16);
    }
    assert_string_equal(trial->failure, "the peer does not read its messages: 16 are waiting");
    assert_int_equal(trial->num_failures[0] + trial->num_failures[2], 0);
    shard_trial_destroy(trial);
}

static void a_ring_with_nonsense_in_it_fails_its_worker(void **state)
{
    (void)state;
    for (size_t round = 0; round < 200; round++) {
        struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_SHARED);
        options.ring_capacity = 64;
        struct shard_trial *trial = shard_trial_create(&options);
        uint64_t *ring = trial->links[0][1].ring;
        for (size_t i = 16; i < (64 + 64 * 16) / sizeof *ring; i++) /* messages */
            ring[i] = ph__rng_next(&draws) & ph__rng_next(&draws) & ph__rng_next(&draws);
        ring[0] = 1 + (round % 2 == 0 ? ph__rng_below(&draws, 64) : ph__rng_next(&draws) >> 1); /* written */
        trial->links[0][1].is_live = false; /* nothing that it says is its trial's business */
        trial->options.is_lawless = true;
        shard_trial_run_all(trial);
        assert_int_equal(trial->num_failures[0] + trial->num_failures[2], 0);
        assert_in_range(trial->num_failures[1], 0, 1);
        shard_trial_destroy(trial);
    }
}

/* Its payload is still coming while another leaves, without whom its iteration never will be. */
static void a_push_that_was_on_its_way_when_another_left_fails_its_worker(void **state)
{
    (void)state;
    const struct shard_trial_options options = job_of(PH_HUB_SYNCHRONOUS, TRIAL_PAYLOADS);
    struct shard_trial *trial = shard_trial_create(&options);
    struct ph__shard *shard = trial->shards[0];
    const struct ph__link_owner owner = ph__shard_link_owner(shard, 1);
    const struct ph__message push = {.kind = PH_HUB_PUSHPULL, .chunk = 0, .iteration = 1};
    void *memory;
    assert_ok(owner.place(owner.context, &push, trial->layout->chunks[0].gradient_bytes, &memory));
    ph__shard_retire_worker(shard, 2);
    assert_fails(owner.arrived(owner.context, &push), PH_ERROR_PEER, "worker 2 has left");
    shard_trial_destroy(trial);
}

#define MESSAGE_TEST(test) cmocka_unit_test_setup(test, set_up)

/* ---- places ---- */

/* Where gradients are received to: the place that was freed last is used next, no two gradients share one,
 * and all that can be under way have one. What is summed from there is held against the serial loop by the
 * trial itself. */

enum { NUM_WORKERS = 3, DEPTH = 2 };

static struct shard_trial *make_trial(enum ph_hub_order order, uint16_t num_shards)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return shard_trial_create(&(struct shard_trial_options){
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .order = order,
        .num_workers = NUM_WORKERS,
        .depth = DEPTH,
        .num_shards = num_shards,
        .transports = {TRIAL_PAYLOADS, TRIAL_PAYLOADS, TRIAL_PAYLOADS}});
}

static bool is_whole(const struct shard_trial *trial, uint32_t chunk)
{
    return trial->layout->chunks[chunk].gradient_bytes == trial->layout->chunk_bytes;
}

static uint32_t next_whole(const struct shard_trial *trial, uint32_t chunk)
{
    while (!is_whole(trial, chunk))
        chunk++;
    assert_in_range(chunk, 0, trial->layout->sizes.num_chunks - 1);
    return chunk;
}

static size_t count_whole(const struct shard_trial *trial, uint16_t shard)
{
    size_t count = 0;
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
        count += is_whole(trial, chunk) && trial->core_of_chunk[chunk] == shard;
    return count;
}

static const char *place_of(
    const struct shard_trial *trial, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    return ph__request(&trial->memory, chunk, worker)->received[iteration % DEPTH];
}

static void push(struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    shard_trial_push(trial, worker, chunk, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
}

static void what_was_freed_last_is_used_next(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_WORKER_ORDER, 1);
    const uint32_t first = next_whole(trial, 0), second = next_whole(trial, first + 1);
    push(trial, 0, first);
    push(trial, 1, first);
    const char *places[] = {place_of(trial, first, 0, 1), place_of(trial, first, 1, 1)};
    assert_non_null(places[0]);
    assert_non_null(places[1]);
    assert_ptr_not_equal(places[0], places[1]);
    push(trial, 2, first); /* all are there: they are summed, and worker 2's place was freed last */
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        assert_null(place_of(trial, first, worker, 1));
    push(trial, 1, second);
    push(trial, 2, second);
    assert_ptr_equal(place_of(trial, second, 2, 1), places[1]);
    push(trial, 0, second);
    shard_trial_destroy(trial);
}

static void all_that_can_be_under_way_have_a_place_of_their_own(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_WORKER_ORDER, 2);
    const uint32_t num_chunks = (uint32_t)trial->layout->sizes.num_chunks;
    const char *seen[64];
    size_t num_seen = 0;
    for (uint64_t iteration = 1; iteration <= DEPTH; iteration++) {
        for (uint32_t worker = 0; worker + 1 < NUM_WORKERS; worker++) { /* they wait for the last one */
            for (uint32_t chunk = 0; chunk < num_chunks; chunk++) {
                push(trial, worker, chunk);
                const char *place = place_of(trial, chunk, worker, iteration);
                assert_int_equal(place != NULL, is_whole(trial, chunk));
                for (size_t i = 0; i < num_seen; i++)
                    assert_ptr_not_equal(seen[i], place);
                if (place != NULL) {
                    assert_in_range(num_seen, 0, 63);
                    seen[num_seen++] = place;
                }
            }
        }
    }
    for (uint64_t iteration = 1; iteration <= DEPTH; iteration++) {
        for (uint32_t chunk = 0; chunk < num_chunks; chunk++)
            push(trial, NUM_WORKERS - 1, chunk);
        shard_trial_settle(trial);
    }
    shard_trial_check_end(trial, DEPTH);
    for (uint16_t shard = 0; shard < 2; shard++)
        assert_int_equal(trial->shards[shard]->num_places, count_whole(trial, shard) * NUM_WORKERS * DEPTH);
    shard_trial_destroy(trial);
}

/* Arrival order: a gradient's place is free as soon as it was added, though others are missing. */
static void what_was_added_leaves_its_place(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_ARRIVAL_ORDER, 1);
    const uint32_t chunk = next_whole(trial, 0);
    push(trial, 2, chunk);
    assert_null(place_of(trial, chunk, 2, 1));
    assert_int_equal(trial->shards[0]->num_places, count_whole(trial, 0) * NUM_WORKERS * DEPTH);
    shard_trial_destroy(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MESSAGE_TEST(what_makes_no_sense_fails_its_worker),
        MESSAGE_TEST(in_the_midst_of_a_job_too),
        MESSAGE_TEST(pushing_further_ahead_than_the_depth_fails),
        MESSAGE_TEST(staleness_is_no_licence_to_push_ahead),
        MESSAGE_TEST(a_second_pull_fails),
        MESSAGE_TEST(an_old_pull_fails),
        MESSAGE_TEST(parameters_cannot_be_given_after_a_push),
        MESSAGE_TEST(nor_can_they_come_late),
        MESSAGE_TEST(a_push_that_was_on_its_way_when_another_left_fails_its_worker),
        MESSAGE_TEST(payloads_of_another_size_fail),
        MESSAGE_TEST(whoever_does_not_take_its_replies_fails),
        MESSAGE_TEST(a_ring_with_nonsense_in_it_fails_its_worker),
        cmocka_unit_test(what_was_freed_last_is_used_next),
        cmocka_unit_test(all_that_can_be_under_way_have_a_place_of_their_own),
        cmocka_unit_test(what_was_added_leaves_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
