#include "plan/search/plan_refine.h"

#include <math.h>
#include <string.h>

#include "base/memory/memory.h"

enum { MOST_GIVEN = 2, MOST_TRIED = 40000, MOST_PRICED = 4000 }; /* exchanges */
#define LEAST_GAIN 1e-9                                          /* of a step: rounding is none */

/* Parts that go from one rank to another, and parts that come back; a NULL ends them. */
struct exchange {
    const struct ph__unit *given[MOST_GIVEN + 1], *taken[MOST_GIVEN + 1];
    size_t from, to;
};

/* The change of the other rank, and, with the other sign, of the first. */
struct change {
    float description[PH_COST_MOST_WIDTH];
    double columns, moved_ms;
    uint64_t given_bytes, taken_bytes;
};

struct refining {
    struct ph__layout *layout;
    struct ph__arena arena;
    struct ph__rank_price *trial;                 /* (world_size) */
    const struct ph__unit **of_giver, **of_other; /* (num_units) parts on a rank */
    double ms;                                    /* of the slowest rank */
    size_t num_tried, num_priced;
};

static const struct ph__pricing *pricing_of(const struct refining *refining)
{
    return refining->layout->units->placing->pricing;
}

static bool has_tried_enough(const struct refining *refining)
{
    return refining->num_tried >= MOST_TRIED || refining->num_priced >= MOST_PRICED;
}

/* ---- an exchange ---- */

static bool is_there(const struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    const size_t world_size = layout->units->placing->pricing->topology->world_size;
    return layout->is_there[unit->tables[0] * world_size + rank];
}

/* Adds parts that go from one rank to another. Returns false where the other has such a part, or must not. */
static bool add_parts(const struct ph__layout *layout, const struct ph__unit *const *parts, size_t from,
    size_t to, float sign, struct change *change)
{
    const size_t width = layout->units->placing->pricing->model->width;
    for (size_t k = 0; parts[k] != NULL; k++) {
        if (is_there(layout, parts[k], to) || ph__layout_is_kept_apart(layout, parts[k], to))
            return false;
        for (size_t i = 0; i < width; i++)
            change->description[i] += sign * parts[k]->description[i];
        change->columns += (double)sign * parts[k]->columns;
        change->moved_ms +=
            ph__layout_moved_ms(layout, parts[k], to) - ph__layout_moved_ms(layout, parts[k], from);
        *(sign > 0 ? &change->given_bytes : &change->taken_bytes) += parts[k]->bytes;
    }
    return true;
}

/* Computes both ranks as they would be: trial's compute and columns. */
static ph_status compute_both(
    struct refining *refining, const struct exchange *exchange, const struct change *change)
{
    const struct ph__pricing *pricing = pricing_of(refining);
    const struct ph__layout *layout = refining->layout;
    const size_t width = pricing->model->width, ranks[] = {exchange->from, exchange->to};
    float sets[2 * PH_COST_MOST_WIDTH];
    double ms[2];
    for (size_t i = 0; i < width; i++) {
        sets[i] = layout->sums[exchange->from * width + i] - change->description[i];
        sets[width + i] = layout->sums[exchange->to * width + i] + change->description[i];
    }
    PH_TRY(pricing->model->compute(pricing->model->context, sets, 2, ms));
    for (size_t i = 0; i < 2; i++)
        refining->trial[ranks[i]].compute_ms = ms[i] * ph__slowness(pricing, ranks[i]);
    refining->trial[exchange->from].columns -= change->columns;
    refining->trial[exchange->to].columns += change->columns;
    return PH_OK;
}

static void carry_out(struct refining *refining, const struct exchange *exchange)
{
    struct ph__layout *layout = refining->layout;
    for (size_t k = 0; exchange->given[k] != NULL; k++)
        ph__layout_take(layout, exchange->given[k], exchange->from);
    for (size_t k = 0; exchange->taken[k] != NULL; k++) {
        ph__layout_take(layout, exchange->taken[k], exchange->to);
        ph__layout_put(layout, exchange->taken[k], exchange->from);
    }
    for (size_t k = 0; exchange->given[k] != NULL; k++)
        ph__layout_put(layout, exchange->given[k], exchange->to);
    for (size_t rank = 0; rank < pricing_of(refining)->topology->world_size; rank++) {
        refining->trial[rank].bytes = layout->prices[rank].bytes;
        layout->prices[rank] = refining->trial[rank];
    }
}

/* Carries an exchange out where it is allowed, and the slowest rank gains by it. */
static ph_status try_exchange(struct refining *refining, const struct exchange *exchange, bool *is_better_out)
{
    struct ph__layout *layout = refining->layout;
    const size_t world_size = pricing_of(refining)->topology->world_size;
    struct change change = {0};
    double ms;
    refining->num_tried++;
    if (!add_parts(layout, exchange->given, exchange->from, exchange->to, 1, &change) ||
        !add_parts(layout, exchange->taken, exchange->to, exchange->from, -1, &change) ||
        ph__layout_beyond(layout, exchange->to, change.given_bytes, change.taken_bytes) > 0 ||
        ph__layout_beyond(layout, exchange->from, change.taken_bytes, change.given_bytes) > 0)
        return PH_OK;
    refining->num_priced++;
    memcpy(refining->trial, layout->prices, world_size * sizeof *refining->trial);
    PH_TRY(compute_both(refining, exchange, &change));
    if (ph__busy_ms(&refining->trial[exchange->to]) >= refining->ms)
        return PH_OK;
    PH_TRY(ph__price_exchanges(pricing_of(refining), refining->trial, &ms));
    if (ms + change.moved_ms >= refining->ms * (1 - LEAST_GAIN))
        return PH_OK;
    carry_out(refining, exchange);
    refining->ms = ms;
    *is_better_out = true;
    return PH_OK;
}

