#include "train/cost/cost_nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "graph/op.h"
#include "kernel/kernel.h"
#include "phloem/op.h"

#define COMPUTE_LAYERS                                                                          \
    {"compute.item0", PH_COST_PART_FEATURES, 128}, {"compute.item1", 128, PH_COST_DESCRIPTION}, \
        {"compute.head0", PH_COST_DESCRIPTION, 64},                                             \
    {                                                                                           \
        "compute.head1", 64, 1                                                                  \
    }
#define EXCHANGE_LAYERS(name)                                                                      \
    {name ".item0", PH_COST_RANK_FEATURES, 64}, {name ".item1", 64, PH_COST_DESCRIPTION},          \
        {name ".head0", PH_COST_RANK_FEATURES + PH_COST_DESCRIPTION, 64}, {name ".head1", 64, 32}, \
    {                                                                                              \
        name ".head2", 32, 1                                                                       \
    }

static const struct ph__cost_layer compute_layers[] = {COMPUTE_LAYERS};
static const struct ph__cost_layer forward_layers[] = {EXCHANGE_LAYERS("forward")};
static const struct ph__cost_layer backward_layers[] = {EXCHANGE_LAYERS("backward")};

static const struct ph__cost_net new_nets[PH_COST_NUM_NETS] = {
    [PH_COST_COMPUTE] = {compute_layers, 4, PH_COST_PART_FEATURES, false, {0}, {0}, false},
    [PH_COST_FORWARD] = {forward_layers, 5, PH_COST_RANK_FEATURES, true, {0}, {0}, false},
    [PH_COST_BACKWARD] = {backward_layers, 5, PH_COST_RANK_FEATURES, true, {0}, {0}, false},
};

/* ---- features ---- */

static size_t bin_of(double accesses)
{
    return (size_t)fmin(PH_ACCESS_BINS - 1, ceil(log2(fmax(1, accesses))));
}

/* Fills the bins as for ids that are uniform over the rows: a row's accesses are Poisson distributed. Where
 * the mean is large, all rows are taken to have it. */
static void uniform_bins(double mean, ph_real *bins)
{
    enum { MOST_MEAN = 64, MOST_ACCESSES = 2 * MOST_MEAN };
    memset(bins, 0, PH_ACCESS_BINS * sizeof *bins);
    if (mean <= 0)
        return;
    if (mean > MOST_MEAN) {
        bins[bin_of(mean)] = 1;
        return;
    }
    double share = exp(-mean) / -expm1(-mean);
    for (int accesses = 1; accesses <= MOST_ACCESSES; accesses++) {
        share *= mean / accesses;
        bins[bin_of(accesses)] += (ph_real)share;
    }
}

void ph__cost_part_features(const struct ph__cost_nets *nets, const struct ph__cost_part *part,
    ph_real features_out[PH_COST_PART_FEATURES])
{
    const double num_ids = part->ids_per_sample * (double)nets->batch_size;
    features_out[0] = (ph_real)log1p(part->columns);
    features_out[1] = (ph_real)log1p(num_ids);
    features_out[2] = (ph_real)log1p(part->num_rows);
    features_out[3] = (ph_real)log1p(part->touched_bytes);
    if (part->accesses == NULL)
        uniform_bins(num_ids / fmax(1, part->num_rows), features_out + 4);
    for (size_t bin = 0; bin < PH_ACCESS_BINS && part->accesses != NULL; bin++)
        features_out[4 + bin] = (ph_real)part->accesses[bin];
}

/* Counts the columns that travel. A rank has a share of the batch's samples, so that each column that it has
 * is sent to each rank with this share: features are columns sent and received, inside the host and over the
 * network. */
