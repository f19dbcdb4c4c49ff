/* Round trips of keys of 4 KiB: see pushpull_rows.h. */
#include <stdio.h>

#include "pushpull_rows.h"

enum { KEY_BYTES = 4 << 10, MAX_WORKERS = 2, CALLS = 2000 /* round trips of a peer */ };

/* A worker that only waits needs no thread to move TCP links; the default has one. */
static const struct way {
    enum ph_hub_wait_policy wait;
    bool has_no_thread;
    const char *name;
} ways[] = {{PH_HUB_WAIT_SPIN, true, "spinning"}, {PH_HUB_WAIT_SLEEP, true, "sleeping"},
    {PH_HUB_WAIT_AUTO, true, "auto"}, {PH_HUB_WAIT_AUTO, false, "default"}};
enum { NUM_WAYS = sizeof ways / sizeof *ways, CONTESTANTS = MAX_WORKERS * (NUM_WAYS + 1) };

/* Peers' counterparts. One worker's key to the hub and back is a message of as many bytes to and fro; two
 * workers' keys, summed, are an AllReduce of two ranks. */
static const char *const peer_verbs[MAX_WORKERS] = {"pingpong", "latency"};
static const char *const peer_words[MAX_WORKERS] = {"to and fro", "AllReduce of 2"};

/* Open MPI's paths through either transport: the better one is taken. */
static const char *const peer_paths[] = {"ob1", "ucx"};
enum { NUM_PATHS = sizeof peer_paths / sizeof *peer_paths };

struct small {
    struct rows *rows;
    size_t transport;
    struct row_cluster ours[MAX_WORKERS][NUM_WAYS];
    struct row_peer peers[MAX_WORKERS];
    char names[MAX_WORKERS][ROW_NAME];
    struct contestant contestants[MAX_WORKERS][NUM_WAYS + 1]; /* the last is the peer */
};

static void start_ours(struct small *small, size_t workers, size_t way)
{
    const struct cluster_options options = {.transport = row_transports[small->transport],
        .wait = ways[way].wait,
        .has_no_thread = ways[way].has_no_thread,
        .num_threads = 1,
        .is_pinned = workers == 0,
        .jobs = {{.num_workers = (uint32_t)workers + 1, .num_keys = 1, .key_bytes = KEY_BYTES}},
        .num_jobs = 1};
    struct row_cluster *ours = &small->ours[workers][way];
    ours->cluster = cluster_start(&options);
    ours->calls = row_calibrate_latency(ours);
    small->contestants[workers][way] = (struct contestant){.measure = row_latency, .context = ours};
}

static void start_peer(struct small *small, size_t workers)
{
    struct peer *peer = &small->rows->openmpi[workers];
    struct row_peer *row = &small->peers[workers];
    struct row_case cases[NUM_PATHS];
    for (size_t i = 0; i < NUM_PATHS; i++) {
        snprintf(cases[i].line, ROW_CASE, "case allreduce bytes=%d ranks=2 transport=%s segment=0 path=%s",
            KEY_BYTES, row_transport_names[small->transport], peer_paths[i]);
        snprintf(cases[i].words, ROW_WORDS, "%s by %s", peer_words[workers], peer_paths[i]);
    }
    *row = (struct row_peer){.verb = peer_verbs[workers], .calls = CALLS};
    const size_t chosen = row_peer_choose(row, peer, row_peer_latency, cases, NUM_PATHS);
    snprintf(small->names[workers], ROW_NAME, "%s, %s", peer->version,
        chosen < NUM_PATHS ? cases[chosen].words : "");
    small->contestants[workers][NUM_WAYS] =
        (struct contestant){.name = small->names[workers], .measure = row_peer_latency, .context = row};
}

static void report_way(const struct small *small, size_t workers, size_t way)
{
    static const char *const percentiles[TURN_VALUES] = {"p50", "p99"};
    const bool has_peer = small->peers[workers].peer != NULL;
    const char *over_tcp = has_peer && small->transport == 1 ? small->rows->congestion : NULL;
    char name[ROW_NAME], size[ROW_SIZE];
    for (size_t value = 0; value < TURN_VALUES; value++) {
        snprintf(name, sizeof name, "hub.roundtrip.%s.%s.workers%zu.%s.%s",
            row_transport_names[small->transport], rows_size_name(KEY_BYTES, size), workers + 1,
            ways[way].name, percentiles[value]);
        turn_record(small->rows->figures,
            &(struct turn_figure){.figure = {.name = name, .unit = "us", .congestion = over_tcp},
                .ours = &small->contestants[workers][way],
                .peer = has_peer ? &small->contestants[workers][NUM_WAYS] : NULL,
                .value = value,
                .scale = 1e6});
    }
}

static void measure_trips(struct rows *rows, size_t transport)
{
    static struct small small;
    small = (struct small){.rows = rows, .transport = transport};
    for (size_t workers = 0; workers < MAX_WORKERS; workers++) {
        for (size_t way = 0; way < NUM_WAYS; way++)
            start_ours(&small, workers, way);
        start_peer(&small, workers);
    }
    take_turns(&small.contestants[0][0], CONTESTANTS, rows->rounds);
    for (size_t workers = 0; workers < MAX_WORKERS; workers++)
        for (size_t way = 0; way < NUM_WAYS; way++) {
            report_way(&small, workers, way);
            cluster_end(&small.ours[workers][way].cluster);
        }
    for (size_t workers = 0; workers < MAX_WORKERS; workers++)
        if (small.peers[workers].peer != NULL)
            peer_ask(small.peers[workers].peer, "end");
}

void rows_small(struct rows *rows)
{
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        if (rows_want(rows, transport))
            measure_trips(rows, transport);
}
