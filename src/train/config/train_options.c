/* The keys under "train" and "optimizer" of a config. */
#include "train/config/train_options.h"

#include "train/measure/progressive.h"

#define TRAIN(member) struct ph_train_settings, member
#define OPTIMIZER(member) struct ph__optimizer_section, settings.member
#define GROUP(member) struct ph_optimizer_group, member
#define OPTIMIZER_WORDS "sgd|momentum|adagrad|rowwise_adagrad|adam|adamw"
#define MANY 1e15

static const struct ph__option train_options[] = {
    PH_INTEGER_KEY("epochs", TRAIN(epochs), "1", 1, MANY, "Maximum number of passes over data.train.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_INTEGER_KEY(
        "batch_size", TRAIN(batch_size), "2048", 1, 16777216, "Samples of a step, all ranks together."),
    PH_INTEGER_KEY("accumulation_steps", TRAIN(accumulation_steps), "1", 1, 16777216,
        "Number of micro-batches that a step's batch is cut into, at most batch_size. They run one after "
        "another, their gradients are added up, and the weights are updated once: less memory and, but for "
        "rounding, the same result. Only batch norm differs: its statistics are of a micro-batch."),
    PH_INTEGER_KEY("max_steps", TRAIN(max_steps), "0", 0, MANY,
        "Maximum number of steps. 0: no limit. A resumed training must keep it where schedule cosine ends "
        "with it (schedule_steps: 0).",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("precision", TRAIN(precision), "fp32", "fp32|bf16",
        "Arithmetic of linear layers. fp32: 32 bits. bf16: multiplies numbers of 16 bits and sums in fp32, "
        "forward and backward; weights, their gradients and optimizers stay fp32."),
    PH_PATH_KEY("recipes", TRAIN(recipes), "",
        "File that names products that are computed in fewer bits, forward and for the input's gradient "
        "apart, as phloem precision writes it. Gradients of weights stay fp32. Empty: no product is.",
        .traits = PH_KEY_IS_PLACE),
    PH_INTEGER_KEY("probe_steps", TRAIN(probe_steps), "0", 0, MANY,
        "Steps between two looks at the rows that enter products and at weights, from whose distributions "
        "phloem precision predicts what fewer bits lose; the last one is in probe.safetensors. A look "
        "each hundred steps costs less than 1 % of the training. 0: none.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_CHOICE_KEY("row_format", TRAIN(row_format), "fp32", "fp32|fp16|bf16|bf16_split",
        "Number format of the rows of embedding tables; arithmetic and optimizer slots stay fp32. fp32: 32 "
        "bits. fp16, bf16: half the memory; updates are rounded at random, without bias; values beyond 65504 "
        "become infinite in fp16. bf16_split: lookups read bf16; the other 16 bits are kept apart, so that "
        "updates are those of fp32."),
    PH_BOOL_KEY("deterministic", TRAIN(deterministic), "true",
        "true: the same bits for any number of threads. false: the matrix library threads its products "
        "itself, which requires team: openmp."),
    PH_INTEGER_KEY("evaluate_steps", TRAIN(evaluate_steps), "0", 0, MANY,
        "Steps between evaluations on data.valid, besides the one after each epoch. 0: only after epochs."),
    PH_CHOICE_KEY("selection", TRAIN(selection), "auc", "auc|logloss",
        "Metric on data.valid that selects the best model, which is kept. auc: the highest. logloss: the "
        "lowest."),
    PH_INTEGER_KEY("patience", TRAIN(patience), "2", 0, 1000000,
        "Evaluations in a row without improvement after which training stops. 0: never. An evaluation whose "
        "metric is undefined, such as AUC with labels of one class, does not count; where all are, the last "
        "model is kept. A resumed training may only raise it, or set it to 0.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("schedule", TRAIN(schedule), "plateau", "constant|step|cosine|plateau",
        "Learning rate over time, after warm-up. constant: stays. step: multiplied by schedule_factor every "
        "schedule_steps steps. cosine: falls along a half cosine to schedule_factor times itself. plateau: "
        "multiplied by schedule_factor after each evaluation without improvement."),
    PH_INTEGER_KEY("warmup_steps", TRAIN(warmup_steps), "0", 0, MANY,
        "Steps over which the learning rate rises linearly from 0. 0: no warm-up."),
    PH_INTEGER_KEY("schedule_steps", TRAIN(schedule_steps), "0", 0, MANY,
        "schedule step: steps between two cuts. schedule cosine: step at which it ends; 0: max_steps."),
    PH_NUMBER_KEY("schedule_factor", TRAIN(schedule_factor), "0.1", 0, 1,
        "Factor of the learning rate: at each cut of the schedules step and plateau, at the end of cosine."),
    PH_NUMBER_KEY("min_learning_rate", TRAIN(min_learning_rate), "1e-6", 0, 1e6,
        "Least learning rate that a schedule reaches after warm-up."),
    PH_NUMBER_KEY("max_gradient_norm", TRAIN(max_gradient_norm), "0", 0, 1e30,
        "Greatest Euclidean norm of all gradients together, tables included; greater ones are scaled down to "
        "it. 0: no clipping."),
    PH_CHOICE_KEY("non_finite", TRAIN(non_finite), "stop", "stop|skip",
        "Reaction to a loss or gradients that are not finite. stop: training ends with an error; gradients "
        "are checked only where max_gradient_norm is set, else the next loss shows them. skip: the step is "
        "left out and counted."),
    PH_NUMBER_KEY("report_seconds", TRAIN(report_seconds), "1", 0, 86400,
        "Seconds between two progress reports, each also a line of metrics.jsonl. 0: a report each step.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_NUMBER_KEY("checkpoint_seconds", TRAIN(checkpoint_seconds), "300", 0, 1e9,
        "Seconds between two checkpoints to resume from. 0: none by time. Unless this and checkpoint_steps "
        "are 0, each epoch ends with one, too.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("checkpoint_steps", TRAIN(checkpoint_steps), "0", 0, MANY,
        "Steps between two checkpoints to resume from, besides checkpoint_seconds. 0: none by steps. Where "
        "both are 0, only the end of the training and a signal leave one.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("checkpoints_kept", TRAIN(checkpoints_kept), "2", 1, 1000,
        "Number of latest checkpoints to resume from that are kept; older ones are removed.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_BOOL_KEY("progressive", TRAIN(progressive), "false",
        "true: online learning. Each batch is scored before the model learns from it; metrics of these "
        "scores are reported for windows of rows (event progressive of metrics.jsonl) and for all rows "
        "(summary.json). Requires data.shuffle: false, data.negative_rate: 1 and train.epochs: 1."),
    PH_INTEGER_KEY("progressive_rows", TRAIN(progressive_rows), "10000", 1, PH_PROGRESSIVE_MAX_ROWS,
        "Rows of a window of train.progressive, whatever the batch size; the last window may be smaller."),
    PH_CHOICE_KEY("distill", TRAIN(distill), "none", "none|single|head|adapter",
        "Way to learn from a teacher, whose probabilities are a column of kind teacher. none: not at all. "
        "single: the model's own output learns them, too. head: an auxiliary head beside the last layer "
        "learns them, so that the teacher's bias stays out of what is served. adapter: as head; another head "
        "learns the probabilities as a small adapter corrects them by the labels. The saved model has the "
        "size and the operations of one without a teacher."),
    PH_NUMBER_KEY("distill_weight", TRAIN(distill_weight), "1", 0, 1e6,
        "Weight of the loss by the teacher's probabilities, beside that by the labels."),
    PH_NUMBER_KEY("distill_label_scale", TRAIN(distill_label_scale), "1", 1e-6, 1e6,
        "Factor of the teacher's probabilities for distill head and adapter; products above 1 become 1."),
    PH_NUMBER_KEY("distill_gradient_scale", TRAIN(distill_gradient_scale), "1", 0, 1e6,
        "Factor of the auxiliary heads' gradients where they enter the model."),
    PH_INTEGER_KEY("distill_units", TRAIN(distill_units), "64", 0, 16384,
        "Width of the hidden layer of an auxiliary head. 0: none, the head is linear."),
    PH_BOOL_KEY("report", TRAIN(report), "true",
        "true: writes report.html, a page about the run, when training ends or stops (docs/REPORTS.md).",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_BOOL_KEY("tensorboard", TRAIN(tensorboard), "true",
        "true: also writes the content of metrics.jsonl as event files for TensorBoard.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
};

const struct ph__option_table ph__train_options = {
    .section = "train",
    .help = "Length and course of a training.",
    .options = train_options,
    .num_options = sizeof train_options / sizeof *train_options,
    .settings_size = sizeof(struct ph_train_settings),
};

static const struct ph__option group_options[] = {
    PH_TEXT_KEY(
        "name", GROUP(name), NULL, "Name of the group, as in --set optimizer.groups[name].key=value."),
    PH_TEXT_KEY("pattern", GROUP(pattern), NULL,
        "Pattern of the names of the group's parameters: * is any text, ? any character. phloem inspect "
        "lists the names."),
    PH_NUMBER_KEY("learning_rate_factor", GROUP(learning_rate_factor), "1", 0, 1e6,
        "Factor of the learning rate; 0 freezes the parameters."),
    PH_NUMBER_KEY("l2", GROUP(l2), "-1", -1, 1e6,
        "L2 coefficient that replaces net_l2 or embedding_l2; -1: as without the group."),
    PH_NUMBER_KEY("weight_decay", GROUP(weight_decay), "-1", -1, 1e6,
        "Weight decay that replaces optimizer.weight_decay; -1: as without the group."),
};

static const struct ph__option_table group_table = {
    .section = "groups",
    .help = "A group of parameters with settings of its own.",
    .options = group_options,
    .num_options = sizeof group_options / sizeof *group_options,
    .settings_size = sizeof(struct ph_optimizer_group),
};

static const struct ph__option optimizer_options[] = {
    PH_CHOICE_KEY("kind", OPTIMIZER(rule.kind), "adam", OPTIMIZER_WORDS,
        "Update rule. sgd: gradient descent. momentum: sgd with a velocity. adagrad: steps divided by the "
        "root of the sum of squared gradients. rowwise_adagrad: the same with one sum for each row of a "
        "table; adagrad for other parameters. adam: means of gradients and of their squares. adamw: adam "
        "with decoupled weight decay."),
    PH_NUMBER_KEY("learning_rate", OPTIMIZER(learning_rate), "1e-3", 0, 1e6,
        "Learning rate, before train.schedule changes it."),
    PH_NUMBER_KEY("beta1", OPTIMIZER(rule.beta1), "0.9", 0, 0.999999,
        "adam, adamw: decay of the mean gradient per step."),
    PH_NUMBER_KEY("beta2", OPTIMIZER(rule.beta2), "0.999", 0, 0.99999999,
        "adam, adamw: decay of the mean squared gradient per step."),
    PH_NUMBER_KEY("epsilon", OPTIMIZER(rule.epsilon), "1e-8", 0, 1,
        "adagrad, rowwise_adagrad, adam, adamw: number that is added to the root in the denominator."),
    PH_NUMBER_KEY("momentum", OPTIMIZER(rule.momentum), "0.9", 0, 0.999999,
        "momentum: decay of the velocity per step."),
    PH_BOOL_KEY("nesterov", OPTIMIZER(rule.is_nesterov), "false",
        "momentum: Nesterov's variant, which looks ahead along the velocity."),
    PH_NUMBER_KEY("weight_decay", OPTIMIZER(rule.weight_decay), "0", 0, 1e6,
        "adamw: share of each weight that a step takes away, times the learning rate."),
    PH_NUMBER_KEY("net_l2", OPTIMIZER(net_l2), "0", 0, 1e6,
        "L2 coefficient of dense parameters: lambda of lambda/2 |w|^2, added to the gradient."),
    PH_CHOICE_KEY("embedding_kind", OPTIMIZER(embedding_kind), "same", "same|" OPTIMIZER_WORDS,
        "Update rule of embedding tables. same: that of optimizer.kind; the others are explained there."),
    PH_NUMBER_KEY("embedding_learning_rate_factor", OPTIMIZER(embedding_learning_rate_factor), "1", 0, 1e6,
        "Factor of the learning rate of embedding tables."),
    PH_NUMBER_KEY("embedding_l2", OPTIMIZER(embedding_l2), "0", 0, 1e6,
        "L2 coefficient of embedding tables: lambda of lambda/2 |e|^2 over the rows of embedding_scope, "
        "added to the gradient."),
    PH_CHOICE_KEY("embedding_scope", OPTIMIZER(embedding_scope), "touched", "touched|whole",
        "Rows of tables that a step updates and decays. touched: those of the batch's ids. whole: all rows, "
        "as dense gradients and the BARS protocol do."),
    PH_RECORDS_KEY("groups", struct ph__optimizer_section, groups, "", &group_table,
        "Groups of parameters with settings of their own, by patterns of names; later groups win."),
};

const struct ph__option_table ph__optimizer_options = {
    .section = "optimizer",
    .help = "Rules that update weights by their gradients.",
    .options = optimizer_options,
    .num_options = sizeof optimizer_options / sizeof *optimizer_options,
    .settings_size = sizeof(struct ph__optimizer_section),
};
