/* From a graph under construction to a program: the passes, in order. */
#include <stdlib.h>

#include "graph/graph.h"

static ph_status run_passes(struct ph_builder *builder, bool is_fused, struct ph_program *program)
{
    PH_TRY(ph__pass_prune(&builder->graph));
    if (is_fused) {
        PH_TRY(ph__pass_fuse(builder));
        PH_TRY(ph__pass_prune(&builder->graph));
    }
    if (builder->mode == PH_TRAINING && builder->precision == PH_PRECISION_BF16)
        PH_TRY(ph__pass_precision(builder));
    return ph__pass_compact(&builder->graph, program->entry_begin);
}

static ph_status finish(struct ph_builder *builder, bool is_fused, struct ph_program **program_out)
{
    if (builder->status == PH_OK && builder->num_scopes != 0)
        ph_builder_fail(builder, PH_ERROR_USAGE, "scope '%s' was pushed and never popped", builder->scope);
    if (builder->status != PH_OK)
        return ph_fail(builder->status, "%s", builder->error);
    struct ph_program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a program");
    ph_status status = run_passes(builder, is_fused, program);
    if (status != PH_OK) {
        free(program);
        return status;
    }
    program->graph = builder->graph;
    builder->graph = (struct ph_graph){0};
    builder->status = ph_fail(PH_ERROR_USAGE, "the builder is finished");
    *program_out = program;
    return PH_OK;
}

ph_status ph_builder_finish(struct ph_builder *builder, struct ph_program **program_out)
{
    return finish(builder, true, program_out);
}

ph_status ph__builder_finish_unfused(struct ph_builder *builder, struct ph_program **program_out)
{
    return finish(builder, false, program_out);
}
