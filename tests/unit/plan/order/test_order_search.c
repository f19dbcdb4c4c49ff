#include "plan/order/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

#define MIB (1024. * 1024)
enum { MOST_HOSTS = 256 };

/* ---- fabrics ---- */

static struct ph__fabric read_text(const char *text)
{
    struct ph__fabric fabric;
    assert_ok(ph__fabric_read(test_write_file("topology.yaml", text), &fabric));
    return fabric;
}

/* Two racks of four, hosts of 800 Mb/s and uplinks of 200 Mb/s; hosts alternate between them if asked to. */
static struct ph__fabric two_racks(bool is_interleaved)
{
    char text[2048];
    int length = snprintf(text, sizeof text,
        "version: 1\nkind: list\nhosts: 8\nmessages: {send_us: 0, receive_us: 0}\nlinks:\n"
        "  - {from: left, to: core, gbits_per_s: .2, latency_us: 0}\n"
        "  - {from: right, to: core, gbits_per_s: .2, latency_us: 0}\n");
    for (int host = 0; host < 8; host++)
        length += snprintf(text + length, sizeof text - (size_t)length,
            "  - {from: h%d, to: %s, gbits_per_s: .8, latency_us: 0}\n", host,
            (is_interleaved ? host % 2 : host / 4) == 0 ? "left" : "right");
    return read_text(text);
}

/* A measured fabric whose pairs have these latencies in microseconds, and rates in Gb/s. */
static struct ph__fabric measured(size_t num_hosts, const double *latency_us, const double *gbits_per_s)
{
    const size_t size = 256 + num_hosts * num_hosts * 96;
    char *text = malloc(size);
    size_t length = (size_t)snprintf(text, size,
        "version: 1\nkind: measured\nhosts: %zu\nmessages: {send_us: 0, receive_us: 0}\npairs:\n", num_hosts);
    for (size_t i = 0; i < num_hosts * num_hosts; i++)
        if (i / num_hosts != i % num_hosts)
            length += (size_t)snprintf(text + length, size - length,
                "  - {from: %zu, to: %zu, latency_us: %.9g, gbits_per_s: %.9g}\n", i / num_hosts,
                i % num_hosts, latency_us[i], gbits_per_s[i]);
    struct ph__fabric fabric = read_text(text);
    free(text);
    return fabric;
}

/* Groups of `size` hosts side by side, if not shuffled, with fast links inside, and some noise. */
static struct ph__fabric noisy_groups(size_t num_hosts, size_t size, bool is_shuffled, uint64_t seed)
{
    struct ph__rng_sequence random = {.key = {.seed = seed, .stream = 1}};
    double *latency = calloc(num_hosts * num_hosts, sizeof *latency);
    double *gbits = calloc(num_hosts * num_hosts, sizeof *gbits);
    uint32_t place[MOST_HOSTS];
    for (uint32_t i = 0; i < num_hosts; i++)
        place[i] = i;
    if (is_shuffled)
        ph__rng_shuffle(&random, place, num_hosts);
    for (size_t i = 0; i < num_hosts * num_hosts; i++) {
        const bool is_near = place[i / num_hosts] / size == place[i % num_hosts] / size;
        latency[i] = (is_near ? 20 : 90) * (1 + .2 * ph__rng_next_uniform(&random));
        gbits[i] = (is_near ? 10 : 2) * (1 - .2 * ph__rng_next_uniform(&random));
    }
    struct ph__fabric fabric = measured(num_hosts, latency, gbits);
    free(latency);
    free(gbits);
    return fabric;
}

/* ---- costs ---- */

static double ns_of(const struct ph__order_problem *problem, const uint32_t *hosts)
{
    double ns;
    assert_ok(ph__order_times(problem, hosts, 1, &problem->bytes, &ns));
    return ns;
}

/* The figures of the specification's table, worked out by hand: 4 MiB over links of 100 and 25 bytes/us. */
static void costs_are_those_of_the_busiest_link(void **state)
{
    static const struct {
        enum ph__order_pattern pattern;
        double grouped_ms, interleaved_ms;
    } cases[] = {{PH_ORDER_RING, 293.6, 1174.4}, {PH_ORDER_HALVING, 230.7, 702.5},
        {PH_ORDER_DOUBLING, 755.0, 755.0}, {PH_ORDER_GROUPS, 230.7, 0}, {PH_ORDER_FAR_HALVING, 351.3, 115.3},
        {PH_ORDER_EXCHANGE, 671.1, 702.5}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int is_interleaved = 0; is_interleaved < 2; is_interleaved++) {
            const double expected = is_interleaved ? cases[i].interleaved_ms : cases[i].grouped_ms;
            struct ph__fabric fabric = two_racks(is_interleaved);
            const struct ph__order_problem problem = {
                .fabric = &fabric, .pattern = cases[i].pattern, .bytes = 4 * MIB};
            if (expected > 0)
                assert_near(ns_of(&problem, NULL) / 1e6, expected, .1, 0);
            ph__fabric_fini(&fabric);
        }
}

