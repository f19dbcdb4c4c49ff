/* Traffic against batches that are walked sample by sample and id by id, each message sent for itself. */
#include "unit/plan/plan_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan_traffic.h"

enum { MAX_ROWS = 20, MAX_BATCH = 30, MAX_BAG = 3, MAX_FEATURES = MAX_TABLES * MAX_READS, TRIALS = 300 };
enum { MAX_STREAMS = MAX_FEATURES * MAX_WORLD };

typedef double matrices[PH_TRAFFIC_COUNT][MAX_WORLD][MAX_WORLD];

struct batch {
    size_t num_samples;
    size_t lengths[MAX_FEATURES][MAX_BATCH];
    uint64_t ids[MAX_FEATURES][MAX_BATCH][MAX_BAG];
};

static void draw_batch(struct drawing *drawing, struct batch *batch)
{
    batch->num_samples = draw(drawing, MAX_BATCH + 1);
    for (size_t t = 0; t < drawing->num_tables; t++)
        for (size_t f = t * MAX_READS; f < (t + 1) * MAX_READS; f++)
            for (size_t b = 0; b < batch->num_samples; b++) {
                batch->lengths[f][b] = draw(drawing, MAX_BAG + 1);
                for (size_t i = 0; i < batch->lengths[f][b]; i++)
                    batch->ids[f][b][i] = draw(drawing, drawing->tables[t].num_rows);
            }
}

/* Whose sample it is, by looking for it. */
static size_t rank_of_sample(const struct drawing *drawing, const struct batch *batch, size_t sample)
{
    const size_t world_size = drawing->topology.world_size;
    size_t rank = 0;
    while (sample >= batch->num_samples * (rank + 1) / world_size)
        rank++;
    return rank;
}

static bool has_row(const struct ph__table_shard *shard, uint64_t row)
{
    return row >= shard->first_row && row < shard->first_row + shard->num_rows;
}

/* ---- the oracle ---- */

/* A run of a feature's rows that a rank is asked for. */
struct stream {
    uint32_t rank, feature;
    uint64_t first_row, num_rows;
};

struct walk {
    const struct drawing *drawing;
    const struct batch *batch;
    const struct ph__plan *plan;
    const struct ph__plan_step *step;
    size_t table;
    bool names[MAX_WORLD][MAX_ROWS];    /* rows that a rank's samples name */
    struct stream streams[MAX_STREAMS]; /* of the tables so far */
    size_t num_streams;
    bool has_replicas[3]; /* by parameter */
    matrices *sent;
};

static void carry(struct walk *walk, enum ph__traffic what, size_t from, size_t to, size_t bytes)
{
    if (from != to)
        (*walk->sent)[what][from][to] += (double)bytes;
}

static void carry_vector(struct walk *walk, size_t from, size_t to, size_t columns)
{
    const struct ph__plan_wire *pooled = &walk->step->pooled_wire, *gradient = &walk->step->gradient_wire;
    carry(walk, PH_TRAFFIC_POOLED, from, to, columns * pooled->number_bytes + pooled->vector_bytes);
    carry(walk, PH_TRAFFIC_GRADIENTS, to, from, columns * gradient->number_bytes + gradient->vector_bytes);
}

/* A bag's vector on its way: over the owner's host where the kind says so. */
static void walk_vector(struct walk *walk, const struct ph__table_shard *shard, size_t rank)
{
    const struct ph__plan_table *table = &walk->plan->tables[walk->table];
    const size_t num_local = walk->drawing->topology.ranks_per_host;
    const bool is_of_host = table->kind == PH_SHARD_TABLE_ROW_WISE || table->kind == PH_SHARD_GRID;
    size_t next = rank;
    if (is_of_host && shard->num_rows < table->num_rows && num_local < walk->drawing->topology.world_size)
        next = shard->rank - shard->rank % num_local + rank % num_local;
    carry_vector(walk, shard->rank, next, shard->num_columns);
    if (shard->first_row == 0) /* one sum goes on, whatever number of parts it has */
        carry_vector(walk, next, rank, shard->num_columns);
}

