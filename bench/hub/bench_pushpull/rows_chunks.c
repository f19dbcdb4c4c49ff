/* Chunk sizes of 4 KiB to 4 MiB, for 64 MiB from two workers: see pushpull_rows.h. */
#include <stdio.h>

#include "pushpull_rows.h"

enum { NUM_WORKERS = 2, NUM_SIZES = 11, LEAST_KIB = 4 };

struct sweep {
    struct row_cluster clusters[NUM_SIZES];
    struct contestant contestants[NUM_SIZES];
};

static void start(const struct rows *rows, struct sweep *sweep, size_t transport, size_t size)
{
    struct row_cluster *of = &sweep->clusters[size];
    *of = (struct row_cluster){
        .cluster = cluster_start(&(struct cluster_options){.transport = row_transports[transport],
            .chunk_bytes = (uint32_t)LEAST_KIB << (10 + size),
            .jobs = {{.num_workers = NUM_WORKERS, .num_keys = 1, .key_bytes = rows_large_bytes(rows)}},
            .num_jobs = 1}),
        .calls = ROW_CALLS};
    sweep->contestants[size] = (struct contestant){.measure = row_rounds, .context = of};
}

static void report(const struct rows *rows, const struct sweep *sweep, size_t transport, size_t size)
{
    const unsigned kib = (unsigned)LEAST_KIB << size;
    char name[ROW_NAME];
    snprintf(name, sizeof name, "hub.pushpull.%s.chunk%uKiB", row_transport_names[transport], kib);
    turn_record(rows->figures, &(struct turn_figure){.figure = {.name = name,
                                                         .unit = "ms",
                                                         .sweep = "chunk size in KiB, from end to end",
                                                         .series = row_transport_names[transport],
                                                         .at = kib},
                                   .ours = &sweep->contestants[size],
                                   .scale = 1e3});
}

static void sweep_transport(const struct rows *rows, size_t transport)
{
    static struct sweep sweep;
    for (size_t size = 0; size < NUM_SIZES; size++)
        start(rows, &sweep, transport, size);
    take_turns(sweep.contestants, NUM_SIZES, rows->rounds);
    for (size_t size = 0; size < NUM_SIZES; size++) {
        report(rows, &sweep, transport, size);
        cluster_end(&sweep.clusters[size].cluster);
    }
}

void rows_chunks(struct rows *rows)
{
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        if (rows_want(rows, transport))
            sweep_transport(rows, transport);
}
