/* Towers in plans: what a plan file may say of them, and what the planner chooses. */
#include "unit/plan/plan_fixture.h"

#include <string.h>

#include "base/file/file.h"
#include "plan/plan_cost.h"

enum { NUM_TABLES = 5, DIM = 32, NUM_TOWERS = 4 };

static const struct ph__topology topology = {4, 2};
static struct ph__tower_facts towers[NUM_TOWERS] = {
    {"a", 1, 8, 100}, {"b", 1, 8, 100}, {"c", 1, 8, 100}, {"d", 1, 8, 100}};
static struct ph__table_facts tables[NUM_TABLES];

/* Four towers of a table each, and a table of none; each tower gives vectors of tower_dim numbers. */
static void make_tables(size_t tower_dim)
{
    static const char *const names[] = {"t.a", "t.b", "t.c", "t.d", "t.e"};
    for (size_t i = 0; i < NUM_TABLES; i++)
        tables[i] = (struct ph__table_facts){.name = names[i],
            .num_rows = 100000,
            .dim = DIM,
            .num_features = 1,
            .ids_per_sample = 1,
            .weight_bytes = 4 * DIM,
            .tower = i < NUM_TOWERS ? &towers[i] : NULL};
    for (size_t i = 0; i < NUM_TOWERS; i++)
        towers[i].dim = tower_dim;
}

static ph_status read_text(const char *text, struct ph__plan *plan_out)
{
    char whole[1024];
    make_tables(8);
    snprintf(whole, sizeof whole, "version: 1\nworld_size: 4\n%s", text);
    return ph__plan_read(test_write_file("plan.yaml", whole), &topology, tables, NUM_TABLES, plan_out);
}

static void tables_of_a_tower_get_places_on_its_host(void **state)
{
    (void)state;
    struct ph__plan plan;
    assert_ok(read_text("tables:\n  t.a: {kind: table_row_wise}\ndefault: {kind: table_wise}\n"
                        "towers: {a: 1, b: 1, c: 0}\n",
        &plan));
    static const size_t wanted[] = {1, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        const struct ph__plan_table *table = &plan.tables[i];
        assert_string_equal(table->tower->of.name, towers[i].name);
        for (size_t s = 0; s < table->num_shards; s++)
            assert_int_equal(plan.shards[table->first_shard + s].rank / 2, wanted[i]);
    }
    assert_null(plan.tables[3].tower);
    assert_null(plan.tables[4].tower);
    assert_int_equal(plan.num_towers, 3);
    assert_int_equal(ph__plan_find_tower(&plan, "a")->of.num_numbers, 100);
    assert_null(ph__plan_find_tower(&plan, "d"));
    ph__plan_fini(&plan);
}

static void a_plan_with_towers_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    struct ph__plan plan, again;
    assert_ok(read_text("default: {kind: table_wise}\ntowers: {a: 1, d: 0}\n", &plan));
    assert_ok(ph__plan_save(&plan, "again.yaml"));
    assert_ok(ph__plan_read("again.yaml", &topology, tables, NUM_TABLES, &again));
    assert_int_equal(again.num_towers, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(again.towers[i].of.name, plan.towers[i].of.name);
        assert_int_equal(again.towers[i].host, plan.towers[i].host);
    }
    for (size_t i = 0; i < plan.num_shards; i++)
        assert_int_equal(again.shards[i].rank, plan.shards[i].rank);
    ph__plan_fini(&plan);
    ph__plan_fini(&again);
}

static void towers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"default: {kind: table_wise}\ntowers: {x: 0}\n", "4: unknown tower 'x'"},
        {"default: {kind: table_wise}\ntowers: {a: 2}\n", "towers.a: host 2 does not exist: the last is 1"},
        {"default: {kind: table_wise}\ntowers: {a: one}\n", "towers.a: must be an integer"},
        {"tables:\n  t.a: {kind: table_wise, rank: 1}\ndefault: {kind: table_wise}\ntowers: {a: 1}\n",
            "6: tower 'a' is on host 1, but its table 't.a' is on host 0"},
        {"default: {kind: row_wise}\ntowers: {b: 1}\n",
            "tower 'b' is on host 1, but its table 't.b' is row_wise"},
        {"default: {kind: data_parallel}\ntowers: {b: 1}\n", "its table 't.b' is data_parallel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ph__plan plan;
        assert_fails(read_text(cases[i].text, &plan), PH_ERROR_CONFIG, cases[i].part);
    }
}

/* ---- the planner ---- */

static void plan_for(size_t tower_dim, size_t batch_size, uint64_t rank_bytes, struct ph__plan *plan_out)
{
    const struct ph__plan_machine machine = ph__plan_machine_nominal(rank_bytes);
    const struct ph__plan_step step = {batch_size, false, {4, 0}, {4, 0}};
    make_tables(tower_dim);
    assert_ok(ph__plan_greedy(&machine, &topology, &step, tables, NUM_TABLES, plan_out));
}

static void towers_that_send_less_go_to_hosts_evenly(void **state)
{
    (void)state;
    struct ph__plan plan;
    size_t counts[2] = {0};
    plan_for(8, 4096, 0, &plan);
    assert_int_equal(plan.num_towers, NUM_TOWERS);
    assert_true(plan.tower_seconds < plan.flat_seconds);
    for (size_t i = 0; i < NUM_TOWERS; i++)
        counts[plan.towers[i].host]++;
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    ph__plan_fini(&plan);
}

static void towers_that_send_as_much_run_on_every_rank(void **state)
{
    (void)state;
    for (size_t batch_size = 64; batch_size <= 65536; batch_size *= 32) {
        struct ph__plan plan;
        plan_for(DIM, batch_size, 0, &plan);
        assert_int_equal(plan.num_towers, 0);
        assert_true(plan.tower_seconds >= plan.flat_seconds);
        ph__plan_fini(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_a_tower_get_places_on_its_host),
        cmocka_unit_test(a_plan_with_towers_is_read_back_as_it_was_written),
        cmocka_unit_test(towers_that_cannot_be_are_refused),
        cmocka_unit_test(towers_that_send_less_go_to_hosts_evenly),
        cmocka_unit_test(towers_that_send_as_much_run_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
