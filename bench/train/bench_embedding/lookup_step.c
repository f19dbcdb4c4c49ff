/* Runs the training step of embedding tables. The loss is there for its gradient: each sample's sum of pooled
 * rows is multiplied by one weight a column, so that the gradient of the lookup is dense, as a model's is,
 * costs one pass to write, and has just been written when the update reads it. */
#include "lookup_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/clock.h"
#include "figures.h"
#include "floor.h"
#include "graph/executor.h"

enum { MAX_TABLES = 64 };

const char *const lookup_operator_names[LOOKUP_OPERATORS] = {
    "embedding_bag", "slots", "merge", "entries", "embedding_update"};

struct lookup {
    const struct dlrm_data *data;
    struct ph_program *program;
    struct ph_store *store;
    struct ph_state *state;
    size_t num_backends;
    struct ph_executor *executors[LOOKUP_MAX_BACKENDS];
    struct ph_workspace *workspaces[LOOKUP_MAX_BACKENDS];
    uint64_t number; /* of the latest step */
};

/* ---- the program ---- */

static ph_value build_table(struct ph_builder *builder, const struct dlrm_case *of)
{
    struct ph_table_slice slices[MAX_TABLES];
    char names[MAX_TABLES][24];
    for (size_t i = 0; i < of->tables; i++) {
        snprintf(names[i], sizeof names[i], "C%zu", i + 1);
        slices[i] = (struct ph_table_slice){names[i], of->rows};
    }
    return ph_table(builder, "table", of->tables, slices, of->dim, (struct ph_init){PH_INIT_UNIFORM, 0.01});
}

static ph_value build_loss(struct ph_builder *builder, const struct dlrm_case *of, ph_value table)
{
    const struct ph_init init = {PH_INIT_UNIFORM, 1};
    const ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){1, of->dim}, init);
    const ph_value pooled =
        ph_embedding_bag(builder, ph_input_ids(builder, of->tables), table, PH_POOL_SUM, 0);
    const ph_value logits = ph_linear(builder, ph_sum_features(builder, pooled), weight, 0, PH_IDENTITY);
    return ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
}

static struct ph_program *build(const struct dlrm_case *of, enum ph_optimizer_kind kind)
{
    const struct ph_optimizer optimizer = {
        .rule.kind = kind, .rule.epsilon = 1e-10, .learning_rate_factor = 1};
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    ph_value gradient = 0;
    bench_check(ph_builder_create(PH_TRAINING, &builder));
    const ph_value table = build_table(builder, of);
    const ph_value loss = build_loss(builder, of, table);
    ph_output(builder, "loss", loss);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 1, &table, &gradient);
    ph_builder_begin_entry(builder, "update");
    ph_update(builder, table, gradient, &optimizer, ph_input_scalar(builder, "learning_rate"),
        ph_input_scalar(builder, "step"), 0);
    bench_check(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* ---- running ---- */

struct lookup *lookup_create(const struct dlrm_data *data, enum ph_optimizer_kind optimizer,
    struct ph_backend *const *backends, size_t num_backends)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: a lookup"));
    lookup->data = data;
    lookup->num_backends = num_backends;
    lookup->program = build(&data->of, optimizer);
    bench_check(ph_store_create(1, &lookup->store));
    bench_check(ph_state_create(&lookup->state));
    for (size_t i = num_backends; i-- > 0;) { /* most threads first: it fills the tables */
        bench_check(ph_executor_create(
            lookup->program, lookup->store, lookup->state, backends[i], &lookup->executors[i]));
        bench_check(ph_workspace_create(
            lookup->executors[i], data->of.batch, data->batches[0].num_ids, &lookup->workspaces[i]));
        bench_check(ph_workspace_set_scalar(lookup->workspaces[i], "learning_rate", 0.01));
        bench_check(ph_executor_profile(lookup->executors[i], true, 0));
    }
    return lookup;
}

void lookup_destroy(struct lookup *lookup)
{
    for (size_t i = 0; i < lookup->num_backends; i++) {
        ph_workspace_destroy(lookup->workspaces[i]);
        ph_executor_destroy(lookup->executors[i]);
    }
    ph_state_destroy(lookup->state);
    ph_store_destroy(lookup->store);
    ph_program_destroy(lookup->program);
    free(lookup);
}

static void run_step(struct lookup *lookup, size_t backend)
{
    static const char *const entries[] = {"forward", "backward", "update"};
    struct ph_workspace *workspace = lookup->workspaces[backend];
    lookup->number++;
    const struct ph_batch *batch = &lookup->data->batches[lookup->number % DLRM_NUM_BATCHES];
    bench_check(ph_workspace_bind(workspace, batch, 1, lookup->number));
    bench_check(ph_workspace_set_scalar(workspace, "step", (double)lookup->number));
    for (size_t k = 0; k < sizeof entries / sizeof *entries; k++)
        bench_check(ph_workspace_run(workspace, entries[k]));
}

static struct ph__node_profile *profile_of(const struct ph_executor *executor, const char *op)
{
    const struct ph__graph *graph = &executor->program->graph;
    size_t node = 0;
    while (strcmp(graph->nodes[node].op->name, op) != 0)
        node++;
    return &executor->profile[node];
}

double lookup_run(
    struct lookup *lookup, size_t backend, size_t steps, struct lookup_profile profile_out[LOOKUP_OPERATORS])
{
    double whole[LOOKUP_MAX_STEPS], seconds[LOOKUP_OPERATORS][LOOKUP_MAX_STEPS];
    struct ph__node_profile *profiles[LOOKUP_OPERATORS];
    for (size_t k = 0; k < LOOKUP_OPERATORS; k++) {
        profiles[k] = profile_of(lookup->executors[backend], lookup_operator_names[k]);
        *profiles[k] = (struct ph__node_profile){0};
    }
    for (size_t i = 0; i < steps; i++) {
        const double begin = ph__clock_seconds();
        run_step(lookup, backend);
        whole[i] = ph__clock_seconds() - begin;
        for (size_t k = 0; k < LOOKUP_OPERATORS; k++) {
            seconds[k][i] = (double)profiles[k]->time_ns * 1e-9;
            profiles[k]->time_ns = 0;
        }
    }
    for (size_t k = 0; k < LOOKUP_OPERATORS; k++)
        profile_out[k] = (struct lookup_profile){
            bench_median(seconds[k], steps), bench_cost_of_call(&profiles[k]->cost, steps)};
    return bench_median(whole, steps);
}

ph_real *lookup_table(const struct lookup *lookup)
{
    return dlrm_table(lookup->store);
}
