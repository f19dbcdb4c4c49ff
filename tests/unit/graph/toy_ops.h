/* Small operators for tests of the graph, so that these need no room above it. Everything is serial. */
#ifndef PH_TEST_TOY_OPS_H
#define PH_TEST_TOY_OPS_H

#include "graph/graph.h"

static inline void toy_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    double elements = (double)ph_shape_elements(&call->inputs[0].shape);
    *cost_out = (struct ph__cost){.flops = elements, .bytes = 2 * elements * sizeof(ph_real)};
}

static inline ph_status toy_same_infer(struct ph__infer *infer)
{
    infer->outputs[0] = infer->inputs[0];
    return PH_OK;
}

/* ---- twice: y = 2 x, in place where it may ---- */
static inline ph_status toy_twice_run(struct ph__call *call)
{
    const ph_real *x = call->inputs[0].data;
    ph_real *y = call->outputs[0].data;
    for (size_t i = 0; i < ph_shape_elements(&call->inputs[0].shape); i++)
        y[i] = 2 * x[i];
    return PH_OK;
}

static void toy_twice_gradient(struct ph__gradient *gradient);
static const struct ph__op toy_twice = {.name = "twice",
    .traits = PH_OP_IN_PLACE,
    .infer = toy_same_infer,
    .gradient = toy_twice_gradient,
    .cost = toy_cost,
    .run = toy_twice_run};

static void toy_twice_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] =
        ph__emit1(gradient->builder, &toy_twice, NULL, NULL, 0, 1, gradient->output_gradients);
}

/* ---- product: y = a b, same shapes ---- */
static inline ph_status toy_product_run(struct ph__call *call)
{
    const ph_real *a = call->inputs[0].data, *b = call->inputs[1].data;
    ph_real *y = call->outputs[0].data;
    for (size_t i = 0; i < ph_shape_elements(&call->inputs[0].shape); i++)
        y[i] = a[i] * b[i];
    return PH_OK;
}

static inline ph_status toy_product_infer(struct ph__infer *infer)
{
    char a[96], b[96];
    if (!ph__type_equal(&infer->inputs[0], &infer->inputs[1]))
        return ph_fail(PH_ERROR_CONFIG, "%s: shapes %s and %s differ", infer->name,
            ph__type_text(&infer->inputs[0], a), ph__type_text(&infer->inputs[1], b));
    return toy_same_infer(infer);
}

static void toy_product_gradient(struct ph__gradient *gradient);
static const struct ph__op toy_product = {.name = "product",
    .infer = toy_product_infer,
    .gradient = toy_product_gradient,
    .cost = toy_cost,
    .run = toy_product_run};

static void toy_product_gradient(struct ph__gradient *gradient)
{
    for (size_t k = 0; k < 2; k++)
        if (gradient->is_wanted[k])
            gradient->input_gradients[k] = ph__emit1(gradient->builder, &toy_product, NULL, NULL, 0, 2,
                (ph_value[]){gradient->output_gradients[0], gradient->node->inputs[1 - k]});
}

/* ---- fill: an array of x's shape, each element the scalar s ---- */
static inline ph_status toy_fill_run(struct ph__call *call)
{
    ph_real *y = call->outputs[0].data;
    for (size_t i = 0; i < ph_shape_elements(&call->outputs[0].shape); i++)
        y[i] = (ph_real)*call->inputs[1].scalar;
    return PH_OK;
}

static const struct ph__op toy_fill = {
    .name = "fill", .infer = toy_same_infer, .cost = toy_cost, .run = toy_fill_run};

/* ---- sum: scalar ---- */
static inline ph_status toy_sum_run(struct ph__call *call)
{
    const ph_real *x = call->inputs[0].data;
    double sum = 0;
    for (size_t i = 0; i < ph_shape_elements(&call->inputs[0].shape); i++)
        sum += (double)x[i];
    *call->outputs[0].scalar = sum;
    return PH_OK;
}

static inline ph_status toy_sum_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static inline void toy_sum_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[0] = ph__emit1(gradient->builder, &toy_fill, NULL, NULL, 0, 2,
        (ph_value[]){gradient->node->inputs[0], gradient->output_gradients[0]});
}

static const struct ph__op toy_sum = {.name = "sum",
    .infer = toy_sum_infer,
    .gradient = toy_sum_gradient,
    .cost = toy_cost,
    .run = toy_sum_run};

