#include "shard/dense/dense_passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/plan_traffic.h"
#include "shard/dense/gradient_bucket.h"
#include "shard/units/units.h"

/* ---- start, by the communicator: gradients -> (rows, columns); ticket; staging memory of the sum ----
 *
 * On an int8 wire, rows of PH_DENSE_COLUMNS have a scale each, and the last is padded with zeros. */

enum { ROWS, TICKET, STAGING, NUM_BETWEEN };

static size_t num_columns(const struct ph__gradient_bucket *bucket)
{
    return bucket->sharding->dense == PH_WIRE_INT8 ? PH_DENSE_COLUMNS : 1;
}

static size_t num_rows(const struct ph__gradient_bucket *bucket)
{
    return ph__divide_up(bucket->num_elements, num_columns(bucket));
}

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__gradient_bucket *bucket = infer->attributes;
    infer->outputs[ROWS] =
        ph__dense_type(2, (struct ph_dim[]){ph__dim(num_rows(bucket)), ph__dim(num_columns(bucket))});
    infer->outputs[TICKET] = ph__scalar_type();
    const size_t bytes = ph__comm_staging_bytes(bucket->sharding->comm, bucket->group,
        bucket->sharding->dense, num_rows(bucket), num_columns(bucket));
    infer->outputs[STAGING] = ph__dense_type(1, (struct ph_dim[]){ph__dim(bytes / sizeof(ph_real))});
    return PH_OK;
}

static void copy_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = 2 * (double)(ph__bucket_of(call)->num_elements) * sizeof(ph_real);
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const struct ph__comm_call named = {PH_CHANNEL_DENSE + bucket->index, "gradients of dense parameters"};
    struct ph__sharding *sharding = bucket->sharding;
    ph_real *rows = call->outputs[ROWS].data, *next = rows;
    for (size_t i = 0; i < bucket->count; next += bucket->elements[i++])
        ph__numbers_move(next, call->inputs[i].data, bucket->elements[i] * sizeof *next);
    if (!ph__memory_is_absent(next))
        memset(next, 0, (size_t)(rows + num_rows(bucket) * num_columns(bucket) - next) * sizeof *next);
    uint64_t ticket;
    PH_TRY(ph__comm_all_reduce_start(sharding->comm, &named, bucket->group, sharding->dense, num_rows(bucket),
        num_columns(bucket), rows, call->outputs[STAGING].data, &ticket));
    *call->outputs[TICKET].scalar = (double)ticket;
    return PH_OK;
}

static const struct ph__op start = {
    .name = "reduce_gradients_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .cost = copy_cost,
    .run = start_run,
};

/* ---- wait, by the communicator: rows, ticket, staging memory, the first gradients for their types ->
 * gradients ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    return ph__bucket_wait_infer(infer, NUM_BETWEEN);
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const ph_real *next = call->inputs[ROWS].data;
    PH_TRY(ph__comm_wait(bucket->sharding->comm, (uint64_t)*call->inputs[TICKET].scalar));
    for (size_t i = 0; i < bucket->count; next += bucket->elements[i++])
        ph__numbers_move(call->outputs[i].data, next, bucket->elements[i] * sizeof *next);
    return PH_OK;
}

static const struct ph__op wait = {
    .name = "reduce_gradients_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .cost = copy_cost,
    .run = wait_run,
};

static const struct ph__bucket_ops reduce_ops = {&start, &wait, NUM_BETWEEN};

/* ---- buckets ---- */

/* A dense gradient, and the node that makes it. */
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

/* Gradients are summed over all ranks, over the ranks that have the same shards (units/units.h), or over the
 * host that has a tower's layers. */
enum gradient_kind { OF_REPLICAS, OF_SHARDS, OF_TOWERS };

/* Gradients of a program, and the ranks that sum those of one kind. */
struct gradients {
    struct ph__sharding *sharding;
    size_t count;
    const ph_value *parameters;
    ph_value *values;
    const struct ph__group *group;
    enum gradient_kind kind;
    uint32_t next_bucket;
};

