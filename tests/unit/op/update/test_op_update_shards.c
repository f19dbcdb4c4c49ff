/* A table that is cut into runs of rows and of columns, each a table of its own, learns what the whole table
 * learns, bit for bit: the same program with the same gradients of pooled vectors, which do not depend on the
 * rows, so that each piece may be looked up by itself. */
#include <stdio.h>

#include "base/thread/cpu.h"
#include "unit/op/table_fixture.h"

enum { ROWS = 43, SAMPLES = 8, MAX_IDS = 6, MAX_RUNS = 3, MAX_COLUMN_CUTS = 4, STEPS = 3 };

/* Runs of rows, each with its own cuts of the columns. One run with one piece: the whole table. */
struct cuts {
    size_t dim, num_runs;
    size_t rows[MAX_RUNS + 1];
    size_t num_pieces[MAX_RUNS], columns[MAX_RUNS][MAX_COLUMN_CUTS];
    struct ph__slice_shard shards[MAX_RUNS][MAX_COLUMN_CUTS];
};

struct learner {
    const struct cuts *cuts;
    struct table_model model; /* whose own table and batch are not used */
    int32_t lengths[MAX_RUNS * SAMPLES];
    uint32_t offsets[MAX_RUNS * SAMPLES + 1];
    int64_t ids[SAMPLES * MAX_IDS];
};

/* What a step reads: bags of ids of the whole table. */
struct step_input {
    size_t lengths[SAMPLES];
    int64_t ids[SAMPLES][MAX_IDS];
    ph_real *labels; /* (SAMPLES, dim) */
};

/* ---- programs ---- */

static ph_value piece_of(
    struct ph_builder *builder, struct learner *learner, ph_value ids, size_t run, size_t piece)
{
    const struct cuts *cuts = learner->cuts;
    const struct ph_table_slice slice = {"table.f", cuts->rows[run + 1] - cuts->rows[run]};
    char name[64];
    snprintf(name, sizeof name, "piece%zu.%zu", run, piece);
    const ph_value table =
        ph_table(builder, name, 1, &slice, cuts->columns[run][piece], (struct ph_init){PH_INIT_NORMAL, 0.5});
    builder->graph.declarations[builder->graph.num_declarations - 1].shards = &cuts->shards[run][piece];
    const ph_value bags = ph_select_features(builder, ids, 1, &run);
    return ph_embedding_bag(builder, bags, table, PH_POOL_SUM, 0);
}

/* The sum of the pieces minus itself: zeros, with the gradient of the sum. */
static ph_value logits_of(struct ph_builder *builder, struct learner *learner)
{
    const struct cuts *cuts = learner->cuts;
    const ph_value ids = ph_input_ids(builder, cuts->num_runs);
    ph_value sum = 0;
    for (size_t run = 0; run < cuts->num_runs; run++) {
        ph_value pieces[MAX_COLUMN_CUTS];
        for (size_t piece = 0; piece < cuts->num_pieces[run]; piece++)
            pieces[piece] = piece_of(builder, learner, ids, run, piece);
        const ph_value rows =
            cuts->num_pieces[run] > 1 ? ph_concat(builder, cuts->num_pieces[run], pieces, 2) : pieces[0];
        sum = run == 0 ? rows : ph_add(builder, sum, rows);
    }
    const ph_value zeros = ph_add(builder, sum, ph_scale(builder, ph_stop_gradient(builder, sum), -1));
    return ph_reshape(builder, zeros, 1, &cuts->dim);
}

static void build(struct learner *learner, const struct ph_optimizer *optimizer, bool reads_gradient)
{
    struct ph_builder *builder;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value logits = logits_of(builder, learner);
    const ph_value loss =
        ph_bce_with_logits(builder, logits, ph_input_labels(builder, learner->cuts->dim), 0, 0);
    ph_output(builder, "loss", loss);
    ph_builder_begin_entry(builder, "backward");
    ph_value parameters[MAX_RUNS * MAX_COLUMN_CUTS], gradients[MAX_RUNS * MAX_COLUMN_CUTS];
    const size_t count = ph_builder_num_parameters(builder);
    for (size_t i = 0; i < count; i++)
        parameters[i] = ph_builder_parameter(builder, i);
    ph_backward(builder, loss, count, parameters, gradients);
    for (size_t i = 0; i < count && reads_gradient; i++) {
        char name[64];
        snprintf(name, sizeof name, "gradient%zu", i);
        ph_output(builder, name, gradients[i]);
    }
    ph_builder_begin_entry(builder, "update");
    for (size_t i = 0; i < count; i++)
        ph_update(builder, parameters[i], gradients[i], optimizer, ph_input_scalar(builder, "learning_rate"),
            ph_input_scalar(builder, "step"), 0);
    assert_ok(ph_builder_finish(builder, &learner->model.program));
    ph_builder_destroy(builder);
}

