#include "plan/plan_cost.h"

#include <math.h>
#include <stddef.h>

#include "base/sizes.h"
#include "plan/plan_units.h"

/* ---- the machine ---- */

#define RATE(member, nominal, name, source) \
    {name, nominal, source, offsetof(struct ph__plan_machine, member)},
const struct ph__plan_rate ph__plan_rates[PH_PLAN_NUM_RATES] = {PH_PLAN_RATE_LIST(RATE)};
#undef RATE

double ph__plan_machine_rate(const struct ph__plan_machine *machine, const struct ph__plan_rate *rate)
{
    return *(const double *)(const void *)((const char *)machine + rate->offset);
}

void ph__plan_machine_take(struct ph__plan_machine *machine, const struct ph__plan_machine *given)
{
    for (size_t i = 0; i < PH_PLAN_NUM_RATES; i++) {
        const double rate = ph__plan_machine_rate(given, &ph__plan_rates[i]);
        if (!isnan(rate))
            *(double *)(void *)((char *)machine + ph__plan_rates[i].offset) = rate;
    }
}

struct ph__plan_machine ph__plan_machine_nominal(uint64_t rank_bytes)
{
#define NOMINAL(member, nominal, name, source) .member = (nominal),
    return (struct ph__plan_machine){PH_PLAN_RATE_LIST(NOMINAL).rank_bytes = rank_bytes};
#undef NOMINAL
}

/* ---- the cost ---- */

double ph__expected_rows(double num_rows, double num_ids)
{
    return num_rows > 1 ? -num_rows * expm1(num_ids * log1p(-1 / num_rows)) : fmin(num_ids, 1);
}

ph_status ph__expected_counts(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, struct ph__arena *arena, struct ph__table_counts *counts_out)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    const struct ph__table_shard *shards = plan->shards + planned->first_shard;
    const size_t world_size = plan->topology.world_size, num_shards = planned->num_shards;
    double *ids = ph__arena_alloc_array(arena, facts->num_features * world_size * num_shards, sizeof *ids);
    double *distinct_rows = ph__arena_alloc_array(arena, num_shards, sizeof *distinct_rows);
    double *rank_rows = ph__arena_alloc_array(arena, world_size, sizeof *rank_rows);
    if (ids == NULL || distinct_rows == NULL || rank_rows == NULL)
        return PH_ERROR_MEMORY;
    const double num_rows = (double)facts->num_rows;
    const double batch_rows = ph__expected_rows(num_rows, facts->ids_per_sample * (double)step->batch_size);
    for (size_t i = 0; i < num_shards; i++)
        distinct_rows[i] = batch_rows * (double)shards[i].num_rows / num_rows;
    for (size_t rank = 0; rank < world_size; rank++) {
        const double num_ids =
            facts->ids_per_sample * (double)ph__plan_samples(&plan->topology, step->batch_size, rank);
        rank_rows[rank] = ph__expected_rows(num_rows, num_ids);
        for (size_t read = 0; read < facts->num_features; read++)
            for (size_t i = 0; i < num_shards; i++)
                ids[(read * world_size + rank) * num_shards + i] =
                    num_ids / (double)facts->num_features * (double)shards[i].num_rows / num_rows;
    }
    *counts_out = (struct ph__table_counts){ids, distinct_rows, rank_rows};
    return PH_OK;
}

static ph_status visit_expected(const struct ph__plan *plan, size_t table,
    const struct ph__table_facts *tables, const struct ph__plan_step *step, ph__traffic_visit visit,
    void *context)
{
    struct ph__arena arena = {0};
    struct ph__table_counts counts;
    const ph_status status = ph__expected_counts(plan, table, &tables[table], step, &arena, &counts);
    if (status == PH_OK)
        ph__shared_traffic(plan, table, tables, step, &counts, visit, context);
    ph__arena_fini(&arena);
    return status;
}

/* Visits the messages of all tables, by expected counts. Counts are made for one table at a time, since there
 * is one for every pair of a rank and a shard. */