/* Groups of two hosts in each rack: 4 hosts send S / 4 to 2 over an uplink, then S / 8 within the rack. */
static void groups_may_span_racks(void **state)
{
    static const uint32_t hosts[] = {0, 2, 4, 6, 1, 3, 5, 7};
    struct ph__fabric fabric = two_racks(false);
    const struct ph__order_problem problem = {
        .fabric = &fabric, .pattern = PH_ORDER_GROUPS, .bytes = 4 * MIB, .group_size = 4};
    (void)state;
    assert_near(ns_of(&problem, hosts) / 1e6, 2 * (8 * MIB / 25e6 + .5 * MIB / 100e6) * 1e3, 1e-9, 0);
    ph__fabric_fini(&fabric);
}

/* Small sums take the latencies, one behind the other, and a rank's time for each of its messages. Large ones
 * take what crosses a host's link: 1/8 of S from each of its two ranks to each of the six on other hosts, of
 * a hierarchy to each of three; and of a ring once. */
static void ranks_of_a_host_share_its_link(void **state)
{
    static const struct {
        enum ph__order_pattern pattern;
        double latencies_us, crossing;
    } cases[] = {{PH_ORDER_EXCHANGE, 2 * (20 + 7 * 3), 2 * 12},
        {PH_ORDER_GROUPS, 2 * (5 + 3 + 20 + 3 * 3), 2 * 6}, {PH_ORDER_RING, 14 * (20 + 3), 14}};
    struct ph__fabric fabric = read_text("version: 1\nkind: star\nhosts: 5\nranks_per_host: 2\n"
                                         "host: {gbits_per_s: 8, latency_us: 10}\n"
                                         "machine: {host_bytes_per_s: 1e15}\n"
                                         "messages: {send_us: 2, receive_us: 1, host_latency_us: 5}\n");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ph__order_problem problem = {.fabric = &fabric,
            .num_hosts = 4,
            .ranks_per_host = 2,
            .pattern = cases[i].pattern,
            .group_size = 1};
        const double bytes[] = {0, 1e9};
        double ns[2];
        assert_ok(ph__order_times(&problem, NULL, 2, bytes, ns));
        assert_near(ns[0], cases[i].latencies_us * 1e3, 1e-6, 0);
        assert_near(ns[1] - ns[0], cases[i].crossing * 1e9 / 8, 0, 1e-5);
    }
    ph__fabric_fini(&fabric);
}

/* Latency and seconds a byte of pairs, as the formulas below read them. */
struct matrix {
    size_t num_hosts;
    double latency_ns[MOST_HOSTS], ns_per_byte[MOST_HOSTS];
};

static double message(const struct matrix *matrix, const uint32_t *hosts, size_t a, size_t b, double bytes)
{
    const size_t pair = hosts[a] * matrix->num_hosts + hosts[b];
    return matrix->latency_ns[pair] + bytes * matrix->ns_per_byte[pair];
}

static double tree_ns(const struct matrix *matrix, const uint32_t *hosts, size_t place, double bytes)
{
    double done = 0;
    for (size_t bit = 1; (place & bit) == 0 && place + bit < matrix->num_hosts; bit *= 2)
        done = fmax(done,
            tree_ns(matrix, hosts, place + bit, bytes) + message(matrix, hosts, place + bit, place, bytes));
    return done;
}

/* The specification's formulas, for messages that share no link. */
static double formula(const struct matrix *matrix, enum ph__order_pattern pattern, const uint32_t *hosts,
    double bytes, bool sums_edges)
{
    const size_t num_hosts = matrix->num_hosts;
    double sum = 0;
    if (pattern == PH_ORDER_TREE)
        return 2 * tree_ns(matrix, hosts, 0, bytes);
    if (pattern == PH_ORDER_RING) {
        double most = 0;
        for (size_t i = 0; i < num_hosts; i++) {
            const double ns = message(matrix, hosts, i, (i + 1) % num_hosts, bytes / (double)num_hosts);
            most = fmax(most, ns);
            sum += ns;
        }
        return sums_edges ? 2 * sum : 2 * (double)(num_hosts - 1) * most;
    }
    for (size_t bit = 1; bit < num_hosts; bit *= 2) {
        double most = 0;
        for (size_t i = 0; i < num_hosts; i++)
            most = fmax(most, message(matrix, hosts, i, i ^ bit,
                                  pattern == PH_ORDER_HALVING       ? bytes / (double)(2 * bit)
                                  : pattern == PH_ORDER_FAR_HALVING ? bytes * (double)bit / (double)num_hosts
                                                                    : bytes));
        sum += pattern == PH_ORDER_HALVING ? 2 * most : most;
    }
    return sum;
}

