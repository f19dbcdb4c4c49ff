#include "plan/fabric/fabric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/fabric/fabric_routes.h"
#include "plan/plan_cost.h"
#include "support/test_support.h"

static struct ph__fabric read_text(const char *text)
{
    struct ph__fabric fabric;
    assert_ok(ph__fabric_read(test_write_file("topology.yaml", text), &fabric));
    return fabric;
}

static void refuses(const char *text, const char *part)
{
    struct ph__fabric fabric;
    assert_fails(ph__fabric_read(test_write_file("topology.yaml", text), &fabric), PH_ERROR_CONFIG, part);
}

/* Follows a route: each link begins where the last one has ended. Returns the number of links. */
static size_t follow(const struct ph__fabric *fabric, size_t from_rank, size_t to_rank, uint32_t *links)
{
    const size_t count = ph__fabric_route(fabric, from_rank, to_rank, links);
    size_t node = from_rank / fabric->ranks_per_host;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fabric->links[links[i]].from, node);
        node = fabric->links[links[i]].to;
        assert_true(node >= fabric->num_hosts || i + 1 == count);
    }
    assert_int_equal(node, to_rank / fabric->ranks_per_host);
    return count;
}

/* A route as one link: the slowest link's rate, and all latencies. */
struct way {
    uint32_t links[PH_FABRIC_MAX_HOPS];
    size_t num_links;
    double bytes_per_ns, latency_ns;
};

static struct way way_of(const struct ph__fabric *fabric, size_t from, size_t to)
{
    struct way way = {.bytes_per_ns = INFINITY};
    way.num_links = ph__fabric_route_of_hosts(fabric, from, to, way.links);
    for (size_t i = 0; i < way.num_links; i++) {
        way.bytes_per_ns = fmin(way.bytes_per_ns, fabric->links[way.links[i]].bytes_per_ns);
        way.latency_ns += fabric->links[way.links[i]].latency_ns;
    }
    return way;
}

static void a_star_joins_all_hosts_by_two_links(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: star\nhosts: 5\nranks_per_host: 4\n"
                                         "host: {gbits_per_s: 25, latency_us: 3}\n"
                                         "machine: {memory_gb: 64, host_bytes_per_s: 7e9}\n");
    uint32_t links[PH_FABRIC_MAX_HOPS];
    assert_int_equal(fabric.num_links, 10);
    for (size_t from = 0; from < 20; from++)
        for (size_t to = 0; to < 20; to++)
            assert_int_equal(follow(&fabric, from, to, links), from / 4 == to / 4 ? 0 : 2);
    assert_near(fabric.links[0].bytes_per_ns, 3.125, 0, 0);
    assert_near(fabric.links[0].latency_ns, 3000, 0, 0);
    assert_int_equal(fabric.ranks_per_host, 4);
    assert_int_equal(fabric.host_bytes, 64000000000ull);
    assert_near(fabric.machine.host_bytes_per_s, 7e9, 0, 0);
    ph__fabric_fini(&fabric);
}

/* Counts how many different routes lead from the ranks of one host to those of another. */
static size_t count_routes(struct ph__fabric *fabric, size_t from, size_t to, size_t length)
{
    enum { MOST = 64, RANKS = 45 };
    uint32_t seen[MOST][PH_FABRIC_MAX_HOPS];
    size_t num_seen = 0;
    fabric->ranks_per_host = RANKS;
    for (size_t pair = 0; pair < RANKS * RANKS; pair++) {
        uint32_t links[PH_FABRIC_MAX_HOPS] = {0};
        size_t i = 0;
        assert_int_equal(
            follow(fabric, from * RANKS + pair / RANKS, to * RANKS + pair % RANKS, links), length);
        while (i < num_seen && memcmp(seen[i], links, sizeof links) != 0)
            i++;
        if (i < num_seen)
            continue;
        assert_true(num_seen < MOST);
        memcpy(seen[num_seen++], links, sizeof links);
    }
    return num_seen;
}

