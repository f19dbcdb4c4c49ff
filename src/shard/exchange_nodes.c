#include "shard/exchange_nodes.h"

#include "base/memory/absent.h"

ph_status ph__start_node_run(const struct ph__sharding *sharding, const struct ph__comm_call *named,
    const struct ph__exchange *list, const struct ph__operand *ticket)
{
    uint64_t started;
    PH_TRY(ph__comm_exchange_start(sharding->comm, named, list, &started));
    *ticket->scalar = (double)started;
    return PH_OK;
}

void ph__sent_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    for (size_t i = 0; i < call->num_inputs; i++)
        cost_out->bytes += (double)ph__elements(&call->inputs[i]) * sizeof(ph_real);
}

void ph__written_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = (double)ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

void ph__moved_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = 2 * (double)ph__elements(&call->outputs[0]) * sizeof(ph_real);
}

/* ---- the way back ---- */

ph_status ph__back_wait_infer(struct ph__infer *infer)
{
    infer->outputs[0] = infer->inputs[PH_BACK_WAIT_GRADIENT];
    return PH_OK;
}

ph_status ph__back_wait_run(
    struct ph__call *call, const struct ph__sharding *sharding, void (*unpack)(const struct ph__call *call))
{
    const struct ph__operand *gradient = &call->inputs[PH_BACK_WAIT_GRADIENT];
    PH_TRY(ph__comm_wait(sharding->comm, (uint64_t)*call->inputs[PH_BACK_WAIT_TICKET].scalar));
    if (ph__is_absent(gradient))
        return PH_OK;
    if (sharding->backward != PH_WIRE_FP32)
        unpack(call);
    else if (call->outputs[0].data != gradient->data)
        ph__numbers_move(
            call->outputs[0].data, gradient->data, ph__elements(&call->outputs[0]) * sizeof(ph_real));
    return PH_OK;
}

ph_value ph__back_wait_emit(struct ph_builder *builder, const struct ph__back_wait *wait, ph_value sent)
{
    const struct ph__node *start = ph__builder_producer(builder, sent);
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    if (start == NULL || start->op != wait->start)
        return ph_builder_fail(
            builder, PH_ERROR_BUG, "the exchange of the gradients of '%s' has not been started", wait->what);
    const ph_value inputs[PH_BACK_WAIT_INPUTS] = {
        wait->has_lookup ? start->outputs[PH_BACK_GRADIENTS + wait->lookup] : 0,
        start->outputs[PH_BACK_TICKET], start->outputs[PH_BACK_SENT], start->outputs[PH_BACK_RECEIVED]};
    return ph__emit1(
        builder, wait->wait, NULL, wait->attributes, wait->attributes_size, PH_BACK_WAIT_INPUTS, inputs);
}

/* ---- rows ---- */

enum { BLOCK_ROWS = 512 };

struct rows {
    const struct ph__kernels *kernels;
    enum ph_wire_format wire;
    size_t count, columns;
    const void *from;
    void *to;
};

static void pack_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct rows *rows = argument;
    const ph_real *numbers = (const ph_real *)rows->from + first * rows->columns;
    (void)worker;
    ph__wire_pack_rows(
        rows->kernels, rows->wire, rows->count, rows->columns, numbers, first, last - first, rows->to);
}

static void unpack_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct rows *rows = argument;
    ph_real *numbers = (ph_real *)rows->to + first * rows->columns;
    (void)worker;
    ph__wire_unpack_rows(
        rows->kernels, rows->wire, rows->count, rows->columns, rows->from, first, last - first, numbers);
}

void ph__pack_rows(const struct ph_backend *backend, enum ph_wire_format wire, size_t rows, size_t columns,
    const ph_real *numbers, void *bytes_out)
{
    struct rows all = {backend->kernels, wire, rows, columns, numbers, bytes_out};
    ph__for_blocks(backend, rows, BLOCK_ROWS, pack_block, &all);
}

void ph__unpack_rows(const struct ph_backend *backend, enum ph_wire_format wire, size_t rows, size_t columns,
    const void *bytes, ph_real *numbers_out)
{
    struct rows all = {backend->kernels, wire, rows, columns, bytes, numbers_out};
    ph__for_blocks(backend, rows, BLOCK_ROWS, unpack_block, &all);
}

/* ---- some numbers of each rank ---- */

/* Returns the bytes of room for the numbers and for each rank's byte count. */
size_t ph__gather_numbers_bytes(const struct ph__sharding *sharding, size_t count)
{
    return sharding->world_size * (count * sizeof(double) + sizeof(uint64_t));
}

ph_status ph__gather_numbers(const struct ph__sharding *sharding, const struct ph__comm_call *named,
    size_t count, const double *own, double *scratch, const double **all_out)
{
    uint64_t *bytes = (uint64_t *)(scratch + sharding->world_size * count), ticket;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        bytes[rank] = count * sizeof *own;
    PH_TRY(ph__comm_all_gather_start(
        sharding->comm, named, ph__comm_world(sharding->comm), own, bytes, scratch, &ticket));
    PH_TRY(ph__comm_wait(sharding->comm, ticket));
    *all_out = scratch;
    return PH_OK;
}
