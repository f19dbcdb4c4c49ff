/* Six optimizers on a table and on dense parameters against naive formulas in double, step by step. */
#include "op/update/op_update.h"

#include <math.h>

#include "unit/op/table_fixture.h"

/* One parameter as the oracle sees it: rows x columns in double. */
struct oracle {
    size_t rows, columns;
    bool is_table;
    double *weight, *m, *s, *gradient;
    bool *is_touched; /* by row */
};

static double *doubles(size_t count)
{
    double *values = calloc(count + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

static struct oracle make_oracle(const struct ph_parameter *parameter, size_t rows, size_t columns)
{
    const size_t count = rows * columns;
    struct oracle oracle = {rows, columns, parameter->is_table, doubles(count), doubles(count),
        doubles(count), doubles(count), calloc(rows, sizeof(bool))};
    for (size_t i = 0; i < count; i++)
        oracle.weight[i] = (double)parameter->data[i];
    return oracle;
}

static void free_oracle(struct oracle *oracle)
{
    free(oracle->weight);
    free(oracle->m);
    free(oracle->s);
    free(oracle->gradient);
    free(oracle->is_touched);
}

static void clear(struct oracle *oracle)
{
    memset(oracle->gradient, 0, oracle->rows * oracle->columns * sizeof(double));
    memset(oracle->is_touched, 0, oracle->rows * sizeof(bool));
}

struct oracles {
    struct oracle table, vectors, bias;
};

/* Share of position p in its bag's sum. */
static double share(const struct table_model *model, size_t bag, size_t p)
{
    const double weight = model->batch.id_weights != NULL ? (double)model->batch.id_weights[p] : 1;
    return model->trial->is_mean ? weight / model->batch.lengths[bag] : weight;
}

/* Adds d loss / d everything through z[b,f,d]. */
static void add_gradient_of(
    const struct table_model *model, struct oracles *oracles, size_t b, size_t f, size_t d)
{
    const struct ph_batch *batch = &model->batch;
    const struct table_case *trial = model->trial;
    const size_t dim = trial->dim, bag = f * batch->num_samples + b, width = trial->num_features * dim;
    const double x = (double)batch->dense[b * trial->num_features + f];
    double z = x * oracles->vectors.weight[f * dim + d] + oracles->bias.weight[f * dim + d];
    for (size_t p = batch->offsets[bag]; p < batch->offsets[bag + 1]; p++)
        z += share(model, bag, p) *
             oracles->table.weight[(f * trial->num_rows + (size_t)batch->ids[p]) * dim + d];
    const double label = (double)batch->labels[b * width + f * dim + d];
    const double g = (1 / (1 + exp(-z)) - label) / (double)(batch->num_samples * width);
    oracles->vectors.gradient[f * dim + d] += x * g;
    oracles->bias.gradient[f * dim + d] += g;
    for (size_t p = batch->offsets[bag]; p < batch->offsets[bag + 1]; p++) {
        const size_t row = f * trial->num_rows + (size_t)batch->ids[p];
        oracles->table.gradient[row * dim + d] += share(model, bag, p) * g;
        oracles->table.is_touched[row] = true;
    }
}

static void compute_gradients(const struct table_model *model, struct oracles *oracles)
{
    clear(&oracles->table);
    clear(&oracles->vectors);
    clear(&oracles->bias);
    for (size_t b = 0; b < model->batch.num_samples; b++)
        for (size_t f = 0; f < model->trial->num_features; f++)
            for (size_t d = 0; d < model->trial->dim; d++)
                add_gradient_of(model, oracles, b, f, d);
}

static bool is_visited(const struct oracle *oracle, const struct ph_optimizer *optimizer, size_t row)
{
    return !oracle->is_table || optimizer->is_whole_table || oracle->is_touched[row];
}

/* The l2 term joins the gradient; returns the squares of what the optimizer sees. */
static double add_decay(struct oracle *oracle, const struct ph_optimizer *optimizer)
{
    double squares = 0;
    for (size_t i = 0; i < oracle->rows * oracle->columns; i++) {
        if (!is_visited(oracle, optimizer, i / oracle->columns))
            continue;
        oracle->gradient[i] += optimizer->l2 * oracle->weight[i];
        squares += oracle->gradient[i] * oracle->gradient[i];
    }
    return squares;
}

static double row_mean_of_squares(const struct oracle *oracle, size_t row, double scale)
{
    double sum = 0;
    for (size_t d = 0; d < oracle->columns; d++)
        sum += pow(scale * oracle->gradient[row * oracle->columns + d], 2);
    return sum / (double)oracle->columns;
}

static double step_of(const struct ph_optimizer *o, double g, double *m, double *s, double t)
{
    switch (o->rule.kind) {
    case PH_SGD:
        return g;
    case PH_MOMENTUM:
        *m = o->rule.momentum * *m + g;
        return o->rule.is_nesterov ? g + o->rule.momentum * *m : *m;
    case PH_ADAGRAD:
        *s += g * g;
        return g / (sqrt(*s) + o->rule.epsilon);
    case PH_ROWWISE_ADAGRAD:
        return g / (sqrt(*s) + o->rule.epsilon);
    default:
        *m = o->rule.beta1 * *m + (1 - o->rule.beta1) * g;
        *s = o->rule.beta2 * *s + (1 - o->rule.beta2) * g * g;
        return *m / (1 - pow(o->rule.beta1, t)) / (sqrt(*s / (1 - pow(o->rule.beta2, t))) + o->rule.epsilon);
    }
}

static void update(struct oracle *oracle, const struct ph_optimizer *optimizer, double scale, double t)
{
    const double rate = TABLE_LEARNING_RATE * optimizer->learning_rate_factor;
    for (size_t row = 0; row < oracle->rows; row++) {
        if (!is_visited(oracle, optimizer, row))
            continue;
        const double mean = row_mean_of_squares(oracle, row, scale);
        for (size_t i = row * oracle->columns; i < (row + 1) * oracle->columns; i++) {
            if (optimizer->rule.kind == PH_ROWWISE_ADAGRAD)
                oracle->s[i] += mean;
            if (optimizer->rule.kind == PH_ADAMW)
                oracle->weight[i] -= rate * optimizer->rule.weight_decay * oracle->weight[i];
            oracle->weight[i] -=
                rate * step_of(optimizer, scale * oracle->gradient[i], &oracle->m[i], &oracle->s[i], t);
        }
    }
}

static void run_oracles(const struct table_model *model, struct oracles *oracles, double t, double *clip_out)
{
    const struct ph_optimizer *optimizer = &model->trial->optimizer;
    compute_gradients(model, oracles);
    const double squares = add_decay(&oracles->table, optimizer) + add_decay(&oracles->vectors, optimizer) +
                           add_decay(&oracles->bias, optimizer);
    *clip_out = model->trial->max_norm > 0 ? fmin(1, model->trial->max_norm / (sqrt(squares) + 1e-6)) : 1;
    update(&oracles->table, optimizer, *clip_out, t);
    update(&oracles->vectors, optimizer, *clip_out, t);
    update(&oracles->bias, optimizer, *clip_out, t);
}

static void assert_near_oracle(const struct ph_parameter *parameter, const struct oracle *oracle)
{
    for (size_t i = 0; i < parameter->elements; i++)
        assert_near((double)parameter->data[i], oracle->weight[i], 3e-5, 1e-4);
}

static void check(const struct table_case *trial)
{
    enum { STEPS = 4 };
    struct table_model model;
    table_model_init(&model, trial);
    struct oracles oracles = {
        .table = make_oracle(model.table, trial->num_features * trial->num_rows, trial->dim),
        .vectors = make_oracle(model.vectors, trial->num_features, trial->dim),
        .bias = make_oracle(model.bias, 1, trial->num_features * trial->dim),
    };
    for (uint64_t step = 1; step <= STEPS; step++) {
        double clip, clip_here;
        table_model_next_batch(&model);
        assert_ok(table_model_run(&model, step));
        run_oracles(&model, &oracles, (double)step, &clip);
        if (trial->max_norm > 0) {
            assert_ok(ph_workspace_scalar(model.workspace, "clip", &clip_here));
            assert_near(clip_here, clip, 0, 1e-4);
        }
        assert_near_oracle(model.table, &oracles.table);
        assert_near_oracle(model.vectors, &oracles.vectors);
        assert_near_oracle(model.bias, &oracles.bias);
    }
    free_oracle(&oracles.table);
    free_oracle(&oracles.vectors);
    free_oracle(&oracles.bias);
    table_model_fini(&model);
}

static void check_all(enum ph_optimizer_kind kind)
{
    for (int is_whole = 0; is_whole < 2; is_whole++)
        for (int is_clipped = 0; is_clipped < 2; is_clipped++)
            for (int has_l2 = 0; has_l2 < 2; has_l2++)
                check(&(struct table_case){
                    .num_features = 3,
                    .dim = 5,
                    .num_rows = 11,
                    .num_samples = 6,
                    .max_ids = 4,
                    .optimizer = table_optimizer(kind, is_whole, has_l2 ? 0.03 : 0),
                    .max_norm = is_clipped ? 0.02 : 0,
                });
}

static void sgd_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_SGD);
}

