/* Parts of units on ranks: what each rank has, and what that costs. Private to plan/search. */
#ifndef PH_PLAN_SEARCH_PLAN_LAYOUT_H
#define PH_PLAN_SEARCH_PLAN_LAYOUT_H

#include "plan/search/plan_parts.h"

struct ph__layout {
    const struct ph__units *units;
    float *sums;                   /* (world_size, width) of the parts' descriptions */
    struct ph__rank_price *prices; /* (world_size) */
    uint64_t *host_bytes;          /* (num_hosts) */
    bool *is_there;                /* (num_tables, world_size) the rank has a part of the table */
    double *ms;                    /* (world_size) scratch */
    double moved_ms;               /* the price of bytes that lie elsewhere than in the plan to start from */
    uint64_t short_bytes;          /* beyond the limits */
};

ph_status ph__layout_init(const struct ph__units *units, struct ph__arena *arena, struct ph__layout *layout);
/* Empties the ranks, but for tables that are copied to all of them. Errors of the model. */
ph_status ph__layout_begin(struct ph__layout *layout);
/* Computes each rank's time anew. Errors of the model. */
ph_status ph__layout_compute(struct ph__layout *layout);

/* Puts a part on a rank, or takes it away again. Its compute_ms is left to the caller. */
void ph__layout_put(struct ph__layout *layout, const struct ph__unit *unit, size_t rank);
void ph__layout_take(struct ph__layout *layout, const struct ph__unit *unit, size_t rank);

static inline double ph__busy_ms(const struct ph__rank_price *price)
{
    return price->compute_ms + price->replicas_ms;
}

/* Counts the bytes of `added` that lie beyond the limits of the rank and its host, once `taken` have gone. */
uint64_t ph__layout_beyond(const struct ph__layout *layout, size_t rank, uint64_t added, uint64_t taken);
/* Tells whether the rank has a table that lies apart from one of the unit's. */
bool ph__layout_is_kept_apart(const struct ph__layout *layout, const struct ph__unit *unit, size_t rank);
/* Returns the price of moving a part of the unit to the rank. */
double ph__layout_moved_ms(const struct ph__layout *layout, const struct ph__unit *unit, size_t rank);

#endif
