/* Learns the cost nets: a graph of one net, AdamW with a learning rate that falls as a cosine, batches of
 * shuffled samples, padded to the most items of one. */
#include <math.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "phloem/op.h"
#include "train/cost/cost_nets.h"

#define LEARNING_RATE 1e-3
#define WEIGHT_DECAY .2      /* of 0, .1, .2, .5 the best on tables held out: a tenth less error than 0 */
#define LEAST_DEVIATION 1e-6 /* features that vary less are not scaled */
/* The sizes of topologies get this part of the deviation that other features have. Labels know a few sizes
 * only: at the full deviation a net tells them apart and is wrong by a tenth between them. */
#define SIZE_DEVIATION .1

enum { BATCH = 32 };

/* A sample is a set of parts, or a rank in an exchange. */
struct learner {
    struct ph__cost_nets *nets;
    enum ph__cost_net_kind kind;
    const struct ph__cost_training *training;
    size_t most_samples, num_items;
    ph_status (*add)(struct learner *learner, const void *labels, size_t index);
    struct ph__arena arena;
    struct ph__cost_graph graph;
    size_t count, num_train, num_features, width;
    ph_real *dense;       /* (count, width) items (T,F), then 1 for each item and 0 for padding (T) */
    ph_real *ms;          /* (count) */
    ph_real *units;       /* (count) milliseconds that errors are shares of */
    ph_real scale_ms;     /* that they are divided by */
    uint32_t *order;      /* (count) */
    ph_real *batch_dense; /* (BATCH, width), then times and weights (BATCH) each */
    ph_real *best;        /* all weights and biases of the store, one behind the other */
    double best_error;
};

/* ---- samples ---- */

/* Adds a sample of so many items, and returns their features, for the caller to fill. */
static ph_real *add_sample(struct learner *learner, size_t num_items, double ms, double unit)
{
    ph_real *items = learner->dense + learner->count * learner->width;
    for (size_t i = 0; i < num_items; i++)
        items[learner->num_items * learner->num_features + i] = 1;
    learner->units[learner->count] = (ph_real)unit;
    learner->ms[learner->count++] = (ph_real)ms;
    return items;
}

static ph_status add_set(struct learner *learner, const void *labels, size_t index)
{
    const struct ph__cost_label *label = (const struct ph__cost_label *)labels + index;
    if (!(label->ms > 0))
        return ph_fail(PH_ERROR_DATA, "label %zu: %g ms is not above 0", index, label->ms);
    ph_real *items = add_sample(learner, label->num_parts, label->ms, label->ms);
    for (size_t i = 0; i < label->num_parts; i++)
        ph__cost_part_features(learner->nets, &label->parts[i], items + i * PH_COST_PART_FEATURES);
    return PH_OK;
}

/* Gives what a rank's time is beyond its wait for the last start: below 0 where it did not need that one. */
static double beyond_wait(const struct ph__exchange_label *label, size_t rank)
{
    return label->ms[rank] - ph__cost_wait_ms(&label->topology, label->starts_ms, rank);
}

static ph_status add_exchange(struct learner *learner, const void *labels, size_t index)
{
    const struct ph__exchange_label *all = labels, *label = &all[index];
    const size_t row_bytes = PH_COST_RANK_FEATURES * sizeof(ph_real);
    double most = 0;
    if (label->way != all[0].way)
        return ph_fail(PH_ERROR_USAGE, "label %zu is of another way than label 0", index);
    ph_real *rows = ph__arena_alloc_array(&learner->arena, label->topology.world_size, row_bytes);
    if (rows == NULL)
        return PH_ERROR_MEMORY;
    ph__cost_rank_features(&label->topology, label->columns, label->starts_ms, rows);
    for (size_t rank = 0; rank < label->topology.world_size; rank++)
        most = fmax(most, fabs(beyond_wait(label, rank)));
    for (size_t rank = 0; rank < label->topology.world_size && most > 0; rank++)
        memcpy(add_sample(learner, 1, beyond_wait(label, rank), most), rows + rank * PH_COST_RANK_FEATURES,
            row_bytes);
    return PH_OK;
}

