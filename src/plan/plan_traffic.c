#include "plan/plan_traffic.h"

#include "base/sizes.h"

#define WORD_BYTES \
    4.0 /* of a length, id, weight, sum of squares, row's number, or number of a replica's row */
#define HEADER_BYTES 12.0 /* before the lengths: samples and ids of the batch */
#define COUNT_BYTES 8.0   /* number of a replicated parameter's rows */

const char *ph__traffic_name(enum ph__traffic what)
{
    static const char *const names[] = {
#define TRAFFIC_NAME(name, text) text,
        PH_TRAFFIC_LIST(TRAFFIC_NAME)
#undef TRAFFIC_NAME
    };
    return names[what];
}

bool ph__shard_is_summed_on_host(
    const struct ph__plan *plan, const struct ph__plan_table *table, const struct ph__table_shard *shard)
{
    const bool is_cut = shard->num_rows < table->num_rows;
    return is_cut && plan->topology.ranks_per_host < plan->topology.world_size &&
           (table->kind == PH_SHARD_TABLE_ROW_WISE || table->kind == PH_SHARD_GRID);
}

size_t ph__plan_samples(const struct ph__topology *topology, size_t batch_size, size_t rank)
{
    const size_t world_size = topology->world_size;
    return ph__range_start(batch_size, rank + 1, world_size) - ph__range_start(batch_size, rank, world_size);
}

/* ---- messages of one table ---- */

/* One table, while its messages are visited. */
struct table_messages {
    const struct ph__plan *plan;
    const struct ph__plan_table *table;
    const struct ph__table_shard *shards; /* the table's */
    const struct ph__table_facts *facts;
    size_t num_before; /* tables before this one whose streams serve this one, too */
    const struct ph__plan_step *step;
    const struct ph__table_counts *counts;
    ph__traffic_visit visit;
    void *context;
};

static void send(
    const struct table_messages *messages, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    if (from != to)
        messages->visit(messages->context, what, from, to, bytes);
}

static double samples_of(const struct table_messages *messages, size_t rank)
{
    return (double)ph__plan_samples(&messages->plan->topology, messages->step->batch_size, rank);
}

/* Returns how many ids of a read and a rank's samples name a row of the shard. */
static double ids_of(const struct table_messages *messages, size_t read, size_t rank, size_t shard)
{
    const size_t row = read * messages->plan->topology.world_size + rank;
    return messages->counts->ids[row * messages->table->num_shards + shard];
}

static double vector_bytes(const struct ph__plan_wire *wire, size_t columns)
{
    return (double)(columns * wire->number_bytes + wire->vector_bytes);
}

/* ---- ids ---- */

static bool reads_feature(const struct ph__table_facts *facts, size_t num_reads, uint32_t feature)
{
    for (size_t i = 0; facts->reads != NULL && i < num_reads; i++)
        if (facts->reads[i].feature == feature)
            return true;
    return false;
}

static bool has_rows_at(
    const struct ph__plan *plan, const struct ph__plan_table *table, const struct ph__table_shard *wanted)
{
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[table->first_shard + i];
        if (shard->rank == wanted->rank && shard->first_row == wanted->first_row &&
            shard->num_rows == wanted->num_rows)
            return true;
    }
    return false;
}

/* Returns true when the stream of another read, of this table or of one before it, serves this read of the
 * shard. */
static bool has_stream(
    const struct table_messages *messages, size_t read, const struct ph__table_shard *shard)
{
    const struct ph__table_facts *facts = messages->facts;
    if (facts->reads == NULL)
        return false;
    const uint32_t feature = facts->reads[read].feature;
    if (reads_feature(facts, read, feature))
        return true;
    for (size_t i = 1; i <= messages->num_before; i++)
        if (reads_feature(facts - i, (facts - i)->num_features, feature) &&
            has_rows_at(messages->plan, messages->table - i, shard))
            return true;
    return false;
}

static void send_stream(const struct table_messages *messages, size_t read, size_t shard)
{
    for (size_t rank = 0; rank < messages->plan->topology.world_size; rank++) {
        const size_t owner = messages->shards[shard].rank;
        const double bytes = WORD_BYTES * ids_of(messages, read, rank, shard);
        send(messages, PH_TRAFFIC_LENGTHS, rank, owner, WORD_BYTES * samples_of(messages, rank));
        send(messages, PH_TRAFFIC_IDS, rank, owner, bytes);
        if (messages->step->has_id_weights)
            send(messages, PH_TRAFFIC_WEIGHTS, rank, owner, bytes);
    }
}

