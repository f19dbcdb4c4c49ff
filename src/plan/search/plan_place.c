#include "plan/search/plan_place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/plan_cost.h"

/* Placements, lanes, limit a rank's columns to 1, 1.05 ... 1.5 times the mean; the last one does not. */
enum { NUM_LANES = 12, MOST_PRICED = 8 };

/* Tables that are placed together: those of a group, or one. */
struct unit {
    const uint32_t *tables;
    size_t num_tables;
};

/* Work and bytes of one part of a unit. */
struct load {
    float description[PH_COST_MOST_WIDTH];
    double columns, ms; /* ms: alone on a rank */
    uint64_t bytes;
};

/* A rank that a unit may go to. */
struct option {
    uint32_t rank;
    double ms;
    uint64_t short_bytes, bytes;
};

struct ph__placer {
    const struct ph__placing *placing; /* borrowed */
    struct ph__arena arena;
    struct unit *units; /* (num_units) */
    uint32_t *singles;  /* (num_tables) 0, 1, ...: the tables of units of one */
    size_t num_units;
    double *table_ms;           /* (num_tables) */
    struct ph__table_cut *cuts; /* (num_units) that loads were made for; no parts: none yet */
    struct load *loads;         /* (num_units) */
    uint32_t *order;            /* (num_units) dearest first */
    struct option *options;     /* (world_size) */
    float *sets;                /* (world_size, width) of the options */
    double *ms;                 /* (world_size) */

    /* of the lane that is tried */
    double most_columns; /* of a rank */
    bool is_limiting;    /* most_columns has kept a unit from a rank */
    bool is_dead;        /* a unit found no rank within most_columns */
    float *sums;         /* (world_size, width) */
    struct ph__rank_price *prices;
    uint32_t *by_ms;      /* (world_size) ranks, the least busy first */
    uint64_t *host_bytes; /* (num_hosts) */
    bool *is_there;       /* as of struct ph__placement */
    double moved_ms;
    uint64_t short_bytes;
};

static const struct ph__pricing *pricing_of(const struct ph__placer *placer)
{
    return placer->placing->pricing;
}

static uint64_t rank_limit(const struct ph__placer *placer, size_t rank)
{
    const uint64_t *limits = placer->placing->limits.rank_bytes;
    const uint64_t limit = limits != NULL ? limits[rank] : pricing_of(placer)->machine->rank_bytes;
    return limit > 0 ? limit : UINT64_MAX;
}

/* ---- parts ---- */

/* Gives rows and columns of the largest part of a table that is cut so. */
static void largest_part(const struct ph__table_facts *table, const struct ph__table_cut *cut,
    uint64_t *rows_out, size_t *columns_out)
{
    const size_t blocks = ph__divide_up(ph__divide_up(table->dim, PH_SHARD_COLUMNS), cut->num_parts);
    *rows_out = table->num_rows;
    *columns_out = table->dim;
    if (cut->kind == PH_SHARD_ROW_WISE)
        *rows_out = ph__divide_up(table->num_rows, cut->num_parts);
    if (cut->kind == PH_SHARD_COLUMN_WISE)
        *columns_out = ph__min(blocks * PH_SHARD_COLUMNS, table->dim);
}

uint64_t ph__cut_bytes(const struct ph__table_facts *table, const struct ph__table_cut *cut)
{
    uint64_t rows;
    size_t columns;
    largest_part(table, cut, &rows, &columns);
    return ph__table_shard_bytes(table, rows, columns);
}

/* Adds a part of the table to a load. */
static ph_status add_part(
    const struct ph__placer *placer, size_t table, const struct ph__table_cut *cut, struct load *load)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    const struct ph__table_facts *facts = &pricing->tables[table];
    const bool is_copied = cut->kind == PH_SHARD_DATA_PARALLEL;
    const double share = is_copied ? 1 / (double)pricing->topology->world_size : 1;
    uint64_t rows;
    size_t columns;
    largest_part(facts, cut, &rows, &columns);
    PH_TRY(ph__add_part(pricing, table, (double)rows, columns, share, load->description));
    load->columns += is_copied ? 0 : ph__sent_columns(facts, (double)rows, columns);
    load->bytes += ph__cut_bytes(facts, cut);
    return pricing->model->compute(pricing->model->context, load->description, 1, &load->ms);
}

