#include "cli/verb/machine_speed.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/statistics.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "comm/collective/comm.h"
#include "kernel/kernel.h"

/* ---- memory ---- */

#define TABLE_BYTES ((size_t)128 << 20) /* beyond the caches of most processors */
#define TABLE_SHARE 8                   /* all ranks together take one part of so many of the free memory */
#define MEASURED_SECONDS .05
enum { NUM_TASKS = 64, BAGS = 128 /* of a task */, IDS = 16 /* of a bag */ };

struct measurement {
    const struct ph__kernels *kernels;
    size_t dim, num_rows;
    ph_real *table;    /* (num_rows, dim) */
    uint32_t *slots;   /* (NUM_TASKS, BAGS, IDS) */
    uint32_t *offsets; /* (NUM_TASKS, BAGS + 1) */
    ph_real *pooled;   /* (NUM_TASKS, BAGS, dim) */
};

/* Writes all rows: memory that was never written has no pages of its own. */
static void write_rows(void *argument, size_t task, size_t worker)
{
    const struct measurement *measurement = argument;
    const size_t first = measurement->num_rows * task / NUM_TASKS,
                 last = measurement->num_rows * (task + 1) / NUM_TASKS;
    (void)worker;
    for (size_t i = first * measurement->dim; i < last * measurement->dim; i++)
        measurement->table[i] = 1;
}

static void draw_slots(const struct measurement *measurement, struct ph__rng_sequence *rng)
{
    for (size_t i = 0; i < (size_t)NUM_TASKS * BAGS * IDS; i++)
        measurement->slots[i] = (uint32_t)ph__rng_below(rng, measurement->num_rows);
    for (uint32_t task = 0; task < NUM_TASKS; task++)
        for (uint32_t bag = 0; bag <= BAGS; bag++)
            measurement->offsets[task * (BAGS + 1) + bag] = (task * BAGS + bag) * IDS;
}

static void look_up(void *argument, size_t task, size_t worker)
{
    const struct measurement *measurement = argument;
    const struct ph__embedding_bag_args args = {.table = measurement->table,
        .format = PH_ROWS_FP32,
        .dim = measurement->dim,
        .slots = measurement->slots,
        .offsets = measurement->offsets + task * (BAGS + 1),
        .num_samples = BAGS,
        .num_features = 1,
        .feature_stride = BAGS,
        .out_stride = measurement->dim,
        .out = measurement->pooled + task * BAGS * measurement->dim};
    (void)worker;
    measurement->kernels->embedding_bag(&args);
}

/* Returns bytes of rows a second. Reads other rows in each round, so that no cache has them. */
static double measure_rows(struct measurement *measurement, struct ph__team *team)
{
    struct ph__rng_sequence rng = {{1, 0, ph__hash_name("machine_speed")}, 0};
    double seconds = 0, bytes = 0;
    ph__parallel_for(team, NUM_TASKS, write_rows, measurement);
    while (seconds < MEASURED_SECONDS) {
        draw_slots(measurement, &rng);
        const double begin = ph__clock_seconds();
        ph__parallel_for(team, NUM_TASKS, look_up, measurement);
        seconds += ph__clock_seconds() - begin;
        bytes += (double)NUM_TASKS * BAGS * IDS * (double)(measurement->dim * sizeof(ph_real));
    }
    return bytes / seconds;
}

/* Offsets in one piece of memory, which begins with the table. */
struct layout {
    size_t slots, offsets, pooled, all; /* where each begins, and the size of all, in bytes */
};

static struct layout lay_out(const struct measurement *measurement)
{
    struct layout layout = {
        .slots = ph__size_align(measurement->num_rows * measurement->dim * sizeof(ph_real))};
    layout.offsets = layout.slots + ph__size_align((size_t)NUM_TASKS * BAGS * IDS * sizeof(uint32_t));
    layout.pooled = layout.offsets + ph__size_align((size_t)NUM_TASKS * (BAGS + 1) * sizeof(uint32_t));
    layout.all = layout.pooled + (size_t)NUM_TASKS * BAGS * measurement->dim * sizeof(ph_real);
    return layout;
}

