#include "shard/gradient_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "shard/gather_rows.h"

enum { FIRST_CHANNEL = 4096, MOST_GRADIENTS = PH_MAX_OPERANDS - 2, ROW_ELEMENTS = 256 };

/* Gradients that travel as one array of rows of ROW_ELEMENTS numbers, the last one filled up with zeros. */
struct bucket {
    struct ph_sharding *sharding;
    uint32_t channel;
    size_t count, num_rows;
    size_t elements[MOST_GRADIENTS];
};

static const struct bucket *bucket_of(const struct ph_call *call)
{
    return call->attributes;
}

/* ---- start: gradients -> (rows, ROW_ELEMENTS), ticket --------------------------------------------------------------- */

enum { ROWS, TICKET, NUM_START_OUTPUTS };

static ph_status start_infer(struct ph_infer *infer)
{
    const struct bucket *bucket = infer->attributes;
    infer->outputs[ROWS] =
        ph__dense_type(2, (struct ph_dim[]){ph__dim(bucket->num_rows), ph__dim(ROW_ELEMENTS)});
    infer->outputs[TICKET] = ph__scalar_type();
    return PH_OK;
}

static void copy_cost(const struct ph_call *call, struct ph_cost *cost_out)
{
    cost_out->bytes = 2 * (double)(bucket_of(call)->num_rows * ROW_ELEMENTS) * sizeof(ph_real);
}

static ph_status start_run(struct ph_call *call)
{
    const struct bucket *bucket = bucket_of(call);
    const struct ph_comm_call named = {bucket->channel, "gradients of dense parameters"};
    struct ph_sharding *sharding = bucket->sharding;
    ph_real *rows = call->outputs[ROWS].data, *next = rows;
    for (size_t i = 0; i < bucket->count; next += bucket->elements[i++])
        memcpy(next, call->inputs[i].data, bucket->elements[i] * sizeof *next);
    memset(next, 0, (size_t)(rows + bucket->num_rows * ROW_ELEMENTS - next) * sizeof *next);
    uint64_t ticket;
    PH_TRY(ph__comm_all_reduce_start(sharding->comm, &named, ph__comm_world(sharding->comm), sharding->dense,
        bucket->num_rows, ROW_ELEMENTS, rows, &ticket));
    *call->outputs[TICKET].scalar = (double)ticket;
    return PH_OK;
}

const struct ph_op ph__op_reduce_gradients_start = {
    .name = "reduce_gradients_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY,
    .infer = start_infer,
    .cost = copy_cost,
    .run = start_run,
};

/* ---- wait: rows, ticket, the first gradients for their types -> gradients -------------------------------------------- */

static ph_status wait_infer(struct ph_infer *infer)
{
    for (size_t i = 0; i < infer->num_outputs; i++)
        infer->outputs[i] = infer->inputs[NUM_START_OUTPUTS + i];
    return PH_OK;
}

static ph_status wait_run(struct ph_call *call)
{
    const struct bucket *bucket = bucket_of(call);
    const ph_real *next = call->inputs[ROWS].data;
    PH_TRY(ph__comm_wait(bucket->sharding->comm, (uint64_t)*call->inputs[TICKET].scalar));
    for (size_t i = 0; i < bucket->count; next += bucket->elements[i++])
        memcpy(call->outputs[i].data, next, bucket->elements[i] * sizeof *next);
    return PH_OK;
}

const struct ph_op ph__op_reduce_gradients_wait = {
    .name = "reduce_gradients_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY,
    .infer = wait_infer,
    .cost = copy_cost,
    .run = wait_run,
};

/* ---- buckets --------------------------------------------------------------------------------------------------------- */

/* A dense gradient, and which node makes it. */
struct ready {
    size_t parameter;
    uint32_t producer;
    size_t elements;
};

static int compare_ready(const void *left, const void *right)
{
    const struct ready *a = left, *b = right;
    if (a->producer != b->producer)
        return a->producer < b->producer ? -1 : 1;
    return a->parameter < b->parameter ? -1 : a->parameter > b->parameter;
}

