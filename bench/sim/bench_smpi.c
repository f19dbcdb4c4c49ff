/* Simulated times of collectives beside those of SimGrid's SMPI, by the same schedules of messages on the
 * same links: 64 ranks, three AllReduces, AlltoAll and Bcast, four sizes, a star, hosts of 8 ranks, racks and
 * a fat tree. Prints both times and the error of each, and their median and worst. Deterministic: no figure
 * depends on the machine.
 *
 * Both get the same links, routes, overheads and threshold between eager and other messages. They differ so:
 *
 *   other messages   SMPI begins them when both sides have come; the two latencies of its request and answer
 *                    are a factor, which counts from then on, while ours overlap the receiver's delay
 *   overheads        SMPI takes a receiver's time for eager messages alone; ours for each
 *   shares           SMPI's flows share a link by the inverse of their latency; ours share equally
 *
 * bench_smpi [--quick] [--peers FOLDER] [--json FILE]
 * --quick: the least size only. Without the peer, ours alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "flags.h"
#include "schedule_world.h"
#include "smpi.h"

enum { RANKS = 64, NUM_SIZES = 4, NUM_KINDS = 6 };

struct network {
    const char *name, *topology;
};

static const struct network networks[] = {
    {"star", "version: 1\nkind: star\nhosts: 64\nhost: {gbits_per_s: 25, latency_us: 5}\n"},
    {"hosts",
        "version: 1\nkind: star\nhosts: 8\nranks_per_host: 8\nhost: {gbits_per_s: 25, latency_us: 5}\n"},
    {"racks", "version: 1\nkind: racks\nhosts: 64\nhost: {gbits_per_s: 25, latency_us: 5}\n"
              "rack: {hosts: 16, uplinks: 4, gbits_per_s: 25, latency_us: 1}\n"},
    {"fat_tree",
        "version: 1\nkind: fat_tree\nhosts: 64\nhost: {gbits_per_s: 25, latency_us: 5}\n"
        "fat_tree: {pods: 4, edges: 4, aggregations: 2, cores: 4, gbits_per_s: 25, latency_us: 1}\n"},
};
enum { NUM_NETWORKS = sizeof networks / sizeof *networks };

static const enum schedule_kind kinds[NUM_KINDS] = {SCHEDULE_RING, SCHEDULE_DOUBLING, SCHEDULE_RABENSEIFNER,
    SCHEDULE_PAIRWISE, SCHEDULE_AT_ONCE, SCHEDULE_TREE};
static const size_t sizes[NUM_SIZES] = {1 << 10, 64 << 10, 1 << 20, 16 << 20};

struct comparing {
    struct peer smpi;
    struct ph__json *figures;
    double errors[NUM_NETWORKS * NUM_KINDS * NUM_SIZES];
    size_t num_errors;
};

static void compare_one(struct comparing *comparing, const struct network *network,
    const struct ph__fabric *fabric, const char *platform, const struct schedule *schedule)
{
    struct schedule_outcome ours;
    struct smpi_outcome theirs;
    char name[96];
    bench_check(schedule_simulate(fabric, schedule, 0, &ours));
    snprintf(name, sizeof name, "sim.smpi.%s.%s.%zu", network->name, schedule_names[schedule->kind],
        schedule->bytes);
    struct bench_figure figure = {.name = name, .unit = "us", .value = ours.seconds * 1e6};
    printf("%-9s %-13s %9zu B %12.2f us", network->name, schedule_names[schedule->kind], schedule->bytes,
        ours.seconds * 1e6);
    if (smpi_simulate(&comparing->smpi, fabric, platform, schedule, &theirs)) {
        const double error = ours.seconds / theirs.seconds - 1;
        comparing->errors[comparing->num_errors++] = fabs(error);
        figure.peer = comparing->smpi.version;
        figure.peer_value = theirs.seconds * 1e6;
        printf("   %12.2f us %+7.2f %%", theirs.seconds * 1e6, error * 100);
    }
    printf("\n");
    fflush(stdout);
    bench_record(comparing->figures, &figure);
}

static void compare_on(struct comparing *comparing, const struct network *network, size_t num_sizes)
{
    char folder[4096], platform[4200];
    struct ph__fabric fabric = schedule_fabric(network->topology);
    bench_make_folder("smpi", folder, sizeof folder);
    snprintf(platform, sizeof platform, "%s/platform.xml", folder);
    bench_check(smpi_write_platform(&fabric, platform));
    for (size_t kind = 0; kind < NUM_KINDS; kind++)
        for (size_t size = 0; size < num_sizes; size++) {
            const struct schedule schedule = {kinds[kind], RANKS, sizes[size], NULL};
            compare_one(comparing, network, &fabric, platform, &schedule);
        }
    bench_remove_folder(folder);
    ph__fabric_fini(&fabric);
}

static void sum_up(struct comparing *comparing)
{
    double worst = 0;
    if (comparing->num_errors == 0)
        return;
    for (size_t i = 0; i < comparing->num_errors; i++)
        worst = fmax(worst, comparing->errors[i]);
    const double median = bench_median(comparing->errors, comparing->num_errors);
    printf("%zu collectives: median error %.2f %%, worst %.2f %%\n", comparing->num_errors, median * 100,
        worst * 100);
    const struct bench_figure figures[] = {
        {.name = "sim.smpi.median_error", .unit = "%", .value = median * 100},
        {.name = "sim.smpi.worst_error", .unit = "%", .value = worst * 100}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        bench_record(comparing->figures, &figures[i]);
}

int main(int argc, char **argv)
{
    static struct comparing comparing;
    struct bench_run told = {.rounds = 1};
    bench_read_flags(argc, argv, &told, NULL, 0);
    comparing.figures = ph__json_array();
    peer_start(&comparing.smpi, told.peers, "smpi");
    printf("%-9s %-13s %11s %15s   %15s %9s\n", "network", "algorithm", "size", "ours",
        peer_is_there(&comparing.smpi) ? comparing.smpi.version : "", "error");
    for (size_t i = 0; i < NUM_NETWORKS; i++)
        compare_on(&comparing, &networks[i], told.is_quick ? 1 : NUM_SIZES);
    sum_up(&comparing);
    peer_stop(&comparing.smpi);
    bench_finish(comparing.figures, told.json);
    return 0;
}
