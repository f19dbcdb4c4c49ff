#include "sim/simulator.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "sim/world.h"

struct ph__simulation {
    struct ph__simulator simulator; /* first, for simulation_of */
    struct ph_backend backend;
    struct ph_backend serial, idle; /* run what is calculated; run messages without their arithmetic */
    struct ph__simulation_options options;
    struct ph__memory_pretence memory;
    uint64_t first_bytes, first_heap_bytes; /* of the process, before there were ranks */
    uint64_t heap_bytes;                    /* of the ranks, as it was last looked at */
    size_t num_looks;
};

/* ---- time ---- */

/* Waits for what a call that is measured has started, so that it can be started again. */
static ph_status settle(const struct ph__call *call)
{
    for (size_t k = 0; k < call->num_outputs && (call->node->op->traits & PH_OP_SENDS) != 0; k++)
        if (call->outputs[k].scalar != NULL)
            PH_TRY(ph__comm_wait(ph__world_comm(), (uint64_t)*call->outputs[k].scalar));
    return PH_OK;
}

static void compute_call(const struct ph__call *call, double ns)
{
    struct ph__cost cost = {0};
    if (ph__world_trace() != NULL)
        call->node->op->cost(call, &cost);
    const struct ph__chakra_work work = {call->node->name, cost.flops, cost.bytes, false};
    ph__world_compute_traced(&work, ns);
}

static ph_status pass_time(struct ph__simulation *simulation, const struct ph__call *call)
{
    double ns;
    ph__world_step_out(true);
    ph__comm_set_counting(ph__world_comm(), false);
    const ph_status status = ph__op_times_find(simulation->options.times, call, settle, &ns);
    ph__comm_set_counting(ph__world_comm(), true);
    ph__world_step_out(false);
    if (status == PH_OK)
        compute_call(call, ns);
    return status;
}

/* ---- running ---- */

static ph_status run_by(struct ph__call *call, const struct ph_backend *backend)
{
    const struct ph_backend *former = call->backend;
    call->backend = backend;
    ph__absent_run(call->node->name);
    const ph_status status = call->node->op->run(call);
    ph__absent_run(NULL);
    call->backend = former;
    for (size_t k = 0; k < call->num_outputs; k++)
        ph__type_shape(call->outputs[k].type, call->extents, &call->outputs[k].shape);
    return status;
}

/* Gives outputs that are host scalars, such as losses, the value 1. */
static void set_scalars(const struct ph__call *call)
{
    for (size_t k = 0; k < call->num_outputs; k++)
        if (call->outputs[k].scalar != NULL)
            *call->outputs[k].scalar = 1;
}

static ph_status run(const struct ph__simulator *simulator, struct ph__call *call)
{
    struct ph__simulation *simulation = (struct ph__simulation *)(uintptr_t)simulator;
    const unsigned traits = call->node->op->traits;
    if ((traits & PH_OP_OF_IDS) != 0)
        PH_TRY(run_by(call, &simulation->serial));
    if ((traits & PH_OP_AWAITS) != 0)
        PH_TRY(run_by(call, &simulation->idle));
    if ((traits & (PH_OP_OF_IDS | PH_OP_AWAITS | PH_OP_SENDS)) == 0)
        set_scalars(call);
    PH_TRY(pass_time(simulation, call));
    return (traits & PH_OP_SENDS) != 0 ? run_by(call, &simulation->idle) : PH_OK;
}

/* ---- sums of messages ---- */

struct sum {
    const struct ph__kernels *kernels;
    enum ph__wire_work work;
    enum ph_wire_format wire;
    size_t rows, columns;
    ph_real *numbers;
    void *bytes;
};

static void do_sum(void *context)
{
    const struct sum *sum = context;
    switch (sum->work) {
    case PH_WIRE_PACKS:
        ph__wire_pack(
            sum->kernels, sum->wire, sum->rows, sum->columns, sum->numbers, sum->columns, sum->bytes);
        break;
    case PH_WIRE_UNPACKS:
        ph__wire_unpack(
            sum->kernels, sum->wire, sum->rows, sum->columns, sum->bytes, sum->numbers, sum->columns);
        break;
    case PH_WIRE_ADDS:
        ph__wire_add(
            sum->kernels, sum->wire, sum->rows, sum->columns, sum->bytes, sum->numbers, sum->columns);
        break;
    }
}

static void name_sum(const struct sum *sum, char *name_out, size_t size)
{
    static const char *const names[] = {"packs", "unpacks", "adds"};
    snprintf(name_out, size, "%s %s", ph__wire_name(sum->wire), names[sum->work]);
}

static ph_status find_sum(
    struct ph__simulation *simulation, const char *name, struct sum *sum, double *ns_out)
{
    const size_t count = sum->rows * sum->columns;
    const struct ph__op_work work = {.run = do_sum,
        .context = sum,
        .numbers = {(void **)&sum->numbers, &sum->bytes},
        .bytes = {count * sizeof(ph_real), ph__wire_bytes(sum->wire, sum->rows, sum->columns)},
        .amount = (double)count};
    return ph__op_times_find_work(simulation->options.times, name, &work, ns_out);
}

