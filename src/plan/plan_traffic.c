#include "plan/plan_traffic.h"

#include "base/sizes.h"

#define WORD_BYTES 4.0 /* a length, an id, a weight, a sum of squares, a row's number */

/* One table while its messages are gone through. */
struct table_messages {
    const struct ph_plan *plan;
    const struct ph_plan_table *table;
    const struct ph_table_shard *shards; /* its own */
    const struct ph_table_facts *facts;
    const struct ph_plan_step *step;
    const struct ph_table_counts *counts;
    ph_traffic_visit visit;
    void *context;
};

const char *ph__traffic_name(enum ph_traffic what)
{
    static const char *const names[] = {
#define TRAFFIC_NAME(name, text) text,
        PH_TRAFFIC_LIST(TRAFFIC_NAME)
#undef TRAFFIC_NAME
    };
    return names[what];
}

size_t ph__plan_samples(const struct ph_topology *topology, size_t batch_size, size_t rank)
{
    const size_t world_size = topology->world_size;
    return batch_size * (rank + 1) / world_size - batch_size * rank / world_size;
}

bool ph__shard_is_summed_on_host(
    const struct ph_plan *plan, const struct ph_plan_table *table, const struct ph_table_shard *shard)
{
    const bool is_cut = shard->num_rows < table->num_rows;
    return is_cut && plan->topology.ranks_per_host < plan->topology.world_size &&
           (table->kind == PH_SHARD_TABLE_ROW_WISE || table->kind == PH_SHARD_GRID);
}

static void send(
    const struct table_messages *messages, enum ph_traffic what, size_t from, size_t to, double bytes)
{
    if (from != to)
        messages->visit(messages->context, what, from, to, bytes);
}

/* Bags of a rank: a length each, and a pooled vector each. */
static double bags_of(const struct table_messages *messages, size_t rank)
{
    return (double)messages->facts->num_features *
           (double)ph__plan_samples(&messages->plan->topology, messages->step->batch_size, rank);
}

static double vector_bytes(const struct ph_plan_wire *wire, size_t columns)
{
    return (double)(columns * wire->number_bytes + wire->vector_bytes);
}

/* ---- ids -------------------------------------------------------------------------------------------------- */

static void send_ids(const struct table_messages *messages)
{
    const size_t num_shards = messages->table->num_shards;
    for (size_t rank = 0; rank < messages->plan->topology.world_size; rank++)
        for (size_t i = 0; i < num_shards; i++) {
            const size_t owner = messages->shards[i].rank;
            const double bytes = WORD_BYTES * messages->counts->ids[rank * num_shards + i];
            send(messages, PH_TRAFFIC_LENGTHS, rank, owner, WORD_BYTES * bags_of(messages, rank));
            send(messages, PH_TRAFFIC_IDS, rank, owner, bytes);
            if (messages->step->has_id_weights)
                send(messages, PH_TRAFFIC_WEIGHTS, rank, owner, bytes);
        }
}

/* ---- pooled vectors and their gradients ------------------------------------------------------------------- */

/* So many vectors of a shard's columns, forward, and their gradients back. */
static void send_vectors(const struct table_messages *messages, const struct ph_table_shard *shard,
    size_t from, size_t to, double num_vectors)
{
    const struct ph_plan_step *step = messages->step;
    send(messages, PH_TRAFFIC_POOLED, from, to,
        num_vectors * vector_bytes(&step->pooled_wire, shard->num_columns));
    send(messages, PH_TRAFFIC_GRADIENTS, to, from,
        num_vectors * vector_bytes(&step->gradient_wire, shard->num_columns));
}

static void send_to_all(const struct table_messages *messages, const struct ph_table_shard *shard)
{
    for (size_t rank = 0; rank < messages->plan->topology.world_size; rank++)
        send_vectors(messages, shard, shard->rank, rank, bags_of(messages, rank));
}

/* From the owner to the ranks of its host; of a column run's first shard also from these on to their peers. */
static void send_over_host(const struct table_messages *messages, const struct ph_table_shard *shard)
{
    const struct ph_topology *topology = &messages->plan->topology;
    const size_t num_local = topology->ranks_per_host;
    const size_t first_of_host = shard->rank / num_local * num_local;
    for (size_t local = 0; local < num_local; local++) {
        const size_t gatherer = first_of_host + local;
        double num_bags = 0;
        for (size_t peer = local; peer < topology->world_size; peer += num_local) {
            num_bags += bags_of(messages, peer);
            if (shard->first_row == 0)
                send_vectors(messages, shard, gatherer, peer, bags_of(messages, peer));
        }
        send_vectors(messages, shard, shard->rank, gatherer, num_bags);
    }
}

/* ---- updates ------------------------------------------------------------------------------------------------ */

static void send_squares(const struct table_messages *messages)
{
    const struct ph_table_shard *shards = messages->shards;
    for (size_t i = 0; i < messages->table->num_shards; i++) {
        const double sums = (double)ph__divide_up(shards[i].num_columns, PH_SHARD_COLUMNS);
        for (size_t j = 0; j < messages->table->num_shards; j++)
            if (shards[i].first_row == shards[j].first_row)
                send(messages, PH_TRAFFIC_SQUARES, shards[i].rank, shards[j].rank,
                    WORD_BYTES * sums * messages->counts->distinct_rows[i]);
    }
}

static void send_replicas(const struct table_messages *messages)
{
    const size_t world_size = messages->plan->topology.world_size;
    const double row_bytes = WORD_BYTES + vector_bytes(&messages->step->gradient_wire, messages->facts->dim);
    for (size_t from = 0; from < world_size; from++)
        for (size_t to = 0; to < world_size; to++)
            send(messages, PH_TRAFFIC_REPLICAS, from, to, row_bytes * messages->counts->rank_rows[from]);
}

void ph__table_traffic(const struct ph_plan *plan, size_t table, const struct ph_table_facts *facts,
    const struct ph_plan_step *step, const struct ph_table_counts *counts, ph_traffic_visit visit,
    void *context)
{
    const struct ph_plan_table *planned = &plan->tables[table];
    const struct table_messages messages = {
        plan, planned, plan->shards + planned->first_shard, facts, step, counts, visit, context};
    if (planned->kind == PH_SHARD_DATA_PARALLEL) {
        send_replicas(&messages);
        return;
    }
    send_ids(&messages);
    for (size_t i = 0; i < planned->num_shards; i++)
        (ph__shard_is_summed_on_host(plan, planned, &messages.shards[i]) ? send_over_host : send_to_all)(
            &messages, &messages.shards[i]);
    if (facts->row_slot_bytes > 0)
        send_squares(&messages);
}

/* ---- of all tables ------------------------------------------------------------------------------------------ */

struct matrix {
    size_t world_size;
    double *bytes; /* [what][from][to] */
};

static void add_message(void *context, enum ph_traffic what, size_t from, size_t to, double bytes)
{
    const struct matrix *matrix = context;
    matrix->bytes[((size_t)what * matrix->world_size + from) * matrix->world_size + to] += bytes;
}

void ph__plan_traffic(const struct ph_plan *plan, const struct ph_table_facts *tables,
    const struct ph_plan_step *step, const struct ph_table_counts *counts, double *bytes_out)
{
    struct matrix matrix = {plan->topology.world_size, bytes_out};
    const size_t count = PH_TRAFFIC_COUNT * matrix.world_size * matrix.world_size;
    for (size_t i = 0; i < count; i++)
        bytes_out[i] = 0;
    for (size_t i = 0; i < plan->num_tables; i++)
        ph__table_traffic(plan, i, &tables[i], step, &counts[i], add_message, &matrix);
}
