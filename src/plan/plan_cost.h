/* The planner's cost: what a table takes of each rank in a step. A stated model, no measurement; what matters
 * is which plan it prefers. Private to the plan room and its tests.
 *
 * A rank's seconds are those of three things, one after the other, since nothing is known of how they
 * overlap:
 *
 *   touched_bytes / memory_bytes_per_s
 *   max(host_sent, host_received) / host_bytes_per_s
 *   max(sent, received by all ranks of its host over the network) / network_bytes_per_s
 *
 * Touched by a shard of c columns, whose rows the batch names E times, U of them once at least, with V bags
 * in the batch:
 *
 *   E (row's weights + 4 c) + 4 V c + 2 U (row's weights + row's slots)      bytes
 *
 * the lookup and the gradient's row for each id; a pooled vector for each bag; and the update, read and
 * written. A rank of a data_parallel table has the ids and bags of its own samples, and updates what all
 * samples name.
 *
 * What is sent is that of plan_traffic.h, each table weighed alone. Of ids nothing is known but their number:
 * they are taken to be uniform over the rows, n of them name R (1 - (1 - 1/R)^n) of R rows. Real ones name
 * fewer, so updates, squares and replicas are overestimated, those of large tables least. */
#ifndef PH_PLAN_PLAN_COST_H
#define PH_PLAN_PLAN_COST_H

#include "plan/plan_choice.h"
#include "plan/plan_traffic.h"

/* ---- the machine ---- */

/* A rate of links or processors, in bytes a second. The nominal rates of the machine that a plan is made for
 * stand in one table, so that the same command makes the same plan whatever else the machine does, and
 * whichever of its processors a rank gets. */
struct ph__plan_rate {
    const char *name;   /* "two ranks of a host, each way"; static, as `source` */
    double nominal;     /* bytes a second */
    const char *source; /* where the nominal value is from */
    size_t offset;      /* of the double that it fills in struct ph__plan_machine */
};

enum { PH_PLAN_NUM_RATES = 3 };
extern const struct ph__plan_rate ph__plan_rates[PH_PLAN_NUM_RATES];

/* Reads and writes what a row of the table says of a machine. */
double ph__plan_machine_rate(const struct ph__plan_machine *machine, const struct ph__plan_rate *rate);
void ph__plan_machine_set(
    struct ph__plan_machine *machine, const struct ph__plan_rate *rate, double bytes_per_s);

/* The machine of the nominal rates, whose ranks may spend rank_bytes each (0: no limit). */
struct ph__plan_machine ph__plan_machine_nominal(uint64_t rank_bytes);

/* ---- the cost ---- */

/* What a rank has to do in a step; all zero at first. */
struct ph__rank_usage {
    uint64_t held_bytes;
    double touched_bytes;
    double host_sent, host_received;       /* from and to ranks of its host */
    double network_sent, network_received; /* from and to others */
};

/* Rows of num_rows that num_ids uniform ids name, on average. */
double ph__expected_rows(double num_rows, double num_ids);

/* The counts that a planner expects, in the arena. */
ph_status ph__expected_counts(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, struct ph__arena *arena, struct ph__table_counts *counts_out);

/* Adds what a table of the plan takes; usage (world_size). */
void ph__table_usage(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, struct ph__rank_usage *usage);

/* seconds_out (world_size). */
void ph__usage_seconds(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__rank_usage *usage, double *seconds_out);

#endif
