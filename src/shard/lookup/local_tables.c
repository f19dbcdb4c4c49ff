/* Tables that this rank holds in place of the model's, and what the plan says of them. */
#include <string.h>

#include "shard/lookup/lookup_pass.h"

void *ph__pass_take(struct ph__lookup_pass *pass, size_t count, size_t size)
{
    void *memory = ph__arena_alloc_array(pass->arena, count + 1, size);
    if (memory == NULL)
        ph_builder_fail(pass->builder, PH_ERROR_MEMORY, "out of memory: a pass over lookups");
    return memory;
}

const struct ph__plan_table *ph__pass_find_plan(struct ph__lookup_pass *pass, const char *name)
{
    const struct ph__plan_table *table = ph__plan_find(pass->sharding->plan, name);
    if (table == NULL)
        ph_builder_fail(pass->builder, PH_ERROR_CONFIG, "the plan does not name table '%s'", name);
    return table;
}

const struct ph__table_shard *ph__pass_shard_of(
    const struct ph__lookup_pass *pass, const struct ph__plan_table *table, size_t rank)
{
    const struct ph__table_shard *shards = pass->sharding->plan->shards + table->first_shard;
    for (size_t i = 0; i < table->num_shards; i++)
        if (shards[i].rank == rank && shards[i].num_rows > 0)
            return &shards[i];
    return NULL;
}

bool ph__plan_is_replica(const struct ph__plan_table *table)
{
    return table->kind == PH_SHARD_DATA_PARALLEL;
}

struct ph__shard_key ph__shard_key_of(const struct ph__table_shard *shard, const struct ph__plan_table *table)
{
    return (struct ph__shard_key){shard->num_columns, shard->num_rows < table->num_rows};
}

bool ph__shard_key_equal(struct ph__shard_key a, struct ph__shard_key b)
{
    return a.width == b.width && a.is_cut == b.is_cut;
}

/* "embedding.table/32", "embedding.table/64/rows" */
static const char *table_name(
    struct ph__lookup_pass *pass, const struct ph__declaration *table, struct ph__shard_key key)
{
    return ph__arena_printf(
        pass->arena, "%s/%u%s", table->name, (unsigned)key.width, key.is_cut ? "/rows" : "");
}

/* Adds to `local`, one feature a slice, the slices of the model's table whose shards here have this key or,
 * key NULL, that every rank has; local_of gives the local slice of each such slice of the model's. */
static void add_slices(struct ph__lookup_pass *pass, const struct ph__declaration *table,
    const struct ph__shard_key *key, struct ph__declaration *local, size_t *local_of)
{
    struct ph_table_slice *slices = ph__pass_take(pass, table->num_slices, sizeof *slices);
    struct ph__slice_shard *shards = ph__pass_take(pass, table->num_slices, sizeof *shards);
    size_t *features = ph__pass_take(pass, table->num_slices, sizeof *features);
    for (size_t i = 0; i < table->num_slices && ph_builder_status(pass->builder) == PH_OK; i++) {
        const struct ph__plan_table *plan = ph__pass_find_plan(pass, table->slices[i].name);
        const struct ph__table_shard *shard =
            plan != NULL ? ph__pass_shard_of(pass, plan, pass->sharding->rank) : NULL;
        const bool is_here = key == NULL
                                 ? plan != NULL && ph__plan_is_replica(plan)
                                 : shard != NULL && ph__shard_key_equal(ph__shard_key_of(shard, plan), *key);
        if (!is_here)
            continue;
        const size_t at = local->num_slices++;
        slices[at] = (struct ph_table_slice){
            table->slices[i].name, shard != NULL ? (size_t)shard->num_rows : table->slices[i].num_rows};
        shards[at] = (struct ph__slice_shard){.first_row = shard != NULL ? (size_t)shard->first_row : 0,
            .whole_rows = table->slices[i].num_rows,
            .first_column = shard != NULL ? shard->first_column : 0,
            .whole_columns = table->shape.dims[1]};
        local->shape.dims[0] += slices[at].num_rows;
        local_of[i] = features[at] = at;
    }
    local->slices = slices;
    local->shards = key != NULL ? shards : NULL;
    local->feature_slices = features;
    local->num_features = local->num_slices;
}

ph_value ph__local_table(struct ph__lookup_pass *pass, const struct ph__declaration *table,
    const struct ph__shard_key *key, size_t *local_of)
{
    struct ph_builder *builder = pass->builder;
    struct ph__declaration local = {.name = key != NULL
                                                ? table_name(pass, table, *key)
                                                : ph__arena_printf(pass->arena, "%s/replicas", table->name),
        .family = table->name,
        .is_table = true,
        .shape = {.num_dims = 2, .dims = {0, key != NULL ? key->width : table->shape.dims[1]}},
        .init = table->init};
    add_slices(pass, table, key, &local, local_of);
    if (ph_builder_status(builder) != PH_OK || local.name == NULL)
        return 0;
    for (size_t i = 0; i < ph_builder_num_parameters(builder); i++) {
        const ph_value known = ph_builder_parameter(builder, i);
        if (strcmp(ph__builder_declaration(builder, known)->name, local.name) == 0 &&
            ph__builder_declaration(builder, known)->family != NULL)
            return known;
    }
    return ph__builder_declare(builder, &local);
}