static void racks_choose_among_their_uplinks(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text(
        "version: 1\nkind: racks\nhosts: 7\nrack: {hosts: 3, uplinks: 4, gbits_per_s: 100, latency_us: 1}\n");
    assert_int_equal(fabric.num_links, 2 * (7 + 3 * 4));
    assert_int_equal(count_routes(&fabric, 0, 2, 2), 1);     /* inside of a rack */
    assert_int_equal(count_routes(&fabric, 0, 6, 4), 4 * 4); /* up by one of four, down by one of four */
    ph__fabric_fini(&fabric);
}

static void a_spine_is_the_same_up_and_down(void **state)
{
    (void)state;
    struct ph__fabric fabric =
        read_text("version: 1\nkind: two_layer\nhosts: 6\nrack: {hosts: 3, uplinks: 5}\n");
    assert_int_equal(count_routes(&fabric, 0, 5, 4), 5);
    ph__fabric_fini(&fabric);
}

static void a_fat_tree_has_a_way_by_each_core(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: fat_tree\nhosts: 16\n"
                                         "fat_tree: {pods: 4, edges: 2, aggregations: 2, cores: 4}\n");
    assert_int_equal(fabric.num_nodes, 16 + 4 + 4 * 4); /* the tree of k = 4 */
    assert_int_equal(fabric.num_links, 2 * 3 * 16);
    assert_int_equal(count_routes(&fabric, 0, 1, 2), 1);  /* one edge switch */
    assert_int_equal(count_routes(&fabric, 0, 2, 4), 2);  /* one pod */
    assert_int_equal(count_routes(&fabric, 0, 15, 6), 4); /* any core */
    ph__fabric_fini(&fabric);
}

static void a_list_names_hosts_and_switches(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: list\nhosts: 3\nlinks:\n"
                                         "  - {from: h0, to: left, gbits_per_s: 8, latency_us: 1}\n"
                                         "  - {from: left, to: right, gbits_per_s: 4, latency_us: 2}\n"
                                         "  - {from: right, to: h1, gbits_per_s: 8, latency_us: 1}\n"
                                         "  - {from: h1, to: h2, gbits_per_s: 16, latency_us: 7}\n"
                                         "  - {from: h2, to: left, gbits_per_s: 8, latency_us: 1}\n");
    uint32_t links[PH_FABRIC_MAX_HOPS];
    assert_int_equal(follow(&fabric, 1, 2, links), 1);
    assert_near(fabric.links[links[0]].bytes_per_ns, 2, 0, 0);
    assert_int_equal(follow(&fabric, 0, 1, links), 3); /* not by way of host 2 */
    ph__fabric_fini(&fabric);
}

static void measured_pairs_have_links_of_their_own(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: measured\nhosts: 2\npairs:\n"
                                         "  - {from: 0, to: 1, gbits_per_s: 8, latency_us: 30}\n"
                                         "  - {from: 1, to: 0, gbits_per_s: 4, latency_us: 40}\n");
    struct way way = way_of(&fabric, 1, 0);
    assert_near(way.bytes_per_ns, .5, 0, 0);
    assert_near(way.latency_ns, 40000, 0, 0);
    assert_string_equal(fabric.names[1], "h1");
    assert_int_equal(fabric.num_groups, 1);
    ph__fabric_fini(&fabric);
}

#define FOUR_PAIRS                                             \
    "  - {from: 0, to: 1, gbits_per_s: 8, latency_us: 30}\n"   \
    "  - {from: 1, to: 0, gbits_per_s: 8, latency_us: 30}\n"   \
    "  - {from: 0, to: 2, gbits_per_s: 2, latency_us: 90}\n"   \
    "  - {from: 2, to: 0, gbits_per_s: 1.6, latency_us: 90}\n" \
    "  - {from: 1, to: 2, gbits_per_s: 2, latency_us: 90}\n"

