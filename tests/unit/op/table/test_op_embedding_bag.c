/* The lookup's part that the kernel's tests do not see: which format of rows is read, and what it is said to
 * cost. */
#include <math.h>

#include "unit/op/table_fixture.h"

#include "graph/executor.h"
#include "tensor/row_format.h"

enum { NUM_FEATURES = 2, DIM = 16, NUM_ROWS = 40, NUM_SAMPLES = 6, NUM_BAGS = NUM_FEATURES * NUM_SAMPLES };

static const struct ph_table_slice slices[NUM_FEATURES] = {{"table.a", NUM_ROWS}, {"table.b", NUM_ROWS}};

struct lookup {
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

static struct ph_program *build_lookup(enum ph_mode mode)
{
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(mode, &builder));
    ph_value table =
        ph_table(builder, "table", NUM_FEATURES, slices, DIM, (struct ph_init){PH_INIT_NORMAL, 1});
    ph_output(builder, "pooled",
        ph_embedding_bag(builder, ph_input_ids(builder, NUM_FEATURES), table, PH_POOL_SUM, 0));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static void start(struct lookup *lookup, enum ph_row_format format, enum ph_mode mode)
{
    lookup->program = build_lookup(mode);
    assert_ok(ph_store_create(1, &lookup->store));
    assert_ok(ph_state_create(&lookup->state));
    ph__store_set_row_format(lookup->store, format);
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &lookup->backend));
    assert_ok(ph_executor_create(
        lookup->program, lookup->store, lookup->state, lookup->backend, &lookup->executor));
    assert_ok(ph_workspace_create(lookup->executor, NUM_SAMPLES, 1, &lookup->workspace));
}

static void stop(struct lookup *lookup)
{
    ph_workspace_destroy(lookup->workspace);
    ph_executor_destroy(lookup->executor);
    ph_backend_destroy(lookup->backend);
    ph_program_destroy(lookup->program);
    ph_state_destroy(lookup->state);
    ph_store_destroy(lookup->store);
}

/* As row `row` of feature `feature` has it: levels apart in int4, too. */
static double number_of(size_t feature, size_t row, size_t d)
{
    return (double)row + (double)d / 15 + (double)feature / 2;
}

static void fill_slice(size_t feature, struct ph_tensor slice)
{
    ph_real row[DIM];
    for (size_t r = 0; r < NUM_ROWS; r++) {
        for (size_t d = 0; d < DIM; d++)
            row[d] = (ph_real)number_of(feature, r, d);
        ph__rows_encode(slice.row_format, 1, DIM, row,
            (char *)slice.data + r * ph__row_bytes(slice.row_format, DIM),
            slice.low != NULL ? slice.low + r * DIM : NULL);
    }
}

/* One id in each bag: bag i looks up row 3 i of its slice. */
static void run(struct lookup *lookup)
{
    int32_t lengths[NUM_BAGS];
    uint32_t offsets[NUM_BAGS + 1] = {0};
    int64_t ids[NUM_BAGS];
    for (uint32_t i = 0; i < NUM_BAGS; i++) {
        lengths[i] = 1;
        offsets[i + 1] = i + 1;
        ids[i] = 3 * (int64_t)i;
    }
    const struct ph_batch batch = {.num_samples = NUM_SAMPLES,
        .num_sparse = NUM_FEATURES,
        .num_ids = NUM_BAGS,
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids};
    assert_ok(ph_workspace_bind(lookup->workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(lookup->workspace, "forward"));
}

static double gathered_bytes(const struct lookup *lookup)
{
    double bytes = 0;
    for (size_t i = 0; i < lookup->program->graph.num_nodes; i++)
        bytes += lookup->executor->profile[i].cost.gathered_bytes;
    return bytes;
}

static void check_lookup(enum ph_row_format format, enum ph_mode mode, double row_bytes)
{
    struct lookup lookup;
    double largest = 0;
    const ph_real *pooled;
    struct ph_shape shape;
    start(&lookup, format, mode);
    for (size_t f = 0; f < NUM_FEATURES; f++)
        fill_slice(f, ph_store_tensor(lookup.store, f));
    assert_ok(ph_executor_profile(lookup.executor, true, 0));
    run(&lookup);
    assert_ok(ph_workspace_output(lookup.workspace, "pooled", &pooled, &shape));
    for (size_t i = 0; i < NUM_BAGS * DIM; i++) {
        const size_t d = i % DIM, feature = i / DIM % NUM_FEATURES, sample = i / DIM / NUM_FEATURES;
        const double wanted = number_of(feature, 3 * (feature * NUM_SAMPLES + sample), d);
        assert_near((double)pooled[i], wanted, 1e-3, 4e-3);
        largest = fmax(largest, fabs((double)pooled[i] - (double)(ph_real)wanted));
    }
    const bool is_exact = row_bytes >= (double)(DIM * sizeof(ph_real));
    assert_true(is_exact ? largest == 0 : largest > 0);
    assert_near(gathered_bytes(&lookup), (double)NUM_BAGS * row_bytes, 0, 0);
    stop(&lookup);
}

static void rows_of_every_format_are_looked_up_at_the_cost_of_their_bytes(void **state)
{
    (void)state;
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
        if (format != PH_ROWS_BF16_SPLIT)
            check_lookup((enum ph_row_format)format, PH_INFERENCE,
                (double)ph__row_bytes((enum ph_row_format)format, DIM));
}

static void training_reads_the_high_words_of_split_rows_and_scoring_all_of_them(void **state)
{
    (void)state;
    check_lookup(PH_ROWS_BF16_SPLIT, PH_TRAINING, 2 * DIM);
    check_lookup(PH_ROWS_BF16_SPLIT, PH_INFERENCE, 4 * DIM);
}

static void a_training_program_refuses_rows_that_are_held_for_scoring(void **state)
{
    (void)state;
    static const struct table_case usual = {
        .num_features = 3, .dim = 8, .num_rows = 10, .num_samples = 4, .optimizer = {.rule.kind = PH_SGD}};
    struct table_model model;
    struct ph_store *store;
    struct ph_executor *executor;
    table_model_init(&model, &usual);
    static const enum ph_row_format formats[] = {PH_ROWS_INT4, PH_ROWS_BF16};
    static const char *const errors[] = {"table 'table' is held as int4, for scoring: it cannot be trained",
        "table 'table' is held as bf16, for scoring: it cannot be trained"};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ph_store_create(1, &store));
        ph__store_set_row_format(store, formats[i]);
        assert_fails(ph_executor_create(model.program, store, model.state, model.backend, &executor),
            PH_ERROR_USAGE, errors[i]);
        ph_store_destroy(store);
    }
    table_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_format_are_looked_up_at_the_cost_of_their_bytes),
        cmocka_unit_test(training_reads_the_high_words_of_split_rows_and_scoring_all_of_them),
        cmocka_unit_test(a_training_program_refuses_rows_that_are_held_for_scoring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
