#include "gradient/gradient_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/executor.h"

#define MAX_WRT 128
#define TOLERANCE 1e-6

/* The first that agrees counts: a shorter step leaves a kink beside it, a longer one drowns what norms of
 * nearly equal numbers make of rounding. A gradient that is wrong agrees with none. */
static const double steps[] = {1e-5, 1e-6, 1e-4};
enum { NUM_STEPS = sizeof steps / sizeof *steps };

/* What the loss is differentiated by: a parameter, a table, or the dense features. */
struct variable {
    char name[64]; /* "" for the dense features */
    ph_value value, gradient;
};

struct fixture {
    const struct gradient_case *gradient_case;
    struct ph__rng_sequence random;
    struct variable variables[MAX_WRT];
    size_t num_variables;
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph_batch batch;
    ph_real *dense; /* batch.dense, writable */
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

/* ---- the program ---- */

static ph_value loss_of(struct ph_builder *builder, ph_value result)
{
    struct ph_type type = ph_value_type(builder, result);
    if (result == 0 || type.kind == PH_SCALAR)
        return result;
    size_t columns = ph__type_elements_from(&type, 1);
    ph_value logits = type.num_dims == 2 ? result : ph_reshape(builder, result, 1, &columns);
    return ph_bce_with_logits(builder, logits, ph_input_labels(builder, columns), 0, 0);
}

static void list_variables(struct fixture *fixture, struct ph_builder *builder, ph_value x)
{
    if (x != 0)
        fixture->variables[fixture->num_variables++].value = x;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++) {
        assert_true(fixture->num_variables < MAX_WRT);
        struct variable *variable = &fixture->variables[fixture->num_variables++];
        variable->value = ph_builder_parameter(builder, i);
        snprintf(variable->name, sizeof variable->name, "%s", ph_value_name(builder, variable->value));
    }
}

static void differentiate(struct fixture *fixture, struct ph_builder *builder, ph_value loss)
{
    ph_value wrt[MAX_WRT], gradients[MAX_WRT];
    for (size_t i = 0; i < fixture->num_variables; i++)
        wrt[i] = fixture->variables[i].value;
    ph_backward(builder, loss, fixture->num_variables, wrt, gradients);
    for (size_t i = 0; i < fixture->num_variables; i++) {
        char name[32];
        snprintf(name, sizeof name, "gradient.%zu", i);
        fixture->variables[i].gradient = gradients[i];
        if (gradients[i] != 0)
            ph_output(builder, name, gradients[i]);
    }
}

static void build_program(struct fixture *fixture)
{
    const struct gradient_case *gradient_case = fixture->gradient_case;
    struct ph_builder *builder = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = gradient_case->num_dense > 0 ? ph_input_dense(builder, gradient_case->num_dense) : 0;
    ph_value loss = loss_of(builder, gradient_case->build(builder, x));
    ph_output(builder, "loss", loss);
    list_variables(fixture, builder, x);
    ph_builder_begin_entry(builder, "backward");
    differentiate(fixture, builder, loss);
    fixture->batch.num_tasks = gradient_case->num_tasks;
    if (ph_builder_status(builder) == PH_OK && builder->graph.batch_inputs[PH_INPUT_LABELS] != 0)
        fixture->batch.num_tasks =
            ph_value_type(builder, builder->graph.batch_inputs[PH_INPUT_LABELS]).dims[1].extent;
    assert_ok(ph_builder_finish(builder, &fixture->program));
    ph_builder_destroy(builder);
    if (ph_program_num_nodes(fixture->program, gradient_case->op) == 0)
        fail_msg("the program has no operator %s", gradient_case->op);
}

/* ---- the batch ---- */

static ph_real *random_normals(struct fixture *fixture, size_t count)
{
    ph_real *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (ph_real)ph__rng_next_normal(&fixture->random);
    return values;
}

static ph_real *random_uniforms(struct fixture *fixture, size_t count)
{
    ph_real *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (ph_real)ph__rng_next_uniform(&fixture->random);
    return values;
}

static ph_real *random_bits(struct fixture *fixture, size_t count)
{
    ph_real *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (ph_real)ph__rng_below(&fixture->random, 2);
    return values;
}