static void send_ids(const struct table_messages *messages)
{
    for (size_t read = 0; read < messages->facts->num_features; read++)
        for (size_t shard = 0; shard < messages->table->num_shards; shard++)
            if (!has_stream(messages, read, &messages->shards[shard]))
                send_stream(messages, read, shard);
}

/* ---- vectors and their gradients ---- */

/* Sends num_vectors vectors of a shard's columns, forward, and their gradients back. */
static void send_vectors(const struct table_messages *messages, const struct ph__table_shard *shard,
    size_t from, size_t to, double num_vectors)
{
    const struct ph__plan_step *step = messages->step;
    send(messages, PH_TRAFFIC_POOLED, from, to,
        num_vectors * vector_bytes(&step->pooled_wire, shard->num_columns));
    send(messages, PH_TRAFFIC_GRADIENTS, to, from,
        num_vectors * vector_bytes(&step->gradient_wire, shard->num_columns));
}

static void send_items(const struct table_messages *messages, size_t read, size_t shard)
{
    for (size_t rank = 0; rank < messages->plan->topology.world_size; rank++)
        send_vectors(messages, &messages->shards[shard], messages->shards[shard].rank, rank,
            ids_of(messages, read, rank, shard));
}

static void send_to_all(const struct table_messages *messages, const struct ph__table_shard *shard)
{
    for (size_t rank = 0; rank < messages->plan->topology.world_size; rank++)
        send_vectors(messages, shard, shard->rank, rank, samples_of(messages, rank));
}

/* Sends from the owner to the ranks of its host and, for a column run's first shard unless a tower reads it,
 * from these ranks to their peers. */
static void send_over_host(const struct table_messages *messages, const struct ph__table_shard *shard)
{
    const struct ph__topology *topology = &messages->plan->topology;
    const size_t num_local = topology->ranks_per_host;
    const size_t first_of_host = shard->rank / num_local * num_local;
    const bool crosses_hosts = shard->first_row == 0 && messages->table->tower == NULL;
    for (size_t local = 0; local < num_local; local++) {
        const size_t summing = first_of_host + local;
        double num_samples = 0;
        for (size_t peer = local; peer < topology->world_size; peer += num_local) {
            num_samples += samples_of(messages, peer);
            if (crosses_hosts)
                send_vectors(messages, shard, summing, peer, samples_of(messages, peer));
        }
        send_vectors(messages, shard, shard->rank, summing, num_samples);
    }
}

static void send_read(const struct table_messages *messages, size_t read, size_t shard)
{
    const struct ph__table_facts *facts = messages->facts;
    const struct ph__table_shard *of = &messages->shards[shard];
    if (facts->reads != NULL && facts->reads[read].is_of_items)
        send_items(messages, read, shard);
    else if (messages->table->tower != NULL ||
             ph__shard_is_summed_on_host(messages->plan, messages->table, of))
        send_over_host(messages, of);
    else
        send_to_all(messages, of);
}

/* ---- updates ---- */

static void send_squares(const struct table_messages *messages)
{
    const struct ph__table_shard *shards = messages->shards;
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
    const double row_bytes = WORD_BYTES * (double)(1 + messages->facts->dim);
    for (size_t from = 0; from < world_size; from++)
        for (size_t to = 0; to < world_size; to++)
            send(messages, PH_TRAFFIC_REPLICAS, from, to, row_bytes * messages->counts->rank_rows[from]);
}

static void send_table(const struct table_messages *messages)
{
    if (messages->table->kind == PH_SHARD_DATA_PARALLEL) {
        send_replicas(messages);
        return;
    }
    send_ids(messages);
    for (size_t read = 0; read < messages->facts->num_features; read++)
        for (size_t shard = 0; shard < messages->table->num_shards; shard++)
            send_read(messages, read, shard);
    if (messages->facts->row_slot_bytes > 0)
        send_squares(messages);
}

