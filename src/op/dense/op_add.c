/* a + b: of one shape, or b (K) added to every row of a (...,K). Elementwise, so the result may take over the
 * memory of a. */
#include "op/operator.h"

static ph_status add_infer(struct ph__infer *infer)
{
    const struct ph_type *a = &infer->inputs[0], *b = &infer->inputs[1];
    bool is_same = ph__type_is_real(a) && ph__type_equal(a, b);
    bool is_row = ph__type_is_real(a) && ph__type_is_real_of_dims(b, 1) &&
                  ph__dim_equal(a->dims[a->num_dims - 1], b->dims[0]) && b->dims[0].symbol == 0;
    if (!is_same && !is_row)
        return ph__infer_fail(infer, "two arrays of one shape, or (...,K) and (K)");
    infer->outputs[0] = *a;
    return PH_OK;
}

static void add_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const struct ph_type a = ph_value_type(builder, node.inputs[0]),
                         b = ph_value_type(builder, node.inputs[1]);
    ph_value dy = gradient->output_gradients[0];
    gradient->input_gradients[0] = dy;
    if (gradient->is_wanted[1])
        gradient->input_gradients[1] = ph__type_equal(&a, &b) ? dy : ph__sum_rows(builder, dy);
}

static void add_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

struct add_call {
    const struct ph__kernels *kernels;
    size_t columns;
    const ph_real *a, *b;
    ph_real *y;
};

static void add_row(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct add_call *add = argument;
    for (size_t row = first; row < last; row++)
        add->kernels->add(add->columns, add->a + row * add->columns, add->b, add->y + row * add->columns);
}

static ph_status add_run(struct ph__call *call)
{
    const struct ph__operand *a = &call->inputs[0], *b = &call->inputs[1];
    if (a->shape.num_dims == b->shape.num_dims)
        return ph__run_binary(call, call->backend->kernels->add, 0, 1);
    struct add_call add = {call->backend->kernels, b->shape.dims[0], a->data, b->data, call->outputs[0].data};
    const size_t rows = add.columns > 0 ? ph__elements(a) / add.columns : 0;
    ph__for_blocks(call->backend, rows, ph__block_rows(add.columns), add_row, &add);
    return PH_OK;
}

const struct ph__op ph__op_add = {
    .name = "add",
    .traits = PH_OP_IN_PLACE,
    .infer = add_infer,
    .gradient = add_gradient,
    .cost = add_cost,
    .run = add_run,
};

ph_value ph_add(struct ph_builder *builder, ph_value a, ph_value b)
{
    const ph_value inputs[] = {a, b};
    return ph__emit1(builder, &ph__op_add, NULL, NULL, 0, 2, inputs);
}
