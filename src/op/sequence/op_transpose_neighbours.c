/* transpose_neighbours: the sample of an aggregation the other way round.
 *
 * neighbours jagged (B bags, I), weights (I,1) or none
 *   -> sources jagged u32 (B bags, M): for each node those that aggregate its row, ascending; M counts the
 *      chosen neighbours
 *   -> coefficients (M), unless all are one: scale_i w_ij
 *
 * Nodes are cut into NUM_CHUNKS runs of about equally many neighbours. Each chunk counts its entries by
 * neighbour; a sum over neighbours and chunks turns the counts into places, which the chunk then fills. The
 * result depends on no cut. */
#include <stdatomic.h>
#include <string.h>

#include "base/memory/absent.h"
#include "op/sequence/aggregation.h"
#include "op/table/op_table.h"

enum { NEIGHBOURS, WEIGHTS, NUM_INPUTS };
enum { SOURCES, COEFFICIENTS };
enum { NUM_CHUNKS = 8 };

struct transpose_job {
    struct ph__aggregation aggregation;
    uint32_t *places; /* (NUM_CHUNKS, B) counts, later places, of each chunk's entries by neighbour */
    uint32_t *sources;
    ph_real *coefficients; /* NULL: all are one */
    atomic_bool has_bad_id;
};

static ph_status transpose_infer(struct ph__infer *infer)
{
    const struct ph_type *neighbours = &infer->inputs[NEIGHBOURS];
    const uint32_t symbol =
        ph__builder_symbol(infer->builder, "chosen neighbours", neighbours->dims[1].symbol, 1, SIZE_MAX);
    infer->outputs[SOURCES] = *neighbours;
    infer->outputs[SOURCES].dtype = PH_U32;
    infer->outputs[SOURCES].dims[1] = ph__dim_of(1, symbol);
    if (infer->num_outputs > COEFFICIENTS)
        infer->outputs[COEFFICIENTS] = ph__dense_type(1, &infer->outputs[SOURCES].dims[1]);
    return ph_builder_status(infer->builder);
}

/* Counts what is read and written twice: the neighbours while counting and filling. */
static void transpose_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double items = (double)call->outputs[SOURCES].shape.dims[1];
    ph__cost_copy(call, cost_out);
    cost_out->bytes += items * (2 * sizeof(int64_t) + sizeof(uint32_t));
}

static size_t transpose_scratch_bytes(const struct ph__call *call)
{
    const struct ph__operand *neighbours = &call->inputs[NEIGHBOURS];
    return ph__aggregation_scratch_bytes(neighbours) +
           NUM_CHUNKS * neighbours->shape.dims[0] * sizeof(uint32_t);
}

/* Returns the first node of a chunk. */
static size_t chunk_start(const struct ph__neighbours *neighbours, size_t chunk)
{
    const size_t num_items = neighbours->offsets[neighbours->num_nodes];
    if (chunk == NUM_CHUNKS)
        return neighbours->num_nodes;
    return ph__lower_bound(
        neighbours->offsets, neighbours->num_nodes, ph__range_start(num_items, chunk, NUM_CHUNKS));
}

typedef void (*block_visit)(const struct transpose_job *job, size_t first, size_t num_nodes,
    const struct ph__neighbour_list *list, uint32_t *places);

/* Lists a chunk block by block. */
static void visit_chunk(struct transpose_job *job, size_t chunk, size_t worker, block_visit visit)
{
    const struct ph__aggregation *aggregation = &job->aggregation;
    const size_t end = chunk_start(&aggregation->neighbours, chunk + 1);
    uint32_t *places = job->places + chunk * aggregation->neighbours.num_nodes;
    for (size_t first = chunk_start(&aggregation->neighbours, chunk); first < end;
         first += aggregation->block) {
        const size_t last = ph__min(first + aggregation->block, end);
        struct ph__block_list block;
        if (!ph__aggregation_list(aggregation, first, last, worker, &block)) {
            atomic_store_explicit(&job->has_bad_id, true, memory_order_relaxed);
            return;
        }
        visit(job, first, last - first, &block.list, places);
    }
}

static void count_block(const struct transpose_job *job, size_t first, size_t num_nodes,
    const struct ph__neighbour_list *list, uint32_t *places)
{
    (void)job, (void)first;
    for (size_t i = 0; i < list->offsets[num_nodes]; i++)
        places[list->slots[i]]++;
}

