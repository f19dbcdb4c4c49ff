/* Two operators that are each other's gradient, over rows of K reals:
 *   scale_rows  y_b = s_b x_b           x (B,K), s (B,1), y (B,K)
 *               dx = scale_rows(dy, s), ds = row_dots(dy, x)
 *   row_dots    y_b = sum_k a_bk c_bk   a, c (B,K), y (B,1)
 *               da = scale_rows(c, dy), dc = scale_rows(a, dy) */
#include "op/operator.h"

struct rows_call {
    const struct ph__kernels *kernels;
    size_t columns;
    const ph_real *a, *b;
    ph_real *y;
};

static ph_status run_blocks(struct ph__call *call, ph__range_task block)
{
    struct rows_call rows = {call->backend->kernels, ph__row_elements(&call->inputs[0]), call->inputs[0].data,
        call->inputs[1].data, call->outputs[0].data};
    ph__for_blocks(call->backend, ph__rows(&call->inputs[0]), ph__block_rows(rows.columns), block, &rows);
    return PH_OK;
}

/* ---- scale_rows ---- */

static ph_status scale_rows_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0], *s = &infer->inputs[1];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_is_real_of_dims(s, 2) ||
        !ph__dim_equal(x->dims[0], s->dims[0]) || !ph__dim_equal(s->dims[1], ph__dim(1)))
        return ph__infer_fail(infer, "x (B,K), s (B,1)");
    infer->outputs[0] = *x;
    return PH_OK;
}

static void scale_rows_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0];
    if (gradient->is_wanted[0])
        gradient->input_gradients[0] = ph_scale_rows(gradient->builder, dy, node.inputs[1]);
    if (gradient->is_wanted[1])
        gradient->input_gradients[1] = ph_row_dots(gradient->builder, dy, node.inputs[0]);
}

static void scale_rows_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static void scale_rows_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct rows_call *rows = argument;
    for (size_t row = first; row < last; row++)
        rows->kernels->scale(
            rows->columns, rows->b[row], rows->a + row * rows->columns, rows->y + row * rows->columns);
}

static ph_status scale_rows_run(struct ph__call *call)
{
    return run_blocks(call, scale_rows_block);
}

const struct ph__op ph__op_scale_rows = {
    .name = "scale_rows",
    .traits = PH_OP_IN_PLACE,
    .infer = scale_rows_infer,
    .gradient = scale_rows_gradient,
    .cost = scale_rows_cost,
    .run = scale_rows_run,
};

ph_value ph_scale_rows(struct ph_builder *builder, ph_value x, ph_value s)
{
    const ph_value inputs[] = {x, s};
    return ph__emit1(builder, &ph__op_scale_rows, NULL, NULL, 0, 2, inputs);
}

/* ---- row_dots ---- */

static ph_status row_dots_infer(struct ph__infer *infer)
{
    const struct ph_type *a = &infer->inputs[0];
    if (!ph__type_is_real_of_dims(a, 2) || !ph__type_equal(a, &infer->inputs[1]))
        return ph__infer_fail(infer, "two arrays (B,K)");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){a->dims[0], ph__dim(1)});
    return PH_OK;
}

static void row_dots_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    for (size_t i = 0; i < 2; i++)
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] =
                ph_scale_rows(gradient->builder, node.inputs[1 - i], gradient->output_gradients[0]);
}

static void row_dots_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2.0 * (double)ph__row_elements(&call->inputs[0]), cost_out);
}

static void row_dots_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct rows_call *rows = argument;
    for (size_t row = first; row < last; row++)
        rows->kernels->narrow_product(1, rows->columns, 1, rows->a + row * rows->columns,
            rows->b + row * rows->columns, NULL, rows->y + row);
}

static ph_status row_dots_run(struct ph__call *call)
{
    return run_blocks(call, row_dots_block);
}

const struct ph__op ph__op_row_dots = {
    .name = "row_dots",
    .infer = row_dots_infer,
    .gradient = row_dots_gradient,
    .cost = row_dots_cost,
    .run = row_dots_run,
};

ph_value ph_row_dots(struct ph_builder *builder, ph_value a, ph_value b)
{
    const ph_value inputs[] = {a, b};
    return ph__emit1(builder, &ph__op_row_dots, NULL, NULL, 0, 2, inputs);
}
