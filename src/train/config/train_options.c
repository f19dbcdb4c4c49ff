/* The keys under "train" and "optimizer" of a config. */
#include "train/config/train_options.h"

#include "train/measure/progressive.h"

#define TRAIN(member) struct ph_train_settings, member
#define OPTIMIZER(member) struct ph__optimizer_section, settings.member
#define GROUP(member) struct ph_optimizer_group, member
#define OPTIMIZER_WORDS "sgd|momentum|adagrad|rowwise_adagrad|adam|adamw"
#define MANY 1e15

static const struct ph__option train_options[] = {
    PH_INTEGER_KEY("epochs", TRAIN(epochs), "1", 1, MANY, "Passes over data.train, at most.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_INTEGER_KEY(
        "batch_size", TRAIN(batch_size), "2048", 1, 16777216, "Samples a step, of all ranks together."),
    PH_INTEGER_KEY("accumulation_steps", TRAIN(accumulation_steps), "1", 1, 16777216,
        "Micro-batches that the samples of a step are cut into, batch_size at most: they are run one after "
        "the other, their gradients are added up, and weights change once. A step learns what it learns "
        "without, but for rounding, and takes less memory. Batch norm alone has the statistics of a "
        "micro-batch."),
    PH_INTEGER_KEY("max_steps", TRAIN(max_steps), "0", 0, MANY,
        "Ends training after so many steps; 0: no limit. Where schedule cosine ends with it, it stays.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("precision", TRAIN(precision), "fp32", "fp32|bf16",
        "Of linear layers' arithmetic. bf16: they multiply numbers of 16 bits and sum in fp32, forward and "
        "backward; weights, gradients of weights and optimizers stay fp32."),
    PH_CHOICE_KEY("row_format", TRAIN(row_format), "fp32", "fp32|fp16|bf16|bf16_split",
        "How the rows of embedding tables are held; arithmetic and optimizer slots stay fp32. fp16 and bf16 "
        "take half the memory: updates are rounded by chance, right on average; what passes 65504 becomes "
        "infinite in fp16. bf16_split looks up bf16 and keeps the other 16 bits beside for the update, which "
        "is that of fp32."),
    PH_BOOL_KEY("deterministic", TRAIN(deterministic), "true",
        "The same bits for any number of threads. false leaves the threading of matrix products to their "
        "library, which requires team: openmp."),
    PH_INTEGER_KEY("evaluate_steps", TRAIN(evaluate_steps), "0", 0, MANY,
        "Evaluates on data.valid every so many steps as well as after each epoch; 0: after epochs only."),
    PH_CHOICE_KEY("selection", TRAIN(selection), "auc", "auc|logloss",
        "The metric on data.valid by which the best model is kept."),
    PH_INTEGER_KEY("patience", TRAIN(patience), "2", 0, 1000000,
        "Ends training after so many evaluations in a row without improvement; 0: never. Where labels of one "
        "class leave nothing to compare, nothing is counted, and the last model is kept.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("schedule", TRAIN(schedule), "plateau", "constant|step|cosine|plateau",
        "The learning rate over time, after warm-up. step: times schedule_factor every schedule_steps steps. "
        "cosine: falls to schedule_factor of itself. plateau: times schedule_factor after each evaluation "
        "without improvement."),
    PH_INTEGER_KEY("warmup_steps", TRAIN(warmup_steps), "0", 0, MANY,
        "Steps over which the learning rate rises from 0, in a line."),
    PH_INTEGER_KEY("schedule_steps", TRAIN(schedule_steps), "0", 0, MANY,
        "step: steps between two cuts. cosine: the step at which it ends; 0: max_steps."),
    PH_NUMBER_KEY("schedule_factor", TRAIN(schedule_factor), "0.1", 0, 1, "See schedule."),
    PH_NUMBER_KEY("min_learning_rate", TRAIN(min_learning_rate), "1e-6", 0, 1e6,
        "Schedules do not go below it once warm."),
    PH_NUMBER_KEY("max_gradient_norm", TRAIN(max_gradient_norm), "0", 0, 1e30,
        "All gradients together, tables included, are scaled down to this Euclidean norm; 0: they are not."),
    PH_CHOICE_KEY("non_finite", TRAIN(non_finite), "stop", "stop|skip",
        "What happens when loss or gradients are not finite: training stops with a report, or the step is "
        "left out and counted. stop sees gradients where max_gradient_norm is set, else the next loss."),
    PH_NUMBER_KEY("report_seconds", TRAIN(report_seconds), "1", 0, 86400,
        "Between two progress reports and lines of metrics.jsonl.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_NUMBER_KEY("checkpoint_seconds", TRAIN(checkpoint_seconds), "300", 0, 1e9,
        "Between two checkpoints to resume from, which each epoch and the training end with, too; 0: none by "
        "time.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("checkpoint_steps", TRAIN(checkpoint_steps), "0", 0, MANY,
        "Also such a checkpoint every so many steps; 0: none by steps. With neither, the training's end and "
        "a signal leave one.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("checkpoints_kept", TRAIN(checkpoints_kept), "2", 1, 1000,
        "The latest checkpoints to resume from that are kept; older ones are removed.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_BOOL_KEY("progressive", TRAIN(progressive), "false",
        "Online learning: each batch is scored before it is learnt from, and the metrics of these scores are "
        "reported by windows of rows (event progressive of metrics.jsonl) and over all rows (summary.json). "
        "Needs data.shuffle: false, data.negative_rate: 1 and train.epochs: 1."),
    PH_INTEGER_KEY("progressive_rows", TRAIN(progressive_rows), "10000", 1, PH_PROGRESSIVE_MAX_ROWS,
        "Rows of one such window, whatever the batch size; the last one may be smaller."),
    PH_BOOL_KEY("report", TRAIN(report), "true",
        "Leaves report.html, a page to look at, when training ends or stops: docs/REPORTS.md.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_BOOL_KEY("tensorboard", TRAIN(tensorboard), "true",
        "Writes what metrics.jsonl gets into event files, too, which TensorBoard shows.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
};

const struct ph__option_table ph__train_options = {
    .section = "train",
    .help = "How long and how to train.",
    .options = train_options,
    .num_options = sizeof train_options / sizeof *train_options,
    .settings_size = sizeof(struct ph_train_settings),
};

static const struct ph__option group_options[] = {
    PH_TEXT_KEY("name", GROUP(name), NULL, "Of the group, for --set optimizer.groups[name].key=value."),
    PH_TEXT_KEY("pattern", GROUP(pattern), NULL,
        "Parameters whose name matches it belong to the group: * is any text, ? any character. phloem "
        "inspect lists the names."),
    PH_NUMBER_KEY("learning_rate_factor", GROUP(learning_rate_factor), "1", 0, 1e6,
        "Multiplies the learning rate; 0 freezes the parameters."),
    PH_NUMBER_KEY(
        "l2", GROUP(l2), "-1", -1, 1e6, "In place of net_l2 or embedding_l2; -1: as without the group."),
    PH_NUMBER_KEY("weight_decay", GROUP(weight_decay), "-1", -1, 1e6,
        "In place of optimizer.weight_decay; -1: as without the group."),
};

static const struct ph__option_table group_table = {
    .section = "groups",
    .help = "Parameters that are treated apart.",
    .options = group_options,
    .num_options = sizeof group_options / sizeof *group_options,
    .settings_size = sizeof(struct ph_optimizer_group),
};

static const struct ph__option optimizer_options[] = {
    PH_CHOICE_KEY("kind", OPTIMIZER(rule.kind), "adam", OPTIMIZER_WORDS,
        "The update rule. rowwise_adagrad keeps one sum a row of a table."),
    PH_NUMBER_KEY("learning_rate", OPTIMIZER(learning_rate), "1e-3", 0, 1e6, "Before train.schedule."),
    PH_NUMBER_KEY("beta1", OPTIMIZER(rule.beta1), "0.9", 0, 0.999999,
        "adam, adamw: decay of the mean gradient a step."),
    PH_NUMBER_KEY("beta2", OPTIMIZER(rule.beta2), "0.999", 0, 0.99999999,
        "adam, adamw: decay of the mean squared gradient a step."),
    PH_NUMBER_KEY("epsilon", OPTIMIZER(rule.epsilon), "1e-8", 0, 1,
        "adagrad, adam, adamw: added to the root in the denominator."),
    PH_NUMBER_KEY(
        "momentum", OPTIMIZER(rule.momentum), "0.9", 0, 0.999999, "momentum: decay of the velocity a step."),
    PH_BOOL_KEY(
        "nesterov", OPTIMIZER(rule.is_nesterov), "false", "momentum: looks ahead along the velocity."),
    PH_NUMBER_KEY("weight_decay", OPTIMIZER(rule.weight_decay), "0", 0, 1e6,
        "adamw: share of each weight that is taken away, times the learning rate."),
    PH_NUMBER_KEY("net_l2", OPTIMIZER(net_l2), "0", 0, 1e6,
        "lambda of lambda/2 |w|^2 on dense parameters, added to the gradient."),
    PH_CHOICE_KEY("embedding_kind", OPTIMIZER(embedding_kind), "same", "same|" OPTIMIZER_WORDS,
        "The update rule of tables."),
    PH_NUMBER_KEY("embedding_learning_rate_factor", OPTIMIZER(embedding_learning_rate_factor), "1", 0, 1e6,
        "Multiplies the learning rate of tables."),
    PH_NUMBER_KEY("embedding_l2", OPTIMIZER(embedding_l2), "0", 0, 1e6,
        "lambda of lambda/2 |e|^2 over the rows of embedding_scope, added to the gradient."),
    PH_CHOICE_KEY("embedding_scope", OPTIMIZER(embedding_scope), "touched", "touched|whole",
        "The rows of tables that a step updates and decays: those of the batch's ids, or all of them as the "
        "BARS protocol and dense gradients do."),
    PH_RECORDS_KEY("groups", struct ph__optimizer_section, groups, "", &group_table,
        "Parameters that are treated apart, by patterns of their names; later groups win."),
};

const struct ph__option_table ph__optimizer_options = {
    .section = "optimizer",
    .help = "How weights follow their gradients.",
    .options = optimizer_options,
    .num_options = sizeof optimizer_options / sizeof *optimizer_options,
    .settings_size = sizeof(struct ph__optimizer_section),
};
