#include "plan/plan_choice.h"

static const char *const kind_names[] = {
#define KIND_NAME(name, text) text,
    PH_SHARD_KIND_LIST(KIND_NAME)
#undef KIND_NAME
};

const char *ph__shard_kind_name(enum ph__shard_kind kind)
{
    return kind_names[kind];
}

enum ph__place ph__shard_kind_place(enum ph__shard_kind kind)
{
    switch (kind) {
    case PH_SHARD_TABLE_WISE:
        return PH_PLACE_RANK;
    case PH_SHARD_ROW_WISE:
    case PH_SHARD_COLUMN_WISE:
        return PH_PLACE_RANKS;
    case PH_SHARD_TABLE_ROW_WISE:
    case PH_SHARD_TABLE_COLUMN_WISE:
        return PH_PLACE_HOST;
    case PH_SHARD_GRID:
        return PH_PLACE_HOSTS;
    case PH_SHARD_DATA_PARALLEL:
    case PH_SHARD_KIND_COUNT:
        break;
    }
    return PH_PLACE_NONE;
}

const char *ph__place_name(enum ph__place place)
{
    static const char *const names[] = {"none", "rank", "ranks", "host", "hosts"};
    return names[place];
}

bool ph__shard_kind_is_of_hosts(enum ph__shard_kind kind)
{
    const enum ph__place place = ph__shard_kind_place(kind);
    return place == PH_PLACE_HOST || place == PH_PLACE_HOSTS;
}

size_t ph__num_hosts(const struct ph__topology *topology)
{
    return topology->world_size / topology->ranks_per_host;
}

/* Counts the shards that the columns suffice for. */
static size_t most_column_shards(const struct ph__table_facts *table)
{
    return table->dim >= PH_SHARD_COLUMNS ? table->dim / PH_SHARD_COLUMNS : 1;
}

size_t ph__most_column_shards(const struct ph__table_facts *table)
{
    return table->has_whole_rows ? 1 : most_column_shards(table);
}

static ph_status check_place(
    const struct ph__topology *topology, const struct ph__plan_choice *choice, size_t index)
{
    const bool is_host = ph__shard_kind_is_of_hosts(choice->kind);
    const char *word = is_host ? "host" : "rank";
    const size_t count = is_host ? ph__num_hosts(topology) : topology->world_size;
    const uint32_t value = choice->places[index];
    if (value >= count)
        return ph_fail(PH_ERROR_CONFIG, "%s %u does not exist: the last is %zu", word, value, count - 1);
    for (size_t i = 0; i < index; i++)
        if (choice->places[i] == value)
            return ph_fail(PH_ERROR_CONFIG, "%s %u is named twice", word, value);
    return PH_OK;
}

ph_status ph__choice_check(const struct ph__topology *topology, const struct ph__table_facts *table,
    const struct ph__plan_choice *choice)
{
    const bool goes_by_columns = choice->kind == PH_SHARD_COLUMN_WISE || choice->kind == PH_SHARD_GRID;
    const bool cuts_columns = goes_by_columns || choice->kind == PH_SHARD_TABLE_COLUMN_WISE;
    for (size_t i = 0; i < choice->num_places; i++)
        PH_TRY(check_place(topology, choice, i));
    if (cuts_columns && table->has_whole_rows && most_column_shards(table) > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "the columns of '%s' cannot be cut: row-wise Adagrad whose l2 acts on all rows "
            "(optimizer.embedding_scope: whole) needs whole rows",
            table->name);
    if (goes_by_columns && choice->num_places > ph__most_column_shards(table))
        return ph_fail(PH_ERROR_CONFIG,
            "%zu %s are too many for the %zu columns of '%s': at most one for every %d columns",
            choice->num_places, ph__place_name(ph__shard_kind_place(choice->kind)), table->dim, table->name,
            PH_SHARD_COLUMNS);
    return PH_OK;
}
