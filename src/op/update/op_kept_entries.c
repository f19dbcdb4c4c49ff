/* kept_entries: what is summed into the gradient of each merged slot, of positions that were kept (op_keep_lookup.c).
 *
 * order jagged u32 (U bags, P) of merge, positions (P) u32 of group_positions, rows (P) u32, coefficients (P) or none
 *   -> rows (P) u32 and, unless there are none, coefficients (P): entry e is kept position positions[order[e]]. */
#include "op/update/accumulation.h"

enum { ORDER, POSITIONS, ROWS, COEFFICIENTS };
enum { BLOCK_ENTRIES = 4096 };

static ph_status kept_entries_infer(struct ph_infer *infer)
{
    infer->outputs[0] = infer->inputs[ROWS];
    if (infer->num_outputs > 1)
        infer->outputs[1] = infer->inputs[COEFFICIENTS];
    return PH_OK;
}

static void kept_entries_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const double entries = (double)call->inputs[ORDER].shape.dims[1];
    cost_out->bytes = 4 * entries * sizeof(uint32_t);
    if (call->num_outputs > 1)
        cost_out->bytes += 2 * entries * sizeof(ph_real);
}

static void list_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph_call *call = argument;
    const uint32_t *order = call->inputs[ORDER].data, *positions = call->inputs[POSITIONS].data;
    const uint32_t *rows = call->inputs[ROWS].data;
    const ph_real *coefficients = call->inputs[COEFFICIENTS].data;
    (void)worker;
    for (size_t e = first; e < last; e++)
        ((uint32_t *)call->outputs[0].data)[e] = rows[positions[order[e]]];
    for (size_t e = first; e < last && call->num_outputs > 1; e++)
        ((ph_real *)call->outputs[1].data)[e] = coefficients[positions[order[e]]];
}

static ph_status kept_entries_run(struct ph_call *call)
{
    ph__for_blocks(call->backend, call->inputs[ORDER].shape.dims[1], BLOCK_ENTRIES, list_block, call);
    return PH_OK;
}

const struct ph_op ph__op_kept_entries = {
    .name = "kept_entries",
    .infer = kept_entries_infer,
    .cost = kept_entries_cost,
    .run = kept_entries_run,
};
