#include "plan/fabric.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
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
static size_t follow(const struct ph__fabric *fabric, size_t from, size_t to, uint64_t hash, uint32_t *links)
{
    const size_t count = ph__fabric_route(fabric, from, to, hash, links);
    size_t node = from;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fabric->links[links[i]].from, node);
        node = fabric->links[links[i]].to;
        assert_true(node >= fabric->num_hosts || i + 1 == count);
    }
    assert_int_equal(node, to);
    return count;
}

static void a_star_joins_all_hosts_by_two_links(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: star\nhosts: 5\nranks_per_host: 4\n"
                                         "host: {gbits_per_s: 25, latency_us: 3}\n"
                                         "machine: {memory_gb: 64, host_bytes_per_s: 7e9}\n");
    uint32_t links[PH_FABRIC_MAX_HOPS];
    assert_int_equal(fabric.num_links, 10);
    for (size_t from = 0; from < 5; from++)
        for (size_t to = 0; to < 5; to++)
            assert_int_equal(follow(&fabric, from, to, 1, links), from == to ? 0 : 2);
    assert_near(fabric.links[0].bytes_per_ns, 3.125, 0, 0);
    assert_near(fabric.links[0].latency_ns, 3000, 0, 0);
    assert_int_equal(fabric.ranks_per_host, 4);
    assert_int_equal(fabric.host_bytes, 64000000000ull);
    assert_int_equal(fabric.machine.rank_bytes, 16000000000ull);
    assert_near(fabric.machine.network_bytes_per_s, 3.125e9, 0, 1e-12);
    assert_near(fabric.machine.host_bytes_per_s, 7e9, 0, 0);
    ph__fabric_fini(&fabric);
}

/* Counts how many different routes lead from one host to another. */
static size_t count_routes(const struct ph__fabric *fabric, size_t from, size_t to, size_t length)
{
    enum { MOST = 64 };
    uint32_t seen[MOST][PH_FABRIC_MAX_HOPS];
    size_t num_seen = 0;
    for (uint64_t hash = 0; hash < 2000; hash++) {
        uint32_t links[PH_FABRIC_MAX_HOPS] = {0};
        size_t i = 0;
        assert_int_equal(follow(fabric, from, to, hash, links), length);
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
    assert_int_equal(follow(&fabric, 1, 2, 0, links), 1);
    assert_near(fabric.links[links[0]].bytes_per_ns, 2, 0, 0);
    assert_int_equal(follow(&fabric, 0, 1, 0, links), 3); /* not by way of host 2 */
    ph__fabric_fini(&fabric);
}

static void measured_pairs_have_links_of_their_own(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: measured\nhosts: 2\npairs:\n"
                                         "  - {from: 0, to: 1, gbits_per_s: 8, latency_us: 30}\n"
                                         "  - {from: 1, to: 0, gbits_per_s: 4, latency_us: 40}\n");
    uint32_t links[PH_FABRIC_MAX_HOPS];
    double least = 1e9, latency = 0;
    const size_t count = follow(&fabric, 1, 0, 0, links);
    for (size_t i = 0; i < count; i++) {
        least = fabric.links[links[i]].bytes_per_ns < least ? fabric.links[links[i]].bytes_per_ns : least;
        latency += fabric.links[links[i]].latency_ns;
    }
    assert_near(least, .5, 0, 0);
    assert_near(latency, 40000, 0, 0);
    ph__fabric_fini(&fabric);
}

static void bad_files_are_refused_by_one_line(void **state)
{
    (void)state;
    refuses("version: 1\nkind: star\n", "hosts");
    refuses("version: 2\nkind: star\nhosts: 2\n", "version");
    refuses("version: 1\nkind: ring\nhosts: 2\n", "kind");
    refuses("version: 1\nkind: star\nhosts: 2\nhots: {}\n", "hots");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: h0, to: s}]\n", "no links lead from host");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: h0, to: h2}]\n", "must be h0 to h1");
    refuses("version: 1\nkind: list\nhosts: 2\nlinks: [{from: s, to: s}]\n", "to itself");
    refuses("version: 1\nkind: measured\nhosts: 2\npairs: [{from: 0, to: 1}]\n", "from host 1 to host 0");
    refuses("version: 1\nkind: measured\nhosts: 2\npairs: [{from: 0, to: 2}]\n", "pairs[0]");
    refuses("version: 1\nkind: fat_tree\nhosts: 4\nfat_tree: {aggregations: 2, cores: 3}\n", "multiple");
    refuses("version: 1\nkind: star\nhosts: 2\nmessages: {sizes: [{from_bytes: 9}, {from_bytes: 9}]}\n",
        "above 9");
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
        cmocka_unit_test(bad_files_are_refused_by_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
