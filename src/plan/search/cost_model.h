/* The cost of a step's tables to a rank, as a table of functions: the analytic model (plan_cost.h), or one
 * that was learnt from measurements (train/cost). Private to the plan room, to train/cost and their tests.
 *
 * A rank has a set of parts of tables. Each part is described by a few numbers, a set by their sum, and from
 * this sum follows the time in which the rank looks up, differentiates and updates the whole set: not a sum
 * of the parts' own times, since they share one pass over the batch. Exchanges are priced for all ranks at
 * once, since the slowest of them holds up the others.
 *
 * Source: Zha et al. 2023 (arXiv 2305.01868, NeuroShard). */
#ifndef PH_PLAN_COST_MODEL_H
#define PH_PLAN_COST_MODEL_H

#include "plan/plan.h"

enum { PH_COST_MOST_WIDTH = 64 };

/* A rank's part of a table: some of its rows and columns. */
struct ph__cost_part {
    double columns, num_rows;
    double ids_per_sample;  /* of the whole batch's samples, that name a row of the part */
    double touched_bytes;   /* of a step, as plan_cost.h counts them */
    const double *accesses; /* (PH_ACCESS_BINS) of its table; NULL: not known, as for uniform ids */
};

enum ph__exchange_way { PH_EXCHANGE_FORWARD, PH_EXCHANGE_BACKWARD };

struct ph__cost_model {
    const char *name; /* "analytic"; borrowed */
    void *context;
    size_t width;        /* numbers of a description, at most PH_COST_MOST_WIDTH */
    double lookup_share; /* of the time that `compute` gives; the rest is gradients and updates */
    /* Describes parts: descriptions_out (count, width). */
    ph_status (*describe)(
        void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out);
    /* Prices sets of parts, sums of descriptions (count, width), in milliseconds. */
    ph_status (*compute)(void *context, const float *sets, size_t count, double *ms_out);
    /* Prices an exchange for each rank (world_size), in milliseconds from its start to its end. columns: of
     * all parts of a rank together; starts_ms: when each rank starts, counted from the first one. */
    ph_status (*exchange)(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
        const double *columns, const double *starts_ms, double *ms_out);
};

#endif
