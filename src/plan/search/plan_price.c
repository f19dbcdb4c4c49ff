#include "plan/search/plan_price.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "plan/plan_cost.h"
#include "plan/plan_traffic.h"
#include "plan/search/plan_accesses.h"

enum { MS_PER_S = 1000 };
/* Lookups read a row for each id, gradients another; updates read rows and write them, but each only once. */
#define LOOKUP_SHARE (1. / 3)

double ph__rank_price_ms(const struct ph__rank_price *price)
{
    return price->compute_ms + price->replicas_ms + price->backward_ms + price->wait_ms + price->forward_ms;
}

/* ---- parts ---- */

struct ph__cost_part ph__cost_part(
    const struct ph__pricing *pricing, size_t table, double num_rows, size_t num_columns, double sample_share)
{
    const struct ph__table_facts *facts = &pricing->tables[table];
    const double num_samples = (double)pricing->step->batch_size * sample_share;
    const double num_ids = facts->ids_per_sample * num_samples * num_rows / (double)facts->num_rows;
    const struct ph__part_work work = {num_columns, num_ids, (double)facts->num_features * num_samples,
        ph__distinct_rows(facts, num_rows, num_ids)};
    return (struct ph__cost_part){.columns = (double)num_columns,
        .num_rows = num_rows,
        .ids_per_sample = num_ids / (double)pricing->step->batch_size,
        .touched_bytes = ph__touched_bytes(facts, &work),
        .accesses = facts->accesses};
}

double ph__sent_columns(const struct ph__table_facts *table, double num_rows, size_t num_columns)
{
    const double num_features = (double)table->num_features;
    const double num_ids = table->ids_per_sample * num_rows / (double)table->num_rows;
    return num_features * (double)num_columns + .5 * (num_ids + num_features);
}

ph_status ph__add_part(const struct ph__pricing *pricing, size_t table, double num_rows, size_t num_columns,
    double sample_share, float *set)
{
    const struct ph__cost_part part = ph__cost_part(pricing, table, num_rows, num_columns, sample_share);
    const struct ph__cost_model *model = pricing->model;
    float description[PH_COST_MOST_WIDTH];
    PH_TRY(model->describe(model->context, &part, 1, description));
    for (size_t i = 0; i < model->width; i++)
        set[i] += description[i];
    return PH_OK;
}

double ph__replica_ms(const struct ph__pricing *pricing, size_t table)
{
    const struct ph__table_facts *facts = &pricing->tables[table];
    const double world_size = (double)pricing->topology->world_size;
    const double num_ids = facts->ids_per_sample * (double)pricing->step->batch_size / world_size;
    const double bytes = ph__distinct_rows(facts, (double)facts->num_rows, num_ids) *
                         (double)(sizeof(uint32_t) + facts->dim * sizeof(float));
    const bool has_hosts = pricing->topology->ranks_per_host < pricing->topology->world_size;
    const double local = (double)pricing->topology->ranks_per_host;
    const double inside = bytes * (local - 1) / pricing->machine->host_bytes_per_s;
    const double across =
        has_hosts ? bytes * (world_size - local) * local / pricing->machine->network_bytes_per_s : 0;
    const double merging = 3 * bytes * world_size / pricing->machine->memory_bytes_per_s;
    return MS_PER_S * (inside + across + merging);
}

/* ---- exchanges ---- */

struct exchanges {
    const struct ph__pricing *pricing;
    struct ph__rank_price *prices;
    double *columns, *starts, *ms; /* (world_size) */
};

static ph_status price_exchange(const struct exchanges *exchanges, enum ph__exchange_way way)
{
    const struct ph__cost_model *model = exchanges->pricing->model;
    return model->exchange(model->context, way, exchanges->pricing->topology, exchanges->columns,
        exchanges->starts, exchanges->ms);
}