/* ---- all ---- */

/* Lists the parts on a rank that may go elsewhere (num_units), and returns how many. */
static size_t list_parts(const struct ph__layout *layout, size_t rank, const struct ph__unit **parts)
{
    size_t count = 0;
    for (size_t u = 0; u < layout->units->num_units; u++) {
        const struct ph__unit *unit = &layout->units->units[u];
        if (unit->cut.kind != PH_SHARD_DATA_PARALLEL && is_there(layout, unit, rank))
            parts[count++] = unit;
    }
    return count;
}

/* Counts the ways to choose none of so many parts, one, or, if most is 2, two. */
static size_t count_ways(size_t count, size_t most)
{
    return 1 + count + (most > 1 && count > 1 ? count * (count - 1) / 2 : 0);
}

static void choose(const struct ph__unit *const *parts, size_t count, size_t way,
    const struct ph__unit *chosen_out[MOST_GIVEN + 1])
{
    size_t first = 0;
    chosen_out[0] = way == 0 ? NULL : parts[way <= count ? way - 1 : 0];
    chosen_out[1] = NULL;
    if (way <= count)
        return;
    for (way -= count + 1; way >= count - 1 - first; first++)
        way -= count - 1 - first;
    chosen_out[0] = parts[first];
    chosen_out[1] = parts[first + 1 + way];
}

/* Tries to take up to so many parts of the other rank for those of an exchange. */
static ph_status try_rank(
    struct refining *refining, struct exchange *exchange, size_t most, bool *is_better_out)
{
    const size_t count = list_parts(refining->layout, exchange->to, refining->of_other);
    for (size_t way = 0; way < count_ways(count, most) && !*is_better_out && !has_tried_enough(refining);
         way++) {
        choose(refining->of_other, count, way, exchange->taken);
        PH_TRY(try_exchange(refining, exchange, is_better_out));
    }
    return PH_OK;
}

/* Tries to give up to so many parts of a rank to others. */
static ph_status try_parts(struct refining *refining, size_t from, size_t most, bool *is_better_out)
{
    const size_t world_size = pricing_of(refining)->topology->world_size;
    const size_t count = list_parts(refining->layout, from, refining->of_giver);
    struct exchange exchange = {.from = from};
    for (size_t way = 1; way < count_ways(count, most) && !*is_better_out && !has_tried_enough(refining);
         way++) {
        choose(refining->of_giver, count, way, exchange.given);
        for (exchange.to = 0; exchange.to < world_size && !*is_better_out; exchange.to++)
            if (exchange.to != from)
                PH_TRY(try_rank(refining, &exchange, most, is_better_out));
    }
    return PH_OK;
}

static size_t find_most(const struct refining *refining, double (*ms_of)(const struct ph__rank_price *price))
{
    const struct ph__rank_price *prices = refining->layout->prices;
    size_t most = 0;
    for (size_t rank = 1; rank < pricing_of(refining)->topology->world_size; rank++)
        if (ms_of(&prices[rank]) > ms_of(&prices[most]))
            most = rank;
    return most;
}

/* Exchanges one part for one where that is a gain, else up to two for two. A rank that ends last may have
 * waited for the busiest one, which then is to give parts. */
static ph_status improve(struct refining *refining, bool *is_better_out)
{
    *is_better_out = false;
    for (size_t most = 1; most <= MOST_GIVEN && !*is_better_out; most++) {
        const size_t busiest = find_most(refining, ph__busy_ms),
                     last = find_most(refining, ph__rank_price_ms);
        PH_TRY(try_parts(refining, busiest, most, is_better_out));
        if (last != busiest && !*is_better_out)
            PH_TRY(try_parts(refining, last, most, is_better_out));
    }
    return PH_OK;
}

static ph_status lay(struct refining *refining, const bool *laid)
{
    struct ph__layout *layout = refining->layout;
    const struct ph__units *units = layout->units;
    const size_t world_size = pricing_of(refining)->topology->world_size;
    PH_TRY(ph__layout_begin(layout));
    for (size_t u = 0; u < units->num_units; u++)
        for (size_t rank = 0; rank < world_size; rank++)
            if (laid[units->units[u].tables[0] * world_size + rank])
                ph__layout_put(layout, &units->units[u], rank);
    PH_TRY(ph__layout_compute(layout));
    return ph__price_exchanges(pricing_of(refining), layout->prices, &refining->ms);
}

static ph_status refine(struct refining *refining, const bool *laid)
{
    struct ph__arena *arena = &refining->arena;
    const size_t num_units = refining->layout->units->num_units;
    bool is_better = true;
    refining->trial =
        ph__arena_alloc_array(arena, pricing_of(refining)->topology->world_size, sizeof *refining->trial);
    refining->of_giver = ph__arena_alloc_array(arena, num_units, sizeof *refining->of_giver);
    refining->of_other = ph__arena_alloc_array(arena, num_units, sizeof *refining->of_other);
    if (refining->trial == NULL || refining->of_giver == NULL || refining->of_other == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(lay(refining, laid));
    while (is_better)
        PH_TRY(improve(refining, &is_better));
    return PH_OK;
}

ph_status ph__layout_refine(struct ph__layout *layout, const bool *laid, double *ms_out)
{
    struct refining refining = {.layout = layout};
    const ph_status status = refine(&refining, laid);
    *ms_out = refining.ms;
    ph__arena_fini(&refining.arena);
    return status;
}
