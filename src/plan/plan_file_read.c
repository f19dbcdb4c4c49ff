/* Reads a plan file: first its lines, then which line applies to which table. */
#include <fnmatch.h>
#include <string.h>

#include "base/format/yaml.h"
#include "base/option/option.h"
#include "base/text/number.h"
#include "plan/plan_choice.h"

#define FORMAT_VERSION 1
#define MAX_NAMED 4 /* tables without an entry that an error names */

/* The part below a table's name, or below "default". */
struct entry {
    const char *key;  /* "tables.embedding.user" */
    const char *name; /* of the table, or a pattern; NULL: all other tables */
    size_t line;
    bool has_kind;
    enum ph__place place; /* kind of place that the file names; NONE: no place */
    size_t place_line;
    uint32_t *places; /* borrowed by choice.places */
    struct ph__plan_choice choice;
};

struct reading {
    const char *path;
    const struct ph__topology *topology;
    const struct ph__table_facts *tables;
    size_t num_tables;
    struct ph__arena *arena;
    struct entry *entries; /* in the order of the file */
    size_t num_entries;
    struct ph__name_index entry_names; /* in the order of entries */
    struct entry **patterns;           /* (num_patterns) entries that name tables by a pattern */
    size_t num_patterns;
    struct ph__name_index table_names;
    struct entry *rest; /* "default", or NULL */
    struct ph__plan_tower *towers;
    size_t num_towers, towers_line;
    size_t tables_line; /* 0: no such line */
    bool has_version, has_world_size;
};

/* Fails with PH_ERROR_CONFIG "file:line: what", or with the reason recorded last where `what` is NULL. */
static ph_status fail_at(const struct reading *reading, size_t line, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s", reading->path, line, what != NULL ? what : ph_error_text());
}

static ph_status fail_key(const struct reading *reading, const struct ph__yaml_node *node, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: %s", reading->path, node->line, node->key, what);
}

static ph_status refuse_word(const struct reading *reading, size_t line, const char *what, const char *word,
    const char *const *known, size_t num_known)
{
    const char *nearest = ph__nearest_word(word, known, num_known);
    if (nearest == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: unknown %s '%s'", reading->path, line, what, word);
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: unknown %s '%s'; did you mean '%s'?", reading->path, line, what,
        word, nearest);
}

/* ---- one line ---- */

static ph_status read_integer(
    const struct reading *reading, const struct ph__yaml_node *node, int64_t *integer_out)
{
    if (node->kind != PH_YAML_SCALAR || !ph__integer_parse(node->text, integer_out))
        return fail_key(reading, node, "must be an integer");
    return PH_OK;
}

/* Reads a number that must equal the topology's. */
static ph_status read_agreed(const struct reading *reading, const struct ph__yaml_node *node, size_t wanted)
{
    int64_t number;
    PH_TRY(read_integer(reading, node, &number));
    if (number != (int64_t)wanted)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: the plan is for a %s of %lld, but this job has %zu",
            reading->path, node->line, node->key, (long long)number, wanted);
    return PH_OK;
}

static ph_status read_version(const struct reading *reading, const struct ph__yaml_node *node)
{
    int64_t version;
    PH_TRY(read_integer(reading, node, &version));
    if (version != FORMAT_VERSION)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: version %lld of the format is unknown: must be %d",
            reading->path, node->line, (long long)version, FORMAT_VERSION);
    return PH_OK;
}

static ph_status read_kind(
    const struct reading *reading, const struct ph__yaml_node *node, struct entry *entry)
{
    const char *known[PH_SHARD_KIND_COUNT];
    for (size_t i = 0; i < PH_SHARD_KIND_COUNT; i++)
        known[i] = ph__shard_kind_name((enum ph__shard_kind)i);
    if (node->kind != PH_YAML_SCALAR)
        return fail_key(reading, node, "must be a word, such as row_wise");
    for (size_t i = 0; i < PH_SHARD_KIND_COUNT; i++)
        if (strcmp(node->text, known[i]) == 0) {
            entry->choice.kind = (enum ph__shard_kind)i;
            entry->has_kind = true;
            return PH_OK;
        }
    return refuse_word(reading, node->line, "kind", node->text, known, PH_SHARD_KIND_COUNT);
}

static ph_status add_place(
    const struct reading *reading, const struct ph__yaml_node *node, struct entry *entry)
{
    int64_t place;
    PH_TRY(read_integer(reading, node, &place));
    if (place < 0 || place > UINT32_MAX)
        return fail_key(reading, node, "must be the number of a rank or host");
    entry->places[entry->choice.num_places++] = (uint32_t)place;
    return PH_OK;
}