/* Makes the loads of units that are cut otherwise than before. Tables that lie together are never cut. */
static ph_status make_loads(struct ph__placer *placer, const struct ph__table_cut *cuts)
{
    for (size_t u = 0; u < placer->num_units; u++) {
        const struct unit *unit = &placer->units[u];
        struct ph__table_cut *former = &placer->cuts[u];
        const struct ph__table_cut *cut = &cuts[unit->tables[0]];
        if (former->kind == cut->kind && former->num_parts == cut->num_parts)
            continue;
        placer->loads[u] = (struct load){0};
        for (size_t k = 0; k < unit->num_tables; k++)
            PH_TRY(add_part(placer, unit->tables[k], cut, &placer->loads[u]));
        *former = *cut;
    }
    return PH_OK;
}

static int dearest_first(const void *a, const void *b, void *context)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const struct load *loads = context;
    if (loads[left].ms != loads[right].ms)
        return loads[left].ms > loads[right].ms ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* ---- lanes ---- */

static void add_load(struct ph__placer *placer, const struct load *load, size_t rank)
{
    const size_t width = pricing_of(placer)->model->width;
    struct ph__rank_price *price = &placer->prices[rank];
    for (size_t i = 0; i < width; i++)
        placer->sums[rank * width + i] += load->description[i];
    price->bytes += load->bytes;
    price->columns += load->columns;
    placer->host_bytes[rank / pricing_of(placer)->topology->ranks_per_host] += load->bytes;
}

static double busy_ms(const struct ph__rank_price *price)
{
    return price->compute_ms + price->replicas_ms;
}

/* Puts a rank that has become busier behind those that are less busy now. */
static void sink_rank(struct ph__placer *placer, uint32_t rank)
{
    const size_t world_size = pricing_of(placer)->topology->world_size;
    size_t place = 0;
    while (placer->by_ms[place] != rank)
        place++;
    for (; place + 1 < world_size &&
           busy_ms(&placer->prices[placer->by_ms[place + 1]]) < busy_ms(&placer->prices[rank]);
         place++)
        placer->by_ms[place] = placer->by_ms[place + 1];
    placer->by_ms[place] = rank;
}

static void sort_ranks(struct ph__placer *placer)
{
    const size_t world_size = pricing_of(placer)->topology->world_size;
    for (size_t rank = 0; rank < world_size; rank++)
        placer->by_ms[rank] = (uint32_t)rank;
    for (size_t rank = world_size; rank-- > 0;)
        sink_rank(placer, (uint32_t)rank);
}

/* Counts the bytes that the load would take beyond the limits of the rank and its host. */
static uint64_t bytes_beyond(const struct ph__placer *placer, const struct load *load, size_t rank)
{
    const uint64_t host_limit = placer->placing->limits.host_bytes, limit = rank_limit(placer, rank);
    const uint64_t own = placer->prices[rank].bytes + load->bytes;
    const uint64_t host =
        placer->host_bytes[rank / pricing_of(placer)->topology->ranks_per_host] + load->bytes;
    const uint64_t beyond = own > limit ? ph__min(own - limit, load->bytes) : 0;
    const uint64_t beyond_host =
        host_limit > 0 && host > host_limit ? ph__min(host - host_limit, load->bytes) : 0;
    return ph__max(beyond, beyond_host);
}

/* Returns true where the plan to start from has some of the table on the rank, cut in the same way. */
static bool lay_there(
    const struct ph__placer *placer, size_t table, const struct ph__table_cut *cut, size_t rank)
{
    const struct ph__plan *from = placer->placing->from;
    const struct ph__plan_table *planned = &from->tables[table];
    if (planned->kind == PH_SHARD_DATA_PARALLEL && cut->kind == planned->kind)
        return true;
    if (planned->kind != cut->kind || (cut->num_parts > 1 && planned->num_places != cut->num_parts))
        return false;
    for (size_t i = 0; i < planned->num_shards; i++)
        if (from->shards[planned->first_shard + i].rank == rank)
            return true;
    return false;
}

static double moved_ms(
    const struct ph__placer *placer, const struct unit *unit, const struct ph__table_cut *cuts, size_t rank)
{
    double bytes = 0;
    for (size_t k = 0; placer->placing->from != NULL && k < unit->num_tables; k++) {
        const uint32_t table = unit->tables[k];
        if (!lay_there(placer, table, &cuts[table], rank))
            bytes += (double)ph__cut_bytes(&pricing_of(placer)->tables[table], &cuts[table]);
    }
    return bytes / 1e9 * placer->placing->ms_per_moved_gb;
}

