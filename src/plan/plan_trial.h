/* Trials of a planner: one table more, at the places that suit it best by then, and what that would ask of the ranks. The best of
 * a table's trials is remembered: that after which the busiest rank is least busy, of equal ones that with the least work in all.
 * Private to the plan room. */
#ifndef PH_PLAN_PLAN_TRIAL_H
#define PH_PLAN_PLAN_TRIAL_H

#include "plan/plan_cost.h"

struct ph_trial {
    struct ph_plan_choice choice;
    uint32_t *places;            /* (world_size) what choice.places is */
    struct ph_rank_usage *usage; /* (world_size) of all that is placed, and of this */
    double busiest, sum;         /* seconds: of the busiest rank, of all together */
    bool fits;                   /* into every rank's memory */
};

struct ph_place_load;

struct ph_trials {
    const struct ph_plan_machine *machine; /* borrowed, as all three */
    const struct ph_topology *topology;
    const struct ph_plan_step *step;
    struct ph_rank_usage *usage; /* (world_size) of what is placed */
    struct ph_trial last, best;  /* best.fits is false as long as none does */
    double *seconds;             /* (world_size) scratch */
    struct ph_place_load *loads; /* (world_size) scratch */
};

/* Nothing is placed yet. What it points to lies in the arena. */
ph_status ph__trials_init(const struct ph_plan_machine *machine, const struct ph_topology *topology,
    const struct ph_plan_step *step, struct ph_arena *arena, struct ph_trials *trials_out);
/* Takes everything off the ranks. */
void ph__trials_clear(struct ph_trials *trials);

/* What a table would be by itself, on rank 0 or as it is on all: as trials->last. */
ph_status ph__trials_weigh(
    struct ph_trials *trials, const struct ph_table_facts *table, enum ph_shard_kind kind);

/* Tries a table beside what is placed, at the num_places least busy ranks or hosts that have room for it; where there are not
 * as many, not at all. All of them are taken whether they have room or not. */
ph_status ph__trials_try(
    struct ph_trials *trials, const struct ph_table_facts *table, enum ph_shard_kind kind, size_t num_places);
/* Places the table as in its best trial. */
void ph__trials_place_best(struct ph_trials *trials);

/* Seconds of the busiest rank, as things are placed. */
double ph__trials_busiest(struct ph_trials *trials);

#endif
