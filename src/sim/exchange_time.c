#include "sim/exchange_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
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

/* ---- labels ---- */

enum { MOST_TABLES = 15, MOST_RUNS = 32, MOST_HOSTS = 8, SIZES = 6 }; /* sizes: 1, 2 ... 32 */

/* Draws ranks a host and hosts: powers of two that the fabric has room for, two ranks at least. */
static struct ph__topology draw_world(const struct ph__fabric *fabric, struct ph__rng_sequence *rng)
{
    struct ph__topology worlds[SIZES * SIZES];
    size_t count = 0;
    for (size_t local = 1; local <= fabric->ranks_per_host; local *= 2)
        for (size_t hosts = 1; hosts <= ph__min(fabric->num_hosts, (size_t)MOST_HOSTS); hosts *= 2)
            if (local * hosts >= 2 && local * hosts <= PH_EXCHANGE_MOST_RANKS)
                worlds[count++] = (struct ph__topology){local * hosts, local};
    return worlds[ph__rng_below(rng, count)];
}

/* Gives each rank the columns of one table or more, and a start within a span of .01 to 100 ms. */
static void draw_ranks(enum ph__exchange_way way, size_t world_size, struct ph__rng_sequence *rng,
    double *columns, double *starts_ms)
{
    const double span = pow(10, -2 + 4 * ph__rng_next_uniform(rng));
    double first = INFINITY;
    for (size_t rank = 0; rank < world_size; rank++) {
        const size_t num_tables = 1 + (size_t)ph__rng_below(rng, MOST_TABLES);
        columns[rank] = 0;
        for (size_t i = 0; i < num_tables; i++)
            columns[rank] += PH_SHARD_COLUMNS * (double)(1 + ph__rng_below(rng, MOST_RUNS));
        starts_ms[rank] = way == PH_EXCHANGE_BACKWARD ? 0 : span * ph__rng_next_uniform(rng);
        first = fmin(first, starts_ms[rank]);
    }
    for (size_t rank = 0; rank < world_size; rank++)
        starts_ms[rank] -= first;
}

static ph_status draw_label(const struct ph__exchange_drawing *drawing, struct ph__rng_sequence *rng,
    struct ph__arena *arena, struct ph__exchange_label *label)
{
    const struct ph__topology topology = draw_world(drawing->fabric, rng);
    struct ph__fabric fabric = *drawing->fabric;
    double *columns = ph__arena_alloc_array(arena, 3 * topology.world_size, sizeof *columns);
    if (columns == NULL)
        return PH_ERROR_MEMORY;
    double *starts_ms = columns + topology.world_size, *ms = starts_ms + topology.world_size;
    fabric.ranks_per_host = topology.ranks_per_host;
    draw_ranks(drawing->way, topology.world_size, rng, columns, starts_ms);
    *label = (struct ph__exchange_label){drawing->way, topology, columns, starts_ms, ms};
    const struct ph__exchange_case exchange = {.way = drawing->way,
        .world_size = topology.world_size,
        .bytes = (double)drawing->batch_size / (double)topology.world_size * sizeof(ph_real),
        .columns = columns,
        .starts_ms = starts_ms};
    return ph__exchange_simulate(&fabric, &exchange, ms);
}

ph_status ph__exchange_labels_draw(const struct ph__exchange_drawing *drawing, size_t count,
    struct ph__arena *arena, struct ph__exchange_label *labels)
{
    for (size_t i = 0; i < count; i++) {
        struct ph__rng_sequence rng = {
            .key = {drawing->seed, i,
                ph__hash_name(drawing->way == PH_EXCHANGE_FORWARD ? "vectors" : "gradients")}};
        PH_TRY(draw_label(drawing, &rng, arena, &labels[i]));
    }
    return PH_OK;
}
