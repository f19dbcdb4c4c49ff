/* Plans that trainings leave in their folders: read back as they were, and not taken where they do not fit.
 */
#include "support/test_support.h"

#include <string.h>

#include "plan/plan_choice.h"
#include "train/config/kept_plan.h"

enum { NUM_TABLES = 2 };

static const struct ph__topology four_ranks = {4, 2}, two_ranks = {2, 2};
static const struct ph__table_facts tables[NUM_TABLES] = {
    {"embedding.user", 100, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
    {"embedding.item", 50, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
};
static const struct ph__table_facts others[NUM_TABLES] = {
    {"embedding.user", 100, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
    {"embedding.city", 50, 16, 1, 1, 64, 4, 4, 0, NULL, false, NULL, NULL},
};

/* In a fresh folder. */
static const char *keep(void)
{
    static const uint32_t ranks[] = {3, 1};
    const struct ph__plan_choice choices[NUM_TABLES] = {
        {.kind = PH_SHARD_ROW_WISE, .places = ranks, .num_places = 2}, {.kind = PH_SHARD_DATA_PARALLEL}};
    struct ph__plan plan;
    const char *folder = test_fresh_folder();
    assert_ok(ph__plan_build(&four_ranks, tables, NUM_TABLES, choices, &plan));
    assert_ok(ph__kept_plan_write(folder, &plan));
    ph__plan_fini(&plan);
    return folder;
}

/* No dense parameters. */
static ph_status read_kept(const char *folder, const struct ph__topology *topology,
    const struct ph__table_facts *of, struct ph__plan *plan_out, bool *is_there_out)
{
    struct ph__table_facts copy[NUM_TABLES];
    memcpy(copy, of, sizeof copy);
    const struct ph__table_list list = {.tables = copy, .num_tables = NUM_TABLES};
    return ph__kept_plan_read(folder, topology, &list, NULL, plan_out, is_there_out);
}

static bool is_there(
    const char *folder, const struct ph__topology *topology, const struct ph__table_facts *of)
{
    struct ph__plan plan;
    bool answer;
    assert_ok(read_kept(folder, topology, of, &plan, &answer));
    ph__plan_fini(&plan);
    return answer;
}

static void a_kept_plan_is_read_back(void **state)
{
    (void)state;
    struct ph__plan plan;
    bool answer;
    assert_ok(read_kept(keep(), &four_ranks, tables, &plan, &answer));
    assert_true(answer);
    assert_int_equal(plan.tables[0].kind, PH_SHARD_ROW_WISE);
    assert_int_equal(plan.tables[0].num_places, 2);
    assert_int_equal(plan.tables[0].places[0], 3);
    assert_int_equal(plan.tables[0].places[1], 1);
    assert_int_equal(plan.tables[1].kind, PH_SHARD_DATA_PARALLEL);
    ph__plan_fini(&plan);
}

static void one_of_other_ranks_or_tables_is_not_taken(void **state)
{
    (void)state;
    const char *folder = keep();
    struct ph__plan plan;
    bool answer;
    assert_true(is_there(folder, &four_ranks, tables));
    assert_false(is_there(test_fresh_folder(), &four_ranks, tables));
    assert_fails(read_kept(folder, &two_ranks, tables, &plan, &answer), PH_ERROR_CONFIG,
        "plan.yaml:3: the plan is for a world_size of 4");
    assert_false(answer);
    assert_fails(read_kept(folder, &four_ranks, others, &plan, &answer), PH_ERROR_CONFIG,
        "unknown table 'embedding.item'");
    assert_false(answer);
}

int main(void)
{
    const struct CMUnitTest tests_of_file[] = {
        cmocka_unit_test(a_kept_plan_is_read_back),
        cmocka_unit_test(one_of_other_ranks_or_tables_is_not_taken),
    };
    return cmocka_run_group_tests(tests_of_file, NULL, NULL);
}
