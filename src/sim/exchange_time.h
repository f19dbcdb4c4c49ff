/* Simulated exchanges of pooled vectors, and of their gradients, among ranks that have some columns each. */
#ifndef PH_SIM_EXCHANGE_TIME_H
#define PH_SIM_EXCHANGE_TIME_H

#include "base/memory/arena.h"
#include "plan/fabric/fabric.h"
#include "plan/search/cost_label.h"

struct ph__exchange_case {
    enum ph__exchange_way way;
    size_t world_size;
    double bytes;            /* of a column, for the samples of one rank */
    const double *columns;   /* (world_size) of each rank's tables */
    const double *starts_ms; /* (world_size) when each rank starts, at least 0 */
};

/* Simulates an exchange on the first ranks of a fabric: each rank sends to all others at once, and ends when
 * it has received and sent everything. Gives each rank's milliseconds from its start to its end: ms_out
 * (world_size). Errors of ph__world_run. */
ph_status ph__exchange_simulate(
    const struct ph__fabric *fabric, const struct ph__exchange_case *exchange, double *ms_out);

/* ---- labels for a learnt cost: drawn for worlds of several sizes, and simulated ---- */

enum { PH_EXCHANGE_MOST_RANKS = 32 };

struct ph__exchange_drawing {
    const struct ph__fabric *fabric; /* of two ranks at least: the first of its hosts, with up to its ranks */
    enum ph__exchange_way way;
    size_t batch_size;
    uint64_t seed;
};

/* Fills labels (count) whose arrays are in the arena. Ranks start within .01 to 100 ms, but all together to
 * send gradients: they have waited for each other before. Errors of ph__exchange_simulate. */
ph_status ph__exchange_labels_draw(const struct ph__exchange_drawing *drawing, size_t count,
    struct ph__arena *arena, struct ph__exchange_label *labels);

#endif
