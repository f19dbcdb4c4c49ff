/* The hub's own wide aggregation (hub.aggregation: wide) beside its tall one, from end to end: two workers,
 * two core threads, chunks of 32 KiB on both sides. One large key, many small ones, and those of a model. See
 * pushpull_rows.h. */
#include <stdio.h>

#include "pushpull_rows.h"

enum { NUM_WORKERS = 2, NUM_CORES = 2, CHUNK_BYTES = 32 << 10 };
enum { MANY_KEYS = 1024, MANY_BYTES = 4 << 10 };
enum { TALL, WIDE, NUM_WAYS };

static const char *const way_names[NUM_WAYS] = {"tall", "wide"};

struct pair {
    char keys[ROW_NAME]; /* name in figures */
    size_t transport;
    struct job_options job;
    struct row_cluster clusters[NUM_WAYS];
    struct contestant contestants[NUM_WAYS];
};

static void start(struct pair *pair, size_t way)
{
    struct row_cluster *of = &pair->clusters[way];
    *of = (struct row_cluster){
        .cluster = cluster_start(&(struct cluster_options){.transport = row_transports[pair->transport],
            .num_threads = NUM_CORES,
            .chunk_bytes = CHUNK_BYTES,
            .is_wide = way == WIDE,
            .jobs = {pair->job},
            .num_jobs = 1}),
        .calls = ROW_CALLS};
    pair->contestants[way] =
        (struct contestant){.name = way_names[way], .measure = row_rounds, .context = of};
}

/* Returns the bytes that sums and steps move between threads and memory: formulas in bench_aggregate.c. */
static double bytes_of(const struct job_options *job, size_t way)
{
    const size_t equal = job->num_keys * job->key_bytes;
    const size_t bytes = job->shapes != NULL ? model_shapes_total(job->shapes) * sizeof(float) : equal;
    return (double)bytes * (way == WIDE ? 3 * NUM_WORKERS + 5 : NUM_WORKERS + 4);
}

static void report(const struct rows *rows, const struct pair *pair, size_t way)
{
    char name[2 * ROW_NAME];
    snprintf(name, sizeof name, "hub.aggregation.%s.%s.%s", row_transport_names[pair->transport], pair->keys,
        way_names[way]);
    turn_record(rows->figures,
        &(struct turn_figure){.figure = {.name = name, .unit = "ms", .bytes = bytes_of(&pair->job, way)},
            .ours = &pair->contestants[way],
            .peer = way == TALL ? &pair->contestants[WIDE] : NULL,
            .scale = 1e3});
}

static void compare(const struct rows *rows, struct pair *pair)
{
    pair->job.num_workers = NUM_WORKERS;
    for (size_t way = 0; way < NUM_WAYS; way++)
        start(pair, way);
    take_turns(pair->contestants, NUM_WAYS, rows->rounds);
    for (size_t way = 0; way < NUM_WAYS; way++) {
        report(rows, pair, way);
        cluster_end(&pair->clusters[way].cluster);
    }
}

static void compare_equal(const struct rows *rows, size_t transport, size_t num_keys, size_t key_bytes)
{
    static struct pair pair;
    char size[ROW_SIZE];
    pair = (struct pair){.transport = transport, .job = {.num_keys = num_keys, .key_bytes = key_bytes}};
    snprintf(pair.keys, sizeof pair.keys, "%zux%s", num_keys, rows_size_name(key_bytes, size));
    compare(rows, &pair);
}

static void compare_model(const struct rows *rows, size_t transport, enum model model)
{
    static struct pair pair;
    static struct model_shapes shapes;
    model_shapes_init(&shapes, model);
    pair = (struct pair){.transport = transport, .job = {.shapes = &shapes}};
    snprintf(pair.keys, sizeof pair.keys, "%s", shapes.figure);
    compare(rows, &pair);
}

void rows_wide(struct rows *rows)
{
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++) {
        if (!rows_want(rows, transport))
            continue;
        compare_equal(rows, transport, 1, rows_large_bytes(rows));
        compare_equal(rows, transport, MANY_KEYS, MANY_BYTES);
        compare_model(rows, transport, MODEL_RESNET50);
    }
}
