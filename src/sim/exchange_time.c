#include "sim/exchange_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "comm/collective/comm.h"
#include "sim/world.h"

#define MEETING_NS 1e9 /* simulated time at which the first rank starts, long after all have met */
#define NS_PER_MS 1e6

struct run {
    const struct ph__exchange_case *exchange;
    struct ph__absent absent;
    void *payload; /* absent: all messages have it */
    double *ms;    /* (world_size) */
};

static double payload_bytes(const struct ph__exchange_case *exchange, size_t owner)
{
    return ceil(exchange->columns[owner] * exchange->bytes);
}

/* Lists the messages of a rank: vectors come from the owner of the columns, gradients go there. */
static struct ph__exchange list_messages(
    const struct run *run, size_t own, struct ph__message *sends, struct ph__message *receives)
{
    const struct ph__exchange_case *exchange = run->exchange;
    const bool is_forward = exchange->way == PH_EXCHANGE_FORWARD;
    struct ph__exchange messages = {sends, receives, 0, 0};
    for (size_t step = 1; step < exchange->world_size; step++) {
        const size_t to = (own + step) % exchange->world_size,
                     from = (own + exchange->world_size - step) % exchange->world_size;
        const double sent = payload_bytes(exchange, is_forward ? own : to),
                     received = payload_bytes(exchange, is_forward ? from : own);
        if (sent > 0)
            sends[messages.num_sends++] = (struct ph__message){to, run->payload, (uint64_t)sent};
        if (received > 0)
            receives[messages.num_receives++] = (struct ph__message){from, run->payload, (uint64_t)received};
    }
    return messages;
}

static ph_status take_part(struct ph_comm *comm, struct run *run, struct ph__message *messages)
{
    static const struct ph__comm_call call = {1, "an exchange"};
    const size_t own = ph_comm_rank(comm);
    const double start = MEETING_NS + run->exchange->starts_ms[own] * NS_PER_MS;
    const struct ph__exchange exchange =
        list_messages(run, own, messages, messages + run->exchange->world_size);
    uint64_t ticket;
    if ((double)ph__clock_ns() > MEETING_NS)
        return ph_fail(PH_ERROR_BUG, "ranks took more than %g s to meet", MEETING_NS * 1e-9);
    ph__world_compute(start - (double)ph__clock_ns());
    PH_TRY(ph__comm_exchange_start(comm, &call, &exchange, &ticket));
    PH_TRY(ph__comm_wait(comm, ticket));
    run->ms[own] = ((double)ph__clock_ns() - start) / NS_PER_MS;
    return PH_OK;
}

static ph_status be_rank(struct ph_comm *comm, void *context)
{
    struct run *run = context;
    struct ph__message *messages = calloc(2 * run->exchange->world_size, sizeof *messages);
    ph__absent_use(&run->absent);
    const ph_status status =
        messages != NULL ? take_part(comm, run, messages) : ph__out_of_memory("messages of an exchange");
    free(messages);
    return status;
}

static ph_status run_world(const struct ph__fabric *fabric, struct run *run)
{
    const struct ph__exchange_case *exchange = run->exchange;
    const struct ph__world_options options = {.fabric = fabric, .world_size = exchange->world_size};
    struct ph__world_figures figures;
    double most = 0;
    for (size_t rank = 0; rank < exchange->world_size; rank++)
        most = fmax(most, payload_bytes(exchange, rank));
    ph__absent_use(&run->absent);
    ph_status status = ph__numbers_alloc((size_t)most + 1, "payload", &run->payload);
    if (status == PH_OK)
        status = ph__world_run(&options, be_rank, run, &figures);
    ph__absent_use(NULL);
    return status;
}

ph_status ph__exchange_simulate(
    const struct ph__fabric *fabric, const struct ph__exchange_case *exchange, double *ms_out)
{
    struct run run = {.exchange = exchange, .ms = ms_out};
    PH_TRY(ph__absent_init(&run.absent));
    const ph_status status = run_world(fabric, &run);
    ph__absent_fini(&run.absent);
    return status;
}
