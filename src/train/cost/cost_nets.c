#include "train/cost/cost_nets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "phloem/op.h"
#include "plan/search/plan_accesses.h"
#include "train/cost/locality.h"

/* ---- features ---- */

/* Fills the bins as for ids that are uniform over the rows: a row's accesses are Poisson distributed. Where
 * the mean is large, all rows are taken to have it. */
static void uniform_bins(double mean, ph_real *bins)
{
    enum { MOST_MEAN = 64, MOST_ACCESSES = 2 * MOST_MEAN };
    memset(bins, 0, PH_ACCESS_BINS * sizeof *bins);
    if (mean <= 0)
        return;
    if (mean > MOST_MEAN) {
        bins[ph__access_bin((uint64_t)ceil(mean))] = 1;
        return;
    }
    double share = exp(-mean) / -expm1(-mean);
    for (int accesses = 1; accesses <= MOST_ACCESSES; accesses++) {
        share *= mean / accesses;
        bins[ph__access_bin((uint64_t)accesses)] += (ph_real)share;
    }
}

/* Numbers that times grow with are features twice: as logarithms, by which tables of all sizes differ, and as
 * they are, since times of large tables are almost linear in them. */
void ph__cost_part_features(const struct ph__cost_nets *nets, const struct ph__cost_part *part,
    ph_real features_out[PH_COST_PART_FEATURES])
{
    const struct ph__table_facts facts = {.accesses = part->accesses};
    const double num_ids = part->ids_per_sample * (double)nets->batch_size;
    const double num_read = ph__distinct_rows(&facts, part->num_rows, num_ids);
    const double numbers[PH_COST_PART_NUMBERS] = {log1p(part->columns), log1p(num_ids), log1p(num_read),
        log1p(part->num_rows), log1p(part->touched_bytes), part->columns, num_ids, num_read,
        num_ids * part->columns, num_read * part->columns, part->touched_bytes};
    ph_real *bins = features_out + PH_COST_PART_NUMBERS;
    for (size_t i = 0; i < PH_COST_PART_NUMBERS; i++)
        features_out[i] = (ph_real)numbers[i];
    if (part->accesses == NULL)
        uniform_bins(num_ids / fmax(1, part->num_rows), bins);
    for (size_t bin = 0; bin < PH_ACCESS_BINS && part->accesses != NULL; bin++)
        bins[bin] = (ph_real)part->accesses[bin];
}

static double sum_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

#define LEAST_MS .01 /* of starts, below which logarithms are level */

/* Counts the columns that travel. A rank has a share of the batch's samples, so that each column that it has
 * is sent to each rank with this share: numbers are columns sent and received, inside the host and over the
 * network, by the rank, by its host, and by the rank and the host that send most; and how far ahead of others
 * it starts. They are features as they are and as logarithms, then the sizes of the topology. */
void ph__cost_rank_features(const struct ph__topology *topology, const double *columns,
    const double *starts_ms, ph_real *features_out)
{
    const double world = (double)topology->world_size, local = (double)topology->ranks_per_host;
    double all = 0, last = 0, mean_start = 0, most = 0, most_host = 0;
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        all += columns[rank];
        last = fmax(last, starts_ms[rank]);
        mean_start += starts_ms[rank] / world;
        most = fmax(most, columns[rank]);
    }
    for (size_t first = 0; first < topology->world_size; first += topology->ranks_per_host)
        most_host = fmax(most_host, sum_of(columns + first, topology->ranks_per_host));
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        const size_t first = rank / topology->ranks_per_host * topology->ranks_per_host;
        const double own = columns[rank], host = sum_of(columns + first, topology->ranks_per_host);
        const double numbers[PH_COST_RANK_NUMBERS] = {own * (local - 1) / world,
            own * (world - local) / world, (host - own) / world, (all - host) / world,
            host * (world - local) / world, most * (world - 1) / world, most_host * (world - local) / world,
            starts_ms[rank] / LEAST_MS, (last - starts_ms[rank]) / LEAST_MS, (last - mean_start) / LEAST_MS};
        ph_real *features = features_out + rank * PH_COST_RANK_FEATURES;
        for (size_t i = 0; i < PH_COST_RANK_NUMBERS; i++) {
            features[i] = (ph_real)numbers[i];
            features[PH_COST_RANK_NUMBERS + i] = (ph_real)log1p(numbers[i]);
        }
        features[2 * PH_COST_RANK_NUMBERS] = (ph_real)log2(world);
        features[2 * PH_COST_RANK_NUMBERS + 1] = (ph_real)log2(local);
    }
}

