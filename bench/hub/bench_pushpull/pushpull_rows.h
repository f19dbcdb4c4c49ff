/* Parts of bench_pushpull, each of which measures and records some figures. */
#ifndef PH_BENCH_ROWS_H
#define PH_BENCH_ROWS_H

#include <stdbool.h>

#include "cluster.h"
#include "limits.h"
#include "own_network.h"
#include "peer.h"
#include "turns.h"

enum { ROW_NAME = 256, ROW_WORD = 32, ROW_LIMIT = 192, ROW_SIZE = 24, ROW_CASE = 128, ROW_WORDS = 96 };

/* Calls a turn for large keys; their median counts. The first call finds in the caches what another
 * contestant left, the others what the call before left. */
enum { ROW_CALLS = 7 };

/* Peers of a row, each with processes of its own. */
enum { ROW_PSLITES = 3, ROW_OPENMPIS = 2 };

struct rows {
    size_t rounds;
    bool is_quick;                     /* true: small sizes, to see that all of it runs */
    bool are_counted;                  /* true: prints counters, too */
    const char *transport;             /* "shm" or "tcp" alone; NULL: both */
    struct bench_limits *limits;       /* measured with a thread for each processor */
    char congestion[CONGESTION_WORDS]; /* TCP's */
    struct peer pslite[ROW_PSLITES], openmpi[ROW_OPENMPIS];
    struct ph__json *figures;
};

void rows_large(struct rows *rows, size_t transport); /* 64 MiB, beside peers and the machine's copying */
void rows_small(struct rows *rows);                   /* 4 KiB: round trips */
void rows_rate(struct rows *rows);                    /* 4 KiB: keys a second */
void rows_chunks(struct rows *rows);                  /* chunk sizes */
void rows_variants(struct rows *rows);                /* cached and non-temporal; ways to wait */
void rows_wide(struct rows *rows);                    /* the hub's wide aggregation beside its tall one */

static const enum ph_hub_transport row_transports[] = {PH_HUB_SHARED_MEMORY, PH_HUB_TCP};
static const char *const row_transport_names[] = {"shm", "tcp"};
enum { ROW_TRANSPORTS = 2 };

bool rows_want(const struct rows *rows, size_t transport);

/* Returns the bytes of a large key: 64 MiB, or 1 MiB if is_quick. */
size_t rows_large_bytes(const struct rows *rows);
const char *rows_size_name(size_t bytes, char name_out[ROW_SIZE]); /* "64MiB", "4KiB" */

void rows_tenants(struct rows *rows); /* two jobs at once */

/* Contestants of a cluster. row_rounds: its rounds, one value. row_latency: round trips of its first job,
 * with values 50th and 99th percentile. */
struct row_cluster {
    struct cluster cluster;
    uint32_t calls; /* a turn */
};
turn_measure row_rounds, row_latency; /* context: struct row_cluster */
uint32_t row_calibrate_latency(struct row_cluster *of);

/* Contestant of a peer, which is asked "VERB calls". row_peer_rounds: the median of its calls, each the sum
 * of its numbers. row_peer_latency: the answer is two percentiles in microseconds; values in seconds. */
struct row_peer {
    struct peer *peer; /* NULL: none */
    const char *verb;
    uint32_t calls;
    size_t numbers; /* numbers of a call's answer */
};
turn_measure row_peer_rounds, row_peer_latency; /* context: struct row_peer */

/* Command "case ..." for a peer, and its name in reports. */
struct row_case {
    char line[ROW_CASE], words[ROW_WORDS];
};

/* Makes `peer` the row's, with its best case: measures each for a short while, and prints a line on each.
 * Returns the index of the case; num_cases, and no peer for the row, if the peer is not there or accepts
 * none. */
size_t row_peer_choose(struct row_peer *of, struct peer *peer, turn_measure *measure,
    const struct row_case *cases, size_t num_cases);

#endif
