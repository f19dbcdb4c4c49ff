/* Learns the cost nets: a graph of one net, Adam with a learning rate that falls as a cosine, batches of
 * shuffled labels, padded to the largest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/sizes.h"
#include "phloem/op.h"
#include "train/cost/cost_nets.h"

#define LEARNING_RATE 1e-3
#define LEAST_DEVIATION 1e-6 /* features that vary less are not scaled */
/* The sizes of topologies get this part of the deviation that other features have. Labels know a few sizes
 * only: at the full deviation a net tells them apart and is wrong by a tenth between them. */
#define SIZE_DEVIATION .1

enum { BATCH = 512 };

/* Labels as the graph reads them: of each sample its items (T,F), their shares (T), and scale / ms for each
 * result; 0 where there is none. */
struct samples {
    struct ph__arena arena;
    size_t count, num_items, num_features, num_results, width;
    size_t first_size; /* first feature that is a size of the topology */
    ph_real *dense;    /* (count, width) */
    ph_real *known;    /* (count, num_results): 1 or 0 */
    double mean[PH_COST_PART_FEATURES], deviation[PH_COST_PART_FEATURES];
    double scale_ms;
};

struct learner {
    struct ph__cost_nets *nets;
    enum ph__cost_net_kind kind;
    const struct ph__cost_training *training;
    struct samples samples;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    uint32_t *order;        /* (count) */
    ph_real *dense, *known; /* of a batch */
    ph_real *best;          /* all weights and biases, one behind the other */
    double best_error;
};

/* ---- samples ---- */

static ph_status samples_init(
    struct samples *samples, const struct ph__cost_net *net, size_t count, size_t num_items)
{
    samples->count = count;
    samples->num_items = num_items;
    samples->num_features = net->num_features;
    samples->first_size = net->num_features - (net->is_of_ranks ? PH_COST_SIZE_FEATURES : 0);
    samples->num_results = net->is_of_ranks ? num_items : 1;
    samples->width = num_items * (net->num_features + 1) + samples->num_results;
    samples->dense = ph__arena_alloc_array(&samples->arena, count, samples->width * sizeof *samples->dense);
    samples->known =
        ph__arena_alloc_array(&samples->arena, count, samples->num_results * sizeof *samples->known);
    return samples->dense != NULL && samples->known != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_real *items_of(const struct samples *samples, size_t index)
{
    return samples->dense + index * samples->width;
}
static ph_real *shares_of(const struct samples *samples, size_t index)
{
    return items_of(samples, index) + samples->num_items * samples->num_features;
}
static ph_real *inverses_of(const struct samples *samples, size_t index)
{
    return shares_of(samples, index) + samples->num_items;
}

static void set_result(struct samples *samples, size_t index, size_t result, double ms)
{
    inverses_of(samples, index)[result] = (ph_real)(1 / ms);
    samples->known[index * samples->num_results + result] = 1;
}

/* Brings each feature to mean 0 and deviation 1, over the items of all samples. */
static void scale_feature(struct samples *samples, size_t feature)
{
    double count = 0, sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < samples->count * samples->num_items; i++) {
            const size_t index = i / samples->num_items, item = i % samples->num_items;
            ph_real *x = items_of(samples, index) + item * samples->num_features + feature;
            if (shares_of(samples, index)[item] == 0)
                continue;
            if (pass == 1) {
                *x = (ph_real)(((double)*x - samples->mean[feature]) / samples->deviation[feature]);
                continue;
            }
            count += 1;
            sum += (double)*x;
            squares += (double)*x * (double)*x;
        }
        if (pass == 1)
            break;
        samples->mean[feature] = sum / count;
        samples->deviation[feature] = sqrt(fmax(0, squares / count - sum / count * (sum / count)));
        if (samples->deviation[feature] < LEAST_DEVIATION)
            samples->deviation[feature] = 1;
        if (feature >= samples->first_size)
            samples->deviation[feature] /= SIZE_DEVIATION;
    }
}

/* Scales results by their geometric mean. */
static void scale_results(struct samples *samples)
{
    double logs = 0, count = 0;
    for (size_t i = 0; i < samples->count * samples->num_results; i++)
        if (samples->known[i] > 0) {
            logs -= log((double)inverses_of(samples, i / samples->num_results)[i % samples->num_results]);
            count += 1;
        }
    samples->scale_ms = count > 0 ? exp(logs / count) : 1;
    for (size_t i = 0; i < samples->count * samples->num_results; i++)
        inverses_of(samples, i / samples->num_results)[i % samples->num_results] *=
            (ph_real)samples->scale_ms;
}