void ph__table_traffic(const struct ph__plan *plan, size_t table, const struct ph__table_facts *facts,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, ph__traffic_visit visit,
    void *context)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    send_table(&(struct table_messages){
        plan, planned, plan->shards + planned->first_shard, facts, 0, step, counts, visit, context});
}

/* ---- messages of all tables ---- */

/* Sends `bytes` from each rank to each other. */
static void send_everywhere(
    size_t world_size, enum ph__traffic what, double bytes, ph__traffic_visit visit, void *context)
{
    for (size_t from = 0; from < world_size; from++)
        for (size_t to = 0; to < world_size; to++)
            if (from != to)
                visit(context, what, from, to, bytes);
}

/* Returns true when the table is the first replicated one of its parameter. */
static bool is_first_replica(const struct ph__plan *plan, const struct ph__table_facts *tables, size_t table)
{
    if (plan->tables[table].kind != PH_SHARD_DATA_PARALLEL)
        return false;
    for (size_t i = 0; i < table; i++)
        if (plan->tables[i].kind == PH_SHARD_DATA_PARALLEL && tables[i].parameter == tables[table].parameter)
            return false;
    return true;
}

void ph__shared_traffic(const struct ph__plan *plan, size_t table, const struct ph__table_facts *tables,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, ph__traffic_visit visit,
    void *context)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    send_table(&(struct table_messages){plan, planned, plan->shards + planned->first_shard, &tables[table],
        table, step, counts, visit, context});
}

void ph__tower_traffic(
    const struct ph__plan *plan, const struct ph__plan_step *step, ph__traffic_visit visit, void *context)
{
    const size_t num_local = plan->topology.ranks_per_host;
    for (size_t t = 0; t < plan->num_towers; t++) {
        const struct ph__plan_tower *tower = &plan->towers[t];
        for (size_t rank = 0; rank < plan->topology.world_size; rank++) {
            const size_t giver = tower->host * num_local + rank % num_local;
            const double num_vectors = (double)tower->of.num_vectors *
                                       (double)ph__plan_samples(&plan->topology, step->batch_size, rank);
            if (giver == rank)
                continue;
            visit(context, PH_TRAFFIC_POOLED, giver, rank,
                num_vectors * vector_bytes(&step->pooled_wire, tower->of.dim));
            visit(context, PH_TRAFFIC_GRADIENTS, rank, giver,
                num_vectors * vector_bytes(&step->gradient_wire, tower->of.dim));
        }
    }
}

void ph__batch_traffic(
    const struct ph__plan *plan, const struct ph__table_facts *tables, ph__traffic_visit visit, void *context)
{
    const size_t world_size = plan->topology.world_size;
    send_everywhere(world_size, PH_TRAFFIC_LENGTHS, HEADER_BYTES, visit, context);
    for (size_t i = 0; i < plan->num_tables; i++)
        if (is_first_replica(plan, tables, i))
            send_everywhere(world_size, PH_TRAFFIC_REPLICAS, COUNT_BYTES, visit, context);
}

/* ---- messages of dense parameters ---- */

/* A bucket that the members of a group sum: a part for each position. */
struct bucket {
    const struct ph__plan_sums *sums;
    enum ph__plan_sum kind;
    size_t size, num_units;
    double unit_bytes;
};

/* Returns the bytes of the parts of positions in a row, of which the bucket's first are a unit longer. */
static double part_bytes(const struct bucket *bucket, size_t first, size_t count)
{
    const size_t each = bucket->num_units / bucket->size, more = bucket->num_units % bucket->size;
    return bucket->unit_bytes * (double)(count * each + ph__min(first + count, more) - ph__min(first, more));
}

/* Returns what one member sends to another: the numbers that the other sums, and sums of its own. */
static double sent_bytes(const struct bucket *bucket, size_t from, size_t to)
{
    if (bucket->kind == PH_PLAN_RING)
        return to != (from + 1) % bucket->size ? 0
                                               : 2 * part_bytes(bucket, 0, bucket->size) -
                                                     part_bytes(bucket, from, 1) - part_bytes(bucket, to, 1);
    if (bucket->kind == PH_PLAN_EXCHANGE)
        return part_bytes(bucket, from, 1) + part_bytes(bucket, to, 1);
    const size_t a = bucket->sums->positions[from], b = bucket->sums->positions[to];
    const size_t num_groups = bucket->sums->num_groups;
    if (a % num_groups == b % num_groups)
        return part_bytes(bucket, a - a % num_groups, num_groups) +
               part_bytes(bucket, b - b % num_groups, num_groups);
    return a / num_groups == b / num_groups ? part_bytes(bucket, a, 1) + part_bytes(bucket, b, 1) : 0;
}

