/* A model in inference mode. */
#include <stdlib.h>
#include <string.h>

#include "phloem/train.h"
#include "train/features.h"
#include "train/metrics.h"
#include "train/training_program.h"

struct ph_scorer {
    struct ph_scorer_options options;
    size_t num_tasks;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph__predictions *predictions; /* (T) */
};

static ph_status create_workspace(struct ph_scorer *scorer, size_t num_sparse)
{
    const struct ph_scorer_options *options = &scorer->options;
    PH_TRY(ph_executor_create(
        scorer->program, options->store, options->state, options->backend, &scorer->executor));
    size_t num_ids = options->num_ids > 0 ? options->num_ids : options->batch_size * num_sparse;
    return ph_workspace_create(scorer->executor, options->batch_size, num_ids, &scorer->workspace);
}

ph_status ph_scorer_create(const struct ph_scorer_options *options, struct ph_scorer **scorer_out)
{
    struct ph_model_features features;
    PH_TRY(ph__features_init(options->encoder, &features));
    struct ph_scorer *scorer = calloc(1, sizeof *scorer);
    ph_status status = scorer == NULL ? ph_fail(PH_ERROR_MEMORY, "no memory for a scorer") : PH_OK;
    if (status == PH_OK) {
        scorer->options = *options;
        scorer->num_tasks = features.num_tasks;
        scorer->predictions = calloc(features.num_tasks, sizeof *scorer->predictions);
        if (scorer->predictions == NULL)
            status = ph_fail(PH_ERROR_MEMORY, "no memory for %zu tasks", features.num_tasks);
    }
    if (status == PH_OK)
        status = ph__scoring_program_build(options->model, &features, &scorer->program);
    if (status == PH_OK)
        status = create_workspace(scorer, features.num_sparse);
    ph__features_fini(&features);
    if (status == PH_OK)
        *scorer_out = scorer;
    else
        ph_scorer_destroy(scorer);
    return status;
}

void ph_scorer_destroy(struct ph_scorer *scorer)
{
    if (scorer == NULL)
        return;
    for (size_t task = 0; scorer->predictions != NULL && task < scorer->num_tasks; task++)
        ph__predictions_fini(&scorer->predictions[task]);
    free(scorer->predictions);
    ph_workspace_destroy(scorer->workspace);
    ph_executor_destroy(scorer->executor);
    ph_program_destroy(scorer->program);
    free(scorer);
}

ph_status ph_scorer_score(struct ph_scorer *scorer, const struct ph_batch *batch, const ph_real **logits_out)
{
    struct ph_shape shape;
    PH_TRY(ph_workspace_bind(scorer->workspace, batch, 0, 0));
    PH_TRY(ph_workspace_run(scorer->workspace, "forward"));
    return ph_workspace_output(scorer->workspace, "logits", logits_out, &shape);
}

static ph_status score_all(struct ph_scorer *scorer, struct ph_batches *batches)
{
    for (;;) {
        const struct ph_batch *batch;
        PH_TRY(ph_batches_next(batches, &batch));
        if (batch == NULL)
            return PH_OK;
        const ph_real *logits;
        PH_TRY(ph_scorer_score(scorer, batch, &logits));
        for (size_t task = 0; task < scorer->num_tasks; task++)
            PH_TRY(ph__predictions_add(&scorer->predictions[task], batch, logits, task));
    }
}

ph_status ph_scorer_evaluate(struct ph_scorer *scorer, const char *path, struct ph_metrics *metrics_out)
{
    struct ph_batches_options options = {
        .batch_size = scorer->options.batch_size, .num_prefetched = scorer->options.num_prefetched};
    struct ph_batches *batches;
    PH_TRY(ph_batches_open(scorer->options.encoder, path, &options, &batches));
    for (size_t task = 0; task < scorer->num_tasks; task++)
        ph__predictions_clear(&scorer->predictions[task]);
    ph_status status = score_all(scorer, batches);
    ph_batches_close(batches);
    for (size_t task = 0; status == PH_OK && task < scorer->num_tasks; task++) {
        const struct ph__predictions *predictions = &scorer->predictions[task];
        status = ph_metrics_compute(predictions->count, predictions->scores, predictions->labels,
            predictions->has_groups ? predictions->groups : NULL, &metrics_out[task]);
    }
    return status;
}

struct ph_memory_report ph_scorer_memory(const struct ph_scorer *scorer)
{
    return ph_workspace_memory(scorer->workspace);
}
