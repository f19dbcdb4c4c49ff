#include "train/recipe/distill.h"

#include <string.h>

#include "model/layers.h"
#include "op/update/accumulation.h"
#include "store/store.h"

enum { ADAPTER_UNITS = 8 };

struct distilling {
    struct ph_builder *builder;
    const struct ph_train_settings *settings;
    size_t num_tasks;
    ph_value weights, teacher_mask;
    struct ph_teacher teacher;
    ph_value objective; /* the sum of losses so far */
};

/* ---- what the last layer reads ---- */

static bool is_named(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0 &&
           (length == end_length || name[length - end_length - 1] == '.');
}

/* Joins the model's values of this name, each of them flat: (B,K); 0: it has none. */
static ph_value join_named(struct ph_builder *builder, const char *end)
{
    ph_value joined = 0;
    for (size_t i = 0; i < ph_builder_num_named_values(builder); i++) {
        const char *name;
        const ph_value x = ph_builder_named_value(builder, i, &name);
        if (is_named(name, end))
            joined = ph__layer_beside(
                builder, joined, ph_value_type(builder, x).num_dims > 2 ? ph__layer_flatten(builder, x) : x);
    }
    return joined;
}

/* Finds what heads read beside the model's own last layer. */
static ph_value find_backbone(struct ph_builder *builder)
{
    static const char *const names[] = {"hidden", "embeddings", "linear"};
    ph_value x = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && x == 0; i++)
        x = join_named(builder, names[i]);
    return x != 0 ? x
                  : ph_builder_fail(builder, PH_ERROR_CONFIG,
                        "train.distill: the model names nothing that a head could read; set it to single");
}

/* ---- losses ---- */

static ph_value perceptron(
    struct ph_builder *builder, const char *name, ph_value x, int64_t units, size_t num_tasks)
{
    const struct ph_model_settings plain = {.activation = PH_RELU};
    ph_builder_push_scope(builder, name);
    x = ph__layer_perceptron(builder, "deep", x, &units, units > 0, &plain);
    x = ph__layer_affine(builder, "output", x, num_tasks, PH_IDENTITY, NULL);
    ph_builder_pop_scope(builder);
    return x;
}

/* Adds weight times the mean of h(logits, targets) over the rows that the mask keeps. `whole` names the
 * weight of those rows in the whole batch. */
static void add_loss(struct distilling *distilling, ph_value logits, ph_value targets, ph_value mask,
    const char *whole, double weight)
{
    struct ph_builder *builder = distilling->builder;
    const double factors[2] = {1, weight};
    ph_value loss = ph_bce_with_logits(builder, logits, targets, mask, distilling->weights);
    if (distilling->settings->accumulation_steps > 1)
        loss = ph__share_of_loss(builder, loss, ph_input_scalar(builder, whole));
    distilling->objective =
        ph_weighted_sum(builder, 2, (const ph_value[]){distilling->objective, loss}, factors);
}

static void learn_teacher(struct distilling *distilling, ph_value logits, ph_value targets, double weight)
{
    add_loss(distilling, logits, targets, distilling->teacher_mask, "teacher_weight", weight);
}

/* Adds a head that learns the targets. */
static void add_head(
    struct distilling *distilling, const char *name, ph_value x, ph_value targets, double weight)
{
    const ph_value logits =
        perceptron(distilling->builder, name, x, distilling->settings->distill_units, distilling->num_tasks);
    learn_teacher(distilling, logits, targets, weight);
}

/* Adds the adapter and its loss, and returns its logits: the teacher's log-odds and a correction. Log-odds
 * are mostly below 0, where a perceptron alone is flat if none of its few units is active there. */
static ph_value add_adapter(struct distilling *distilling)
{
    struct ph_builder *builder = distilling->builder;
    const ph_value log_odds = distilling->teacher.log_odds;
    const ph_value logits = ph_add(
        builder, log_odds, perceptron(builder, "adapter", log_odds, ADAPTER_UNITS, distilling->num_tasks));
    const ph_value labels = ph_input_labels(builder, distilling->num_tasks);
    add_loss(distilling, logits, labels, distilling->teacher.known, "taught_weight", 1);
    return logits;
}

ph_value ph__distill_add(struct ph_builder *builder, const struct ph_train_settings *settings,
    ph_value logits, double negative_rate, ph_value objective)
{
    const bool has_heads = settings->distill == PH_DISTILL_HEAD || settings->distill == PH_DISTILL_ADAPTER;
    const size_t num_tasks = ph__layer_extent(builder, logits, 1);
    if (settings->distill == PH_DISTILL_NONE)
        return objective;
    struct distilling distilling = {.builder = builder,
        .settings = settings,
        .num_tasks = num_tasks,
        .weights = ph_input_weights(builder),
        .teacher_mask = ph_input_teacher_mask(builder, num_tasks),
        .teacher = ph_teacher_targets(
            builder, num_tasks, has_heads ? settings->distill_label_scale : 1, negative_rate),
        .objective = objective};
    ph_builder_push_scope(builder, PH_TRAINING_SCOPE);
    if (has_heads) {
        const ph_value x =
            ph_scale_gradient(builder, find_backbone(builder), settings->distill_gradient_scale);
        add_head(&distilling, "teacher", x, distilling.teacher.targets, settings->distill_weight);
        if (settings->distill == PH_DISTILL_ADAPTER)
            add_head(&distilling, "adapted", x,
                ph_stop_gradient(builder, ph_sigmoid(builder, add_adapter(&distilling))), 1);
    } else {
        learn_teacher(&distilling, logits, distilling.teacher.targets, settings->distill_weight);
    }
    ph_builder_pop_scope(builder);
    return distilling.objective;
}