void ph__cost_rank_features(const struct ph__topology *topology, const double *columns,
    const double *starts_ms, ph_real *features_out)
{
    const double world = (double)topology->world_size, local = (double)topology->ranks_per_host;
    double all = 0, last = 0;
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        all += columns[rank];
        last = fmax(last, starts_ms[rank]);
    }
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        ph_real *features = features_out + rank * PH_COST_RANK_FEATURES;
        const size_t first = rank / topology->ranks_per_host * topology->ranks_per_host;
        double host = 0;
        for (size_t other = first; other < first + topology->ranks_per_host; other++)
            host += columns[other];
        const double numbers[PH_COST_RANK_FEATURES] = {columns[rank] * (local - 1) / world,
            columns[rank] * (world - local) / world, (host - columns[rank]) / world, (all - host) / world,
            host * (world - local) / world, starts_ms[rank], last - starts_ms[rank], log2(world),
            log2(local)};
        for (size_t i = 0; i < PH_COST_RANK_FEATURES; i++)
            features[i] = (ph_real)numbers[i];
    }
}

/* ---- graphs ---- */

static ph_value add_layer(
    struct ph_builder *builder, const struct ph__cost_layer *layer, ph_value x, bool is_last)
{
    const size_t dims[] = {layer->out, layer->in};
    const struct ph_init weights = {PH_INIT_XAVIER_NORMAL, 1}, zeros = {PH_INIT_CONSTANT, 0};
    ph_builder_push_scope(builder, layer->name);
    const ph_value weight = ph_parameter(builder, "weight", 2, dims, weights);
    const ph_value bias = ph_parameter(builder, "bias", 1, dims, zeros);
    ph_builder_pop_scope(builder);
    return ph_linear(builder, x, weight, bias, is_last ? PH_IDENTITY : PH_RELU);
}

ph_value ph__cost_net_build(struct ph_builder *builder, const struct ph__cost_net *net, ph_value items,
    ph_value shares, ph_value known, size_t num_items)
{
    ph_value y = items; /* (B,T,n) */
    size_t layer = 0;
    while (layer < PH_COST_ITEM_LAYERS)
        y = add_layer(builder, &net->layers[layer++], y, false);
    y = ph_batch_product(builder, shares, y, false, false); /* (B,1,n) */
    if (net->is_of_ranks) {
        const ph_value mask = ph_reshape(builder, known, 2, (size_t[]){1, num_items});
        const ph_value values[] = {items, ph_batch_product(builder, mask, y, true, false)};
        y = ph_concat(builder, 2, values, 2);
    }
    while (layer < net->num_layers) {
        const bool is_last = layer + 1 == net->num_layers;
        y = add_layer(builder, &net->layers[layer++], y, is_last);
    }
    return ph_reshape(builder, y, 1, (size_t[]){net->is_of_ranks ? num_items : 1});
}

/* Builds all nets for samples of one item, whose executor declares what they learn. */
static void build_all(struct ph_builder *builder, const struct ph__cost_net *nets)
{
    static const char *const names[PH_COST_NUM_NETS] = {"compute", "forward", "backward"};
    const ph_value known = ph_input_labels(builder, 1);
    const ph_value x = ph_input_dense(builder, PH_COST_PART_FEATURES);
    for (size_t i = 0; i < PH_COST_NUM_NETS; i++) {
        const size_t num_features = nets[i].num_features;
        const ph_value items =
            ph_reshape(builder, ph_slice(builder, x, 1, 0, num_features), 2, (size_t[]){1, num_features});
        const ph_value shares = ph_reshape(builder, known, 2, (size_t[]){1, 1});
        ph_output(builder, names[i], ph__cost_net_build(builder, &nets[i], items, shares, known, 1));
    }
}

static ph_status declare(struct ph__cost_nets *nets)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    struct ph_executor *executor = NULL;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    build_all(builder, nets->nets);
    ph_status status = ph_builder_finish(builder, &program);
    if (status == PH_OK)
        status = ph_executor_create(program, nets->store, nets->state, nets->backend, &executor);
    ph_executor_destroy(executor);
    ph_program_destroy(program);
    ph_builder_destroy(builder);
    return status;
}

/* ---- running ---- */