size_t cli_memory_speed_bytes(uint64_t free_bytes, size_t num_ranks)
{
    return (size_t)ph__min(free_bytes / TABLE_SHARE / num_ranks, TABLE_BYTES);
}

ph_status cli_memory_speed_measure(
    size_t dim, size_t num_ranks, struct ph__team *team, double *bytes_per_s_out)
{
    enum ph__isa isa;
    uint64_t free_bytes;
    void *memory;
    PH_TRY(ph__cpu_isa(&isa));
    PH_TRY(ph__memory_available_bytes(&free_bytes));
    const size_t table_bytes = cli_memory_speed_bytes(free_bytes, num_ranks);
    const size_t row_bytes = dim * sizeof(ph_real);
    struct measurement measurement = {.kernels = ph__kernels_for(isa),
        .dim = dim,
        .num_rows = table_bytes > row_bytes ? table_bytes / row_bytes : 1};
    const struct layout layout = lay_out(&measurement);
    PH_TRY(ph__memory_alloc(layout.all, "rows to measure memory by", &memory));
    measurement.table = memory;
    measurement.slots = (uint32_t *)((char *)memory + layout.slots);
    measurement.offsets = (uint32_t *)((char *)memory + layout.offsets);
    measurement.pooled = (ph_real *)((char *)memory + layout.pooled);
    *bytes_per_s_out = measure_rows(&measurement, team);
    ph__memory_free(memory, layout.all);
    return PH_OK;
}

/* ---- links ---- */

enum { ROUNDS = 5, MESSAGE_BYTES = 1 << 20, CHANNEL = 1 /* nothing else is in flight then */ };

/* Sends to the next rank of the group and receives from the one before, which may be the same. */
static ph_status pass_on(struct ph_comm *comm, const struct ph__group *group, char *bytes)
{
    static const struct ph__comm_call call = {CHANNEL, "measuring links"};
    const struct ph__message send = {group->ranks[(group->own + 1) % group->size], bytes, MESSAGE_BYTES};
    const struct ph__message receive = {
        group->ranks[(group->own + group->size - 1) % group->size], bytes + MESSAGE_BYTES, MESSAGE_BYTES};
    const struct ph__exchange exchange = {&send, &receive, 1, 1};
    uint64_t ticket;
    PH_TRY(ph__comm_exchange_start(comm, &call, &exchange, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* Measures the bytes a second of one rank, each way; NaN for a group of one. The first message opens the
 * link, and does not count. */
static ph_status measure_link(
    struct ph_comm *comm, const struct ph__group *group, char *bytes, double *bytes_per_s_out)
{
    double seconds[ROUNDS];
    *bytes_per_s_out = NAN;
    if (group->size < 2)
        return PH_OK;
    PH_TRY(pass_on(comm, group, bytes));
    for (size_t i = 0; i < ROUNDS; i++) {
        PH_TRY(ph__comm_barrier(comm));
        const double begin = ph__clock_seconds();
        PH_TRY(pass_on(comm, group, bytes));
        seconds[i] = ph__clock_seconds() - begin;
    }
    double median;
    PH_TRY(ph__median(seconds, ROUNDS, &median));
    *bytes_per_s_out = MESSAGE_BYTES / median;
    return PH_OK;
}

static ph_status measure_links(struct ph_comm *comm, char *bytes, struct ph__plan_machine *machine)
{
    double of_rank;
    PH_TRY(measure_link(comm, ph__comm_host(comm), bytes, &machine->host_bytes_per_s));
    PH_TRY(measure_link(comm, ph__comm_peers(comm), bytes, &of_rank));
    machine->network_bytes_per_s = of_rank * (double)ph_comm_ranks_per_host(comm);
    return PH_OK;
}

ph_status cli_link_speeds_measure(struct ph_comm *comm, struct ph__plan_machine *machine)
{
    machine->host_bytes_per_s = machine->network_bytes_per_s = NAN;
    if (ph_comm_ranks_per_host(comm) == 0)
        return PH_OK;
    char *bytes = calloc(2, MESSAGE_BYTES);
    if (bytes == NULL)
        return ph__out_of_memory("cannot measure links");
    const ph_status status = measure_links(comm, bytes, machine);
    if (status == PH_OK)
        free(bytes); /* after an error messages may still arrive there */
    return status;
}
