/* 64 MiB of fp32 gradients from two workers, summed, stepped by momentum and pulled again, in turns with ps-lite's pushpull
 * and with Open MPI's AllReduce followed by a momentum pass. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "echo.h"
#include "pushpull_rows.h"

enum { NUM_WORKERS = 2, COUNTED_CALLS = 50, NUM_PEERS = 4, CONTESTANTS = 2 + NUM_PEERS };

struct large {
    struct rows *rows;
    size_t transport, bytes;
    struct row_cluster ours;
    struct echo echo; /* over TCP */
    struct row_peer peers[NUM_PEERS];
    char names[NUM_PEERS][ROW_NAME], words[NUM_PEERS][ROW_WORD]; /* of peers, and of figures beside them */
    struct contestant contestants[CONTESTANTS];                  /* the machine's limit, ours, peers */
};

/* Seconds a byte. */
static void measure_copy(void *context, double values_out[TURN_VALUES])
{
    values_out[0] = 1 / bench_copy(context, BENCH_MAX_COPIED);
}

/* ---- peers --------------------------------------------------------------------------------------------------------- */

static void add_peer(
    struct large *large, size_t index, struct peer *peer, const char *verb, size_t numbers, const char *words)
{
    struct row_peer *row = &large->peers[index];
    char *name = large->names[index];
    *row = (struct row_peer){.verb = verb, .calls = ROW_CALLS, .numbers = numbers};
    snprintf(name, ROW_NAME, "%s, %s", peer->version, words);
    for (size_t i = 0; i < ROW_WORD - 1 && words[i] != '\0'; i++)
        large->words[index][i] = words[i] == ' ' ? '_' : words[i];
    if (peer_is_there(peer))
        row->peer = peer;
    large->contestants[2 + index] =
        (struct contestant){.name = name, .measure = row_peer_rounds, .context = row};
}

static void add_pslite(struct large *large, size_t index, const char *transport)
{
    struct peer *peer = &large->rows->pslite[index];
    char words[ROW_WORD];
    snprintf(words, sizeof words, "pslite %s", transport);
    const bool is_ready = peer_is_there(peer) &&
                          peer_accepts(peer, "case pushpull bytes=%zu workers=%d chunk=1048576 transport=%s",
                              large->bytes, NUM_WORKERS, transport);
    add_peer(large, index, peer, "pushpull", 1, words);
    if (!is_ready)
        large->peers[index].peer = NULL;
}

/* At its own choice of an algorithm, and in segments: what is best for each transport. */
static void add_openmpi(struct large *large, size_t which)
{
    struct peer *peer = &large->rows->openmpi[which];
    const char *transport = row_transport_names[large->transport];
    const int segment = which == 0 ? 0 : large->transport == 0 ? 256 << 10 : 1 << 20;
    const bool is_ready =
        peer_is_there(peer) && peer_accepts(peer, "case allreduce bytes=%zu ranks=%d transport=%s segment=%d",
                                   large->bytes, NUM_WORKERS, transport, segment);
    add_peer(large, 2 + which, peer, "training", 2, which == 0 ? "openmpi" : "openmpi in segments");
    if (!is_ready)
        large->peers[2 + which].peer = NULL;
}

static void end_peers(struct large *large)
{
    for (size_t i = 0; i < NUM_PEERS; i++)
        if (large->peers[i].peer != NULL)
            peer_ask(large->peers[i].peer, "end");
}

/* ---- figures ------------------------------------------------------------------------------------------------------- */

static void name_figure(const struct large *large, const char *word, char name_out[ROW_NAME])
{
    char size[ROW_SIZE];
    snprintf(name_out, ROW_NAME, "hub.pushpull.%s.%s%s%s", row_transport_names[large->transport],
        rows_size_name(large->bytes, size), word[0] != '\0' ? "." : "", word);
}

/* Over shared memory: copying as many bytes as processor and memory exchange. Over TCP: plain TCP. Returns the share. */
static struct turn_ratio describe_limit(const struct large *large, double bytes, char limit_out[ROW_LIMIT])
{
    const struct contestant *limit = &large->contestants[0], *ours = &large->contestants[1];
    struct turn_ratio share = turn_ratio(limit, ours, 0);
    if (large->transport == 0) {
        snprintf(limit_out, ROW_LIMIT,
            "4 n (w + 4): %d gradients read, weights and momentum read and written, %.0f MB at %.1f GB/s of "
            "copying",
            NUM_WORKERS, bytes * 1e-6, 1e-9 / turn_summary(limit, 0).median);
        share.median *= bytes;
        return share;
    }
    snprintf(limit_out, ROW_LIMIT,
        "4 n 2 w: gradients to the hub and parameters back, %.0f MB, echoed by plain TCP", bytes * 1e-6);
    return share;
}

static void report_share(const struct large *large)
{
    const struct rows *rows = large->rows;
    const struct contestant *ours = &large->contestants[1];
    const double bytes =
        (double)(large->transport == 0 ? NUM_WORKERS + 4 : 2 * NUM_WORKERS) * (double)large->bytes;
    char name[ROW_NAME], limit[ROW_LIMIT];
    const struct turn_ratio share = describe_limit(large, bytes, limit);
    name_figure(large, "", name);
    turn_record(rows->figures, &(struct turn_figure){.figure = {.name = name,
                                                         .unit = "ms",
                                                         .limit = limit,
                                                         .of_limit = share.median,
                                                         .rounds = share.rounds,
                                                         .bytes = bytes,
                                                         .seconds = turn_summary(ours, 0).median},
                                   .ours = ours,
                                   .scale = 1e3});
}

