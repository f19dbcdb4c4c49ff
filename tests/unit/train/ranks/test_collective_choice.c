#include "train/ranks/collective_choice.h"

#include <string.h>

#include "plan/fabric/fabric.h"
#include "support/test_support.h"

enum { MOST_RANKS = 16 };

#define RACKS(hosts, ranks_per_host)                                               \
    "version: 1\nkind: racks\nhosts: " #hosts "\nranks_per_host: " #ranks_per_host \
    "\nhost: {gbits_per_s: .8, latency_us: 5}\n"                                   \
    "rack: {hosts: 4, uplinks: 1, gbits_per_s: .2, latency_us: 5}\n"

struct settled {
    struct ph__collective_settings settings;
    uint32_t groups[MOST_RANKS];
};

/* topology: the file's text; NULL: none. */
static ph_status settle(enum ph_collective collective, const char *topology, size_t world_size,
    size_t ranks_per_host, struct settled *settled)
{
    const struct ph__topology ranks = {world_size, ranks_per_host};
    const struct ph_parallel_settings parallel = {.collective = collective,
        .topology = topology != NULL ? test_write_file("topology.yaml", topology) : NULL};
    const struct ph__train_job job = {.parallel = &parallel};
    *settled = (struct settled){0};
    return ph__collectives_settle(&job, &ranks, &settled->settings, settled->groups);
}

/* Checks that ranks are in one group where, and only where, `wanted` has the same letter for them. */
static void assert_groups(const struct settled *settled, const char *wanted)
{
    assert_true(settled->settings.has_groups);
    for (size_t a = 0; wanted[a] != 0; a++) {
        assert_in_range(settled->groups[a], 0, strlen(wanted) - 1);
        for (size_t b = 0; wanted[b] != 0; b++)
            assert_int_equal(settled->groups[a] == settled->groups[b], wanted[a] == wanted[b]);
    }
}

static void exchange_and_ring_need_no_topology(void **state)
{
    (void)state;
    struct settled settled;
    assert_ok(settle(PH_COLLECTIVE_EXCHANGE, NULL, 5, 0, &settled));
    assert_string_equal(settled.settings.text, "exchange");
    assert_ok(settle(PH_COLLECTIVE_RING, NULL, 5, 0, &settled));
    assert_int_equal(settled.settings.num_choices, 1);
    assert_int_equal(settled.settings.choices[0].kind, PH_COLLECTIVE_RING);
    assert_false(settled.settings.has_groups);
}

static void a_hierarchy_is_that_of_racks_or_hosts(void **state)
{
    (void)state;
    struct settled settled;
    assert_ok(settle(PH_COLLECTIVE_HIERARCHICAL, NULL, 6, 2, &settled));
    assert_groups(&settled, "aabbcc");
    assert_ok(settle(PH_COLLECTIVE_HIERARCHICAL, RACKS(8, 1), 8, 8, &settled));
    assert_groups(&settled, "aaaabbbb");
    /* One rack: each of the hosts is a group, as nothing is between racks. */
    assert_ok(settle(PH_COLLECTIVE_HIERARCHICAL, RACKS(8, 1), 4, 1, &settled));
    assert_groups(&settled, "abcd");
    /* Racks of different sizes, but hosts of two ranks. */
    assert_ok(settle(PH_COLLECTIVE_HIERARCHICAL, RACKS(6, 2), 12, 2, &settled));
    assert_groups(&settled, "aabbccddeeff");
    assert_ok(settle(PH_COLLECTIVE_HIERARCHICAL,
        "version: 1\nkind: measured\nhosts: 4\n"
        "nodes: [{name: a, group: 3}, {name: b, group: 1}, {name: c, group: 3}, {name: d, group: 1}]\n"
        "pairs: [{from: 0, to: 1, gbits_per_s: 1, latency_us: 9}, {from: 0, to: 2, gbits_per_s: 1, "
        "latency_us: 9},"
        "{from: 0, to: 3, gbits_per_s: 1, latency_us: 9}, {from: 1, to: 0, gbits_per_s: 1, latency_us: 9},"
        "{from: 1, to: 2, gbits_per_s: 1, latency_us: 9}, {from: 1, to: 3, gbits_per_s: 1, latency_us: 9},"
        "{from: 2, to: 0, gbits_per_s: 1, latency_us: 9}, {from: 2, to: 1, gbits_per_s: 1, latency_us: 9},"
        "{from: 2, to: 3, gbits_per_s: 1, latency_us: 9}, {from: 3, to: 0, gbits_per_s: 1, latency_us: 9},"
        "{from: 3, to: 1, gbits_per_s: 1, latency_us: 9}, {from: 3, to: 2, gbits_per_s: 1, latency_us: 9}]\n",
        4, 1, &settled));
    assert_groups(&settled, "abab");
}

