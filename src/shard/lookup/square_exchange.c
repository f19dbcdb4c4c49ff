#include "shard/lookup/square_exchange.h"

#include "base/memory/absent.h"
#include "base/sizes.h"
#include "op/table/op_table.h"
#include "shard/exchange_nodes.h"

static const struct ph__square_exchange *exchange_of(const struct ph__call *call)
{
    return ((const struct ph__square_attributes *)call->attributes)->exchange;
}

/* ---- rows of slices ---- */

/* Rows [first, first + count) of a slice, among the distinct rows of its table. */
struct segment {
    size_t first, count;
};

/* Returns a table's operand among start's inputs. */
static const struct ph__operand *operand_of(const struct ph__operand *inputs, size_t table, size_t which)
{
    return &inputs[table * PH_SQUARES_TABLE_INPUTS + which];
}

static void find_segments(const struct ph__square_exchange *exchange, const struct ph__operand *inputs,
    struct segment *segments_out)
{
    for (size_t t = 0; t < exchange->num_tables; t++) {
        const struct ph__operand *operand = operand_of(inputs, t, PH_SQUARES_SLOTS);
        const uint32_t *slots = operand->type->kind == PH_SPARSE_ROWS ? operand->index : operand->data;
        size_t first = 0;
        for (size_t i = exchange->first_slices[t]; i < exchange->first_slices[t + 1]; i++) {
            const size_t end = ph__lower_bound(slots, ph__rows(operand), exchange->slices[i].end_slot);
            segments_out[i] = (struct segment){first, end - first};
            first = end;
        }
    }
}

/* Returns the end of the shares of one rank that begin at `first`. */
static size_t end_of_rank(const struct ph__square_exchange *exchange, size_t first)
{
    size_t end = first;
    while (end < exchange->num_shares && exchange->shares[end].rank == exchange->shares[first].rank)
        end++;
    return end;
}

/* ---- start ---- */

/* Returns the type of a buffer whose size output_bytes tells. */
static struct ph_type bytes_type(void)
{
    return ph__dense_type(1, (struct ph_dim[]){ph__dim_of(1, PH_SYMBOL_GLOBAL_BATCH)});
}

static ph_status start_infer(struct ph__infer *infer)
{
    infer->outputs[PH_SQUARES_IN_FLIGHT] = bytes_type();
    infer->outputs[PH_SQUARES_TICKET] = ph__scalar_type();
    infer->outputs[PH_SQUARES_SENT] = bytes_type();
    return PH_OK;
}

/* Counts the blocks received for a row of the slice. */
static size_t blocks_to_come(const struct ph__square_exchange *exchange, size_t slice)
{
    size_t num_blocks = 0;
    for (size_t i = 0; i < exchange->num_shares; i++)
        num_blocks += exchange->shares[i].slice == slice ? exchange->shares[i].num_blocks : 0;
    return num_blocks;
}

/* Counts the blocks sent for a row of the slice: this rank's, to each rank that has other shards. */
static size_t blocks_to_go(const struct ph__square_exchange *exchange, size_t slice, size_t own_blocks)
{
    return (exchange->slices[slice].num_shards - 1) * own_blocks;
}

/* Bounds the bytes: all rows of a table may be in the slice that needs most. */
static ph_status start_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    size_t numbers = 0;
    for (size_t t = 0; t < exchange->num_tables; t++) {
        const struct ph__operand *blocks = operand_of(call->inputs, t, PH_SQUARES_BLOCKS);
        size_t most = 0;
        for (size_t i = exchange->first_slices[t]; i < exchange->first_slices[t + 1]; i++)
            most = ph__max(most, output == PH_SQUARES_IN_FLIGHT
                                     ? blocks_to_come(exchange, i)
                                     : blocks_to_go(exchange, i, ph__row_width(blocks)));
        numbers += most * ph__rows(blocks);
    }
    *bytes_out = numbers * sizeof(ph_real);
    return PH_OK;
}

static void start_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    for (size_t t = 0; t < exchange_of(call)->num_tables; t++)
        cost_out->bytes +=
            2 * (double)ph__elements(operand_of(call->inputs, t, PH_SQUARES_BLOCKS)) * sizeof(ph_real);
}

/* Reserves a message each way for each share, at most. */
static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    return exchange->num_slices * sizeof(struct segment) +
           2 * exchange->num_shares * sizeof(struct ph__message);
}

/* Returns the message of the rank of shares [first, last), received at *place, which moves behind it. */
static struct ph__message expect(const struct ph__square_exchange *exchange, const struct segment *segments,
    size_t first, size_t last, ph_real **place)
{
    struct ph__message message = {exchange->shares[first].rank, *place, 0};
    for (size_t i = first; i < last; i++)
        *place += segments[exchange->shares[i].slice].count * exchange->shares[i].num_blocks;
    message.bytes = (uint64_t)(*place - (ph_real *)message.data) * sizeof(ph_real);
    return message;
}

static struct ph__message pack(
    const struct ph__call *call, const struct segment *segments, size_t first, size_t last, ph_real **place)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    struct ph__message message = {exchange->shares[first].rank, *place, 0};
    for (size_t i = first; i < last; i++) {
        const struct segment *segment = &segments[exchange->shares[i].slice];
        const struct ph__operand *operand =
            operand_of(call->inputs, exchange->slices[exchange->shares[i].slice].table, PH_SQUARES_BLOCKS);
        const size_t width = ph__row_width(operand);
        ph__numbers_move(*place, (const ph_real *)operand->data + segment->first * width,
            segment->count * width * sizeof(ph_real));
        *place += segment->count * width;
    }
    message.bytes = (uint64_t)(*place - (ph_real *)message.data) * sizeof(ph_real);
    return message;
}