static void momentum_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_MOMENTUM);
}

static void adagrad_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_ADAGRAD);
}

static void rowwise_adagrad_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_ROWWISE_ADAGRAD);
}

static void adam_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_ADAM);
}

static void adamw_is_the_formula(void **state)
{
    (void)state;
    check_all(PH_ADAMW);
}

static void mean_and_weighted_pooling_update_by_their_shares(void **state)
{
    (void)state;
    for (int is_mean = 0; is_mean < 2; is_mean++)
        for (int has_weights = 0; has_weights < 2; has_weights++)
            for (int reads = 0; reads < 2; reads++)
                check(&(struct table_case){.num_features = 2,
                    .dim = 9,
                    .num_rows = 6,
                    .num_samples = 7,
                    .max_ids = 5,
                    .is_mean = is_mean,
                    .has_id_weights = has_weights,
                    .reads_gradient = reads,
                    .optimizer = table_optimizer(PH_ADAGRAD, false, 0)});
}

static void a_large_norm_is_not_clipped(void **state)
{
    (void)state;
    check(&(struct table_case){.num_features = 2,
        .dim = 3,
        .num_rows = 6,
        .num_samples = 7,
        .max_ids = 2,
        .max_norm = 1e6,
        .optimizer = table_optimizer(PH_SGD, false, 0)});
}