static ph_status find(const struct ph__cost_nets *nets, const struct ph__cost_layer *layer, const char *part,
    ph_real **data_out)
{
    char name[64];
    struct ph_tensor tensor;
    snprintf(name, sizeof name, "%s.%s", layer->name, part);
    PH_TRY(ph_store_find(nets->store, name, &tensor));
    *data_out = tensor.data;
    return PH_OK;
}

ph_status ph__cost_net_renew(struct ph__cost_nets *nets, enum ph__cost_net_kind kind)
{
    struct ph__cost_net *net = &nets->nets[kind];
    for (size_t i = 0; i < net->num_layers; i++) {
        const struct ph__cost_layer *layer = &net->layers[i];
        ph_real *weight, *bias;
        PH_TRY(find(nets, layer, "weight", &weight));
        PH_TRY(find(nets, layer, "bias", &bias));
        if (net->packed[i] == NULL)
            net->packed[i] =
                ph__arena_alloc(&nets->arena, ph__row_product_packed_bytes(layer->out, layer->in, false));
        if (net->packed[i] == NULL)
            return PH_ERROR_MEMORY;
        ph__row_product_pack(layer->out, layer->in, false, false, weight, net->packed[i]);
        net->bias[i] = bias;
    }
    return PH_OK;
}

/* Runs layers [first, last) over rows; the result (count, out) is borrowed until the next run. */
static ph_status run_layers(struct ph__cost_nets *nets, const struct ph__cost_net *net, size_t first,
    size_t last, const ph_real *x, size_t count, const ph_real **y_out)
{
    void *rows = nets->rows;
    PH_TRY(
        ph__array_reserve(&rows, &nets->rows_capacity, 2 * count * PH_COST_MOST_LAYER, sizeof *nets->rows));
    nets->rows = rows;
    for (size_t i = first; i < last; i++) {
        ph_real *y = nets->rows + (i - first) % 2 * count * PH_COST_MOST_LAYER;
        nets->backend->kernels->row_product(&(struct ph__row_product_args){.rows = count,
            .in_features = net->layers[i].in,
            .out_features = net->layers[i].out,
            .x = x,
            .packed = net->packed[i],
            .bias = net->bias[i],
            .y = y,
            .is_rectified = i + 1 < net->num_layers});
        x = y;
    }
    *y_out = x;
    return PH_OK;
}

/* ---- the model ---- */

static ph_status describe(
    void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out)
{
    struct ph__cost_nets *nets = context;
    for (size_t i = 0; i < count; i++) {
        ph_real features[PH_COST_PART_FEATURES];
        const ph_real *y;
        ph__cost_part_features(nets, &parts[i], features);
        PH_TRY(run_layers(nets, &nets->nets[PH_COST_COMPUTE], 0, PH_COST_ITEM_LAYERS, features, 1, &y));
        for (size_t j = 0; j < PH_COST_DESCRIPTION; j++)
            descriptions_out[i * PH_COST_DESCRIPTION + j] = (float)y[j];
    }
    return PH_OK;
}

/* Tells whether a set has no parts: it takes no time, whatever the net says. */
static bool is_empty(const float *set)
{
    for (size_t i = 0; i < PH_COST_DESCRIPTION; i++)
        if (set[i] != 0)
            return false;
    return true;
}

static ph_status compute(void *context, const float *sets, size_t count, double *ms_out)
{
    enum { BLOCK_ROWS = 64 };
    struct ph__cost_nets *nets = context;
    const struct ph__cost_net *net = &nets->nets[PH_COST_COMPUTE];
    ph_real x[BLOCK_ROWS * PH_COST_DESCRIPTION];
    for (size_t begin = 0; begin < count; begin += BLOCK_ROWS) {
        const size_t rows = count - begin < BLOCK_ROWS ? count - begin : BLOCK_ROWS;
        const float *block = sets + begin * PH_COST_DESCRIPTION;
        const ph_real *y;
        for (size_t i = 0; i < rows * PH_COST_DESCRIPTION; i++)
            x[i] = (ph_real)block[i];
        PH_TRY(run_layers(nets, net, PH_COST_ITEM_LAYERS, net->num_layers, x, rows, &y));
        for (size_t i = 0; i < rows; i++)
            ms_out[begin + i] = is_empty(block + i * PH_COST_DESCRIPTION) ? 0 : fmax(0, (double)y[i]);
    }
    return PH_OK;
}

