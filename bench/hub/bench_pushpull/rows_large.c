/* 64 MiB of fp32 gradients from two workers, summed, stepped by momentum and pulled again, in turns with
 * ps-lite's pushpull and with Open MPI's AllReduce followed by a momentum pass. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "echo.h"
#include "pushpull_rows.h"

enum { NUM_WORKERS = 2, COUNTED_CALLS = 50 };
enum { NUM_PEERS = ROW_PSLITES + ROW_OPENMPIS, CONTESTANTS = 2 + NUM_PEERS };
enum { TRIED_SIZES = 3, TRIED_STEP = 4 }; /* sizes of a peer's pieces */

struct large {
    struct rows *rows;
    size_t transport, bytes, num_peers;
    struct row_cluster ours;
    struct echo echo; /* started over TCP */
    struct row_peer peers[NUM_PEERS];
    char names[NUM_PEERS][ROW_NAME], words[NUM_PEERS][ROW_WORD]; /* peers; figures beside them */
    const char *congestion[NUM_PEERS];                           /* TCP's; NULL: not over TCP */
    struct contestant contestants[CONTESTANTS];                  /* the machine's limit, ours, peers */
};

/* Measures the seconds a byte of copying, as often as ours. */
static void measure_copy(void *context, double values_out[TURN_VALUES])
{
    double seconds[ROW_CALLS];
    for (size_t i = 0; i < ROW_CALLS; i++)
        seconds[i] = 1 / bench_copy(context, BENCH_MAX_COPIED);
    values_out[0] = bench_median(seconds, ROW_CALLS);
}

static void measure_echo(void *context, double values_out[TURN_VALUES])
{
    double seconds[ROW_CALLS];
    for (size_t i = 0; i < ROW_CALLS; i++)
        seconds[i] = echo_seconds(context);
    values_out[0] = bench_median(seconds, ROW_CALLS);
}

/* ---- peers ---- */

/* Adds a peer with its best case. word: its name in figures; congestion: TCP's, NULL: not over TCP. */
static void add_peer(struct large *large, struct peer *peer, const char *word, const char *congestion,
    const struct row_peer *wanted, const struct row_case *cases, size_t num_cases)
{
    const size_t index = large->num_peers++;
    struct row_peer *row = &large->peers[index];
    *row = *wanted;
    const size_t chosen = row_peer_choose(row, peer, row_peer_rounds, cases, num_cases);
    large->congestion[index] = congestion;
    snprintf(large->words[index], ROW_WORD, "%s", word);
    snprintf(large->names[index], ROW_NAME, "%s, %s", peer->version,
        chosen < num_cases ? cases[chosen].words : "");
    large->contestants[2 + index] =
        (struct contestant){.name = large->names[index], .measure = row_peer_rounds, .context = row};
}

/* Returns sizes around the best that was found by tuning. */
static size_t tried_size(size_t usual, size_t index)
{
    return usual / TRIED_STEP * (index == 0 ? 1 : index == 1 ? TRIED_STEP : TRIED_STEP * TRIED_STEP);
}

struct pslite_way {
    const char *transport, *word, *congestion;
    const char *manner; /* appended to the words of a case */
};

static void add_pslite(struct large *large, struct peer *peer, const struct pslite_way *way)
{
    struct row_case cases[TRIED_SIZES];
    char size[ROW_SIZE];
    for (size_t i = 0; i < TRIED_SIZES; i++) {
        const size_t chunk = tried_size((size_t)1 << 20, i);
        snprintf(cases[i].line, ROW_CASE, "case pushpull bytes=%zu workers=%d chunk=%zu transport=%s",
            large->bytes, NUM_WORKERS, chunk, way->transport);
        snprintf(cases[i].words, ROW_WORDS, "pslite %s, chunks of %s%s", way->transport,
            rows_size_name(chunk, size), way->manner);
    }
    add_peer(large, peer, way->word, way->congestion,
        &(struct row_peer){.verb = "pushpull", .calls = ROW_CALLS, .numbers = 1}, cases, TRIED_SIZES);
}