/* Reads "rank", "ranks", "host" or "hosts"; the items of a list come later. */
static ph_status begin_places(const struct reading *reading, const struct ph__yaml_node *node,
    enum ph__place place, struct entry *entry)
{
    const bool is_list = place == PH_PLACE_RANKS || place == PH_PLACE_HOSTS;
    if (entry->place != PH_PLACE_NONE)
        return fail_key(reading, node, "the table has a place already");
    if (node->kind != (is_list ? PH_YAML_SEQUENCE : PH_YAML_SCALAR) || (is_list && node->num_items == 0))
        return fail_key(reading, node, is_list ? "must be a list, such as [0, 1]" : "must be one number");
    entry->place = place;
    entry->place_line = node->line;
    entry->places =
        ph__arena_alloc_array(reading->arena, is_list ? node->num_items : 1, sizeof *entry->places);
    entry->choice.places = entry->places;
    if (entry->places == NULL)
        return PH_ERROR_MEMORY;
    return is_list ? PH_OK : add_place(reading, node, entry);
}

/* word: the rest of the node's key behind the entry's key and its dot. */
static ph_status read_member(
    const struct reading *reading, const struct ph__yaml_node *node, const char *word, struct entry *entry)
{
    static const char *const known[] = {"kind", "rank", "ranks", "host", "hosts"};
    if (strcmp(word, "kind") == 0)
        return read_kind(reading, node, entry);
    for (enum ph__place place = PH_PLACE_RANK; place <= PH_PLACE_HOSTS; place++) {
        const char *name = ph__place_name(place);
        if (strcmp(word, name) == 0)
            return begin_places(reading, node, place, entry);
        if (place == entry->place && strncmp(word, name, strlen(name)) == 0 && word[strlen(name)] == '[')
            return add_place(reading, node, entry);
    }
    return refuse_word(reading, node->line, "key", word, known, sizeof known / sizeof *known);
}

/* ---- the lines ---- */

static struct entry *begin_entry(
    struct reading *reading, const struct ph__yaml_node *node, const char *table_name)
{
    struct entry *entry = &reading->entries[reading->num_entries++];
    *entry = (struct entry){.key = node->key, .name = table_name, .line = node->line};
    return entry;
}

/* Reads a line below "tables" or "default", which begins an entry or belongs to the entry begun last. */
static ph_status read_below(struct reading *reading, const struct ph__yaml_node *node)
{
    static const char section[] = "tables.";
    const bool is_table = strncmp(node->key, section, strlen(section)) == 0;
    if (is_table && node->kind == PH_YAML_MAPPING) {
        begin_entry(reading, node, node->key + strlen(section));
        return PH_OK;
    }
    struct entry *entry = reading->num_entries > 0 ? &reading->entries[reading->num_entries - 1] : NULL;
    const size_t length = entry != NULL ? strlen(entry->key) : 0;
    if (entry == NULL || strncmp(node->key, entry->key, length) != 0 || node->key[length] != '.')
        return fail_key(reading, node, "must be a mapping, such as {kind: row_wise}");
    return read_member(reading, node, node->key + length + 1, entry);
}

/* Reads a tower's host. */
static ph_status read_tower(struct reading *reading, const struct ph__yaml_node *node)
{
    const char *name = node->key + strlen("towers.");
    const size_t num_hosts = ph__num_hosts(reading->topology);
    const char **known = ph__arena_alloc_array(reading->arena, reading->num_tables, sizeof *known);
    size_t num_known = 0;
    bool is_known = false;
    int64_t host;
    if (known == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < reading->num_tables; i++)
        if (reading->tables[i].tower != NULL) {
            known[num_known++] = reading->tables[i].tower->name;
            is_known |= strcmp(known[num_known - 1], name) == 0;
        }
    if (!is_known)
        return refuse_word(reading, node->line, "tower", name, known, num_known);
    PH_TRY(read_integer(reading, node, &host));
    if (host < 0 || host >= (int64_t)num_hosts)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: host %lld does not exist: the last is %zu",
            reading->path, node->line, node->key, (long long)host, num_hosts - 1);
    reading->towers[reading->num_towers++] = (struct ph__plan_tower){{.name = name}, (uint32_t)host};
    return PH_OK;
}