/* ---- the graph ---- */

static void build(struct ph_builder *builder, const struct samples *samples, const struct ph__cost_net *net)
{
    const struct ph_optimizer adam = {
        .rule = {.kind = PH_ADAM, .beta1 = .9, .beta2 = .999, .epsilon = 1e-8}, .learning_rate_factor = 1};
    const size_t num_items = samples->num_items, begin = num_items * samples->num_features;
    ph_value wrt[2 * PH_COST_MOST_LAYERS], gradients[2 * PH_COST_MOST_LAYERS];
    const ph_value x = ph_input_dense(builder, samples->width);
    const ph_value known = ph_input_labels(builder, samples->num_results);
    const ph_value items = ph_reshape(
        builder, ph_slice(builder, x, 1, 0, begin), 2, (size_t[]){num_items, samples->num_features});
    const ph_value shares =
        ph_reshape(builder, ph_slice(builder, x, 1, begin, num_items), 2, (size_t[]){1, num_items});
    const ph_value inverses = ph_slice(builder, x, 1, begin + num_items, samples->num_results);
    const ph_value ratios =
        ph_multiply(builder, ph__cost_net_build(builder, net, items, shares, known, num_items), inverses);
    const ph_value loss = ph_squared_error(builder, ratios, known, 0);
    const size_t num_wrt = 2 * net->num_layers;
    ph_output(builder, "ratios", ratios);
    ph_builder_begin_entry(builder, "update");
    if (ph_builder_num_parameters(builder) != num_wrt)
        return;
    for (size_t i = 0; i < num_wrt; i++)
        wrt[i] = ph_builder_parameter(builder, i);
    ph_backward(builder, loss, num_wrt, wrt, gradients);
    for (size_t i = 0; i < num_wrt; i++)
        ph_update(builder, wrt[i], gradients[i], &adam, ph_input_scalar(builder, "rate"),
            ph_input_scalar(builder, "step"), 0);
}

static ph_status prepare(struct learner *learner)
{
    struct ph__cost_nets *nets = learner->nets;
    struct samples *samples = &learner->samples;
    struct ph_builder *builder = NULL;
    PH_TRY(ph_builder_create(PH_TRAINING, &builder));
    build(builder, samples, &nets->nets[learner->kind]);
    const ph_status status = ph_builder_finish(builder, &learner->program);
    ph_builder_destroy(builder);
    PH_TRY(status);
    PH_TRY(ph_executor_create(learner->program, nets->store, nets->state, nets->backend, &learner->executor));
    PH_TRY(ph_workspace_create(learner->executor, BATCH, 0, &learner->workspace));
    learner->order = ph__arena_alloc_array(&samples->arena, samples->count, sizeof *learner->order);
    learner->dense = ph__arena_alloc_array(&samples->arena, BATCH, samples->width * sizeof *learner->dense);
    learner->known =
        ph__arena_alloc_array(&samples->arena, BATCH, samples->num_results * sizeof *learner->known);
    return learner->order != NULL && learner->dense != NULL && learner->known != NULL ? PH_OK
                                                                                      : PH_ERROR_MEMORY;
}

/* Binds the samples order[first .. first + count), and runs forward. */
static ph_status run_forward(struct learner *learner, size_t first, size_t count, uint64_t step)
{
    const struct samples *samples = &learner->samples;
    const size_t width = samples->width, num_results = samples->num_results;
    for (size_t i = 0; i < count; i++) {
        const size_t index = learner->order[first + i];
        memcpy(learner->dense + i * width, items_of(samples, index), width * sizeof *learner->dense);
        memcpy(learner->known + i * num_results, samples->known + index * num_results,
            num_results * sizeof *learner->known);
    }
    const struct ph_batch batch = {.num_samples = count,
        .num_dense = width,
        .num_tasks = num_results,
        .dense = learner->dense,
        .labels = learner->known};
    PH_TRY(ph_workspace_bind(learner->workspace, &batch, learner->nets->seed, step));
    return ph_workspace_run(learner->workspace, "forward");
}

/* ---- weights ---- */

/* Visits the net's weights and biases; `best` moves along. */
static ph_status copy_weights(struct learner *learner, bool is_back)
{
    const struct ph__cost_net *net = &learner->nets->nets[learner->kind];
    ph_real *at = learner->best;
    for (size_t i = 0; i < 2 * net->num_layers; i++) {
        char name[64];
        struct ph_tensor tensor;
        snprintf(name, sizeof name, "%s.%s", net->layers[i / 2].name, i % 2 == 0 ? "weight" : "bias");
        PH_TRY(ph_store_find(learner->nets->store, name, &tensor));
        const size_t count = ph_shape_elements(&tensor.shape);
        memcpy(is_back ? tensor.data : at, is_back ? at : tensor.data, count * sizeof *at);
        at += count;
    }
    return PH_OK;
}

