/* A model in inference mode. */
#include <stdlib.h>

#include "serve/features.h"
#include "serve/scorer.h"
#include "serve/scoring_program.h"

struct ph_scorer {
    struct ph_scorer_options options;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
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
        status = ph__scoring_program_build(options->model, &features, &scorer->program);
    }
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

struct ph_memory_report ph_scorer_memory(const struct ph_scorer *scorer)
{
    return ph_workspace_memory(scorer->workspace);
}

const struct ph_scorer_options *ph__scorer_options(const struct ph_scorer *scorer)
{
    return &scorer->options;
}
