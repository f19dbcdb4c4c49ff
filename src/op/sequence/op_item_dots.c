/* item_dots: the dot product of each item's row with its sample's row: the gradient by factors and weights of
 * items.
 *
 * items (I,K), x (B,K), bags jagged (B bags, I) -> (I,1): y_i = <items_i, x_b> for the items i of bag b. */
#include "op/table/op_table.h"

enum { ITEMS, X, BAGS, NUM_INPUTS };

static ph_status item_dots_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){infer->inputs[BAGS].dims[1], ph__dim(1)});
    return PH_OK;
}

/* Counts a multiplication and an addition for each number of an item. */
static void item_dots_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 2 * (double)ph__row_width(&call->inputs[X]), cost_out);
}

static void dot_bags(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const uint32_t *offsets = call->inputs[BAGS].index;
    const size_t width = ph__row_width(&call->inputs[X]);
    const ph_real *items = call->inputs[ITEMS].data, *x = call->inputs[X].data;
    ph_real *y = call->outputs[0].data;
    (void)worker;
    for (size_t sample = first; sample < last; sample++) {
        const size_t item = offsets[sample], count = offsets[sample + 1] - item;
        call->backend->kernels->narrow_product(
            count, width, 1, items + item * width, x + sample * width, NULL, y + item);
    }
}

static ph_status item_dots_run(struct ph__call *call)
{
    ph__for_bags(call->backend, &call->inputs[BAGS], ph__row_width(&call->inputs[X]), dot_bags, call);
    return PH_OK;
}

const struct ph__op ph__op_item_dots = {
    .name = "item_dots",
    .infer = item_dots_infer,
    .cost = item_dots_cost,
    .run = item_dots_run,
};

ph_value ph__item_dots(struct ph_builder *builder, ph_value items, ph_value x, ph_value bags)
{
    const ph_value inputs[NUM_INPUTS] = {items, x, bags};
    return ph__emit1(builder, &ph__op_item_dots, NULL, NULL, 0, NUM_INPUTS, inputs);
}