static void report_beside(const struct large *large, size_t peer)
{
    char word[ROW_WORD + 8], name[ROW_NAME];
    if (large->peers[peer].peer == NULL)
        return;
    snprintf(word, sizeof word, "beside_%s", large->words[peer]);
    name_figure(large, word, name);
    turn_record(large->rows->figures, &(struct turn_figure){.figure = {.name = name, .unit = "ms"},
                                          .ours = &large->contestants[1],
                                          .peer = &large->contestants[2 + peer],
                                          .scale = 1e3});
}

/* ---- bytes over the loopback interface ------------------------------------------------------------------------------ */

/* What the machine has sent to itself so far. */
static double loopback_bytes(void)
{
    char line[512];
    unsigned long long sent = 0;
    FILE *file = fopen("/proc/net/dev", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " lo: %*u %*u %*u %*u %*u %*u %*u %*u %llu", &sent) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return (double)sent;
}

static void report_bytes(struct large *large)
{
    const double before = loopback_bytes();
    char name[ROW_NAME], limit[ROW_LIMIT];
    cluster_round_seconds(&large->ours.cluster, ROW_CALLS);
    const double computed = 2.0 * NUM_WORKERS * (double)large->bytes;
    struct bench_figure figure = {
        .name = name, .unit = "MB", .value = (loopback_bytes() - before) / ROW_CALLS * 1e-6, .limit = limit};
    figure.of_limit = computed * 1e-6 / figure.value;
    snprintf(
        limit, sizeof limit, "4 n 2 w: gradients to the hub and parameters back, %.1f MB", computed * 1e-6);
    name_figure(large, "bytes_sent", name);
    printf("%-52s %10.1f MB, computed %.1f\n", name, figure.value, computed * 1e-6);
    for (size_t i = 0; i < NUM_PEERS; i++) {
        double counted, wanted;
        const char *answer = large->peers[i].peer != NULL ? peer_ask(large->peers[i].peer, "bytes 1") : NULL;
        if (answer == NULL || sscanf(answer, "%lf %lf", &counted, &wanted) != 2)
            continue;
        printf("%-52s %10.1f MB, computed %.1f\n", large->names[i], counted * 1e-6, wanted * 1e-6);
        figure.peer = large->names[i];
        figure.peer_value = counted * 1e-6;
        figure.ratio = figure.peer_value / figure.value;
        char of_peer[ROW_NAME + ROW_WORD + 8];
        snprintf(of_peer, sizeof of_peer, "%s.beside_%s", name, large->words[i]);
        struct bench_figure beside = figure;
        beside.name = of_peer;
        bench_record(large->rows->figures, &beside);
    }
    figure.peer = NULL;
    bench_record(large->rows->figures, &figure);
}

/* -------------------------------------------------------------------------------------------------------------------- */

static void print_joined(const struct worker_joined *joined)
{
    printf("over %s: %u chunks of %u KiB, %u core threads\n", joined->transport, joined->num_chunks,
        joined->chunk_bytes >> 10, joined->num_cores);
}

static void print_counters(struct large *large)
{
    const struct cluster_counters before = cluster_count(&large->ours.cluster);
    cluster_round_seconds(&large->ours.cluster, COUNTED_CALLS);
    cluster_print_since(&before, &large->ours.cluster, COUNTED_CALLS);
}

void rows_large(struct rows *rows, size_t transport)
{
    static struct large large;
    large = (struct large){.rows = rows, .transport = transport, .bytes = rows_large_bytes(rows)};
    const struct cluster_options options = {.transport = row_transports[transport],
        .jobs = {{.num_workers = NUM_WORKERS, .num_keys = 1, .key_bytes = large.bytes}},
        .num_jobs = 1};
    large.ours = (struct row_cluster){.cluster = cluster_start(&options), .calls = ROW_CALLS};
    large.contestants[0] = (struct contestant){.measure = measure_copy, .context = rows->limits};
    if (transport == 1) {
        large.echo = echo_start(NUM_WORKERS, large.bytes);
        large.contestants[0] = (struct contestant){.measure = echo_measure, .context = &large.echo};
    }
    large.contestants[1] = (struct contestant){.measure = row_rounds, .context = &large.ours};
    add_pslite(&large, 0, "ipc");
    add_pslite(&large, 1, "tcp");
    add_openmpi(&large, 0);
    add_openmpi(&large, 1);
    take_turns(large.contestants, CONTESTANTS, rows->rounds);
    print_joined(&large.ours.cluster.joined);
    report_share(&large);
    for (size_t peer = 0; peer < NUM_PEERS; peer++)
        report_beside(&large, peer);
    if (transport == 1)
        report_bytes(&large);
    if (rows->are_counted)
        print_counters(&large);
    end_peers(&large);
    echo_end(&large.echo);
    cluster_end(&large.ours.cluster);
}
