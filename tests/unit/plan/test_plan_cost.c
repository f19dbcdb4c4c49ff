#include <math.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/plan_cost.h"
#include "support/test_support.h"
#include "unit/plan/plan_fixture.h"

static const struct ph__plan_machine machine = {1e9, 1e8, 1e7, 0};

static void expected_rows_are_those_of_drawn_ids(void **state)
{
    (void)state;
    enum { ROWS = 50, IDS = 70, DRAWS = 4000 };
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    double sum = 0;
    for (size_t d = 0; d < DRAWS; d++) {
        bool is_named[ROWS] = {false};
        for (size_t i = 0; i < IDS; i++)
            is_named[ph__rng_below(&rng, ROWS)] = true;
        for (size_t r = 0; r < ROWS; r++)
            sum += is_named[r];
    }
    assert_near(ph__expected_rows(ROWS, IDS), sum / DRAWS, 0, .005);
    assert_near(ph__expected_rows(1, 5), 1, 0, 0);
    assert_near(ph__expected_rows(1, 0), 0, 0, 0);
    assert_near(ph__expected_rows(1e12, 1000), 1000, 0, 1e-6); /* few of many: each names one */
    assert_near(ph__expected_rows(10, 1e6), 10, 0, 1e-9);
}

/* All of it on one of two ranks, the formula of the header written out. */
static void a_whole_table_costs_what_the_formula_says(void **state)
{
    (void)state;
    const struct ph__topology topology = {2, 1};
    const struct ph__table_facts facts = {"t", 1000000, 16, 2, 5, 64, 68, 4, 0, NULL, false, NULL, NULL};
    const struct ph__plan_step step = {100, false, {4, 0}, {2, 0}};
    static const uint32_t rank[] = {1};
    const struct ph__plan_choice choice = {PH_SHARD_TABLE_WISE, rank, 1, NULL};
    struct ph__plan plan;
    struct ph__plan_load loads[2];
    assert_ok(ph__plan_build(&topology, &facts, 1, &choice, &plan));
    assert_ok(ph__plan_loads(&plan, &machine, &step, &facts, loads));
    const double ids = 500, rows = 1e6 * (1 - pow(1 - 1e-6, ids));
    const double touched = ids * (64 + 64) + 200 * 64 + 2 * rows * (64 + 68);
    const double pooled = 50 * 2 * 16 * 4, gradients = pooled / 2, inputs = 4 * 50 * 2 + 4 * 250;
    assert_int_equal(loads[0].bytes, 0);
    assert_int_equal(loads[1].bytes, 1000000ull * 132);
    assert_near(loads[0].sent_bytes, gradients + inputs + 12, 1e-9, 1e-9);
    assert_near(loads[1].sent_bytes, pooled + 12, 1e-9, 1e-9);
    assert_near(loads[0].seconds, fmax(pooled, gradients + inputs) / 1e7, 0, 1e-9);
    assert_near(loads[1].seconds, touched / 1e9 + fmax(pooled, gradients + inputs) / 1e7, 0, 1e-9);
    ph__plan_fini(&plan);
}

static double sum_of(const struct ph__plan_load *loads, size_t world_size)
{
    double sum = 0;
    for (size_t i = 0; i < world_size; i++)
        sum += loads[i].sent_bytes;
    return sum;
}

/* What the loads say is sent is what the traffic of expected counts adds up to, and bytes are those of the
 * shards. */
static void loads_agree_with_traffic_and_shards(void **state)
{
    (void)state;
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < 100; trial++) {
        const struct ph__plan_step step = {1 + draw(&drawing, 100), trial % 2 == 0, {4, 0}, {1, 4}};
        struct ph__plan plan;
        struct ph__plan_load loads[MAX_WORLD];
        struct ph__table_counts counts[MAX_TABLES];
        static double bytes[PH_TRAFFIC_COUNT * MAX_WORLD * MAX_WORLD];
        struct ph__arena arena = {0};
        draw_topology(&drawing);
        draw_tables(&drawing, 1000);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        for (size_t i = 0; i < plan.num_tables; i++)
            assert_ok(ph__expected_counts(&plan, i, &drawing.tables[i], &step, &arena, &counts[i]));
        ph__plan_traffic(&plan, drawing.tables, &step, counts, bytes);
        assert_ok(ph__plan_loads(&plan, &machine, &step, drawing.tables, loads));
        const size_t world_size = drawing.topology.world_size;
        double sum = 0;
        for (size_t i = 0; i < PH_TRAFFIC_COUNT * world_size * world_size; i++)
            sum += bytes[i];
        assert_near(sum_of(loads, world_size), sum, 1e-6, 1e-9);
        uint64_t held = 0, wanted = 0;
        for (size_t i = 0; i < world_size; i++)
            held += loads[i].bytes;
        for (size_t i = 0; i < plan.num_tables; i++)
            wanted += plan.tables[i].bytes * (plan.tables[i].kind == PH_SHARD_DATA_PARALLEL ? world_size : 1);
        assert_int_equal(held, wanted);
        ph__arena_fini(&arena);
        ph__plan_fini(&plan);
    }
}

