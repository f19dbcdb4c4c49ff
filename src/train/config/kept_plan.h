/* The plan that a training was made by, kept in its folder as plan.yaml. Bits depend on the plan, and a made
 * plan depends on the machine's memory and on this version's planner: a training resumed on as many ranks
 * therefore takes its former plan. */
#ifndef PH_TRAIN_KEPT_PLAN_H
#define PH_TRAIN_KEPT_PLAN_H

#include "train/config/table_facts.h"

/* Gives the path of the folder's plan.yaml; NULL: out of memory. */
const char *ph__kept_plan_path(struct ph__arena *arena, const char *folder);

/* Reads the plan as ph__table_list_read_plan does. Without a file *is_there_out is false and *plan_out empty.
 * PH_ERROR_CONFIG: the plan is for other ranks or tables, or damaged; PH_ERROR_MEMORY. */
ph_status ph__kept_plan_read(const char *folder, const struct ph__topology *topology,
    const struct ph__table_list *list, const enum ph__dense_mode *mode, struct ph__plan *plan_out,
    bool *is_there_out);

/* Replaces the former plan atomically. PH_ERROR_DISK. */
ph_status ph__kept_plan_write(const char *folder, const struct ph__plan *plan);

#endif
