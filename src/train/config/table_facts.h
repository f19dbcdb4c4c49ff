/* The facts about a training's tables that a planner needs: the program tells who reads and updates them, a
 * batch tells how many ids are looked up. */
#ifndef PH_TRAIN_TABLE_FACTS_H
#define PH_TRAIN_TABLE_FACTS_H

#include "plan/plan.h"
#include "train/job.h"

struct ph__table_list { /* zero-initialised is empty */
    struct ph__arena arena;
    struct ph__table_facts *tables; /* the program's logical tables, in the order of their declaration */
    size_t num_tables;
    struct ph__dense_facts *dense; /* its other parameters, likewise, but those of no dimension */
    size_t num_dense_parameters;
    size_t num_dense; /* numbers of all its other parameters */
};

/* Collects the facts of a training program whose tables hold rows of this format. batch: the ids of each
 * sample are counted in it; NULL: each feature has one, and accesses are not known. PH_ERROR_MEMORY. Call
 * fini also after a failure. */
ph_status ph__table_list_init(const struct ph_program *program, enum ph_row_format row_format,
    const struct ph_batch *batch, struct ph__table_list *list);
void ph__table_list_fini(struct ph__table_list *list);

/* Reads a plan file for these tables and dense parameters, as ph__plan_read and ph__plan_units_read do. */
ph_status ph__table_list_read_plan(const char *path, const struct ph__topology *topology,
    const struct ph__table_list *list, const enum ph__dense_mode *mode, struct ph__plan *plan_out);

/* Returns the mode that a config names, in *mode; NULL: auto. */
const enum ph__dense_mode *ph__named_dense_mode(enum ph_dense_sharding named, enum ph__dense_mode *mode);
/* Gives a plan that was made units of the mode that the job's config names or, where it names none, of one
 * that rank_bytes allow (0: replicated). Jobs that sum whole gradients, at a hub or in int8, replicate unless
 * the config names a mode. Errors of ph__plan_units_make. */
ph_status ph__table_list_make_units(const struct ph__table_list *list, const struct ph__train_job *job,
    uint64_t rank_bytes, struct ph__plan *plan);

/* Builds the job's program, reads its first batch, and collects the facts of both. */
ph_status ph__table_list_of_job(const struct ph__train_job *job, struct ph__table_list *list);

/* Describe to a planner a step of the job, and the dense parameters that its ranks sum in a step. */
struct ph__plan_step ph__plan_step_of_job(const struct ph__train_job *job);
struct ph__plan_dense ph__plan_dense_of_job(
    const struct ph__train_job *job, const struct ph__table_list *list);

#endif
