/* The least time that an operator can take on this machine. Its one definition is here. */
#ifndef PH_BENCH_FLOOR_H
#define PH_BENCH_FLOOR_H

#include "dlrm_case.h"
#include "graph/op.h"
#include "limits.h"

enum { BENCH_COPY_SIZES = 6 };

/* Rates of the machine at this moment, in FLOP/s and bytes/s; see limits.h. */
struct bench_rates {
    double product;
    double copy[BENCH_COPY_SIZES]; /* of 256 KiB << 2 i bytes: an operator has the rate of the size nearest
                                      its own */
    double gather;                 /* rows that the ids of the case name, out of its own table */
    double revisit;                /* the batch's own rows, in the order of merged slots */
    double update;                 /* distinct rows of the case, ascending */
};

#define BENCH_FLOOR_FORMULA                                                                                 \
    "sum over operators of max(FLOPs / product peak, table rows read / gather + own rows read / revisit + " \
    "table rows updated / update + other bytes / copying as many)"

double bench_floor(const struct ph__cost *cost, const struct bench_rates *rates); /* seconds */

/* Returns the average cost of one of `calls` calls that cost `total` together. */
struct ph__cost bench_cost_of_call(const struct ph__cost *total, size_t calls);

/* The rows that a case's batches touch: lists of slots with which gather, revisit and update are measured. */
struct floor_rows;
struct floor_rows *floor_rows_create(const struct dlrm_data *data);
void floor_rows_destroy(struct floor_rows *rows);

/* Measures the rates. table: the case's own, (tables * rows, dim); its numbers do not change. */
struct bench_rates bench_measure_rates(
    struct bench_limits *limits, const struct floor_rows *rows, ph_real *table);
/* Measures the rates again and keeps the better of each: a measurement before the sample alone may have met
 * the machine in a slower moment than the sample did, and a floor must not flatter. */
void bench_raise_rates(
    struct bench_rates *rates, struct bench_limits *limits, const struct floor_rows *rows, ph_real *table);

#endif