/* Prices all up to the moment when the last rank has updated its rows. */
static ph_status price_backward(const struct exchanges *exchanges)
{
    const size_t world_size = exchanges->pricing->topology->world_size;
    const double update_share = 1 - exchanges->pricing->model->lookup_share;
    double last = 0;
    PH_TRY(price_exchange(exchanges, PH_EXCHANGE_BACKWARD));
    for (size_t rank = 0; rank < world_size; rank++) {
        struct ph__rank_price *price = &exchanges->prices[rank];
        price->backward_ms = exchanges->ms[rank];
        exchanges->ms[rank] += update_share * price->compute_ms + price->replicas_ms;
        last = fmax(last, exchanges->ms[rank]);
    }
    for (size_t rank = 0; rank < world_size; rank++)
        exchanges->prices[rank].wait_ms = last - exchanges->ms[rank];
    return PH_OK;
}

static ph_status price_forward(const struct exchanges *exchanges, double *slowest_ms_out)
{
    const size_t world_size = exchanges->pricing->topology->world_size;
    double first = INFINITY;
    for (size_t rank = 0; rank < world_size; rank++) {
        exchanges->starts[rank] =
            exchanges->pricing->model->lookup_share * exchanges->prices[rank].compute_ms;
        first = fmin(first, exchanges->starts[rank]);
    }
    for (size_t rank = 0; rank < world_size; rank++)
        exchanges->starts[rank] -= first;
    PH_TRY(price_exchange(exchanges, PH_EXCHANGE_FORWARD));
    *slowest_ms_out = 0;
    for (size_t rank = 0; rank < world_size; rank++) {
        exchanges->prices[rank].forward_ms = exchanges->ms[rank];
        *slowest_ms_out = fmax(*slowest_ms_out, ph__rank_price_ms(&exchanges->prices[rank]));
    }
    return PH_OK;
}

ph_status ph__price_exchanges(
    const struct ph__pricing *pricing, struct ph__rank_price *prices, double *slowest_ms_out)
{
    const size_t world_size = pricing->topology->world_size;
    struct ph__arena arena = {0};
    double *numbers = ph__arena_alloc_array(&arena, 3 * world_size, sizeof *numbers);
    if (numbers == NULL)
        return PH_ERROR_MEMORY;
    const struct exchanges exchanges = {
        pricing, prices, numbers, numbers + world_size, numbers + 2 * world_size};
    for (size_t rank = 0; rank < world_size; rank++)
        exchanges.columns[rank] = prices[rank].columns;
    ph_status status = price_backward(&exchanges);
    if (status == PH_OK)
        status = price_forward(&exchanges, slowest_ms_out);
    ph__arena_fini(&arena);
    return status;
}

/* ---- a plan ---- */

struct sets {
    const struct ph__pricing *pricing;
    float *sums;                   /* (world_size, width) */
    struct ph__rank_price *prices; /* (world_size) */
};

static ph_status add_replicas(struct sets *sets, size_t table)
{
    const struct ph__pricing *pricing = sets->pricing;
    const struct ph__table_facts *facts = &pricing->tables[table];
    const size_t world_size = pricing->topology->world_size, width = pricing->model->width;
    for (size_t rank = 0; rank < world_size; rank++) {
        PH_TRY(ph__add_part(pricing, table, (double)facts->num_rows, facts->dim, 1 / (double)world_size,
            sets->sums + rank * width));
        sets->prices[rank].bytes += ph__table_shard_bytes(facts, facts->num_rows, facts->dim);
        sets->prices[rank].replicas_ms += ph__replica_ms(pricing, table);
    }
    return PH_OK;
}

/* Counts the columns of a shard. Where a host's ranks have rows of the same columns, they share what they
 * send to other hosts; their sums inside the host are not priced. */
static double shard_columns(const struct ph__pricing *pricing, const struct ph__plan_table *planned,
    const struct ph__table_shard *shard)
{
    const bool is_shared = planned->kind == PH_SHARD_TABLE_ROW_WISE || planned->kind == PH_SHARD_GRID;
    const double columns =
        ph__sent_columns(&pricing->tables[shard->table], (double)shard->num_rows, shard->num_columns);
    return is_shared ? columns / (double)pricing->topology->ranks_per_host : columns;
}

static ph_status add_table(struct sets *sets, const struct ph__plan *plan, size_t table)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    if (planned->kind == PH_SHARD_DATA_PARALLEL)
        return add_replicas(sets, table);
    for (size_t i = 0; i < planned->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[planned->first_shard + i];
        struct ph__rank_price *price = &sets->prices[shard->rank];
        PH_TRY(ph__add_part(sets->pricing, table, (double)shard->num_rows, shard->num_columns, 1,
            sets->sums + shard->rank * sets->pricing->model->width));
        price->bytes +=
            ph__table_shard_bytes(&sets->pricing->tables[table], shard->num_rows, shard->num_columns);
        price->columns += shard_columns(sets->pricing, planned, shard);
    }
    return PH_OK;
}

