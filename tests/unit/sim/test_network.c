#include "sim/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/network_state.h"
#include "support/test_support.h"

/* ---- a random network ---- */

enum { MOST_LINKS = 12, MOST_ROUTES = 10, MOST_LENGTH = 5, MOST_FLOWS = 24 };

struct trial {
    size_t num_links, num_routes, num_flows;
    double capacities[MOST_LINKS];
    size_t lengths[MOST_ROUTES];
    uint32_t links[MOST_ROUTES][MOST_LENGTH];
    uint32_t route_of[MOST_FLOWS];
};

static void draw_route(struct ph__rng_sequence *rng, struct trial *trial, size_t route)
{
    bool is_taken[MOST_LINKS] = {false};
    const size_t most = trial->num_links < MOST_LENGTH ? trial->num_links : MOST_LENGTH;
    trial->lengths[route] = 1 + ph__rng_below(rng, most);
    for (size_t i = 0; i < trial->lengths[route];) {
        const uint32_t link = (uint32_t)ph__rng_below(rng, trial->num_links);
        if (is_taken[link])
            continue;
        is_taken[link] = true;
        trial->links[route][i++] = link;
    }
}

/* Capacities are often equal, so that several links are the narrowest. */
static struct trial draw_trial(struct ph__rng_sequence *rng)
{
    struct trial trial = {.num_links = 1 + ph__rng_below(rng, MOST_LINKS),
        .num_routes = 1 + ph__rng_below(rng, MOST_ROUTES),
        .num_flows = 1 + ph__rng_below(rng, MOST_FLOWS)};
    for (size_t i = 0; i < trial.num_links; i++)
        trial.capacities[i] = ph__rng_below(rng, 2) == 0 ? 10 : 1 + 99 * ph__rng_next_uniform(rng);
    for (size_t i = 0; i < trial.num_routes; i++)
        draw_route(rng, &trial, i);
    for (size_t i = 0; i < trial.num_flows; i++)
        trial.route_of[i] = (uint32_t)ph__rng_below(rng, trial.num_routes);
    return trial;
}

/* Returns a running flow's bytes a nanosecond, at the time of the last event. */
static double rate_of(const struct ph__network *network, uint32_t flow)
{
    return network->routes[network->flows[flow].route].rate;
}

static struct ph__network *network_of(const struct trial *trial, double slack)
{
    const struct ph__network_options options = {
        trial->capacities, trial->num_links, slack, slack > 0 ? 100 : 0};
    struct ph__network *network;
    assert_ok(ph__network_create(&options, &network));
    for (size_t i = 0; i < trial->num_routes; i++) {
        uint32_t route;
        assert_ok(ph__network_add_route(network, trial->links[i], trial->lengths[i], &route));
        assert_int_equal(route, i);
    }
    return network;
}

/* ---- rates ---- */

static bool uses(const struct trial *trial, size_t flow, size_t link)
{
    const uint32_t route = trial->route_of[flow];
    for (size_t i = 0; i < trial->lengths[route]; i++)
        if (trial->links[route][i] == link)
            return true;
    return false;
}

/* Raises the rates of all flows together, by brute force: those that cross a full link stop. */
static void fill_all(const struct trial *trial, long double rates_out[MOST_FLOWS])
{
    bool has_stopped[MOST_FLOWS] = {false};
    for (size_t f = 0; f < trial->num_flows; f++)
        rates_out[f] = 0;
    for (;;) {
        long double least = INFINITY;
        size_t narrowest = 0, num_rising[MOST_LINKS] = {0};
        long double rests[MOST_LINKS];
        for (size_t l = 0; l < trial->num_links; l++) {
            rests[l] = trial->capacities[l];
            for (size_t f = 0; f < trial->num_flows; f++)
                if (uses(trial, f, l)) {
                    rests[l] -= rates_out[f];
                    num_rising[l] += !has_stopped[f];
                }
            if (num_rising[l] > 0 && rests[l] / num_rising[l] < least) {
                least = rests[l] / num_rising[l];
                narrowest = l;
            }
        }
        if (isinf(least))
            return;
        for (size_t f = 0; f < trial->num_flows; f++)
            rates_out[f] += has_stopped[f] ? 0 : least;
        for (size_t f = 0; f < trial->num_flows; f++)
            has_stopped[f] = has_stopped[f] || uses(trial, f, narrowest);
    }
}

static void rates_are_those_of_brute_force(void **state)
{
    (void)state;
    enum { TRIALS = 10000 };
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t t = 0; t < TRIALS; t++) {
        const struct trial trial = draw_trial(&rng);
        long double rates[MOST_FLOWS];
        uint32_t flows[MOST_FLOWS];
        struct ph__network *network = network_of(&trial, 0);
        struct ph__network_end end;
        bool has_ended;
        for (size_t f = 0; f < trial.num_flows; f++)
            assert_ok(ph__network_start(network, trial.route_of[f], 5, 1e6, &flows[f]));
        assert_ok(ph__network_next_end(network, 6, &has_ended, &end));
        assert_false(has_ended);
        fill_all(&trial, rates);
        for (size_t f = 0; f < trial.num_flows; f++)
            assert_near(rate_of(network, flows[f]), (double)rates[f], 1e-9, 0);
        ph__network_destroy(network);
    }
}

