/* The two operators that differentiation itself needs; all others live in src/op/. */
#include <string.h>

#include "graph/graph.h"

/* ---- seed: d loss / d loss = 1 ------------------------------------------------------------------------- */

static ph_status seed_infer(struct ph_infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static void no_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    (void)call;
    *cost_out = (struct ph_cost){0};
}

static ph_status seed_run(struct ph_call *call)
{
    *call->outputs[0].scalar = 1.0;
    return PH_OK;
}

const struct ph_op ph__op_seed = {.name = "seed", .infer = seed_infer, .cost = no_cost, .run = seed_run};

/* ---- accumulate: a + b --------------------------------------------------------------------------------- */

static ph_status accumulate_infer(struct ph_infer *infer)
{
    const struct ph_type *a = &infer->inputs[0], *b = &infer->inputs[1];
    infer->outputs[0] = *a;
    if (a->kind == PH_SPARSE_ROWS && b->kind == PH_SPARSE_ROWS && ph__dim_equal(a->dims[1], b->dims[1])) {
        size_t factor = 2; /* both are bounded by the ids of the batch, so their union by twice that */
        uint32_t symbol = ph__builder_symbol(infer->builder, "union", a->dims[0].symbol, factor, SIZE_MAX);
        infer->outputs[0].dims[0] = ph__dim_of(1, symbol);
        return ph_builder_status(infer->builder);
    }
    if (ph__type_equal(a, b) && (a->kind == PH_DENSE || a->kind == PH_SCALAR))
        return PH_OK;
    char text_a[96], text_b[96];
    return ph_fail(PH_ERROR_BUG, "%s: gradients of shapes %s and %s do not add up", infer->name,
        ph__type_text(a, text_a), ph__type_text(b, text_b));
}

static void accumulate_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    double elements = (double)ph_shape_elements(&call->outputs[0].shape);
    *cost_out = (struct ph_cost){.flops = elements, .bytes = 3 * elements * sizeof(ph_real)};
}

static void add_block(void *argument, size_t first, size_t last, size_t worker)
{
    struct ph_call *call = argument;
    (void)worker;
    const ph_real *a = call->inputs[0].data, *b = call->inputs[1].data;
    call->backend->kernels->add(last - first, a + first, b + first, (ph_real *)call->outputs[0].data + first);
}

/* Merge of two ascending lists of slots; equal slots add their rows. */
static void add_sparse_rows(struct ph_call *call)
{
    const struct ph_operand *a = &call->inputs[0], *b = &call->inputs[1];
    struct ph_operand *sum = &call->outputs[0];
    size_t dim = a->shape.dims[1], i = 0, j = 0, count = 0;
    while (i < a->shape.dims[0] || j < b->shape.dims[0]) {
        bool has_a = i < a->shape.dims[0] && (j == b->shape.dims[0] || a->index[i] <= b->index[j]);
        bool has_b = j < b->shape.dims[0] && (i == a->shape.dims[0] || b->index[j] <= a->index[i]);
        const ph_real *row_a = (const ph_real *)a->data + i * dim,
                      *row_b = (const ph_real *)b->data + j * dim;
        ph_real *row = (ph_real *)sum->data + count * dim;
        sum->index[count++] = has_a ? a->index[i] : b->index[j];
        if (has_a && has_b)
            call->backend->kernels->add(dim, row_a, row_b, row);
        else
            memcpy(row, has_a ? row_a : row_b, dim * sizeof *row);
        i += has_a;
        j += has_b;
    }
    call->extents[sum->type->dims[0].symbol] = count;
}

static ph_status accumulate_run(struct ph_call *call)
{
    if (call->outputs[0].type->kind == PH_SCALAR)
        *call->outputs[0].scalar = *call->inputs[0].scalar + *call->inputs[1].scalar;
    else if (call->outputs[0].type->kind == PH_SPARSE_ROWS)
        add_sparse_rows(call);
    else
        ph__for_blocks(call->backend, ph_shape_elements(&call->outputs[0].shape), 16384, add_block, call);
    return PH_OK;
}

const struct ph_op ph__op_accumulate = {
    .name = "accumulate", .infer = accumulate_infer, .cost = accumulate_cost, .run = accumulate_run};
