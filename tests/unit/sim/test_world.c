#include "sim/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "support/test_support.h"

/* Two hosts of two ranks: 8 Gb/s are a byte a nanosecond. */
static const char two_hosts[] =
    "version: 1\nkind: star\nhosts: 2\nranks_per_host: 2\n"
    "host: {gbits_per_s: 8, latency_us: 5}\n"
    "machine: {host_bytes_per_s: 4e9}\n"
    "messages: {send_us: 1, receive_us: 2, host_latency_us: 3, eager_bytes: 65536}\n";

static const char eight_hosts[] =
    "version: 1\nkind: racks\nhosts: 8\nhost: {gbits_per_s: 10, latency_us: 5}\n"
    "rack: {hosts: 4, uplinks: 2, gbits_per_s: 10, latency_us: 2}\n";

static const char without_costs[] =
    "version: 1\nkind: star\nhosts: 8\nhost: {gbits_per_s: 8, latency_us: 0}\n"
    "messages: {send_us: 0, receive_us: 0}\n";

static struct ph__fabric read_fabric(const char *text)
{
    struct ph__fabric fabric;
    assert_ok(ph__fabric_read(test_write_file("topology.yaml", text), &fabric));
    return fabric;
}

static ph_status run_on(const char *text, size_t world_size, ph__world_rank *run, void *context,
    struct ph__world_figures *figures)
{
    struct ph__fabric fabric = read_fabric(text);
    const struct ph__world_options options = {.fabric = &fabric, .world_size = world_size};
    const ph_status status = ph__world_run(&options, run, context, figures);
    ph__fabric_fini(&fabric);
    return status;
}

/* Lets the rank compute until a second has passed, by which all have met. */
static void reach_one_second(void)
{
    ph__world_compute(1e9 - (double)ph__clock_ns());
}

static double now_us(void)
{
    return (double)ph__clock_ns() * 1e-3 - 1e6;
}

/* ---- one message ---- */

struct passing {
    size_t from, to, bytes;
    bool is_late; /* the receiver asks for it later */
    double sent_us, received_us;
};

static ph_status pass(struct ph_comm *comm, void *context)
{
    struct passing *passing = context;
    const struct ph__comm_call call = {1, "a message"};
    const size_t rank = ph_comm_rank(comm);
    const bool is_sender = rank == passing->from, is_receiver = rank == passing->to;
    char *data = malloc(passing->bytes + 1);
    struct ph__message message = {is_sender ? passing->to : passing->from, data, passing->bytes};
    const struct ph__exchange exchange = {&message, &message, is_sender, is_receiver};
    uint64_t ticket = 0;
    memset(data, (int)rank, passing->bytes);
    reach_one_second();
    if (is_receiver && passing->is_late)
        ph__world_compute(1e6);
    ph_status status = PH_OK;
    if (is_sender || is_receiver)
        status = ph__comm_exchange_start(comm, &call, &exchange, &ticket);
    if (status == PH_OK && (is_sender || is_receiver))
        status = ph__comm_wait(comm, ticket);
    if (is_sender)
        passing->sent_us = now_us();
    if (is_receiver)
        passing->received_us = now_us();
    if (status == PH_OK && is_receiver && passing->bytes > 0 &&
        data[passing->bytes - 1] != (char)passing->from)
        status = ph_fail(PH_ERROR_BUG, "the message has other bytes");
    free(data);
    return status;
}

static struct passing passed(size_t from, size_t to, size_t bytes, bool is_late)
{
    struct passing passing = {from, to, bytes, is_late, 0, 0};
    struct ph__world_figures figures;
    assert_ok(run_on(two_hosts, 4, pass, &passing, &figures));
    return passing;
}

/* Two links of 5 us lie between hosts. */
static void an_eager_message_takes_overhead_bytes_and_latency(void **state)
{
    (void)state;
    const struct passing passing = passed(0, 2, 1000, false);
    assert_near(passing.sent_us, 1, 1e-3, 0);
    assert_near(passing.received_us, 1 + 1 + 10 + 2, 1e-3, 0);
    assert_near(passed(0, 2, 0, false).received_us, 1 + 10 + 2, 1e-3, 0);
}

static void a_message_inside_a_host_takes_the_hosts_rate_and_latency(void **state)
{
    (void)state;
    assert_near(passed(0, 1, 4000, false).received_us, 1 + 1 + 3 + 2, 1e-3, 0);
}

static void a_long_message_waits_until_it_is_asked_for(void **state)
{
    (void)state;
    const struct passing early = passed(0, 2, 100000, false), late = passed(0, 2, 100000, true);
    assert_near(early.sent_us, 1 + 20 + 100, 1e-3, 0);
    assert_near(early.received_us, 1 + 20 + 100 + 10 + 2, 1e-3, 0);
    assert_near(late.sent_us, 1000 + 10 + 100, 1e-3, 0);
    assert_near(late.received_us, 1000 + 10 + 100 + 10 + 2, 1e-3, 0);
    assert_near(passed(0, 2, 1000, true).received_us, 1000 + 2, 1e-3, 0); /* came long before */
}

/* ---- collectives ---- */

