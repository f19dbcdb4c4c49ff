/* Options of the hub, each beside the default: results past the caches, and ways to wait where threads
 * outnumber processors (two workers, and core threads on each processor). See pushpull_rows.h. */
#include <stdio.h>

#include "pushpull_rows.h"

enum { NUM_WORKERS = 2, SMALL_BYTES = 4 << 10 };

static const struct variant {
    const char *name;
    enum ph_hub_wait_policy wait;
    enum ph_hub_results results;
} variants[] = {{"default", PH_HUB_WAIT_AUTO, PH_HUB_RESULTS_AUTO},
    {"cached", PH_HUB_WAIT_AUTO, PH_HUB_RESULTS_CACHED},
    {"non_temporal", PH_HUB_WAIT_AUTO, PH_HUB_RESULTS_NON_TEMPORAL},
    {"spin", PH_HUB_WAIT_SPIN, PH_HUB_RESULTS_AUTO},
    {"spin_then_sleep", PH_HUB_WAIT_SPIN_THEN_SLEEP, PH_HUB_RESULTS_AUTO},
    {"sleep", PH_HUB_WAIT_SLEEP, PH_HUB_RESULTS_AUTO}};
enum { NUM_VARIANTS = sizeof variants / sizeof *variants };

struct choice {
    size_t transport, key_bytes;
    struct row_cluster clusters[NUM_VARIANTS];
    struct contestant contestants[NUM_VARIANTS];
};

static bool is_small(const struct choice *choice)
{
    return choice->key_bytes == SMALL_BYTES;
}

static void start(struct choice *choice, size_t variant)
{
    struct row_cluster *of = &choice->clusters[variant];
    *of = (struct row_cluster){
        .cluster = cluster_start(&(struct cluster_options){.transport = row_transports[choice->transport],
            .wait = variants[variant].wait,
            .results = variants[variant].results,
            .jobs = {{.num_workers = NUM_WORKERS, .num_keys = 1, .key_bytes = choice->key_bytes}},
            .num_jobs = 1}),
        .calls = ROW_CALLS};
    if (is_small(choice))
        of->calls = row_calibrate_latency(of);
    choice->contestants[variant] = (struct contestant){.name = variants[variant].name,
        .measure = is_small(choice) ? row_latency : row_rounds,
        .context = of};
}

static void report(const struct rows *rows, const struct choice *choice, size_t variant)
{
    char name[ROW_NAME], size[ROW_SIZE];
    snprintf(name, sizeof name, "hub.variant.%s.%s.%s", row_transport_names[choice->transport],
        rows_size_name(choice->key_bytes, size), variants[variant].name);
    turn_record(
        rows->figures, &(struct turn_figure){.figure = {.name = name, .unit = is_small(choice) ? "us" : "ms"},
                           .ours = &choice->contestants[variant],
                           .peer = variant > 0 ? &choice->contestants[0] : NULL,
                           .scale = is_small(choice) ? 1e6 : 1e3});
}

static void compare(const struct rows *rows, size_t transport, size_t key_bytes)
{
    static struct choice choice;
    choice = (struct choice){.transport = transport, .key_bytes = key_bytes};
    for (size_t variant = 0; variant < NUM_VARIANTS; variant++)
        start(&choice, variant);
    take_turns(choice.contestants, NUM_VARIANTS, rows->rounds);
    for (size_t variant = 0; variant < NUM_VARIANTS; variant++) {
        report(rows, &choice, variant);
        cluster_end(&choice.clusters[variant].cluster);
    }
}

void rows_variants(struct rows *rows)
{
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++) {
        if (!rows_want(rows, transport))
            continue;
        compare(rows, transport, rows_large_bytes(rows));
        compare(rows, transport, SMALL_BYTES);
    }
}