/* Adds ps-lite over Unix sockets, and over TCP with everybody's congestion control. */
static void add_pslites(struct large *large)
{
    struct rows *rows = large->rows;
    add_pslite(large, &rows->pslite[0], &(struct pslite_way){"ipc", "pslite_ipc", NULL, ""});
    add_pslite(large, &rows->pslite[1], &(struct pslite_way){"tcp", "pslite_tcp", rows->congestion, ""});
}

/* Adds ps-lite over TCP as outside of the benchmark's network namespace: with the default of this machine. */
static void add_pslite_of_machine(struct large *large)
{
    char manner[ROW_WORD];
    const char *outside = own_network_as_outside();
    if (outside == NULL)
        return;
    snprintf(manner, sizeof manner, ", the machine's %s", outside);
    add_pslite(large, &large->rows->pslite[2],
        &(struct pslite_way){"tcp", "pslite_tcp_of_machine", outside, manner});
    own_network_as_inside();
}

/* Returns a case for segments of this size; 0: the algorithm that Open MPI chooses. */
static struct row_case openmpi_case(const struct large *large, size_t segment)
{
    struct row_case made = {.words = "openmpi"};
    char size[ROW_SIZE];
    snprintf(made.line, ROW_CASE, "case allreduce bytes=%zu ranks=%d transport=%s segment=%zu", large->bytes,
        NUM_WORKERS, row_transport_names[large->transport], segment);
    if (segment > 0)
        snprintf(made.words, ROW_WORDS, "openmpi in segments of %s", rows_size_name(segment, size));
    return made;
}

/* Adds Open MPI with its own choice of an algorithm, and in segments. */
static void add_openmpi(struct large *large)
{
    const struct row_peer wanted = {.verb = "training", .calls = ROW_CALLS, .numbers = 2};
    const size_t usual = (size_t)(large->transport == 0 ? 256 : 1024) << 10;
    const struct row_case own = openmpi_case(large, 0);
    struct row_case cases[TRIED_SIZES];
    for (size_t i = 0; i < TRIED_SIZES; i++)
        cases[i] = openmpi_case(large, tried_size(usual, i));
    const char *congestion = large->transport == 1 ? large->rows->congestion : NULL;
    add_peer(large, &large->rows->openmpi[0], "openmpi", congestion, &wanted, &own, 1);
    add_peer(large, &large->rows->openmpi[1], "openmpi_in_segments", congestion, &wanted, cases, TRIED_SIZES);
}

static void end_peers(struct large *large)
{
    for (size_t i = 0; i < large->num_peers; i++)
        if (large->peers[i].peer != NULL)
            peer_ask(large->peers[i].peer, "end");
}

/* ---- figures ---- */

static void name_figure(const struct large *large, const char *word, char name_out[ROW_NAME])
{
    char size[ROW_SIZE];
    snprintf(name_out, ROW_NAME, "hub.pushpull.%s.%s%s%s", row_transport_names[large->transport],
        rows_size_name(large->bytes, size), word[0] != '\0' ? "." : "", word);
}

/* Describes the limit, and returns the share of it. Over shared memory: copying as many bytes as processor
 * and memory exchange. Over TCP: plain TCP. */
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
    turn_record(large->rows->figures,
        &(struct turn_figure){.figure = {.name = name, .unit = "ms", .congestion = large->congestion[peer]},
            .ours = &large->contestants[1],
            .peer = &large->contestants[2 + peer],
            .scale = 1e3});
}

/* ---- bytes over the loopback interface ---- */

/* Returns the bytes that the machine has sent to itself so far. */
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
    for (size_t i = 0; i < large->num_peers; i++) {
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
        large.contestants[0] = (struct contestant){.measure = measure_echo, .context = &large.echo};
    }
    large.contestants[1] = (struct contestant){.measure = row_rounds, .context = &large.ours};
    add_pslites(&large);
    add_openmpi(&large);
    if (transport == 1)
        add_pslite_of_machine(&large);
    take_turns(large.contestants, 2 + large.num_peers, rows->rounds);
    print_joined(&large.ours.cluster.joined);
    report_share(&large);
    for (size_t peer = 0; peer < large.num_peers; peer++)
        report_beside(&large, peer);
    if (transport == 1)
        report_bytes(&large);
    if (rows->are_counted)
        print_counters(&large);
    end_peers(&large);
    echo_end(&large.echo);
    cluster_end(&large.ours.cluster);
}
