#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/trace.h"
#include "support/test_support.h"

static struct ph_json *write_and_parse(const struct ph_trace *trace)
{
    struct ph_arena arena = {0};
    const char *path = ph__path_join(&arena, test_folder(), "trace.json");
    char *text = NULL;
    size_t size = 0;
    struct ph_json *json = NULL;
    assert_ok(ph__trace_write(trace, path));
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_ok(ph__json_parse(text, size, path, PH_ERROR_DATA, &json));
    ph__arena_fini(&arena);
    return json;
}

static void events_are_written_as_chrome_reads_them(void **state)
{
    (void)state;
    struct ph_trace *trace = NULL;
    assert_ok(ph__trace_create(4, &trace));
    ph__trace_add(trace, "linear \"1\"\\\n", "forward", 2, 1234567, 1001);
    struct ph_json *json = write_and_parse(trace);
    const struct ph_json *event = ph__json_at(ph__json_get(json, "traceEvents"), 0);
    assert_string_equal(ph__json_as_text(ph__json_get(event, "ph"), ""), "X");
    assert_string_equal(ph__json_as_text(ph__json_get(event, "name"), ""), "linear \"1\"\\\n");
    assert_string_equal(ph__json_as_text(ph__json_get(event, "cat"), ""), "forward");
    assert_int_equal(ph__json_as_integer(ph__json_get(event, "tid"), -1), 2);
    assert_near(ph__json_as_number(ph__json_get(event, "ts"), 0), 1234.567, 1e-9, 0);
    assert_near(ph__json_as_number(ph__json_get(event, "dur"), 0), 1.001, 1e-9, 0);
    ph__json_destroy(json);
    ph__trace_destroy(trace);
}

static void numbers_belong_to_an_event(void **state)
{
    (void)state;
    struct ph_trace *trace = NULL;
    const struct ph_trace_argument arguments[] = {{"chunk", 17}, {"a \"name\"", UINT64_C(1) << 62}};
    assert_ok(ph__trace_create(2, &trace));
    ph__trace_add_with(trace, "step", "job", 1, 10, 20, arguments, 2);
    assert_false(ph__trace_is_full(trace));
    ph__trace_add(trace, "other", "job", 1, 10, 20);
    assert_true(ph__trace_is_full(trace));
    assert_true(ph__trace_is_full(NULL));
    struct ph_json *json = write_and_parse(trace);
    const struct ph_json *events = ph__json_get(json, "traceEvents");
    const struct ph_json *of_step = ph__json_get(ph__json_at(events, 0), "args");
    assert_int_equal(ph__json_as_integer(ph__json_get(of_step, "chunk"), -1), 17);
    assert_true(ph__json_as_integer(ph__json_get(of_step, "a \"name\""), -1) == INT64_C(1) << 62);
    assert_null(ph__json_get(ph__json_at(events, 1), "args"));
    ph__json_destroy(json);
    ph__trace_destroy(trace);
}

static void add_event(void *argument, size_t task, size_t worker)
{
    ph__trace_add(argument, "task", "test", (uint32_t)worker, task, 1);
}

static void events_beyond_the_limit_are_counted(void **state)
{
    (void)state;
    struct ph_trace *trace = NULL;
    struct ph_team *team = NULL;
    assert_ok(ph__trace_create(10, &trace));
    assert_ok(ph__team_create(3, &team));
    ph__parallel_for(team, 25, add_event, trace);
    struct ph_json *json = write_and_parse(trace);
    assert_int_equal(ph__json_size(ph__json_get(json, "traceEvents")), 10);
    assert_int_equal(
        ph__json_as_integer(ph__json_get(ph__json_get(json, "otherData"), "dropped_events"), -1), 15);
    ph__json_destroy(json);
    ph__team_destroy(team);
    ph__trace_destroy(trace);
}

static void no_trace_takes_no_events(void **state)
{
    (void)state;
    ph__trace_add(NULL, "a", "b", 0, 0, 0);
    ph__trace_destroy(NULL);
    struct ph_trace *trace = NULL;
    assert_ok(ph__trace_create(0, &trace));
    ph__trace_add(trace, "a", "b", 0, 0, 0);
    struct ph_json *json = write_and_parse(trace);
    assert_int_equal(ph__json_size(ph__json_get(json, "traceEvents")), 0);
    ph__json_destroy(json);
    ph__trace_destroy(trace);
    assert_fails(ph__trace_create(SIZE_MAX / 2, &trace), PH_ERROR_MEMORY, "trace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_written_as_chrome_reads_them),
        cmocka_unit_test(numbers_belong_to_an_event),
        cmocka_unit_test(events_beyond_the_limit_are_counted),
        cmocka_unit_test(no_trace_takes_no_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
