/* Which size of chunks is chosen from which times, what small jobs get, and what a job's workers are told. */
#include "hub/shard/autotune.h"

#include <string.h>

#include "base/rng.h"
#include "base/thread/cpu.h"
#include "phloem/hub_server.h"
#include "support/hub_thread.h"
#include "support/test_support.h"

enum { NUM_SIZES = PH_AUTOTUNE_NUM_SIZES, KIB = 1024 };

/* ---- the choice ---- */

/* Rounds that all take these times. */
static struct ph__autotune_times steady(const double seconds[NUM_SIZES], size_t num_rounds)
{
    struct ph__autotune_times times = {.num_rounds = num_rounds};
    for (size_t round = 0; round < num_rounds; round++)
        memcpy(times.seconds[round], seconds, sizeof times.seconds[round]);
    return times;
}

static void check_choice(const struct ph__autotune_times *times, uint32_t wanted, double wanted_ratio)
{
    double ratio = -1;
    assert_int_equal(ph__autotune_choose(times, PH_AUTOTUNE_SHARED, &ratio), wanted * KIB);
    assert_near(ratio, wanted_ratio, 1e-12, 0);
}

static void check_steady_choice(const double seconds[NUM_SIZES], uint32_t wanted, double wanted_ratio)
{
    const struct ph__autotune_times times = steady(seconds, 5);
    check_choice(&times, wanted, wanted_ratio);
}

static void sizes_are_powers_of_two_about_the_default(void **state)
{
    (void)state;
    assert_int_equal(ph__autotune_size(0), 8 * KIB);
    assert_int_equal(ph__autotune_size(2), PH_AUTOTUNE_DEFAULT_BYTES);
    assert_int_equal(ph__autotune_size(NUM_SIZES - 1), 2048 * KIB);
}

static void where_all_are_alike_it_is_the_default(void **state)
{
    (void)state;
    check_steady_choice((double[]){3, 3, 3, 3, 3, 3, 3, 3, 3}, 32, 1);
    check_steady_choice((double[]){3.2, 3.1, 3, 2.95, 2.9, 2.87, 2.86, 2.86, 2.86}, 32, 1);
}

static void what_is_clearly_better_is_taken(void **state)
{
    (void)state;
    check_steady_choice((double[]){4, 4, 4, 4, 2, 4, 4, 4, 4}, 128, .5);
    check_steady_choice((double[]){1, 4, 4, 4, 4, 4, 4, 4, 4}, 8, .25);
    check_steady_choice((double[]){4, 4, 4, 4, 4, 4, 4, 4, 3}, 2048, .75);
}

static void of_those_near_the_best_the_smallest_is_taken(void **state)
{
    (void)state;
    check_steady_choice((double[]){8, 6, 4, 3.2, 3.1, 3.05, 3.04, 3.5, 3.5}, 128, 3.1 / 4);
    check_steady_choice((double[]){3.9, 3.1, 4, 3.2, 3.0, 3.0, 3.0, 3.0, 3.0}, 16, 3.1 / 4);
}

/* Whoever is woken for a piece of a chunk costs time that the trial has not measured. */
static void over_tcp_it_is_the_largest(void **state)
{
    (void)state;
    const struct ph__autotune_times times = steady((double[]){8, 6, 4, 3.2, 3.1, 3, 3.04, 3.4, 3.5}, 5);
    double ratio;
    assert_int_equal(ph__autotune_choose(&times, PH_AUTOTUNE_TCP, &ratio), 1024 * KIB);
    assert_near(ratio, 3.4 / 4, 1e-12, 0);
    const struct ph__autotune_times alike = steady((double[]){3, 3, 3, 3, 3, 3, 3, 3, 3}, 5);
    assert_int_equal(ph__autotune_choose(&alike, PH_AUTOTUNE_TCP, &ratio), 32 * KIB);
}

/* The best by far would make it 512 KiB; what is only a little better than the default is near neither. */
static void a_little_better_is_not_near_the_best(void **state)
{
    (void)state;
    check_steady_choice((double[]){4, 4, 4, 3.7, 3.6, 2.2, 2, 2.05, 2.05}, 512, .5);
}

