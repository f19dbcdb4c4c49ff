/* The choice of collectives that a job's ranks sum and gather by: parallel.collective, and a topology. */
#ifndef PH_TRAIN_COLLECTIVE_CHOICE_H
#define PH_TRAIN_COLLECTIVE_CHOICE_H

#include "comm/collective/comm_collectives.h"
#include "plan/plan.h"
#include "train/job.h"

enum { PH_COLLECTIVE_SIZES = 21 }; /* 1 KiB, 2 KiB ... 1 GiB: those that auto looks at */

struct ph__collective_settings {
    struct ph__collective_choice choices[PH_COLLECTIVE_MOST_CHOICES];
    size_t num_choices;
    bool has_groups, may_change;              /* may_change: collective_retry.h */
    double predicted_ns[PH_COLLECTIVE_SIZES]; /* of the choices; zeros: nothing is predicted */
    char text[256]; /* "hierarchical", or "auto: exchange, from 65536 bytes hierarchical" */
};

const char *ph__collective_name(enum ph_collective kind);

/* Settles the choices by the job's fabric, or the file of parallel.topology, or without either; groups_out
 * (world_size) where there are groups. topology: ranks_per_host 0: hosts differ. PH_ERROR_CONFIG: groups
 * differ in size and hierarchical is set, the cluster is smaller than the job, or as ph__fabric_read. */
ph_status ph__collectives_settle(const struct ph__train_job *job, const struct ph__topology *topology,
    struct ph__collective_settings *settings_out, uint32_t *groups_out);

/* Describes the settled choices for predictions of traffic. groups: as settled. Memory is the arena's.
 * PH_ERROR_MEMORY. */
ph_status ph__collectives_of_plan(const struct ph__collective_settings *settings, const uint32_t *groups,
    size_t world_size, struct ph__arena *arena, struct ph__plan_sums *sums_out);

/* Sets settled choices before memory is planned. */
ph_status ph__collectives_set(
    struct ph_comm *comm, const struct ph__collective_settings *settings, const uint32_t *groups);
/* Lets rank 0 settle the choices, and sets them on all ranks. */
ph_status ph__collectives_agree(
    struct ph_comm *comm, const struct ph__train_job *job, struct ph__collective_settings *settings_out);

#endif
