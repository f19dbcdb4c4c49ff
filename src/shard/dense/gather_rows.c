/* gather_rows: sparse_rows (U,D) of each rank -> sparse_rows of all ranks, in three exchanges: the numbers of
 * rows, their slots, and the rows. */
#include "shard/dense/dense_passes.h"

#include "base/memory/absent.h"
#include "base/memory/memory.h"

/* Channels, shared by all tables: each exchange is waited for before the next begins. */
enum {
    COUNTS = PH_CHANNEL_REPLICAS,
    SLOTS,
    ROWS,
};

struct gather_attributes {
    struct ph__sharding *sharding;
    size_t times_ids; /* all ranks have at most times_ids times the ids of the bound batch */
    size_t most_rows; /* of a rank: the table's rows */
};

static ph_status gather_infer(struct ph__infer *infer)
{
    const struct ph_type *rows = &infer->inputs[0];
    if (rows->kind != PH_SPARSE_ROWS)
        return ph__infer_fail(infer, "sparse rows");
    const struct gather_attributes *attributes = infer->attributes;
    const uint32_t symbol = ph__builder_symbol(
        infer->builder, "gathered", PH_SYMBOL_GLOBAL_IDS, attributes->times_ids, attributes->most_rows);
    infer->outputs[0] = *rows;
    infer->outputs[0].dims[0] = ph__dim_of(1, symbol);
    return ph_builder_status(infer->builder);
}

static void gather_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const double rows = (double)call->outputs[0].shape.dims[0], dim = (double)call->outputs[0].shape.dims[1];
    *cost_out = (struct ph__cost){
        .flops = rows * dim, .bytes = rows * (2 * dim * sizeof(ph_real) + 2 * sizeof(uint32_t))};
}

/* Data gathered from the ranks, one rank behind the other. */
struct gathered {
    uint64_t *counts, *bytes; /* by rank */
    size_t *next;             /* by rank: index of its first row that is not merged yet */
    size_t *ends;             /* by rank */
    uint32_t *slots;
    ph_real *rows;
};

static size_t ranks_bytes(size_t world_size)
{
    return ph__size_align(world_size * (2 * sizeof(uint64_t) + 2 * sizeof(size_t)));
}

/* Returns the most rows gathered: no rank has more than the table, and all together no more than the ids of
 * all batches that the gradient covers. */
static size_t most_gathered(const struct ph__call *call)
{
    const struct gather_attributes *attributes = call->attributes;
    const size_t world_size = attributes->sharding->world_size;
    const size_t num_ids = (size_t)call->extents[PH_SYMBOL_GLOBAL_IDS] * attributes->times_ids;
    return attributes->most_rows < num_ids / world_size ? attributes->most_rows * world_size : num_ids;
}

static size_t gather_scratch_bytes(const struct ph__call *call)
{
    const struct gather_attributes *attributes = call->attributes;
    const size_t most = most_gathered(call);
    return ranks_bytes(attributes->sharding->world_size) + ph__size_align(most * sizeof(uint32_t)) +
           most * call->outputs[0].shape.dims[1] * sizeof(ph_real);
}

/* Lays out the scratch memory, except for the rows, whose place depends on the number of slots received. */
static struct gathered lay_out(const struct ph__call *call, size_t world_size)
{
    struct gathered gathered = {.counts = call->scratch};
    gathered.bytes = gathered.counts + world_size;
    gathered.next = (size_t *)(gathered.bytes + world_size);
    gathered.ends = gathered.next + world_size;
    gathered.slots = (void *)((char *)call->scratch + ranks_bytes(world_size));
    return gathered;
}

static ph_status gather(struct ph_comm *comm, uint32_t channel, const char *what, const void *data,
    const uint64_t *bytes, void *all)
{
    const struct ph__comm_call named = {channel, what};
    uint64_t ticket;
    PH_TRY(ph__comm_all_gather_start(comm, &named, ph__comm_world(comm), data, bytes, all, &ticket));
    return ph__comm_wait(comm, ticket);
}