/* ---- the machine ---- */

static void every_nominal_figure_has_a_name_a_value_and_a_source(void **state)
{
    (void)state;
    const struct ph__plan_machine nominal = ph__plan_machine_nominal(0);
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++) {
        const struct ph__plan_rate *rate = &ph__plan_rates[i];
        assert_true(rate->name[0] != '\0' && rate->source[0] != '\0');
        assert_true(isfinite(rate->nominal) && rate->nominal > 0);
        assert_true(ph__plan_machine_rate(&nominal, rate) == rate->nominal);
        for (size_t other = 0; other < i; other++)
            assert_true(ph__plan_rates[other].offset != rate->offset);
    }
}

static void the_nominal_machine_has_all_of_them_and_the_limit(void **state)
{
    (void)state;
    const struct ph__plan_machine nominal = ph__plan_machine_nominal(12345);
    assert_int_equal(nominal.rank_bytes, 12345);
    assert_true(nominal.memory_bytes_per_s > nominal.host_bytes_per_s);
    assert_true(nominal.host_bytes_per_s > nominal.network_bytes_per_s);
    assert_true(nominal.network_bytes_per_s > 0);
}

static void a_measured_figure_takes_the_place_of_one_nominal_figure(void **state)
{
    (void)state;
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++) {
        struct ph__plan_machine changed = ph__plan_machine_nominal(3);
        struct ph__plan_machine given = {(double)NAN, (double)NAN, (double)NAN, 5};
        *(double *)(void *)((char *)&given + ph__plan_rates[i].offset) = 7;
        ph__plan_machine_take(&changed, &given);
        for (size_t other = 0; other < PH_PLAN_NUM_RATES; other++) {
            const struct ph__plan_rate *rate = &ph__plan_rates[other];
            assert_true(ph__plan_machine_rate(&changed, rate) == (other == i ? 7 : rate->nominal));
        }
        assert_int_equal(changed.rank_bytes, 3);
    }
}

typedef double matrix[MAX_WORLD][MAX_WORLD];

/* ---- dense gradients ---- */

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

/* A bucket of `count` numbers: each unit goes to its owner from all others, and its sum from there to all
 * others. */
