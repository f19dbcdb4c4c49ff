/* One file of the timelines of ranks that are threads. */
#include "train/ranks/rank_trace.h"

#include <string.h>

#include "base/file/file.h"
#include "base/memory/arena.h"
#include "support/staged_messages.h"
#include "support/thread_ranks.h"

enum { WORLD = 2, OFFSET_NS = 1000 };

static struct ph__comm_topic topics[] = {{.what = "ids"}, {.what = "vectors"}};
/* In the order in which they were waited for: the second began first, and the third behind them both. */
static struct ph__comm_flight flights[] = {
    {.started_ns = 3000, .done_ns = 9000, .wait_ns = 8000, .waited_ns = 1000, .sent_bytes = 70, .topic = 0},
    {.started_ns = 2000, .done_ns = 5000, .wait_ns = 9500, .received_bytes = 80, .topic = 1},
    {.started_ns = 9000, .done_ns = 9900, .wait_ns = 9600, .waited_ns = 300, .num_messages = 4, .topic = 1},
};

static struct ph__comm_poll polls[] = {{6000, 700}};

/* The second rank's clock is a microsecond ahead. */
static ph_status write_hand_made(struct ph_comm *comm, void *context)
{
    const uint64_t rank = ph_comm_rank(comm);
    struct ph__comm_profile profile = {.comm = comm,
        .world_size = WORLD,
        .topics = topics,
        .num_topics = sizeof topics / sizeof *topics,
        .flights = flights,
        .num_flights = sizeof flights / sizeof *flights,
        .polls = polls,
        .num_polls = sizeof polls / sizeof *polls,
        .num_dropped = 10 + rank};
    const struct ph__rank_figures figures = {.profile = &profile, .begun_ns = 1000, .latest_ns = 9500};
    struct ph__trace *trace;
    PH_TRY(ph__trace_create(2, &trace));
    ph__trace_add(trace, "linear", "forward", 1, 2500, 500);
    ph__rank_trace_step(trace, &figures, 7);
    ph__trace_add(trace, "dropped", "forward", 0, 1, 1);
    const struct ph__rank_trace_sources sources = {.trace = trace,
        .profile = &profile,
        .num_threads = 2,
        .first = {0, (double)(rank * OFFSET_NS)},
        .last = {1000, (double)(rank * OFFSET_NS)}};
    const ph_status status = ph__rank_trace_write(&sources, comm, context);
    ph__trace_destroy(trace);
    return status;
}

static int write_trace(void **state)
{
    static char path[512];
    struct ph__arena arena = {0};
    struct ph__json *json = NULL;
    char *text;
    size_t size;
    snprintf(path, sizeof path, "%s/trace.json", test_folder());
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .options = {.ranks_per_host = 1}},
        write_hand_made, path, NULL);
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    assert_ok(ph__json_parse(text, size, path, PH_ERROR_DATA, &json));
    ph__arena_fini(&arena);
    *state = json;
    return 0;
}

static int drop_trace(void **state)
{
    ph__json_destroy(*state);
    return 0;
}

static double number(const struct ph__json *object, const char *key)
{
    return ph__json_as_number(ph__json_get(object, key), -1);
}

/* The n-th event of a rank with this phase and name. */
static const struct ph__json *event_of(
    const struct ph__json *trace, size_t rank, const char *phase, const char *name, size_t n)
{
    const struct ph__json *events = ph__json_get(trace, "traceEvents");
    for (size_t i = 0; i < ph__json_size(events); i++) {
        const struct ph__json *event = ph__json_at(events, i);
        if (number(event, "pid") == (double)rank &&
            strcmp(ph__json_as_text(ph__json_get(event, "ph"), ""), phase) == 0 &&
            strcmp(ph__json_as_text(ph__json_get(event, "name"), ""), name) == 0 && n-- == 0)
            return event;
    }
    fail_msg("rank %zu has too few events '%s'", rank, name);
    return NULL;
}

static void assert_span(const struct ph__json *event, size_t rank, double start_ns, double duration_ns)
{
    assert_near(number(event, "ts"), 1e-3 * (start_ns - (double)(rank * OFFSET_NS)), 1e-9, 0);
    assert_near(number(event, "dur"), 1e-3 * duration_ns, 1e-9, 0);
}

static void ranks_are_processes_with_one_clock(void **state)
{
    for (size_t rank = 0; rank < WORLD; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank %zu of 2, host %zu", rank, rank);
        const struct ph__json *named = ph__json_get(event_of(*state, rank, "M", "process_name", 0), "args");
        const struct ph__json *step = event_of(*state, rank, "X", "step", 0);
        assert_string_equal(ph__json_as_text(ph__json_get(named, "name"), ""), name);
        assert_span(event_of(*state, rank, "X", "linear", 0), rank, 2500, 500);
        assert_span(step, rank, 1000, 9500);
        assert_span(event_of(*state, rank, "X", "poll", 0), rank, 6000, 700);
        assert_near(number(ph__json_get(step, "args"), "step"), 7, 0, 0);
        assert_near(number(step, "tid"), PH_RANK_TRACK_STEPS, 0, 0);
    }
}

