/* Plans against what a rank may spend, counted element by element. */
#include "unit/plan/plan_fixture.h"

enum { NUM_DRAWINGS = 100 };

static bool has_element(const struct ph_table_shard *shard, uint64_t row, uint32_t column)
{
    return row - shard->first_row < shard->num_rows && column - shard->first_column < shard->num_columns;
}

/* What rank has of a table, from where its rows and columns are; slots of one number a row come with each part of it. */
static uint64_t count_bytes(
    const struct drawing *drawing, const struct ph_plan *plan, size_t table, uint32_t rank)
{
    const struct ph_table_facts *facts = &drawing->tables[table];
    const uint64_t number_bytes =
        (facts->weight_bytes + facts->slot_bytes - facts->row_slot_bytes) / facts->dim;
    uint64_t bytes = 0;
    if (plan->tables[table].kind == PH_SHARD_DATA_PARALLEL)
        return facts->num_rows * (facts->weight_bytes + facts->slot_bytes);
    for (size_t s = 0; s < plan->num_shards; s++) {
        const struct ph_table_shard *shard = &plan->shards[s];
        if (shard->table != table || shard->rank != rank)
            continue;
        for (uint64_t row = 0; row < facts->num_rows; row++) {
            uint64_t columns = 0;
            for (uint32_t column = 0; column < facts->dim; column++)
                columns += has_element(shard, row, column);
            bytes += columns > 0 ? columns * number_bytes + facts->row_slot_bytes : 0;
        }
    }
    return bytes;
}

static uint64_t count_most(const struct drawing *drawing, const struct ph_plan *plan)
{
    uint64_t most = 0;
    for (uint32_t rank = 0; rank < drawing->topology.world_size; rank++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < drawing->num_tables; i++)
            bytes += count_bytes(drawing, plan, i, rank);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void the_fullest_rank_decides(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t i = 0; i < NUM_DRAWINGS; i++) {
        struct ph_plan plan;
        draw_topology(&drawing);
        draw_tables(&drawing, 50);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        const uint64_t most = count_most(&drawing, &plan);
        assert_ok(ph__plan_check_bytes(&plan, drawing.tables, most));
        assert_ok(ph__plan_check_bytes(&plan, drawing.tables, 0));
        if (most > 1)
            assert_fails(
                ph__plan_check_bytes(&plan, drawing.tables, most - 1), PH_ERROR_MEMORY, "1 B are missing");
        ph__plan_fini(&plan);
    }
}

static void rank_and_table_are_named(void **state)
{
    (void)state;
    const struct ph_topology topology = {2, 2};
    const uint32_t second = 1;
    const struct ph_table_facts tables[] = {
        {.name = "embedding.user", .num_rows = 1024, .dim = 8, .weight_bytes = 32, .slot_bytes = 32},
        {.name = "embedding.item", .num_rows = 3072, .dim = 8, .weight_bytes = 32, .slot_bytes = 32},
        {.name = "embedding.day", .num_rows = 16, .dim = 8, .weight_bytes = 32, .slot_bytes = 32}};
    const struct ph_plan_choice choices[] = {
        {.kind = PH_SHARD_TABLE_WISE, .places = &second, .num_places = 1},
        {.kind = PH_SHARD_TABLE_WISE, .places = &second, .num_places = 1}, {.kind = PH_SHARD_DATA_PARALLEL}};
    struct ph_plan plan;
    assert_ok(ph__plan_build(&topology, tables, 3, choices, &plan));
    assert_fails(ph__plan_check_bytes(&plan, tables, 200 * 1024), PH_ERROR_MEMORY,
        "rank 1 of 2 would hold 257.0 KiB of tables with their optimizer's slots, where 200.0 KiB are "
        "allowed: "
        "57.0 KiB are missing; the most is of table 'embedding.item', 192.0 KiB");
    ph__plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fullest_rank_decides),
        cmocka_unit_test(rank_and_table_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
