#include "shard/lookup/host_sums.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "shard/exchange_nodes.h"
#include "shard/lookup/block_rows.h"

/* Samples unpacked at a time: those of a partial stay in a cache. */
enum { BLOCK_SAMPLES = 64 };

/* ---- numbers of rows ---- */

size_t ph__host_rank_for(const struct ph__sharding *sharding, size_t rank)
{
    const size_t num_local = sharding->plan->topology.ranks_per_host;
    return sharding->rank - sharding->rank % num_local + rank % num_local;
}

size_t ph__host_partial_rows(
    const struct ph__host_sums *sums, const struct ph__host_partial *partial, size_t sample_rank)
{
    return ph__sharding_samples(sums->exchange->sharding, sample_rank) * partial->count;
}

/* Returns the bytes of partials [first, last), each in num_runs runs with num_samples samples together. */
static size_t most_bytes(const struct ph__host_sums *sums, size_t first, size_t last, size_t num_samples,
    size_t num_runs, enum ph_wire_format wire)
{
    size_t bytes = 0;
    for (size_t i = first; i < last; i++) {
        const struct ph__host_partial *partial = &sums->partials[i];
        bytes += ph__block_wire_bytes(&sums->blocks[partial->block], wire, num_samples * partial->count) +
                 num_runs * PH_RUN_BYTES;
    }
    return bytes;
}

size_t ph__host_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire)
{
    const struct ph__sharding *sharding = sums->exchange->sharding;
    const size_t num_samples = ph__peer_samples_most(sharding, call->extents[PH_SYMBOL_GLOBAL_BATCH]);
    return most_bytes(sums, 0, sums->num_partials, num_samples, sharding->world_size, wire);
}

size_t ph__host_own_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire)
{
    if (wire == PH_WIRE_FP32)
        return 0;
    return most_bytes(sums, sums->own_first, sums->own_first + sums->own_count,
        call->extents[PH_SYMBOL_GLOBAL_BATCH], sums->exchange->sharding->world_size, wire);
}

size_t ph__host_partial_most_numbers(const struct ph__host_sums *sums, size_t num_samples)
{
    size_t most = 0;
    for (size_t i = 0; i < sums->num_partials; i++)
        most = ph__max(most, sums->partials[i].count * sums->blocks[sums->partials[i].block].width);
    return most * num_samples;
}

/* ---- start ---- */

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph_dim bytes = ph__dim_of(1, PH_SYMBOL_GLOBAL_BATCH);
    infer->outputs[PH_HOST_IN_FLIGHT] = ph__dense_type(1, &bytes);
    infer->outputs[PH_HOST_TICKET] = ph__scalar_type();
    infer->outputs[PH_HOST_SENT] = ph__dense_type(1, &bytes);
    return PH_OK;
}

static ph_status start_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const enum ph_wire_format wire = ph__host_sharding(call)->forward;
    *bytes_out = output == PH_HOST_IN_FLIGHT ? ph__host_most_bytes(call, ph__host_sums_of(call), wire)
                                             : ph__host_own_most_bytes(call, ph__host_sums_of(call), wire);
    return PH_OK;
}

static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    return (sums->own_count + sums->num_partials) * ph__host_sharding(call)->world_size *
           sizeof(struct ph__message);
}

/* Returns a message with a rank's rows of an own partial: as they are, or packed at *packed, which moves
 * behind them. */
static struct ph__message pack_partial(const struct ph__call *call, size_t own, size_t rank, char **packed)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const struct ph__sharding *sharding = ph__host_sharding(call);
    const struct ph__host_partial *partial = &sums->partials[sums->own_first + own];
    const size_t width = sums->blocks[partial->block].width,
                 rows = ph__host_partial_rows(sums, partial, rank);
    const ph_real *numbers =
        (const ph_real *)call->inputs[own].data + sharding->bounds[rank] * partial->count * width;
    struct ph__message message = {ph__host_rank_for(sharding, rank), (void *)(uintptr_t)numbers,
        ph__wire_bytes(sharding->forward, rows, width)};
    if (sharding->forward == PH_WIRE_FP32)
        return message;
    message.data = *packed;
    ph__pack_rows(call->backend, sharding->forward, rows, width, numbers, message.data);
    *packed += ph__size_align(message.bytes);
    return message;
}