enum { RANKS = 8, NUMBERS = 100000 };

struct meeting {
    double times_us[RANKS];
};

static ph_status sum_up(struct ph_comm *comm, ph_real *numbers)
{
    const struct ph__comm_call call = {1, "numbers"};
    uint64_t ticket;
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = (ph_real)(ph_comm_rank(comm) + i);
    PH_TRY(ph__comm_all_reduce_start(
        comm, &call, ph__comm_world(comm), PH_WIRE_FP32, NUMBERS, 1, numbers, NULL, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i] != (ph_real)(RANKS * (RANKS - 1) / 2 + RANKS * i))
            return ph_fail(PH_ERROR_BUG, "sum %zu is wrong", i);
    return PH_OK;
}

static ph_status meet(struct ph_comm *comm, void *context)
{
    struct meeting *meeting = context;
    ph_real *numbers = malloc(NUMBERS * sizeof *numbers);
    reach_one_second();
    ph__world_compute(1e3 * (double)ph_comm_rank(comm));
    ph_status status = sum_up(comm, numbers);
    if (status == PH_OK)
        status = ph__comm_barrier(comm);
    meeting->times_us[ph_comm_rank(comm)] = now_us();
    free(numbers);
    return status;
}

static void collectives_run_over_it_with_the_same_times_each_time(void **state)
{
    (void)state;
    struct meeting one, other;
    struct ph__world_figures figures, again;
    assert_ok(run_on(eight_hosts, RANKS, meet, &one, &figures));
    assert_ok(run_on(eight_hosts, RANKS, meet, &other, &again));
    assert_memory_equal(&one, &other, sizeof one);
    assert_memory_equal(&figures, &again, sizeof figures);
    for (size_t i = 0; i < RANKS; i++) /* 2 x 7/8 x 400 kB at 1.25 GB/s, latencies; rank 7 began 7 us late */
        assert_in_range((uint64_t)one.times_us[i], 560, 1500);
}

/* Messages end and begin at the same times then, at which the network goes back. */
static void messages_without_costs_end_once(void **state)
{
    (void)state;
    struct meeting meeting;
    struct ph__world_figures figures;
    assert_ok(run_on(without_costs, RANKS, meet, &meeting, &figures));
    for (size_t i = 0; i < RANKS; i++) /* 2 x 7/8 x 400 kB at a byte a nanosecond */
        assert_in_range((uint64_t)meeting.times_us[i], 700, 1500);
}

/* ---- failures ---- */

/* ---- slow ranks ---- */

static ph_status compute_a_while(struct ph_comm *comm, void *context)
{
    double *ends_us = context;
    reach_one_second();
    const double began_us = now_us();
    ph__world_compute(1e6);
    ends_us[ph_comm_rank(comm)] = now_us() - began_us;
    return ph__comm_barrier(comm);
}

static void a_slow_rank_computes_longer(void **state)
{
    (void)state;
    struct ph__world_figures figures, slowed;
    double ends_us[4];
    char text[400];
    snprintf(text, sizeof text, "%sslow: [{rank: 2, factor: 3}]\n", without_costs);
    assert_ok(run_on(without_costs, 4, compute_a_while, ends_us, &figures));
    assert_ok(run_on(text, 4, compute_a_while, ends_us, &slowed));
    for (size_t rank = 0; rank < 4; rank++)
        assert_near(ends_us[rank], rank == 2 ? 3000 : 1000, 1e-3, 0);
    assert_true(slowed.seconds > figures.seconds + .0019);
}

/* ---- failures ---- */

static ph_status fail_or_wait(struct ph_comm *comm, void *context)
{
    struct passing passing = {1, 0, 8, false, 0, 0};
    const size_t *failing = context;
    if (ph_comm_rank(comm) == *failing)
        return ph_fail(PH_ERROR_DATA, "rank %zu has bad data", ph_comm_rank(comm));
    return ph_comm_rank(comm) == 0 ? pass(comm, &passing) : PH_OK;
}

static void a_failed_rank_fails_the_world(void **state)
{
    (void)state;
    struct ph__world_figures figures;
    size_t failing = 3;
    assert_fails(
        run_on(two_hosts, 4, fail_or_wait, &failing, &figures), PH_ERROR_DATA, "rank 3 has bad data");
}

static void waiting_for_nothing_is_found(void **state)
{
    (void)state;
    struct ph__world_figures figures;
    size_t failing = 9;
    assert_fails(run_on(two_hosts, 4, fail_or_wait, &failing, &figures), PH_ERROR_BUG, "that none sends");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eager_message_takes_overhead_bytes_and_latency),
        cmocka_unit_test(a_message_inside_a_host_takes_the_hosts_rate_and_latency),
        cmocka_unit_test(a_long_message_waits_until_it_is_asked_for),
        cmocka_unit_test(collectives_run_over_it_with_the_same_times_each_time),
        cmocka_unit_test(messages_without_costs_end_once),
        cmocka_unit_test(a_slow_rank_computes_longer),
        cmocka_unit_test(a_failed_rank_fails_the_world),
        cmocka_unit_test(waiting_for_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