/* Gives every rank the tables that are copied. */
static ph_status add_copies(struct ph__placer *placer, const struct ph__table_cut *cuts)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    for (size_t u = 0; u < placer->num_units; u++) {
        const uint32_t table = placer->units[u].tables[0];
        for (size_t rank = 0;
             cuts[table].kind == PH_SHARD_DATA_PARALLEL && rank < pricing->topology->world_size; rank++) {
            placer->short_bytes += bytes_beyond(placer, &placer->loads[u], rank);
            placer->moved_ms += moved_ms(placer, &placer->units[u], cuts, rank);
            add_load(placer, &placer->loads[u], rank);
            placer->prices[rank].replicas_ms += ph__replica_ms(pricing, table);
        }
    }
    PH_TRY(pricing->model->compute(
        pricing->model->context, placer->sums, pricing->topology->world_size, placer->ms));
    for (size_t rank = 0; rank < pricing->topology->world_size; rank++)
        placer->prices[rank].compute_ms = placer->ms[rank] * ph__slowness(pricing, rank);
    return PH_OK;
}

/* Empties the lane, and limits a rank's columns to so many times the mean. */
static ph_status begin_lane(struct ph__placer *placer, const struct ph__table_cut *cuts, double most)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    const size_t world_size = pricing->topology->world_size;
    double columns = 0;
    for (size_t u = 0; u < placer->num_units; u++)
        columns += placer->loads[u].columns * cuts[placer->units[u].tables[0]].num_parts;
    placer->most_columns = most * columns / (double)world_size;
    placer->is_limiting = false;
    placer->is_dead = false;
    placer->moved_ms = 0;
    placer->short_bytes = 0;
    memset(placer->sums, 0, world_size * pricing->model->width * sizeof *placer->sums);
    memset(placer->prices, 0, world_size * sizeof *placer->prices);
    memset(placer->host_bytes, 0, world_size * sizeof *placer->host_bytes);
    memset(placer->is_there, 0, pricing->num_tables * world_size * sizeof *placer->is_there);
    PH_TRY(add_copies(placer, cuts));
    sort_ranks(placer);
    return PH_OK;
}

/* ---- a unit ---- */

/* Tells whether the rank has a table of a group that lies apart from this one. */
static bool is_group_there(
    const struct ph__placer *placer, const struct ph__table_group *group, uint32_t table, size_t rank)
{
    const size_t world_size = pricing_of(placer)->topology->world_size;
    bool is_of_group = false, is_there = false;
    for (size_t k = 0; group->is_apart && k < group->num_tables; k++) {
        is_of_group |= group->tables[k] == table;
        is_there |= placer->is_there[group->tables[k] * world_size + rank];
    }
    return is_of_group && is_there;
}

static bool is_kept_apart(const struct ph__placer *placer, const struct unit *unit, size_t rank)
{
    const struct ph__plan_limits *limits = &placer->placing->limits;
    for (size_t g = 0; g < limits->num_groups; g++)
        for (size_t t = 0; t < unit->num_tables; t++)
            if (is_group_there(placer, &limits->groups[g], unit->tables[t], rank))
                return true;
    return false;
}

/* Ranks with room come first, then those that are least busy. */
static int by_room(const void *a, const void *b)
{
    const struct option *left = a, *right = b;
    if (left->short_bytes != right->short_bytes)
        return left->short_bytes < right->short_bytes ? -1 : 1;
    if (left->ms != right->ms)
        return left->ms < right->ms ? -1 : 1;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Lists the ranks that are worth a price, the best `most` of those that the limits allow. */
static size_t list_options(struct ph__placer *placer, size_t unit, size_t most)
{
    const struct load *load = &placer->loads[unit];
    struct option *options = placer->options;
    size_t count = 0;
    for (size_t i = 0; i < pricing_of(placer)->topology->world_size; i++) {
        const uint32_t rank = placer->by_ms[i];
        const struct ph__rank_price *price = &placer->prices[rank];
        const double ms = busy_ms(price);
        if (count == most && options[most - 1].short_bytes == 0 && ms > options[most - 1].ms)
            break;
        if (price->columns + load->columns > placer->most_columns) {
            placer->is_limiting = true;
            continue;
        }
        if (is_kept_apart(placer, &placer->units[unit], rank))
            continue;
        const struct option option = {rank, ms, bytes_beyond(placer, load, rank), price->bytes};
        size_t place = count;
        while (place > 0 && by_room(&option, &options[place - 1]) < 0)
            place--;
        if (place == most)
            continue;
        count = ph__min(count + 1, most);
        memmove(options + place + 1, options + place, (count - place - 1) * sizeof *options);
        options[place] = option;
    }
    return count;
}

/* Prices the options (count) with a part of the unit, and orders them. Their ms are those of the ranks with
 * the part, and the price of moving it there. */
static ph_status price_options(
    struct ph__placer *placer, size_t unit, const struct ph__table_cut *cuts, size_t count)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    const size_t width = pricing->model->width;
    for (size_t k = 0; k < count; k++)
        for (size_t n = 0; n < width; n++)
            placer->sets[k * width + n] =
                placer->sums[placer->options[k].rank * width + n] + placer->loads[unit].description[n];
    PH_TRY(pricing->model->compute(pricing->model->context, placer->sets, count, placer->ms));
    for (size_t k = 0; k < count; k++) {
        const size_t rank = placer->options[k].rank;
        placer->options[k].ms = placer->ms[k] * ph__slowness(pricing, rank) +
                                placer->prices[rank].replicas_ms +
                                moved_ms(placer, &placer->units[unit], cuts, rank);
    }
    qsort(placer->options, count, sizeof *placer->options, by_room);
    return PH_OK;
}