static void learner_init(struct learner *learner, const struct cuts *cuts,
    const struct ph_optimizer *optimizer, enum ph_row_format format, bool reads_gradient)
{
    struct table_model *model = &learner->model;
    *learner = (struct learner){.cuts = cuts};
    build(learner, optimizer, reads_gradient);
    assert_ok(ph_store_create(test_seed(), &model->store));
    ph__store_learn_rows(model->store, format);
    assert_ok(ph_state_create(&model->state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2},
        &model->backend));
    assert_ok(
        ph_executor_create(model->program, model->store, model->state, model->backend, &model->executor));
    assert_ok(ph_workspace_create(model->executor, 1, 1, &model->workspace));
}

/* ---- steps ---- */

/* Each bag's ids go to the bags of the runs that have their rows, in their order. */
static void run_step(struct learner *learner, const struct step_input *input, uint64_t step)
{
    const struct cuts *cuts = learner->cuts;
    size_t count = 0;
    for (size_t bag = 0; bag < cuts->num_runs * SAMPLES; bag++) {
        const size_t run = bag / SAMPLES, sample = bag % SAMPLES, begin = count;
        for (size_t i = 0; i < input->lengths[sample]; i++) {
            const size_t row = (size_t)input->ids[sample][i];
            if (row >= cuts->rows[run] && row < cuts->rows[run + 1])
                learner->ids[count++] = (int64_t)(row - cuts->rows[run]);
        }
        learner->lengths[bag] = (int32_t)(count - begin);
        learner->offsets[bag + 1] = (uint32_t)count;
    }
    learner->model.batch = (struct ph_batch){.num_samples = SAMPLES,
        .num_sparse = cuts->num_runs,
        .num_tasks = cuts->dim,
        .num_ids = count,
        .labels = input->labels,
        .lengths = learner->lengths,
        .offsets = learner->offsets,
        .ids = learner->ids};
    assert_ok(table_model_run(&learner->model, step));
}

static void learner_fini(struct learner *learner)
{
    learner->model.batch = (struct ph_batch){0};
    table_model_fini(&learner->model);
}

static void draw_input(struct ph__rng_sequence *random, size_t dim, struct step_input *input)
{
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        input->lengths[sample] = ph__rng_below(random, MAX_IDS + 1);
        for (size_t i = 0; i < MAX_IDS; i++)
            input->ids[sample][i] = (int64_t)ph__rng_below(random, ROWS);
    }
    for (size_t i = 0; i < SAMPLES * dim; i++)
        input->labels[i] = (ph_real)ph__rng_next_uniform(random);
}

/* ---- comparing ---- */

static void assert_same_piece(
    const struct ph_parameter *piece, const struct ph_parameter *whole, const struct ph__slice_shard *shard)
{
    const size_t rows = piece->shape.dims[0], columns = piece->shape.dims[1], dim = whole->shape.dims[1];
    const size_t number = piece->row_format == PH_ROWS_FP32 ? sizeof(ph_real) : sizeof(uint16_t);
    for (size_t row = 0; row < rows; row++) {
        const size_t place = (shard->first_row + row) * dim + shard->first_column;
        assert_memory_equal((const char *)piece->memory + row * columns * number,
            (const char *)whole->memory + place * number, columns * number);
        if (piece->low != NULL)
            assert_memory_equal(piece->low + row * columns, whole->low + place, columns * sizeof *piece->low);
        for (size_t s = 0; s < piece->num_slots; s++) {
            const bool is_per_row = piece->slots[s].is_per_row;
            assert_memory_equal(piece->slots[s].data + (is_per_row ? row : row * columns),
                whole->slots[s].data + (is_per_row ? shard->first_row + row : place),
                (is_per_row ? 1 : columns) * sizeof(ph_real));
        }
    }
}