static void every_update_makes_its_parameter_newer(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        const struct table_case trial = {.num_features = 1,
            .dim = 2,
            .num_rows = 3,
            .num_samples = 2,
            .max_ids = 2,
            .reads_gradient = reads,
            .optimizer = table_optimizer(PH_SGD, false, 0)};
        struct table_model model;
        table_model_init(&model, &trial);
        table_model_next_batch(&model);
        const uint64_t table = model.table->version, bias = model.bias->version;
        assert_ok(table_model_run(&model, 1));
        assert_true(model.table->version > table && model.bias->version > bias);
        table_model_fini(&model);
    }
}

static void slots_are_announced_as_they_are_made(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        const struct table_case trial = {.num_features = 2,
            .dim = 4,
            .num_rows = 3,
            .num_samples = 2,
            .max_ids = 2,
            .optimizer = table_optimizer((enum ph_optimizer_kind)kind, false, 0)};
        struct table_model model;
        struct ph_store *empty;
        uint64_t announced;
        table_model_init(&model, &trial);
        assert_ok(ph_store_create(1, &empty));
        assert_ok(ph_program_missing_bytes(model.program, empty, &announced));
        assert_int_equal(announced, ph_store_parameter_bytes(model.store) + ph_store_slot_bytes(model.store));
        ph_store_destroy(empty);
        table_model_fini(&model);
    }
}

static void what_is_no_parameter_is_not_updated(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = ph_input_dense(builder, 2), scalar = ph_input_scalar(builder, "s");
    const struct ph_optimizer optimizer = table_optimizer(PH_SGD, false, 0);
    assert_int_equal(ph_update(builder, x, x, &optimizer, scalar, scalar, 0), 0);
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "'dense' is not a parameter");
    ph_builder_destroy(builder);
}

static void a_gradient_of_another_shape_is_refused(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const struct ph_init zero = {PH_INIT_CONSTANT, 0};
    ph_value a = ph_parameter(builder, "a", 1, (size_t[]){3}, zero);
    ph_value b = ph_parameter(builder, "b", 1, (size_t[]){4}, zero), scalar = ph_input_scalar(builder, "s");
    const struct ph_optimizer optimizer = table_optimizer(PH_SGD, false, 0);
    ph_update(builder, a, b, &optimizer, scalar, scalar, 0);
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, "parameter's shape");
    ph_builder_destroy(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_is_the_formula),
        cmocka_unit_test(momentum_is_the_formula),
        cmocka_unit_test(adagrad_is_the_formula),
        cmocka_unit_test(rowwise_adagrad_is_the_formula),
        cmocka_unit_test(adam_is_the_formula),
        cmocka_unit_test(adamw_is_the_formula),
        cmocka_unit_test(mean_and_weighted_pooling_update_by_their_shares),
        cmocka_unit_test(a_large_norm_is_not_clipped),
        cmocka_unit_test(every_update_makes_its_parameter_newer),
        cmocka_unit_test(slots_are_announced_as_they_are_made),
        cmocka_unit_test(what_is_no_parameter_is_not_updated),
        cmocka_unit_test(a_gradient_of_another_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