static ph_status add_samples(struct learner *learner, const void *labels)
{
    struct ph__arena *arena = &learner->arena;
    const size_t most = learner->most_samples;
    learner->num_features = ph__cost_net_features(learner->kind);
    learner->width = learner->num_items * (learner->num_features + 1);
    learner->dense = ph__arena_alloc_array(arena, most, learner->width * sizeof *learner->dense);
    learner->ms = ph__arena_alloc_array(arena, most, sizeof *learner->ms);
    learner->units = ph__arena_alloc_array(arena, most, sizeof *learner->units);
    learner->order = ph__arena_alloc_array(arena, most, sizeof *learner->order);
    learner->batch_dense =
        ph__arena_alloc_array(arena, BATCH, (learner->width + 2) * sizeof *learner->batch_dense);
    learner->best = ph__arena_alloc_array(
        arena, (size_t)ph_store_parameter_count(learner->nets->store), sizeof *learner->best);
    if (learner->dense == NULL || learner->ms == NULL || learner->units == NULL || learner->order == NULL ||
        learner->batch_dense == NULL || learner->best == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < learner->training->count; i++) {
        PH_TRY(learner->add(learner, labels, i));
        if (i + 1 + learner->training->num_validation == learner->training->count)
            learner->num_train = learner->count;
    }
    return PH_OK;
}

/* ---- scales ---- */

/* Returns a weight or bias of the net: those of all nets lie in the store in order. */
static ph_real *tensor_of(const struct learner *learner, size_t index)
{
    return ph_store_tensor(learner->nets->store, (size_t)learner->kind * 2 * PH_COST_LAYERS + index).data;
}

/* Makes the first layer bring a feature to mean 0 and deviation 1 over the items that are learnt from. */
static void scale_feature(const struct learner *learner, size_t feature, ph_real *weights, ph_real *bias)
{
    const size_t num_features = learner->num_features, end = learner->num_items * num_features;
    double count = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < learner->num_train * learner->num_items; i++) {
        const ph_real *row = learner->dense + i / learner->num_items * learner->width;
        const double x = (double)row[i % learner->num_items * num_features + feature];
        const double share = (double)row[end + i % learner->num_items];
        count += share;
        sum += share * x;
        squares += share * x * x;
    }
    const double mean = sum / count;
    double deviation = sqrt(fmax(0, squares / count - mean * mean));
    if (deviation < LEAST_DEVIATION)
        deviation = 1;
    if (learner->kind != PH_COST_COMPUTE && feature + PH_COST_SIZE_FEATURES >= num_features)
        deviation /= SIZE_DEVIATION;
    memset(weights + feature * num_features, 0, num_features * sizeof *weights);
    weights[feature * num_features + feature] = (ph_real)(1 / deviation);
    bias[feature] = (ph_real)(-mean / deviation);
}

/* Scales features, and brings the times' geometric mean to 1. */
static void scale_samples(struct learner *learner)
{
    ph_real *weights = tensor_of(learner, 0), *bias = tensor_of(learner, 1);
    double logs = 0;
    for (size_t feature = 0; feature < learner->num_features; feature++)
        scale_feature(learner, feature, weights, bias);
    for (size_t i = 0; i < learner->num_train; i++)
        logs += log((double)learner->units[i]);
    learner->scale_ms = (ph_real)exp(logs / (double)learner->num_train);
    for (size_t i = 0; i < learner->count; i++) {
        learner->ms[i] /= learner->scale_ms;
        learner->units[i] /= learner->scale_ms;
    }
    ph_store_touch(learner->nets->store);
}

/* Makes the last layer give milliseconds. */
static void unscale_result(const struct learner *learner)
{
    ph_real *weights = tensor_of(learner, 2 * PH_COST_LAYERS - 2);
    ph_real *bias = tensor_of(learner, 2 * PH_COST_LAYERS - 1);
    for (size_t i = 0; i < PH_COST_LAST_WIDTH; i++)
        weights[i] *= learner->scale_ms;
    *bias *= learner->scale_ms;
    ph_store_touch(learner->nets->store);
}

/* ---- the graph ---- */