static ph_status read_section(struct reading *reading, const struct ph__yaml_node *node)
{
    const bool is_empty = node->kind == PH_YAML_SCALAR && node->text[0] == '\0';
    if (node->kind != PH_YAML_MAPPING && !is_empty)
        return fail_key(reading, node, "must be a mapping");
    if (strcmp(node->key, "towers") == 0)
        reading->towers_line = node->line;
    else if (strcmp(node->key, "tables") == 0)
        reading->tables_line = node->line;
    else
        reading->rest = begin_entry(reading, node, NULL);
    return PH_OK;
}

static ph_status read_node(struct reading *reading, const struct ph__yaml_node *node)
{
    static const char *const known[] = {
        "version", "world_size", "ranks_per_host", "tables", "default", "dense", "towers"};
    if (strcmp(node->key, "version") == 0) {
        reading->has_version = true;
        return read_version(reading, node);
    }
    if (strcmp(node->key, "world_size") == 0) {
        reading->has_world_size = true;
        return read_agreed(reading, node, reading->topology->world_size);
    }
    if (strcmp(node->key, "ranks_per_host") == 0)
        return read_agreed(reading, node, reading->topology->ranks_per_host);
    if (strcmp(node->key, "tables") == 0 || strcmp(node->key, "default") == 0 ||
        strcmp(node->key, "towers") == 0)
        return read_section(reading, node);
    if (strncmp(node->key, "towers.", 7) == 0)
        return read_tower(reading, node);
    if (strncmp(node->key, "tables.", 7) == 0 || strncmp(node->key, "default.", 8) == 0)
        return read_below(reading, node);
    if (strcmp(node->key, "dense") == 0 || strncmp(node->key, "dense.", 6) == 0)
        return PH_OK; /* ph__plan_units_read reads it */
    return refuse_word(reading, node->line, "key", node->key, known, sizeof known / sizeof *known);
}

static ph_status check_entry(const struct reading *reading, const struct entry *entry)
{
    const enum ph__place place = ph__shard_kind_place(entry->choice.kind);
    if (!entry->has_kind)
        return ph_fail(
            PH_ERROR_CONFIG, "%s:%zu: %s: missing key 'kind'", reading->path, entry->line, entry->key);
    if (entry->place == PH_PLACE_NONE || entry->place == place)
        return PH_OK;
    if (place == PH_PLACE_NONE)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: %s puts the table on all ranks: remove '%s'",
            reading->path, entry->place_line, entry->key, ph__shard_kind_name(entry->choice.kind),
            ph__place_name(entry->place));
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: %s takes '%s', not '%s'", reading->path, entry->place_line,
        entry->key, ph__shard_kind_name(entry->choice.kind), ph__place_name(place),
        ph__place_name(entry->place));
}

static bool is_pattern(const char *name)
{
    return strpbrk(name, "*?[") != NULL;
}

/* Indexes an entry. The default's name, "", is one that no table has. */
static ph_status index_entry(struct reading *reading, struct entry *entry)
{
    if (entry->name != NULL && is_pattern(entry->name))
        reading->patterns[reading->num_patterns++] = entry;
    return ph__name_index_add(&reading->entry_names, entry->name != NULL ? entry->name : "");
}

static ph_status read_lines(struct reading *reading)
{
    struct ph__yaml_node *nodes;
    size_t num_nodes;
    PH_TRY(ph__yaml_read(reading->arena, reading->path, &nodes, &num_nodes));
    reading->entries = ph__arena_alloc_array(reading->arena, num_nodes, sizeof *reading->entries);
    reading->patterns = ph__arena_alloc_array(reading->arena, num_nodes, sizeof *reading->patterns);
    reading->towers = ph__arena_alloc_array(reading->arena, num_nodes, sizeof *reading->towers);
    if (reading->entries == NULL || reading->patterns == NULL || reading->towers == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_nodes; i++)
        PH_TRY(read_node(reading, &nodes[i]));
    for (size_t i = 0; i < reading->num_entries; i++)
        PH_TRY(index_entry(reading, &reading->entries[i]));
    if (!reading->has_version || !reading->has_world_size)
        return ph_fail(PH_ERROR_CONFIG, "%s:1: missing key '%s'", reading->path,
            reading->has_version ? "world_size" : "version");
    for (size_t i = 0; i < reading->num_entries; i++)
        PH_TRY(check_entry(reading, &reading->entries[i]));
    return PH_OK;
}

/* ---- the tables ---- */

/* Returns NULL when no entry fits and there is no default. */
static const struct entry *find_entry(const struct reading *reading, const char *table)
{
    const size_t exact = ph__name_index_find(&reading->entry_names, table);
    if (exact != PH_NO_NAME)
        return &reading->entries[exact];
    for (size_t i = 0; i < reading->num_patterns; i++)
        if (fnmatch(reading->patterns[i]->name, table, 0) == 0)
            return reading->patterns[i];
    return reading->rest;
}

