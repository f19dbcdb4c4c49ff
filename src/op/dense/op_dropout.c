/* Inverted dropout: y = x m / (1 - rate) with m = 0 for a share `rate` of the elements. The mask depends only
 * on seed, step, the node's name, the sample's place in the epoch and the element. For items (M,...) the
 * elements of a sample are those of its bag, item after item, so no two items share a mask, and a history's
 * mask does not depend on its batch. In inference programs, and at rate 0, ph_dropout returns its input.
 * Elementwise, so the result may take over the input's memory. */
#include "op/table/op_table.h"

enum { X, BAGS, NUM_INPUTS }; /* BAGS: the bags of items; absent where rows are samples */

struct dropout_attributes {
    double rate;
};

struct dropout_call {
    const struct ph__kernels *kernels;
    struct ph__rng_key key;
    uint64_t first_sample;
    const uint32_t *offsets; /* of the samples' bags; NULL: rows are samples */
    size_t row_elements;
    double rate;
    const ph_real *x;
    ph_real *y;
    uint8_t *mask;
};

static ph_status dropout_infer(struct ph__infer *infer)
{
    if (!ph__type_is_real(&infer->inputs[0]))
        return ph__infer_fail(infer, "a real array");
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[1] = infer->inputs[0];
    infer->outputs[1].dtype = PH_U8;
    return PH_OK;
}

static void dropout_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const ph_value inputs[] = {gradient->output_gradients[0], node.outputs[1]};
    gradient->input_gradients[0] = ph__emit1(
        gradient->builder, &ph__op_dropout_backward, NULL, node.attributes, node.attributes_size, 2, inputs);
}

/* Counts the scaling; the random words are integer work. */
static void dropout_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, 1, cost_out);
}

static void dropout_rows(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct dropout_call *dropout = argument;
    const size_t offset = first * dropout->row_elements;
    dropout->kernels->dropout(&dropout->key, dropout->first_sample + first, last - first,
        dropout->row_elements, dropout->rate, dropout->x + offset, dropout->y + offset,
        dropout->mask + offset);
}

static void dropout_bags(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct dropout_call *dropout = argument;
    for (size_t sample = first; sample < last; sample++) {
        const size_t offset = dropout->offsets[sample] * dropout->row_elements;
        const size_t elements = dropout->offsets[sample + 1] * dropout->row_elements - offset;
        dropout->kernels->dropout(&dropout->key, dropout->first_sample + sample, 1, elements, dropout->rate,
            dropout->x + offset, dropout->y + offset, dropout->mask + offset);
    }
}

static ph_status dropout_run(struct ph__call *call)
{
    const struct dropout_attributes *attributes = call->attributes;
    const struct ph__operand *x = &call->inputs[X], *bags = &call->inputs[BAGS];
    struct dropout_call dropout = {.kernels = call->backend->kernels,
        .key = {call->run->seed, call->run->step, call->node->stream},
        .first_sample = call->run->first_sample,
        .offsets = bags->index,
        .row_elements = ph__row_elements(x),
        .rate = attributes->rate,
        .x = x->data,
        .y = call->outputs[0].data,
        .mask = call->outputs[1].data};
    if (dropout.offsets != NULL)
        ph__for_bags(call->backend, bags, dropout.row_elements, dropout_bags, &dropout);
    else
        ph__for_blocks(
            call->backend, ph__rows(x), ph__block_rows(dropout.row_elements), dropout_rows, &dropout);
    return PH_OK;
}

const struct ph__op ph__op_dropout = {
    .name = "dropout",
    .traits = PH_OP_IN_PLACE,
    .infer = dropout_infer,
    .gradient = dropout_gradient,
    .cost = dropout_cost,
    .run = dropout_run,
};

/* inputs: dy, mask; dx = dy mask / (1 - rate) */
static ph_status dropout_backward_infer(struct ph__infer *infer)
{
    const struct ph_type *mask = &infer->inputs[1];
    if (!ph__type_is_real(&infer->inputs[0]) || mask->kind != PH_DENSE || mask->dtype != PH_U8)
        return ph__infer_fail(infer, "dy and the mask of its dropout");
    infer->outputs[0] = infer->inputs[0];
    return PH_OK;
}

static void dropout_backward_elements(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct dropout_call *dropout = argument;
    dropout->kernels->dropout_backward(
        last - first, dropout->rate, dropout->mask + first, dropout->x + first, dropout->y + first);
}

static ph_status dropout_backward_run(struct ph__call *call)
{
    const struct dropout_attributes *attributes = call->attributes;
    struct dropout_call dropout = {.kernels = call->backend->kernels,
        .rate = attributes->rate,
        .x = call->inputs[0].data,
        .y = call->outputs[0].data,
        .mask = call->inputs[1].data};
    ph__for_blocks(call->backend, ph__elements(&call->outputs[0]), PH_BLOCK_ELEMENTS,
        dropout_backward_elements, &dropout);
    return PH_OK;
}

const struct ph__op ph__op_dropout_backward = {
    .name = "dropout_backward",
    .traits = PH_OP_IN_PLACE,
    .infer = dropout_backward_infer,
    .cost = dropout_cost,
    .run = dropout_backward_run,
};

ph_value ph_dropout(struct ph_builder *builder, ph_value x, double rate)
{
    const struct dropout_attributes attributes = {rate};
    ph_value outputs[2] = {0, 0};
    if (!(rate >= 0 && rate < 1))
        return ph_builder_fail(builder, PH_ERROR_CONFIG, "dropout: rate %g is not in [0,1)", rate);
    if (rate == 0 || ph_builder_mode(builder) == PH_INFERENCE)
        return x;
    const struct ph_type type = ph_value_type(builder, x);
    const bool is_of_samples = type.dims[0].symbol == PH_SYMBOL_BATCH;
    const ph_value inputs[NUM_INPUTS] = {x, is_of_samples ? 0 : ph__bags_of(builder, &type)};
    if (!is_of_samples && inputs[BAGS] == 0)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "dropout: the rows of '%s' are neither samples nor items of bags", ph_value_name(builder, x));
    ph__emit(builder, &ph__op_dropout, NULL, &attributes, sizeof attributes, NUM_INPUTS, inputs, 2, outputs);
    return outputs[0];
}