/* Visits the sum of a bucket over the group. */
static void sum_bucket(const struct ph__plan_group *group, const struct ph__plan_dense *dense,
    size_t num_numbers, ph__traffic_visit visit, void *context)
{
    const struct ph__plan_sums *sums = &dense->sums;
    const bool has_rows = dense->wire.vector_bytes > 0;
    struct bucket bucket = {.sums = sums,
        .size = group->size,
        .num_units = has_rows ? ph__divide_up(num_numbers, PH_DENSE_COLUMNS) : num_numbers,
        .unit_bytes = vector_bytes(&dense->wire, has_rows ? PH_DENSE_COLUMNS : 1)};
    const double bytes = bucket.unit_bytes * (double)bucket.num_units;
    for (size_t i = 0; group->size == sums->world_size && i < sums->num_ranges; i++)
        if ((double)sums->ranges[i].from_bytes <= bytes)
            bucket.kind = sums->ranges[i].kind;
    for (size_t from = 0; from < group->size; from++)
        for (size_t to = 0; to < group->size; to++)
            if (from != to)
                visit(context, PH_TRAFFIC_DENSE, group->first + from * group->stride,
                    group->first + to * group->stride, sent_bytes(&bucket, from, to));
}

void ph__sum_traffic(const struct ph__plan_group *group, const struct ph__plan_dense *dense,
    size_t num_numbers, ph__traffic_visit visit, void *context)
{
    for (size_t begin = 0; begin < num_numbers; begin += dense->bucket_numbers)
        sum_bucket(group, dense, ph__min(dense->bucket_numbers, num_numbers - begin), visit, context);
}

static size_t count_sharded(const struct ph__plan_units *units)
{
    size_t count = 0;
    for (size_t u = 0; u < units->num_units; u++)
        for (size_t k = 0; k < units->units[u].num_parameters; k++)
            count += units->units[u].parameters[k].rows * units->units[u].parameters[k].columns;
    return count;
}

void ph__dense_traffic(
    const struct ph__plan *plan, const struct ph__plan_dense *dense, ph__traffic_visit visit, void *context)
{
    const struct ph__topology *topology = &plan->topology;
    size_t num_numbers = dense->num_numbers - ph__min(dense->num_numbers, count_sharded(&plan->units));
    for (size_t host = 0; host < topology->world_size / topology->ranks_per_host; host++) {
        const struct ph__plan_group group = {host * topology->ranks_per_host, 1, topology->ranks_per_host};
        size_t of_host = 0;
        for (size_t t = 0; t < plan->num_towers; t++)
            of_host += plan->towers[t].host == host ? plan->towers[t].of.num_numbers : 0;
        num_numbers -= ph__min(num_numbers, of_host);
        ph__sum_traffic(&group, dense, of_host, visit, context);
    }
    const struct ph__plan_group world = {0, 1, topology->world_size};
    ph__sum_traffic(&world, dense, num_numbers, visit, context);
}

/* ---- a matrix of all messages ---- */

struct matrix {
    size_t world_size;
    double *bytes; /* [what][from][to] */
};

static void add_message(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    const struct matrix *matrix = context;
    matrix->bytes[((size_t)what * matrix->world_size + from) * matrix->world_size + to] += bytes;
}

void ph__plan_traffic(const struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_step *step, const struct ph__table_counts *counts, double *bytes_out)
{
    struct matrix matrix = {plan->topology.world_size, bytes_out};
    const size_t count = PH_TRAFFIC_COUNT * matrix.world_size * matrix.world_size;
    for (size_t i = 0; i < count; i++)
        bytes_out[i] = 0;
    for (size_t i = 0; i < plan->num_tables; i++)
        ph__shared_traffic(plan, i, tables, step, &counts[i], add_message, &matrix);
    ph__tower_traffic(plan, step, add_message, &matrix);
    ph__batch_traffic(plan, tables, add_message, &matrix);
}
