#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "base/thread/parallel.h"
#include "base/trace.h"
#include "support/test_support.h"

static struct ph__json *write_and_parse(const struct ph__trace *trace)
{
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, test_folder(), "trace.json");
    char *text = NULL;
    size_t size = 0;
    struct ph__json *json = NULL;
    assert_ok(ph__trace_write(trace, path));
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_ok(ph__json_parse(text, size, path, PH_ERROR_DATA, &json));
    ph__arena_fini(&arena);
    return json;
}

static void events_are_written_as_chrome_reads_them(void **state)
{
    (void)state;
    struct ph__trace *trace = NULL;
    assert_ok(ph__trace_create(4, &trace));
    ph__trace_add(trace, "linear \"1\"\\\n", "forward", 2, 1234567, 1001);
    struct ph__json *json = write_and_parse(trace);
    const struct ph__json *event = ph__json_at(ph__json_get(json, "traceEvents"), 0);
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
    struct ph__trace *trace = NULL;
    const struct ph__trace_argument arguments[] = {{"chunk", 17}, {"a \"name\"", UINT64_C(1) << 62}};
    assert_ok(ph__trace_create(2, &trace));
    ph__trace_add_with(trace, "step", "job", 1, 10, 20, arguments, 2);
    assert_false(ph__trace_is_full(trace));
    ph__trace_add(trace, "other", "job", 1, 10, 20);
    assert_true(ph__trace_is_full(trace));
    assert_true(ph__trace_is_full(NULL));
    struct ph__json *json = write_and_parse(trace);
    const struct ph__json *events = ph__json_get(json, "traceEvents");
    const struct ph__json *of_step = ph__json_get(ph__json_at(events, 0), "args");
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
    struct ph__trace *trace = NULL;
    struct ph__team *team = NULL;
    assert_ok(ph__trace_create(10, &trace));
    assert_ok(ph__team_create(3, &team));
    ph__parallel_for(team, 25, add_event, trace);
    struct ph__json *json = write_and_parse(trace);
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
    struct ph__trace *trace = NULL;
    assert_ok(ph__trace_create(0, &trace));
    ph__trace_add(trace, "a", "b", 0, 0, 0);
    struct ph__json *json = write_and_parse(trace);
    assert_int_equal(ph__json_size(ph__json_get(json, "traceEvents")), 0);
    ph__json_destroy(json);
    ph__trace_destroy(trace);
    assert_fails(ph__trace_create(SIZE_MAX / 2, &trace), PH_ERROR_MEMORY, "trace");
}

/* ---- several processes ---- */

static const struct ph__json *find_event(
    const struct ph__json *events, int64_t process, const char *phase, const char *name)
{
    for (size_t i = 0; i < ph__json_size(events); i++) {
        const struct ph__json *event = ph__json_at(events, i);
        if (ph__json_as_integer(ph__json_get(event, "pid"), -1) == process &&
            strcmp(ph__json_as_text(ph__json_get(event, "ph"), ""), phase) == 0 &&
            strcmp(ph__json_as_text(ph__json_get(event, "name"), ""), name) == 0)
            return event;
    }
    fail_msg("no '%s' of process %lld", name, (long long)process);
    return NULL;
}

static double time_of(const struct ph__json *events, int64_t process, const char *phase, const char *name)
{
    return ph__json_as_number(ph__json_get(find_event(events, process, phase, name), "ts"), -1);
}

/* Process 1's clock is 5 microseconds ahead at 10, and loses one in a hundred. */
static void write_two(struct ph__trace *trace, struct ph__writer *writer)
{
    const struct ph__trace_process first = {.id = 0, .writer = writer};
    const struct ph__trace_process other = {1, {10000, 5000, -0.01}, writer};
    const struct ph__trace_event one = {"one", "a", 10000, 300, 1, 1, {{"bytes", 7}}};
    const struct ph__trace_event two = {"two", "a", 110000, 300, 2, 0, {{0}}};
    assert_ok(ph__trace_merge_begin(writer));
    assert_ok(ph__trace_process_name(&first, "rank \"0\""));
    assert_ok(ph__trace_process_events(&first, trace));
    assert_ok(ph__trace_process_events(&first, NULL));
    assert_ok(ph__trace_thread_name(&other, 2, "second"));
    assert_ok(ph__trace_process_event(&other, &one));
    assert_ok(ph__trace_process_event(&other, &two));
    assert_ok(ph__trace_process_flow(&other, 99, &one, &two));
    assert_ok(ph__trace_merge_end(writer, ph__trace_num_dropped(trace) + ph__trace_num_dropped(NULL)));
    assert_ok(ph__writer_finish(writer));
}

static void processes_share_a_file_and_a_clock(void **state)
{
    (void)state;
    struct ph__trace *trace = NULL;
    struct ph__writer *writer = NULL;
    struct ph__json *json = NULL;
    size_t size;
    assert_ok(ph__trace_create(1, &trace));
    ph__trace_add(trace, "linear", "forward", 0, 1500, 1001);
    ph__trace_add(trace, "dropped", "forward", 0, 1600, 1);
    assert_ok(ph__writer_open_memory("trace", 1 << 16, &writer));
    write_two(trace, writer);
    char *text = ph__writer_take(writer, &size);
    ph__writer_close(writer);
    assert_ok(ph__json_parse(text, size, "trace", PH_ERROR_DATA, &json));
    const struct ph__json *events = ph__json_get(json, "traceEvents");
    const struct ph__json *name = ph__json_get(find_event(events, 0, "M", "process_name"), "args");
    assert_string_equal(ph__json_as_text(ph__json_get(name, "name"), ""), "rank \"0\"");
    assert_near(time_of(events, 0, "X", "linear"), 1.5, 1e-9, 0);
    assert_near(time_of(events, 1, "X", "one"), 10 - 5, 1e-9, 0);
    assert_near(time_of(events, 1, "X", "two"), 110 - 5 + 1, 1e-9, 0);
    assert_near(time_of(events, 1, "s", "flow"), 5, 1e-9, 0);
    assert_near(time_of(events, 1, "f", "flow"), 106, 1e-9, 0);
    assert_int_equal(
        ph__json_as_integer(ph__json_get(ph__json_get(json, "otherData"), "dropped_events"), -1), 1);
    ph__json_destroy(json);
    free(text);
    ph__trace_destroy(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_written_as_chrome_reads_them),
        cmocka_unit_test(numbers_belong_to_an_event),
        cmocka_unit_test(events_beyond_the_limit_are_counted),
        cmocka_unit_test(no_trace_takes_no_events),
        cmocka_unit_test(processes_share_a_file_and_a_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