static void hierarchical_refuses_unequal_groups(void **state)
{
    (void)state;
    struct settled settled;
    assert_fails(settle(PH_COLLECTIVE_HIERARCHICAL, NULL, 5, 0, &settled), PH_ERROR_CONFIG,
        "parallel.collective: 'hierarchical' requires as many ranks on each host: start as many, or set "
        "ring");
    assert_fails(settle(PH_COLLECTIVE_HIERARCHICAL, RACKS(7, 1), 7, 1, &settled), PH_ERROR_CONFIG,
        "requires groups of equal size, but the job has 4 hosts of the topology's group 0 and 3 of group 1: "
        "take "
        "as many of each, or set ring or auto");
    assert_fails(settle(PH_COLLECTIVE_HIERARCHICAL, RACKS(4, 1), 8, 1, &settled), PH_ERROR_CONFIG,
        "the cluster has room for 4 ranks, not 8");
    assert_fails(settle(PH_COLLECTIVE_AUTO, RACKS(4, 1), 8, 1, &settled), PH_ERROR_CONFIG,
        "the cluster has room for 4 ranks, not 8");
}

static void auto_goes_by_the_topology(void **state)
{
    (void)state;
    struct settled settled;
    assert_ok(settle(PH_COLLECTIVE_AUTO, NULL, 8, 1, &settled));
    assert_string_equal(settled.settings.text, "auto: exchange");
    assert_ok(settle(PH_COLLECTIVE_AUTO, RACKS(8, 1), 8, 1, &settled));
    const size_t last = settled.settings.num_choices - 1;
    assert_int_equal(settled.settings.choices[last].kind, PH_COLLECTIVE_HIERARCHICAL);
    assert_groups(&settled, "aaaabbbb");
    assert_ok(settle(PH_COLLECTIVE_AUTO, "version: 1\nkind: star\nhosts: 8\n", 8, 1, &settled));
    assert_string_equal(settled.settings.text, "auto: exchange");
    /* Groups of unequal size: never hierarchical. */
    assert_ok(settle(PH_COLLECTIVE_AUTO, RACKS(7, 1), 7, 1, &settled));
    assert_false(settled.settings.has_groups);
    for (size_t i = 0; i < settled.settings.num_choices; i++)
        assert_int_not_equal(settled.settings.choices[i].kind, PH_COLLECTIVE_HIERARCHICAL);
    assert_non_null(strstr(settled.settings.text, "auto: exchange, from "));
    assert_non_null(strstr(settled.settings.text, " bytes ring"));
}

static void only_auto_is_tried_again(void **state)
{
    (void)state;
    const struct ph__topology ranks = {4, 1};
    struct ph_parallel_settings parallel = {.collective = PH_COLLECTIVE_RING, .collective_retry = true};
    const struct ph__train_job job = {.parallel = &parallel};
    struct settled settled;
    assert_fails(ph__collectives_settle(&job, &ranks, &settled.settings, settled.groups), PH_ERROR_CONFIG,
        "parallel.collective_retry requires parallel.collective: auto, not 'ring'");
    parallel.collective = PH_COLLECTIVE_AUTO;
    assert_ok(ph__collectives_settle(&job, &ranks, &settled.settings, settled.groups));
    assert_true(settled.settings.may_change);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_and_ring_need_no_topology),
        cmocka_unit_test(a_hierarchy_is_that_of_racks_or_hosts),
        cmocka_unit_test(hierarchical_refuses_unequal_groups),
        cmocka_unit_test(auto_goes_by_the_topology),
        cmocka_unit_test(only_auto_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
