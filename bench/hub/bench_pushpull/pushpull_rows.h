/* The parts of bench_pushpull, each of which measures and tells some figures. */
#ifndef PH_BENCH_ROWS_H
#define PH_BENCH_ROWS_H

#include <stdbool.h>

#include "cluster.h"
#include "limits.h"
#include "own_network.h"
#include "peer.h"
#include "turns.h"

enum { ROW_NAME = 256, ROW_WORD = 32, ROW_LIMIT = 192, ROW_SIZE = 24, ROW_CASE = 128, ROW_WORDS = 96 };

/* Of large keys, a turn, whose median counts. The first finds in the caches what another contestant left
 * there, the others what the one before them did. */
enum { ROW_CALLS = 7 };

/* Peers of a row, each with processes of its own. */
enum { ROW_PSLITES = 3, ROW_OPENMPIS = 2 };

struct rows {
    size_t rounds;
    bool is_quick;                     /* small sizes, to see that all of it runs */
    bool are_counted;                  /* counters are printed besides */
    const char *transport;             /* "shm" or "tcp": that alone; NULL: both */
    struct bench_limits *limits;       /* of as many threads as there are processors */
    char congestion[CONGESTION_WORDS]; /* of TCP */
    struct peer pslite[ROW_PSLITES], openmpi[ROW_OPENMPIS];
    struct ph__json *figures;
};

void rows_large(struct rows *rows, size_t transport); /* 64 MiB, beside peers and the machine's copying */
void rows_small(struct rows *rows);                   /* 4 KiB: round trips */
void rows_rate(struct rows *rows);                    /* 4 KiB: how many a second */
void rows_chunks(struct rows *rows);                  /* chunk sizes */
void rows_variants(struct rows *rows);                /* cached and non-temporal; ways to wait */
void rows_wide(struct rows *rows);                    /* the hub's wide aggregation beside its tall one */

static const enum ph_hub_transport row_transports[] = {PH_HUB_SHARED_MEMORY, PH_HUB_TCP};
static const char *const row_transport_names[] = {"shm", "tcp"};
enum { ROW_TRANSPORTS = 2 };

bool rows_want(const struct rows *rows, size_t transport);

/* A key of 64 MiB, or of 1 MiB where it is to be quick. */
size_t rows_large_bytes(const struct rows *rows);
const char *rows_size_name(size_t bytes, char name_out[ROW_SIZE]); /* "64MiB", "4KiB" */

void rows_tenants(struct rows *rows); /* two jobs at once */

/* Contestants: a cluster's rounds, one value; round trips of a cluster's first job, values 50th and 99th
 * percentile. */
struct row_cluster {
    struct cluster cluster;
    uint32_t calls; /* a turn */
};
turn_measure row_rounds, row_latency; /* context: struct row_cluster */
uint32_t row_calibrate_latency(struct row_cluster *of);

/* A peer's answer to "VERB calls". Each call's numbers are added up and the median is the value; or, where
 * its answer is microseconds of two percentiles, these are the values in seconds. */
struct row_peer {
    struct peer *peer; /* NULL: there is none */
    const char *verb;
    uint32_t calls;
    size_t numbers; /* of a call's answer */
};
turn_measure row_peer_rounds, row_peer_latency; /* context: struct row_peer */

/* What a peer may be told to do, "case ...", and how that is called in reports. */
struct row_case {
    char line[ROW_CASE], words[ROW_WORDS];
};

/* Makes `peer` that of the row, with the case that is best: each is measured for a short while, and a line
 * says what came of it. Returns its index; num_cases: the peer is not there or accepts none, and the row has
 * none. */
size_t row_peer_choose(struct row_peer *of, struct peer *peer, turn_measure *measure,
    const struct row_case *cases, size_t num_cases);

#endif