static void one_round_decides_nothing(void **state)
{
    struct ph__autotune_times times = steady((double[]){3, 3, 3, 3, 3, 3, 3, 3, 3}, 5);
    (void)state;
    times.seconds[1][2] = 9; /* the default disturbed */
    check_choice(&times, 32, 1);
    times.seconds[3][5] = .1; /* another one that was interrupted nowhere, or by a clock that jumped */
    check_choice(&times, 32, 1);
}

static void a_disturbed_round_hides_nothing(void **state)
{
    struct ph__autotune_times times = steady((double[]){4, 4, 4, 4, 2, 4, 4, 4, 4}, 5);
    (void)state;
    times.seconds[2][4] = 30;
    check_choice(&times, 128, .5);
}

/* Disturbances that fall on the default most often do not make the others better: its fastest round is as
 * fast. */
static void a_default_that_is_disturbed_often_is_no_worse(void **state)
{
    struct ph__autotune_times times = steady((double[]){3, 3, 3, 3, 3, 3, 3, 3, 3}, 7);
    (void)state;
    for (size_t round = 0; round < 6; round++)
        times.seconds[round][2] = 4;
    check_choice(&times, 32, 1);
}

static void drift_between_rounds_does_not_matter(void **state)
{
    struct ph__autotune_times times = steady((double[]){4, 4, 4, 4, 2, 4, 4, 4, 4}, 9);
    (void)state;
    for (size_t round = 0; round < times.num_rounds; round++) {
        for (size_t i = 0; i < NUM_SIZES; i++)
            times.seconds[round][i] *= (double)(1 + round);
    }
    check_choice(&times, 128, .5);
}

static void too_few_rounds_say_nothing(void **state)
{
    (void)state;
    for (size_t num_rounds = 0; num_rounds < PH_AUTOTUNE_MIN_ROUNDS; num_rounds++) {
        const struct ph__autotune_times times = steady((double[]){4, 4, 4, 4, 1, 4, 4, 4, 4}, num_rounds);
        check_choice(&times, 32, 1);
    }
    const struct ph__autotune_times enough =
        steady((double[]){4, 4, 4, 4, 1, 4, 4, 4, 4}, PH_AUTOTUNE_MIN_ROUNDS);
    check_choice(&enough, 128, .25);
}

/* Times that nothing but chance tells apart. */
static void noise_is_the_default(void **state)
{
    const struct ph__rng_key key = {.seed = test_seed()};
    size_t num_others = 0;
    (void)state;
    for (uint64_t trial = 0; trial < 1000; trial++) {
        struct ph__autotune_times times = {.num_rounds = PH_AUTOTUNE_MAX_ROUNDS};
        double ratio;
        for (size_t round = 0; round < times.num_rounds; round++) {
            for (size_t i = 0; i < NUM_SIZES; i++)
                times.seconds[round][i] =
                    1 + .2 * ph__rng_uniform(&key, trial, (uint32_t)(round * NUM_SIZES + i));
        }
        num_others += ph__autotune_choose(&times, PH_AUTOTUNE_SHARED, &ratio) != PH_AUTOTUNE_DEFAULT_BYTES;
    }
    print_message("%zu of 1000\n", num_others);
    assert_true(num_others <= 30);
}

/* ---- small jobs ---- */

static void each_core_thread_gets_several_chunks(void **state)
{
    (void)state;
    assert_int_equal(ph__autotune_limit(128 * KIB, 64 << 20, 2), 128 * KIB);
    assert_int_equal(ph__autotune_limit(128 * KIB, 2 << 20, 2), 128 * KIB); /* just */
    assert_int_equal(ph__autotune_limit(128 * KIB, (2 << 20) - 4, 2), 64 * KIB);
    assert_int_equal(ph__autotune_limit(128 * KIB, 600 * KIB, 2), 32 * KIB);
    assert_int_equal(ph__autotune_limit(1024 * KIB, 64 << 20, 128), 64 * KIB);
    for (uint64_t bytes = 64 * KIB; bytes < 4096 * KIB; bytes += 4 * KIB) {
        const uint32_t chunk_bytes = ph__autotune_limit(1024 * KIB, bytes, 2);
        assert_true(bytes / chunk_bytes >= 16);
        assert_true(bytes / (2 * chunk_bytes) < 16);
    }
}