static void walk_bucket(const struct ph__plan_wire *wire, size_t world_size, size_t count, matrix sent)
{
    const bool has_rows = wire->vector_bytes > 0;
    const size_t rows = (count + PH_DENSE_COLUMNS - 1) / PH_DENSE_COLUMNS;
    const size_t num_units = has_rows ? rows : count;
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

static void add_bytes(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    double(*sent)[MAX_WORLD] = context;
    assert_int_equal(what, PH_TRAFFIC_DENSE);
    sent[from][to] += bytes;
}

static void sums_of_dense_gradients_are_walked_number_by_number(void **state)
{
    (void)state;
    static const struct ph__plan_wire wires[] = {{4, 0}, {2, 0}, {1, 4}};
    static const size_t counts[] = {0, 1, 256, 257, 5000};
    for (size_t world_size = 1; world_size <= MAX_WORLD; world_size++)
        for (size_t w = 0; w < sizeof wires / sizeof *wires; w++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                matrix sent = {{0}}, wanted = {{0}};
                const struct ph__plan plan = {.topology = {world_size, world_size}};
                const struct ph__plan_dense dense = {counts[c], 1 << 20, wires[w], 1, {0}};
                ph__dense_traffic(&plan, &dense, add_bytes, sent);
                walk_bucket(&wires[w], world_size, counts[c], wanted);
                assert_memory_equal(sent, wanted, sizeof sent);
            }
}

/* Worked out by hand: four ranks in two groups of two have 3, 3, 2 and 2 of ten numbers. */
static void sums_send_what_their_collective_does(void **state)
{
    static const struct {
        enum ph__plan_sum kind;
        uint32_t positions[4];
        double numbers[4][4];
    } cases[] = {
        {PH_PLAN_EXCHANGE, {0}, {{0, 6, 5, 5}, {6, 0, 5, 5}, {5, 5, 0, 4}, {5, 5, 4, 0}}},
        {PH_PLAN_RING, {0}, {{0, 14, 0, 0}, {0, 0, 15, 0}, {0, 0, 0, 16}, {15, 0, 0, 0}}},
        /* the first ranks of both groups have 3 each, the second ones 2: groups of ranks 0, 1 and 2, 3 */
        {PH_PLAN_HIERARCHICAL, {0, 2, 1, 3}, {{0, 10, 6, 0}, {10, 0, 0, 4}, {6, 0, 0, 10}, {0, 4, 10, 0}}},
        /* groups of ranks 0, 2 and 1, 3 */
        {PH_PLAN_HIERARCHICAL, {0, 1, 2, 3}, {{0, 6, 10, 0}, {6, 0, 0, 10}, {10, 0, 0, 4}, {0, 10, 4, 0}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        matrix sent = {{0}}, smaller = {{0}}, exchanged = {{0}};
        const struct ph__plan plan = {.topology = {4, 2}};
        struct ph__plan_dense dense = {10, 1 << 20, {4, 0}, 1,
            {4, 2, 2, {{0, PH_PLAN_EXCHANGE}, {40, cases[i].kind}}, cases[i].positions}};
        ph__dense_traffic(&plan, &dense, add_bytes, sent);
        for (size_t from = 0; from < 4; from++)
            for (size_t to = 0; to < 4; to++)
                assert_near(sent[from][to], 4 * cases[i].numbers[from][to], 0, 0);
        dense.num_numbers = 9; /* 36 bytes */
        ph__dense_traffic(&plan, &dense, add_bytes, smaller);
        walk_bucket(&dense.wire, 4, 9, exchanged);
        assert_memory_equal(smaller, exchanged, sizeof smaller);
    }
}

/* ---- links ---- */

/* What goes from one end to another, of the matrix of all messages and the buckets. */
static void find_wanted(const struct drawing *drawing, const struct ph__plan *plan,
    const struct ph__plan_step *step, const struct ph__plan_dense *dense, size_t ranks_per_end, matrix wanted)
{
    static double bytes[PH_TRAFFIC_COUNT * MAX_WORLD * MAX_WORLD];
    const size_t world_size = drawing->topology.world_size;
    struct ph__table_counts counts[MAX_TABLES];
    struct ph__arena arena = {0};
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

static void check_links(const struct drawing *drawing, const struct ph__plan *plan, size_t most)
{
    const struct ph__topology *topology = &drawing->topology;
    const struct ph__plan_step step = {100, true, {2, 0}, {1, 4}};
    const struct ph__plan_dense dense = {3000, 700, {4, 0}, 1, {0}};
    const bool are_hosts = topology->world_size > most;
    const size_t ranks_per_end = are_hosts ? topology->ranks_per_host : 1;
    const size_t count = topology->world_size / ranks_per_end;
    struct ph__plan_links links;
    struct ph__arena arena = {0};
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
        struct ph__plan plan;
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
        cmocka_unit_test(expected_rows_are_those_of_drawn_ids),
        cmocka_unit_test(a_whole_table_costs_what_the_formula_says),
        cmocka_unit_test(loads_agree_with_traffic_and_shards),
        cmocka_unit_test(every_nominal_figure_has_a_name_a_value_and_a_source),
        cmocka_unit_test(the_nominal_machine_has_all_of_them_and_the_limit),
        cmocka_unit_test(a_measured_figure_takes_the_place_of_one_nominal_figure),
        cmocka_unit_test(sums_of_dense_gradients_are_walked_number_by_number),
        cmocka_unit_test(sums_send_what_their_collective_does),
        cmocka_unit_test(links_have_what_their_ranks_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