/* Adds a message, unless it has no bytes. */
static size_t add_message(struct ph__message *messages, size_t count, struct ph__message message)
{
    messages[count] = message;
    return count + (message.bytes > 0);
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    struct ph__message *sends = call->scratch, *receives = sends + exchange->num_shares;
    struct segment *segments = (void *)(receives + exchange->num_shares);
    ph_real *sent = call->outputs[PH_SQUARES_SENT].data, *come = call->outputs[PH_SQUARES_IN_FLIGHT].data;
    struct ph__exchange list = {.sends = sends, .receives = receives};
    find_segments(exchange, call->inputs, segments);
    for (size_t first = 0, last; first < exchange->num_shares; first = last) {
        last = end_of_rank(exchange, first);
        list.num_sends = add_message(sends, list.num_sends, pack(call, segments, first, last, &sent));
        list.num_receives =
            add_message(receives, list.num_receives, expect(exchange, segments, first, last, &come));
    }
    const struct ph__comm_call named = {exchange->channel, exchange->what};
    return ph__start_node_run(exchange->sharding, &named, &list, &call->outputs[PH_SQUARES_TICKET]);
}

const struct ph__op ph__op_exchange_squares_start = {
    .name = "exchange_squares_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .cost = start_cost,
    .scratch_bytes = start_scratch_bytes,
    .output_bytes = start_output_bytes,
    .run = start_run,
};

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph_type *inputs = infer->inputs + PH_SQUARES_OUTPUTS;
    for (size_t t = 0; t < infer->num_outputs; t++)
        infer->outputs[t] =
            ph__dense_type(1, &inputs[t * PH_SQUARES_TABLE_INPUTS + PH_SQUARES_BLOCKS].dims[0]);
    return PH_OK;
}

/* Counts an addition for each block, own and received. */
static void wait_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    for (size_t t = 0; t < exchange->num_tables; t++) {
        const struct ph__operand *own = operand_of(call->inputs + PH_SQUARES_OUTPUTS, t, PH_SQUARES_BLOCKS);
        const double rows = (double)ph__rows(own);
        const double blocks =
            (double)(ph__row_width(own) + blocks_to_come(exchange, exchange->first_slices[t]));
        cost_out->flops += rows * blocks;
        cost_out->bytes += rows * (blocks + 1) * sizeof(ph_real);
    }
}

static size_t wait_scratch_bytes(const struct ph__call *call)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    return exchange->num_slices * sizeof(struct segment) +
           exchange->num_shards * sizeof(struct ph__square_shard);
}

/* Finds the blocks of each slice's rows, shard by shard. */
static void place_shards(
    const struct ph__call *call, const struct segment *segments, struct ph__square_shard *shards)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    const ph_real *come = call->inputs[PH_SQUARES_IN_FLIGHT].data;
    for (size_t i = 0; i < exchange->num_slices; i++) {
        const struct ph__operand *blocks =
            operand_of(call->inputs + PH_SQUARES_OUTPUTS, exchange->slices[i].table, PH_SQUARES_BLOCKS);
        const size_t width = ph__row_width(blocks);
        shards[exchange->slices[i].own_shard] =
            (struct ph__square_shard){(const ph_real *)blocks->data + segments[i].first * width, width};
    }
    for (size_t i = 0; i < exchange->num_shares; i++) {
        const struct ph__square_share *share = &exchange->shares[i];
        shards[share->shard] = (struct ph__square_shard){come, share->num_blocks};
        come += segments[share->slice].count * share->num_blocks;
    }
}

struct summing {
    const struct ph__square_exchange *exchange;
    const struct segment *segments;
    const struct ph__square_shard *shards;
    size_t table;
    ph_real *sums; /* of the table's rows */
};

/* Sums up the rows [first, last) of the table, slice by slice. */
static void sum_rows(void *argument, size_t first, size_t last, size_t worker)
{
    const struct summing *summing = argument;
    const size_t *slices = &summing->exchange->first_slices[summing->table];
    (void)worker;
    for (size_t i = slices[0]; i < slices[1]; i++) {
        const struct ph__square_slice *slice = &summing->exchange->slices[i];
        const struct segment *segment = &summing->segments[i];
        const size_t begin = ph__max(first, segment->first);
        const size_t end = ph__min(last, segment->first + segment->count);
        if (begin < end)
            ph__square_sums(summing->shards + slice->first_shard, slice->num_shards, begin - segment->first,
                end - segment->first, summing->sums + segment->first);
    }
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__square_exchange *exchange = exchange_of(call);
    struct ph__square_shard *shards = call->scratch;
    struct segment *segments = (void *)(shards + exchange->num_shards);
    PH_TRY(ph__comm_wait(exchange->sharding->comm, (uint64_t)*call->inputs[PH_SQUARES_TICKET].scalar));
    find_segments(exchange, call->inputs + PH_SQUARES_OUTPUTS, segments);
    place_shards(call, segments, shards);
    for (size_t t = 0; t < exchange->num_tables; t++) {
        const struct ph__operand *sums = &call->outputs[t];
        const size_t width =
            ph__row_width(operand_of(call->inputs + PH_SQUARES_OUTPUTS, t, PH_SQUARES_BLOCKS));
        struct summing summing = {exchange, segments, shards, t, sums->data};
        ph__for_blocks(call->backend, ph__rows(sums), ph__block_rows(width), sum_rows, &summing);
    }
    return PH_OK;
}

const struct ph__op ph__op_exchange_squares_wait = {
    .name = "exchange_squares_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .cost = wait_cost,
    .scratch_bytes = wait_scratch_bytes,
    .run = wait_run,
};