static struct matrix random_matrix(size_t num_hosts, struct ph__rng_sequence *random)
{
    struct matrix matrix = {.num_hosts = num_hosts};
    for (size_t i = 0; i < num_hosts * num_hosts; i++) {
        matrix.latency_ns[i] = 1e3 * (10 + 90 * ph__rng_next_uniform(random));
        matrix.ns_per_byte[i] = 8 / (1 + 9 * ph__rng_next_uniform(random));
    }
    return matrix;
}

static struct ph__fabric fabric_of(const struct matrix *matrix)
{
    double latency_us[MOST_HOSTS], gbits[MOST_HOSTS];
    for (size_t i = 0; i < matrix->num_hosts * matrix->num_hosts; i++) {
        latency_us[i] = matrix->latency_ns[i] / 1e3;
        gbits[i] = 8 / matrix->ns_per_byte[i];
    }
    return measured(matrix->num_hosts, latency_us, gbits);
}

static void costs_are_the_formulas(void **state)
{
    struct ph__rng_sequence random = {.key = {.seed = 7}};
    (void)state;
    for (size_t turn = 0; turn < 40; turn++) {
        const enum ph__order_pattern pattern = turn % 5;
        const size_t num_hosts = pattern == PH_ORDER_RING || pattern == PH_ORDER_TREE ? 3 + turn % 7 : 8;
        const struct matrix matrix = random_matrix(num_hosts, &random);
        struct ph__fabric fabric = fabric_of(&matrix);
        const struct ph__order_problem problem = {
            .fabric = &fabric, .pattern = pattern, .bytes = 1e5, .sums_edges = turn % 8 == 0};
        uint32_t hosts[MOST_HOSTS];
        for (uint32_t i = 0; i < num_hosts; i++)
            hosts[i] = i;
        ph__rng_shuffle(&random, hosts, num_hosts);
        assert_near(
            ns_of(&problem, hosts), formula(&matrix, pattern, hosts, 1e5, problem.sums_edges), 0, 1e-7);
        ph__fabric_fini(&fabric);
    }
}

/* ---- searches ---- */

/* Returns the least cost over all orders that begin with host 0, by the formulas. */
static double least_of_all(
    const struct matrix *matrix, const struct ph__order_problem *problem, uint32_t *hosts, size_t place)
{
    if (place == matrix->num_hosts)
        return formula(matrix, problem->pattern, hosts, problem->bytes, problem->sums_edges);
    double least = (double)INFINITY;
    for (size_t i = place; i < matrix->num_hosts; i++) {
        const uint32_t host = hosts[i];
        hosts[i] = hosts[place];
        hosts[place] = host;
        least = fmin(least, least_of_all(matrix, problem, hosts, place + 1));
        hosts[place] = hosts[i];
        hosts[i] = host;
    }
    return least;
}

static void check_permutation(const struct ph__order *order, size_t num_hosts)
{
    bool is_there[MOST_HOSTS] = {false};
    assert_int_equal(order->hosts[0], 0);
    for (size_t place = 0; place < num_hosts; place++) {
        assert_false(is_there[order->hosts[place]]);
        is_there[order->hosts[place]] = true;
    }
}

/* The search must find on 200 matrices what all orders contain, within 1 %. */
static void search_is_as_good_as_trying_all(void **state)
{
    struct ph__rng_sequence random = {.key = {.seed = 11}};
    (void)state;
    for (size_t turn = 0; turn < (test_is_brief() ? 20 : 200); turn++) {
        const enum ph__order_pattern pattern = turn % 5;
        const size_t num_hosts = pattern == PH_ORDER_RING || pattern == PH_ORDER_TREE ? 4 + turn % 5 : 8;
        const struct matrix matrix = random_matrix(num_hosts, &random);
        struct ph__fabric fabric = fabric_of(&matrix);
        struct ph__order_problem problem = {.fabric = &fabric,
            .pattern = pattern,
            .bytes = 1e5,
            .sums_edges = turn % 8 == 0,
            .method = PH_ORDER_SEARCH};
        uint32_t hosts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
        struct ph__order order;
        const double least = least_of_all(&matrix, &problem, hosts, 1);
        for (problem.method = PH_ORDER_AUTO; problem.method <= PH_ORDER_SEARCH; problem.method++) {
            assert_ok(ph__order_find(&problem, &order));
            check_permutation(&order, num_hosts);
            assert_near(order.found_ns, least, 0, problem.method == PH_ORDER_SEARCH ? .01 : 1e-7);
            free(order.hosts);
        }
        ph__fabric_fini(&fabric);
    }
}

