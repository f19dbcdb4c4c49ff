/* The hub from end to end: real processes, a hub and its workers, beside ps-lite and Open MPI.
 *
 * Our processes are forked and driven over pipes, and rest while others are measured; peers do the same
 * (bench/peers/). In each round all contestants of a row take turns, and the latency between two processors
 * before and after each turn tells which turns can be compared (bench/turns.h). Every parameter that is
 * pulled is compared, bit by bit, with the expected result of one period of the gradients, outside of the
 * timed part. Seconds are those of the slowest worker, from its leaving a meeting. All of it runs in a
 * network namespace of its own if possible, so that TCP is the same for all (own_network.h).
 *
 *   shm, tcp   64 MiB from 2 workers beside peers; over shared memory also the share of copying bandwidth
 *   small      4 KiB to and fro, 50th and 99th percentile
 *   rate       4 KiB, as many as possible in a second
 *   chunks     chunks of 4 KiB to 4 MiB
 *   variants   results cached and past the caches; ways to wait, with more threads than processors
 *   wide       the hub's wide aggregation beside its tall one: one key, small ones, a model's
 *   tenants    two jobs at once: the same bits as alone, and how they share
 *
 * bench_pushpull [--only shm|tcp|small|rate|chunks|variants|wide|tenants] [--transport shm|tcp] [--rounds N]
 *                [--counters] [--quick] [--peers FOLDER] [--json FILE]
 * --counters: prints counts of hub and workers a round: messages, system calls, sleeps, processor time.
 * --quick: small sizes and one round, to see that all of it runs. */
#include <stdio.h>
#include <string.h>

#include "base/thread/parallel.h"
#include "bench_pushpull/own_network.h"
#include "bench_pushpull/pushpull_rows.h"
#include "flags.h"

enum { DEFAULT_ROUNDS = 11 };

static bool is_wanted(const char *only, const char *part)
{
    return only == NULL || strcmp(only, part) == 0;
}

static void run(struct rows *rows, const char *only)
{
    const struct part {
        const char *name;
        void (*run)(struct rows *rows);
    } parts[] = {{"small", rows_small}, {"rate", rows_rate}, {"chunks", rows_chunks},
        {"variants", rows_variants}, {"wide", rows_wide}, {"tenants", rows_tenants}};
    for (size_t transport = 0; transport < ROW_TRANSPORTS; transport++)
        if (rows_want(rows, transport) && is_wanted(only, row_transport_names[transport]))
            rows_large(rows, transport);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (is_wanted(only, parts[i].name))
            parts[i].run(rows);
}

static void start_peers(struct rows *rows, const char *folder)
{
    for (size_t i = 0; i < ROW_PSLITES; i++)
        peer_start(&rows->pslite[i], folder, "pslite");
    for (size_t i = 0; i < ROW_OPENMPIS; i++)
        peer_start(&rows->openmpi[i], folder, "openmpi");
}

static void stop_peers(struct rows *rows)
{
    for (size_t i = 0; i < ROW_PSLITES; i++)
        peer_stop(&rows->pslite[i]);
    for (size_t i = 0; i < ROW_OPENMPIS; i++)
        peer_stop(&rows->openmpi[i]);
}

int main(int argc, char **argv)
{
    static struct rows rows;
    struct ph__team *team;
    const char *only = NULL;
    const struct bench_flag flags[] = {
        {.name = "--only", .word = &only, .words = "shm|tcp|small|rate|chunks|variants|wide|tenants"},
        {.name = "--transport", .word = &rows.transport, .words = "shm|tcp"},
        {.name = "--counters", .is_set = &rows.are_counted}};
    struct bench_run told = {.rounds = DEFAULT_ROUNDS, .most_rounds = TURN_MOST_ROUNDS};
    bench_read_flags(argc, argv, &told, flags, sizeof flags / sizeof *flags);
    own_network_enter();
    own_network_congestion(rows.congestion);
    rows.rounds = told.rounds;
    rows.is_quick = told.is_quick;
    bench_check(ph__team_create(0, &team));
    rows.limits = bench_limits_create(team);
    rows.figures = ph__json_array();
    start_peers(&rows, told.peers);
    run(&rows, only);
    stop_peers(&rows);
    bench_limits_destroy(rows.limits);
    ph__team_destroy(team);
    bench_finish(rows.figures, told.json);
    return 0;
}
