/* The simulated network under load: an AlltoAll of 1,024 ranks, 128 hosts of 8, of 1 MiB a rank, which is 1
 * KiB a message. Its ranks are threads of a simulated world, as those of a training; every message is posted,
 * matched, carried and waited for. Prints this machine's time, messages a second and memory.
 *
 *   pairwise   a message at a time in each rank, in 1,023 steps, exact and with the slack of phloem sim
 *   at_once    all messages of a rank in one step
 *
 * bench_network [--quick] [--json FILE] */
#include <stdio.h>
#include <sys/resource.h>

#include "figures.h"
#include "flags.h"
#include "schedule_world.h"

static const char topology[] = "version: 1\nkind: star\nhosts: 128\nranks_per_host: 8\n"
                               "host: {gbits_per_s: 25, latency_us: 2}\n";

struct load {
    const char *name;
    enum schedule_kind kind;
    double slack;
};

static double peak_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 * 1e-6;
}

static void record(struct ph__json *figures, const struct load *load, const struct schedule_outcome *outcome)
{
    char name[64];
    const double rate = (double)outcome->num_messages / outcome->run_seconds;
    snprintf(name, sizeof name, "sim.network.%s.seconds", load->name);
    bench_record(figures, &(struct bench_figure){.name = name, .unit = "s", .value = outcome->run_seconds});
    snprintf(name, sizeof name, "sim.network.%s.rate", load->name);
    bench_record(figures, &(struct bench_figure){.name = name, .unit = "messages/s", .value = rate});
    printf("%-16s %10llu messages in %6.2f s: %8.0f messages/s; simulated %8.3f ms; peak %5.0f MB so far\n",
        load->name, (unsigned long long)outcome->num_messages, outcome->run_seconds, rate,
        outcome->seconds * 1e3, peak_megabytes());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct load loads[] = {{"pairwise", SCHEDULE_PAIRWISE, 0},
        {"pairwise_slack", SCHEDULE_PAIRWISE, 0.01}, {"at_once_slack", SCHEDULE_AT_ONCE, 0.01}};
    struct bench_run told = {.rounds = 1};
    bench_read_flags(argc, argv, &told, NULL, 0);
    struct ph__fabric fabric = schedule_fabric(topology);
    struct ph__json *figures = ph__json_array();
    const uint32_t num_ranks = told.is_quick ? 64 : 1024;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        const struct schedule schedule = {loads[i].kind, num_ranks, (size_t)num_ranks << 10, NULL};
        struct schedule_outcome outcome;
        bench_check(schedule_simulate(&fabric, &schedule, loads[i].slack, &outcome));
        record(figures, &loads[i], &outcome);
    }
    ph__fabric_fini(&fabric);
    bench_finish(figures, told.json);
    return 0;
}