static void chunks_do_not_become_tiny(void **state)
{
    (void)state;
    assert_int_equal(ph__autotune_limit(32 * KIB, 4, 1), 4 * KIB);
    assert_int_equal(ph__autotune_limit(32 * KIB, 0, 1), 4 * KIB);
    assert_int_equal(ph__autotune_limit(32 * KIB, 64 * KIB, 128), 4 * KIB);
    assert_int_equal(ph__autotune_limit(32 * KIB, UINT64_MAX, UINT16_MAX), 32 * KIB);
}

/* ---- a hub's jobs ---- */

/* 2^20 of all of its keys, of which each may have one that is cut short. */
static void a_very_large_job_has_larger_chunks(void **state)
{
    struct ph__autotune tuning = {0};
    struct ph__autotune_job job = {.num_bytes = (uint64_t)30 << 30, .num_cores = 1, .clips = true};
    (void)state;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 32 * KIB);
    job.num_bytes++;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 32 * KIB);
    job.num_bytes += 32 * KIB;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 64 * KIB);
    assert_int_equal(ph__autotune_fit(8 * KIB, (uint64_t)32 << 30), 64 * KIB);
    assert_int_equal(ph__autotune_fit(8 * KIB, UINT64_MAX), PH_HUB_MAX_CHUNK_BYTES);
}

static void only_a_job_that_names_no_size_is_measured(void **state)
{
    struct ph__autotune tuning = {0}; /* without kernels nothing can be measured */
    struct ph__autotune_job job = {.num_bytes = 4, .num_cores = 1, .clips = true};
    char text[PH_AUTOTUNE_TEXT_BYTES];
    (void)state;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 32 * KIB);
    ph__autotune_describe(&tuning, &job, text);
    assert_non_null(strstr(text, "the results' bits depend on it"));
    job = (struct ph__autotune_job){.num_bytes = 4, .num_cores = 1, .is_of_several_hubs = true};
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 32 * KIB);
    ph__autotune_describe(&tuning, &job, text);
    assert_non_null(strstr(text, "all hubs that share the job"));
    tuning.hub_bytes = 640;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 640);
    ph__autotune_describe(&tuning, &job, text);
    assert_non_null(strstr(text, "hub's setting"));
    job.wanted_bytes = 64;
    assert_int_equal(ph__autotune_chunk_bytes(&tuning, &job), 64);
    ph__autotune_describe(&tuning, &job, text);
    assert_non_null(strstr(text, "by the job"));
}

struct trial {
    struct ph_hub_server_options server;
    enum ph_hub_transport transport;
    float clip_norm;
    uint32_t chunk_bytes;
    size_t num_elements;
    bool is_kept; /* leaves a checkpoint behind */
};

static struct ph_hub_client *join(const struct trial *trial, const char *address)
{
    struct ph_hub_client *client;
    const struct ph_hub_optimizer none = {.is_none = true};
    const struct ph_hub_key key = {.num_elements = trial->num_elements, .dtype = PH_F32};
    const struct ph_hub_options options = {
        .size = sizeof options, .address = address, .transport = trial->transport};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "tuned",
        .num_workers = 1,
        .clip_norm = trial->clip_norm,
        .chunk_bytes = trial->chunk_bytes,
        .optimizers = &none,
        .num_optimizers = 1};
    assert_ok(ph_hub_create_service(&options, &service));
    assert_ok(ph_hub_connect(&options, "tuned", 0, 0, &client));
    assert_ok(ph_hub_init(client, &key, 1, NULL));
    return client;
}

