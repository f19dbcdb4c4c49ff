/* Works out a table's place from its kind, where no place is given, and its shards from both: plain
 * arithmetic, the same on every rank. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "plan/plan_choice.h"

/* ---- shards ---- */

/* One of n runs that a count is cut into: the first (count % n) runs have one more. */
struct run {
    uint64_t first, count;
};

static struct run run_of(uint64_t count, size_t num_runs, size_t index)
{
    const uint64_t each = count / num_runs, more = count % num_runs;
    return (struct run){index * each + (index < more ? index : more), each + (index < more)};
}

/* Returns a run of columns, in blocks of PH_SHARD_COLUMNS, the last of which may be narrower. */
static struct run columns_of(size_t dim, size_t num_runs, size_t index)
{
    const struct run blocks = run_of(ph__divide_up(dim, PH_SHARD_COLUMNS), num_runs, index);
    const size_t first = (size_t)blocks.first * PH_SHARD_COLUMNS;
    return (struct run){first, ph__min(blocks.count * PH_SHARD_COLUMNS, dim - first)};
}

/* Parts of a table, and the rank of part (column run c, row run r). */
struct cut {
    size_t num_row_runs, num_column_runs;
    const uint32_t *ranks; /* of part c * num_row_runs + r; NULL: the host's rank r + c */
    const uint32_t *hosts; /* of column run c; NULL: one host */
};

static struct cut cut_of(const struct ph__topology *topology, const struct ph__table_facts *table,
    const struct ph__plan_choice *choice)
{
    const size_t num_local = topology->ranks_per_host;
    switch (choice->kind) {
    case PH_SHARD_ROW_WISE:
        return (struct cut){choice->num_places, 1, choice->places, NULL};
    case PH_SHARD_COLUMN_WISE:
        return (struct cut){1, choice->num_places, choice->places, NULL};
    case PH_SHARD_TABLE_ROW_WISE:
        return (struct cut){num_local, 1, NULL, choice->places};
    case PH_SHARD_TABLE_COLUMN_WISE:
        return (struct cut){1, ph__min(num_local, ph__most_column_shards(table)), NULL, NULL};
    case PH_SHARD_GRID:
        return (struct cut){num_local, choice->num_places, NULL, choice->places};
    case PH_SHARD_DATA_PARALLEL:
        return (struct cut){0};
    case PH_SHARD_TABLE_WISE:
    case PH_SHARD_KIND_COUNT:
        break;
    }
    return (struct cut){1, 1, choice->places, NULL};
}

static uint32_t rank_of(const struct ph__topology *topology, const struct ph__plan_choice *choice,
    const struct cut *cut, size_t column_run, size_t row_run)
{
    if (cut->ranks != NULL)
        return cut->ranks[column_run * cut->num_row_runs + row_run];
    const size_t host = cut->hosts != NULL ? cut->hosts[column_run] : choice->places[0];
    const size_t local = cut->hosts != NULL ? row_run : column_run;
    return (uint32_t)(host * topology->ranks_per_host + local);
}

/* Writes the shards of a checked choice that has its places: at most as many as there are ranks. Returns
 * their number. */
static size_t table_shards(const struct ph__topology *topology, const struct ph__table_facts *table,
    const struct ph__plan_choice *choice, uint32_t table_index, struct ph__table_shard *shards_out)
{
    const struct cut cut = cut_of(topology, table, choice);
    size_t count = 0;
    for (size_t c = 0; c < cut.num_column_runs; c++) {
        const struct run columns = columns_of(table->dim, cut.num_column_runs, c);
        for (size_t r = 0; r < cut.num_row_runs; r++) {
            const struct run rows = run_of(table->num_rows, cut.num_row_runs, r);
            if (rows.count == 0)
                break; /* later runs have none either */
            shards_out[count++] = (struct ph__table_shard){table_index, rank_of(topology, choice, &cut, c, r),
                rows.first, rows.count, (uint32_t)columns.first, (uint32_t)columns.count};
        }
    }
    return count;
}

uint64_t ph__table_shard_bytes(const struct ph__table_facts *table, uint64_t num_rows, size_t num_columns)
{
    const uint64_t by_column = table->weight_bytes + table->slot_bytes - table->row_slot_bytes;
    return num_rows * (ph__divide_up(by_column * num_columns, table->dim) + table->row_slot_bytes);
}

/* ---- the plan ---- */

