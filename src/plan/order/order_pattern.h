/* The rounds of a collective, as tables of partners. For the files of this folder. */
#ifndef PH_PLAN_ORDER_PATTERN_H
#define PH_PLAN_ORDER_PATTERN_H

#include "base/memory/arena.h"
#include "plan/order/order.h"

#define PH_NO_PLACE UINT32_MAX

/* Returns how many hosts take part. */
static inline size_t ph__order_num_hosts(const struct ph__order_problem *problem)
{
    return problem->num_hosts > 0 ? problem->num_hosts : problem->fabric->num_hosts;
}

struct ph__order_round {
    uint32_t *to, *from; /* (num_places) whom a place sends to, and gets from; PH_NO_PLACE: nobody */
    double share;        /* of S: what each place sends */
    double times;        /* how often the round is repeated */
    double num_messages; /* of each rank */
    bool is_joined;      /* is under way together with the round before it: has no latency of its own */
};

struct ph__order_rounds {
    size_t num_places, num_rounds;
    struct ph__order_round *rounds;
    bool is_tree; /* rounds are a tree's levels, leaves first; the whole is repeated, backwards */
};

/* Makes the rounds in the arena. PH_ERROR_CONFIG, PH_ERROR_MEMORY: as of ph__order_find. */
ph_status ph__order_rounds_make(
    const struct ph__order_problem *problem, struct ph__arena *arena, struct ph__order_rounds *rounds_out);

#endif
