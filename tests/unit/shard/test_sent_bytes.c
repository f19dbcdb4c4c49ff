/* Ranks send as many bytes as plan_traffic.h says, whose ids are counted one by one. Beside that they send
 * the same under every plan, so that differences between plans are compared. Under MPI:
 * tests/mpi/mpi_steps.sh. */
#include "plan/plan_traffic.h"
#include "unit/shard/shard_learner.h"

enum { WORLD = 4, RANKS_PER_HOST = 2 };

static const char mixed[] = "tables:\n  a: {kind: table_row_wise}\n  b: {kind: row_wise}\n  c: {kind: grid}\n"
                            "default: {kind: table_wise}\n";
static const char *const plans[] = {"default: {kind: table_wise}\n", "default: {kind: row_wise}\n",
    "default: {kind: column_wise}\n", "default: {kind: table_row_wise}\n",
    "default: {kind: table_column_wise}\n", "default: {kind: grid}\n", mixed};

struct counted {
    double ids[WORLD * WORLD], distinct_rows[WORLD], rank_rows[WORLD];
};

static bool has_row(const struct ph__table_shard *shard, int64_t row)
{
    return (uint64_t)row >= shard->first_row && (uint64_t)row - shard->first_row < shard->num_rows;
}

static size_t rank_of_sample(const struct ph_batch *batch, size_t sample)
{
    size_t rank = 0;
    while (sample >= batch->num_samples * (rank + 1) / WORLD)
        rank++;
    return rank;
}

static void count_feature(
    const struct ph__plan *plan, const struct samples *samples, size_t feature, struct counted *counted)
{
    const struct ph__plan_table *table = &plan->tables[feature];
    const struct ph__table_shard *shards = &plan->shards[table->first_shard];
    bool is_named[300] = {false};
    *counted = (struct counted){0};
    for (size_t b = 0; b < samples->batch.num_samples; b++) {
        const uint32_t *bag = samples->offsets + feature * samples->batch.num_samples + b;
        for (size_t i = bag[0]; i < bag[1]; i++) {
            is_named[samples->ids[i]] = true;
            for (size_t s = 0; s < table->num_shards; s++)
                counted->ids[rank_of_sample(&samples->batch, b) * table->num_shards + s] +=
                    has_row(&shards[s], samples->ids[i]);
        }
    }
    for (int64_t row = 0; row < (int64_t)slices[feature].num_rows; row++)
        for (size_t s = 0; s < table->num_shards; s++)
            counted->distinct_rows[s] += is_named[row] && has_row(&shards[s], row);
}

static void add_step(const struct training *training, const struct ph__plan *plan,
    const struct ph__table_facts *facts, size_t number, double *sent)
{
    static const struct ph__plan_wire wires[PH_WIRE_COUNT] = {{4, 0}, {2, 0}, {2, 0}, {1, 4}};
    const struct ph__plan_wire wire = wires[training->wire];
    const struct ph__plan_step step = {batch_sizes[number], training->has_weights, wire, wire};
    static double bytes[PH_TRAFFIC_COUNT * WORLD * WORLD];
    struct samples samples;
    struct counted counted[NUM_FEATURES];
    struct ph__table_counts counts[NUM_FEATURES];
    make_samples(&samples, training, number, 0, batch_sizes[number]);
    for (size_t f = 0; f < NUM_FEATURES; f++) {
        count_feature(plan, &samples, f, &counted[f]);
        counts[f] = (struct ph__table_counts){counted[f].ids, counted[f].distinct_rows, counted[f].rank_rows};
    }
    ph__plan_traffic(plan, facts, &step, counts, bytes);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        sent[i / WORLD % WORLD] += bytes[i];
}

/* sent (WORLD) zeros. */
static void find_theory(const struct training *training, double *sent)
{
    const struct ph__topology topology = {WORLD, RANKS_PER_HOST};
    struct ph__table_facts facts[NUM_FEATURES];
    struct ph__plan plan;
    char text[1024];
    snprintf(text, sizeof text, "version: 1\nworld_size: %d\n%s", WORLD, training->plan);
    for (size_t f = 0; f < NUM_FEATURES; f++)
        facts[f] = (struct ph__table_facts){.name = slices[f].name,
            .num_rows = slices[f].num_rows,
            .dim = DIM,
            .num_features = 1,
            .weight_bytes = DIM * sizeof(ph_real),
            .row_slot_bytes = training->optimizer == PH_ROWWISE_ADAGRAD ? 4 : 0};
    assert_ok(ph__plan_read(test_write_file("plan.yaml", text), &topology, facts, NUM_FEATURES, &plan));
    for (size_t step = 0; step < NUM_STEPS; step++)
        add_step(training, &plan, facts, step, sent);
    ph__plan_fini(&plan);
}

static void check_plans(struct training *training, double tolerance)
{
    uint64_t first_sent[WORLD] = {0};
    double first_theory[WORLD] = {0};
    training->ranks_per_host = RANKS_PER_HOST;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        uint64_t sent[WORLD] = {0};
        double theory[WORLD] = {0};
        training->plan = plans[i];
        check_counting(training, WORLD, tolerance, i == 0 ? first_sent : sent);
        find_theory(training, i == 0 ? first_theory : theory);
        for (size_t rank = 0; rank < WORLD && i > 0; rank++)
            assert_true((double)sent[rank] - (double)first_sent[rank] == theory[rank] - first_theory[rank]);
    }
}

static void ranks_send_what_theory_says(void **state)
{
    (void)state;
    check_plans(&(struct training){.has_weights = true}, 1e-5);
    check_plans(&(struct training){.optimizer = PH_ROWWISE_ADAGRAD}, 1e-5);
    check_plans(&(struct training){.wire = PH_WIRE_BF16, .pooling = PH_POOL_MEAN}, 3e-2);
    check_plans(&(struct training){.wire = PH_WIRE_INT8}, 5e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_send_what_theory_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
