/* Prices of plans: a step by hand, with exchanges that are told their times. */
#include "plan/search/plan_price.h"

#include <string.h>

#include "support/test_support.h"

enum { WORLD = 3 };

/* A model whose exchanges take so long from each rank's start, and which notes the starts of vectors. */
struct told {
    double backward_ms[WORLD], forward_ms[WORLD], starts_ms[WORLD];
};

static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    struct told *told = context;
    (void)columns;
    if (way == PH_EXCHANGE_FORWARD)
        memcpy(told->starts_ms, starts_ms, sizeof told->starts_ms);
    for (size_t rank = 0; rank < topology->world_size; rank++)
        ms_out[rank] = way == PH_EXCHANGE_FORWARD ? told->forward_ms[rank] : told->backward_ms[rank];
    return PH_OK;
}

/* With a quarter of the time in lookups: gradients, updates and replicas end at 1+3+0, 2+6+1 and 3+1.5+0, so
 * ranks wait 5, 0 and 4.5; lookups take 1, 2 and .5, and vectors start .5, 1.5 and 0 after the first. */
static void ranks_meet_between_updates_and_lookups(void **state)
{
    (void)state;
    struct told told = {.backward_ms = {1, 2, 3}, .forward_ms = {6, 4, 7}};
    const struct ph__cost_model model = {.context = &told, .lookup_share = .25, .exchange = exchange};
    const struct ph__topology topology = {WORLD, WORLD};
    const struct ph__pricing pricing = {.model = &model, .topology = &topology};
    struct ph__rank_price prices[WORLD] = {
        {.compute_ms = 4}, {.compute_ms = 8, .replicas_ms = 1}, {.compute_ms = 2}};
    static const double waits[WORLD] = {5, 0, 4.5}, starts[WORLD] = {.5, 1.5, 0}, all[WORLD] = {16, 15, 16.5};
    double slowest_ms;
    assert_ok(ph__price_exchanges(&pricing, prices, &slowest_ms));
    for (size_t rank = 0; rank < WORLD; rank++) {
        assert_near(prices[rank].wait_ms, waits[rank], 1e-12, 0);
        assert_near(told.starts_ms[rank], starts[rank], 1e-12, 0);
        assert_near(ph__rank_price_ms(&prices[rank]), all[rank], 1e-12, 0);
    }
    assert_near(slowest_ms, 16.5, 1e-12, 0);
}

/* 4 ranks, 2 a host. Each names all 10 rows of 16 columns and their numbers, 680 bytes: it sends them to one
 * rank of its host, and to 2 others, as the other rank of its host does; then it touches those of all 4 ranks
 * three times. */
static void replicas_cost_messages_and_merging(void **state)
{
    (void)state;
    const struct ph__table_facts table = {
        .num_rows = 10, .dim = 16, .num_features = 1, .ids_per_sample = 100, .weight_bytes = 64};
    const struct ph__plan_machine machine = {
        .memory_bytes_per_s = 4e9, .host_bytes_per_s = 2e9, .network_bytes_per_s = 1e9};
    const struct ph__topology topology = {4, 2};
    const struct ph__plan_step step = {.batch_size = 400};
    const struct ph__pricing pricing = {
        .machine = &machine, .topology = &topology, .step = &step, .tables = &table, .num_tables = 1};
    const double bytes = 10 * (4 + 16 * 4);
    const double seconds = bytes / 2e9 + 4 * bytes / 1e9 + 3 * 4 * bytes / 4e9;
    assert_near(ph__replica_ms(&pricing, 0), 1e3 * seconds, 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_between_updates_and_lookups),
        cmocka_unit_test(replicas_cost_messages_and_merging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