/* What a worker alone in its job is told. */
static uint32_t told_chunk_bytes(const struct trial *trial)
{
    struct hub_thread hub;
    struct ph_hub_client_info info;
    hub_thread_begin(&hub, trial->server);
    struct ph_hub_client *client = join(trial, hub.address);
    ph_hub_client_describe(client, &info);
    if (trial->is_kept)
        assert_ok(ph_hub_checkpoint(client));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
    return info.chunk_bytes;
}

static void workers_are_told_what_was_named(void **state)
{
    static const struct {
        struct trial trial;
        uint32_t wanted;
    } cases[] = {
        {{.chunk_bytes = 4160}, 4160},
        {{.chunk_bytes = 4160, .server.chunk_bytes = 960}, 4160},
        {{.server.chunk_bytes = 960}, 960},
        {{.server.chunk_bytes = 960, .transport = PH_HUB_TCP, .clip_norm = 1}, 960},
        {{.transport = PH_HUB_TCP, .clip_norm = 1}, 32 * KIB},
        {{.server.aggregation = PH_HUB_WIDE}, 32 * KIB},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial trial = cases[i].trial;
        trial.num_elements = 1000;
        assert_int_equal(told_chunk_bytes(&trial), cases[i].wanted);
    }
}

static void workers_are_told_what_was_measured(void **state)
{
    (void)state;
    for (enum ph_hub_transport transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct trial trial = {
            .server.num_threads = 2, .transport = transport, .num_elements = (size_t)16 << 20};
        const uint32_t chunk_bytes = told_chunk_bytes(&trial);
        assert_true(chunk_bytes >= 8 * KIB && chunk_bytes <= ph__autotune_size(NUM_SIZES - 1));
        assert_int_equal(chunk_bytes & (chunk_bytes - 1), 0);
        trial.num_elements = 16 * KIB;
        assert_int_equal(told_chunk_bytes(&trial), 4 * KIB);
    }
}

static void a_job_that_goes_on_keeps_its_size(void **state)
{
    struct trial trial = {.server = {.chunk_bytes = 960, .checkpoint_folder = test_folder()},
        .num_elements = 1000,
        .is_kept = true};
    (void)state;
    assert_int_equal(told_chunk_bytes(&trial), 960);
    trial.server.chunk_bytes = 1920;
    assert_int_equal(told_chunk_bytes(&trial), 960);
}

static void a_hub_refuses_sizes_that_cannot_be(void **state)
{
    struct ph_hub_server *server;
    const struct ph_hub_server_options odd = {.size = sizeof odd, .chunk_bytes = 100},
                                       large = {.size = sizeof large, .chunk_bytes = 2U << 30};
    (void)state;
    assert_fails(ph_hub_server_create(&odd, &server), PH_ERROR_CONFIG, "100 bytes");
    assert_fails(ph_hub_server_create(&large, &server), PH_ERROR_CONFIG, "2147483648 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_powers_of_two_about_the_default),
        cmocka_unit_test(where_all_are_alike_it_is_the_default),
        cmocka_unit_test(what_is_clearly_better_is_taken),
        cmocka_unit_test(of_those_near_the_best_the_smallest_is_taken),
        cmocka_unit_test(over_tcp_it_is_the_largest),
        cmocka_unit_test(a_little_better_is_not_near_the_best),
        cmocka_unit_test(one_round_decides_nothing),
        cmocka_unit_test(a_disturbed_round_hides_nothing),
        cmocka_unit_test(a_default_that_is_disturbed_often_is_no_worse),
        cmocka_unit_test(drift_between_rounds_does_not_matter),
        cmocka_unit_test(too_few_rounds_say_nothing),
        cmocka_unit_test(noise_is_the_default),
        cmocka_unit_test(each_core_thread_gets_several_chunks),
        cmocka_unit_test(chunks_do_not_become_tiny),
        cmocka_unit_test(a_very_large_job_has_larger_chunks),
        cmocka_unit_test(only_a_job_that_names_no_size_is_measured),
        cmocka_unit_test(workers_are_told_what_was_named),
        cmocka_unit_test(workers_are_told_what_was_measured),
        cmocka_unit_test(a_job_that_goes_on_keeps_its_size),
        cmocka_unit_test(a_hub_refuses_sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