/* Whether nothing before has asked that rank for these rows of the feature. */
static bool is_new_stream(struct walk *walk, const struct ph__table_shard *shard, uint32_t feature)
{
    for (size_t i = 0; i < walk->num_streams; i++) {
        const struct stream *stream = &walk->streams[i];
        if (stream->rank == shard->rank && stream->feature == feature &&
            stream->first_row == shard->first_row && stream->num_rows == shard->num_rows)
            return false;
    }
    walk->streams[walk->num_streams++] =
        (struct stream){shard->rank, feature, shard->first_row, shard->num_rows};
    return true;
}

static size_t count_ids(
    const struct walk *walk, const struct ph__table_shard *shard, size_t feature, size_t sample)
{
    size_t count = 0;
    for (size_t i = 0; i < walk->batch->lengths[feature][sample]; i++)
        count += has_row(shard, walk->batch->ids[feature][sample][i]);
    return count;
}

static void ask(struct walk *walk, const struct ph__table_shard *shard, uint32_t feature)
{
    for (size_t b = 0; b < walk->batch->num_samples; b++) {
        const size_t rank = rank_of_sample(walk->drawing, walk->batch, b);
        const size_t count = count_ids(walk, shard, feature, b);
        carry(walk, PH_TRAFFIC_LENGTHS, rank, shard->rank, 4);
        carry(walk, PH_TRAFFIC_IDS, rank, shard->rank, 4 * count);
        if (walk->step->has_id_weights)
            carry(walk, PH_TRAFFIC_WEIGHTS, rank, shard->rank, 4 * count);
    }
}

static void answer(struct walk *walk, const struct ph__table_shard *shard, struct ph__table_read read)
{
    for (size_t b = 0; b < walk->batch->num_samples; b++) {
        const size_t rank = rank_of_sample(walk->drawing, walk->batch, b);
        const size_t count = count_ids(walk, shard, read.feature, b);
        for (size_t i = 0; read.is_of_items && i < count; i++)
            carry_vector(walk, shard->rank, rank, shard->num_columns);
        if (!read.is_of_items)
            walk_vector(walk, shard, rank);
    }
}

static void name_rows(struct walk *walk, uint32_t feature)
{
    for (size_t b = 0; b < walk->batch->num_samples; b++)
        for (size_t i = 0; i < walk->batch->lengths[feature][b]; i++)
            walk->names[rank_of_sample(walk->drawing, walk->batch, b)][walk->batch->ids[feature][b][i]] =
                true;
}

static void walk_read(struct walk *walk, struct ph__table_read read)
{
    const struct ph__plan_table *table = &walk->plan->tables[walk->table];
    name_rows(walk, read.feature);
    for (size_t s = 0; s < table->num_shards; s++) {
        const struct ph__table_shard *shard = &walk->plan->shards[table->first_shard + s];
        if (is_new_stream(walk, shard, read.feature))
            ask(walk, shard, read.feature);
        answer(walk, shard, read);
    }
}

static bool is_named(const struct walk *walk, uint64_t row)
{
    for (size_t rank = 0; rank < walk->drawing->topology.world_size; rank++)
        if (walk->names[rank][row])
            return true;
    return false;
}

/* The sums of four squares of a gradient row, from each owner of some of its columns to all others. */
static void walk_squares(struct walk *walk, uint64_t row)
{
    const struct ph__plan_table *table = &walk->plan->tables[walk->table];
    for (size_t s = 0; s < table->num_shards && is_named(walk, row); s++)
        for (size_t o = 0; o < table->num_shards; o++) {
            const struct ph__table_shard *shard = &walk->plan->shards[table->first_shard + s],
                                         *other = &walk->plan->shards[table->first_shard + o];
            if (has_row(shard, row) && has_row(other, row))
                for (size_t column = 0; column < shard->num_columns; column += 4)
                    carry(walk, PH_TRAFFIC_SQUARES, shard->rank, other->rank, 4);
        }
}

