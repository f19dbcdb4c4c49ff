/* Prices of plans by a cost model (cost_model.h): milliseconds of each rank's tables in a step. */
#ifndef PH_PLAN_SEARCH_PLAN_PRICE_H
#define PH_PLAN_SEARCH_PLAN_PRICE_H

#include "plan/search/cost_model.h"

/* A job that plans are priced for; all is borrowed. */
struct ph__pricing {
    const struct ph__cost_model *model;
    const struct ph__plan_machine *machine; /* prices what the model does not: rows of replicas */
    const struct ph__topology *topology;
    const struct ph__plan_step *step;
    const struct ph__table_facts *tables; /* (num_tables) */
    size_t num_tables;
    const double *slowness; /* (world_size) times the model's compute; NULL: 1 each */
};

static inline double ph__slowness(const struct ph__pricing *pricing, size_t rank)
{
    return pricing->slowness != NULL ? pricing->slowness[rank] : 1;
}

struct ph__rank_price {
    uint64_t bytes; /* tables and slots */
    double columns; /* that the rank sends in both exchanges, as ph__sent_columns counts them */
    double compute_ms;
    double replicas_ms; /* gradients of data_parallel tables, sent to all ranks and merged */
    double backward_ms, forward_ms;
    double wait_ms; /* for the last rank to have updated its rows */
};
double ph__rank_price_ms(const struct ph__rank_price *price);

/* Describes a rank's part of a table: rows and columns, for the samples of so many of the job's ranks. */
struct ph__cost_part ph__cost_part(const struct ph__pricing *pricing, size_t table, double num_rows,
    size_t num_columns, double sample_share);
/* Adds such a part's description to a set's (width). Errors of the model. */
ph_status ph__add_part(const struct ph__pricing *pricing, size_t table, double num_rows, size_t num_columns,
    double sample_share, float *set);
/* Counts the numbers that travel for such a part and a sample, in columns: one that travels in both exchanges
 * is one. Ids and lengths of bags, which are as large, travel once: they are halves. */
double ph__sent_columns(const struct ph__table_facts *table, double num_rows, size_t num_columns);
/* Returns the milliseconds in which a rank sends its gradients of a data_parallel table's rows, and merges
 * those of all ranks: writes what it receives, reads it to sum it, and adds it to the weights. */
double ph__replica_ms(const struct ph__pricing *pricing, size_t table);

/* Prices both exchanges of ranks (world_size) whose columns, compute and replicas are known. Gradients travel
 * when all ranks are ready, and each rank updates its rows. Lookups of the next step need the ids of all
 * ranks, so they begin when the last one has. Vectors travel when each rank has looked up its rows. Returns
 * the slowest rank's milliseconds. */
ph_status ph__price_exchanges(
    const struct ph__pricing *pricing, struct ph__rank_price *prices, double *slowest_ms_out);

/* Prices a plan: prices_out (world_size). PH_ERROR_MEMORY; errors of the model. */
ph_status ph__plan_price(const struct ph__pricing *pricing, const struct ph__plan *plan,
    struct ph__rank_price *prices_out, double *slowest_ms_out);

/* ---- the analytic model ---- */

struct ph__analytic_cost {
    struct ph__plan_machine machine;
    struct ph__plan_step step;
};
/* Makes the model of plan_cost.h a cost model, which borrows `cost`. */
struct ph__cost_model ph__analytic_model(struct ph__analytic_cost *cost);

#endif