static enum gradient_kind kind_of(const struct ph__sharding *sharding, ph_value parameter)
{
    if (ph__is_of_tower(sharding, parameter))
        return OF_TOWERS;
    return ph__units_whole(sharding, parameter) != parameter ? OF_SHARDS : OF_REPLICAS;
}

static size_t list_ready(
    const struct ph_builder *builder, const struct gradients *gradients, struct ready *list)
{
    const struct ph__graph *graph = &builder->graph;
    size_t num_ready = 0;
    for (size_t i = 0; i < gradients->count; i++) {
        const struct ph__value_info *info = &graph->values[gradients->values[i]];
        const ph_value parameter = gradients->parameters[i];
        if (gradients->values[i] == 0 || info->type.kind != PH_DENSE || info->type.dims[0].symbol != 0 ||
            kind_of(gradients->sharding, parameter) != gradients->kind)
            continue;
        list[num_ready++] = (struct ready){i, info->producer, ph__type_elements_from(&info->type, 0)};
    }
    qsort(list, num_ready, sizeof *list, compare_ready);
    return num_ready;
}

bool ph__is_gradient_wait(const struct ph__node *node)
{
    return node->op == reduce_ops.wait || node->op == ph__bucket_push_ops.wait;
}

bool ph__sums_gradients(const struct ph__op *op)
{
    return op == reduce_ops.start || op == reduce_ops.wait || op == ph__bucket_push_ops.start ||
           op == ph__bucket_push_ops.wait;
}

static const struct ph__bucket_ops *ops_of(const struct ph__gradient_bucket *bucket)
{
    const bool is_of_world = bucket->group->size == bucket->sharding->world_size;
    return bucket->sharding->reducer != NULL && is_of_world ? &ph__bucket_push_ops : &reduce_ops;
}

/* Adds the start of a bucket behind the node that makes its last gradient. */
static void emit_start(struct ph_builder *builder, const struct ph__gradient_bucket *bucket,
    const ph_value *inputs, ph_value *between_out)
{
    struct ph__graph *graph = &builder->graph;
    const size_t begin = graph->num_nodes;
    const ph_value last = inputs[bucket->count - 1];
    ph__emit(builder, ops_of(bucket)->start, NULL, bucket, sizeof *bucket, bucket->count, inputs,
        ops_of(bucket)->num_between, between_out);
    if (ph_builder_status(builder) != PH_OK || !bucket->sharding->overlaps)
        return;
    const ph_status status = ph__graph_move_before(graph, graph->values[last].producer + 1, begin);
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
}

static void reduce_bucket(struct ph_builder *builder, const struct ph__gradient_bucket *bucket,
    const struct ready *list, ph_value *gradients)
{
    const size_t num_between = ops_of(bucket)->num_between;
    ph_value inputs[PH_MAX_OPERANDS] = {0}, outputs[PH_MAX_OPERANDS], *own = inputs + num_between;
    for (size_t i = 0; i < bucket->count; i++)
        own[i] = gradients[list[i].parameter];
    emit_start(builder, bucket, own, inputs);
    ph__emit(builder, ops_of(bucket)->wait, NULL, bucket, sizeof *bucket, num_between + bucket->count, inputs,
        bucket->count, outputs);
    for (size_t i = 0; i < bucket->count; i++)
        gradients[list[i].parameter] = outputs[i];
}

/* Fills the next bucket, up to bucket_bytes but with one gradient at least. Returns how many of the gradients
 * are in it. */
static size_t fill(struct ph__gradient_bucket *bucket, const struct ready *list, size_t count)
{
    bucket->count = bucket->num_elements = 0;
    while (bucket->count < count && bucket->count < PH_BUCKET_MOST_GRADIENTS) {
        const size_t more = list[bucket->count].elements;
        if (bucket->count > 0 &&
            (bucket->num_elements + more) * sizeof(ph_real) > bucket->sharding->bucket_bytes)
            break;
        bucket->elements[bucket->count++] = more;
        bucket->num_elements += more;
    }
    return bucket->count;
}