double ph__cost_wait_ms(const struct ph__topology *topology, const double *starts_ms, size_t rank)
{
    double last = 0;
    for (size_t other = 0; other < topology->world_size; other++)
        last = fmax(last, starts_ms[other]);
    return last - starts_ms[rank];
}

/* ---- graphs ---- */

size_t ph__cost_net_features(enum ph__cost_net_kind kind)
{
    return kind == PH_COST_COMPUTE ? PH_COST_PART_FEATURES : PH_COST_RANK_FEATURES;
}

ph_value ph__cost_net_layers(
    struct ph_builder *builder, enum ph__cost_net_kind kind, size_t first, size_t end, ph_value x)
{
    static const char *const nets[PH_COST_NUM_NETS] = {"compute", "forward", "backward"};
    static const char *const layers[PH_COST_LAYERS] = {"scale", "item0", "item1", "head0", "head1"};
    const size_t features = ph__cost_net_features(kind);
    const size_t widths[PH_COST_LAYERS + 1] = {
        features, features, 128, PH_COST_DESCRIPTION, PH_COST_LAST_WIDTH, 1};
    const struct ph_init weights = {PH_INIT_XAVIER_NORMAL, 1}, zeros = {PH_INIT_CONSTANT, 0};
    ph_builder_push_scope(builder, nets[kind]);
    for (size_t i = first; i < end; i++) {
        ph_builder_push_scope(builder, layers[i]);
        const ph_value weight =
            ph_parameter(builder, "weight", 2, (size_t[]){widths[i + 1], widths[i]}, weights);
        const ph_value bias = ph_parameter(builder, "bias", 1, &widths[i + 1], zeros);
        ph_builder_pop_scope(builder);
        x = ph_linear(builder, x, weight, bias, i > 0 && i + 1 < PH_COST_LAYERS ? PH_RELU : PH_IDENTITY);
    }
    ph_builder_pop_scope(builder);
    return x;
}

ph_status ph__cost_graph_open(struct ph__cost_graph *graph, const struct ph__cost_nets *nets,
    struct ph_builder *builder, size_t batch_size)
{
    const ph_status status = ph_builder_finish(builder, &graph->program);
    ph_builder_destroy(builder);
    PH_TRY(status);
    PH_TRY(ph_executor_create(graph->program, nets->store, nets->state, nets->backend, &graph->executor));
    return ph_workspace_create(graph->executor, batch_size, 0, &graph->workspace);
}

void ph__cost_graph_close(struct ph__cost_graph *graph)
{
    ph_workspace_destroy(graph->workspace);
    ph_executor_destroy(graph->executor);
    ph_program_destroy(graph->program);
}

/* Opens a graph of layers [first, end), over rows. */
static ph_status open_layers(struct ph__cost_graph *graph, const struct ph__cost_nets *nets,
    enum ph__cost_net_kind kind, size_t first, size_t end)
{
    enum { ROWS = 64 }; /* more make the workspace grow */
    struct ph_builder *builder;
    PH_TRY(ph_builder_create(PH_INFERENCE, &builder));
    const ph_value x =
        ph_input_dense(builder, first == 0 ? ph__cost_net_features(kind) : PH_COST_DESCRIPTION);
    ph_output(builder, "y", ph__cost_net_layers(builder, kind, first, end, x));
    return ph__cost_graph_open(graph, nets, builder, ROWS);
}

/* ---- the model ---- */

static ph_status reserve_rows(struct ph__cost_nets *nets, size_t count, size_t width, ph_real **rows_out)
{
    void *rows = nets->rows;
    PH_TRY(ph__array_reserve(&rows, &nets->rows_capacity, count * width, sizeof *nets->rows));
    *rows_out = nets->rows = rows;
    return PH_OK;
}

/* Runs a graph over the reserved rows (count, width); the result is borrowed until the next run. */
static ph_status run_rows(struct ph__cost_nets *nets, const struct ph__cost_graph *graph, size_t count,
    size_t width, const ph_real **y_out)
{
    const struct ph_batch batch = {.num_samples = count, .num_dense = width, .dense = nets->rows};
    struct ph_shape shape;
    PH_TRY(ph_workspace_bind(graph->workspace, &batch, 0, 0));
    PH_TRY(ph_workspace_run(graph->workspace, "forward"));
    return ph_workspace_output(graph->workspace, "y", y_out, &shape);
}