static size_t num_crossings(const struct ph__fabric *fabric, const struct ph__order *order)
{
    size_t count = 0;
    for (size_t place = 0; place < fabric->num_hosts; place++)
        count += fabric->groups[order->hosts[place]] !=
                 fabric->groups[order->hosts[(place + 1) % fabric->num_hosts]];
    return count;
}

static void interleaved_racks_are_put_in_a_row(void **state)
{
    static const enum ph__order_pattern patterns[] = {PH_ORDER_RING, PH_ORDER_HALVING, PH_ORDER_GROUPS};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct ph__fabric fabric = two_racks(true);
        const struct ph__order_problem problem = {
            .fabric = &fabric, .pattern = patterns[i], .bytes = 4 * MIB, .least_gain = .05};
        struct ph__order order;
        assert_ok(ph__order_find(&problem, &order));
        check_permutation(&order, 8);
        assert_int_equal(num_crossings(&fabric, &order), 2);
        assert_false(order.is_identity);
        assert_true(order.ns < order.random_ns && order.random_ns < order.identity_ns * 1.001);
        free(order.hosts);
        ph__fabric_fini(&fabric);
    }
}

static void little_gain_leaves_hosts_where_they_are(void **state)
{
    static const char *const texts[] = {"version: 1\nkind: star\nhosts: 12\n", NULL};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ph__fabric fabric = texts[i] != NULL ? read_text(texts[i]) : two_racks(true);
        const struct ph__order_problem problem = {.fabric = &fabric,
            .pattern = texts[i] != NULL ? PH_ORDER_RING : PH_ORDER_DOUBLING,
            .bytes = 4 * MIB,
            .least_gain = .05};
        struct ph__order order;
        assert_ok(ph__order_find(&problem, &order));
        assert_true(order.is_identity);
        assert_near(order.ns, order.identity_ns, 0, 0);
        for (uint32_t place = 0; place < fabric.num_hosts; place++)
            assert_int_equal(order.hosts[place], place);
        free(order.hosts);
        ph__fabric_fini(&fabric);
    }
}

static void shuffled_groups_are_found_again(void **state)
{
    (void)state;
    for (enum ph__order_pattern pattern = 0; pattern < PH_ORDER_GROUPS; pattern++) {
        struct ph__order orders[2];
        for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
            struct ph__fabric fabric = noisy_groups(32, 8, is_shuffled, 5);
            const struct ph__order_problem problem = {
                .fabric = &fabric, .pattern = pattern, .bytes = 4 * MIB, .least_gain = .05};
            assert_ok(ph__order_find(&problem, &orders[is_shuffled]));
            ph__fabric_fini(&fabric);
        }
        /* both have the same structure, though other noise */
        assert_near(orders[1].found_ns, orders[0].found_ns, 0, .1);
        assert_true(pattern == PH_ORDER_DOUBLING || orders[1].found_ns < orders[1].random_ns * .95);
        free(orders[0].hosts);
        free(orders[1].hosts);
    }
}

static void the_same_seed_finds_the_same_order(void **state)
{
    struct ph__fabric fabric = noisy_groups(40, 8, true, 9);
    const struct ph__order_problem problem = {
        .fabric = &fabric, .pattern = PH_ORDER_RING, .bytes = MIB, .seed = 3};
    struct ph__order a, b;
    (void)state;
    assert_ok(ph__order_find(&problem, &a));
    assert_ok(ph__order_find(&problem, &b));
    assert_memory_equal(a.hosts, b.hosts, 40 * sizeof *a.hosts);
    free(a.hosts);
    free(b.hosts);
    ph__fabric_fini(&fabric);
}

static void a_hierarchy_needs_groups_of_one_size(void **state)
{
    (void)state;
    struct ph__fabric fabric = read_text("version: 1\nkind: racks\nhosts: 7\nrack: {hosts: 3}\n");
    struct ph__order_problem problem = {.fabric = &fabric, .pattern = PH_ORDER_GROUPS, .bytes = 1};
    struct ph__order order;
    assert_fails(ph__order_find(&problem, &order), PH_ERROR_CONFIG, "groups of one size");
    problem.group_size = 7;
    assert_ok(ph__order_find(&problem, &order));
    free(order.hosts);
    ph__fabric_fini(&fabric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_those_of_the_busiest_link),
        cmocka_unit_test(groups_may_span_racks),
        cmocka_unit_test(ranks_of_a_host_share_its_link),
        cmocka_unit_test(costs_are_the_formulas),
        cmocka_unit_test(search_is_as_good_as_trying_all),
        cmocka_unit_test(interleaved_racks_are_put_in_a_row),
        cmocka_unit_test(little_gain_leaves_hosts_where_they_are),
        cmocka_unit_test(shuffled_groups_are_found_again),
        cmocka_unit_test(the_same_seed_finds_the_same_order),
        cmocka_unit_test(a_hierarchy_needs_groups_of_one_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
