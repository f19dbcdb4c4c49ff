/* A model in inference mode. */
#include "serve/scorer.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "graph/distribution.h"
#include "graph/graph.h"

/* ---- features ---- */

/* Lists each feature, and its slice of a table. */
static void list_slices(const struct ph_encoder *encoder, size_t num_sparse, struct ph_table_slice *sparse,
    struct ph_table_slice *slices)
{
    for (size_t f = 0; f < num_sparse; f++) {
        const struct ph_sparse_feature *feature = ph_encoder_sparse(encoder, f);
        const char *owner = ph_encoder_sparse(encoder, feature->owner)->name;
        sparse[f] = (struct ph_table_slice){feature->name, feature->num_rows};
        slices[f] = (struct ph_table_slice){owner, feature->num_rows};
    }
}

ph_status ph__features_init(const struct ph_encoder *encoder, struct ph_model_features *features_out)
{
    const size_t num_sparse = ph_encoder_num_sparse(encoder);
    struct ph_table_slice *sparse = calloc(2 * num_sparse + 1, sizeof *sparse);
    if (sparse == NULL)
        return ph__out_of_memory("%zu features", num_sparse);
    list_slices(encoder, num_sparse, sparse, sparse + num_sparse);
    *features_out = (struct ph_model_features){
        .num_dense = ph_encoder_num_dense(encoder),
        .num_sparse = num_sparse,
        .num_tasks = ph_encoder_num_tasks(encoder),
        .sparse = sparse,
        .slices = sparse + num_sparse,
        .has_id_weights = ph_encoder_has_id_weights(encoder),
        .has_classes = ph_encoder_num_classes(encoder) > 0,
    };
    return PH_OK;
}

void ph__features_fini(struct ph_model_features *features)
{
    free((void *)features->sparse);
    *features = (struct ph_model_features){0};
}

/* ---- the program ---- */

/* Returns the numbers a row of a value that has one row a sample, of fp32; 0: it is no such value. */
static size_t width_of(const struct ph_builder *builder, ph_value value)
{
    const struct ph_type type = ph_value_type(builder, value);
    size_t width = 1;
    if (type.kind != PH_DENSE || type.dtype != PH_REAL || type.num_dims == 0 || type.dims[0].extent != 1 ||
        type.dims[0].symbol != PH_SYMBOL_BATCH)
        return 0;
    for (size_t i = 1; i < type.num_dims; i++)
        width *= type.dims[i].symbol == 0 ? type.dims[i].extent : 0;
    return width;
}

/* Makes the value that the model has given this name an output. */
static void add_output(struct ph_builder *builder, const char *wanted)
{
    const char *name;
    for (size_t i = 0; i < ph_builder_num_named_values(builder); i++) {
        const ph_value value = ph_builder_named_value(builder, i, &name);
        if (strcmp(name, wanted) == 0 && width_of(builder, value) > 0) {
            ph_output(builder, name, value);
            return;
        }
    }
    ph_builder_fail(builder, PH_ERROR_USAGE, "the model has no output '%s'", wanted);
}