static void what_overlaps_in_flight_has_tracks_of_its_own(void **state)
{
    for (size_t rank = 0; rank < WORLD; rank++) {
        const struct ph__json *first = event_of(*state, rank, "X", "vectors", 0);
        const struct ph__json *second = event_of(*state, rank, "X", "ids", 0);
        const struct ph__json *third = event_of(*state, rank, "X", "vectors", 1);
        assert_span(first, rank, 2000, 3000);
        assert_span(second, rank, 3000, 6000);
        assert_span(third, rank, 9000, 900);
        assert_near(number(first, "tid"), PH_RANK_TRACK_FLIGHTS, 0, 0);
        assert_near(number(second, "tid"), PH_RANK_TRACK_FLIGHTS + 1, 0, 0);
        assert_near(number(third, "tid"), PH_RANK_TRACK_FLIGHTS, 0, 0);
        assert_near(number(ph__json_get(first, "args"), "received_bytes"), 80, 0, 0);
        assert_near(number(ph__json_get(second, "args"), "sent_bytes"), 70, 0, 0);
        assert_near(number(ph__json_get(third, "args"), "messages"), 4, 0, 0);
    }
}

/* The first one's was none: that flight was done before. */
static void an_arrow_leads_to_each_wait(void **state)
{
    for (size_t rank = 0; rank < WORLD; rank++) {
        const struct ph__json *wait = event_of(*state, rank, "X", "ids", 1);
        const struct ph__json *from = event_of(*state, rank, "s", "flow", 0);
        const struct ph__json *to = event_of(*state, rank, "f", "flow", 0);
        assert_span(wait, rank, 8000, 1000);
        assert_near(number(wait, "tid"), PH_RANK_TRACK_WAITS, 0, 0);
        assert_near(number(from, "ts"), number(event_of(*state, rank, "X", "ids", 0), "ts"), 1e-9, 0);
        assert_near(number(to, "ts"), number(wait, "ts"), 1e-9, 0);
        assert_near(number(from, "id"), number(to, "id"), 0, 0);
        assert_span(event_of(*state, rank, "X", "vectors", 2), rank, 9600, 300);
    }
    assert_true(number(event_of(*state, 0, "s", "flow", 0), "id") !=
                number(event_of(*state, 1, "s", "flow", 0), "id"));
}

static void events_without_room_are_counted_over_ranks(void **state)
{
    const struct ph__json *other = ph__json_get(*state, "otherData");
    assert_near(number(other, "dropped_events"), (1 + 10) + (1 + 11), 0, 0);
}

static void a_file_that_cannot_be_written_is_the_first_ones_error(void **state)
{
    (void)state;
    struct thread_rank_end ends[WORLD];
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD, .options = {.ranks_per_host = 1}},
        write_hand_made, (void *)(uintptr_t) "/no/such/folder/trace.json", ends);
    assert_int_equal(ends[0].status, PH_ERROR_DISK);
    assert_non_null(strstr(ends[0].text, "/no/such/folder/trace.json"));
}

static void an_answer_was_read_half_way(void **state)
{
    (void)state;
    assert_near(ph__rank_clock_offset(1000, 1200, 5100), 4000, 0, 0);
    assert_near(ph__rank_clock_offset(5000, 5400, 1200), -4000, 0, 0);
    assert_near(ph__rank_clock_offset(1000, 1200, 1000), 0, 0, 0); /* within what the answer tells */
    assert_near(ph__rank_clock_offset(1000, 1200, 1200), 0, 0, 0);
    assert_near(ph__rank_clock_offset(1000, 1200, 1201), 101, 0, 0);
}

static void a_clock_goes_evenly_between_two_readings(void **state)
{
    (void)state;
    const struct ph__rank_clock first = {1000, 500}, last = {3000, 600};
    const struct ph__trace_clock clock = ph__rank_clock_between(&first, &last);
    assert_int_equal(clock.origin_ns, 1000);
    assert_near(clock.offset_ns, 500, 0, 0);
    assert_near(clock.drift, 0.05, 1e-15, 0);
    assert_near(ph__rank_clock_between(&first, &first).drift, 0, 0, 0);
}

static ph_status read_clock(struct ph_comm *comm, void *context)
{
    struct ph__rank_clock clock;
    (void)context;
    PH_TRY(staged_messages_demand(comm));
    PH_TRY(ph__rank_clock_read(comm, &clock));
    RANK_CHECK(clock.offset_ns == 0 && clock.at_ns > 0);
    return PH_OK;
}

static void ranks_of_one_machine_have_one_clock(void **state)
{
    (void)state;
    for (size_t world_size = 1; world_size <= 4; world_size++)
        thread_ranks_run(&(struct thread_ranks){.world_size = world_size}, read_clock, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_processes_with_one_clock),
        cmocka_unit_test(what_overlaps_in_flight_has_tracks_of_its_own),
        cmocka_unit_test(an_arrow_leads_to_each_wait),
        cmocka_unit_test(events_without_room_are_counted_over_ranks),
        cmocka_unit_test(a_file_that_cannot_be_written_is_the_first_ones_error),
        cmocka_unit_test(an_answer_was_read_half_way),
        cmocka_unit_test(a_clock_goes_evenly_between_two_readings),
        cmocka_unit_test(ranks_of_one_machine_have_one_clock),
    };
    return cmocka_run_group_tests(tests, write_trace, drop_trace);
}