static void fill_block(const struct transpose_job *job, size_t first, size_t num_nodes,
    const struct ph__neighbour_list *list, uint32_t *places)
{
    for (size_t node = 0; node < num_nodes; node++) {
        for (size_t i = list->offsets[node]; i < list->offsets[node + 1]; i++) {
            const uint32_t place = places[list->slots[i]]++;
            job->sources[place] = (uint32_t)(first + node);
            if (job->coefficients != NULL)
                job->coefficients[place] =
                    list->scales[node] * (list->weights != NULL ? list->weights[i] : 1);
        }
    }
}

static void count_chunk(void *argument, size_t chunk, size_t worker)
{
    struct transpose_job *job = argument;
    const size_t num_nodes = job->aggregation.neighbours.num_nodes;
    memset(job->places + chunk * num_nodes, 0, num_nodes * sizeof *job->places);
    visit_chunk(job, chunk, worker, count_block);
}

static void fill_chunk(void *argument, size_t chunk, size_t worker)
{
    visit_chunk(argument, chunk, worker, fill_block);
}

/* Turns counts into places and offsets. */
static uint32_t sum_counts(const struct transpose_job *job, uint32_t *offsets_out)
{
    const size_t num_nodes = job->aggregation.neighbours.num_nodes;
    uint32_t sum = 0;
    for (size_t node = 0; node < num_nodes; node++) {
        offsets_out[node] = sum;
        for (size_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
            uint32_t *place = &job->places[chunk * num_nodes + node];
            const uint32_t here = *place;
            *place = sum;
            sum += here;
        }
    }
    offsets_out[num_nodes] = sum;
    return sum;
}

static ph_status transpose_run(struct ph__call *call)
{
    const struct ph__operand *neighbours = &call->inputs[NEIGHBOURS];
    struct ph__operand *sources = &call->outputs[SOURCES];
    struct ph__team *team = call->backend->team;
    struct transpose_job job = {
        .aggregation = ph__aggregation(call, neighbours, &call->inputs[WEIGHTS], call->attributes),
        .sources = sources->data};
    job.places = job.aggregation.slots + neighbours->shape.dims[1];
    if (call->num_outputs > COEFFICIENTS && !ph__memory_is_absent(call->outputs[COEFFICIENTS].data))
        job.coefficients = call->outputs[COEFFICIENTS].data;
    ph__parallel_for(team, NUM_CHUNKS, count_chunk, &job);
    if (atomic_load_explicit(&job.has_bad_id, memory_order_relaxed))
        return ph__report_bad_neighbour(call, neighbours);
    call->extents[sources->type->dims[1].symbol] = sum_counts(&job, sources->index);
    ph__parallel_for(team, NUM_CHUNKS, fill_chunk, &job);
    return PH_OK;
}

const struct ph__op ph__op_transpose_neighbours = {
    .name = "transpose_neighbours",
    .traits = PH_OP_OF_IDS,
    .infer = transpose_infer,
    .cost = transpose_cost,
    .scratch_bytes = transpose_scratch_bytes,
    .run = transpose_run,
};

void ph__transpose_neighbours(struct ph_builder *builder, ph_value neighbours, ph_value weights,
    const struct ph_aggregate_options *options, ph_value outputs_out[2])
{
    const ph_value inputs[NUM_INPUTS] = {neighbours, weights};
    const bool are_all_one = weights == 0 && options->normalisation == PH_NORMALISE_SUM &&
                             options->sampling.strategy != PH_SAMPLING_RATE && options->sampling.width == 0;
    const size_t num_outputs = are_all_one ? 1 : 2;
    outputs_out[SOURCES] = outputs_out[COEFFICIENTS] = 0;
    for (size_t i = 0; i < num_outputs; i++)
        outputs_out[i] = ph__builder_find(
            builder, &ph__op_transpose_neighbours, options, sizeof *options, NUM_INPUTS, inputs, i);
    if (outputs_out[SOURCES] == 0)
        ph__emit(builder, &ph__op_transpose_neighbours, NULL, options, sizeof *options, NUM_INPUTS, inputs,
            num_outputs, outputs_out);
}