static size_t list_sends(const struct ph__call *call, struct ph__message *messages)
{
    char *packed = call->outputs[PH_HOST_SENT].data;
    size_t count = 0;
    for (size_t rank = 0; rank < ph__host_sharding(call)->world_size; rank++)
        for (size_t i = 0; i < ph__host_sums_of(call)->own_count; i++)
            messages[count++] = pack_partial(call, i, rank, &packed);
    return count;
}

static size_t list_receives(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const struct ph__sharding *sharding = ph__host_sharding(call);
    char *place = call->outputs[PH_HOST_IN_FLIGHT].data;
    size_t count = 0;
    for (size_t peer = 0; peer < sharding->world_size; peer++)
        for (size_t i = 0; ph__is_peer(sharding, peer) && i < sums->num_partials; i++) {
            const struct ph__host_partial *partial = &sums->partials[i];
            const struct ph__block *block = &sums->blocks[partial->block];
            const size_t rows = ph__host_partial_rows(sums, partial, peer);
            messages[count++] = (struct ph__message){
                partial->rank, place, ph__wire_bytes(sharding->forward, rows, block->width)};
            place += ph__block_wire_bytes(block, sharding->forward, rows);
        }
    return count;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    struct ph__message *sends = call->scratch;
    const size_t num_sends = list_sends(call, sends);
    struct ph__message *receives = sends + num_sends;
    const struct ph__exchange list = {sends, receives, num_sends, list_receives(call, receives)};
    const struct ph__comm_call named = {sums->channel, sums->what};
    return ph__start_node_run(ph__host_sharding(call), &named, &list, &call->outputs[PH_HOST_TICKET]);
}

/* Adds for each own lookup a wait for its gradient, which host_gradients_start has in flight. */
static void start_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    struct ph__host_attributes attributes = *(const struct ph__host_attributes *)node.attributes;
    const ph_value sent = gradient->output_gradients[PH_HOST_IN_FLIGHT];
    for (size_t i = 0; i < node.num_inputs; i++) {
        attributes.partial = i;
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] = ph__host_gradient_wait(gradient->builder, &attributes, sent);
    }
}

const struct ph__op ph__op_host_sums_start = {
    .name = "host_sums_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .gradient = start_gradient,
    .cost = ph__sent_cost,
    .scratch_bytes = start_scratch_bytes,
    .output_bytes = start_output_bytes,
    .run = start_run,
};

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph__host_sums *sums = ((const struct ph__host_attributes *)infer->attributes)->sums;
    for (size_t i = 0; i < sums->num_blocks; i++) {
        const struct ph_dim dims[] = {
            sums->exchange->peer_samples, ph__dim(sums->blocks[i].count), ph__dim(sums->blocks[i].width)};
        infer->outputs[i] = ph__dense_type(3, dims);
    }
    return PH_OK;
}

static ph_status wait_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__block *block = &ph__host_sums_of(call)->blocks[output];
    *bytes_out = ph__peer_samples_most(ph__host_sharding(call), call->extents[PH_SYMBOL_GLOBAL_BATCH]) *
                 block->count * block->width * sizeof(ph_real);
    return PH_OK;
}

/* Counts an addition for each number of a partial, and two numbers of memory traffic. */
static void wait_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    for (size_t i = 0; i < sums->num_partials; i++) {
        const struct ph__host_partial *partial = &sums->partials[i];
        const double numbers = (double)ph__rows(&call->outputs[partial->block]) * partial->count *
                               sums->blocks[partial->block].width;
        cost_out->flops += numbers;
        cost_out->bytes += 2 * numbers * sizeof(ph_real);
    }
}

/* Returns the bytes of a thread's room for BLOCK_SAMPLES of the largest partial, as numbers, in cache lines
 * of its own. */
static size_t unpacked_bytes(const struct ph__host_sums *sums)
{
    return ph__size_align(ph__host_partial_most_numbers(sums, BLOCK_SAMPLES) * sizeof(ph_real));
}

static size_t wait_scratch_bytes(const struct ph__call *call)
{
    return ph__host_sharding(call)->forward == PH_WIRE_FP32
               ? 0
               : ph__team_num_threads(call->backend->team) * unpacked_bytes(ph__host_sums_of(call));
}

/* The samples of one peer. */
struct summing {
    const struct ph__call *call;
    size_t num_samples, first_sample; /* the peer's, and their place among all peers' samples */
    const char *bytes;                /* the partials, one behind the other */
};

