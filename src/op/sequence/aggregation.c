#include "op/sequence/aggregation.h"

#include <math.h>

#include "base/memory/absent.h"
#include "op/table/op_table.h"

enum { BLOCK_ITEMS = 2048 /* slots of a list, which then stays in the first cache */ };

size_t ph__aggregation_block(size_t num_items, size_t num_nodes)
{
    const size_t average = num_nodes > 0 ? num_items / num_nodes + 1 : 1;
    return ph__max(1, ph__min(PH_BLOCK_NODES, BLOCK_ITEMS / average));
}

size_t ph__aggregation_scratch_bytes(const struct ph__operand *neighbours)
{
    const size_t num_nodes = neighbours->shape.dims[0], num_items = neighbours->shape.dims[1];
    return (num_nodes + num_items) * sizeof(ph_real) + num_items * sizeof(uint32_t);
}

/* Returns the most neighbours of a block, chosen or not. */
static size_t largest_block(const struct ph__neighbours *neighbours, size_t block)
{
    size_t largest = 0;
    for (size_t first = 0; first < neighbours->num_nodes; first += block) {
        const size_t last = ph__min(first + block, neighbours->num_nodes);
        largest = ph__max(largest, neighbours->offsets[last] - neighbours->offsets[first]);
    }
    return largest;
}

struct roots_job {
    const uint32_t *offsets;
    ph_real *roots;
};

static void fill_roots(void *argument, size_t first, size_t last, size_t worker)
{
    const struct roots_job *job = argument;
    (void)worker;
    for (size_t node = first; node < last; node++)
        job->roots[node] =
            (ph_real)(1 / sqrt((double)ph__max(1, job->offsets[node + 1] - job->offsets[node])));
}

struct ph__aggregation ph__aggregation(const struct ph__call *call, const struct ph__operand *neighbours,
    const struct ph__operand *weights, const struct ph_aggregate_options *options)
{
    const size_t num_nodes = neighbours->shape.dims[0], num_items = neighbours->shape.dims[1];
    const size_t width = options->sampling.width > 0 ? options->sampling.width : SIZE_MAX;
    struct roots_job roots = {neighbours->index, call->scratch};
    struct ph__aggregation aggregation = {.backend = call->backend,
        .neighbours = {.offsets = neighbours->index,
            .ids = neighbours->data,
            .num_nodes = num_nodes,
            .weights = ph__memory_is_absent(weights->data) ? NULL : weights->data,
            .roots = roots.roots,
            .sampling = options->sampling,
            .normalisation = options->normalisation,
            .bias = options->bias},
        .weights = roots.roots + num_nodes};
    const bool has_weights = ph__has_list_weights(&aggregation.neighbours);
    aggregation.slots = (uint32_t *)(aggregation.weights + num_items);
    if (!has_weights)
        aggregation.weights = NULL;
    aggregation.block = ph__aggregation_block(
        num_items / ph__max(1, num_nodes) < width ? num_items : width * num_nodes, num_nodes);
    aggregation.worker_positions = ph__worker_positions(
        call->backend, num_items, largest_block(&aggregation.neighbours, aggregation.block));
    if (options->normalisation == PH_NORMALISE_SYMMETRIC)
        ph__for_blocks(call->backend, num_nodes, PH_BLOCK_ELEMENTS, fill_roots, &roots);
    return aggregation;
}

bool ph__aggregation_list(const struct ph__aggregation *aggregation, size_t first, size_t last, size_t worker,
    struct ph__block_list *block)
{
    const uint32_t *offsets = aggregation->neighbours.offsets;
    const bool has_part = aggregation->worker_positions > 0;
    const size_t at = has_part ? worker * aggregation->worker_positions : offsets[first];
    block->list = (struct ph__neighbour_list){.offsets = block->offsets,
        .slots = aggregation->slots + at,
        .num_slots = has_part ? aggregation->worker_positions : offsets[last] - offsets[first],
        .weights = aggregation->weights != NULL ? aggregation->weights + at : NULL,
        .scales = block->scales};
    return aggregation->backend->kernels->list_neighbours(
        &aggregation->neighbours, first, last, &block->list);
}

ph_status ph__report_bad_neighbour(const struct ph__call *call, const struct ph__operand *neighbours)
{
    const size_t num_nodes = neighbours->shape.dims[0];
    const int64_t *ids = neighbours->data;
    size_t node = 0, item = 0;
    while ((uint64_t)ids[item] < num_nodes)
        item++;
    while (neighbours->index[node + 1] <= item)
        node++;
    return ph_fail(PH_ERROR_DATA, "%s: node %zu: neighbour %lld is not one of the batch's %zu nodes",
        call->node->name, node, (long long)ids[item], num_nodes);
}
