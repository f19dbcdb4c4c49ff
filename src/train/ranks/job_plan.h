/* The plan that the ranks of a job go by: a file, the one that it was begun by, or one that is made by its tables, by nominal
 * figures (plan/plan_machine.h) and by the memory that the config allows or the machines have. Nothing that changes from one moment
 * to the next has a say in it: the same job on the same machines gets the same plan. */
#ifndef PH_TRAIN_JOB_PLAN_H
#define PH_TRAIN_JOB_PLAN_H

#include "train/ranks/ranks.h"

/* Sets ranks->plan, the same on all of them, which must all call it. PH_ERROR_CONFIG: what ph__plan_read says, or ranks have come
 * to different plans; PH_ERROR_MEMORY: no plan fits, naming the table; PH_ERROR_PEER. */
ph_status ph__job_plan_find(struct ph__ranks *ranks, const struct ph_train_job *job);

/* Without other ranks: PH_ERROR_MEMORY where all tables are more than what a rank may spend. */
ph_status ph__job_plan_check_alone(const struct ph_train_job *job);

#endif
