/* The planner's cost: the work that a table gives each rank in a step. A stated model, no measurement; it
 * only has to rank plans. Private to the plan room and its tests.
 *
 * A rank's seconds are the sum of three, since nothing is known of how they overlap:
 *
 *   touched_bytes / memory_bytes_per_s
 *   max(host_sent, host_received) / host_bytes_per_s
 *   max(sent, received by all ranks of its host over the network) / network_bytes_per_s
 *
 * Bytes touched by a shard of c columns, whose rows the batch names E times, U of them once at least, with V
 * bags in the batch:
 *
 *   E (row's weights + 4 c) + 4 V c + 2 U (row's weights + row's slots)
 *
 * These are the lookup and the gradient's row for each id; a pooled vector for each bag; and the update, read
 * and written. A rank of a data_parallel table has the ids and bags of its own samples, and updates the rows
 * that all samples name.
 *
 * Sent bytes are those of plan_traffic.h, for each table alone. Only the number of ids is known: they are
 * taken to be uniform over the rows, so that n ids name R (1 - (1 - 1/R)^n) of R rows. Real ids name fewer
 * rows, so updates, squares and replicas are overestimated, least for large tables. */
#ifndef PH_PLAN_PLAN_COST_H
#define PH_PLAN_PLAN_COST_H

#include "plan/plan_choice.h"
#include "plan/plan_traffic.h"

/* ---- the machine ---- */

/* The rates of the machine that plans are made for, each with its nominal value in bytes a second, its name
 * and the origin of the value. Plans go by nominal rates, or by a topology file's (fabric.h), whose section
 * `machine` has the rates of a host as keys and these values as defaults: the same command makes the same
 * plan at any load and on any of the machine's processors.
 *
 * Rows are looked up by one core: plans must not depend on the number of threads, which differs between
 * ranks. By Little's law a core reads (cache lines in flight) (bytes of a line) / latency: 12 x 64 B / 96 ns,
 * by the L1 fill buffers of Ice Lake. */
#define PH_PLAN_HOST_RATE_LIST(X)                                  \
    X(memory_bytes_per_s, 8e9, "rows at random, each rank",        \
        "one core of Intel's Ice Lake, memory at 96 ns (assumed)") \
    X(host_bytes_per_s, 5e9, "two ranks of a host, each way",      \
        "a copy by one core: read, written, at 10 GB/s (assumed)")
#define PH_PLAN_LINK_GBITS_PER_S 10 /* also the default of a topology file's links */
#define PH_PLAN_RATE_LIST(X)                                                                     \
    PH_PLAN_HOST_RATE_LIST(X)                                                                    \
    X(network_bytes_per_s, PH_PLAN_LINK_GBITS_PER_S * 1e9 / 8, "two hosts, each way, all ranks", \
        "10 Gb/s Ethernet (IEEE 802.3ae)")

struct ph__plan_rate {
    const char *name;   /* "two ranks of a host, each way"; static, like `source` */
    double nominal;     /* bytes a second */
    const char *source; /* origin of the nominal value */
    size_t offset;      /* of the double in struct ph__plan_machine */
};

enum { PH_PLAN_NUM_RATES = 3 };
extern const struct ph__plan_rate ph__plan_rates[PH_PLAN_NUM_RATES];

/* Returns a machine's value of a rate. */
double ph__plan_machine_rate(const struct ph__plan_machine *machine, const struct ph__plan_rate *rate);
/* Sets the machine's rates to the given ones, except those that are NaN: not known. */
void ph__plan_machine_take(struct ph__plan_machine *machine, const struct ph__plan_machine *given);

/* Returns the machine of the nominal rates; a rank may spend rank_bytes (0: no limit). */
struct ph__plan_machine ph__plan_machine_nominal(uint64_t rank_bytes);

/* ---- the cost ---- */

/* A rank's work in a step; begins as zeros. */
struct ph__rank_usage {
    uint64_t held_bytes;
    double touched_bytes;
    double host_sent, host_received;       /* to and from ranks of its host */
    double network_sent, network_received; /* to and from other hosts' ranks */
};

/* Work of one rank's part of a table. */
struct ph__part_work {
    size_t num_columns;
    double num_ids, num_bags, num_rows; /* E, V, U */
};
double ph__touched_bytes(const struct ph__table_facts *facts, const struct ph__part_work *work);

/* Returns how many of num_rows rows num_ids uniform ids name, on average. */
double ph__expected_rows(double num_rows, double num_ids);

/* Fills the counts that a planner expects, in the arena. */
ph_status ph__expected_counts(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, struct ph__arena *arena, struct ph__table_counts *counts_out);

/* Adds the work that a table of the plan gives each rank to usage (world_size). */
void ph__table_usage(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, struct ph__rank_usage *usage);

/* Fills seconds_out (world_size). */
void ph__usage_seconds(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__rank_usage *usage, double *seconds_out);

#endif