static ph_status build_table(
    struct ph__plan *plan, const struct ph__table_facts *facts, const struct ph__plan_choice *choice)
{
    const size_t index = plan->num_tables;
    struct ph__plan_table *table = &plan->tables[index];
    const char *name = ph__arena_strdup(&plan->arena, facts->name);
    uint32_t *places = ph__arena_alloc_array(&plan->arena, choice->num_places, sizeof *places);
    if (name == NULL || places == NULL)
        return PH_ERROR_MEMORY;
    if (choice->num_places > 0)
        memcpy(places, choice->places, choice->num_places * sizeof *places);
    *table = (struct ph__plan_table){name, choice->kind, facts->num_rows, (uint32_t)facts->dim, places,
        choice->num_places, .first_shard = plan->num_shards};
    struct ph__table_shard *shards = plan->shards + plan->num_shards;
    table->num_shards = table_shards(&plan->topology, facts, choice, (uint32_t)index, shards);
    for (size_t i = 0; i < table->num_shards; i++)
        table->bytes += ph__table_shard_bytes(facts, shards[i].num_rows, shards[i].num_columns);
    if (table->num_shards == 0)
        table->bytes = ph__table_shard_bytes(facts, facts->num_rows, facts->dim);
    plan->num_shards += table->num_shards;
    plan->num_tables++;
    return ph__name_index_add(&plan->names, name);
}

static size_t most_shards(const struct ph__topology *topology, const struct ph__plan_choice *choice)
{
    return choice->num_places * (ph__shard_kind_is_of_hosts(choice->kind) ? topology->ranks_per_host : 1);
}

ph_status ph__plan_build(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, const struct ph__plan_choice *choices, struct ph__plan *plan_out)
{
    struct ph__plan plan = {.topology = *topology};
    size_t num_shards = 0;
    for (size_t i = 0; i < num_tables; i++)
        num_shards += most_shards(topology, &choices[i]);
    plan.tables = ph__arena_alloc_array(&plan.arena, num_tables, sizeof *plan.tables);
    plan.shards = ph__arena_alloc_array(&plan.arena, num_shards, sizeof *plan.shards);
    ph_status status = plan.tables != NULL && plan.shards != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables && status == PH_OK; i++) {
        assert(tables[i].num_rows > 0 && tables[i].dim > 0);
        status = build_table(&plan, &tables[i], &choices[i]);
    }
    if (status == PH_OK)
        *plan_out = plan;
    else
        ph__plan_fini(&plan);
    return status;
}

const struct ph__plan_table *ph__plan_find(const struct ph__plan *plan, const char *name)
{
    const size_t table = ph__name_index_find(&plan->names, name);
    return table != PH_NO_NAME ? &plan->tables[table] : NULL;
}

void ph__plan_fini(struct ph__plan *plan)
{
    ph__name_index_fini(&plan->names);
    ph__arena_fini(&plan->arena);
    *plan = (struct ph__plan){0};
}

ph_status ph__plan_replicate(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, struct ph__plan *plan_out)
{
    struct ph__arena arena = {0};
    struct ph__plan_choice *choices = ph__arena_alloc_array(&arena, num_tables, sizeof *choices);
    ph_status status = choices != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables && status == PH_OK; i++)
        choices[i].kind = PH_SHARD_DATA_PARALLEL;
    if (status == PH_OK)
        status = ph__plan_build(topology, tables, num_tables, choices, plan_out);
    ph__arena_fini(&arena);
    return status;
}

/* ---- places for tables that have a kind and no place: by bytes alone ---- */

struct placing {
    const struct ph__topology *topology;
    const struct ph__table_facts *tables;
    size_t num_tables;
    struct ph__plan_choice *choices;
    struct ph__arena *arena;
    uint64_t *rank_bytes;           /* (world_size) so far */
    uint32_t *order;                /* (world_size) scratch: ranks or hosts, the emptiest first */
    struct ph__table_shard *shards; /* (world_size) scratch */
};

/* Counts the kind's places, ranks or hosts. */
static size_t count_all(const struct placing *placing, enum ph__shard_kind kind)
{
    const struct ph__topology *topology = placing->topology;
    return ph__shard_kind_is_of_hosts(kind) ? ph__num_hosts(topology) : topology->world_size;
}

