/* See step_theory.h. */
#include "step_theory.h"

#include <assert.h>
#include <string.h>

#include "comm/wire/wire_format.h"
#include "plan/plan_units.h"
#include "train/config/table_facts.h"

struct theory {
    const struct ph__train_job *job;
    const struct ph__topology *topology;
    struct ph__table_list list;
    struct ph__plan plan;
    double *bytes; /* [what][from][to] */
};

static struct ph__plan_wire wire_of(enum ph_wire_format wire)
{
    static const struct ph__plan_wire wires[PH_WIRE_COUNT] = {{4, 0}, {2, 0}, {2, 0}, {1, 4}};
    return wires[wire];
}

static void add_bytes(void *context, enum ph__traffic what, size_t from, size_t to, double bytes)
{
    const struct theory *theory = context;
    const size_t world_size = theory->topology->world_size;
    theory->bytes[((size_t)what * world_size + from) * world_size + to] += bytes;
}

/* ---- a batch's ids, counted one by one ---- */

static size_t rank_of_sample(const struct theory *theory, const struct ph_batch *batch, size_t sample)
{
    const size_t world_size = theory->topology->world_size;
    size_t rank = 0;
    while (sample >= batch->num_samples * (rank + 1) / world_size)
        rank++;
    return rank;
}

/* One table's counts, and what they are made of. */
struct counted {
    double *ids;    /* (num_features, world_size, num_shards) */
    bool *is_named; /* (world_size, num_rows) by a rank's samples */
    double *distinct_rows, *rank_rows;
};

static bool has_row(const struct ph__table_shard *shard, uint64_t row)
{
    return row >= shard->first_row && row - shard->first_row < shard->num_rows;
}

static void count_id(const struct theory *theory, size_t table, size_t read, size_t rank, uint64_t row,
    const struct counted *counted)
{
    const struct ph__plan_table *planned = &theory->plan.tables[table];
    double *ids = counted->ids + (read * theory->topology->world_size + rank) * planned->num_shards;
    for (size_t i = 0; i < planned->num_shards; i++)
        ids[i] += has_row(&theory->plan.shards[planned->first_shard + i], row);
    counted->is_named[rank * planned->num_rows + row] = true;
}

static void count_read(const struct theory *theory, const struct ph_batch *batch, size_t table, size_t read,
    const struct counted *counted)
{
    const size_t feature = theory->list.tables[table].reads[read].feature;
    for (size_t b = 0; b < batch->num_samples; b++) {
        const uint32_t *bag = batch->offsets + feature * batch->num_samples + b;
        for (size_t i = bag[0]; i < bag[1]; i++)
            count_id(theory, table, read, rank_of_sample(theory, batch, b), (uint64_t)batch->ids[i], counted);
    }
}

static void count_rows(const struct theory *theory, size_t table, const struct counted *counted)
{
    const struct ph__plan_table *planned = &theory->plan.tables[table];
    for (uint64_t row = 0; row < planned->num_rows; row++) {
        bool is_named = false;
        for (size_t rank = 0; rank < theory->topology->world_size; rank++) {
            counted->rank_rows[rank] += counted->is_named[rank * planned->num_rows + row];
            is_named = is_named || counted->is_named[rank * planned->num_rows + row];
        }
        for (size_t i = 0; i < planned->num_shards; i++)
            counted->distinct_rows[i] +=
                is_named && has_row(&theory->plan.shards[planned->first_shard + i], row);
    }
}

static ph_status count_table(const struct theory *theory, const struct ph_batch *batch, size_t table,
    struct ph__arena *arena, struct ph__table_counts *counts_out)
{
    const size_t world_size = theory->topology->world_size;
    const struct ph__plan_table *planned = &theory->plan.tables[table];
    const size_t num_reads = theory->list.tables[table].num_features;
    const struct counted counted = {
        .ids = ph__arena_alloc_array(arena, num_reads * world_size * planned->num_shards, sizeof(double)),
        .is_named = ph__arena_alloc_array(arena, world_size * planned->num_rows, sizeof(bool)),
        .distinct_rows = ph__arena_alloc_array(arena, planned->num_shards, sizeof(double)),
        .rank_rows = ph__arena_alloc_array(arena, world_size, sizeof(double))};
    if (counted.ids == NULL || counted.is_named == NULL || counted.distinct_rows == NULL ||
        counted.rank_rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t read = 0; read < num_reads; read++)
        count_read(theory, batch, table, read, &counted);
    count_rows(theory, table, &counted);
    *counts_out = (struct ph__table_counts){counted.ids, counted.distinct_rows, counted.rank_rows};
    return PH_OK;
}

/* ---- steps ---- */

static ph_status add_step(struct theory *theory, const struct ph_batch *batch)
{
    const struct ph_parallel_settings *parallel = theory->job->parallel;
    const struct ph__plan_step step = {batch->num_samples, batch->id_weights != NULL,
        wire_of(parallel->forward), wire_of(parallel->backward)};
    const struct ph__plan_dense dense = ph__plan_dense_of_job(theory->job, &theory->list);
    struct ph__arena arena = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < theory->list.num_tables && status == PH_OK; i++) {
        struct ph__table_counts counts;
        status = count_table(theory, batch, i, &arena, &counts);
        if (status == PH_OK)
            ph__shared_traffic(&theory->plan, i, theory->list.tables, &step, &counts, add_bytes, theory);
    }
    ph__tower_traffic(&theory->plan, &step, add_bytes, theory);
    ph__batch_traffic(&theory->plan, theory->list.tables, add_bytes, theory);
    ph__units_traffic(&theory->plan, &dense, add_bytes, theory);
    ph__dense_traffic(&theory->plan, &dense, add_bytes, theory);
    ph__arena_fini(&arena);
    return status;
}

static ph_status add_steps(struct theory *theory)
{
    const struct ph__train_job *job = theory->job;
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = (size_t)job->train->batch_size};
    struct ph_batches *batches;
    const struct ph_batch *batch;
    assert(!job->reading.is_shuffled && job->train->epochs == 1);
    assert(theory->list.num_dense * sizeof(ph_real) <= (size_t)job->parallel->bucket_bytes);
    PH_TRY(ph_batches_open(job->encoder, job->paths.train, &options, &batches));
    ph_status status = ph_batches_next(batches, &batch);
    while (status == PH_OK && batch != NULL) {
        status = add_step(theory, batch);
        if (status == PH_OK)
            status = ph_batches_next(batches, &batch);
    }
    ph_batches_close(batches);
    return status;
}

ph_status step_theory(const struct ph__train_job *job, const struct ph__topology *topology, double *bytes_out)
{
    struct theory theory = {.job = job, .topology = topology, .bytes = bytes_out};
    memset(bytes_out, 0, PH_TRAFFIC_COUNT * topology->world_size * topology->world_size * sizeof *bytes_out);
    ph_status status = ph__table_list_of_job(job, &theory.list);
    if (status == PH_OK)
        status = ph__table_list_read_plan(job->parallel->plan, topology, &theory.list, NULL, &theory.plan);
    if (status == PH_OK)
        status = add_steps(&theory);
    ph__plan_fini(&theory.plan);
    ph__table_list_fini(&theory.list);
    return status;
}