static void walk_replicas(struct walk *walk, uint64_t row)
{
    const size_t world_size = walk->drawing->topology.world_size;
    for (size_t from = 0; from < world_size; from++)
        for (size_t to = 0; to < world_size; to++)
            if (walk->names[from][row])
                carry(walk, PH_TRAFFIC_REPLICAS, from, to, 4 + 4 * walk->drawing->tables[walk->table].dim);
}

static void carry_everywhere(struct walk *walk, enum ph__traffic what, size_t bytes)
{
    for (size_t from = 0; from < walk->drawing->topology.world_size; from++)
        for (size_t to = 0; to < walk->drawing->topology.world_size; to++)
            carry(walk, what, from, to, bytes);
}

static void walk_table(struct walk *walk)
{
    const struct ph__table_facts *facts = &walk->drawing->tables[walk->table];
    memset(walk->names, 0, sizeof walk->names);
    const bool is_replica = walk->plan->tables[walk->table].kind == PH_SHARD_DATA_PARALLEL;
    for (size_t f = 0; f < facts->num_features; f++)
        walk_read(walk, facts->reads[f]);
    if (is_replica && !walk->has_replicas[facts->parameter])
        carry_everywhere(walk, PH_TRAFFIC_REPLICAS, 8);
    walk->has_replicas[facts->parameter] = walk->has_replicas[facts->parameter] || is_replica;
    for (uint64_t row = 0; row < facts->num_rows; row++)
        if (is_replica)
            walk_replicas(walk, row);
        else if (facts->row_slot_bytes > 0)
            walk_squares(walk, row);
}

/* ---- counts of the batch, as the functions want them ---- */

struct counted {
    double ids[MAX_READS * MAX_WORLD * MAX_WORLD], distinct_rows[MAX_WORLD], rank_rows[MAX_WORLD];
};

static void count_table(const struct walk *walk, struct counted *counted)
{
    const struct ph__plan_table *table = &walk->plan->tables[walk->table];
    const struct ph__table_facts *facts = &walk->drawing->tables[walk->table];
    const size_t world_size = walk->drawing->topology.world_size;
    *counted = (struct counted){0};
    for (size_t s = 0; s < table->num_shards; s++) {
        const struct ph__table_shard *shard = &walk->plan->shards[table->first_shard + s];
        for (size_t f = 0; f < facts->num_features; f++)
            for (size_t b = 0; b < walk->batch->num_samples; b++) {
                const size_t rank = rank_of_sample(walk->drawing, walk->batch, b);
                counted->ids[(f * world_size + rank) * table->num_shards + s] +=
                    (double)count_ids(walk, shard, facts->reads[f].feature, b);
            }
        for (uint64_t row = 0; row < facts->num_rows; row++)
            counted->distinct_rows[s] += has_row(shard, row) && is_named(walk, row);
    }
    for (size_t rank = 0; rank < walk->drawing->topology.world_size; rank++)
        for (uint64_t row = 0; row < facts->num_rows; row++)
            counted->rank_rows[rank] += walk->names[rank][row];
}

static void expect_equal(const struct drawing *drawing, const double *bytes, matrices wanted)
{
    const size_t world_size = drawing->topology.world_size;
    for (size_t what = 0; what < PH_TRAFFIC_COUNT; what++)
        for (size_t from = 0; from < world_size; from++)
            for (size_t to = 0; to < world_size; to++)
                assert_true(bytes[(what * world_size + from) * world_size + to] == wanted[what][from][to]);
}