static void make_ids(struct fixture *fixture, struct ph_batch *batch)
{
    const struct gradient_case *gradient_case = fixture->gradient_case;
    const size_t num_bags = batch->num_sparse * batch->num_samples;
    int32_t *lengths = allocate(num_bags, sizeof *lengths);
    uint32_t *offsets = allocate(num_bags + 1, sizeof *offsets);
    for (size_t bag = 0; bag < num_bags; bag++) {
        lengths[bag] = (int32_t)ph__rng_below(&fixture->random, gradient_case->max_ids + 1);
        offsets[bag + 1] = offsets[bag] + (uint32_t)lengths[bag];
    }
    batch->num_ids = offsets[num_bags];
    int64_t *ids = allocate(batch->num_ids, sizeof *ids);
    for (size_t i = 0; i < batch->num_ids; i++)
        ids[i] = (int64_t)ph__rng_below(&fixture->random, gradient_case->num_rows);
    batch->lengths = lengths;
    batch->offsets = offsets;
    batch->ids = ids;
    if (gradient_case->has_id_weights)
        batch->id_weights = random_normals(fixture, batch->num_ids);
}

static void make_batch(struct fixture *fixture)
{
    const struct gradient_case *gradient_case = fixture->gradient_case;
    struct ph_batch *batch = &fixture->batch;
    batch->num_samples = gradient_case->num_samples;
    batch->num_dense = gradient_case->num_dense;
    batch->num_sparse = gradient_case->num_sparse;
    batch->first_sample = 1000;
    batch->dense = fixture->dense = random_normals(fixture, batch->num_samples * batch->num_dense);
    batch->labels = random_uniforms(fixture, batch->num_samples * batch->num_tasks);
    if (gradient_case->has_mask)
        batch->label_mask = random_bits(fixture, batch->num_samples * batch->num_tasks);
    if (gradient_case->has_weights)
        batch->weights = random_uniforms(fixture, batch->num_samples);
    make_ids(fixture, batch);
}

static void free_batch(struct ph_batch *batch)
{
    const void *arrays[] = {batch->dense, batch->labels, batch->label_mask, batch->weights, batch->lengths,
        batch->offsets, batch->ids, batch->id_weights};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free((void *)(uintptr_t)arrays[i]);
}

/* ---- running ---- */

static void randomise_store(struct fixture *fixture)
{
    const double scale = fixture->gradient_case->parameter_scale;
    for (size_t i = 0; i < ph_store_num_tensors(fixture->store); i++) {
        struct ph_tensor tensor = ph_store_tensor(fixture->store, i);
        ph_real *values = tensor.data;
        for (size_t j = 0; j < ph_shape_elements(&tensor.shape); j++)
            values[j] = (ph_real)((scale > 0 ? scale : 1) * ph__rng_next_normal(&fixture->random));
    }
    ph_store_touch(fixture->store);
}

static void set_up(struct fixture *fixture, const struct gradient_case *gradient_case)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = 1};
    *fixture = (struct fixture){.gradient_case = gradient_case, .random = {.key = {.seed = test_seed()}}};
    build_program(fixture);
    make_batch(fixture);
    assert_ok(ph_store_create(1, &fixture->store));
    assert_ok(ph_state_create(&fixture->state));
    assert_ok(ph_backend_create(&options, &fixture->backend));
    assert_ok(ph_executor_create(
        fixture->program, fixture->store, fixture->state, fixture->backend, &fixture->executor));
    assert_ok(ph_workspace_create(
        fixture->executor, fixture->batch.num_samples, fixture->batch.num_ids, &fixture->workspace));
    assert_ok(ph_workspace_bind(fixture->workspace, &fixture->batch, 1, 1));
    randomise_store(fixture);
}

static void tear_down(struct fixture *fixture)
{
    ph_workspace_destroy(fixture->workspace);
    ph_executor_destroy(fixture->executor);
    ph_backend_destroy(fixture->backend);
    ph_state_destroy(fixture->state);
    ph_store_destroy(fixture->store);
    ph_program_destroy(fixture->program);
    free_batch(&fixture->batch);
}

static double loss_now(struct fixture *fixture)
{
    double loss = 0;
    ph_store_touch(fixture->store);
    assert_ok(ph_workspace_run(fixture->workspace, "forward"));
    assert_ok(ph_workspace_scalar(fixture->workspace, "loss", &loss));
    return loss;
}

static double loss_at(struct fixture *fixture, ph_real *value, double at)
{
    const ph_real kept = *value;
    *value = (ph_real)at;
    const double loss = loss_now(fixture);
    *value = kept;
    return loss;
}

