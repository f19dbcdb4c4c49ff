/* What a planner wants to know of a training's tables: of its program who reads and updates them, of a batch
 * how many ids they are asked for. */
#ifndef PH_TRAIN_TABLE_FACTS_H
#define PH_TRAIN_TABLE_FACTS_H

#include "phloem/train.h"
#include "plan/plan.h"

struct ph__table_list { /* zero-initialised is empty */
    struct ph__arena arena;
    struct ph__table_facts *tables; /* the program's logical tables, in the order of their declaration */
    size_t num_tables;
    size_t num_dense; /* numbers of its other parameters */
};

/* The facts of a training program whose tables hold rows of this format. batch: the ids of each sample are
 * counted in it; NULL: there is one of each feature. PH_ERROR_MEMORY. To be finished also after a failure. */
ph_status ph__table_list_init(const struct ph_program *program, enum ph_row_format row_format,
    const struct ph_batch *batch, struct ph__table_list *list);
void ph__table_list_fini(struct ph__table_list *list);

/* The same of a job: builds its program, and reads its first batch. */
ph_status ph__table_list_of_job(const struct ph_train_job *job, struct ph__table_list *list);

/* What a step of the job is to a planner, and what its ranks sum in it of a program's dense parameters. */
struct ph__plan_step ph__plan_step_of_job(const struct ph_train_job *job);
struct ph__plan_dense ph__plan_dense_of_job(
    const struct ph_train_job *job, const struct ph__table_list *list);

#endif