/* Counts the places that a table of the kind takes. */
static size_t count_places(const struct placing *placing, size_t table, enum ph__shard_kind kind)
{
    const size_t columns = ph__most_column_shards(&placing->tables[table]);
    switch (kind) {
    case PH_SHARD_ROW_WISE:
        return placing->topology->world_size;
    case PH_SHARD_COLUMN_WISE:
        return ph__min(placing->topology->world_size, columns);
    case PH_SHARD_GRID:
        return ph__min(ph__num_hosts(placing->topology), columns);
    default:
        return 1;
    }
}

/* Returns true when the table goes to all ranks or hosts, however full they are. */
static bool goes_everywhere(const struct placing *placing, size_t table, enum ph__shard_kind kind)
{
    return kind == PH_SHARD_DATA_PARALLEL || count_places(placing, table, kind) == count_all(placing, kind);
}

static void add_bytes(struct placing *placing, size_t table)
{
    const struct ph__table_facts *facts = &placing->tables[table];
    const size_t count = table_shards(placing->topology, facts, &placing->choices[table], 0, placing->shards);
    for (size_t i = 0; i < count; i++)
        placing->rank_bytes[placing->shards[i].rank] +=
            ph__table_shard_bytes(facts, placing->shards[i].num_rows, placing->shards[i].num_columns);
}

static uint64_t bytes_at(const struct placing *placing, bool is_host, size_t place)
{
    const size_t num_local = is_host ? placing->topology->ranks_per_host : 1;
    uint64_t bytes = 0;
    for (size_t i = 0; i < num_local; i++)
        bytes += placing->rank_bytes[place * num_local + i];
    return bytes;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Puts the `wanted` emptiest of the places [first, first + count) first, in ascending order. */
static void choose_emptiest(
    const struct placing *placing, bool is_host, size_t first, size_t count, size_t wanted)
{
    uint32_t *order = placing->order;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)(first + i);
    for (size_t i = 0; i < wanted; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < count; j++) {
            const uint64_t bytes = bytes_at(placing, is_host, order[j]),
                           least = bytes_at(placing, is_host, order[best]);
            best = bytes < least || (bytes == least && order[j] < order[best]) ? j : best;
        }
        const uint32_t chosen = order[best];
        order[best] = order[i];
        order[i] = chosen;
    }
    qsort(order, wanted, sizeof *order, ascending);
}

static ph_status place_table(struct placing *placing, size_t table)
{
    struct ph__plan_choice *choice = &placing->choices[table];
    const size_t wanted = count_places(placing, table, choice->kind);
    uint32_t *places = ph__arena_alloc_array(placing->arena, wanted, sizeof *places);
    if (places == NULL)
        return PH_ERROR_MEMORY;
    const bool is_host = ph__shard_kind_is_of_hosts(choice->kind);
    const size_t num_local = is_host ? 1 : placing->topology->ranks_per_host;
    if (choice->host != NULL && wanted <= num_local)
        choose_emptiest(placing, is_host, *choice->host * num_local, num_local, wanted);
    else
        choose_emptiest(placing, is_host, 0, count_all(placing, choice->kind), wanted);
    for (size_t i = 0; i < wanted; i++)
        places[i] = placing->order[i];
    choice->places = places;
    choice->num_places = wanted;
    add_bytes(placing, table);
    return PH_OK;
}

/* Returns the largest table without a place; num_tables when all have one. */
static size_t largest_left(const struct placing *placing)
{
    size_t largest = placing->num_tables;
    uint64_t most = 0;
    for (size_t i = 0; i < placing->num_tables; i++) {
        const struct ph__plan_choice *choice = &placing->choices[i];
        if (choice->num_places > 0 || choice->kind == PH_SHARD_DATA_PARALLEL)
            continue;
        const uint64_t bytes =
            ph__table_shard_bytes(&placing->tables[i], placing->tables[i].num_rows, placing->tables[i].dim);
        if (largest == placing->num_tables || bytes > most) {
            largest = i;
            most = bytes;
        }
    }
    return largest;
}

static ph_status place_all(struct placing *placing)
{
    for (size_t i = 0; i < placing->num_tables; i++) {
        const struct ph__plan_choice *choice = &placing->choices[i];
        if (choice->num_places > 0)
            add_bytes(placing, i);
        else if (choice->kind != PH_SHARD_DATA_PARALLEL && goes_everywhere(placing, i, choice->kind))
            PH_TRY(place_table(placing, i));
    }
    for (size_t i; (i = largest_left(placing)) < placing->num_tables;)
        PH_TRY(place_table(placing, i));
    return PH_OK;
}

