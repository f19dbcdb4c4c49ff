/* Sums x (...,K) over all but its last dimension: y (K), the gradient of a broadcast operand. Each block of
 * rows is summed on its own, then the blocks in order, so the bits do not depend on the number of threads. */
#include "op/operator.h"

#include <string.h>

#define BLOCK_ROWS 256u

struct sum_call {
    const struct ph__kernels *kernels;
    size_t columns;
    const ph_real *x;
    ph_real *partials; /* (blocks, K) */
};

static ph_status sum_infer(struct ph__infer *infer)
{
    const struct ph_type *x = &infer->inputs[0];
    if (!ph__type_is_real(x) || x->dims[x->num_dims - 1].symbol != 0)
        return ph__infer_fail(infer, "x (...,K)");
    infer->outputs[0] = ph__dense_type(1, &x->dims[x->num_dims - 1]);
    return PH_OK;
}

static size_t num_rows(const struct ph__operand *x)
{
    const size_t columns = x->shape.dims[x->shape.num_dims - 1];
    return columns > 0 ? ph__elements(x) / columns : 0;
}

static size_t num_blocks(const struct ph__operand *x)
{
    return (num_rows(x) + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

static void sum_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    ph__cost_elementwise(call, (double)num_rows(&call->inputs[0]), cost_out);
}

static size_t sum_scratch_bytes(const struct ph__call *call)
{
    const struct ph_shape *shape = &call->inputs[0].shape;
    return num_blocks(&call->inputs[0]) * shape->dims[shape->num_dims - 1] * sizeof(ph_real);
}

static void sum_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct sum_call *sum = argument;
    ph_real *partial = sum->partials + first / BLOCK_ROWS * sum->columns;
    memset(partial, 0, sum->columns * sizeof *partial);
    sum->kernels->add_rows(last - first, sum->columns, sum->x + first * sum->columns, partial);
}

static ph_status sum_run(struct ph__call *call)
{
    const struct ph__operand *x = &call->inputs[0], *y = &call->outputs[0];
    struct sum_call sum = {call->backend->kernels, y->shape.dims[0], x->data, call->scratch};
    ph__for_blocks(call->backend, num_rows(x), BLOCK_ROWS, sum_block, &sum);
    memset(y->data, 0, sum.columns * sizeof(ph_real));
    sum.kernels->add_rows(num_blocks(x), sum.columns, sum.partials, y->data);
    return PH_OK;
}

const struct ph__op ph__op_sum_rows = {
    .name = "sum_rows",
    .infer = sum_infer,
    .cost = sum_cost,
    .scratch_bytes = sum_scratch_bytes,
    .run = sum_run,
};

ph_value ph__sum_rows(struct ph_builder *builder, ph_value dy)
{
    return ph__emit1(builder, &ph__op_sum_rows, NULL, NULL, 0, 1, &dy);
}