static bool fits_any(const struct reading *reading, const struct entry *entry)
{
    bool is_any =
        entry->name == NULL || ph__name_index_find(&reading->table_names, entry->name) != PH_NO_NAME;
    for (size_t t = 0; !is_any && is_pattern(entry->name) && t < reading->num_tables; t++)
        is_any = fnmatch(entry->name, reading->tables[t].name, 0) == 0;
    return is_any;
}

/* Checks that every name is a table's and every pattern fits one. */
static ph_status check_names(struct reading *reading)
{
    const char **names = ph__arena_alloc_array(reading->arena, reading->num_tables, sizeof *names);
    if (names == NULL)
        return PH_ERROR_MEMORY;
    for (size_t t = 0; t < reading->num_tables; t++) {
        names[t] = reading->tables[t].name;
        PH_TRY(ph__name_index_add(&reading->table_names, names[t]));
    }
    for (size_t i = 0; i < reading->num_entries; i++) {
        const struct entry *entry = &reading->entries[i];
        if (!fits_any(reading, entry))
            return refuse_word(reading, entry->line, "table", entry->name, names, reading->num_tables);
    }
    return PH_OK;
}

static ph_status refuse_missing(const struct reading *reading)
{
    size_t num_missing = 0;
    const char *names = "";
    for (size_t t = 0; t < reading->num_tables; t++) {
        if (find_entry(reading, reading->tables[t].name) != NULL || num_missing++ >= MAX_NAMED)
            continue;
        names = ph__arena_printf(
            reading->arena, "%s%s'%s'", names, num_missing > 1 ? ", " : "", reading->tables[t].name);
        if (names == NULL)
            return PH_ERROR_MEMORY;
    }
    const size_t line = reading->tables_line > 0 ? reading->tables_line : 1;
    if (num_missing > MAX_NAMED)
        return ph_fail(PH_ERROR_CONFIG,
            "%s:%zu: missing tables: %s and %zu more; add a line for each, or 'default'", reading->path, line,
            names, num_missing - MAX_NAMED);
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: missing tables: %s; add a line for each, or 'default'",
        reading->path, line, names);
}

/* Returns the host of a table's tower; NULL where the file gives it none. */
static const uint32_t *host_of(const struct reading *reading, const struct ph__table_facts *table)
{
    for (size_t i = 0; table->tower != NULL && i < reading->num_towers; i++)
        if (strcmp(reading->towers[i].of.name, table->tower->name) == 0)
            return &reading->towers[i].host;
    return NULL;
}

static ph_status choose(struct reading *reading, struct ph__plan_choice *choices)
{
    PH_TRY(check_names(reading));
    for (size_t t = 0; t < reading->num_tables; t++) {
        const struct entry *entry = find_entry(reading, reading->tables[t].name);
        if (entry == NULL)
            return refuse_missing(reading);
        choices[t] = entry->choice;
        choices[t].host = host_of(reading, &reading->tables[t]);
        if (ph__choice_check(reading->topology, &reading->tables[t], &choices[t]) != PH_OK)
            return fail_at(reading, entry->place_line > 0 ? entry->place_line : entry->line, NULL);
    }
    return PH_OK;
}

static ph_status read_plan(struct reading *reading, struct ph__plan *plan_out)
{
    struct ph__plan_choice *choices =
        ph__arena_alloc_array(reading->arena, reading->num_tables, sizeof *choices);
    if (choices == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(read_lines(reading));
    PH_TRY(choose(reading, choices));
    PH_TRY(ph__plan_places(reading->topology, reading->tables, reading->num_tables, choices, reading->arena));
    PH_TRY(ph__plan_build(reading->topology, reading->tables, reading->num_tables, choices, plan_out));
    const ph_status status =
        ph__plan_add_towers(plan_out, reading->tables, reading->towers, reading->num_towers);
    if (status == PH_OK)
        return PH_OK;
    ph__plan_fini(plan_out);
    return status == PH_ERROR_CONFIG ? fail_at(reading, reading->towers_line, NULL) : status;
}

ph_status ph__plan_read(const char *path, const struct ph__topology *topology,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__plan *plan_out)
{
    struct ph__arena arena = {0};
    struct reading reading = {
        .path = path, .topology = topology, .tables = tables, .num_tables = num_tables, .arena = &arena};
    ph_status status = read_plan(&reading, plan_out);
    ph__name_index_fini(&reading.entry_names);
    ph__name_index_fini(&reading.table_names);
    ph__arena_fini(&arena);
    return status;
}