static void flows_between_groups_share_a_trunk(void **state)
{
    (void)state;
    struct ph__fabric fabric =
        read_text("version: 1\nkind: measured\nhosts: 3\nnodes:\n  - {name: a, group: 0}\n"
                  "  - {name: b, group: 0}\n  - {name: c, group: 1}\npairs:\n" FOUR_PAIRS
                  "  - {from: 2, to: 1, gbits_per_s: 2, latency_us: 90}\n"
                  "trunks: [{from: 0, to: 1, gbits_per_s: 2.4}]\n");
    assert_string_equal(fabric.names[2], "c");
    assert_int_equal(fabric.num_groups, 2);
    assert_int_equal(fabric.groups[2], 1);
    const struct way near = way_of(&fabric, 0, 1), far = way_of(&fabric, 1, 2), back = way_of(&fabric, 2, 0);
    assert_near(near.bytes_per_ns, 1, 0, 0);
    assert_near(far.bytes_per_ns, .25, 0, 0);
    assert_near(back.bytes_per_ns, .2, 0, 1e-12);
    /* the links that both flows to c have in common: the trunk, its groups' own, and c's own */
    size_t num_shared = 0;
    double least = INFINITY;
    const struct way other = way_of(&fabric, 0, 2);
    for (size_t i = 0; i < far.num_links; i++)
        for (size_t k = 0; k < other.num_links; k++)
            if (far.links[i] == other.links[k]) {
                num_shared++;
                least = fmin(least, fabric.links[far.links[i]].bytes_per_ns);
            }
    assert_int_equal(num_shared, 4);
    assert_near(least, .25, 0, 0); /* c's own: the trunk has 0.3 */
    ph__fabric_fini(&fabric);
}

static void hosts_of_a_switch_are_a_group(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: racks\nhosts: 7\nrack: {hosts: 3}\n");
    assert_int_equal(fabric.num_groups, 3);
    for (size_t host = 0; host < 7; host++)
        assert_int_equal(fabric.groups[host], host / 3);
    ph__fabric_fini(&fabric);
    fabric = read_text("version: 1\nkind: star\nhosts: 3\n");
    assert_int_equal(fabric.num_groups, 1);
    ph__fabric_fini(&fabric);
}

static void bad_files_are_refused_by_one_line(void **state)
{
    (void)state;
    refuses("version: 1\nkind: star\n", "hosts");
    refuses("version: 2\nkind: star\nhosts: 2\n", "version");
    refuses("version: 1\nkind: ring\nhosts: 2\n", "kind");
    refuses("version: 1\nkind: star\nhosts: 2\nhots: {}\n", "hots");
    refuses("version: 1\nkind: racks\nhosts: 2\nrack: 5\n", "rack: must be a section");
    refuses("version: 1\nkind: star\nhosts: 2\nmachine: {memory_bytes_per_s: 0}\n", "memory_bytes_per_s");
    refuses("version: 1\nkind: star\nhosts: 2\nmachine: {network_bytes_per_s: 9}\n", "unknown key");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: h0, to: s}]\n", "no links lead from host");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: h0, to: h2}]\n", "must be h0 to h1");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: s, to: s}]\n", "to itself");
    refuses("version: 1\nkind: measured\nhosts: 3\npairs:\n" FOUR_PAIRS, "1 are missing (hosts 2 to 1,)");
    refuses("version: 1\nkind: measured\nhosts: 3\npairs:\n" FOUR_PAIRS
            "  - {from: 0, to: 1, gbits_per_s: 8, latency_us: 30}\n",
        "pairs[5]: host 0 to host 1 is there twice");
    refuses("version: 1\nkind: measured\nhosts: 2\npairs: [{from: 0, to: 1}]\n", "gbits_per_s");
    refuses("version: 1\nkind: measured\nhosts: 2\n"
            "pairs: [{from: 0, to: 2, gbits_per_s: 1, latency_us: 1}]\n",
        "pairs[0]");
    refuses("version: 1\nkind: star\nhosts: 2\nnodes: [{name: a}]\n", "must have all 2, or none");
    refuses("version: 1\nkind: star\nhosts: 2\nnodes: [{name: a}, {name: a}]\n", "name of nodes[0], too");
    refuses("version: 1\nkind: fat_tree\nhosts: 4\nfat_tree: {aggregations: 2, cores: 3}\n", "multiple");
    refuses("version: 1\nkind: star\nhosts: 2\nslow: [{rank: 2}]\n",
        "slow[0]: rank 2 is beyond the cluster's 2 ranks");
    refuses("version: 1\nkind: star\nhosts: 2\nmessages: {sizes: [{from_bytes: 9}, {from_bytes: 9}]}\n",
        "above 9");
}

