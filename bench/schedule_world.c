#include "schedule_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "figures.h"
#include "sim/world.h"

#define START_NS 1e9 /* simulated time at which ranks start together, long after they have met */

/* A run; one rank writes at a time. */
struct run {
    const struct schedule *schedule;
    uint32_t *place_of; /* rank */
    struct ph__absent absent;
    void *payload; /* absent; all buffers of all ranks */
    uint64_t num_messages;
    double end_ns;
    double began, ended; /* seconds of the machine's clock: first start, last end */
};

struct lists {
    struct schedule_message *step;
    struct ph__message *sends, *receives;
};

/* Splits a step's messages into what is sent and what is received. */
static struct ph__exchange split(const struct run *run, const struct lists *lists, size_t count)
{
    struct ph__exchange exchange = {lists->sends, lists->receives, 0, 0};
    for (size_t i = 0; i < count; i++) {
        const struct schedule_message *message = &lists->step[i];
        const struct ph__message one = {message->peer, run->payload, message->bytes};
        if (message->is_receive)
            lists->receives[exchange.num_receives++] = one;
        else
            lists->sends[exchange.num_sends++] = one;
    }
    return exchange;
}

static double machine_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static ph_status run_steps(struct ph_comm *comm, struct run *run, const struct lists *lists)
{
    const struct ph__comm_call call = {1, "a step"};
    const uint32_t place = run->place_of[ph_comm_rank(comm)];
    for (size_t step = 0; step < schedule_num_steps(run->schedule); step++) {
        const size_t count = schedule_step(run->schedule, place, step, lists->step);
        const struct ph__exchange exchange = split(run, lists, count);
        uint64_t ticket;
        if (count == 0)
            continue;
        PH_TRY(ph__comm_exchange_start(comm, &call, &exchange, &ticket));
        PH_TRY(ph__comm_wait(comm, ticket));
        run->num_messages += exchange.num_sends;
    }
    return PH_OK;
}

static ph_status be_rank(struct ph_comm *comm, void *context)
{
    struct run *run = context;
    const size_t most = schedule_most_messages(run->schedule);
    const struct lists lists = {malloc(most * sizeof *lists.step), malloc(most * sizeof *lists.sends),
        malloc(most * sizeof *lists.receives)};
    ph_status status = lists.step != NULL && lists.sends != NULL && lists.receives != NULL
                           ? PH_OK
                           : ph__out_of_memory("lists of %zu messages", most);
    ph__absent_use(&run->absent);
    if (status == PH_OK && (double)ph__clock_ns() > START_NS)
        status = ph_fail(PH_ERROR_BUG, "ranks took more than %g s to meet", START_NS * 1e-9);
    ph__world_compute(START_NS - (double)ph__clock_ns());
    if (run->began <= 0)
        run->began = machine_seconds();
    if (status == PH_OK)
        status = run_steps(comm, run, &lists);
    run->end_ns = fmax(run->end_ns, (double)ph__clock_ns());
    run->ended = machine_seconds();
    free(lists.step);
    free(lists.sends);
    free(lists.receives);
    return status;
}

static ph_status run_world(
    const struct ph__fabric *fabric, struct run *run, double slack, struct schedule_outcome *outcome_out)
{
    const struct ph__world_options options = {
        .fabric = fabric, .world_size = run->schedule->num_ranks, .slack = slack};
    struct ph__world_figures figures;
    ph__absent_use(&run->absent);
    ph_status status = ph__numbers_alloc(run->schedule->bytes + 1, "payload", &run->payload);
    if (status == PH_OK)
        status = ph__world_run(&options, be_rank, run, &figures);
    ph__absent_use(NULL);
    *outcome_out = (struct schedule_outcome){.seconds = (run->end_ns - START_NS) * 1e-9,
        .run_seconds = run->ended - run->began,
        .num_messages = run->num_messages};
    return status;
}

ph_status schedule_simulate(const struct ph__fabric *fabric, const struct schedule *schedule, double slack,
    struct schedule_outcome *outcome_out)
{
    struct run run = {.schedule = schedule, .place_of = malloc(schedule->num_ranks * sizeof *run.place_of)};
    if (run.place_of == NULL)
        return ph__out_of_memory("%u ranks", schedule->num_ranks);
    for (uint32_t place = 0; place < schedule->num_ranks; place++)
        run.place_of[schedule->order != NULL ? schedule->order[place] : place] = place;
    ph_status status = ph__absent_init(&run.absent);
    if (status == PH_OK)
        status = run_world(fabric, &run, slack, outcome_out);
    ph__absent_fini(&run.absent);
    free(run.place_of);
    return status;
}

struct ph__fabric schedule_fabric(const char *text)
{
    struct ph__fabric fabric;
    char folder[4096], path[8192];
    bench_make_folder("topology", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/topology.yaml", folder);
    FILE *file = fopen(path, "w");
    const bool is_written = file != NULL && fputs(text, file) >= 0;
    if (file == NULL || fclose(file) != 0 || !is_written)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot write", path));
    bench_check(ph__fabric_read(path, &fabric));
    bench_remove_folder(folder);
    return fabric;
}
