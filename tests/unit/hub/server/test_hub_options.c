#include <stdio.h>
#include <string.h>

#include "hub/server/hub_options.h"
#include "support/test_support.h"

static struct ph_hub_server_options read_options(
    struct ph__arena *arena, const char *const *sets, size_t num_sets)
{
    struct ph_hub_server_options options;
    const struct ph__section section = {&ph__hub_options, &options};
    assert_ok(ph__config_read(NULL, sets, num_sets, &section, 1, arena));
    return options;
}

static void defaults_bind_to_the_loopback_and_log(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const struct ph_hub_server_options options = read_options(&arena, NULL, 0);
    assert_string_equal(options.address, "127.0.0.1:0");
    assert_null(options.secret_file);
    assert_string_equal(options.metrics_address, "");
    assert_null(options.checkpoint_folder);
    assert_null(options.trace_path);
    assert_int_equal(options.num_threads, 0);
    assert_int_equal(options.wait, PH_HUB_WAIT_AUTO);
    assert_int_equal(options.aggregation, PH_HUB_TALL);
    assert_int_equal(options.log, PH_HUB_LOG_TEXT);
    ph__arena_fini(&arena);
}

/* A key that comes to the table has to come here, too. */
static void assert_names_each_key(const char *const *sets, size_t num_sets)
{
    for (size_t i = 0; i < ph__hub_options.num_options; i++) {
        char begin[64];
        size_t count = 0;
        const int length = snprintf(begin, sizeof begin, "hub.%s=", ph__hub_options.options[i].key);
        for (size_t k = 0; k < num_sets; k++)
            count += strncmp(sets[k], begin, (size_t)length) == 0;
        if (count != 1)
            fail_msg("%s is set %zu times", begin, count);
    }
    assert_int_equal(num_sets, ph__hub_options.num_options);
}

static void each_key_reaches_the_server(void **state)
{
    (void)state;
    static const char *const sets[] = {"hub.address=0.0.0.0:7", "hub.secret_file=s", "hub.threads=3",
        "hub.wait=spin_then_sleep", "hub.aggregation=wide", "hub.results=non_temporal",
        "hub.max_bytes=9000000000", "hub.max_job_bytes=8", "hub.max_jobs=5", "hub.chunk_bytes=640",
        "hub.checkpoint_folder=c", "hub.metrics_address=h:1", "hub.trace=t", "hub.log=json"};
    assert_names_each_key(sets, sizeof sets / sizeof *sets);
    struct ph__arena arena = {0};
    const struct ph_hub_server_options options = read_options(&arena, sets, sizeof sets / sizeof *sets);
    assert_string_equal(options.address, "0.0.0.0:7");
    assert_string_equal(options.secret_file, "s");
    assert_int_equal(options.num_threads, 3);
    assert_int_equal(options.wait, PH_HUB_WAIT_SPIN_THEN_SLEEP);
    assert_int_equal(options.aggregation, PH_HUB_WIDE);
    assert_int_equal(options.results, PH_HUB_RESULTS_NON_TEMPORAL);
    assert_int_equal(options.log, PH_HUB_LOG_JSON);
    assert_true(options.max_bytes == 9000000000u);
    assert_int_equal(options.max_job_bytes, 8);
    assert_int_equal(options.max_jobs, 5);
    assert_int_equal(options.chunk_bytes, 640);
    assert_string_equal(options.checkpoint_folder, "c");
    assert_string_equal(options.metrics_address, "h:1");
    assert_string_equal(options.trace_path, "t");
    ph__arena_fini(&arena);
}

static void a_hub_may_be_quiet(void **state)
{
    (void)state;
    static const char *const sets[] = {"hub.log=none"};
    struct ph__arena arena = {0};
    assert_int_equal(read_options(&arena, sets, 1).log, PH_HUB_LOG_NONE);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_bind_to_the_loopback_and_log),
        cmocka_unit_test(each_key_reaches_the_server),
        cmocka_unit_test(a_hub_may_be_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