/* Returns the number of buckets; sizes_out (num_ready): the numbers in each. */
static size_t list_buckets(
    struct ph__sharding *sharding, const struct ready *list, size_t num_ready, size_t *sizes_out)
{
    struct ph__gradient_bucket bucket = {.sharding = sharding};
    size_t num_buckets = 0;
    for (size_t first = 0; first < num_ready; num_buckets++) {
        first += fill(&bucket, list + first, num_ready - first);
        sizes_out[num_buckets] = bucket.num_elements;
    }
    return num_buckets;
}

/* Checks and announces all buckets of a kind before the first is made: each needs a channel, and a reducer
 * must know all that it is to sum. */
static ph_status open_buckets(const struct gradients *gradients, size_t num_buckets, const size_t *sizes)
{
    const struct ph__gradient_bucket first = {.sharding = gradients->sharding, .group = gradients->group};
    if (gradients->next_bucket + num_buckets > PH_MAX_BUCKETS)
        return ph_fail(PH_ERROR_CONFIG,
            "%zu buckets of dense gradients are more than %d: raise parallel.bucket_bytes",
            gradients->next_bucket + num_buckets, (int)PH_MAX_BUCKETS);
    return ops_of(&first) == &ph__bucket_push_ops
               ? ph__gradient_push_open(gradients->sharding, num_buckets, sizes)
               : PH_OK;
}

static ph_status plan_buckets(const struct gradients *gradients, const struct ready *list, size_t num_ready)
{
    size_t *sizes = calloc(num_ready, sizeof *sizes);
    if (sizes == NULL)
        return ph__out_of_memory("%zu buckets", num_ready);
    const ph_status status =
        open_buckets(gradients, list_buckets(gradients->sharding, list, num_ready, sizes), sizes);
    free(sizes);
    return status;
}

/* list: scratch (gradients->count). */
static void reduce_dense(struct ph_builder *builder, struct gradients *gradients, struct ready *list)
{
    struct ph__gradient_bucket bucket = {.sharding = gradients->sharding, .group = gradients->group};
    const size_t num_ready = list_ready(builder, gradients, list);
    const ph_status status = num_ready > 0 ? plan_buckets(gradients, list, num_ready) : PH_OK;
    if (status != PH_OK)
        ph_builder_fail(builder, status, "%s", ph_error_text());
    for (size_t first = 0; first < num_ready && ph_builder_status(builder) == PH_OK;) {
        const size_t here = fill(&bucket, list + first, num_ready - first);
        bucket.index = gradients->next_bucket++;
        reduce_bucket(builder, &bucket, list + first, gradients->values);
        first += here;
    }
}

/* Reduces the gradients of each kind. All ranks number the buckets of the first kind alike, since those of
 * towers, which some ranks do not have, come last. */
static void reduce_all_dense(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *values, struct ready *list)
{
    struct gradients gradients = {
        sharding, count, parameters, values, ph__comm_world(sharding->comm), OF_REPLICAS, 0};
    reduce_dense(builder, &gradients, list);
    if (sharding->unit_peers != NULL && sharding->unit_peers->size > 1) {
        gradients.group = sharding->unit_peers;
        gradients.kind = OF_SHARDS;
        reduce_dense(builder, &gradients, list);
    }
    if (sharding->num_towers > 0) {
        gradients.group = sharding->tower_group;
        gradients.kind = OF_TOWERS;
        reduce_dense(builder, &gradients, list);
    }
}

/* Returns true for a table that is the same on every rank: tables of shards name their parts
 * (shard_lookups.c). */
static bool is_replicated(const struct ph_builder *builder, ph_value parameter)
{
    const struct ph__declaration *table = ph__builder_declaration(builder, parameter);
    return table != NULL && table->is_table && table->shards == NULL;
}

static void gather_tables(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients)
{
    for (size_t i = 0; i < count; i++)
        if (gradients[i] != 0 && is_replicated(builder, parameters[i]))
            gradients[i] = ph__gather_rows(sharding, builder, gradients[i]);
}

void ph__reduce_gradients(struct ph__sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients)
{
    struct ready *list = calloc(count + 1, sizeof *list);
    if (list == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: %zu gradients", count);
        return;
    }
    if (ph_builder_status(builder) == PH_OK)
        reduce_all_dense(sharding, builder, count, parameters, gradients, list);
    gather_tables(sharding, builder, count, parameters, gradients);
    free(list);
}
