/* Explanations of plans: why one takes its time, and which world holds tables that do not fit. */
#ifndef PH_PLAN_SEARCH_PLAN_EXPLAIN_H
#define PH_PLAN_SEARCH_PLAN_EXPLAIN_H

#include "plan/search/plan_search.h"

enum { PH_PLAN_DEAR = 3 };

/* A table that costs much, and what it has more of than the others. */
struct ph__dear_table {
    size_t table;
    double compute_ms;          /* of its parts, each alone on its rank */
    double share;               /* of the sum of all tables' */
    double ids, columns, bytes; /* looked up, pooled, touched: as multiples of the mean table's */
};

struct ph__plan_explanation {
    double slowest_ms;
    /* The greatest of the ranks over their mean; NaN: all are 0. */
    double compute_imbalance, exchange_imbalance, bytes_imbalance;
    struct ph__dear_table dear[PH_PLAN_DEAR]; /* dearest first */
    size_t num_dear;
};

/* Replaces the seconds of loads (world_size) by a model's. */
void ph__prices_to_loads(const struct ph__rank_price *prices, size_t world_size, struct ph__plan_load *loads);

/* Explains a plan whose loads (world_size) are known. Errors of the model. */
ph_status ph__plan_explain(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__plan_load *loads, struct ph__plan_explanation *explanation_out);
/* Prints sentences and a table for people. */
ph_status ph__plan_explain_print(const struct ph__plan_explanation *explanation,
    const struct ph__table_facts *tables, struct ph__writer *writer);

/* Finds the fewest ranks, up to `most`, that can hold the tables, as many on a host as in the options'
 * topology; 0: none can. Limits of single ranks are not applied. PH_ERROR_MEMORY: out of memory. */
ph_status ph__plan_smallest_world(
    const struct ph__search_options *options, size_t most, size_t *world_size_out);

#endif