/* (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12h: exact for polynomials of the fourth degree */
static double difference(struct fixture *fixture, ph_real *value, double step)
{
    const double at = (double)*value;
    const double near = loss_at(fixture, value, at + step) - loss_at(fixture, value, at - step);
    const double far = loss_at(fixture, value, at + 2 * step) - loss_at(fixture, value, at - 2 * step);
    return (8 * near - far) / (12 * step);
}

static size_t variable_data(struct fixture *fixture, const struct variable *variable, ph_real **data_out)
{
    if (variable->name[0] == '\0') {
        *data_out = fixture->dense;
        return fixture->batch.num_samples * fixture->batch.num_dense;
    }
    struct ph_parameter *parameter = fixture->workspace->values[variable->value].parameter;
    *data_out = parameter->data;
    return parameter->elements;
}

/* Adds a gradient, dense or sparse rows, to `gradient`, which has `elements` zeros. */
static void add_gradient(
    const struct ph__operand *operand, const uint64_t *extents, size_t elements, ph_real *gradient)
{
    struct ph_shape shape;
    const ph_real *data = operand->data;
    ph__type_shape(operand->type, extents, &shape);
    bool is_sparse = operand->type->kind == PH_SPARSE_ROWS;
    const size_t columns = is_sparse ? shape.dims[1] : 1;
    const size_t rows = is_sparse ? shape.dims[0] : ph_shape_elements(&shape);
    assert_true(is_sparse || rows == elements);
    for (size_t row = 0; row < rows; row++) {
        const size_t target = (is_sparse ? operand->index[row] : row) * columns;
        assert_true(target + columns <= elements);
        for (size_t column = 0; column < columns; column++)
            gradient[target + column] += data[row * columns + column];
    }
}

/* The gradient as the program computes it, malloc'ed; zeros where there is none. */
static ph_real *program_gradient(struct fixture *fixture, const struct variable *variable, size_t elements)
{
    ph_real *gradient = allocate(elements, sizeof *gradient);
    loss_now(fixture);
    assert_ok(ph_workspace_run(fixture->workspace, "backward"));
    if (variable->gradient != 0)
        add_gradient(
            &fixture->workspace->values[variable->gradient], fixture->workspace->extents, elements, gradient);
    return gradient;
}

static bool is_frozen(const struct fixture *fixture, const struct variable *variable, size_t element)
{
    const struct gradient_case *gradient_case = fixture->gradient_case;
    return variable->name[0] == '\0' &&
           element % gradient_case->num_dense >= gradient_case->num_dense - gradient_case->num_frozen;
}

static void check_element(
    struct fixture *fixture, const struct variable *variable, size_t element, double actual, ph_real *value)
{
    const bool has_none = is_frozen(fixture, variable, element);
    double expected = 0;
    for (size_t i = 0; i < NUM_STEPS; i++) {
        expected = has_none ? 0 : difference(fixture, value, steps[i]);
        if (fabs(actual - expected) <= TOLERANCE * (fabs(expected) + 1e-2))
            return;
    }
    fail_msg("%s: d loss / d %s[%zu] is %.12g, by differences %.12g", fixture->gradient_case->op,
        variable->name[0] != '\0' ? variable->name : "x", element, actual, expected);
}

static void check_variable(struct fixture *fixture, const struct variable *variable)
{
    ph_real *data = NULL;
    size_t elements = variable_data(fixture, variable, &data);
    ph_real *gradient = program_gradient(fixture, variable, elements);
    const size_t most = fixture->gradient_case->max_elements;
    const bool is_sampled = most > 0 && elements > most;
    for (size_t i = 0; i < (is_sampled ? most : elements); i++) {
        const size_t element = is_sampled ? ph__rng_below(&fixture->random, elements) : i;
        check_element(fixture, variable, element, (double)gradient[element], &data[element]);
    }
    free(gradient);
}

void check_gradients(const struct gradient_case *gradient_case)
{
    struct fixture fixture;
    set_up(&fixture, gradient_case);
    for (size_t i = 0; i < fixture.num_variables; i++)
        check_variable(&fixture, &fixture.variables[i]);
    tear_down(&fixture);
}

ph_value take_columns(struct ph_builder *builder, ph_value x, size_t begin, size_t rank, const size_t *dims)
{
    size_t columns = 1;
    for (size_t i = 0; i < rank; i++)
        columns *= dims[i];
    ph_value slice = ph_slice(builder, x, 1, begin, columns);
    return rank == 1 ? slice : ph_reshape(builder, slice, rank, dims);
}
