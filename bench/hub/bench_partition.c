/* Balance of chunks over servers and their core threads: the largest load over the mean, of all servers'
 * cores, for models that papers on parameter servers measure with. The peer is a greedy partition of the same
 * chunks that sorts their sizes, but adds up the unsorted ones. Nothing is timed: these are counts, the same
 * on any machine.
 *
 * bench_partition [--chunk-kib N] [--json FILE] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chunk_balance.h"
#include "figures.h"
#include "flags.h"
#include "hub/layout/spread.h"

enum { MOST_SERVERS = 16, MOST_CORES = 32, DEFAULT_CHUNK_KIB = 32 };

static void record(struct ph__json *figures, const struct model_shapes *shapes, size_t num_servers,
    const struct chunk_balance *ours, const struct chunk_balance *wrong)
{
    char name[96];
    snprintf(name, sizeof name, "hub.partition.%s.servers%zu", shapes->figure, num_servers);
    bench_record(figures, &(struct bench_figure){.name = name,
                              .unit = "max/mean",
                              .value = ours->cores,
                              .peer = "greedy that adds up unsorted sizes",
                              .peer_value = wrong->cores,
                              .ratio = wrong->cores / ours->cores,
                              .limit = "1: all cores have the mean load",
                              .of_limit = 1 / ours->cores});
}

/* Prints a line of the table. Records the worst figure for us among the numbers of cores with enough
 * chunks. */
static void report_servers(struct ph__json *figures, const struct model_shapes *shapes, const size_t *sizes,
    size_t num_chunks, size_t num_servers)
{
    struct chunk_balance ours, wrong, worst = {0}, worst_wrong = {0};
    printf("%7zu ", num_servers);
    for (size_t cores = 1; cores <= MOST_CORES; cores *= 2) {
        bench_check(chunk_balance(sizes, num_chunks, num_servers, cores, ph__partition, &ours));
        bench_check(chunk_balance(sizes, num_chunks, num_servers, cores, unsorted_greedy, &wrong));
        const bool has_enough = ours.chunks_per_core >= BALANCE_CHUNKS_PER_CORE;
        printf(" %6.3f %6.3f%c", ours.cores, wrong.cores, has_enough ? ' ' : '*');
        if (has_enough && ours.cores > worst.cores) {
            worst = ours;
            worst_wrong = wrong;
        }
    }
    printf("\n");
    if (worst.cores > 0)
        record(figures, shapes, num_servers, &worst, &worst_wrong);
}

static void report_model(struct ph__json *figures, enum model model, size_t chunk_bytes)
{
    struct model_shapes shapes;
    size_t *sizes = NULL, num_chunks = 0;
    model_shapes_init(&shapes, model);
    bench_check(chunk_sizes(&shapes, chunk_bytes, &sizes, &num_chunks));
    printf("\n%s: %zu parameters in %zu tensors, %zu chunks of %zu KiB\nservers ", shapes.name,
        model_shapes_total(&shapes), shapes.num_tensors, num_chunks, chunk_bytes >> 10);
    for (size_t cores = 1; cores <= MOST_CORES; cores *= 2)
        printf("%9zu %-5s", cores, cores == 1 ? "core" : "cores");
    printf("\n");
    for (size_t servers = 1; servers <= MOST_SERVERS; servers *= 2)
        report_servers(figures, &shapes, sizes, num_chunks, servers);
    free(sizes);
}

int main(int argc, char **argv)
{
    size_t chunk_kib = DEFAULT_CHUNK_KIB;
    const struct bench_flag flags[] = {{.name = "--chunk-kib", .number = &chunk_kib}};
    struct bench_run run = {.rounds = 1}; /* nothing to repeat */
    bench_read_flags(argc, argv, &run, flags, 1);
    struct ph__json *figures = ph__json_array();
    printf("largest load over the mean, of all cores: largest first, and adding up unsorted sizes\n"
           "*: fewer than %d chunks a core\n",
        BALANCE_CHUNKS_PER_CORE);
    for (int model = 0; model < NUM_MODELS; model++)
        report_model(figures, (enum model)model, chunk_kib << 10);
    bench_finish(figures, run.json);
    return 0;
}