/* Returns the samples [first, last) of a received partial as numbers. */
static const ph_real *unpack_rows(const struct summing *summing, const struct ph__host_partial *partial,
    const char *bytes, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = summing->call;
    const size_t width = ph__host_sums_of(call)->blocks[partial->block].width;
    const enum ph_wire_format wire = ph__host_sharding(call)->forward;
    if (wire == PH_WIRE_FP32)
        return (const ph_real *)(const void *)bytes + first * partial->count * width;
    ph_real *numbers = (void *)((char *)call->scratch + worker * unpacked_bytes(ph__host_sums_of(call)));
    ph__wire_unpack_rows(call->backend->kernels, wire, summing->num_samples * partial->count, width, bytes,
        first * partial->count, (last - first) * partial->count, numbers);
    return numbers;
}

/* Adds the vectors of samples [first, last) to the sum; the first partial that has a piece sets it. */
static void add_partial(const struct summing *summing, const struct ph__host_partial *partial, size_t first,
    size_t last, const ph_real *vectors)
{
    const struct ph__host_sums *sums = ph__host_sums_of(summing->call);
    const struct ph__block *block = &sums->blocks[partial->block];
    ph_real *sum = (ph_real *)summing->call->outputs[partial->block].data +
                   (summing->first_sample + first) * block->count * block->width;
    if (partial->sets_all) {
        memcpy(sum, vectors, (last - first) * block->count * block->width * sizeof *sum);
        return;
    }
    for (size_t b = first; b < last; b++, sum += block->count * block->width)
        for (size_t i = 0; i < partial->count; i++, vectors += block->width) {
            ph_real *target = sum + partial->pieces[i] * block->width;
            if (partial->is_added[i])
                summing->call->backend->kernels->add(block->width, target, vectors, target);
            else
                memcpy(target, vectors, block->width * sizeof *target);
        }
}

static void sum_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct summing *summing = argument;
    const struct ph__host_sums *sums = ph__host_sums_of(summing->call);
    const char *bytes = summing->bytes;
    for (size_t i = 0; i < sums->num_partials; i++) {
        const struct ph__host_partial *partial = &sums->partials[i];
        add_partial(summing, partial, first, last, unpack_rows(summing, partial, bytes, first, last, worker));
        bytes += ph__block_wire_bytes(&sums->blocks[partial->block],
            ph__host_sharding(summing->call)->forward, summing->num_samples * partial->count);
    }
}

static size_t partials_bytes(const struct ph__host_sums *sums, enum ph_wire_format wire, size_t num_samples)
{
    size_t bytes = 0;
    for (size_t i = 0; i < sums->num_partials; i++)
        bytes += ph__block_wire_bytes(
            &sums->blocks[sums->partials[i].block], wire, num_samples * sums->partials[i].count);
    return bytes;
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__sharding *sharding = ph__host_sharding(call);
    struct summing summing = {.call = call, .bytes = call->inputs[PH_HOST_IN_FLIGHT].data};
    PH_TRY(ph__comm_wait(sharding->comm, (uint64_t)*call->inputs[PH_HOST_TICKET].scalar));
    for (size_t peer = 0; peer < sharding->world_size; peer++) {
        if (!ph__is_peer(sharding, peer))
            continue;
        summing.num_samples = ph__sharding_samples(sharding, peer);
        ph__for_blocks(call->backend, summing.num_samples, BLOCK_SAMPLES, sum_samples, &summing);
        summing.first_sample += summing.num_samples;
        summing.bytes += partials_bytes(ph__host_sums_of(call), sharding->forward, summing.num_samples);
    }
    call->extents[ph__host_sums_of(call)->exchange->peer_samples.symbol] = summing.first_sample;
    return PH_OK;
}

static void wait_gradient(struct ph__gradient *gradient)
{
    gradient->input_gradients[PH_HOST_IN_FLIGHT] =
        ph__host_gradient_start(gradient->builder, gradient->node->attributes, gradient->output_gradients);
}

const struct ph__op ph__op_host_sums_wait = {
    .name = "host_sums_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .gradient = wait_gradient,
    .cost = wait_cost,
    .scratch_bytes = wait_scratch_bytes,
    .output_bytes = wait_output_bytes,
    .run = wait_run,
};