/* ---- the planner's figures ---- */

static struct ph__plan_machine machine_of(const char *text, struct ph__topology topology)
{
    struct ph__plan_machine machine;
    assert_ok(ph__fabric_machine(test_write_file("topology.yaml", text), &topology, &machine));
    return machine;
}

static void a_file_gives_the_figures_of_a_job(void **state)
{
    static const char text[] = "version: 1\nkind: star\nhosts: 5\nranks_per_host: 4\n"
                               "host: {gbits_per_s: 25}\nmachine: {memory_gb: 64, host_bytes_per_s: 7e9}\n";
    (void)state;
    struct ph__topology topology = {0, 0};
    struct ph__plan_machine machine;
    assert_ok(ph__fabric_machine(test_write_file("topology.yaml", text), &topology, &machine));
    assert_int_equal(topology.world_size, 20);
    assert_int_equal(topology.ranks_per_host, 4);
    assert_int_equal(machine.rank_bytes, 16000000000ull);
    assert_near(machine.network_bytes_per_s, 3.125e9, 0, 1e-12);
    assert_near(machine.host_bytes_per_s, 7e9, 0, 0);
    assert_near(machine.memory_bytes_per_s, ph__plan_machine_nominal(0).memory_bytes_per_s, 0, 0);
    machine = machine_of(text, (struct ph__topology){2, 0}); /* two ranks of one host */
    assert_int_equal(machine.rank_bytes, 32000000000ull);
    assert_true(isnan(machine.network_bytes_per_s));
}

static void a_file_without_figures_gives_the_nominal_ones(void **state)
{
    (void)state;
    const struct ph__plan_machine nominal = ph__plan_machine_nominal(0);
    const struct ph__plan_machine machine =
        machine_of("version: 1\nkind: star\nhosts: 3\n", (struct ph__topology){0, 0});
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++)
        assert_near(ph__plan_machine_rate(&machine, &ph__plan_rates[i]), ph__plan_rates[i].nominal, 0, 1e-12);
    assert_int_equal(machine.rank_bytes, nominal.rank_bytes);
}

static void a_job_that_the_cluster_has_no_hosts_for_is_refused(void **state)
{
    static const struct {
        struct ph__topology topology;
        const char *part;
    } cases[] = {
        {{21, 0}, "topology.yaml: the cluster has room for 20 ranks, not 21"},
        {{6, 0}, "topology.yaml: the number of ranks, 6, must be a multiple of ranks_per_host, 4"},
        {{8, 2}, "topology.yaml: parallel.ranks_per_host must be 4, not 2"},
        {{3, 1}, "topology.yaml: parallel.ranks_per_host must be 3, not 1"},
    };
    (void)state;
    const char *path =
        test_write_file("topology.yaml", "version: 1\nkind: star\nhosts: 5\nranks_per_host: 4\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ph__topology topology = cases[i].topology;
        struct ph__plan_machine machine;
        assert_fails(ph__fabric_machine(path, &topology, &machine), PH_ERROR_CONFIG, cases[i].part);
        assert_int_equal(topology.world_size, cases[i].topology.world_size);
    }
}