static ph_status price_sets(struct sets *sets, struct ph__arena *arena)
{
    const size_t world_size = sets->pricing->topology->world_size;
    const struct ph__cost_model *model = sets->pricing->model;
    double *ms = ph__arena_alloc_array(arena, world_size, sizeof *ms);
    if (ms == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(model->compute(model->context, sets->sums, world_size, ms));
    for (size_t rank = 0; rank < world_size; rank++)
        sets->prices[rank].compute_ms = ms[rank] * ph__slowness(sets->pricing, rank);
    return PH_OK;
}

ph_status ph__plan_price(const struct ph__pricing *pricing, const struct ph__plan *plan,
    struct ph__rank_price *prices_out, double *slowest_ms_out)
{
    const size_t world_size = pricing->topology->world_size;
    struct ph__arena arena = {0};
    struct sets sets = {.pricing = pricing, .prices = prices_out};
    memset(prices_out, 0, world_size * sizeof *prices_out);
    sets.sums = ph__arena_alloc_array(&arena, world_size * pricing->model->width, sizeof *sets.sums);
    ph_status status = sets.sums != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t table = 0; table < plan->num_tables && status == PH_OK; table++)
        status = add_table(&sets, plan, table);
    if (status == PH_OK)
        status = price_sets(&sets, &arena);
    if (status == PH_OK)
        status = ph__price_exchanges(pricing, prices_out, slowest_ms_out);
    ph__arena_fini(&arena);
    return status;
}

/* ---- the analytic model ---- */

static ph_status describe(
    void *context, const struct ph__cost_part *parts, size_t count, float *descriptions_out)
{
    const struct ph__analytic_cost *cost = context;
    for (size_t i = 0; i < count; i++)
        descriptions_out[i] = (float)(MS_PER_S * parts[i].touched_bytes / cost->machine.memory_bytes_per_s);
    return PH_OK;
}

static ph_status compute(void *context, const float *sets, size_t count, double *ms_out)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        ms_out[i] = (double)sets[i];
    return PH_OK;
}

/* Prices vectors of each rank's columns, for the samples of all others. */
static ph_status exchange(void *context, enum ph__exchange_way way, const struct ph__topology *topology,
    const double *columns, const double *starts_ms, double *ms_out)
{
    const struct ph__analytic_cost *cost = context;
    const struct ph__plan_wire *wire =
        way == PH_EXCHANGE_FORWARD ? &cost->step.pooled_wire : &cost->step.gradient_wire;
    const size_t num_local = topology->ranks_per_host;
    const double samples = (double)cost->step.batch_size / (double)topology->world_size;
    const double bytes = samples * (double)wire->number_bytes; /* of a column, for one rank */
    double all = 0;
    (void)starts_ms;
    for (size_t rank = 0; rank < topology->world_size; rank++)
        all += columns[rank];
    for (size_t first = 0; first < topology->world_size; first += num_local) {
        double host = 0;
        for (size_t rank = first; rank < first + num_local; rank++)
            host += columns[rank];
        const double sent = host * (double)(topology->world_size - num_local),
                     received = (all - host) * (double)num_local;
        const double across = topology->world_size > num_local
                                  ? fmax(sent, received) * bytes / cost->machine.network_bytes_per_s
                                  : 0;
        for (size_t rank = first; rank < first + num_local; rank++) {
            const double inside = fmax(columns[rank] * (double)(num_local - 1), host - columns[rank]) * bytes;
            ms_out[rank] = MS_PER_S * (inside / cost->machine.host_bytes_per_s + across);
        }
    }
    return PH_OK;
}

struct ph__cost_model ph__analytic_model(struct ph__analytic_cost *cost)
{
    return (struct ph__cost_model){.name = "analytic",
        .context = cost,
        .width = 1,
        .lookup_share = LOOKUP_SHARE,
        .describe = describe,
        .compute = compute,
        .exchange = exchange};
}
