/* Labels of the learnt cost: what was measured or simulated, for the nets to learn. */
#ifndef PH_PLAN_SEARCH_COST_LABEL_H
#define PH_PLAN_SEARCH_COST_LABEL_H

#include "plan/search/cost_model.h"

/* A set of parts of tables on one rank, and its lookup, gradient and update. Borrowed. */
struct ph__cost_label {
    const struct ph__cost_part *parts; /* (num_parts) */
    size_t num_parts;
    double ms; /* above 0 */
};

/* An exchange among all ranks. Arrays are (world_size) and borrowed. */
struct ph__exchange_label {
    enum ph__exchange_way way;
    struct ph__topology topology;
    const double *columns, *starts_ms;
    const double *ms;
};

#endif
