#include "train/config/training_program.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "graph/distribution.h"
#include "graph/recipe_table.h"
#include "op/update/accumulation.h"
#include "phloem/op.h"
#include "tensor/row_format.h"
#include "train/config/optimizer_groups.h"
#include "train/recipe/distill.h"

/* A norm that no finite gradient exceeds: with this limit the clip factor only tells whether gradients are
 * finite. */
#define ANY_NORM 1e30

/* The learnt values and their optimizers: arrays of the same length. */
struct learnt {
    size_t count;       /* number of parameters; behind them stand values whose gradients other ranks need */
    size_t num_values;  /* number of all values */
    const char **names; /* borrowed from the builder */
    ph_value *parameters;
    ph_value *read_as; /* values of forward whose gradients are wanted */
    ph_value *gradients;
    struct ph_optimizer *optimizers;
};

static void learnt_fini(struct learnt *learnt)
{
    free(learnt->names);
    free(learnt->parameters);
    free(learnt->read_as);
    free(learnt->gradients);
    free(learnt->optimizers);
}

static ph_status learnt_init(struct ph_builder *builder, const struct ph_optimizer_settings *settings,
    const struct ph_distribution *distribution, const ph_value *more, size_t num_more, struct learnt *learnt)
{
    size_t count = ph_builder_num_parameters(builder);
    *learnt = (struct learnt){
        .count = count,
        .num_values = count + num_more,
        .names = calloc(count + 1, sizeof(const char *)),
        .parameters = calloc(count + num_more + 1, sizeof(ph_value)),
        .read_as = calloc(count + num_more + 1, sizeof(ph_value)),
        .gradients = calloc(count + num_more + 1, sizeof(ph_value)),
        .optimizers = calloc(count + 1, sizeof(struct ph_optimizer)),
    };
    if (learnt->names == NULL || learnt->parameters == NULL || learnt->read_as == NULL ||
        learnt->gradients == NULL || learnt->optimizers == NULL) {
        learnt_fini(learnt);
        return ph__out_of_memory("%zu parameters", count);
    }
    for (size_t i = 0; i < count; i++) {
        ph_value parameter = ph_builder_parameter(builder, i);
        const struct ph__declaration *declaration = ph__builder_declaration(builder, parameter);
        learnt->names[i] = declaration->family != NULL ? declaration->family : declaration->name;
        learnt->parameters[i] = parameter;
        learnt->optimizers[i] = ph__optimizer_for(settings, learnt->names[i], declaration->is_table);
    }
    for (size_t i = 0; i < num_more; i++)
        learnt->parameters[count + i] = more[i];
    for (size_t i = 0; i < learnt->num_values; i++)
        learnt->read_as[i] = distribution != NULL
                                 ? distribution->read_as(distribution->context, learnt->parameters[i])
                                 : learnt->parameters[i];
    return PH_OK;
}

static uint64_t learnt_bytes(struct ph_builder *builder, enum ph_row_format row_format)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++) {
        const struct ph__declaration *declaration =
            ph__builder_declaration(builder, ph_builder_parameter(builder, i));
        const enum ph_row_format format = declaration->is_table ? row_format : PH_ROWS_FP32;
        bytes += ph__table_bytes(format, ph_shape_elements(&declaration->shape), 1);
    }
    return bytes;
}

static void add_updates(struct ph_builder *builder, const struct learnt *learnt, ph_value clip_factor)
{
    ph_value learning_rate = ph_input_scalar(builder, "learning_rate");
    ph_value step = ph_input_scalar(builder, "step");
    for (size_t i = 0; i < learnt->count; i++)
        if (learnt->optimizers[i].learning_rate_factor > 0)
            ph_update(builder, learnt->parameters[i], learnt->gradients[i], &learnt->optimizers[i],
                learning_rate, step, clip_factor);
}

/* Makes the gradients [first, last) those of all ranks. */
static void reduce(struct ph_builder *builder, const struct learnt *learnt,
    const struct ph_distribution *distribution, size_t first, size_t last)
{
    if (distribution != NULL)
        distribution->reduce(distribution->context, builder, last - first, learnt->parameters + first,
            learnt->gradients + first);
}

/* Reduces the gradients that other ranks need with each micro-batch, and all others once a batch. */
static void add_gradients(struct ph_builder *builder, const struct learnt *learnt, ph_value loss,
    const struct ph_distribution *distribution, const struct ph__accumulation *accumulation)
{
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, learnt->num_values, learnt->read_as, learnt->gradients);
    if (distribution != NULL)
        distribution->differentiated(
            distribution->context, builder, learnt->count, learnt->parameters, learnt->gradients);
    if (accumulation->num_micro_batches == 1) {
        reduce(builder, learnt, distribution, 0, learnt->num_values);
        return;
    }
    reduce(builder, learnt, distribution, learnt->count, learnt->num_values);
    ph__accumulate_gradients(builder, accumulation, learnt->count, learnt->gradients);
    reduce(builder, learnt, distribution, 0, learnt->count);
}

