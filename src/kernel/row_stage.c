#include "kernel/row_stage.h"

/* A worker's scratch: the result, then what is widened. */
static size_t output_reals(const struct ph_row_stage *stage)
{
    return stage->args->is_y_bf16 ? stage->rows * stage->out_columns : 0;
}

static size_t widened_reals(const struct ph_row_stage *stage)
{
    const size_t input = stage->is_widened ? stage->rows * stage->in_columns : 0;
    const size_t activated = stage->args->is_activated_bf16 ? stage->rows * stage->out_columns : 0;
    return input > activated ? input : activated;
}

size_t ph__row_stage_reals(const struct ph_row_stage *stage)
{
    return output_reals(stage) + widened_reals(stage);
}

static ph_real *scratch(const struct ph_row_stage *stage, size_t worker)
{
    return (ph_real *)stage->args->scratch + worker * ph__row_stage_reals(stage);
}

const void *ph__row_stage_input(const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->in_columns;
    if (!stage->is_bf16)
        return (const ph_real *)stage->args->x + first * columns;
    const uint16_t *x = (const uint16_t *)stage->args->x + first * columns;
    if (!stage->is_widened)
        return x;
    ph_real *reals = scratch(stage, worker) + output_reals(stage);
    stage->kernels->bf16_widen(rows * columns, x, reals);
    return reals;
}

ph_real *ph__row_stage_output(const struct ph_row_stage *stage, size_t first, size_t worker)
{
    return stage->args->is_y_bf16 ? scratch(stage, worker)
                                  : (ph_real *)stage->args->y + first * stage->out_columns;
}

const ph_real *ph__row_stage_activated(
    const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->out_columns;
    if (!stage->args->is_activated_bf16)
        return (const ph_real *)stage->args->activated + first * columns;
    ph_real *reals = scratch(stage, worker) + output_reals(stage);
    stage->kernels->bf16_widen(
        rows * columns, (const uint16_t *)stage->args->activated + first * columns, reals);
    return reals;
}

void ph__row_stage_finish(const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker)
{
    const size_t columns = stage->out_columns;
    if (stage->args->is_y_bf16)
        stage->kernels->bf16_narrow(
            rows * columns, scratch(stage, worker), (uint16_t *)stage->args->y + first * columns);
}