/* ---- positive: the positive elements of a (B,1) value, how many is known at run time only ---- */
static inline ph_status toy_positive_infer(struct ph__infer *infer)
{
    uint32_t symbol = ph__builder_symbol(infer->builder, "positive", PH_SYMBOL_BATCH, 1, SIZE_MAX);
    infer->outputs[0] = ph__dense_type(1, (struct ph_dim[]){ph__dim_of(1, symbol)});
    return ph_builder_status(infer->builder);
}

static inline ph_status toy_positive_run(struct ph__call *call)
{
    const ph_real *x = call->inputs[0].data;
    ph_real *y = call->outputs[0].data;
    size_t count = 0;
    for (size_t i = 0; i < ph_shape_elements(&call->inputs[0].shape); i++)
        if (x[i] > 0)
            y[count++] = x[i];
    call->extents[call->outputs[0].type->dims[0].symbol] = count;
    return PH_OK;
}

static const struct ph__op toy_positive = {
    .name = "positive", .infer = toy_positive_infer, .cost = toy_cost, .run = toy_positive_run};

/* ---- keep: a copy of a parameter, made once a version; the first element counts the makings ---- */
static inline ph_status toy_keep_run(struct ph__call *call)
{
    const ph_real *x = call->inputs[0].data;
    ph_real *y = call->outputs[0].data;
    for (size_t i = 1; i < ph_shape_elements(&call->inputs[0].shape); i++)
        y[i] = x[i];
    y[0] += 1;
    return PH_OK;
}

static const struct ph__op toy_keep = {.name = "keep",
    .traits = PH_OP_ONCE_PER_VERSION,
    .infer = toy_same_infer,
    .cost = toy_cost,
    .run = toy_keep_run};

/* ---- bump: an effect, adds 1 to every element of a parameter ---- */
static inline ph_status toy_bump_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static inline ph_status toy_bump_run(struct ph__call *call)
{
    ph_real *x = call->inputs[0].data;
    for (size_t i = 0; i < ph_shape_elements(&call->inputs[0].shape); i++)
        x[i] += 1;
    call->inputs[0].parameter->version++;
    return PH_OK;
}

static const struct ph__op toy_bump = {.name = "bump",
    .traits = PH_OP_HAS_EFFECT,
    .infer = toy_bump_infer,
    .cost = toy_cost,
    .run = toy_bump_run};

static inline ph_value toy1(struct ph_builder *builder, const struct ph__op *op, ph_value x)
{
    return ph__emit1(builder, op, NULL, NULL, 0, 1, &x);
}

static inline ph_value toy2(struct ph_builder *builder, const struct ph__op *op, ph_value a, ph_value b)
{
    return ph__emit1(builder, op, NULL, NULL, 0, 2, (ph_value[]){a, b});
}

/* A batch of dense features only. */
static inline struct ph_batch toy_batch(size_t num_samples, size_t num_dense, const ph_real *dense)
{
    return (struct ph_batch){.num_samples = num_samples, .num_dense = num_dense, .dense = dense};
}

/* A program with all that it takes to run it, serially. */
struct toy_machine {
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

#define TOY_MACHINE_START(machine, builder, batch_size) TOY_TEAM_START(machine, builder, batch_size, 1)

/* The same with a team, for nodes that run side by side. */
#define TOY_TEAM_START(machine, builder, batch_size, threads)                                               \
    do {                                                                                                    \
        assert_ok(ph_builder_finish((builder), &(machine)->program));                                       \
        ph_builder_destroy(builder);                                                                        \
        assert_ok(ph_store_create(1, &(machine)->store));                                                   \
        assert_ok(ph_state_create(&(machine)->state));                                                      \
        assert_ok(ph_backend_create(&(struct ph_backend_options){.size = sizeof(struct ph_backend_options), \
                                        .num_threads = (threads)},                                          \
            &(machine)->backend));                                                                          \
        assert_ok(ph_executor_create((machine)->program, (machine)->store, (machine)->state,                \
            (machine)->backend, &(machine)->executor));                                                     \
        assert_ok(ph_workspace_create((machine)->executor, (batch_size), 0, &(machine)->workspace));        \
    } while (0)

static inline void toy_machine_stop(struct toy_machine *machine)
{
    ph_workspace_destroy(machine->workspace);
    ph_executor_destroy(machine->executor);
    ph_backend_destroy(machine->backend);
    ph_state_destroy(machine->state);
    ph_store_destroy(machine->store);
    ph_program_destroy(machine->program);
}

#endif