/* Makes a layer read the first features as they are, not scaled. */
static void fold_features(
    const struct samples *samples, const struct ph__cost_layer *layer, ph_real *weight, ph_real *bias)
{
    for (size_t out = 0; out < layer->out; out++)
        for (size_t i = 0; i < samples->num_features; i++) {
            ph_real *w = &weight[out * layer->in + i];
            *w = (ph_real)((double)*w / samples->deviation[i]);
            bias[out] -= (ph_real)((double)*w * samples->mean[i]);
        }
}

/* Folds both scales into the weights kept as the best. */
static void fold(struct learner *learner)
{
    const struct ph__cost_net *net = &learner->nets->nets[learner->kind];
    ph_real *at = learner->best;
    for (size_t i = 0; i < net->num_layers; i++) {
        const struct ph__cost_layer *layer = &net->layers[i];
        const size_t num_weights = layer->in * layer->out;
        if (i == 0 || (net->is_of_ranks && i == PH_COST_ITEM_LAYERS))
            fold_features(&learner->samples, layer, at, at + num_weights);
        for (size_t j = 0; j < num_weights + layer->out && i + 1 == net->num_layers; j++)
            at[j] = (ph_real)((double)at[j] * learner->samples.scale_ms);
        at += num_weights + layer->out;
    }
}

/* ---- epochs ---- */

/* Gives the mean absolute error of ratios on the samples from `first` on. */
static ph_status validate(struct learner *learner, size_t first, double *mape_out)
{
    const struct samples *samples = &learner->samples;
    double sum = 0, total = 0;
    for (; first < samples->count; first += BATCH) {
        const size_t count = ph__min(BATCH, samples->count - first);
        const ph_real *ratios;
        struct ph_shape shape;
        PH_TRY(run_forward(learner, first, count, 0));
        PH_TRY(ph_workspace_output(learner->workspace, "ratios", &ratios, &shape));
        for (size_t i = 0; i < count * samples->num_results; i++) {
            sum += fabs((double)ratios[i] - (double)learner->known[i]);
            total += (double)learner->known[i];
        }
    }
    *mape_out = sum / total; /* NaN without samples */
    return PH_OK;
}

static ph_status run_epoch(struct learner *learner, struct ph__rng_sequence *sequence, size_t epoch)
{
    const struct ph__cost_training *training = learner->training;
    const size_t count = training->count - training->num_validation, batches = ph__divide_up(count, BATCH);
    ph__rng_shuffle(sequence, learner->order, count);
    for (size_t batch = 0; batch < batches; batch++) {
        const size_t step = epoch * batches + batch;
        const double place = (double)step / (double)(training->num_epochs * batches);
        PH_TRY(run_forward(learner, batch * BATCH, ph__min(BATCH, count - batch * BATCH), step));
        PH_TRY(ph_workspace_set_scalar(
            learner->workspace, "rate", LEARNING_RATE * .5 * (1 + cos(acos(-1) * place))));
        PH_TRY(ph_workspace_set_scalar(learner->workspace, "step", (double)(step + 1)));
        PH_TRY(ph_workspace_run(learner->workspace, "update"));
    }
    return PH_OK;
}

static ph_status run_epochs(struct learner *learner)
{
    const struct ph__cost_training *training = learner->training;
    struct ph__rng_sequence sequence = {{learner->nets->seed, 0, ph__hash_name("train.cost")}, 0};
    for (size_t i = 0; i < training->count; i++)
        learner->order[i] = (uint32_t)i;
    learner->best_error = NAN;
    for (size_t epoch = 0; epoch < training->num_epochs; epoch++) {
        double error;
        PH_TRY(run_epoch(learner, &sequence, epoch));
        PH_TRY(validate(learner, training->count - training->num_validation, &error));
        if (error >= learner->best_error)
            continue;
        PH_TRY(copy_weights(learner, false));
        learner->best_error = error;
    }
    return PH_OK;
}

static ph_status learn_samples(struct learner *learner)
{
    const struct ph__cost_net *net = &learner->nets->nets[learner->kind];
    size_t num_weights = 0;
    for (size_t i = 0; i < net->num_layers; i++)
        num_weights += net->layers[i].out * (net->layers[i].in + 1);
    learner->best = ph__arena_alloc_array(&learner->samples.arena, num_weights, sizeof *learner->best);
    if (learner->best == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < net->num_features; i++)
        scale_feature(&learner->samples, i);
    scale_results(&learner->samples);
    PH_TRY(prepare(learner));
    PH_TRY(run_epochs(learner));
    fold(learner);
    PH_TRY(copy_weights(learner, true));
    ph_store_touch(learner->nets->store);
    learner->nets->nets[learner->kind].is_learnt = true;
    return ph__cost_net_renew(learner->nets, learner->kind);
}