/* ---- ends ---- */

struct plan {
    double at_ns, bytes;
    uint32_t route;
};

/* Ends of flows by the number that each was planned with. */
struct ends {
    double *at_ns;
    uint32_t *plan_of; /* by flow */
};

static void run_until(struct ph__network *network, struct ends *ends, double until_ns)
{
    struct ph__network_end end;
    for (bool has_ended = true; has_ended;) {
        assert_ok(ph__network_next_end(network, until_ns, &has_ended, &end));
        if (has_ended)
            ends->at_ns[ends->plan_of[end.flow]] = end.at_ns;
    }
}

static struct ends ends_create(size_t count)
{
    const struct ends ends = {calloc(count, sizeof(double)), calloc(count, sizeof(uint32_t))};
    assert_true(ends.at_ns != NULL && ends.plan_of != NULL);
    return ends;
}

static void ends_destroy(struct ends *ends)
{
    free(ends->at_ns);
    free(ends->plan_of);
}

/* Starts flows in some order; where runs[i], the network first runs on to until_ns. */
static void start_all(struct ph__network *network, const struct plan *plans, const uint32_t *order,
    const double *until_ns, size_t count, struct ends *ends)
{
    for (size_t i = 0; i < count; i++) {
        const struct plan *plan = &plans[order[i]];
        uint32_t flow;
        if (until_ns != NULL && until_ns[i] > 0)
            run_until(network, ends, until_ns[i]);
        assert_ok(ph__network_start(network, plan->route, plan->at_ns, plan->bytes, &flow));
        ends->plan_of[flow] = order[i];
    }
    run_until(network, ends, INFINITY);
}

static void draw_plans(
    struct ph__rng_sequence *rng, const struct trial *trial, double span_ns, size_t count, struct plan *plans)
{
    for (size_t i = 0; i < count; i++) {
        const bool is_odd = ph__rng_below(rng, 50) == 0; /* empty, or begins with others */
        plans[i] = (struct plan){.at_ns = span_ns * ph__rng_next_uniform(rng),
            .bytes = is_odd ? 0 : 1 + 99 * ph__rng_next_uniform(rng),
            .route = (uint32_t)ph__rng_below(rng, trial->num_routes)};
        if (i > 0 && ph__rng_below(rng, 10) == 0)
            plans[i].at_ns = plans[i - 1].at_ns;
    }
}

static const struct plan *sorted_plans;

static int by_begin(const void *left, const void *right)
{
    const double a = sorted_plans[*(const uint32_t *)left].at_ns,
                 b = sorted_plans[*(const uint32_t *)right].at_ns;
    return a < b ? -1 : a > b;
}

static void assert_same_ends(const struct ends *a, const struct ends *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(a->at_ns[i] >= 0);
        if (memcmp(&a->at_ns[i], &b->at_ns[i], sizeof *a->at_ns) != 0)
            fail_msg("flow %zu ends at %.17g in order, at %.17g out of order", i, a->at_ns[i], b->at_ns[i]);
    }
}

/* Runs the network to the end, or to some time, `num_runs` times while flows are started out of order. */
static void check_order(struct ph__rng_sequence *rng, double slack, size_t count, size_t num_runs)
{
    struct trial trial = draw_trial(rng);
    const double span_ns = (double)count * 20;
    struct plan *plans = calloc(count, sizeof *plans);
    uint32_t *order = calloc(count, sizeof *order);
    double *until_ns = calloc(count, sizeof *until_ns);
    struct ends in_order = ends_create(count), shuffled = ends_create(count);
    assert_true(plans != NULL && order != NULL && until_ns != NULL);
    draw_plans(rng, &trial, span_ns, count, plans);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    sorted_plans = plans;
    qsort(order, count, sizeof *order, by_begin);
    struct ph__network *network = network_of(&trial, slack);
    for (size_t i = 0; i < count; i++)
        until_ns[i] = plans[order[i]].at_ns;
    start_all(network, plans, order, until_ns, count, &in_order);
    ph__network_destroy(network);

    ph__rng_shuffle(rng, order, count);
    memset(until_ns, 0, count * sizeof *until_ns);
    for (size_t i = 0; i < num_runs; i++)
        until_ns[ph__rng_below(rng, count)] =
            ph__rng_below(rng, 2) == 0 ? (double)INFINITY : span_ns * ph__rng_next_uniform(rng);
    network = network_of(&trial, slack);
    start_all(network, plans, order, until_ns, count, &shuffled);
    ph__network_destroy(network);
    assert_same_ends(&in_order, &shuffled, count);
    free(plans);
    free(order);
    free(until_ns);
    ends_destroy(&in_order);
    ends_destroy(&shuffled);
}

static void flows_out_of_order_end_with_the_same_bits(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < 200; i++)
        check_order(&rng, i % 2 == 0 ? 0 : .01, 60, 60);
}

static void a_hundred_thousand_flows_out_of_order_end_with_the_same_bits(void **state)
{
    (void)state;
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    check_order(&rng, 0, 100000, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_brute_force),
        cmocka_unit_test(flows_out_of_order_end_with_the_same_bits),
        cmocka_unit_test(a_hundred_thousand_flows_out_of_order_end_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
