/* The hub from end to end: real processes, a hub and its workers, beside ps-lite and Open MPI.
 *
 * Every process of ours is forked and driven over pipes, and rests while others are measured; peers do the same
 * (bench/peers/). In each round all contestants of a row take turns, and the latency between two processors before and after
 * each turn says what may be compared with what (bench_pushpull/turns.h). Every parameter that is pulled is compared, bit by
 * bit, with what one period of the gradients must come to, outside of what is timed. Seconds are those of the slowest
 * worker, from its leaving a meeting.
 *
 *   shm, tcp   64 MiB from 2 workers beside peers; over shared memory also the share of copying bandwidth
 *   small      4 KiB to and fro, 50th and 99th percentile; rate: as many as go, in a second
 *   chunks     chunks of 4 KiB to 4 MiB
 *   variants   results cached and past the caches; ways to wait, with more threads than processors
 *   tenants    two jobs at once: the same bits as alone, and how they share
 *
 * bench_pushpull [--only shm|tcp|small|rate|chunks|variants|tenants] [--transport shm|tcp] [--rounds N] [--counters]
 *                [--quick] [--peers FOLDER] [--json FILE]
 * --counters: prints what hub and workers count in a round: messages, system calls, sleeps, processor time. --quick: small
 * sizes and one round, to see that all of it runs. */
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench_pushpull/pushpull_rows.h"

enum { DEFAULT_ROUNDS = 11 };

struct options {
    const char *only, *peers, *json;
};

static bool is_wanted(const struct options *options, const char *part)
{
    return options->only == NULL || strcmp(options->only, part) == 0;
}

static struct options read_options(int argc, char **argv, struct rows *rows)
{
    struct options options = {0};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0)
            rows->is_quick = true;
        else if (strcmp(argv[i], "--counters") == 0)
            rows->are_counted = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            rows->rounds = bench_positive(argv[i++], value);
        else if (strcmp(argv[i], "--only") == 0)
            options.only = argv[++i];
        else if (strcmp(argv[i], "--transport") == 0)
            rows->transport = argv[++i];
        else if (strcmp(argv[i], "--peers") == 0)
            options.peers = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            options.json = argv[++i];
    }
    if (rows->is_quick)
        rows->rounds = 1;
    if (rows->rounds > BENCH_MAX_ROUNDS)
        rows->rounds = BENCH_MAX_ROUNDS;
    return options;
}

static void run(struct rows *rows, const struct options *options)
{
    const struct part {
        const char *name;
        void (*run)(struct rows *rows);
    } parts[] = {{"small", rows_small}, {"rate", rows_rate}, {"chunks", rows_chunks},
        {"variants", rows_variants}, {"tenants", rows_tenants}};
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        if (rows_want(rows, transport) && is_wanted(options, row_transport_names[transport]))
            rows_large(rows, transport);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (is_wanted(options, parts[i].name))
            parts[i].run(rows);
}

int main(int argc, char **argv)
{
    static struct rows rows = {.rounds = DEFAULT_ROUNDS};
    struct ph_team *team;
    const struct options options = read_options(argc, argv, &rows);
    bench_check(ph__team_create(0, &team));
    rows.limits = bench_limits_create(team);
    rows.figures = ph__json_array();
    for (size_t i = 0; i < 2; i++) {
        peer_start(&rows.pslite[i], options.peers, "pslite");
        peer_start(&rows.openmpi[i], options.peers, "openmpi");
    }
    run(&rows, &options);
    for (size_t i = 0; i < 2; i++) {
        peer_stop(&rows.pslite[i]);
        peer_stop(&rows.openmpi[i]);
    }
    bench_limits_destroy(rows.limits);
    ph__team_destroy(team);
    bench_finish(rows.figures, options.json);
    return 0;
}
