/* Simulated seconds of schedules of messages: what tools/network_figures.py compares with real TCP, and
 * tools/dmt_figures.py with the exchanges of towers.
 *
 * bench_schedules [--topology FILE] [--ranks N] [--rack N] [--cases ALGORITHM:ORDER:BYTES,...]
 *                 [--json FILE]
 * Without --topology: two racks of four hosts, at 800 Mb/s, joined at 200 Mb/s. --ranks: the first of the
 * topology's ranks that take part; all. --rack: ranks of a rack, which orders group or mix; 4. Deterministic:
 * no figure depends on the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "figures.h"
#include "flags.h"
#include "schedule_world.h"

static const char two_racks[] =
    "version: 1\nkind: racks\nhosts: 8\nhost: {gbits_per_s: 0.8, latency_us: 25}\n"
    "rack: {hosts: 4, uplinks: 1, gbits_per_s: 0.2, latency_us: 0}\n";

enum { DEFAULT_RACK = 4 };

struct wanted {
    const struct ph__fabric *fabric;
    uint32_t num_ranks, rack, *order; /* (num_ranks) */
};

/* Reads "ring:grouped:4194304". Ends the program where that is no case. */
static struct schedule read_case(const struct wanted *wanted, const char *text)
{
    char kind[32], order[32];
    size_t bytes;
    if (sscanf(text, "%31[^:]:%31[^:]:%zu", kind, order, &bytes) != 3 ||
        schedule_find(kind) == SCHEDULE_KINDS || schedule_order_find(order) == SCHEDULE_ORDERS)
        bench_check(ph_fail(PH_ERROR_USAGE, "--cases: '%s' must be ALGORITHM:ORDER:BYTES", text));
    schedule_fill_order(schedule_order_find(order), wanted->num_ranks, wanted->rack, wanted->order);
    return (struct schedule){schedule_find(kind), wanted->num_ranks, bytes, wanted->order};
}

static void run_case(const struct wanted *wanted, const char *text, struct ph__json *figures)
{
    const struct schedule schedule = read_case(wanted, text);
    struct schedule_outcome outcome;
    char name[128];
    bench_check(schedule_simulate(wanted->fabric, &schedule, 0, &outcome));
    printf("%-32s %.9f s\n", text, outcome.seconds);
    snprintf(name, sizeof name, "sim.schedules.%s", text);
    bench_record(figures, &(struct bench_figure){.name = name, .unit = "s", .value = outcome.seconds});
}

/* Gives the number of ranks that take part: 0 stands for all. */
static uint32_t read_ranks(const struct ph__fabric *fabric, size_t asked)
{
    const size_t all = fabric->num_hosts * fabric->ranks_per_host;
    if (asked == 1 || asked > all)
        bench_check(ph_fail(PH_ERROR_USAGE, "--ranks: %zu must be from 2 to the topology's %zu", asked, all));
    return (uint32_t)(asked == 0 ? all : asked);
}

int main(int argc, char **argv)
{
    const char *topology = NULL, *cases = "ring:grouped:4194304,ring:interleaved:4194304";
    size_t ranks = 0, rack = DEFAULT_RACK;
    const struct bench_flag flags[] = {{.name = "--topology", .word = &topology},
        {.name = "--cases", .word = &cases}, {.name = "--ranks", .number = &ranks},
        {.name = "--rack", .number = &rack}};
    struct bench_run told = {.rounds = 1};
    bench_read_flags(argc, argv, &told, flags, sizeof flags / sizeof *flags);
    struct ph__fabric fabric;
    if (topology != NULL)
        bench_check(ph__fabric_read(topology, &fabric));
    else
        fabric = schedule_fabric(two_racks);
    char *list = strdup(cases);
    const uint32_t num_ranks = read_ranks(&fabric, ranks);
    const struct wanted wanted = {
        &fabric, num_ranks, (uint32_t)rack, malloc(num_ranks * sizeof *wanted.order)};
    if (list == NULL || wanted.order == NULL)
        bench_check(ph__out_of_memory("cases"));
    struct ph__json *figures = ph__json_array();
    for (char *rest = list, *text; (text = strsep(&rest, ",")) != NULL;)
        run_case(&wanted, text, figures);
    free(wanted.order);
    free(list);
    ph__fabric_fini(&fabric);
    bench_finish(figures, told.json);
    return 0;
}
