/* Limits of a plan as files give them, and what is wrong in such files. */
#include "support/test_support.h"

#include "plan/search/plan_limits.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct ph__topology four_ranks = {4, 2};
static const struct ph__table_facts tables[] = {
    {.name = "embedding.user", .num_rows = 10, .dim = 4},
    {.name = "embedding.item", .num_rows = 10, .dim = 4},
    {.name = "embedding.item_price", .num_rows = 10, .dim = 4},
    {.name = "embedding.ads", .num_rows = 10, .dim = 4},
    {.name = "linear.user", .num_rows = 10, .dim = 1},
};

static ph_status read_text(const char *text, struct ph__limits_file *file)
{
    return ph__limits_read(
        test_write_file("limits.yaml", text), &four_ranks, 1000, tables, COUNT(tables), file);
}

static void limits_are_those_of_the_file(void **state)
{
    (void)state;
    struct ph__limits_file file;
    assert_ok(read_text("version: 1\nhost_gb: 48\nranks: [{rank: 3, gb: 4, slowness: 2}]\n"
                        "together: [{tables: [embedding.user, embedding.ads]}]\n"
                        "apart: [{tables: [\"embedding.item*\", linear.user]}]\n",
        &file));
    assert_int_equal(file.limits.host_bytes, 48000000000);
    assert_int_equal(file.limits.rank_bytes[0], 1000);
    assert_int_equal(file.limits.rank_bytes[3], 4000000000);
    assert_true(file.slowness[0] == 1 && file.slowness[3] == 2);
    assert_int_equal(file.limits.num_groups, 2);
    assert_false(file.limits.groups[0].is_apart);
    assert_int_equal(file.limits.groups[0].num_tables, 2);
    assert_int_equal(file.limits.groups[0].tables[1], 3);
    assert_true(file.limits.groups[1].is_apart);
    assert_int_equal(file.limits.groups[1].num_tables, 3);
    ph__limits_fini(&file);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"host_gb: 4\n", "version"},
        {"version: 1\nranks: [{rank: 4}]\n", "ranks[0]: rank 4 is beyond the job's 4 ranks"},
        {"version: 1\ntogether: [{tables: [embedding.usr]}]\n", "together: 'embedding.usr' fits no table"},
        {"version: 1\ntogether: [{tables: [embedding.user]}, {tables: [\"*.user\"]}]\n",
            "together: table 'embedding.user' is in two groups that lie together"},
        {"version: 1\napart: [{tables: [\"*\"]}]\n", "apart[0]: 5 tables cannot lie apart on 4 ranks"},
        {"version: 1\nhosts_gb: 4\n", "did you mean 'host_gb'?"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph__limits_file file;
        assert_fails(read_text(cases[i].text, &file), PH_ERROR_CONFIG, cases[i].error);
        ph__limits_fini(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests_of_limits[] = {
        cmocka_unit_test(limits_are_those_of_the_file),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests_of_limits, NULL, NULL);
}
