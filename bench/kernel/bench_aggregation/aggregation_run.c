#include "aggregation_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "figures.h"

enum { X, NEIGHBOURS, WEIGHTS, Y };

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    bench_check(ph__memory_alloc(ph__max(1, bytes), "an aggregation", &memory));
    return memory;
}

static struct ph__operand matrix(
    struct ph_type *type, struct ph_dim rows, size_t num_rows, size_t num_columns, ph_real *data)
{
    *type = ph__dense_type(2, (struct ph_dim[]){rows, ph__dim(num_columns)});
    return (struct ph__operand){
        .type = type, .shape = {.num_dims = 2, .dims = {num_rows, num_columns}}, .data = data};
}

static void make_list(struct aggregation_run *run)
{
    const struct graph_case *graph = run->graph;
    const struct ph__aggregation aggregation =
        ph__aggregation(&run->call, &run->inputs[NEIGHBOURS], &run->inputs[WEIGHTS], &run->options);
    run->offsets = allocate((graph->num_nodes + 1) * sizeof *run->offsets);
    run->slots = allocate(graph->num_items * sizeof *run->slots);
    run->scales = allocate(graph->num_nodes * sizeof *run->scales);
    const struct ph__neighbour_list list = {run->offsets, run->slots, graph->num_items, NULL, run->scales};
    if (!run->call.backend->kernels->list_neighbours(&aggregation.neighbours, 0, graph->num_nodes, &list))
        abort();
}

void aggregation_run_init(struct aggregation_run *run, const struct ph_backend *backend,
    const struct graph_case *graph, size_t dim, ph_real *x, ph_real *weights, ph_real *y,
    const struct ph_sampling *sampling)
{
    const struct ph_dim nodes = ph__dim_of(1, PH_SYMBOL_BATCH), items = ph__dim_of(1, PH_SYMBOL_IDS);
    *run = (struct aggregation_run){.graph = graph,
        .options = {.size = sizeof run->options,
            .sampling = *sampling,
            .normalisation = weights != NULL ? PH_NORMALISE_SUM : PH_NORMALISE_MEAN}};
    run->types[NEIGHBOURS] =
        (struct ph_type){.kind = PH_JAGGED, .dtype = PH_I64, .num_dims = 2, .dims = {nodes, items}};
    run->inputs[X] = matrix(&run->types[X], nodes, graph->num_nodes, dim, x);
    run->inputs[NEIGHBOURS] = (struct ph__operand){.type = &run->types[NEIGHBOURS],
        .shape = {.num_dims = 2, .dims = {graph->num_nodes, graph->num_items}},
        .data = graph->ids,
        .index = graph->offsets};
    run->inputs[WEIGHTS] = matrix(&run->types[WEIGHTS], items, graph->num_items, 1, weights);
    run->output = matrix(&run->types[Y], nodes, graph->num_nodes, dim, y);
    run->node = (struct ph__node){.op = &ph__op_aggregate, .name = "aggregate"};
    run->call = (struct ph__call){.backend = backend,
        .node = &run->node,
        .attributes = &run->options,
        .inputs = run->inputs,
        .outputs = &run->output,
        .num_inputs = 3,
        .num_outputs = 1};
    run->scratch_bytes = ph__op_aggregate.scratch_bytes(&run->call);
    run->call.scratch = allocate(run->scratch_bytes);
    if (weights == NULL)
        make_list(run);
}

void aggregation_run_fini(struct aggregation_run *run)
{
    const struct graph_case *graph = run->graph;
    ph__memory_free(run->call.scratch, ph__max(1, run->scratch_bytes));
    if (run->slots == NULL)
        return;
    ph__memory_free(run->offsets, (graph->num_nodes + 1) * sizeof *run->offsets);
    ph__memory_free(run->slots, ph__max(1, graph->num_items * sizeof *run->slots));
    ph__memory_free(run->scales, ph__max(1, graph->num_nodes * sizeof *run->scales));
}

double aggregation_run_whole(struct aggregation_run *run)
{
    const double start = ph__clock_seconds();
    bench_check(ph__op_aggregate.run(&run->call));
    return ph__clock_seconds() - start;
}

static void list_block(void *argument, size_t first, size_t last, size_t worker)
{
    struct ph__block_list block;
    if (!ph__aggregation_list(argument, first, last, worker, &block))
        abort();
}

double aggregation_run_lists(struct aggregation_run *run)
{
    const double start = ph__clock_seconds();
    struct ph__aggregation aggregation =
        ph__aggregation(&run->call, &run->inputs[NEIGHBOURS], &run->inputs[WEIGHTS], &run->options);
    ph__for_blocks(run->call.backend, run->graph->num_nodes, aggregation.block, list_block, &aggregation);
    return ph__clock_seconds() - start;
}

static void pool_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct aggregation_run *run = argument;
    const size_t dim = run->output.shape.dims[1];
    (void)worker;
    run->call.backend->kernels->embedding_bag(&(struct ph__embedding_bag_args){.table = run->inputs[X].data,
        .format = PH_ROWS_FP32,
        .dim = dim,
        .slots = run->slots,
        .offsets = run->offsets + first,
        .num_samples = last - first,
        .num_features = 1,
        .out_stride = dim,
        .scales = run->scales + first,
        .out = (ph_real *)run->output.data + first * dim});
}

double aggregation_run_listed(struct aggregation_run *run)
{
    const double start = ph__clock_seconds();
    const size_t num_nodes = run->graph->num_nodes;
    ph__for_blocks(run->call.backend, num_nodes, ph__aggregation_block(run->offsets[num_nodes], num_nodes),
        pool_block, run);
    return ph__clock_seconds() - start;
}
