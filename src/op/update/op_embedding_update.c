/* embedding_update: the gradient of a lookup and the update of the rows it touches, in one sweep.
 *
 * Each distinct slot's gradient is summed into a row of scratch and stepped into the table at once, so that the
 * gradient of the table never exists in memory. Same kernels, same order, same bits as embedding_gradient followed by
 * update_table. Arises from those two by update_table's fuse rule; no builder function adds it. */
#include "op/update/op_update.h"

#include <string.h>

#include "base/memory/memory.h"

/* Inputs: as update_table's, with the lookup's in place of the gradient. */
#define LOOKUP PH_UPDATE_GRADIENT

void ph__embedding_update_inputs(const struct ph_node *update, const struct ph_node *producer,
    ph_value inputs_out[PH_EMBEDDING_UPDATE_INPUTS])
{
    memcpy(inputs_out, update->inputs, PH_UPDATE_GRADIENT * sizeof *inputs_out);
    memcpy(inputs_out + LOOKUP, producer->inputs, PH_LOOKUP_INPUTS * sizeof *inputs_out);
}

static ph_status embedding_update_infer(struct ph_infer *infer)
{
    infer->outputs[0] = ph__token_type();
    return PH_OK;
}

static void embedding_update_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    const struct ph_operand *lookup = &call->inputs[LOOKUP];
    const double dim = (double)ph__row_width(&lookup[PH_LOOKUP_GRADIENT]);
    const double unique = (double)ph__rows(&lookup[PH_LOOKUP_UNIQUE]);
    const double positions = (double)lookup[PH_LOOKUP_ORDER].shape.dims[1];
    ph__update_cost(call, unique * dim, cost_out);
    cost_out->flops += 2 * positions * dim;
    cost_out->updated_bytes = cost_out->bytes - unique * dim * sizeof(ph_real); /* but for the gradient */
    cost_out->revisited_bytes = positions * dim * sizeof(ph_real);
    cost_out->bytes =
        cost_out->updated_bytes + cost_out->revisited_bytes + (2 * positions + 2 * unique) * sizeof(uint32_t);
}

/* Two rows. */
static size_t scratch_bytes_of(size_t dim)
{
    return ph__size_align(2 * dim * sizeof(ph_real));
}

size_t ph__embedding_update_scratch_bytes(const struct ph_call *call)
{
    const size_t dim = ph__row_width(&call->inputs[LOOKUP + PH_LOOKUP_GRADIENT]);
    return ph__team_num_threads(call->backend->team) * scratch_bytes_of(dim);
}

ph_real *ph__embedding_update_scratch(const struct ph_call *call, size_t dim, size_t worker)
{
    return (void *)((char *)call->scratch + worker * scratch_bytes_of(dim));
}

struct ph_embedding_update_args ph__embedding_update_args(const struct ph_call *call,
    const struct ph_embedding_gradient_source *source, const struct ph_update_target *target)
{
    const struct ph_operand *lookup = &call->inputs[LOOKUP];
    return (struct ph_embedding_update_args){
        .source = source,
        .step = &target->step,
        .unique = lookup[PH_LOOKUP_UNIQUE].data,
        .starts = lookup[PH_LOOKUP_ORDER].index,
        .num_unique = lookup[PH_LOOKUP_ORDER].shape.dims[0],
        .table = &target->table,
        .m = target->m,
        .s = target->s,
        .square_sums = call->inputs[PH_UPDATE_SQUARE_SUMS].data,
        .whole_dim = target->whole_columns,
    };
}

struct fused_job {
    const struct ph_call *call;
    struct ph_embedding_update_args args;
};

static void update_merged(void *argument, size_t first, size_t last, size_t worker)
{
    const struct fused_job *job = argument;
    job->call->backend->kernels->embedding_update(
        &job->args, first, last, ph__embedding_update_scratch(job->call, job->args.source->dim, worker));
}

static ph_status embedding_update_run(struct ph_call *call)
{
    const struct ph_operand *lookup = &call->inputs[LOOKUP];
    const struct ph_embedding_gradient_source source = ph__gradient_source(lookup);
    const struct ph_update_target target = ph__update_target(call);
    struct fused_job job = {call, ph__embedding_update_args(call, &source, &target)};
    ph__for_merged(call->backend, &lookup[PH_LOOKUP_ORDER], update_merged, &job);
    call->inputs[PH_UPDATE_PARAMETER].parameter->version++;
    return PH_OK;
}

const struct ph_op ph__op_embedding_update = {
    .name = "embedding_update",
    .traits = PH_OP_HAS_EFFECT | PH_OP_READS_ROW_FORMATS,
    .infer = embedding_update_infer,
    .cost = embedding_update_cost,
    .scratch_bytes = ph__embedding_update_scratch_bytes,
    .prepare = ph__update_prepare,
    .slot_bytes = ph__update_slot_bytes,
    .run = embedding_update_run,
};