/* Takes the time of a sum, unless a node that starts one is being measured. An error, lack of memory, is
 * dropped: the sum then takes no time. */
static void sum_numbers(
    void *context, enum ph__wire_work work, enum ph_wire_format wire, size_t rows, size_t columns)
{
    struct ph__simulation *simulation = context;
    struct sum sum = {simulation->options.measuring->kernels, work, wire, rows, columns, NULL, NULL};
    char name[64];
    double ns = 0;
    if (rows * columns == 0 || ph__world_is_out())
        return;
    name_sum(&sum, name, sizeof name);
    ph__world_step_out(true);
    (void)find_sum(simulation, name, &sum, &ns);
    ph__world_step_out(false);
    const double count = (double)(rows * columns);
    const struct ph__chakra_work traced = {name, work == PH_WIRE_ADDS ? count : 0,
        count * sizeof(ph_real) + (double)ph__wire_bytes(wire, rows, columns), true};
    ph__world_compute_traced(&traced, ns);
}

static void run_again(void *context)
{
    const struct ph__timed_work *work = context;
    (void)work->run(work->context);
}

ph_status ph__simulation_work(void *context, const struct ph__timed_work *timed)
{
    struct ph__simulation *simulation = context;
    const struct ph__op_work work = {
        .run = run_again, .context = (void *)(uintptr_t)timed, .amount = timed->amount};
    double ns;
    PH_TRY(timed->run(timed->context));
    ph__world_step_out(true);
    const ph_status status = ph__op_times_find_work(simulation->options.times, timed->name, &work, &ns);
    ph__world_step_out(false);
    const struct ph__chakra_work traced = {timed->name, timed->amount, timed->amount, false};
    if (status == PH_OK)
        ph__world_compute_traced(&traced, ns);
    return status;
}

/* ---- steps and waits, for the rank's trace ---- */

static void counts(void *context, bool is_counting)
{
    (void)context;
    ph__world_take_time(is_counting);
    ph__chakra_count(ph__world_trace(), is_counting);
}

static void waited(void *context, uint32_t channel)
{
    (void)context;
    ph__chakra_waited(ph__world_trace(), channel, (double)ph__clock_ns());
}

/* ---- memory ---- */

/* Returns the memory of the calling rank. All ranks ask at the same places of their programs, so the heap,
 * which takes long to look at, is looked at for the first of them. */
static uint64_t used_bytes(void *context)
{
    struct ph__simulation *simulation = context;
    const struct ph__simulation_options *options = &simulation->options;
    if (simulation->num_looks++ % options->world_size == 0)
        simulation->heap_bytes = ph__memory_heap_bytes() - simulation->first_heap_bytes;
    const uint64_t heap = simulation->heap_bytes, shared = options->shared_bytes(options->shared_context);
    const uint64_t own = heap > shared ? (heap - shared) / options->world_size : 0;
    return simulation->first_bytes + ph__absent_live_bytes() + shared + own;
}

void ph__simulation_join(struct ph__simulation *simulation)
{
    const struct ph__comm_simulation hooks = {simulation, sum_numbers, counts, waited};
    ph__comm_simulate(ph__world_comm(), &hooks);
    ph__memory_pretend(&simulation->memory);
}

/* ---- creating ---- */

ph_status ph__simulation_create(
    const struct ph__simulation_options *options, struct ph__simulation **simulation_out)
{
    struct ph__simulation *simulation = calloc(1, sizeof *simulation);
    if (simulation == NULL)
        return ph__out_of_memory("a simulation");
    *simulation = (struct ph__simulation){.simulator = {run},
        .backend = *options->measuring,
        .serial = *options->measuring,
        .idle = *options->measuring,
        .options = *options,
        .memory = {options->host_bytes, used_bytes, simulation},
        .first_bytes = ph__memory_anonymous_bytes(),
        .first_heap_bytes = ph__memory_heap_bytes()};
    simulation->backend.simulator = &simulation->simulator;
    simulation->serial.team = simulation->idle.team = NULL;
    ph_status status = ph__team_create(1, &simulation->serial.team);
    if (status == PH_OK)
        status = ph__team_create_idle(&simulation->idle.team);
    if (status == PH_OK)
        *simulation_out = simulation;
    else
        ph__simulation_destroy(simulation);
    return status;
}

void ph__simulation_destroy(struct ph__simulation *simulation)
{
    if (simulation == NULL)
        return;
    ph__team_destroy(simulation->serial.team);
    ph__team_destroy(simulation->idle.team);
    free(simulation);
}

struct ph_backend *ph__simulation_backend(struct ph__simulation *simulation)
{
    return &simulation->backend;
}
