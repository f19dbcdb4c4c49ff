/* The choice of collectives that a job's ranks sum and gather by: parallel.collective, and a topology. */
#ifndef PH_TRAIN_COLLECTIVE_CHOICE_H
#define PH_TRAIN_COLLECTIVE_CHOICE_H

#include "comm/collective/comm_collectives.h"
#include "plan/plan.h"
#include "train/job.h"

struct ph__collective_settings {
    struct ph__collective_choice choices[PH_COLLECTIVE_MOST_CHOICES];
    size_t num_choices;
    bool has_groups;
};

/* Settles the choices by the job's fabric, or the file of parallel.topology, or without either; groups_out
 * (world_size) where there are groups. topology: ranks_per_host 0: hosts differ. PH_ERROR_CONFIG: groups
 * differ in size and hierarchical is set, the cluster is smaller than the job, or as ph__fabric_read. */
ph_status ph__collectives_settle(const struct ph__train_job *job, const struct ph__topology *topology,
    struct ph__collective_settings *settings_out, uint32_t *groups_out);

/* Writes such as "hierarchical", or "auto: exchange, from 65536 bytes hierarchical". */
void ph__collectives_describe(
    enum ph_collective collective, const struct ph__collective_settings *settings, char *text, size_t size);

/* Lets rank 0 settle the choices, and sets them on all ranks. */
ph_status ph__collectives_agree(
    struct ph_comm *comm, const struct ph__train_job *job, char *text_out, size_t size);

#endif
