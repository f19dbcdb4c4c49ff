/* The plan that a training has been made by, in its folder: plan.yaml. Bits depend on the plan, and a plan on
 * the machine's memory and on the planner of this version, so that a training which is resumed by as many
 * ranks takes the one it had. */
#ifndef PH_TRAIN_KEPT_PLAN_H
#define PH_TRAIN_KEPT_PLAN_H

#include "plan/plan.h"

/* *is_there_out: false where there is none; plan_out is then none. PH_ERROR_CONFIG: it is of other ranks or
 * tables, or damaged; PH_ERROR_MEMORY. */
ph_status ph__kept_plan_read(const char *folder, const struct ph__topology *topology,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__plan *plan_out, bool *is_there_out);

/* In one moment, in the place of a former one. PH_ERROR_DISK. */
ph_status ph__kept_plan_write(const char *folder, const struct ph__plan *plan);

#endif