static ph_status gather_counts(const struct ph__sharding *sharding, uint64_t own, struct gathered *gathered)
{
    size_t end = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        gathered->bytes[rank] = sizeof own;
    PH_TRY(gather(sharding->comm, COUNTS, "numbers of rows", &own, gathered->bytes, gathered->counts));
    for (size_t rank = 0; rank < sharding->world_size; rank++) {
        gathered->next[rank] = end;
        end += (size_t)gathered->counts[rank];
        gathered->ends[rank] = end;
    }
    gathered->rows = (void *)((char *)gathered->slots + ph__size_align(end * sizeof(uint32_t)));
    return PH_OK;
}

static ph_status gather_items(const struct ph__sharding *sharding, uint32_t channel, const char *what,
    size_t item_bytes, const void *items, struct gathered *gathered, void *all)
{
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        gathered->bytes[rank] = gathered->counts[rank] * item_bytes;
    return gather(sharding->comm, channel, what, items, gathered->bytes, all);
}

/* Returns the least slot of any rank that is not merged yet; UINT32_MAX when all are. */
static uint32_t least_slot(const struct gathered *gathered, size_t world_size)
{
    uint32_t least = UINT32_MAX;
    for (size_t rank = 0; rank < world_size; rank++)
        if (gathered->next[rank] < gathered->ends[rank] && gathered->slots[gathered->next[rank]] < least)
            least = gathered->slots[gathered->next[rank]];
    return least;
}

static size_t merge(const struct ph__call *call, struct gathered *gathered, size_t world_size)
{
    const struct ph__operand *output = &call->outputs[0];
    const size_t dim = output->shape.dims[1];
    size_t count = 0;
    for (uint32_t slot; (slot = least_slot(gathered, world_size)) != UINT32_MAX; count++) {
        ph_real *sum = (ph_real *)output->data + count * dim;
        bool is_first = true;
        for (size_t rank = 0; rank < world_size; rank++) {
            if (gathered->next[rank] == gathered->ends[rank] || gathered->slots[gathered->next[rank]] != slot)
                continue;
            const ph_real *row = gathered->rows + gathered->next[rank]++ * dim;
            if (is_first)
                ph__numbers_move(sum, row, dim * sizeof *sum);
            else if (!ph__memory_is_absent(sum))
                call->backend->kernels->add(dim, sum, row, sum);
            is_first = false;
        }
        output->index[count] = slot;
    }
    return count;
}

static ph_status gather_run(struct ph__call *call)
{
    const struct ph__sharding *sharding = ((const struct gather_attributes *)call->attributes)->sharding;
    const struct ph__operand *own = &call->inputs[0];
    const size_t world_size = sharding->world_size;
    struct gathered gathered = lay_out(call, world_size);
    PH_TRY(gather_counts(sharding, own->shape.dims[0], &gathered));
    PH_TRY(gather_items(
        sharding, SLOTS, "touched rows", sizeof(uint32_t), own->index, &gathered, gathered.slots));
    PH_TRY(gather_items(sharding, ROWS, "gradients of rows", own->shape.dims[1] * sizeof(ph_real), own->data,
        &gathered, gathered.rows));
    call->extents[call->outputs[0].type->dims[0].symbol] = merge(call, &gathered, world_size);
    return PH_OK;
}

static const struct ph__op gather_rows = {
    .name = "gather_rows",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = gather_infer,
    .cost = gather_cost,
    .scratch_bytes = gather_scratch_bytes,
    .run = gather_run,
};

/* Returns how many micro-batches the gradient covers: it has as many times the ids of one. */
static size_t times_ids(const struct ph__graph *graph, ph_value rows)
{
    uint32_t symbol = graph->values[rows].type.dims[0].symbol;
    size_t times = 1;
    for (; symbol >= PH_NUM_BATCH_SYMBOLS; symbol = graph->symbols[symbol].bound)
        times *= graph->symbols[symbol].factor;
    return times;
}

ph_value ph__gather_rows(struct ph__sharding *sharding, struct ph_builder *builder, ph_value rows)
{
    const struct ph__graph *graph = &builder->graph;
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct gather_attributes attributes = {.sharding = sharding,
        .times_ids = times_ids(graph, rows),
        .most_rows = graph->symbols[graph->values[rows].type.dims[0].symbol].limit};
    return ph__emit1(builder, &gather_rows, NULL, &attributes, sizeof attributes, 1, &rows);
}
