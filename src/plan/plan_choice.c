#include "plan/plan_choice.h"

static const char *const kind_names[] = {
#define KIND_NAME(name, text) text,
    PH_SHARD_KIND_LIST(KIND_NAME)
#undef KIND_NAME
};

const char *ph__shard_kind_name(enum ph_shard_kind kind)
{
    return kind_names[kind];
}

enum ph_place ph__shard_kind_place(enum ph_shard_kind kind)
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

const char *ph__place_name(enum ph_place place)
{
    static const char *const names[] = {"none", "rank", "ranks", "host", "hosts"};
    return names[place];
}

bool ph__shard_kind_is_of_hosts(enum ph_shard_kind kind)
{
    const enum ph_place place = ph__shard_kind_place(kind);
    return place == PH_PLACE_HOST || place == PH_PLACE_HOSTS;
}

size_t ph__num_hosts(const struct ph_topology *topology)
{
    return topology->world_size / topology->ranks_per_host;
}

size_t ph__column_parts(size_t dim)
{
    return dim >= PH_SHARD_COLUMNS ? dim / PH_SHARD_COLUMNS : 1;
}

static ph_status check_place(
    const struct ph_topology *topology, const struct ph_plan_choice *choice, size_t index)
{
    const bool is_host = ph__shard_kind_is_of_hosts(choice->kind);
    const char *word = is_host ? "host" : "rank";
    const size_t count = is_host ? ph__num_hosts(topology) : topology->world_size;
    const uint32_t value = choice->places[index];
    if (value >= count)
        return ph_fail(PH_ERROR_CONFIG, "there is no %s %u: the last is %zu", word, value, count - 1);
    for (size_t i = 0; i < index; i++)
        if (choice->places[i] == value)
            return ph_fail(PH_ERROR_CONFIG, "%s %u is named twice", word, value);
    return PH_OK;
}

ph_status ph__choice_check(const struct ph_topology *topology, const struct ph_table_facts *table,
    const struct ph_plan_choice *choice)
{
    const bool cuts_columns = choice->kind == PH_SHARD_COLUMN_WISE || choice->kind == PH_SHARD_GRID;
    for (size_t i = 0; i < choice->num_places; i++)
        PH_TRY(check_place(topology, choice, i));
    if (cuts_columns && choice->num_places > ph__column_parts(table->dim))
        return ph_fail(PH_ERROR_CONFIG, "%zu %s for the %zu columns of '%s': one for each %d of them at most",
            choice->num_places, ph__place_name(ph__shard_kind_place(choice->kind)), table->dim, table->name,
            PH_SHARD_COLUMNS);
    return PH_OK;
}