static void assert_same_table(struct learner *pieces, struct learner *whole)
{
    const struct cuts *cuts = pieces->cuts;
    const struct ph_parameter *table = table_model_parameter(&whole->model, "piece0.0");
    for (size_t run = 0; run < cuts->num_runs; run++)
        for (size_t piece = 0; piece < cuts->num_pieces[run]; piece++) {
            char name[64];
            snprintf(name, sizeof name, "piece%zu.%zu", run, piece);
            assert_same_piece(table_model_parameter(&pieces->model, name), table, &cuts->shards[run][piece]);
        }
}

/* ---- trials ---- */

static struct cuts no_cuts(size_t dim)
{
    return (struct cuts){.dim = dim,
        .num_runs = 1,
        .rows = {0, ROWS},
        .num_pieces = {1},
        .columns = {{dim}},
        .shards = {{{0, ROWS, 0, dim}}}};
}

/* At most MAX_COLUMN_CUTS runs of columns that begin at multiples of 4, none empty. */
static void draw_columns(struct ph__rng_sequence *random, struct cuts *cuts, size_t run, bool may_cut_columns)
{
    size_t column = 0, piece = 0;
    while (column < cuts->dim) {
        const size_t left = cuts->dim - column, steps = (left - 1) / PH_SHARD_COLUMN_STEP;
        const bool is_last = !may_cut_columns || steps == 0 || piece + 1 == MAX_COLUMN_CUTS;
        const size_t columns = is_last ? left : (1 + ph__rng_below(random, steps)) * PH_SHARD_COLUMN_STEP;
        cuts->columns[run][piece] = columns;
        cuts->shards[run][piece++] = (struct ph__slice_shard){cuts->rows[run], ROWS, column, cuts->dim};
        column += columns;
    }
    cuts->num_pieces[run] = piece;
}

static struct cuts draw_cuts(struct ph__rng_sequence *random, size_t dim, bool may_cut_columns)
{
    struct cuts cuts = {.dim = dim, .num_runs = MAX_RUNS};
    const size_t cut = ph__rng_below(random, ROWS + 1);
    cuts.rows[1] = cut;
    cuts.rows[2] = cut + ph__rng_below(random, ROWS - cut + 1);
    cuts.rows[3] = ROWS;
    for (size_t run = 0; run < MAX_RUNS; run++)
        draw_columns(random, &cuts, run, may_cut_columns);
    return cuts;
}

static void check(struct ph__rng_sequence *random, enum ph_optimizer_kind kind, enum ph_row_format format,
    size_t dim, bool reads_gradient)
{
    const struct cuts whole_cuts = no_cuts(dim), cuts = draw_cuts(random, dim, kind != PH_ROWWISE_ADAGRAD);
    const struct ph_optimizer optimizer = table_optimizer(kind, reads_gradient, reads_gradient ? 0.1 : 0);
    struct learner whole, pieces;
    learner_init(&whole, &whole_cuts, &optimizer, format, reads_gradient);
    learner_init(&pieces, &cuts, &optimizer, format, reads_gradient);
    assert_same_table(&pieces, &whole);
    ph_real *labels = calloc(SAMPLES * dim, sizeof *labels);
    assert_non_null(labels);
    for (uint64_t step = 1; step <= STEPS; step++) {
        struct step_input input = {.labels = labels};
        draw_input(random, dim, &input);
        run_step(&whole, &input, step);
        run_step(&pieces, &input, step);
        assert_same_table(&pieces, &whole);
    }
    free(labels);
    learner_fini(&whole);
    learner_fini(&pieces);
}

/* Narrow rows, whose random words are drawn together, and wide ones, of all lengths of a last vector. */
static void pieces_learn_what_the_whole_table_learns(void **state)
{
    (void)state;
    static const size_t dims[] = {5, 8, 20, 36, 62, 64, 124, 150, 200, 280};
    static const enum ph_row_format formats[] = {
        PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    enum ph__isa best;
    assert_ok(ph__cpu_isa(&best));
    for (int isa = 0; isa <= (int)best; isa++) {
        assert_int_equal(setenv("PHLOEM_ISA", ph__isa_name((enum ph__isa)isa), 1), 0);
        for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++)
            for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
                for (size_t format = 0; format < 4; format++)
                    check(&random, (enum ph_optimizer_kind)kind, formats[format], dims[i], i % 2);
    }
    unsetenv("PHLOEM_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_learn_what_the_whole_table_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
