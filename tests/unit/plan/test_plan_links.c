/* Links against the matrix of all messages, and sums of dense gradients walked number by number. */
#include "unit/plan/plan_fixture.h"

#include <string.h>

#include "plan/plan_cost.h"
#include "plan/plan_links.h"

typedef double matrix[MAX_WORLD][MAX_WORLD];

/* ---- dense gradients ---------------------------------------------------------------------------------------------------- */

/* The rank whose part a unit of a bucket is in: parts are runs, as equal as can be, the first ones longer. */
static size_t owner_of(size_t unit, size_t num_units, size_t world_size)
{
    for (size_t rank = 0;; rank++) {
        const size_t here = num_units / world_size + (rank < num_units % world_size);
        if (unit < here)
            return rank;
        unit -= here;
    }
}

/* A bucket of `count` numbers: each unit goes to its owner from all others, and its sum from there to all others. */
static void walk_bucket(const struct ph_plan_wire *wire, size_t world_size, size_t count, matrix sent)
{
    const bool has_rows = wire->vector_bytes > 0;
    const size_t rows = (count + PH_DENSE_COLUMNS - 1) / PH_DENSE_COLUMNS;
    const size_t num_units = has_rows ? rows : rows * PH_DENSE_COLUMNS;
    const size_t bytes =
        has_rows ? PH_DENSE_COLUMNS * wire->number_bytes + wire->vector_bytes : wire->number_bytes;
    for (size_t unit = 0; unit < num_units; unit++) {
        const size_t owner = owner_of(unit, num_units, world_size);
        for (size_t rank = 0; rank < world_size; rank++)
            if (rank != owner) {
                sent[rank][owner] += (double)bytes;
                sent[owner][rank] += (double)bytes;
            }
    }
}

static void add_bytes(void *context, enum ph_traffic what, size_t from, size_t to, double bytes)
{
    double(*sent)[MAX_WORLD] = context;
    assert_int_equal(what, PH_TRAFFIC_DENSE);
    sent[from][to] += bytes;
}

static void sums_of_dense_gradients_are_walked_number_by_number(void **state)
{
    (void)state;
    static const struct ph_plan_wire wires[] = {{4, 0}, {2, 0}, {1, 4}};
    static const size_t counts[] = {0, 1, 256, 257, 5000};
    for (size_t world_size = 1; world_size <= MAX_WORLD; world_size++)
        for (size_t w = 0; w < sizeof wires / sizeof *wires; w++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                matrix sent = {{0}}, wanted = {{0}};
                ph__dense_traffic(world_size, &wires[w], counts[c], add_bytes, sent);
                walk_bucket(&wires[w], world_size, counts[c], wanted);
                assert_memory_equal(sent, wanted, sizeof sent);
            }
}

/* ---- links -------------------------------------------------------------------------------------------------------------- */

/* What goes from one end to another, of the matrix of all messages and the buckets. */
static void find_wanted(const struct drawing *drawing, const struct ph_plan *plan,
    const struct ph_plan_step *step, const struct ph_plan_dense *dense, size_t ranks_per_end, matrix wanted)
{
    static double bytes[PH_TRAFFIC_COUNT * MAX_WORLD * MAX_WORLD];
    const size_t world_size = drawing->topology.world_size;
    struct ph_table_counts counts[MAX_TABLES];
    struct ph_arena arena = {0};
    matrix sent = {{0}};
    for (size_t i = 0; i < plan->num_tables; i++)
        assert_ok(ph__expected_counts(plan, i, &drawing->tables[i], step, &arena, &counts[i]));
    ph__plan_traffic(plan, drawing->tables, step, counts, bytes);
    for (size_t left = dense->num_numbers; left > 0;) {
        const size_t here = left < dense->bucket_numbers ? left : dense->bucket_numbers;
        walk_bucket(&dense->wire, world_size, here, sent);
        left -= here;
    }
    for (size_t from = 0; from < world_size; from++)
        for (size_t to = 0; to < world_size; to++) {
            for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
                sent[from][to] += bytes[(what * world_size + from) * world_size + to];
            if (from / ranks_per_end != to / ranks_per_end)
                wanted[from / ranks_per_end][to / ranks_per_end] += sent[from][to];
        }
    ph__arena_fini(&arena);
}

static void check_links(const struct drawing *drawing, const struct ph_plan *plan, size_t most)
{
    const struct ph_topology *topology = &drawing->topology;
    const struct ph_plan_step step = {100, true, {2, 0}, {1, 4}};
    const struct ph_plan_dense dense = {3000, 700, {4, 0}};
    const bool are_hosts = topology->world_size > most;
    const size_t ranks_per_end = are_hosts ? topology->ranks_per_host : 1;
    const size_t count = topology->world_size / ranks_per_end;
    struct ph_plan_links links;
    struct ph_arena arena = {0};
    matrix wanted = {{0}};
    assert_ok(ph__plan_links_find(plan, &step, &dense, drawing->tables, most, &arena, &links));
    assert_int_equal(links.count, count <= most ? count : 0);
    find_wanted(drawing, plan, &step, &dense, ranks_per_end, wanted);
    for (size_t i = 0; i < links.count * links.count; i++)
        assert_near(links.bytes[i], wanted[i / count][i % count], 1e-9, 1e-9);
    assert_true(links.count == 0 || links.are_hosts == are_hosts);
    ph__arena_fini(&arena);
}

static void links_have_what_their_ranks_send(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < 50; trial++) {
        struct ph_plan plan;
        draw_topology(&drawing);
        draw_tables(&drawing, 1000);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        check_links(&drawing, &plan, 1 + draw(&drawing, MAX_WORLD));
        ph__plan_fini(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_dense_gradients_are_walked_number_by_number),
        cmocka_unit_test(links_have_what_their_ranks_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