static ph_status expected_traffic(const struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_step *step, ph__traffic_visit visit, void *context)
{
    for (size_t i = 0; i < plan->num_tables; i++)
        PH_TRY(visit_expected(plan, i, tables, step, visit, context));
    ph__tower_traffic(plan, step, visit, context);
    ph__batch_traffic(plan, tables, visit, context);
    return PH_OK;
}

/* ---- a rank's work ---- */

double ph__touched_bytes(const struct ph__table_facts *facts, const struct ph__part_work *work)
{
    const double columns = (double)work->num_columns, share = columns / (double)facts->dim;
    const double weights = (double)facts->weight_bytes * share;
    const double slots =
        (double)(facts->slot_bytes - facts->row_slot_bytes) * share + (double)facts->row_slot_bytes;
    const double vector = (double)sizeof(float) * columns;
    return work->num_ids * (weights + vector) + work->num_bags * vector +
           2 * work->num_rows * (weights + slots);
}

static void use_shards(const struct ph__plan *plan, const struct ph__plan_table *table,
    const struct ph__table_facts *facts, const struct ph__plan_step *step,
    const struct ph__table_counts *counts, struct ph__rank_usage *usage)
{
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[table->first_shard + i];
        struct ph__part_work work = {shard->num_columns, 0,
            (double)facts->num_features * (double)step->batch_size, counts->distinct_rows[i]};
        for (size_t row = 0; row < facts->num_features * plan->topology.world_size; row++)
            work.num_ids += counts->ids[row * table->num_shards + i];
        usage[shard->rank].held_bytes += ph__table_shard_bytes(facts, shard->num_rows, shard->num_columns);
        usage[shard->rank].touched_bytes += ph__touched_bytes(facts, &work);
    }
}

static void use_replicas(const struct ph__plan *plan, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, struct ph__rank_usage *usage)
{
    const double num_rows =
        ph__expected_rows((double)facts->num_rows, facts->ids_per_sample * (double)step->batch_size);
    for (size_t rank = 0; rank < plan->topology.world_size; rank++) {
        const double num_samples = (double)ph__plan_samples(&plan->topology, step->batch_size, rank);
        const struct ph__part_work work = {facts->dim, facts->ids_per_sample * num_samples,
            (double)facts->num_features * num_samples, num_rows};
        usage[rank].held_bytes += ph__table_shard_bytes(facts, facts->num_rows, facts->dim);
        usage[rank].touched_bytes += ph__touched_bytes(facts, &work);
    }
}

struct traffic_usage {
    size_t ranks_per_host;
    struct ph__rank_usage *usage;
};

static void use_link(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    const struct traffic_usage *traffic = context;
    struct ph__rank_usage *sender = &traffic->usage[from], *receiver = &traffic->usage[to];
    const bool is_inside = from / traffic->ranks_per_host == to / traffic->ranks_per_host;
    (void)what;
    *(is_inside ? &sender->host_sent : &sender->network_sent) += bytes;
    *(is_inside ? &receiver->host_received : &receiver->network_received) += bytes;
}

void ph__table_usage(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, struct ph__rank_usage *usage)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    struct traffic_usage traffic = {plan->topology.ranks_per_host, usage};
    if (planned->kind == PH_SHARD_DATA_PARALLEL)
        use_replicas(plan, facts, step, usage);
    else
        use_shards(plan, planned, facts, step, counts, usage);
    ph__table_traffic(plan, table, facts, step, counts, use_link, &traffic);
}

/* ---- seconds ---- */

void ph__usage_seconds(const struct ph__plan_machine *machine, const struct ph__topology *topology,
    const struct ph__rank_usage *usage, double *seconds_out)
{
    const size_t num_local = topology->ranks_per_host;
    for (size_t first = 0; first < topology->world_size; first += num_local) {
        double sent = 0, received = 0;
        for (size_t rank = first; rank < first + num_local; rank++) {
            sent += usage[rank].network_sent;
            received += usage[rank].network_received;
        }
        for (size_t rank = first; rank < first + num_local; rank++)
            seconds_out[rank] =
                usage[rank].touched_bytes / machine->memory_bytes_per_s +
                fmax(usage[rank].host_sent, usage[rank].host_received) / machine->host_bytes_per_s +
                fmax(sent, received) / machine->network_bytes_per_s;
    }
}

