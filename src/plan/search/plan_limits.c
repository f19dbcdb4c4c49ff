#include "plan/search/plan_limits.h"

#include <fnmatch.h>

#include "base/option/option.h"

#define FORMAT_VERSION 1
#define MOST_GB 1e9

struct own_rank {
    int64_t rank;
    double gb, slowness;
};

struct group {
    struct ph__text_list tables; /* names or patterns */
};

struct settings {
    int64_t version;
    double host_gb;
    struct ph__record_list ranks, together, apart;
};

static const struct ph__option rank_keys[] = {
    PH_INTEGER_KEY("rank", struct own_rank, rank, NULL, 0, 1 << 20, "Number of the rank."),
    PH_NUMBER_KEY("gb", struct own_rank, gb, "0", 0, MOST_GB,
        "10^9 bytes that it may spend on tables and slots. 0: as the others."),
    PH_NUMBER_KEY("slowness", struct own_rank, slowness, "1", 1e-3, 1e3,
        "Time in which it looks rows up and updates them, as a multiple of the others'."),
};
static const struct ph__option_table rank_table = {.section = "",
    .help = "A rank that is unlike the others.",
    .options = rank_keys,
    .num_options = sizeof rank_keys / sizeof *rank_keys,
    .settings_size = sizeof(struct own_rank)};

static const struct ph__option group_keys[] = {
    PH_TEXTS_KEY("tables", struct group, tables, NULL, "Names or patterns of tables."),
};
static const struct ph__option_table group_table = {.section = "",
    .help = "Tables that lie together, or apart.",
    .options = group_keys,
    .num_options = 1,
    .settings_size = sizeof(struct group)};

#define OF(member) struct settings, member
static const struct ph__option keys[] = {
    PH_INTEGER_KEY("version", OF(version), NULL, FORMAT_VERSION, FORMAT_VERSION, "Version of the format."),
    PH_NUMBER_KEY("host_gb", OF(host_gb), "0", 0, MOST_GB,
        "10^9 bytes that the ranks of a host may spend together. 0: no limit."),
    PH_RECORDS_KEY("ranks", OF(ranks), "", &rank_table, "Ranks that are unlike the others."),
    PH_RECORDS_KEY("together", OF(together), "", &group_table, "Tables that lie whole on one rank."),
    PH_RECORDS_KEY("apart", OF(apart), "", &group_table, "Tables of which no two lie on one rank."),
};
static const struct ph__option_table table = {.section = "",
    .help = "Limits of a plan.",
    .options = keys,
    .num_options = sizeof keys / sizeof *keys,
    .settings_size = sizeof(struct settings)};

struct reading {
    const char *path;
    const struct ph__topology *topology;
    const struct ph__table_facts *tables;
    size_t num_tables;
    bool *is_together; /* (num_tables) a group has it */
    struct ph__limits_file *file;
    struct ph__table_group *groups; /* of the file's limits */
};

/* ---- ranks ---- */

static ph_status take_ranks(
    const struct reading *reading, const struct ph__record_list *ranks, uint64_t rank_bytes)
{
    const size_t world_size = reading->topology->world_size;
    struct ph__arena *arena = &reading->file->arena;
    const struct own_rank *own = ranks->items;
    uint64_t *bytes = ph__arena_alloc_array(arena, world_size, sizeof *bytes);
    double *slowness = ph__arena_alloc_array(arena, world_size, sizeof *slowness);
    if (bytes == NULL || slowness == NULL)
        return PH_ERROR_MEMORY;
    for (size_t rank = 0; rank < world_size; rank++) {
        bytes[rank] = rank_bytes;
        slowness[rank] = 1;
    }
    for (size_t i = 0; i < ranks->count; i++) {
        if ((size_t)own[i].rank >= world_size)
            return ph_fail(PH_ERROR_CONFIG, "%s: ranks[%zu]: rank %lld is beyond the job's %zu ranks",
                reading->path, i, (long long)own[i].rank, world_size);
        if (own[i].gb > 0)
            bytes[own[i].rank] = (uint64_t)(own[i].gb * 1e9);
        slowness[own[i].rank] = own[i].slowness;
    }
    reading->file->limits.rank_bytes = bytes;
    reading->file->slowness = slowness;
    return PH_OK;
}

