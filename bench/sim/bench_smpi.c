/* Simulated times of collectives beside those of SimGrid's SMPI, by the same schedules of messages on the
 * same links: 64 ranks, three AllReduces, AlltoAll and Bcast, four sizes, a star, hosts of 8 ranks, racks and
 * a fat tree. Prints both times and the error of each, and their median and worst. Deterministic: no figure
 * depends on the machine.
 *
 * An MPI program that plays the schedules (bench/peers/schedule_player.c) runs unmodified under phloem sim
 * run as well, where it was built; SMPI runs the same program.
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
#include <string.h>
#include <unistd.h>

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
    double errors[NUM_NETWORKS * NUM_KINDS * NUM_SIZES], program_errors[NUM_NETWORKS * NUM_KINDS * NUM_SIZES];
    size_t num_errors, num_program_errors;
    char build[1024]; /* folder of the program phloem */
};

/* A network as the three simulators read it. */
struct place {
    const struct network *network;
    struct ph__fabric fabric;
    char platform[4200], topology[4200];
};

/* Returns the seconds that phloem sim run gives the MPI program; NAN: it is not there, or fails. */
static double run_program(
    const struct comparing *comparing, const struct place *place, const struct schedule *schedule)
{
    char command[8192];
    double seconds = (double)NAN;
    snprintf(command, sizeof command,
        "test -x '%s/bench/sim/schedule_player' && '%s/phloem' sim run --quiet --no-compute -n %u "
        "--topology '%s' '%s/bench/sim/schedule_player' 1 1e6 1 %s:grouped:%zu",
        comparing->build, comparing->build, schedule->num_ranks, place->topology, comparing->build,
        schedule_names[schedule->kind], schedule->bytes);
    FILE *output = popen(command, "r");
    if (output == NULL || fscanf(output, "%lf", &seconds) != 1)
        seconds = (double)NAN;
    if (output != NULL && pclose(output) != 0)
        seconds = (double)NAN;
    return seconds;
}

static void compare_one(
    struct comparing *comparing, const struct place *place, const struct schedule *schedule)
{
    struct schedule_outcome ours;
    struct smpi_outcome theirs;
    char name[96];
    bench_check(schedule_simulate(&place->fabric, schedule, 0, &ours));
    const double program = run_program(comparing, place, schedule);
    snprintf(name, sizeof name, "sim.smpi.%s.%s.%zu", place->network->name, schedule_names[schedule->kind],
        schedule->bytes);
    struct bench_figure figure = {.name = name, .unit = "us", .value = ours.seconds * 1e6};
    printf("%-9s %-13s %9zu B %12.2f us %12.2f us", place->network->name, schedule_names[schedule->kind],
        schedule->bytes, ours.seconds * 1e6, program * 1e6);
    if (smpi_simulate(&comparing->smpi, &place->fabric, place->platform, schedule, &theirs)) {
        const double error = ours.seconds / theirs.seconds - 1;
        comparing->errors[comparing->num_errors++] = fabs(error);
        if (!isnan(program))
            comparing->program_errors[comparing->num_program_errors++] = fabs(program / theirs.seconds - 1);
        figure.peer = comparing->smpi.version;
        figure.peer_value = theirs.seconds * 1e6;
        printf("   %12.2f us %+7.2f %%", theirs.seconds * 1e6, error * 100);
    }
    printf("\n");
    fflush(stdout);
    bench_record(comparing->figures, &figure);
}

static void write_topology(const struct place *place)
{
    FILE *file = fopen(place->topology, "w");
    const bool is_written = file != NULL && fputs(place->network->topology, file) >= 0;
    if (file == NULL || fclose(file) != 0 || !is_written)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot write", place->topology));
}

static void compare_on(struct comparing *comparing, const struct network *network, size_t num_sizes)
{
    char folder[4096];
    struct place place = {.network = network, .fabric = schedule_fabric(network->topology)};
    bench_make_folder("smpi", folder, sizeof folder);
    snprintf(place.platform, sizeof place.platform, "%s/platform.xml", folder);
    snprintf(place.topology, sizeof place.topology, "%s/topology.yaml", folder);
    bench_check(smpi_write_platform(&place.fabric, place.platform));
    write_topology(&place);
    for (size_t kind = 0; kind < NUM_KINDS; kind++)
        for (size_t size = 0; size < num_sizes; size++) {
            const struct schedule schedule = {kinds[kind], RANKS, sizes[size], NULL};
            compare_one(comparing, &place, &schedule);
        }
    bench_remove_folder(folder);
    ph__fabric_fini(&place.fabric);
}

static void sum_up_errors(struct comparing *comparing, const char *what, double *errors, size_t count)
{
    char names[2][64];
    double worst = 0;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, errors[i]);
    const double median = bench_median(errors, count);
    printf(
        "%zu collectives%s: median error %.2f %%, worst %.2f %%\n", count, what, median * 100, worst * 100);
    snprintf(names[0], sizeof names[0], "sim.smpi.%smedian_error", *what == '\0' ? "" : "program.");
    snprintf(names[1], sizeof names[1], "sim.smpi.%sworst_error", *what == '\0' ? "" : "program.");
    const struct bench_figure figures[] = {{.name = names[0], .unit = "%", .value = median * 100},
        {.name = names[1], .unit = "%", .value = worst * 100}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        bench_record(comparing->figures, &figures[i]);
}

static void sum_up(struct comparing *comparing)
{
    sum_up_errors(comparing, "", comparing->errors, comparing->num_errors);
    sum_up_errors(comparing, " of an MPI program", comparing->program_errors, comparing->num_program_errors);
}

/* Finds the folder of the build that this program is in. */
static void find_build(struct comparing *comparing)
{
    const ssize_t length = readlink("/proc/self/exe", comparing->build, sizeof comparing->build - 1);
    comparing->build[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < 3 && strrchr(comparing->build, '/') != NULL; i++)
        *strrchr(comparing->build, '/') = '\0';
}

int main(int argc, char **argv)
{
    static struct comparing comparing;
    struct bench_run told = {.rounds = 1};
    bench_read_flags(argc, argv, &told, NULL, 0);
    comparing.figures = ph__json_array();
    find_build(&comparing);
    peer_start(&comparing.smpi, told.peers, "smpi");
    printf("%-9s %-13s %11s %15s %15s   %15s %9s\n", "network", "algorithm", "size", "ours", "MPI program",
        peer_is_there(&comparing.smpi) ? comparing.smpi.version : "", "error");
    for (size_t i = 0; i < NUM_NETWORKS; i++)
        compare_on(&comparing, &networks[i], told.is_quick ? 1 : NUM_SIZES);
    sum_up(&comparing);
    peer_stop(&comparing.smpi);
    bench_finish(comparing.figures, told.json);
    return 0;
}
