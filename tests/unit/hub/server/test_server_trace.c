/* A hub's trace: valid JSON that shows each chunk's way, in order. */
#include <math.h>
#include <string.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "support/hub_thread.h"

#define NUM_ITERATIONS 4
#define NUM_CHUNKS 5

static const struct ph_hub_key a_key = {.num_elements = 45000, .dtype = PH_F32};

static struct ph__json *run_and_read(struct ph_hub_service *service, enum ph_hub_transport transport)
{
    struct hub_thread hub;
    struct hub_workers workers;
    struct ph__arena arena = {0};
    struct ph__json *json;
    char *text;
    size_t size;
    const char *path = test_path("trace.json");
    hub_thread_begin(&hub, (struct ph_hub_server_options){.trace_path = path});
    service->chunk_bytes = 40000;
    assert_ok(ph_hub_create_service(&hub.options, service));
    hub_workers_begin(&workers, &hub, service, &a_key, 1, NUM_ITERATIONS, transport);
    hub_workers_wait(&workers);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_ok(ph__json_parse(text, size, path, PH_ERROR_DATA, &json));
    ph__arena_fini(&arena);
    return json;
}

struct way { /* of one chunk in one iteration: the events of a name */
    size_t count;
    double begin_us, end_us; /* of the first, of the last */
    int64_t thread;
};

static struct way find_way(const struct ph__json *trace, const char *name, int64_t chunk, int64_t iteration)
{
    const struct ph__json *events = ph__json_get(trace, "traceEvents");
    struct way way = {.begin_us = INFINITY, .end_us = -INFINITY};
    for (size_t i = 0; i < ph__json_size(events); i++) {
        const struct ph__json *event = ph__json_at(events, i), *numbers = ph__json_get(event, "args");
        if (strcmp(ph__json_as_text(ph__json_get(event, "name"), ""), name) != 0 ||
            ph__json_as_integer(ph__json_get(numbers, "chunk"), -1) != chunk ||
            ph__json_as_integer(ph__json_get(numbers, "iteration"), -1) != iteration)
            continue;
        const double begin_us = ph__json_as_number(ph__json_get(event, "ts"), NAN);
        way.count++;
        way.begin_us = fmin(way.begin_us, begin_us);
        way.end_us = fmax(way.end_us, begin_us + ph__json_as_number(ph__json_get(event, "dur"), NAN));
        way.thread = ph__json_as_integer(ph__json_get(event, "tid"), -1);
        assert_string_equal(ph__json_as_text(ph__json_get(event, "cat"), ""), "traced");
    }
    return way;
}

static void check_ways(const struct ph__json *trace, size_t num_workers)
{
    for (int64_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
        for (int64_t iteration = 1; iteration <= NUM_ITERATIONS; iteration++) {
            const struct way pushes = find_way(trace, "pushes", chunk, iteration),
                             step = find_way(trace, "sum and step", chunk, iteration),
                             reply = find_way(trace, "reply", chunk, iteration);
            assert_int_equal(pushes.count, 1);
            assert_int_equal(step.count, 1);
            assert_int_equal(reply.count, num_workers);
            assert_true(pushes.begin_us <= pushes.end_us && pushes.end_us <= step.begin_us);
            assert_true(step.begin_us <= step.end_us && step.end_us <= reply.end_us);
            assert_true(pushes.thread == step.thread && step.thread == reply.thread && step.thread < 2);
        }
    }
}

static void a_chunks_way_is_in_the_trace(void **state)
{
    (void)state;
    struct ph_hub_service service = hub_thread_service("traced", 2);
    struct ph__json *trace = run_and_read(&service, PH_HUB_SHARED_MEMORY);
    check_ways(trace, 2);
    ph__json_destroy(trace);
    trace = run_and_read(&service, PH_HUB_TCP);
    check_ways(trace, 2);
    ph__json_destroy(trace);
}

static void clipping_has_two_passes(void **state)
{
    (void)state;
    struct ph_hub_service service = hub_thread_service("traced", 1);
    service.clip_norm = 1;
    struct ph__json *trace = run_and_read(&service, PH_HUB_SHARED_MEMORY);
    for (int64_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
        const struct way sum = find_way(trace, "sum", chunk, 2), step = find_way(trace, "step", chunk, 2);
        assert_int_equal(sum.count, 1);
        assert_int_equal(step.count, 1);
        assert_true(sum.end_us <= step.begin_us);
    }
    ph__json_destroy(trace);
}

static void a_trace_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct ph_hub_server *server;
    const struct ph_hub_server_options options = {
        .size = sizeof options, .num_threads = 1, .trace_path = test_path("absent/trace.json")};
    const volatile int stop_signal = 1;
    assert_ok(ph_hub_server_create(&options, &server));
    assert_fails(ph_hub_server_run(server, &stop_signal), PH_ERROR_DISK, "absent/trace.json");
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunks_way_is_in_the_trace),
        cmocka_unit_test(clipping_has_two_passes),
        cmocka_unit_test(a_trace_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