/* Worked out by hand: the part of a host's traffic that crosses a link, and the host's share of the link. */
static void all_to_all_is_as_fast_as_the_busiest_link(void **state)
{
    static const struct {
        const char *text;
        size_t world_size;
        double gbits_per_s;
    } cases[] = {
        {"kind: star\nhosts: 7\nhost: {gbits_per_s: 25}\n", 0, 25},
        /* racks of four whose two uplinks carry half of what the hosts send: 4/7 of the traffic leaves them
         */
        {"kind: racks\nhosts: 8\nrack: {hosts: 4, uplinks: 2}\n", 0, 5. * 7 / 4},
        {"kind: racks\nhosts: 8\nrack: {hosts: 4, uplinks: 2}\n", 4, 10}, /* one rack alone */
        {"kind: racks\nhosts: 8\nrack: {hosts: 4, uplinks: 2}\n", 5, 10}, /* few flows leave the rack */
        {"kind: racks\nhosts: 128\nhost: {gbits_per_s: 50}\nrack: {hosts: 16, uplinks: 4, gbits_per_s: "
         "100}\n",
            0, 25. * 127 / 112},
        {"kind: two_layer\nhosts: 8\nrack: {hosts: 4, uplinks: 2}\n", 0, 5. * 7 / 4},
        {"kind: fat_tree\nhosts: 16\nfat_tree: {pods: 4, edges: 2, aggregations: 2, cores: 4}\n", 0, 10},
        /* half of the cores: a pod's four hosts share 20 Gb/s for the 12/15 that leave it */
        {"kind: fat_tree\nhosts: 16\nfat_tree: {pods: 4, edges: 2, aggregations: 2, cores: 2}\n", 0,
            5. * 15 / 12},
        {"kind: measured\nhosts: 2\npairs: [{from: 0, to: 1, gbits_per_s: 8, latency_us: 1}, {from: 1, "
         "to: 0, gbits_per_s: 4, latency_us: 1}]\n",
            0, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "version: 1\n%s", cases[i].text);
        const struct ph__plan_machine machine =
            machine_of(text, (struct ph__topology){cases[i].world_size, 0});
        assert_near(machine.network_bytes_per_s, cases[i].gbits_per_s * 1e9 / 8, 0, 1e-12);
    }
}

/* The routes of many ranks load the links of a lopsided network as the flows that are split evenly do. */
static void all_to_all_goes_the_ways_of_many_ranks(void **state)
{
    (void)state;
    enum { RANKS = 140, MOST_LINKS = 64 };
    struct ph__fabric fabric =
        read_text("version: 1\nkind: list\nhosts: 5\nlinks:\n"
                  "  - {from: h0, to: a}\n  - {from: h1, to: a}\n"
                  "  - {from: h2, to: b}\n  - {from: h3, to: b}\n"
                  "  - {from: h4, to: c}\n"
                  "  - {from: a, to: s, gbits_per_s: 3}\n  - {from: a, to: t}\n"
                  "  - {from: a, to: u}\n  - {from: b, to: s, gbits_per_s: 3}\n"
                  "  - {from: b, to: t}\n  - {from: c, to: t}\n  - {from: c, to: u}\n");
    double loads[MOST_LINKS] = {0}, least = (double)INFINITY, bytes_per_s;
    uint32_t links[PH_FABRIC_MAX_HOPS];
    assert_true(fabric.num_links <= MOST_LINKS);
    fabric.ranks_per_host = RANKS;
    for (size_t from = 0; from < 5 * RANKS; from++)
        for (size_t to = 0; to < 5 * RANKS; to++)
            for (size_t i = ph__fabric_route(&fabric, from, to, links); i-- > 0;)
                loads[links[i]] += 1. / (RANKS * RANKS);
    for (size_t i = 0; i < fabric.num_links; i++)
        least = fmin(least, fabric.links[i].bytes_per_ns / loads[i]);
    assert_ok(ph__fabric_all_to_all(&fabric, 5, &bytes_per_s));
    assert_near(bytes_per_s, least * 1e9 * 4, 0, .02);
    assert_true(bytes_per_s < .99 * 10e9 / 8); /* no host's link is the busiest */
    ph__fabric_fini(&fabric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_joins_all_hosts_by_two_links),
        cmocka_unit_test(racks_choose_among_their_uplinks),
        cmocka_unit_test(a_spine_is_the_same_up_and_down),
        cmocka_unit_test(a_fat_tree_has_a_way_by_each_core),
        cmocka_unit_test(a_list_names_hosts_and_switches),
        cmocka_unit_test(measured_pairs_have_links_of_their_own),
        cmocka_unit_test(flows_between_groups_share_a_trunk),
        cmocka_unit_test(hosts_of_a_switch_are_a_group),
        cmocka_unit_test(bad_files_are_refused_by_one_line),
        cmocka_unit_test(a_file_gives_the_figures_of_a_job),
        cmocka_unit_test(a_file_without_figures_gives_the_nominal_ones),
        cmocka_unit_test(a_job_that_the_cluster_has_no_hosts_for_is_refused),
        cmocka_unit_test(all_to_all_is_as_fast_as_the_busiest_link),
        cmocka_unit_test(all_to_all_goes_the_ways_of_many_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