/* ---- loads ---- */

static ph_status add_usage(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, struct ph__rank_usage *usage)
{
    struct ph__arena arena = {0};
    struct ph__table_counts counts;
    const ph_status status = ph__expected_counts(plan, table, facts, step, &arena, &counts);
    if (status == PH_OK)
        ph__table_usage(plan, table, facts, step, &counts, usage);
    ph__arena_fini(&arena);
    return status;
}

static void add_sent(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    struct ph__plan_load *loads = context;
    (void)what;
    (void)to;
    loads[from].sent_bytes += bytes;
}

static ph_status find_loads(const struct ph__plan *plan, const struct ph__plan_machine *machine,
    const struct ph__plan_step *step, const struct ph__table_facts *tables, struct ph__arena *arena,
    struct ph__plan_load *loads_out)
{
    const size_t world_size = plan->topology.world_size;
    struct ph__rank_usage *usage = ph__arena_alloc_array(arena, world_size, sizeof *usage);
    double *seconds = ph__arena_alloc_array(arena, world_size, sizeof *seconds);
    if (usage == NULL || seconds == NULL)
        return PH_ERROR_MEMORY;
    struct traffic_usage traffic = {plan->topology.ranks_per_host, usage};
    for (size_t i = 0; i < plan->num_tables; i++)
        PH_TRY(add_usage(plan, i, &tables[i], step, usage));
    ph__tower_traffic(plan, step, use_link, &traffic);
    ph__usage_seconds(machine, &plan->topology, usage, seconds);
    for (size_t i = 0; i < world_size; i++)
        loads_out[i] = (struct ph__plan_load){.bytes = usage[i].held_bytes,
            .seconds = seconds[i],
            .compute_seconds = usage[i].touched_bytes / machine->memory_bytes_per_s};
    return expected_traffic(plan, tables, step, add_sent, loads_out);
}

ph_status ph__plan_loads(const struct ph__plan *plan, const struct ph__plan_machine *machine,
    const struct ph__plan_step *step, const struct ph__table_facts *tables, struct ph__plan_load *loads_out)
{
    struct ph__arena arena = {0};
    const ph_status status = find_loads(plan, machine, step, tables, &arena, loads_out);
    ph__arena_fini(&arena);
    return status;
}

/* ---- links ---- */

struct adding {
    const struct ph__plan_links *links;
    size_t ranks_per_end; /* number of ranks at one end of a link */
};

static void add_bytes(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    const struct adding *adding = context;
    const size_t sender = from / adding->ranks_per_end, receiver = to / adding->ranks_per_end;
    (void)what;
    if (sender != receiver)
        adding->links->bytes[sender * adding->links->count + receiver] += bytes;
}

ph_status ph__plan_links_find(const struct ph__plan *plan, const struct ph__plan_step *step,
    const struct ph__plan_dense *dense, const struct ph__table_facts *tables, size_t most,
    struct ph__arena *arena, struct ph__plan_links *links_out)
{
    const struct ph__topology *topology = &plan->topology;
    const bool are_hosts = topology->world_size > most;
    struct adding adding = {links_out, are_hosts ? topology->ranks_per_host : 1};
    const size_t count = topology->world_size / adding.ranks_per_end;
    if (count > most) {
        *links_out = (struct ph__plan_links){0};
        return PH_OK;
    }
    *links_out = (struct ph__plan_links){
        are_hosts, count, ph__arena_alloc_array(arena, count * count, sizeof *links_out->bytes)};
    if (links_out->bytes == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(expected_traffic(plan, tables, step, add_bytes, &adding));
    ph__units_traffic(plan, dense, add_bytes, &adding);
    ph__dense_traffic(plan, dense, add_bytes, &adding);
    return PH_OK;
}
