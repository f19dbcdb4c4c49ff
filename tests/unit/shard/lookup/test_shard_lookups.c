/* Lookups under every kind of plan give, and learn, what they do on one rank. */
#include "unit/shard/shard_learner.h"

static void whole_tables_on_their_ranks_are_those_of_one_rank(void **state)
{
    (void)state;
    for (int kind = PH_SGD; kind < PH_OPTIMIZER_COUNT; kind++)
        check_worlds(&(struct training){.plan = "default: {kind: table_wise}\n",
                         .optimizer = (enum ph_optimizer_kind)kind},
            0);
}

static void weights_and_means_go_along(void **state)
{
    (void)state;
    check_worlds(&(struct training){.plan = "default: {kind: table_wise}\n", .has_weights = true}, 0);
    check_worlds(&(struct training){.plan = "default: {kind: table_wise}\n", .pooling = PH_POOL_MEAN}, 0);
}

static void rows_over_ranks_add_up(void **state)
{
    (void)state;
    check_worlds(
        &(struct training){.plan = "default: {kind: row_wise}\n", .optimizer = PH_ROWWISE_ADAGRAD}, 1e-5);
    check_worlds(&(struct training){.plan = "default: {kind: row_wise}\n", .pooling = PH_POOL_MEAN}, 1e-5);
    check_worlds(&(struct training){.plan = "default: {kind: row_wise}\n", .has_weights = true}, 1e-5);
}

static void columns_over_ranks_are_those_of_one_rank(void **state)
{
    (void)state;
    check_worlds(&(struct training){.plan = "default: {kind: column_wise}\n", .optimizer = PH_ADAM}, 0);
    check_worlds(&(struct training){.plan = "default: {kind: column_wise}\n", .pooling = PH_POOL_MEAN}, 0);
}

static void every_rank_may_have_the_same_table(void **state)
{
    (void)state;
    check_worlds(&(struct training){.plan = "default: {kind: data_parallel}\n", .optimizer = PH_ADAM}, 1e-5);
    check_worlds(
        &(struct training){.plan = "tables:\n  b: {kind: data_parallel}\n  f: {kind: data_parallel}\n"
                                   "default: {kind: table_wise}\n",
            .pooling = PH_POOL_MEAN,
            .has_weights = true},
        1e-5);
}

static void hosts_hold_tables_together(void **state)
{
    (void)state;
    static const char *const kinds[] = {"table_row_wise", "table_column_wise", "grid"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char plan[64];
        snprintf(plan, sizeof plan, "default: {kind: %s}\n", kinds[i]);
        const struct training training = {.plan = plan, .ranks_per_host = 2, .optimizer = PH_ADAGRAD};
        check(&training, 4, i == 1 ? 0 : 1e-5);
        check(&training, 8, i == 1 ? 0 : 1e-5);
    }
}

static const char mixed[] =
    "tables:\n  a: {kind: row_wise}\n  b: {kind: table_wise}\n  c: {kind: column_wise}\n"
    "default: {kind: table_wise}\n";

static void kinds_may_be_mixed(void **state)
{
    (void)state;
    check_worlds(&(struct training){.plan = mixed, .has_weights = true, .optimizer = PH_ADAGRAD}, 1e-5);
    check_worlds(&(struct training){.plan = mixed, .pooling = PH_POOL_MEAN, .optimizer = PH_MOMENTUM}, 1e-5);
    check_worlds(&(struct training){.plan = mixed, .optimizer = PH_ROWWISE_ADAGRAD}, 1e-5);
}

static void fewer_bits_on_the_wire_cost_few_digits(void **state)
{
    (void)state;
    static const double tolerances[PH_WIRE_COUNT] = {0, 1e-2, 3e-2, 5e-2};
    for (enum ph_wire_format wire = PH_WIRE_FP16; wire < PH_WIRE_COUNT; wire++)
        check(&(struct training){.plan = mixed, .wire = wire}, 4, tolerances[wire]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_tables_on_their_ranks_are_those_of_one_rank),
        cmocka_unit_test(weights_and_means_go_along),
        cmocka_unit_test(rows_over_ranks_add_up),
        cmocka_unit_test(columns_over_ranks_are_those_of_one_rank),
        cmocka_unit_test(every_rank_may_have_the_same_table),
        cmocka_unit_test(hosts_hold_tables_together),
        cmocka_unit_test(kinds_may_be_mixed),
        cmocka_unit_test(fewer_bits_on_the_wire_cost_few_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
