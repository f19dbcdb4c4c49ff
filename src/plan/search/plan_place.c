#include "plan/search/plan_place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/search/plan_refine.h"

/* Placements, lanes, limit a rank's columns to 1, 1.05 ... 1.5 times the mean; the last one does not. */
enum { NUM_LANES = 12, MOST_PRICED = 8 };

/* A rank that a unit may go to. */
struct option {
    uint32_t rank;
    double ms;
    uint64_t short_bytes, bytes;
};

struct ph__placer {
    struct ph__units units;
    struct ph__layout layout; /* of the lane that is tried */
    double *table_ms;         /* (num_tables) */
    uint32_t *order;          /* (num_units) dearest first */
    struct option *options;   /* (world_size) */
    float *sets;              /* (world_size, width) of the options */
    uint32_t *by_ms;          /* (world_size) ranks, the least busy first */

    double most_columns; /* of a rank */
    bool is_limiting;    /* most_columns has kept a unit from a rank */
    bool is_dead;        /* a unit found no rank within most_columns */
};

static const struct ph__pricing *pricing_of(const struct ph__placer *placer)
{
    return placer->units.placing->pricing;
}

/* ---- lanes ---- */

/* Puts a rank that has become busier behind those that are less busy now. */
static void sink_rank(struct ph__placer *placer, uint32_t rank)
{
    const struct ph__rank_price *prices = placer->layout.prices;
    const size_t world_size = pricing_of(placer)->topology->world_size;
    size_t place = 0;
    while (placer->by_ms[place] != rank)
        place++;
    for (; place + 1 < world_size &&
           ph__busy_ms(&prices[placer->by_ms[place + 1]]) < ph__busy_ms(&prices[rank]);
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

/* Empties the lane, and limits a rank's columns to so many times the mean. */
static ph_status begin_lane(struct ph__placer *placer, double most)
{
    double columns = 0;
    for (size_t u = 0; u < placer->units.num_units; u++)
        columns += placer->units.units[u].columns * placer->units.units[u].cut.num_parts;
    placer->most_columns = most * columns / (double)pricing_of(placer)->topology->world_size;
    placer->is_limiting = false;
    placer->is_dead = false;
    PH_TRY(ph__layout_begin(&placer->layout));
    sort_ranks(placer);
    return PH_OK;
}

/* ---- a unit ---- */

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
static size_t list_options(struct ph__placer *placer, const struct ph__unit *unit, size_t most)
{
    struct option *options = placer->options;
    size_t count = 0;
    for (size_t i = 0; i < pricing_of(placer)->topology->world_size; i++) {
        const uint32_t rank = placer->by_ms[i];
        const struct ph__rank_price *price = &placer->layout.prices[rank];
        const double ms = ph__busy_ms(price);
        if (count == most && options[most - 1].short_bytes == 0 && ms > options[most - 1].ms)
            break;
        if (price->columns + unit->columns > placer->most_columns) {
            placer->is_limiting = true;
            continue;
        }
        if (ph__layout_is_kept_apart(&placer->layout, unit, rank))
            continue;
        const struct option option = {
            rank, ms, ph__layout_beyond(&placer->layout, rank, unit->bytes, 0), price->bytes};
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
static ph_status price_options(struct ph__placer *placer, const struct ph__unit *unit, size_t count)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    const struct ph__layout *layout = &placer->layout;
    const size_t width = pricing->model->width;
    for (size_t k = 0; k < count; k++)
        for (size_t n = 0; n < width; n++)
            placer->sets[k * width + n] =
                layout->sums[placer->options[k].rank * width + n] + unit->description[n];
    PH_TRY(pricing->model->compute(pricing->model->context, placer->sets, count, layout->ms));
    for (size_t k = 0; k < count; k++) {
        const size_t rank = placer->options[k].rank;
        placer->options[k].ms = layout->ms[k] * ph__slowness(pricing, rank) +
                                layout->prices[rank].replicas_ms + ph__layout_moved_ms(layout, unit, rank);
    }
    qsort(placer->options, count, sizeof *placer->options, by_room);
    return PH_OK;
}

/* Puts a unit's parts on the first of the options. */
static void put_unit(struct ph__placer *placer, const struct ph__unit *unit)
{
    for (size_t part = 0; part < unit->cut.num_parts; part++) {
        const struct option *option = &placer->options[part];
        struct ph__rank_price *price = &placer->layout.prices[option->rank];
        ph__layout_put(&placer->layout, unit, option->rank);
        price->compute_ms =
            option->ms - ph__layout_moved_ms(&placer->layout, unit, option->rank) - price->replicas_ms;
        sink_rank(placer, option->rank);
    }
}

static ph_status place_unit(struct ph__placer *placer, const struct ph__unit *unit)
{
    const size_t num_parts = unit->cut.num_parts;
    const size_t count = list_options(placer, unit, ph__max(num_parts, (size_t)MOST_PRICED));
    placer->is_dead = count < num_parts;
    if (placer->is_dead)
        return PH_OK;
    PH_TRY(price_options(placer, unit, count));
    put_unit(placer, unit);
    return PH_OK;
}

/* ---- all ---- */

bool ph__placement_is_better(const struct ph__placement *placement, const struct ph__placement *other)
{
    if (placement->short_bytes != other->short_bytes)
        return placement->short_bytes < other->short_bytes;
    return placement->ms + placement->moved_ms < other->ms + other->moved_ms;
}

static void copy_layout(const struct ph__placer *placer, struct ph__placement *placement)
{
    const struct ph__pricing *pricing = pricing_of(placer);
    memcpy(placement->is_there, placer->layout.is_there,
        pricing->num_tables * pricing->topology->world_size * sizeof *placement->is_there);
}

static ph_status keep_better(struct ph__placer *placer, size_t lane, struct ph__placement *best)
{
    struct ph__placement trial = {.is_there = best->is_there,
        .moved_ms = placer->layout.moved_ms,
        .lane = lane,
        .short_bytes = placer->layout.short_bytes};
    PH_TRY(ph__price_exchanges(pricing_of(placer), placer->layout.prices, &trial.ms));
    if (!ph__placement_is_better(&trial, best))
        return PH_OK;
    *best = trial;
    copy_layout(placer, best);
    return PH_OK;
}

static int dearest_first(const void *a, const void *b, void *context)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const struct ph__unit *units = context;
    if (units[left].ms != units[right].ms)
        return units[left].ms > units[right].ms ? -1 : 1;
    return left < right ? -1 : left > right;
}

static ph_status run_lane(struct ph__placer *placer, size_t lane, struct ph__placement *best)
{
    PH_TRY(begin_lane(placer, lane + 1 < NUM_LANES ? 1 + .05 * (double)lane : INFINITY));
    for (size_t i = 0; i < placer->units.num_units && !placer->is_dead; i++) {
        const struct ph__unit *unit = &placer->units.units[placer->order[i]];
        if (unit->cut.kind != PH_SHARD_DATA_PARALLEL)
            PH_TRY(place_unit(placer, unit));
    }
    return placer->is_dead ? PH_OK : keep_better(placer, lane, best);
}

ph_status ph__place(struct ph__placer *placer, const struct ph__table_cut *cuts,
    const struct ph__placement *similar, struct ph__placement *placement_out)
{
    const size_t first = similar != NULL && similar->lane > 0 ? similar->lane - 1 : 0;
    const size_t end = similar != NULL ? ph__min(similar->lane + 2, (size_t)NUM_LANES) : NUM_LANES;
    placement_out->short_bytes = UINT64_MAX;
    placement_out->ms = INFINITY;
    PH_TRY(ph__units_cut(&placer->units, cuts));
    for (size_t u = 0; u < placer->units.num_units; u++)
        placer->order[u] = (uint32_t)u;
    qsort_r(
        placer->order, placer->units.num_units, sizeof *placer->order, dearest_first, placer->units.units);
    for (size_t lane = first; lane < NUM_LANES && (lane < end || isinf(placement_out->ms)); lane++) {
        PH_TRY(run_lane(placer, lane, placement_out));
        if (!placer->is_limiting)
            break; /* wider lanes place everything alike */
    }
    return PH_OK;
}

ph_status ph__placer_refine(
    struct ph__placer *placer, const struct ph__table_cut *cuts, struct ph__placement *placement)
{
    if (placement->short_bytes > 0)
        return PH_OK;
    PH_TRY(ph__units_cut(&placer->units, cuts));
    PH_TRY(ph__layout_refine(&placer->layout, placement->is_there, &placement->ms));
    placement->moved_ms = placer->layout.moved_ms;
    copy_layout(placer, placement);
    return PH_OK;
}

double ph__placer_table_ms(const struct ph__placer *placer, size_t table)
{
    return placer->table_ms[table];
}

/* ---- creation ---- */

static ph_status create(struct ph__placer *placer, const struct ph__placing *placing)
{
    const size_t width = placing->pricing->model->width, world_size = placing->pricing->topology->world_size;
    struct ph__arena *arena = &placer->units.arena;
    PH_TRY(ph__units_init(placing, &placer->units));
    PH_TRY(ph__layout_init(&placer->units, arena, &placer->layout));
    placer->table_ms = ph__arena_alloc_array(arena, placing->pricing->num_tables, sizeof *placer->table_ms);
    placer->order = ph__arena_alloc_array(arena, placer->units.num_units, sizeof *placer->order);
    placer->options = ph__arena_alloc_array(arena, world_size, sizeof *placer->options);
    placer->sets = ph__arena_alloc_array(arena, world_size * width, sizeof *placer->sets);
    placer->by_ms = ph__arena_alloc_array(arena, world_size, sizeof *placer->by_ms);
    if (placer->table_ms == NULL || placer->order == NULL || placer->options == NULL ||
        placer->sets == NULL || placer->by_ms == NULL)
        return PH_ERROR_MEMORY;
    return ph__units_weigh(&placer->units, placer->table_ms);
}

ph_status ph__placer_create(const struct ph__placing *placing, struct ph__placer **placer_out)
{
    struct ph__placer *placer = calloc(1, sizeof *placer);
    if (placer == NULL)
        return ph__out_of_memory("a search for a plan");
    const ph_status status = create(placer, placing);
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
    ph__units_fini(&placer->units);
    free(placer);
}
