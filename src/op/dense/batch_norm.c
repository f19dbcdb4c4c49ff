#include "op/dense/batch_norm.h"

#include <string.h>

size_t ph__batch_norm_blocks(size_t rows)
{
    return (rows + PH_BATCH_NORM_ROWS - 1) / PH_BATCH_NORM_ROWS;
}

void ph__batch_norm_combine(size_t num_blocks, size_t n, const double *partials, double *totals)
{
    memset(totals, 0, n * sizeof *totals);
    for (size_t block = 0; block < num_blocks; block++)
        for (size_t i = 0; i < n; i++)
            totals[i] += partials[block * n + i];
}

ph_status ph__batch_norm_infer(struct ph_infer *infer)
{
    const struct ph_type *x = &infer->inputs[PH_BATCH_NORM_X];
    bool is_right = ph__type_is_real_of_rank(x, 2) && x->dims[1].symbol == 0;
    for (size_t i = PH_BATCH_NORM_GAMMA; i < PH_BATCH_NORM_NUM_INPUTS && is_right; i++)
        is_right = ph__type_is_real_of_rank(&infer->inputs[i], 1) &&
                   ph__dim_equal(infer->inputs[i].dims[0], x->dims[1]);
    if (!is_right)
        return ph__infer_fail(infer, "x (B,K), gamma (K), beta (K)");
    infer->outputs[0] = *x;
    for (size_t i = 1; i < infer->num_outputs; i++)
        infer->outputs[i] = ph__dense_type(1, &x->dims[1]);
    return PH_OK;
}

struct apply {
    const struct ph_call *call;
    size_t columns;
    const ph_real *mean, *inv_std;
};

static void apply_block(void *argument, size_t first, size_t last, size_t worker)
{
    (void)worker;
    const struct apply *apply = argument;
    const struct ph_operand *inputs = apply->call->inputs;
    const size_t offset = first * apply->columns;
    apply->call->backend->kernels->batch_norm_apply(last - first, apply->columns,
        (const ph_real *)inputs[PH_BATCH_NORM_X].data + offset, apply->mean, apply->inv_std,
        inputs[PH_BATCH_NORM_GAMMA].data, inputs[PH_BATCH_NORM_BETA].data,
        (ph_real *)apply->call->outputs[0].data + offset);
}

void ph__batch_norm_apply(const struct ph_call *call, const ph_real *mean, const ph_real *inv_std)
{
    const struct ph_operand *x = &call->inputs[PH_BATCH_NORM_X];
    struct apply apply = {call, ph__row_elements(x), mean, inv_std};
    ph__for_blocks(call->backend, ph__rows(x), PH_BATCH_NORM_ROWS, apply_block, &apply);
}