/* Puts a unit's parts on the first of the options. */
static void put_unit(struct ph__placer *placer, size_t unit, const struct ph__table_cut *cuts)
{
    const struct unit *own = &placer->units[unit];
    const size_t world_size = pricing_of(placer)->topology->world_size;
    const size_t num_parts = cuts[own->tables[0]].num_parts;
    for (size_t part = 0; part < num_parts; part++) {
        const struct option *option = &placer->options[part];
        const double moved = moved_ms(placer, own, cuts, option->rank);
        placer->short_bytes += option->short_bytes;
        placer->moved_ms += moved;
        add_load(placer, &placer->loads[unit], option->rank);
        placer->prices[option->rank].compute_ms =
            option->ms - moved - placer->prices[option->rank].replicas_ms;
        sink_rank(placer, option->rank);
        for (size_t k = 0; k < own->num_tables; k++)
            placer->is_there[own->tables[k] * world_size + option->rank] = true;
    }
}

static ph_status place_unit(struct ph__placer *placer, size_t unit, const struct ph__table_cut *cuts)
{
    const size_t num_parts = cuts[placer->units[unit].tables[0]].num_parts;
    const size_t count = list_options(placer, unit, ph__max(num_parts, (size_t)MOST_PRICED));
    placer->is_dead = count < num_parts;
    if (placer->is_dead)
        return PH_OK;
    PH_TRY(price_options(placer, unit, cuts, count));
    put_unit(placer, unit, cuts);
    return PH_OK;
}

/* ---- all ---- */

bool ph__placement_is_better(const struct ph__placement *placement, const struct ph__placement *other)
{
    if (placement->short_bytes != other->short_bytes)
        return placement->short_bytes < other->short_bytes;
    return placement->ms + placement->moved_ms < other->ms + other->moved_ms;
}

static ph_status keep_better(struct ph__placer *placer, size_t lane, struct ph__placement *best)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    struct ph__placement trial = {.is_there = best->is_there,
        .moved_ms = placer->moved_ms,
        .lane = lane,
        .short_bytes = placer->short_bytes};
    PH_TRY(ph__price_exchanges(pricing, placer->prices, &trial.ms));
    if (!ph__placement_is_better(&trial, best))
        return PH_OK;
    *best = trial;
    memcpy(best->is_there, placer->is_there,
        pricing->num_tables * pricing->topology->world_size * sizeof *placer->is_there);
    return PH_OK;
}

ph_status ph__place(struct ph__placer *placer, const struct ph__table_cut *cuts,
    const struct ph__placement *similar, struct ph__placement *placement_out)
{
    const size_t first = similar != NULL && similar->lane > 0 ? similar->lane - 1 : 0;
    const size_t end = similar != NULL ? ph__min(similar->lane + 2, (size_t)NUM_LANES) : NUM_LANES;
    placement_out->short_bytes = UINT64_MAX;
    placement_out->ms = INFINITY;
    PH_TRY(make_loads(placer, cuts));
    for (size_t u = 0; u < placer->num_units; u++)
        placer->order[u] = (uint32_t)u;
    qsort_r(placer->order, placer->num_units, sizeof *placer->order, dearest_first, placer->loads);
    for (size_t lane = first; lane < NUM_LANES && (lane < end || isinf(placement_out->ms)); lane++) {
        PH_TRY(begin_lane(placer, cuts, lane + 1 < NUM_LANES ? 1 + .05 * (double)lane : INFINITY));
        for (size_t i = 0; i < placer->num_units && !placer->is_dead; i++)
            if (cuts[placer->units[placer->order[i]].tables[0]].kind != PH_SHARD_DATA_PARALLEL)
                PH_TRY(place_unit(placer, placer->order[i], cuts));
        if (!placer->is_dead)
            PH_TRY(keep_better(placer, lane, placement_out));
        if (!placer->is_limiting)
            break; /* wider lanes place everything alike */
    }
    return PH_OK;
}