ph_status ph__plan_places(const struct ph__topology *topology, const struct ph__table_facts *tables,
    size_t num_tables, struct ph__plan_choice *choices, struct ph__arena *arena)
{
    const size_t world_size = topology->world_size;
    struct placing placing = {
        .topology = topology, .tables = tables, .num_tables = num_tables, .choices = choices, .arena = arena};
    placing.rank_bytes = ph__arena_alloc_array(arena, world_size, sizeof *placing.rank_bytes);
    placing.order = ph__arena_alloc_array(arena, world_size, sizeof *placing.order);
    placing.shards = ph__arena_alloc_array(arena, world_size, sizeof *placing.shards);
    if (placing.rank_bytes == NULL || placing.order == NULL || placing.shards == NULL)
        return PH_ERROR_MEMORY;
    return place_all(&placing);
}

/* ---- checks of a plan from elsewhere against a rank's limit ---- */

/* Returns the bytes of a table on a rank: of its shard, where the table is cut. */
static uint64_t bytes_on(
    const struct ph__plan *plan, const struct ph__table_facts *tables, size_t table, size_t rank)
{
    const struct ph__plan_table *planned = &plan->tables[table];
    const struct ph__table_shard *shards = plan->shards + planned->first_shard;
    if (planned->kind == PH_SHARD_DATA_PARALLEL)
        return planned->bytes;
    for (size_t i = 0; i < planned->num_shards; i++)
        if (shards[i].rank == rank)
            return ph__table_shard_bytes(&tables[table], shards[i].num_rows, shards[i].num_columns);
    return 0;
}

static ph_status refuse(const struct ph__plan *plan, const struct ph__table_facts *tables, size_t rank,
    uint64_t held_bytes, uint64_t rank_bytes)
{
    char held[PH_NUMBER_TEXT_BYTES], allowed[PH_NUMBER_TEXT_BYTES], missing[PH_NUMBER_TEXT_BYTES],
        largest[PH_NUMBER_TEXT_BYTES];
    size_t most = 0;
    for (size_t i = 0; i < plan->num_tables; i++)
        if (bytes_on(plan, tables, i, rank) > bytes_on(plan, tables, most, rank))
            most = i;
    return ph_fail(PH_ERROR_MEMORY,
        "rank %zu of %zu would hold %s of tables with their optimizer's slots, but at most %s are allowed: "
        "%s too much; its largest table is '%s' with %s",
        rank, plan->topology.world_size, ph__bytes_text(held_bytes, held),
        ph__bytes_text(rank_bytes, allowed), ph__bytes_text(held_bytes - rank_bytes, missing),
        tables[most].name, ph__bytes_text(bytes_on(plan, tables, most, rank), largest));
}

static void sum_bytes(const struct ph__plan *plan, const struct ph__table_facts *tables, uint64_t *held)
{
    for (size_t i = 0; i < plan->num_shards; i++) {
        const struct ph__table_shard *shard = &plan->shards[i];
        held[shard->rank] +=
            ph__table_shard_bytes(&tables[shard->table], shard->num_rows, shard->num_columns);
    }
    for (size_t i = 0; i < plan->num_tables; i++)
        for (size_t r = 0; plan->tables[i].kind == PH_SHARD_DATA_PARALLEL && r < plan->topology.world_size;
             r++)
            held[r] += plan->tables[i].bytes;
}

ph_status ph__plan_fullest(
    const struct ph__plan *plan, const struct ph__table_facts *tables, size_t *rank_out, uint64_t *bytes_out)
{
    const size_t world_size = plan->topology.world_size;
    size_t fullest = 0;
    uint64_t *held = calloc(world_size, sizeof *held);
    if (held == NULL)
        return ph__out_of_memory("the bytes of %zu ranks", world_size);
    sum_bytes(plan, tables, held);
    for (size_t rank = 0; rank < world_size; rank++)
        if (held[rank] > held[fullest])
            fullest = rank;
    *rank_out = fullest;
    *bytes_out = held[fullest];
    free(held);
    return PH_OK;
}

ph_status ph__plan_check_bytes(
    const struct ph__plan *plan, const struct ph__table_facts *tables, uint64_t rank_bytes)
{
    size_t fullest;
    uint64_t most;
    if (rank_bytes == 0)
        return PH_OK;
    PH_TRY(ph__plan_fullest(plan, tables, &fullest, &most));
    return most > rank_bytes ? refuse(plan, tables, fullest, most, rank_bytes) : PH_OK;
}