static void add_entries(struct ph_builder *builder, const struct learnt *learnt, ph_value loss,
    double max_norm, const struct ph_distribution *distribution, const struct ph__accumulation *accumulation)
{
    add_gradients(builder, learnt, loss, distribution, accumulation);
    ph_value clip_factor = 0;
    if (max_norm > 0) {
        ph_builder_begin_entry(builder, "clip");
        clip_factor = ph_clip_factor(
            builder, learnt->count, learnt->parameters, learnt->gradients, learnt->optimizers, max_norm);
        ph_output(builder, "clip_factor", clip_factor);
    }
    ph_builder_begin_entry(builder, "update");
    add_updates(builder, learnt, clip_factor);
    if (distribution != NULL)
        distribution->complete(distribution->context, builder);
}

static ph_status check_groups(struct ph_builder *builder, const struct ph_optimizer_settings *settings)
{
    const size_t count = ph_builder_num_parameters(builder);
    const char **names = calloc(count + 1, sizeof *names);
    if (names == NULL)
        return ph__out_of_memory("%zu parameters", count);
    for (size_t i = 0; i < count; i++)
        names[i] = ph__builder_declaration(builder, ph_builder_parameter(builder, i))->name;
    const ph_status status = ph__optimizer_groups_check(settings, names, count);
    free(names);
    return status;
}

static ph_status add_learning(struct ph_builder *builder, const struct ph__train_job *job,
    const struct ph_distribution *distribution, const struct ph__accumulation *accumulation, ph_value loss,
    double max_norm)
{
    struct learnt learnt;
    const ph_value *more = NULL;
    size_t num_more = 0;
    PH_TRY(check_groups(builder, job->optimizer));
    if (distribution != NULL)
        distribution->spread(distribution->context, builder, &more, &num_more);
    PH_TRY(learnt_init(builder, job->optimizer, distribution, more, num_more, &learnt));
    add_entries(builder, &learnt, loss, max_norm, distribution, accumulation);
    learnt_fini(&learnt);
    return PH_OK;
}

static double norm_limit(const struct ph_train_settings *settings)
{
    if (settings->max_gradient_norm > 0)
        return settings->max_gradient_norm;
    return settings->non_finite == PH_NON_FINITE_SKIP ? ANY_NORM : 0;
}

/* Adds the losses that the model has added to the loss of the labels. */
static ph_value objective(struct ph_builder *builder, ph_value loss)
{
    const size_t num_added = ph_builder_num_losses(builder);
    for (size_t i = 0; i < num_added; i++) {
        double factors[2] = {1, 0};
        const ph_value losses[2] = {loss, ph_builder_loss(builder, i, &factors[1])};
        loss = ph_weighted_sum(builder, 2, losses, factors);
    }
    return loss;
}

/* Returns the micro-batch's share of the objective. */
static ph_value micro_objective(
    struct ph_builder *builder, ph_value loss, struct ph__accumulation *accumulation)
{
    ph_value weight = 0;
    if (accumulation->num_micro_batches == 1)
        return objective(builder, loss);
    accumulation->num_before = ph_input_scalar(builder, "num_before");
    const ph_value share = ph__share_of_batch(
        builder, objective(builder, loss), loss, ph_input_scalar(builder, "batch_weight"), &weight);
    ph_output(builder, "weight", weight);
    return share;
}

static ph_status build(struct ph_builder *builder, const struct ph__train_job *job,
    const struct ph_model_features *features, const struct ph_distribution *distribution,
    struct ph__training_program *program_out)
{
    ph_value logits = ph_model_build(builder, job->model, features);
    ph_value labels = ph_input_labels(builder, features->num_tasks);
    ph_value mask = ph_input_label_mask(builder, features->num_tasks);
    ph_value loss = (features->has_classes ? ph_softmax_cross_entropy : ph_bce_with_logits)(
        builder, logits, labels, mask, ph_input_weights(builder));
    ph_output(builder, "loss", loss);
    ph_output(builder, "logits", logits);
    PH_TRY(ph_builder_status(builder));
    double max_norm = norm_limit(job->train);
    struct ph__accumulation accumulation = {.num_micro_batches = ph__num_micro_batches(job->train)};
    const ph_value minimised = ph__distill_add(builder, job->train, logits, job->reading.negative_rate,
        micro_objective(builder, loss, &accumulation));
    PH_TRY(add_learning(builder, job, distribution, &accumulation, minimised, max_norm));
    struct ph__training_program program = {.num_micro_batches = accumulation.num_micro_batches,
        .has_clip = max_norm > 0,
        .parameter_bytes = learnt_bytes(builder, job->train->row_format)};
    PH_TRY(ph_builder_finish(builder, &program.program));
    *program_out = program;
    return PH_OK;
}

static ph_status set_recipes(struct ph_builder *builder, const char *path)
{
    struct ph__arena arena = {0};
    struct ph__recipe_table table = {.count = 0};
    ph_status status = PH_OK;
    if (path != NULL && path[0] != '\0')
        status = ph__recipe_table_read(path, &arena, &table);
    if (status == PH_OK)
        ph_builder_set_recipes(builder, table.recipes, table.count);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__training_program_build(const struct ph__train_job *job,
    const struct ph_model_features *features, const struct ph_distribution *distribution,
    struct ph__training_program *program_out)
{
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    ph_builder_set_precision(builder, job->train->precision);
    ph_status status = set_recipes(builder, job->train->recipes);
    if (status == PH_OK)
        status = build(builder, job, features, distribution, program_out);
    ph_builder_destroy(builder);
    return status;
}