/* ---- groups ---- */

/* Adds the tables that a name or pattern fits. */
static ph_status add_tables(const struct reading *reading, const char *key, const char *name,
    struct ph__table_group *group, uint32_t *tables)
{
    const size_t before = group->num_tables;
    for (size_t t = 0; t < reading->num_tables; t++) {
        bool is_there = false;
        for (size_t i = 0; i < group->num_tables; i++)
            is_there |= tables[i] == t;
        if (is_there || fnmatch(name, reading->tables[t].name, 0) != 0)
            continue;
        if (!group->is_apart && reading->is_together[t])
            return ph_fail(PH_ERROR_CONFIG, "%s: %s: table '%s' is in two groups that lie together",
                reading->path, key, reading->tables[t].name);
        reading->is_together[t] |= !group->is_apart;
        tables[group->num_tables++] = (uint32_t)t;
    }
    return group->num_tables > before
               ? PH_OK
               : ph_fail(PH_ERROR_CONFIG, "%s: %s: '%s' fits no table", reading->path, key, name);
}

static ph_status take_groups(
    struct reading *reading, const char *key, const struct ph__record_list *list, bool is_apart)
{
    const struct group *given = list->items;
    for (size_t g = 0; g < list->count; g++) {
        struct ph__table_group *group = &reading->groups[reading->file->limits.num_groups++];
        uint32_t *tables = ph__arena_alloc_array(&reading->file->arena, reading->num_tables, sizeof *tables);
        if (tables == NULL)
            return PH_ERROR_MEMORY;
        *group = (struct ph__table_group){.tables = tables, .is_apart = is_apart};
        for (size_t i = 0; i < given[g].tables.count; i++)
            PH_TRY(add_tables(reading, key, given[g].tables.items[i], group, tables));
        if (is_apart && group->num_tables > reading->topology->world_size)
            return ph_fail(PH_ERROR_CONFIG, "%s: %s[%zu]: %zu tables cannot lie apart on %zu ranks",
                reading->path, key, g, group->num_tables, reading->topology->world_size);
    }
    return PH_OK;
}

/* ---- all ---- */

ph_status ph__limits_read(const char *path, const struct ph__topology *topology, uint64_t rank_bytes,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__limits_file *file_out)
{
    struct settings settings = {0};
    const struct ph__section section = {&table, &settings};
    struct reading reading = {path, topology, tables, num_tables, NULL, file_out, NULL};
    *file_out = (struct ph__limits_file){0};
    PH_TRY(ph__config_read(path, NULL, 0, &section, 1, &file_out->arena));
    const size_t num_groups = settings.together.count + settings.apart.count;
    reading.groups = ph__arena_alloc_array(&file_out->arena, num_groups + 1, sizeof *reading.groups);
    reading.is_together = ph__arena_alloc_array(&file_out->arena, num_tables, sizeof *reading.is_together);
    if (reading.groups == NULL || reading.is_together == NULL)
        return PH_ERROR_MEMORY;
    file_out->limits =
        (struct ph__plan_limits){.host_bytes = (uint64_t)(settings.host_gb * 1e9), .groups = reading.groups};
    PH_TRY(take_ranks(&reading, &settings.ranks, rank_bytes));
    PH_TRY(take_groups(&reading, "together", &settings.together, false));
    return take_groups(&reading, "apart", &settings.apart, true);
}

void ph__limits_fini(struct ph__limits_file *file)
{
    ph__arena_fini(&file->arena);
    *file = (struct ph__limits_file){0};
}