static void traffic_is_that_of_a_walk_over_the_batch(void **state)
{
    (void)state;
    static struct batch batch;
    static matrices sent;
    static double bytes[PH_TRAFFIC_COUNT * MAX_WORLD * MAX_WORLD];
    static struct counted counted[MAX_TABLES];
    struct drawing drawing = {.rng = {.key = {.seed = test_seed()}}};
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct ph__plan plan;
        struct ph__table_counts counts[MAX_TABLES];
        draw_topology(&drawing);
        draw_tables(&drawing, MAX_ROWS);
        draw_choices(&drawing);
        build_drawn(&drawing, &plan);
        draw_batch(&drawing, &batch);
        const struct ph__plan_step step = {
            batch.num_samples, trial % 2 == 0, {1 + trial % 4, trial % 3}, {1 + trial % 3, trial % 5}};
        memset(sent, 0, sizeof sent);
        static struct walk walk;
        walk =
            (struct walk){.drawing = &drawing, .batch = &batch, .plan = &plan, .step = &step, .sent = &sent};
        carry_everywhere(&walk, PH_TRAFFIC_LENGTHS, 12);
        for (walk.table = 0; walk.table < drawing.num_tables; walk.table++) {
            walk_table(&walk);
            count_table(&walk, &counted[walk.table]);
            counts[walk.table] = (struct ph__table_counts){
                counted[walk.table].ids, counted[walk.table].distinct_rows, counted[walk.table].rank_rows};
        }
        ph__plan_traffic(&plan, drawing.tables, &step, counts, bytes);
        expect_equal(&drawing, bytes, sent);
        ph__plan_fini(&plan);
    }
}

/* ---- and two by hand ---- */

static double bytes_between(const double *bytes, enum ph__traffic what, size_t from, size_t to)
{
    return bytes[((size_t)what * 4 + from) * 4 + to];
}

static void a_table_on_one_host_sends_to_its_ranks_and_from_there_to_their_peers(void **state)
{
    (void)state;
    const struct ph__topology topology = {4, 2};
    const struct ph__table_facts facts = {"t", 10, 8, 3, 3, 32, 4, 4, 0, NULL, false, NULL, NULL};
    static const uint32_t host[] = {0};
    const struct ph__plan_choice choice = {PH_SHARD_TABLE_ROW_WISE, host, 1, NULL};
    const struct ph__plan_step step = {8, false, {2, 0}, {1, 4}};
    static const double ids[24] = {6, 0, 5, 1, 4, 1, 3, 3, [13] = 1}, rows[2] = {5, 4}, rank_rows[4] = {0};
    const struct ph__table_counts counts = {ids, rows, rank_rows};
    double bytes[PH_TRAFFIC_COUNT * 16];
    struct ph__plan plan;
    assert_ok(ph__plan_build(&topology, &facts, 1, &choice, &plan));
    ph__plan_traffic(&plan, &facts, &step, &counts, bytes);
    assert_true(bytes_between(bytes, PH_TRAFFIC_LENGTHS, 3, 1) == 12 + 4 * 3 * 2);
    assert_true(bytes_between(bytes, PH_TRAFFIC_IDS, 2, 1) == 4 * 2);
    assert_true(bytes_between(bytes, PH_TRAFFIC_POOLED, 0, 1) == 3 * (2 + 2) * 8 * 2);
    assert_true(bytes_between(bytes, PH_TRAFFIC_POOLED, 1, 3) == 3 * 2 * 8 * 2);
    assert_true(bytes_between(bytes, PH_TRAFFIC_POOLED, 0, 3) == 0);
    assert_true(bytes_between(bytes, PH_TRAFFIC_GRADIENTS, 3, 1) == 3 * 2 * (8 + 4));
    assert_true(bytes_between(bytes, PH_TRAFFIC_GRADIENTS, 1, 0) == 3 * 4 * (8 + 4));
    assert_true(bytes_between(bytes, PH_TRAFFIC_SQUARES, 0, 1) == 0);
    ph__plan_fini(&plan);
}

static void uneven_batches_are_dealt_by_the_samples_place(void **state)
{
    (void)state;
    const struct ph__topology topology = {4, 4};
    assert_int_equal(ph__plan_samples(&topology, 6, 0), 1);
    assert_int_equal(ph__plan_samples(&topology, 6, 1), 2);
    assert_int_equal(ph__plan_samples(&topology, 6, 2), 1);
    assert_int_equal(ph__plan_samples(&topology, 6, 3), 2);
    assert_int_equal(ph__plan_samples(&topology, 0, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_is_that_of_a_walk_over_the_batch),
        cmocka_unit_test(a_table_on_one_host_sends_to_its_ranks_and_from_there_to_their_peers),
        cmocka_unit_test(uneven_batches_are_dealt_by_the_samples_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
