/* repeat_rows: repeats each sample's row for each item of its bag.
 *
 * x (B,K), bags jagged (B bags, I), factors (I,1) or none -> y (I,K): y_i = f_i x_b for the items i of bag b.
 *   dx_b = sum over the bag of f_i dy_i (pool_rows),   df_i = <dy_i, x_b> (item_dots). */
#include <string.h>

#include "op/table/op_table.h"

enum { X, BAGS, FACTORS, NUM_INPUTS };

static ph_status repeat_rows_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[X], *bags = &infer->inputs[BAGS],
                         *factors = &infer->inputs[FACTORS];
    if (!ph__type_is_real_of_dims(x, 2) || !ph__type_is_bags(bags) ||
        !ph__dim_equal(x->dims[0], bags->dims[0]) || !ph__are_item_weights(factors, bags))
        return ph__infer_fail(infer, "x (B,K), bags of B samples, factors (I,1) or none");
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){bags->dims[1], x->dims[1]});
    return PH_OK;
}

static void repeat_rows_gradient(struct ph__gradient *gradient)
{
    struct ph_builder *builder = gradient->builder;
    const struct ph__node node = *gradient->node;
    const ph_value dy = gradient->output_gradients[0], bags = node.inputs[BAGS];
    if (gradient->is_wanted[X])
        gradient->input_gradients[X] = ph_pool_rows(builder, dy, bags, node.inputs[FACTORS]);
    if (gradient->is_wanted[FACTORS])
        gradient->input_gradients[FACTORS] = ph__item_dots(builder, dy, node.inputs[X], bags);
}

/* Counts a multiplication each where there are factors. */
static void repeat_rows_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, call->inputs[FACTORS].data != NULL ? 1 : 0, cost_out);
}

static void repeat_bags(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const uint32_t *offsets = call->inputs[BAGS].index;
    const ph_real *factors = call->inputs[FACTORS].data;
    const size_t width = ph__row_width(&call->outputs[0]);
    ph_real *y = call->outputs[0].data;
    (void)worker;
    for (size_t sample = first; sample < last; sample++) {
        const ph_real *x = (const ph_real *)call->inputs[X].data + sample * width;
        for (size_t item = offsets[sample]; item < offsets[sample + 1]; item++) {
            if (factors != NULL)
                call->backend->kernels->scale(width, factors[item], x, y + item * width);
            else
                memcpy(y + item * width, x, width * sizeof *y);
        }
    }
}

static ph_status repeat_rows_run(struct ph__call *call)
{
    ph__for_bags(call->backend, &call->inputs[BAGS], ph__row_width(&call->outputs[0]), repeat_bags, call);
    return PH_OK;
}

const struct ph__op ph__op_repeat_rows = {
    .name = "repeat_rows",
    .infer = repeat_rows_infer,
    .gradient = repeat_rows_gradient,
    .cost = repeat_rows_cost,
    .run = repeat_rows_run,
};

ph_value ph__repeat_rows(struct ph_builder *builder, ph_value x, ph_value bags, ph_value factors)
{
    const ph_value inputs[NUM_INPUTS] = {x, bags, factors};
    return ph__emit1(builder, &ph__op_repeat_rows, NULL, NULL, 0, NUM_INPUTS, inputs);
}

ph_value ph_repeat_rows(struct ph_builder *builder, ph_value x, ph_value bags)
{
    return ph__repeat_rows(builder, x, bags, 0);
}