double ph__placer_table_ms(const struct ph__placer *placer, size_t table)
{
    return placer->table_ms[table];
}

/* ---- creation ---- */

/* Makes a unit of each group that lies together, and of each other table. */
static ph_status make_units(struct ph__placer *placer)
{
    const struct ph__plan_limits *limits = &placer->placing->limits;
    const size_t num_tables = pricing_of(placer)->num_tables;
    bool *is_grouped = ph__arena_alloc_array(&placer->arena, num_tables, sizeof *is_grouped);
    placer->units = ph__arena_alloc_array(&placer->arena, num_tables, sizeof *placer->units);
    placer->singles = ph__arena_alloc_array(&placer->arena, num_tables, sizeof *placer->singles);
    if (is_grouped == NULL || placer->units == NULL || placer->singles == NULL)
        return PH_ERROR_MEMORY;
    for (size_t g = 0; g < limits->num_groups; g++) {
        const struct ph__table_group *group = &limits->groups[g];
        for (size_t k = 0; !group->is_apart && k < group->num_tables; k++)
            is_grouped[group->tables[k]] = true;
        if (!group->is_apart)
            placer->units[placer->num_units++] = (struct unit){group->tables, group->num_tables};
    }
    for (size_t table = 0; table < num_tables; table++) {
        placer->singles[table] = (uint32_t)table;
        if (!is_grouped[table])
            placer->units[placer->num_units++] = (struct unit){&placer->singles[table], 1};
    }
    return PH_OK;
}

static ph_status weigh_tables(struct ph__placer *placer)
{
    static const struct ph__table_cut whole = {PH_SHARD_TABLE_WISE, 1};
    for (size_t table = 0; table < pricing_of(placer)->num_tables; table++) {
        struct load load = {0};
        PH_TRY(add_part(placer, table, &whole, &load));
        placer->table_ms[table] = load.ms;
    }
    return PH_OK;
}

static ph_status create(struct ph__placer *placer)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    const size_t num_tables = pricing->num_tables, width = pricing->model->width;
    const size_t world_size = pricing->topology->world_size;
    struct ph__arena *arena = &placer->arena;
    PH_TRY(make_units(placer));
    placer->table_ms = ph__arena_alloc_array(arena, num_tables, sizeof *placer->table_ms);
    placer->cuts = ph__arena_alloc_array(arena, placer->num_units, sizeof *placer->cuts);
    placer->loads = ph__arena_alloc_array(arena, placer->num_units, sizeof *placer->loads);
    placer->order = ph__arena_alloc_array(arena, placer->num_units, sizeof *placer->order);
    placer->options = ph__arena_alloc_array(arena, world_size, sizeof *placer->options);
    placer->sets = ph__arena_alloc_array(arena, world_size * width, sizeof *placer->sets);
    placer->ms = ph__arena_alloc_array(arena, world_size, sizeof *placer->ms);
    placer->sums = ph__arena_alloc_array(arena, world_size * width, sizeof *placer->sums);
    placer->prices = ph__arena_alloc_array(arena, world_size, sizeof *placer->prices);
    placer->by_ms = ph__arena_alloc_array(arena, world_size, sizeof *placer->by_ms);
    placer->host_bytes = ph__arena_alloc_array(arena, world_size, sizeof *placer->host_bytes);
    placer->is_there = ph__arena_alloc_array(arena, num_tables * world_size, sizeof *placer->is_there);
    if (placer->table_ms == NULL || placer->cuts == NULL || placer->loads == NULL || placer->order == NULL ||
        placer->options == NULL || placer->sets == NULL || placer->ms == NULL || placer->sums == NULL ||
        placer->prices == NULL || placer->by_ms == NULL || placer->host_bytes == NULL ||
        placer->is_there == NULL)
        return PH_ERROR_MEMORY;
    return weigh_tables(placer);
}

ph_status ph__placer_create(const struct ph__placing *placing, struct ph__placer **placer_out)
{
    struct ph__placer *placer = calloc(1, sizeof *placer);
    if (placer == NULL)
        return ph__out_of_memory("a search for a plan");
    placer->placing = placing;
    const ph_status status = create(placer);
    if (status != PH_OK)
        ph__placer_destroy(placer);
    else
        *placer_out = placer;
    return status;
}

void ph__placer_destroy(struct ph__placer *placer)
{
    if (placer == NULL)
        return;
    ph__arena_fini(&placer->arena);
    free(placer);
}