static size_t list_ready(
    const struct ph_builder *builder, size_t count, const ph_value *gradients, struct ready *list)
{
    const struct ph_graph *graph = &builder->graph;
    size_t num_ready = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ph_value_info *info = &graph->values[gradients[i]];
        if (gradients[i] == 0 || info->type.kind != PH_DENSE || info->type.dims[0].symbol != 0)
            continue;
        list[num_ready++] = (struct ready){i, info->producer, ph__type_elements_from(&info->type, 0)};
    }
    qsort(list, num_ready, sizeof *list, compare_ready);
    return num_ready;
}

/* Adds the start of a bucket behind the node that makes its last gradient. Returns its outputs. */
static void emit_start(struct ph_builder *builder, const struct bucket *bucket, const ph_value *inputs,
    ph_value producer_of, ph_value outputs[NUM_START_OUTPUTS])
{
    struct ph_graph *graph = &builder->graph;
    const size_t begin = graph->num_nodes;
    ph__emit(builder, &ph__op_reduce_gradients_start, NULL, bucket, sizeof *bucket, bucket->count, inputs,
        NUM_START_OUTPUTS, outputs);
    if (ph_builder_status(builder) != PH_OK || !bucket->sharding->overlaps)
        return;
    const ph_status status = ph__graph_move_before(graph, graph->values[producer_of].producer + 1, begin);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}

static void reduce_bucket(
    struct ph_builder *builder, const struct bucket *bucket, const struct ready *list, ph_value *gradients)
{
    ph_value inputs[PH_MAX_OPERANDS] = {0}, outputs[PH_MAX_OPERANDS], *own = inputs + NUM_START_OUTPUTS;
    for (size_t i = 0; i < bucket->count; i++)
        own[i] = gradients[list[i].parameter];
    emit_start(builder, bucket, own, own[bucket->count - 1], inputs);
    ph__emit(builder, &ph__op_reduce_gradients_wait, NULL, bucket, sizeof *bucket,
        NUM_START_OUTPUTS + bucket->count, inputs, bucket->count, outputs);
    for (size_t i = 0; i < bucket->count; i++)
        gradients[list[i].parameter] = outputs[i];
}

/* How many of the gradients come into the next bucket: by bytes, and one at least. */
static size_t fill(struct bucket *bucket, const struct ready *list, size_t count)
{
    size_t elements = 0;
    bucket->count = 0;
    while (bucket->count < count && bucket->count < MOST_GRADIENTS) {
        const size_t more = list[bucket->count].elements;
        if (bucket->count > 0 && (elements + more) * sizeof(ph_real) > bucket->sharding->bucket_bytes)
            break;
        bucket->elements[bucket->count++] = more;
        elements += more;
    }
    bucket->num_rows = (elements + ROW_ELEMENTS - 1) / ROW_ELEMENTS;
    return bucket->count;
}

/* Tables of shards say of which parts (shard_lookups.c); the others are the same on every rank. */
static bool is_replicated(const struct ph_builder *builder, ph_value parameter)
{
    const struct ph_declaration *table = ph__builder_declaration(builder, parameter);
    return table != NULL && table->is_table && table->parts == NULL;
}

static void gather_tables(struct ph_sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients)
{
    size_t index = 0;
    for (size_t i = 0; i < count; i++)
        if (gradients[i] != 0 && is_replicated(builder, parameters[i]))
            gradients[i] = ph__gather_rows(sharding, builder, gradients[i], index++);
}

void ph__reduce_gradients(struct ph_sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients)
{
    struct ready *list = calloc(count + 1, sizeof *list);
    if (list == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "no memory for %zu gradients", count);
        return;
    }
    const size_t num_ready =
        ph_builder_status(builder) == PH_OK ? list_ready(builder, count, gradients, list) : 0;
    struct bucket bucket = {.sharding = sharding, .channel = FIRST_CHANNEL};
    for (size_t first = 0; first < num_ready && ph_builder_status(builder) == PH_OK; bucket.channel++) {
        const size_t here = fill(&bucket, list + first, num_ready - first);
        reduce_bucket(builder, &bucket, list + first, gradients);
        first += here;
    }
    gather_tables(sharding, builder, count, parameters, gradients);
    free(list);
}