ph_status ph__scoring_program_build(const struct ph_scorer_options *options,
    const struct ph_model_features *features, struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    const ph_value *more;
    size_t num_more;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_builder_set_precision(builder, options->precision);
    ph_builder_set_recipes(builder, options->recipes, options->num_recipes);
    const ph_value logits = ph_model_build(builder, options->model, features);
    if (!options->has_no_logits)
        ph_output(builder, "logits", logits);
    for (size_t i = 0; i < options->num_outputs; i++)
        add_output(builder, options->outputs[i]);
    if (options->distribution != NULL)
        options->distribution->spread(options->distribution->context, builder, &more, &num_more);
    ph_status status = ph_builder_finish(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

ph_status ph__scoring_program_build_unfused(const struct ph_model_settings *model,
    const struct ph_model_features *features, struct ph_program **program_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", ph_model_build(builder, model, features));
    ph_status status = ph__builder_finish_unfused(builder, program_out);
    ph_builder_destroy(builder);
    return status;
}

static ph_status list_outputs(const struct ph_builder *builder, struct ph__arena *arena,
    struct ph__model_output **outputs_out, size_t *num_outputs_out)
{
    const size_t count = ph_builder_num_named_values(builder);
    struct ph__model_output *outputs = ph__arena_alloc_array(arena, count, sizeof *outputs);
    const char *name;
    size_t num_outputs = 0;
    if (outputs == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const size_t width = width_of(builder, ph_builder_named_value(builder, i, &name));
        if (width == 0)
            continue;
        outputs[num_outputs] = (struct ph__model_output){ph__arena_strdup(arena, name), width};
        if (outputs[num_outputs++].name == NULL)
            return PH_ERROR_MEMORY;
    }
    *outputs_out = outputs;
    *num_outputs_out = num_outputs;
    return PH_OK;
}

ph_status ph__scoring_outputs(const struct ph_model_settings *model, const struct ph_model_features *features,
    struct ph__arena *arena, struct ph__model_output **outputs_out, size_t *num_outputs_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    (void)ph_model_build(builder, model, features);
    ph_status status = ph_builder_status(builder);
    if (status == PH_OK)
        status = list_outputs(builder, arena, outputs_out, num_outputs_out);
    ph_builder_destroy(builder);
    return status;
}

/* ---- scorers ---- */

struct ph_scorer {
    struct ph_scorer_options options;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    ph_real *shifted; /* (B,T) scores that are not the logits */
    size_t shifted_capacity;
};

static ph_status create_workspace(struct ph_scorer *scorer, size_t num_sparse)
{
    const struct ph_scorer_options *options = &scorer->options;
    PH_TRY(ph_executor_create(
        scorer->program, options->store, options->state, options->backend, &scorer->executor));
    size_t num_ids = options->num_ids > 0 ? options->num_ids : options->batch_size * num_sparse;
    const struct ph_distribution *distribution = options->distribution;
    if (distribution != NULL)
        return distribution->create_workspace(
            distribution->context, scorer->executor, options->batch_size, num_ids, &scorer->workspace);
    return ph_workspace_create(scorer->executor, options->batch_size, num_ids, &scorer->workspace);
}

ph_status ph_scorer_create(const struct ph_scorer_options *options, struct ph_scorer **scorer_out)
{
    struct ph_scorer_options own;
    struct ph_model_features features;
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_scorer_options"));
    PH_TRY(ph__features_init(own.encoder, &features));
    struct ph_scorer *scorer = calloc(1, sizeof *scorer);
    ph_status status = scorer == NULL ? ph__out_of_memory("a scorer") : PH_OK;
    if (status == PH_OK) {
        scorer->options = own;
        status = ph__scoring_program_build(&scorer->options, &features, &scorer->program);
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
    free(scorer->shifted);
    free(scorer);
}

/* Writes the log odds of a row's softmax, z_t - log sum_{s != t} exp(z_s): a sigmoid gives each class its
 * probability. exps (T) is scratch. Others are summed from both ends: a difference from the whole sum would
 * lose the digits of small ones. */
static void softmax_log_odds(size_t num_classes, const ph_real *z, ph_real *exps, ph_real *odds_out)
{
    float max = (float)z[0], later = 0, earlier = 0;
    for (size_t t = 1; t < num_classes; t++)
        max = (float)z[t] > max ? (float)z[t] : max;
    for (size_t t = num_classes; t-- > 0;) {
        exps[t] = (ph_real)expf((float)z[t] - max);
        odds_out[t] = (ph_real)later;
        later += (float)exps[t];
    }
    for (size_t t = 0; t < num_classes; t++) {
        const float others = earlier + (float)odds_out[t];
        earlier += (float)exps[t];
        odds_out[t] = (ph_real)((float)z[t] - max - logf(others < FLT_MIN ? FLT_MIN : others));
    }
}

/* Gives the scores of logits (B,T): log odds of classes, or logits of which those of task 0 are shifted. */
static ph_status convert(
    struct ph_scorer *scorer, size_t num_samples, size_t num_tasks, const ph_real **logits)
{
    const size_t count = num_samples * num_tasks;
    const bool is_classes = ph_encoder_num_classes(scorer->options.encoder) > 0;
    if (!is_classes && scorer->options.logit_shift == 0)
        return PH_OK;
    PH_TRY(ph__array_reserve((void **)&scorer->shifted, &scorer->shifted_capacity, count + num_tasks,
        sizeof *scorer->shifted)); /* and a row of scratch */
    if (!is_classes)
        memcpy(scorer->shifted, *logits, count * sizeof *scorer->shifted);
    for (size_t i = 0; i < count; i += num_tasks)
        if (is_classes)
            softmax_log_odds(num_tasks, *logits + i, scorer->shifted + count, scorer->shifted + i);
        else
            scorer->shifted[i] += (ph_real)scorer->options.logit_shift;
    *logits = scorer->shifted;
    return PH_OK;
}

static ph_status bind(struct ph_scorer *scorer, const struct ph_batch *batch)
{
    const struct ph_distribution *distribution = scorer->options.distribution;
    return distribution != NULL ? distribution->bind(distribution->context, scorer->workspace, batch, 0, 0)
                                : ph_workspace_bind(scorer->workspace, batch, 0, 0);
}

static ph_status score(struct ph_scorer *scorer, const struct ph_batch *batch, const ph_real **logits_out)
{
    struct ph_shape shape;
    const ph_real *logits = NULL;
    PH_TRY(bind(scorer, batch));
    PH_TRY(ph_workspace_run(scorer->workspace, "forward"));
    if (scorer->options.has_no_logits) {
        *logits_out = NULL;
        return PH_OK;
    }
    PH_TRY(ph_workspace_output(scorer->workspace, "logits", &logits, &shape));
    PH_TRY(convert(scorer, shape.dims[0], shape.dims[1], &logits));
    *logits_out = logits;
    return PH_OK;
}

ph_status ph_scorer_score(struct ph_scorer *scorer, const struct ph_batch *batch, const ph_real **logits_out)
{
    fenv_t former;
    ph__cpu_float_enter(false, &former);
    ph_status status = score(scorer, batch, logits_out);
    ph__cpu_float_leave(&former);
    return status;
}

ph_status ph_scorer_output(
    const struct ph_scorer *scorer, size_t index, const ph_real **values_out, size_t *width_out)
{
    struct ph_shape shape;
    if (index >= scorer->options.num_outputs)
        return ph_fail(PH_ERROR_USAGE, "scorer: output %zu of %zu", index, scorer->options.num_outputs);
    PH_TRY(ph_workspace_output(scorer->workspace, scorer->options.outputs[index], values_out, &shape));
    *width_out = 1;
    for (size_t i = 1; i < shape.num_dims; i++)
        *width_out *= shape.dims[i];
    return PH_OK;
}

struct ph_memory_usage ph_scorer_memory(const struct ph_scorer *scorer)
{
    return ph_workspace_memory(scorer->workspace);
}

const struct ph_program *ph__scorer_program(const struct ph_scorer *scorer)
{
    return scorer->program;
}

const struct ph_scorer_options *ph__scorer_options(const struct ph_scorer *scorer)
{
    return &scorer->options;
}

/* ---- probabilities ---- */

double ph__sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double ph__negative_rate_shift(double rate)
{
    return rate > 0 && rate < 1 ? log(rate) : 0;
}

void ph__probabilities(size_t n, const ph_real *logits, float *probabilities)
{
    for (size_t i = 0; i < n; i++)
        probabilities[i] = (float)ph__sigmoid((double)logits[i]);
}