/* Puts the mean of all ranks' descriptions behind each rank's features. */
static void join(const ph_real *features, const ph_real *descriptions, size_t world_size, ph_real *joined)
{
    ph_real mean[PH_COST_DESCRIPTION] = {0};
    for (size_t i = 0; i < world_size * PH_COST_DESCRIPTION; i++)
        mean[i % PH_COST_DESCRIPTION] += descriptions[i] / (ph_real)world_size;
    for (size_t rank = 0; rank < world_size; rank++) {
        ph_real *row = joined + rank * (PH_COST_RANK_FEATURES + PH_COST_DESCRIPTION);
        memcpy(row, features + rank * PH_COST_RANK_FEATURES, PH_COST_RANK_FEATURES * sizeof *row);
        memcpy(row + PH_COST_RANK_FEATURES, mean, sizeof mean);
    }
}

static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    struct ph__cost_nets *nets = context;
    const struct ph__cost_net *net =
        &nets->nets[way == PH_EXCHANGE_FORWARD ? PH_COST_FORWARD : PH_COST_BACKWARD];
    const size_t world_size = topology->world_size;
    struct ph__arena arena = {0};
    ph_real *features = ph__arena_alloc_array(
        &arena, world_size, (2 * PH_COST_RANK_FEATURES + PH_COST_DESCRIPTION) * sizeof *features);
    const ph_real *y = NULL;
    ph_status status = features != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK) {
        ph__cost_rank_features(topology, columns, starts_ms, features);
        status = run_layers(nets, net, 0, PH_COST_ITEM_LAYERS, features, world_size, &y);
    }
    if (status == PH_OK) {
        ph_real *joined = features + world_size * PH_COST_RANK_FEATURES;
        join(features, y, world_size, joined);
        status = run_layers(nets, net, PH_COST_ITEM_LAYERS, net->num_layers, joined, world_size, &y);
    }
    for (size_t rank = 0; rank < world_size && status == PH_OK; rank++)
        ms_out[rank] = fmax(0, (double)y[rank]);
    ph__arena_fini(&arena);
    return status;
}

struct ph__cost_model ph__cost_nets_model(struct ph__cost_nets *nets)
{
    return (struct ph__cost_model){.name = "learnt",
        .context = nets,
        .width = PH_COST_DESCRIPTION,
        .describe = describe,
        .compute = compute,
        .exchange = exchange};
}

/* ---- creating ---- */

static ph_status fill(struct ph__cost_nets *nets)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = 1};
    PH_TRY(ph_store_create(nets->seed, &nets->store));
    PH_TRY(ph_state_create(&nets->state));
    PH_TRY(ph_backend_create(&options, &nets->backend));
    PH_TRY(declare(nets));
    for (size_t kind = 0; kind < PH_COST_NUM_NETS; kind++)
        PH_TRY(ph__cost_net_renew(nets, (enum ph__cost_net_kind)kind));
    return PH_OK;
}

ph_status ph__cost_nets_create(uint64_t seed, size_t batch_size, struct ph__cost_nets **nets_out)
{
    struct ph__cost_nets *nets = calloc(1, sizeof *nets);
    if (nets == NULL)
        return ph__out_of_memory("a learnt cost");
    nets->seed = seed;
    nets->batch_size = batch_size;
    memcpy(nets->nets, new_nets, sizeof new_nets);
    const ph_status status = fill(nets);
    if (status != PH_OK)
        ph__cost_nets_destroy(nets);
    else
        *nets_out = nets;
    return status;
}

void ph__cost_nets_destroy(struct ph__cost_nets *nets)
{
    if (nets == NULL)
        return;
    ph_backend_destroy(nets->backend);
    ph_state_destroy(nets->state);
    ph_store_destroy(nets->store);
    ph__arena_fini(&nets->arena);
    free(nets->rows);
    free(nets);
}
