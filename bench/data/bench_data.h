/* Shared by the benchmarks of the data room: a Criteo-like file, its settings, clocks, and the figures'
 * JSON. */
#ifndef PH_BENCH_DATA_H
#define PH_BENCH_DATA_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/stream.h"
#include "base/format/json.h"
#include "base/rng.h"
#include "data/data_options.h"
#include "figures.h"
#include "flags.h"
#include "phloem/data.h"

#define BENCH_COUNTS 13
#define BENCH_CATEGORIES 26
#define BENCH_TABLE_ROWS 100000
#define BENCH_QUICK_ROWS 20000

struct bench {
    const char *name, *json_path;
    size_t rounds, num_rows;
    char folder[256]; /* holds the benchmark's files; removed at the end */
    struct ph__json *results;
    struct ph__arena arena;
};

/* Returns the processor time of this process, on all its threads: a loaded machine does not change it. */
static inline double bench_cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns the bytes that memcpy reads and writes a second, the best of five tries. */
static inline double bench_memory_bandwidth(void)
{
    const size_t size = (size_t)256 << 20;
    char *from = malloc(size), *to = malloc(size);
    double best = 0;
    if (from == NULL || to == NULL)
        exit(5);
    memset(from, 1, size);
    memset(to, 2, size);
    for (int i = 0; i < 5; i++) {
        double start = bench_cpu_seconds();
        memcpy(to, from, size);
        best = fmax(best, 2.0 * (double)size / (bench_cpu_seconds() - start));
    }
    volatile char keep = to[size / 2];
    (void)keep;
    free(from);
    free(to);
    return best;
}

/* Reads the command line, with --rows N, and makes a folder for the files. */
static inline struct bench bench_begin(int argc, char **argv, const char *name, size_t num_rows)
{
    size_t told_rows = 0;
    const struct bench_flag flags[] = {{.name = "--rows", .number = &told_rows}};
    struct bench_run run = {.rounds = 5};
    bench_read_flags(argc, argv, &run, flags, 1);
    struct bench bench = {.name = name,
        .json_path = run.json,
        .rounds = run.rounds,
        .num_rows = told_rows > 0  ? told_rows
                    : run.is_quick ? BENCH_QUICK_ROWS
                                   : num_rows,
        .results = ph__json_array()};
    bench_make_folder(name, bench.folder, sizeof bench.folder);
    return bench;
}

static inline void bench_end(struct bench *bench)
{
    bench_remove_folder(bench->folder);
    bench_finish(bench->results, bench->json_path);
    ph__arena_fini(&bench->arena);
}

/* Records and prints a figure. peer, limit: NULL for none. value and limit_value are in the unit; more is
 * better. */
static inline void bench_tell(struct bench *bench, const char *name, const char *unit, double value,
    const char *peer, double peer_value, const char *limit, double limit_value)
{
    bench_record(bench->results, &(struct bench_figure){.name = name,
                                     .unit = unit,
                                     .value = value,
                                     .peer = peer,
                                     .peer_value = peer_value,
                                     .ratio = value / peer_value,
                                     .limit = limit,
                                     .of_limit = value / limit_value});
    printf("%-36s %14.4g %s", name, value, unit);
    if (peer != NULL)
        printf("  %.2fx %s", value / peer_value, peer);
    if (limit != NULL)
        printf("  %.0f%% of limit: %s", 100 * value / limit_value, limit);
    printf("\n");
    fflush(stdout);
}

/* ---- data ---- */

/* Writes a row like Criteo's: counts with a long tail, some blank; ids of eight digits, few of them frequent.
 * C1 is the row's number. */
static inline void bench_write_row(
    struct ph__writer *writer, struct ph__rng_sequence *rng, size_t row, int label)
{
    char line[1024];
    int length = snprintf(line, sizeof line, "%d", label);
    for (int i = 0; i < BENCH_COUNTS; i++) {
        double count = exp(3 * ph__rng_next_uniform(rng) * ph__rng_next_uniform(rng) * 2.5);
        bool is_blank = ph__rng_below(rng, 5) == 0;
        length +=
            snprintf(line + length, sizeof line - (size_t)length, is_blank ? "\t" : "\t%d", (int)count - 1);
    }
    length += snprintf(line + length, sizeof line - (size_t)length, "\t%08zu", row);
    for (int i = 1; i < BENCH_CATEGORIES; i++) {
        double rank = pow(ph__rng_next_uniform(rng), 4) * (i % 3 == 0 ? 50 : 1000000);
        uint32_t id = (uint32_t)rank * 2654435761u + (uint32_t)i;
        length += snprintf(line + length, sizeof line - (size_t)length, "\t%08x", id);
    }
    line[length++] = '\n';
    bench_check(ph__writer_write(writer, line, (size_t)length));
}

/* Writes the file; labels are random, or with is_sorted first negatives, then positives, half and half. */
static inline const char *bench_write_file(struct bench *bench, const char *name, bool is_sorted)
{
    const char *path = ph__arena_printf(&bench->arena, "%s/%s", bench->folder, name);
    struct ph__writer *writer;
    struct ph__rng_sequence rng = {.key.seed = 1};
    bench_check(ph__writer_open(path, &writer));
    for (size_t row = 0; row < bench->num_rows; row++)
        bench_write_row(
            writer, &rng, row, is_sorted ? row >= bench->num_rows / 2 : ph__rng_below(&rng, 4) == 0);
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

/* Returns settings with hashed ids; with has_row_numbers C1 is raw, the row's number. */
static inline struct ph_data_settings bench_settings(
    struct bench *bench, const char *train, bool has_row_numbers)
{
    struct ph_data_settings settings;
    const struct ph__section section = {&ph__data_options, &settings};
    const char *config = ph__arena_printf(&bench->arena, "%s/bench.yaml", bench->folder);
    struct ph__writer *writer;
    bench_check(ph__writer_open(config, &writer));
    bench_check(ph__writer_printf(writer,
        "data:\n  train: \"%s\"\n  format: criteo\n  encoding: hash\n  rows: %d\n", train, BENCH_TABLE_ROWS));
    if (has_row_numbers)
        bench_check(ph__writer_printf(
            writer, "  fields: [{name: C1, kind: id, encoding: raw, rows: %zu}]\n", bench->num_rows));
    bench_check(ph__writer_finish(writer));
    ph__writer_close(writer);
    bench_check(ph__config_read(config, NULL, 0, &section, 1, &bench->arena));
    return settings;
}

/* Prepares the settings' data; returns the folder. */
static inline const char *bench_prepare(struct bench *bench, const struct ph_data_settings *settings,
    const char *name, size_t num_threads, struct ph_prepare_summary *summary)
{
    const char *folder = ph__arena_printf(&bench->arena, "%s/%s", bench->folder, name);
    const struct ph_prepare_options options = {
        .size = sizeof options, .num_threads = num_threads, .settings.part_bytes = (uint64_t)16 << 20};
    bench_check(ph_prepare(settings, folder, &options, summary));
    return folder;
}

#endif
