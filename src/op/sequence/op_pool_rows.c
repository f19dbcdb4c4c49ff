/* pool_rows: the weighted sum of the rows of each bag's items, in their order, so that a sample's result does
 * not depend on the batch around it.
 *
 * x (I,K), bags jagged (B bags, I), weights (I,1) or none -> y (B,K): y_b = sum over the bag of w_i x_i.
 *   dx_i = w_i dy_b (repeat_rows),   dw_i = <x_i, dy_b> (item_dots). */
#include <string.h>

#include "op/table/op_table.h"

enum { X, BAGS, WEIGHTS, NUM_INPUTS };

static ph_status pool_rows_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *bags = &infer->inputs[BAGS],
                         *weights = &infer->inputs[WEIGHTS];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_is_bags(bags) ||
        !ph__dim_equal(x->dims[0], bags->dims[1]) || !ph__are_item_weights(weights, bags))
        return ph__infer_fail(infer, "x (I,K), bags of I items, weights (I,1) or none");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){bags->dims[0], x->dims[1]});
    return PH_OK;
}

static void pool_rows_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0], bags = node.inputs[BAGS];
    if (gradient->is_wanted[X])
        gradient->input_gradients[X] = ph__repeat_rows(builder, dy, bags, node.inputs[WEIGHTS]);
    if (gradient->is_wanted[WEIGHTS])
        gradient->input_gradients[WEIGHTS] = ph__item_dots(builder, node.inputs[X], dy, bags);
}

/* Counts an addition for each number of x, and a multiplication where there are weights. */
static void pool_rows_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 0, cost_out);
    cost_out->flops = (call->inputs[WEIGHTS].data != NULL ? 2 : 1) * (double)ph__elements(&call->inputs[X]);
}

/* y = the sum of `count` rows of x, each times its weight; count >= 1. */
static void pool_bag(const struct ph__kernels *kernels, size_t count, size_t width, const ph_real *x,
    const ph_real *weights, ph_real *y)
{
    if (weights == NULL) {
        memcpy(y, x, width * sizeof *y);
        kernels->add_rows(count - 1, width, x + width, y);
        return;
    }
    kernels->weight_product(&(struct ph__weight_product_args){.inner = count,
        .rows = 1,
        .columns = width,
        .a = weights,
        .b = x,
        .a_stride = 1,
        .b_stride = width,
        .c = y,
        .c_stride = width});
}

static void pool_bags(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const uint32_t *offsets = call->inputs[BAGS].index;
    const ph_real *x = call->inputs[X].data, *weights = call->inputs[WEIGHTS].data;
    const size_t width = ph__row_width(&call->outputs[0]);
    (void)worker;
    for (size_t sample = first; sample < last; sample++) {
        const size_t item = offsets[sample], count = offsets[sample + 1] - item;
        ph_real *y = (ph_real *)call->outputs[0].data + sample * width;
        if (count == 0)
            memset(y, 0, width * sizeof *y);
        else
            pool_bag(call->backend->kernels, count, width, x + item * width,
                weights != NULL ? weights + item : NULL, y);
    }
}

static ph_status pool_rows_run(struct ph__call *call)
{
    ph__for_bags(call->backend, &call->inputs[BAGS], ph__row_width(&call->outputs[0]), pool_bags, call);
    return PH_OK;
}

const struct ph__op ph__op_pool_rows = {
    .name = "pool_rows",
    .infer = pool_rows_infer,
    .gradient = pool_rows_gradient,
    .cost = pool_rows_cost,
    .run = pool_rows_run,
};

ph_value ph_pool_rows(struct ph_builder *builder, ph_value x, ph_value bags, ph_value weights)
{
    const ph_value inputs[NUM_INPUTS] = {x, bags, weights};
    return ph__emit1(builder, &ph__op_pool_rows, NULL, NULL, 0, NUM_INPUTS, inputs);
}
