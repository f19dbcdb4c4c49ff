/* Times of collectives against those that the cost model gives by hand, in milliseconds. */
#include "plan/collective_cost.h"

#include "support/test_support.h"

#define MIB 1048576.
/* Hosts of 800 Mb/s in two racks of four, with uplinks of 200 Mb/s; messages cost nothing. */
#define RACKS                                                        \
    "version: 1\nkind: racks\nhosts: 8\n"                            \
    "host: {gbits_per_s: .8, latency_us: 0}\n"                       \
    "rack: {hosts: 4, uplinks: 1, gbits_per_s: .2, latency_us: 0}\n" \
    "messages: {send_us: 0, receive_us: 0, host_latency_us: 0}\n"

static const uint32_t racks[] = {0, 0, 0, 0, 1, 1, 1, 1}, interleaved[] = {0, 1, 0, 1, 0, 1, 0, 1};

static struct ph__fabric read_text(const char *text)
{
    struct ph__fabric fabric;
    assert_ok(ph__fabric_read(test_write_file("topology.yaml", text), &fabric));
    return fabric;
}

static double ms_of(const struct ph__collective_job *job, enum ph__plan_collective kind, double bytes)
{
    double ns;
    assert_ok(ph__collective_times(job, kind, 1, &bytes, &ns));
    return ns * 1e-6;
}

static void sums_of_4_mib_take_what_shared_uplinks_give(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text(RACKS);
    struct ph__collective_job job = {&fabric, 8, 1, racks};
    assert_near(ms_of(&job, PH_PLAN_EXCHANGE, 4 * MIB), 671, .5, 0);
    assert_near(ms_of(&job, PH_PLAN_HIERARCHICAL, 4 * MIB), 231, .5, 0);
    assert_near(ms_of(&job, PH_PLAN_RING, 4 * MIB), 294, .5, 0);
    /* Groups of two hosts in each rack: 4 hosts send S / 4 to 2 over an uplink, then S / 8 within the rack.
     */
    job.groups = interleaved;
    assert_near(
        ms_of(&job, PH_PLAN_HIERARCHICAL, 4 * MIB), 2 * (8 * MIB / 25e6 + .5 * MIB / 100e6) * 1e3, 1e-9, 0);
    ph__fabric_fini(&fabric);
}

/* All of a message's latencies, and those of a host's messages, one behind the other. */
static void small_sums_take_latencies_and_messages(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: star\nhosts: 4\nranks_per_host: 2\n"
                                         "host: {gbits_per_s: 8, latency_us: 10}\n"
                                         "messages: {send_us: 2, receive_us: 1, host_latency_us: 5}\n");
    static const uint32_t hosts[] = {0, 1, 2, 3};
    const struct ph__collective_job job = {&fabric, 4, 2, hosts};
    assert_near(ms_of(&job, PH_PLAN_EXCHANGE, 0), 2 * (20 + 7 * 3) * 1e-3, 1e-12, 0);
    assert_near(ms_of(&job, PH_PLAN_HIERARCHICAL, 0), 2 * (5 + 1 * 3 + 20 + 3 * 3) * 1e-3, 1e-12, 0);
    assert_near(ms_of(&job, PH_PLAN_RING, 0), 14 * (20 + 3) * 1e-3, 1e-12, 0);
    ph__fabric_fini(&fabric);
}

static void ranges_are_those_of_the_least_times(const char *text, const struct ph__collective_job *given)
{
    struct ph__fabric fabric = read_text(text);
    struct ph__collective_job job = *given;
    struct ph__collective_range ranges[PH_PLAN_MOST_RANGES];
    size_t num_ranges;
    job.fabric = &fabric;
    assert_ok(ph__collective_ranges(&job, ranges, &num_ranges));
    assert_int_equal(ranges[0].from_bytes, 0);
    for (size_t i = 0; i < num_ranges; i++) {
        const double bytes = i > 0 ? (double)ranges[i].from_bytes : 1024;
        for (enum ph__plan_collective kind = 0; kind < PH_PLAN_COLLECTIVE_COUNT; kind++)
            if (kind != PH_PLAN_HIERARCHICAL || job.groups != NULL)
                assert_true(ms_of(&job, ranges[i].kind, bytes) <= ms_of(&job, kind, bytes));
        if (i > 0) {
            assert_true(ranges[i].from_bytes > ranges[i - 1].from_bytes);
            assert_true(ranges[i].kind != ranges[i - 1].kind);
        }
    }
    ph__fabric_fini(&fabric);
}

static void a_range_has_the_collective_of_the_least_time(void **state)
{
    (void)state;
    ranges_are_those_of_the_least_times(RACKS, &(struct ph__collective_job){NULL, 8, 1, racks});
    ranges_are_those_of_the_least_times(RACKS, &(struct ph__collective_job){NULL, 8, 1, NULL});
    ranges_are_those_of_the_least_times("version: 1\nkind: two_layer\nhosts: 64\nranks_per_host: 4\n",
        &(struct ph__collective_job){NULL, 64, 4, NULL});
}

static enum ph__plan_collective choose(
    const char *text, const struct ph__collective_job *given, uint64_t bytes)
{
    struct ph__fabric fabric = read_text(text);
    struct ph__collective_job job = *given;
    struct ph__collective_range ranges[PH_PLAN_MOST_RANGES];
    size_t num_ranges, i = 0;
    job.fabric = &fabric;
    assert_ok(ph__collective_ranges(&job, ranges, &num_ranges));
    while (i + 1 < num_ranges && ranges[i + 1].from_bytes <= bytes)
        i++;
    ph__fabric_fini(&fabric);
    return ranges[i].kind;
}

/* On a star all links are as full by each collective: exchange has the fewest rounds. */
static void narrow_uplinks_ask_for_a_hierarchy_and_a_star_for_an_exchange(void **state)
{
    (void)state;
    const struct ph__collective_job job = {NULL, 8, 1, racks}, flat = {NULL, 8, 1, NULL};
    assert_int_equal(choose(RACKS, &job, 64 << 20), PH_PLAN_HIERARCHICAL);
    assert_int_equal(choose("version: 1\nkind: star\nhosts: 8\n", &flat, 64 << 20), PH_PLAN_EXCHANGE);
    assert_int_equal(choose("version: 1\nkind: star\nhosts: 8\n", &flat, 1), PH_PLAN_EXCHANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_4_mib_take_what_shared_uplinks_give),
        cmocka_unit_test(small_sums_take_latencies_and_messages),
        cmocka_unit_test(a_range_has_the_collective_of_the_least_time),
        cmocka_unit_test(narrow_uplinks_ask_for_a_hierarchy_and_a_star_for_an_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