/* Adds the net over items, its loss, and the update of all parameters but the first two, which scale. */
static void build(struct ph_builder *builder, const struct learner *learner)
{
    enum { NUM_LEARNT = 2 * (PH_COST_LAYERS - 1) };
    const struct ph_optimizer adam = {
        .rule = {.kind = PH_ADAMW, .beta1 = .9, .beta2 = .999, .epsilon = 1e-8, .weight_decay = WEIGHT_DECAY},
        .learning_rate_factor = 1};
    const size_t num_items = learner->num_items, end = num_items * learner->num_features;
    ph_value learnt[NUM_LEARNT], gradients[NUM_LEARNT];
    const ph_value x = ph_input_dense(builder, learner->width);
    const ph_value items =
        ph_reshape(builder, ph_slice(builder, x, 1, 0, end), 2, (size_t[]){num_items, learner->num_features});
    const ph_value shares =
        ph_reshape(builder, ph_slice(builder, x, 1, end, num_items), 2, (size_t[]){1, num_items});
    ph_value y = ph__cost_net_layers(builder, learner->kind, 0, PH_COST_ITEM_LAYERS, items); /* (B,T,n) */
    y = ph_reshape(
        builder, ph_batch_product(builder, shares, y, false, false), 1, (size_t[]){PH_COST_DESCRIPTION});
    y = ph__cost_net_layers(builder, learner->kind, PH_COST_ITEM_LAYERS, PH_COST_LAYERS, y); /* (B,1) */
    const ph_value loss =
        ph_squared_error(builder, y, ph_input_labels(builder, 1), ph_input_weights(builder));
    ph_output(builder, "y", y);
    ph_builder_begin_entry(builder, "update");
    for (size_t i = 0; i < NUM_LEARNT; i++)
        learnt[i] = ph_builder_parameter(builder, i + 2);
    ph_backward(builder, loss, NUM_LEARNT, learnt, gradients);
    for (size_t i = 0; i < NUM_LEARNT; i++)
        ph_update(builder, learnt[i], gradients[i], &adam, ph_input_scalar(builder, "rate"),
            ph_input_scalar(builder, "step"), 0);
}

/* ---- epochs ---- */

/* Binds the samples order[first .. first + count), and runs forward. */
static ph_status run_forward(struct learner *learner, size_t first, size_t count)
{
    const size_t width = learner->width;
    ph_real *dense = learner->batch_dense, *ms = dense + BATCH * width, *weights = ms + BATCH;
    for (size_t i = 0; i < count; i++) {
        const size_t index = learner->order[first + i];
        memcpy(dense + i * width, learner->dense + index * width, width * sizeof *dense);
        ms[i] = learner->ms[index];
        weights[i] = 1 / (learner->units[index] * learner->units[index]);
    }
    const struct ph_batch batch = {.num_samples = count,
        .num_dense = width,
        .num_tasks = 1,
        .dense = dense,
        .labels = ms,
        .weights = weights};
    PH_TRY(ph_workspace_bind(learner->graph.workspace, &batch, 0, 0));
    return ph_workspace_run(learner->graph.workspace, "forward");
}

/* Gives the mean absolute error on the samples of validation, in their units; NaN without. */
static ph_status validate(struct learner *learner, double *mape_out)
{
    double sum = 0;
    for (size_t first = learner->num_train; first < learner->count; first += BATCH) {
        const size_t count = ph__min(BATCH, learner->count - first);
        const ph_real *y;
        struct ph_shape shape;
        PH_TRY(run_forward(learner, first, count));
        PH_TRY(ph_workspace_output(learner->graph.workspace, "y", &y, &shape));
        for (size_t i = 0; i < count; i++)
            sum += fabs((double)(y[i] - learner->ms[first + i])) / (double)learner->units[first + i];
    }
    *mape_out = sum / (double)(learner->count - learner->num_train);
    return PH_OK;
}

