/* Our training step of a case, with what each of its operators takes and costs. */
#ifndef PH_BENCH_TRAINING_STEP_H
#define PH_BENCH_TRAINING_STEP_H

#include "dlrm_case.h"
#include "graph/op.h"

struct step;

/* data is borrowed until destroy. beside: a step of the same optimizer that lives as long, whose parameters and optimizer
 * slots this one shares; NULL: it has its own. */
struct step *step_create(const struct dlrm_data *data, enum ph_optimizer_kind optimizer,
    enum ph_precision precision, size_t threads, const struct step *beside);
void step_destroy(struct step *step);

/* Runs training steps on the batches in turn; seconds that they took. */
double step_run(struct step *step, size_t count);

/* Of the latest step_run: mean seconds and cost of a node in one step. */
size_t step_num_nodes(const struct step *step);
const char *step_node_name(const struct step *step, size_t node);
double step_seconds(const struct step *step, size_t node);
const struct ph_cost *step_cost(const struct step *step, size_t node);

struct ph_team *step_team(const struct step *step);
ph_real *step_table(const struct step *step); /* the embedding table, (tables * rows, dim) */

#endif