static ph_status describe(
    void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out)
{
    struct ph__cost_nets *nets = context;
    ph_real *rows;
    const ph_real *y;
    PH_TRY(reserve_rows(nets, count, PH_COST_PART_FEATURES, &rows));
    for (size_t i = 0; i < count; i++)
        ph__cost_part_features(nets, &parts[i], rows + i * PH_COST_PART_FEATURES);
    PH_TRY(run_rows(nets, &nets->describe, count, PH_COST_PART_FEATURES, &y));
    for (size_t i = 0; i < count * PH_COST_DESCRIPTION; i++)
        descriptions_out[i] = (float)y[i];
    return PH_OK;
}

/* Prices sets; one without parts takes no time, whatever the net says. */
static ph_status compute(void *context, const float *sets, size_t count, double *ms_out)
{
    struct ph__cost_nets *nets = context;
    ph_real *rows;
    const ph_real *y;
    PH_TRY(reserve_rows(nets, count, PH_COST_DESCRIPTION, &rows));
    for (size_t i = 0; i < count * PH_COST_DESCRIPTION; i++)
        rows[i] = (ph_real)sets[i];
    PH_TRY(run_rows(nets, &nets->compute, count, PH_COST_DESCRIPTION, &y));
    for (size_t i = 0; i < count; i++) {
        bool is_empty = true;
        for (size_t j = 0; j < PH_COST_DESCRIPTION; j++)
            is_empty &= sets[i * PH_COST_DESCRIPTION + j] == 0;
        ms_out[i] = is_empty ? 0 : fmax(0, (double)y[i]);
    }
    return PH_OK;
}

static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    struct ph__cost_nets *nets = context;
    const size_t world_size = topology->world_size;
    ph_real *rows;
    const ph_real *y;
    PH_TRY(reserve_rows(nets, world_size, PH_COST_RANK_FEATURES, &rows));
    ph__cost_rank_features(topology, columns, starts_ms, rows);
    PH_TRY(run_rows(nets, &nets->exchange[way], world_size, PH_COST_RANK_FEATURES, &y));
    for (size_t rank = 0; rank < world_size; rank++)
        ms_out[rank] = fmax(0, (double)y[rank] + ph__cost_wait_ms(topology, starts_ms, rank));
    return PH_OK;
}

struct ph__cost_model ph__cost_nets_model(struct ph__cost_nets *nets)
{
    return (struct ph__cost_model){.name = "learnt",
        .context = nets,
        .width = PH_COST_DESCRIPTION,
        .lookup_share = nets->lookup_share,
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
    PH_TRY(open_layers(&nets->describe, nets, PH_COST_COMPUTE, 0, PH_COST_ITEM_LAYERS));
    PH_TRY(open_layers(&nets->compute, nets, PH_COST_COMPUTE, PH_COST_ITEM_LAYERS, PH_COST_LAYERS));
    PH_TRY(open_layers(&nets->exchange[PH_EXCHANGE_FORWARD], nets, PH_COST_FORWARD, 0, PH_COST_LAYERS));
    return open_layers(&nets->exchange[PH_EXCHANGE_BACKWARD], nets, PH_COST_BACKWARD, 0, PH_COST_LAYERS);
}

ph_status ph__cost_nets_create(uint64_t seed, size_t batch_size, struct ph__cost_nets **nets_out)
{
    struct ph__cost_nets *nets = calloc(1, sizeof *nets);
    if (nets == NULL)
        return ph__out_of_memory("a learnt cost");
    nets->seed = seed;
    nets->batch_size = batch_size;
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
    ph__cost_graph_close(&nets->exchange[PH_EXCHANGE_BACKWARD]);
    ph__cost_graph_close(&nets->exchange[PH_EXCHANGE_FORWARD]);
    ph__cost_graph_close(&nets->compute);
    ph__cost_graph_close(&nets->describe);
    ph_backend_destroy(nets->backend);
    ph_state_destroy(nets->state);
    ph_store_destroy(nets->store);
    free(nets->rows);
    free(nets);
}