static ph_status learner_fini(struct learner *learner, ph_status status)
{
    ph_workspace_destroy(learner->workspace);
    ph_executor_destroy(learner->executor);
    ph_program_destroy(learner->program);
    ph__arena_fini(&learner->samples.arena);
    return status;
}

static ph_status check(
    const struct ph__cost_nets *nets, enum ph__cost_net_kind kind, const struct ph__cost_training *training)
{
    if (training->count <= training->num_validation || training->num_epochs == 0)
        return ph_fail(PH_ERROR_USAGE, "%zu labels less %zu of validation, %zu epochs: nothing to learn",
            training->count, training->num_validation, training->num_epochs);
    return nets->nets[kind].is_learnt
               ? ph_fail(PH_ERROR_USAGE, "the cost net has learnt already: create new ones")
               : PH_OK;
}

/* ---- labels ---- */

static ph_status take_sets(struct learner *learner, const struct ph__cost_label *labels)
{
    struct samples *samples = &learner->samples;
    size_t most = 1;
    for (size_t i = 0; i < learner->training->count; i++) {
        most = ph__max(most, labels[i].num_parts);
        if (!(labels[i].ms > 0))
            return ph_fail(PH_ERROR_DATA, "label %zu: %g ms is not above 0", i, labels[i].ms);
    }
    PH_TRY(samples_init(samples, &learner->nets->nets[learner->kind], learner->training->count, most));
    for (size_t i = 0; i < samples->count; i++) {
        set_result(samples, i, 0, labels[i].ms);
        for (size_t part = 0; part < labels[i].num_parts; part++) {
            ph__cost_part_features(
                learner->nets, &labels[i].parts[part], items_of(samples, i) + part * PH_COST_PART_FEATURES);
            shares_of(samples, i)[part] = 1;
        }
    }
    return PH_OK;
}

ph_status ph__cost_learn_compute(struct ph__cost_nets *nets, const struct ph__cost_label *labels,
    const struct ph__cost_training *training, double *mape_out)
{
    struct learner learner = {.nets = nets, .kind = PH_COST_COMPUTE, .training = training};
    PH_TRY(check(nets, learner.kind, training));
    ph_status status = take_sets(&learner, labels);
    if (status == PH_OK)
        status = learn_samples(&learner);
    if (status == PH_OK)
        *mape_out = learner.best_error;
    return learner_fini(&learner, status);
}

static ph_status take_exchanges(struct learner *learner, const struct ph__exchange_label *labels)
{
    struct samples *samples = &learner->samples;
    size_t most = 1;
    for (size_t i = 0; i < learner->training->count; i++) {
        most = ph__max(most, labels[i].topology.world_size);
        if (labels[i].way != labels[0].way)
            return ph_fail(PH_ERROR_USAGE, "label %zu is of another way than label 0", i);
    }
    PH_TRY(samples_init(samples, &learner->nets->nets[learner->kind], learner->training->count, most));
    for (size_t i = 0; i < samples->count; i++) {
        const size_t world_size = labels[i].topology.world_size;
        ph__cost_rank_features(
            &labels[i].topology, labels[i].columns, labels[i].starts_ms, items_of(samples, i));
        for (size_t rank = 0; rank < world_size; rank++) {
            shares_of(samples, i)[rank] = 1 / (ph_real)world_size;
            if (labels[i].ms[rank] > 0)
                set_result(samples, i, rank, labels[i].ms[rank]);
        }
    }
    return PH_OK;
}

ph_status ph__cost_learn_exchange(struct ph__cost_nets *nets, const struct ph__exchange_label *labels,
    const struct ph__cost_training *training, double *mape_out)
{
    struct learner learner = {.nets = nets, .kind = PH_COST_FORWARD, .training = training};
    if (training->count > 0 && labels[0].way == PH_EXCHANGE_BACKWARD)
        learner.kind = PH_COST_BACKWARD;
    PH_TRY(check(nets, learner.kind, training));
    ph_status status = take_exchanges(&learner, labels);
    if (status == PH_OK)
        status = learn_samples(&learner);
    if (status == PH_OK)
        *mape_out = learner.best_error;
    return learner_fini(&learner, status);
}
