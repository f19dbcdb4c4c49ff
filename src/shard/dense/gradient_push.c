#include "shard/dense/gradient_bucket.h"

#include "base/thread/clock.h"
#include "comm/collective/comm.h"

enum { NUM_BETWEEN = 1 }; /* the ticket, which orders the two nodes: the time at which the bucket started */

/* Formats that travel number by number, as the reducer calls them. */
static const enum ph_dtype dtypes[] = {
    [PH_WIRE_FP32] = PH_F32, [PH_WIRE_FP16] = PH_F16, [PH_WIRE_BF16] = PH_BF16};

ph_status ph__gradient_push_open(const struct ph__sharding *sharding, size_t num_buckets, const size_t *sizes)
{
    const struct ph_reducer *reducer = sharding->reducer;
    if (sharding->dense >= sizeof dtypes / sizeof *dtypes)
        return ph_fail(PH_ERROR_CONFIG,
            "parallel.dense is %s, but must be fp32, fp16 or bf16 where a hub sums gradients",
            ph__wire_name(sharding->dense));
    return reducer->open(reducer->context, num_buckets, sizes, dtypes[sharding->dense]);
}

static void copy_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const double sent_bytes = (double)ph__wire_bytes(bucket->sharding->dense, 1, bucket->num_elements);
    cost_out->bytes = (double)bucket->num_elements * sizeof(ph_real) + sent_bytes;
}

/* ---- start: gradients -> ticket ---- */

static ph_status start_infer(struct ph__infer *infer)
{
    infer->outputs[0] = ph__scalar_type();
    return PH_OK;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const struct ph_reducer *reducer = bucket->sharding->reducer;
    const enum ph_wire_format wire = bucket->sharding->dense;
    unsigned char *next = reducer->numbers(reducer->context, bucket->index);
    for (size_t i = 0; i < bucket->count; i++) {
        const size_t elements = bucket->elements[i];
        ph__wire_pack(call->backend->kernels, wire, 1, elements, call->inputs[i].data, elements, next);
        next += ph__wire_bytes(wire, 1, elements);
    }
    *call->outputs[0].scalar = (double)ph__clock_ns();
    return reducer->start(reducer->context, bucket->index);
}

static const struct ph__op start = {
    .name = "push_gradients_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY,
    .infer = start_infer,
    .cost = copy_cost,
    .run = start_run,
};

/* ---- wait: ticket, gradients for their types -> sums ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    return ph__bucket_wait_infer(infer, NUM_BETWEEN);
}

static ph_status wait_profiled(const struct ph__call *call, const void **sums_out)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const struct ph__sharding *sharding = bucket->sharding;
    const uint64_t bytes = ph__wire_bytes(sharding->dense, 1, bucket->num_elements);
    const struct ph__comm_other other = {
        "dense gradients at the hub", (uint64_t)*call->inputs[0].scalar, bytes, bytes};
    ph__comm_profile_wait_begin(sharding->comm);
    PH_TRY(sharding->reducer->wait(sharding->reducer->context, bucket->index, sums_out));
    return ph__comm_profile_wait_end(sharding->comm, &other);
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__gradient_bucket *bucket = ph__bucket_of(call);
    const enum ph_wire_format wire = bucket->sharding->dense;
    const void *sums;
    PH_TRY(wait_profiled(call, &sums));
    const unsigned char *next = sums;
    for (size_t i = 0; i < bucket->count; i++) {
        const size_t elements = bucket->elements[i];
        ph__wire_unpack(call->backend->kernels, wire, 1, elements, next, call->outputs[i].data, elements);
        next += ph__wire_bytes(wire, 1, elements);
    }
    return PH_OK;
}

static const struct ph__op wait = {
    .name = "push_gradients_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY,
    .infer = wait_infer,
    .cost = copy_cost,
    .run = wait_run,
};

const struct ph__bucket_ops ph__bucket_push_ops = {&start, &wait, NUM_BETWEEN};
