#include "support/test_support.h"

#include "train/config/optimizer_groups.h"

static const struct ph_optimizer_settings adam = {.rule.kind = PH_ADAM,
    .rule.beta1 = 0.9,
    .rule.beta2 = 0.99,
    .rule.epsilon = 1e-8,
    .net_l2 = 0.5,
    .embedding_l2 = 0.25,
    .embedding_learning_rate_factor = 2};

static void tables_and_dense_parameters_have_their_own_l2(void **state)
{
    (void)state;
    struct ph_optimizer dense = ph__optimizer_for(&adam, "deep.0.weight", false);
    struct ph_optimizer table = ph__optimizer_for(&adam, "embedding.table", true);
    assert_near(dense.l2, 0.5, 0, 0);
    assert_near(dense.learning_rate_factor, 1, 0, 0);
    assert_near(table.l2, 0.25, 0, 0);
    assert_near(table.learning_rate_factor, 2, 0, 0);
    assert_false(table.is_whole_table);
    assert_int_equal(table.rule.kind, PH_ADAM);
}

static void whole_scope_reaches_tables_only(void **state)
{
    (void)state;
    struct ph_optimizer_settings settings = adam;
    settings.embedding_scope = PH_SCOPE_WHOLE;
    assert_true(ph__optimizer_for(&settings, "embedding.table", true).is_whole_table);
    assert_false(ph__optimizer_for(&settings, "deep.0.weight", false).is_whole_table);
}

static void tables_may_have_another_rule(void **state)
{
    (void)state;
    struct ph_optimizer_settings settings = adam;
    settings.embedding_kind = PH_EMBEDDING_ROWWISE_ADAGRAD;
    assert_int_equal(ph__optimizer_for(&settings, "embedding.table", true).rule.kind, PH_ROWWISE_ADAGRAD);
    assert_int_equal(ph__optimizer_for(&settings, "deep.0.weight", false).rule.kind, PH_ADAM);
}

static void dense_parameters_take_adagrad_for_its_row_wise_form(void **state)
{
    (void)state;
    struct ph_optimizer_settings settings = adam;
    settings.rule.kind = PH_ROWWISE_ADAGRAD;
    assert_int_equal(ph__optimizer_for(&settings, "embedding.table", true).rule.kind, PH_ROWWISE_ADAGRAD);
    assert_int_equal(ph__optimizer_for(&settings, "deep.0.weight", false).rule.kind, PH_ADAGRAD);
}

static void groups_apply_by_pattern_and_the_later_wins(void **state)
{
    (void)state;
    const struct ph_optimizer_group groups[] = {
        {"deep", "deep.*", 0.5, 0, -1},
        {"first", "deep.0.*", 0.5, -1, 0.125},
    };
    struct ph_optimizer_settings settings = adam;
    settings.groups = groups;
    settings.num_groups = 2;
    struct ph_optimizer first = ph__optimizer_for(&settings, "deep.0.weight", false);
    struct ph_optimizer second = ph__optimizer_for(&settings, "deep.1.weight", false);
    struct ph_optimizer other = ph__optimizer_for(&settings, "output.weight", false);
    assert_near(first.learning_rate_factor, 0.25, 0, 0);
    assert_near(first.l2, 0, 0, 0);
    assert_near(first.rule.weight_decay, 0.125, 0, 0);
    assert_near(second.learning_rate_factor, 0.5, 0, 0);
    assert_near(second.rule.weight_decay, 0, 0, 0);
    assert_near(other.l2, 0.5, 0, 0);
}

static void group_of_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const parameters[] = {"embedding.user", "deep.0.weight"};
    const struct ph_optimizer_group groups[] = {{.pattern = "deep.*", .learning_rate_factor = 1},
        {.pattern = "embeding.*", .learning_rate_factor = 0}};
    struct ph_optimizer_settings settings = {.groups = groups, .num_groups = 1};
    assert_ok(ph__optimizer_groups_check(&settings, parameters, 2));
    settings.num_groups = 2;
    assert_fails(ph__optimizer_groups_check(&settings, parameters, 2), PH_ERROR_CONFIG,
        "optimizer.groups[1].pattern: 'embeding.*' matches no parameter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_dense_parameters_have_their_own_l2),
        cmocka_unit_test(whole_scope_reaches_tables_only),
        cmocka_unit_test(tables_may_have_another_rule),
        cmocka_unit_test(dense_parameters_take_adagrad_for_its_row_wise_form),
        cmocka_unit_test(groups_apply_by_pattern_and_the_later_wins),
        cmocka_unit_test(group_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