static ph_status run_epoch(struct learner *learner, struct ph__rng_sequence *sequence, size_t epoch)
{
    struct ph_workspace *workspace = learner->graph.workspace;
    const size_t count = learner->num_train, batches = ph__divide_up(count, BATCH);
    ph__rng_shuffle(sequence, learner->order, count);
    for (size_t batch = 0; batch < batches; batch++) {
        const size_t step = epoch * batches + batch;
        const double place = (double)step / (double)(learner->training->num_epochs * batches);
        PH_TRY(run_forward(learner, batch * BATCH, ph__min(BATCH, count - batch * BATCH)));
        PH_TRY(ph_workspace_set_scalar(workspace, "rate", LEARNING_RATE * .5 * (1 + cos(acos(-1) * place))));
        PH_TRY(ph_workspace_set_scalar(workspace, "step", (double)(step + 1)));
        PH_TRY(ph_workspace_run(workspace, "update"));
    }
    return PH_OK;
}

/* Copies all that the store has to `best`, or back. */
static void copy_weights(const struct learner *learner, bool is_back)
{
    const struct ph_store *store = learner->nets->store;
    ph_real *at = learner->best;
    for (size_t i = 0; i < ph_store_num_tensors(store); i++) {
        const struct ph_tensor tensor = ph_store_tensor(store, i);
        const size_t count = ph_shape_elements(&tensor.shape);
        memcpy(is_back ? tensor.data : at, is_back ? at : tensor.data, count * sizeof *at);
        at += count;
    }
}

static ph_status run_epochs(struct learner *learner)
{
    struct ph__rng_sequence sequence = {{learner->nets->seed, 0, ph__hash_name("train.cost")}, 0};
    for (size_t i = 0; i < learner->count; i++)
        learner->order[i] = (uint32_t)i;
    learner->best_error = NAN;
    for (size_t epoch = 0; epoch < learner->training->num_epochs; epoch++) {
        double error;
        PH_TRY(run_epoch(learner, &sequence, epoch));
        PH_TRY(validate(learner, &error));
        if (error >= learner->best_error)
            continue;
        copy_weights(learner, false);
        learner->best_error = error;
    }
    copy_weights(learner, true);
    return PH_OK;
}

/* ---- learning ---- */

static ph_status learn_samples(struct learner *learner, const void *labels)
{
    struct ph_builder *builder;
    const struct ph__cost_training *training = learner->training;
    if (learner->nets->is_learnt[learner->kind])
        return ph_fail(PH_ERROR_USAGE, "the cost net has learnt already: create new ones");
    PH_TRY(add_samples(learner, labels));
    if (learner->num_train == 0 || training->num_epochs == 0)
        return ph_fail(PH_ERROR_USAGE, "%zu labels less %zu of validation, %zu epochs: nothing to learn",
            training->count, training->num_validation, training->num_epochs);
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    build(builder, learner);
    PH_TRY(ph__cost_graph_open(&learner->graph, learner->nets, builder, BATCH));
    scale_samples(learner);
    PH_TRY(run_epochs(learner));
    unscale_result(learner);
    learner->nets->is_learnt[learner->kind] = true;
    return PH_OK;
}

static ph_status learn(struct learner *learner, const void *labels, double *mape_out)
{
    const ph_status status = learn_samples(learner, labels);
    if (status == PH_OK)
        *mape_out = learner->best_error;
    ph__cost_graph_close(&learner->graph);
    ph__arena_fini(&learner->arena);
    return status;
}

ph_status ph__cost_learn_compute(struct ph__cost_nets *nets, const struct ph__cost_label *labels,
    const struct ph__cost_training *training, double *mape_out)
{
    struct learner learner = {.nets = nets,
        .kind = PH_COST_COMPUTE,
        .training = training,
        .most_samples = training->count,
        .num_items = 1,
        .add = add_set};
    for (size_t i = 0; i < training->count; i++)
        learner.num_items = ph__max(learner.num_items, labels[i].num_parts);
    return learn(&learner, labels, mape_out);
}

ph_status ph__cost_learn_exchange(struct ph__cost_nets *nets, const struct ph__exchange_label *labels,
    const struct ph__cost_training *training, double *mape_out)
{
    struct learner learner = {
        .nets = nets, .kind = PH_COST_FORWARD, .training = training, .num_items = 1, .add = add_exchange};
    if (training->count > 0 && labels[0].way == PH_EXCHANGE_BACKWARD)
        learner.kind = PH_COST_BACKWARD;
    for (size_t i = 0; i < training->count; i++)
        learner.most_samples += labels[i].topology.world_size;
    return learn(&learner, labels, mape_out);
}
