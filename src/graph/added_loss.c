/* Losses that a model adds to that of the labels. */
#include "graph/graph.h"

#include <assert.h>

#include "base/memory/memory.h"

void ph_add_loss(struct ph_builder *builder, const char *name, ph_value loss, double weight)
{
    struct ph_graph *graph = &builder->graph;
    if (builder->mode != PH_TRAINING || builder->status != PH_OK)
        return;
    if (loss == 0 || graph->values[loss].type.kind != PH_SCALAR) {
        ph_builder_fail(builder, PH_ERROR_USAGE, "loss '%s' is no scalar", name);
        return;
    }
    if (ph__array_reserve((void **)&graph->losses, &graph->losses_capacity, graph->num_losses + 1,
            sizeof *graph->losses) != PH_OK) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory for loss '%s'", name);
        return;
    }
    graph->losses[graph->num_losses++] = (struct ph_added_loss){loss, weight};
    ph_output(builder, name, loss);
}

size_t ph_builder_num_losses(const struct ph_builder *builder)
{
    return builder->graph.num_losses;
}

ph_value ph_builder_loss(const struct ph_builder *builder, size_t index, double *weight_out)
{
    assert(index < builder->graph.num_losses);
    *weight_out = builder->graph.losses[index].weight;
    return builder->graph.losses[index].loss;
}
