/* Training steps of ours over batches that are made beforehand, with the time and cost of each operator. */
#ifndef PH_BENCH_TRAINING_STEP_H
#define PH_BENCH_TRAINING_STEP_H

#include "graph/distribution.h"
#include "graph/op.h"

struct step;

struct step_options {
    struct ph_program *program;     /* entries forward, backward and update; owned from here on */
    const struct ph_batch *batches; /* (num_batches) taken in turn; borrowed until destroy */
    size_t num_batches;
    size_t threads;
    const struct ph_distribution *distribution; /* the program's, over several ranks; NULL: alone */
    /* Another step with the same optimizer that lives as long, whose parameters and optimizer slots this one
     * shares; NULL: this one has its own. */
    const struct step *beside;
};

/* Creates a step, which is profiled from the beginning. */
struct step *step_create(const struct step_options *options);
void step_destroy(struct step *step);

/* Runs training steps on the batches in turn; returns their seconds. */
double step_run(struct step *step, size_t count);

/* Mean seconds and cost of a node in one step, for the latest step_run. */
size_t step_num_nodes(const struct step *step);
const char *step_node_name(const struct step *step, size_t node);
double step_seconds(const struct step *step, size_t node);
const struct ph__cost *step_cost(const struct step *step, size_t node);

struct ph__team *step_team(const struct step *step);
ph_real *step_table(const struct step *step); /* the embedding table, (tables * rows, dim) */

#endif
