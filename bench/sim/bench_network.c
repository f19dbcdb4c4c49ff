/* The simulated network under load: AlltoAlls of 1,024 ranks, 128 hosts of 8, of 1 MiB a rank, which is 1 KiB
 * a message, beside SimGrid's SMPI. Ranks are threads of a simulated world, as those of a training; every
 * message is posted, matched, carried and waited for. Prints this machine's time, without what the ranks take
 * to meet, messages a second and the peak of memory.
 *
 *   at_once    all messages of a rank in one step; ours alone, since SMPI takes more than nine minutes
 *   pairwise   a message at a time in each rank, in 1,023 steps
 *
 * bench_network [--slack] [--quick] [--peers FOLDER] [--json FILE]
 * --slack: rates are as exact as those of phloem sim, not wholly. --quick: 64 ranks. */
#include <stdio.h>
#include <sys/resource.h>

#include "figures.h"
#include "flags.h"
#include "schedule_world.h"
#include "smpi.h"

static const char topology[] = "version: 1\nkind: star\nhosts: 128\nranks_per_host: 8\n"
                               "host: {gbits_per_s: 25, latency_us: 2}\n";

struct load {
    struct ph__fabric fabric;
    double slack;
    struct peer smpi;
    char platform[4200];
    struct ph__json *figures;
};

static double peak_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 * 1e-6;
}

static void run(struct load *load, const struct schedule *schedule)
{
    struct schedule_outcome ours;
    struct smpi_outcome theirs;
    char name[64];
    bench_check(schedule_simulate(&load->fabric, schedule, load->slack, &ours));
    printf("%-9s %8llu messages  ours %7.2f s %8.0f messages/s, simulated %.3f ms, peak %.0f MB",
        schedule_names[schedule->kind], (unsigned long long)ours.num_messages, ours.run_seconds,
        (double)ours.num_messages / ours.run_seconds, ours.seconds * 1e3, peak_megabytes());
    fflush(stdout);
    snprintf(name, sizeof name, "sim.network.%s", schedule_names[schedule->kind]);
    struct bench_figure figure = {.name = name, .unit = "s", .value = ours.run_seconds};
    if (schedule->kind != SCHEDULE_AT_ONCE &&
        smpi_simulate(&load->smpi, &load->fabric, load->platform, schedule, &theirs)) {
        figure.peer = load->smpi.version;
        figure.peer_value = theirs.run_seconds;
        figure.ratio = theirs.run_seconds / ours.run_seconds;
        printf("   %s %7.2f s with its start, simulated %.3f ms", load->smpi.version, theirs.run_seconds,
            theirs.seconds * 1e3);
    }
    printf("\n");
    fflush(stdout);
    bench_record(load->figures, &figure);
}

int main(int argc, char **argv)
{
    static struct load load;
    const enum schedule_kind kinds[] = {SCHEDULE_AT_ONCE, SCHEDULE_PAIRWISE};
    struct bench_run told = {.rounds = 1};
    char folder[4096];
    bool has_slack = false;
    const struct bench_flag flags[] = {{.name = "--slack", .is_set = &has_slack}};
    bench_read_flags(argc, argv, &told, flags, sizeof flags / sizeof *flags);
    load.slack = has_slack ? 0.01 : 0;
    load.fabric = schedule_fabric(topology);
    load.figures = ph__json_array();
    bench_make_folder("smpi", folder, sizeof folder);
    snprintf(load.platform, sizeof load.platform, "%s/platform.xml", folder);
    bench_check(smpi_write_platform(&load.fabric, load.platform));
    peer_start(&load.smpi, told.peers, "smpi");
    const uint32_t num_ranks = told.is_quick ? 64 : 1024;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        run(&load, &(struct schedule){kinds[i], num_ranks, (size_t)num_ranks << 10, NULL});
    peer_stop(&load.smpi);
    bench_remove_folder(folder);
    ph__fabric_fini(&load.fabric);
    bench_finish(load.figures, told.json);
    return 0;
}
