#include "plan/search/plan_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "plan/plan_cost.h"
#include "plan/search/plan_place.h"

/* The beam keeps some ways of cutting the tables, the more the fewer tables there are, and moves the
 * CANDIDATES largest tables of each and as many of the dearest, at most DEPTH times, and twice or more
 * without a gain. */
enum { LEAST_BEAM = 3, MOST_BEAM = 16, BEAM_TABLES = 96, DEPTH = 10, CANDIDATES = 10 };

struct state {
    struct ph__table_cut *cuts; /* (num_tables) */
    struct ph__placement placement;
};

struct search {
    const struct ph__search_options *options;
    struct ph__arena arena;
    struct ph__placer *placer;
    struct state best, *beam, *next; /* (width), (width) */
    size_t width, num_beam, num_next;
    struct state trial;
    bool *is_whole;         /* (num_tables) a group that lies together has it */
    struct ph__plan greedy; /* the greedy planner's plan, where that keeps the limits */
    double greedy_ms;       /* INFINITY: there is none */
    struct ph__search_progress progress;
    bool is_stopped;
};

static const struct ph__pricing *pricing_of(const struct search *search)
{
    return search->options->placing.pricing;
}

/* ---- states ---- */

static ph_status make_state(struct search *search, struct state *state)
{
    const struct ph__pricing *pricing = pricing_of(search);
    state->cuts = ph__arena_alloc_array(&search->arena, pricing->num_tables, sizeof *state->cuts);
    state->placement.is_there = ph__arena_alloc_array(&search->arena,
        pricing->num_tables * pricing->topology->world_size, sizeof *state->placement.is_there);
    return state->cuts != NULL && state->placement.is_there != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static void copy_state(const struct search *search, const struct state *from, struct state *to)
{
    const struct ph__pricing *pricing = pricing_of(search);
    bool *is_there = to->placement.is_there;
    memcpy(to->cuts, from->cuts, pricing->num_tables * sizeof *to->cuts);
    memcpy(is_there, from->placement.is_there,
        pricing->num_tables * pricing->topology->world_size * sizeof *is_there);
    to->placement = from->placement;
    to->placement.is_there = is_there;
}

/* Returns the place of a state like this one among the next states; num_next: there is none. */
static size_t find_like(const struct search *search)
{
    const size_t bytes = pricing_of(search)->num_tables * sizeof *search->trial.cuts;
    size_t i = 0;
    while (i < search->num_next && memcmp(search->next[i].cuts, search->trial.cuts, bytes) != 0)
        i++;
    return i;
}

/* Places the trial's cuts, which were made from a state, and keeps it among the next states and as the best
 * where it is good enough. from NULL: it is a beginning. */
static ph_status try_cuts(struct search *search, const struct state *from)
{
    const struct ph__search_options *options = search->options;
    size_t place = search->num_next;
    if (search->is_stopped || find_like(search) < search->num_next)
        return PH_OK;
    PH_TRY(ph__place(search->placer, search->trial.cuts, from != NULL ? &from->placement : NULL,
        &search->trial.placement));
    while (place > 0 && ph__placement_is_better(&search->trial.placement, &search->next[place - 1].placement))
        place--;
    if (place < search->width) {
        const struct state spare = search->next[search->width - 1];
        memmove(search->next + place + 1, search->next + place,
            (search->width - 1 - place) * sizeof *search->next);
        search->next[place] = spare;
        copy_state(search, &search->trial, &search->next[place]);
        search->num_next = ph__min(search->num_next + 1, search->width);
    }
    if (search->progress.num_tried++ == 0 ||
        ph__placement_is_better(&search->trial.placement, &search->best.placement))
        copy_state(search, &search->trial, &search->best);
    search->progress.ms =
        search->best.placement.short_bytes == 0 ? search->best.placement.ms : (double)INFINITY;
    search->progress.short_bytes = search->best.placement.short_bytes;
    search->is_stopped = options->progress != NULL && options->progress(options->context, &search->progress);
    return PH_OK;
}

/* ---- moves ---- */

/* Cuts a table of the trial into twice as many columns, or rows; into as many of those as it had of the
 * others; or copies it, or makes it whole. Returns false where that cannot be, or changes nothing. */
static bool move(const struct search *search, size_t table, enum ph__shard_kind kind)
{
    const struct ph__table_facts *facts = &pricing_of(search)->tables[table];
    const bool is_cut = kind == PH_SHARD_COLUMN_WISE || kind == PH_SHARD_ROW_WISE;
    struct ph__table_cut *cut = &search->trial.cuts[table];
    const struct ph__table_cut former = *cut;
    size_t most = pricing_of(search)->topology->world_size, parts = ph__max((size_t)former.num_parts, 2u);
    if (kind == PH_SHARD_COLUMN_WISE)
        most = ph__min(most, ph__most_column_shards(facts));
    if (kind == PH_SHARD_ROW_WISE)
        most = (size_t)ph__min(most, facts->num_rows);
    if (former.kind == kind)
        parts = 2 * (size_t)former.num_parts;
    *cut = (struct ph__table_cut){kind, (uint32_t)(is_cut ? ph__min(parts, most) : 1)};
    return !search->is_whole[table] && most > 1 &&
           (cut->kind != former.kind || cut->num_parts != former.num_parts);
}

static ph_status try_moves(struct search *search, const struct state *from, size_t table)
{
    static const enum ph__shard_kind kinds[] = {
        PH_SHARD_COLUMN_WISE, PH_SHARD_ROW_WISE, PH_SHARD_DATA_PARALLEL, PH_SHARD_TABLE_WISE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        copy_state(search, from, &search->trial);
        if (move(search, table, kinds[k]))
            PH_TRY(try_cuts(search, from));
    }
    return PH_OK;
}

/* Returns the table that is largest, or dearest, in parts of what a state makes of it, among those that are
 * not taken; num_tables: none is left. */
static size_t find_most(
    const struct search *search, const struct state *state, bool by_bytes, const bool *is_taken)
{
    const struct ph__pricing *pricing = pricing_of(search);
    size_t best = pricing->num_tables;
    double most = 0;
    for (size_t table = 0; table < pricing->num_tables; table++) {
        const struct ph__table_cut *cut = &state->cuts[table];
        const double weight = by_bytes ? (double)ph__cut_bytes(&pricing->tables[table], cut)
                                       : ph__placer_table_ms(search->placer, table) / (double)cut->num_parts;
        if (!is_taken[table] && (best == pricing->num_tables || weight > most)) {
            best = table;
            most = weight;
        }
    }
    return best;
}

static ph_status extend(struct search *search, const struct state *state, bool *is_taken)
{
    const size_t num_tables = pricing_of(search)->num_tables;
    memset(is_taken, 0, num_tables * sizeof *is_taken);
    for (size_t i = 0; i < 2 * CANDIDATES; i++) {
        const size_t table = find_most(search, state, i < CANDIDATES, is_taken);
        if (table == num_tables)
            return PH_OK;
        is_taken[table] = true;
        PH_TRY(try_moves(search, state, table));
    }
    return PH_OK;
}

/* ---- beginnings ---- */

static void cut_whole(const struct search *search)
{
    for (size_t table = 0; table < pricing_of(search)->num_tables; table++)
        search->trial.cuts[table] = (struct ph__table_cut){PH_SHARD_TABLE_WISE, 1};
}

/* Cuts as a plan does, where the search knows its kinds. */
static void cut_as(const struct search *search, const struct ph__plan *plan)
{
    cut_whole(search);
    for (size_t table = 0; table < plan->num_tables; table++) {
        const struct ph__plan_table *planned = &plan->tables[table];
        struct ph__table_cut *cut = &search->trial.cuts[table];
        if (search->is_whole[table])
            continue;
        if (planned->kind == PH_SHARD_ROW_WISE || planned->kind == PH_SHARD_COLUMN_WISE)
            *cut = (struct ph__table_cut){planned->kind, (uint32_t)planned->num_places};
        if (planned->kind == PH_SHARD_DATA_PARALLEL)
            cut->kind = PH_SHARD_DATA_PARALLEL;
    }
}

/* Cuts every table by rows over all ranks, but for those that lie together. */
static void cut_rows(const struct search *search)
{
    const struct ph__pricing *pricing = pricing_of(search);
    cut_whole(search);
    for (size_t table = 0; table < pricing->num_tables; table++)
        if (!search->is_whole[table])
            search->trial.cuts[table] = (struct ph__table_cut){PH_SHARD_ROW_WISE,
                (uint32_t)ph__min(pricing->topology->world_size, pricing->tables[table].num_rows)};
}

/* Cuts each table by rows into as few parts as each fit a rank. */
static void cut_to_fit(const struct search *search)
{
    const struct ph__pricing *pricing = pricing_of(search);
    const uint64_t limit = pricing->machine->rank_bytes;
    cut_whole(search);
    for (size_t table = 0; table < pricing->num_tables; table++) {
        const struct ph__table_facts *facts = &pricing->tables[table];
        const uint64_t row_bytes = ph__table_shard_bytes(facts, 1, facts->dim);
        const uint64_t rows = limit / row_bytes; /* of a part */
        const uint64_t most = ph__min(pricing->topology->world_size, facts->num_rows);
        if (!search->is_whole[table] && facts->num_rows > rows)
            search->trial.cuts[table] = (struct ph__table_cut){PH_SHARD_ROW_WISE,
                (uint32_t)(rows > 0 ? ph__min(ph__divide_up(facts->num_rows, rows), most) : most)};
    }
}

static bool keeps_limits(const struct search *search, const struct ph__rank_price *prices)
{
    const struct ph__plan_limits *limits = &search->options->placing.limits;
    const struct ph__topology *topology = pricing_of(search)->topology;
    uint64_t host_bytes = 0;
    for (size_t rank = 0; rank < topology->world_size; rank++) {
        host_bytes =
            rank % topology->ranks_per_host == 0 ? prices[rank].bytes : host_bytes + prices[rank].bytes;
        if ((limits->rank_bytes != NULL && limits->rank_bytes[rank] > 0 &&
                prices[rank].bytes > limits->rank_bytes[rank]) ||
            (limits->host_bytes > 0 && host_bytes > limits->host_bytes))
            return false;
    }
    return limits->num_groups == 0;
}

/* Prices the greedy plan, which may have kinds that the search does not know. */
static ph_status price_greedy(struct search *search)
{
    const struct ph__placing *placing = &search->options->placing;
    const size_t world_size = pricing_of(search)->topology->world_size;
    struct ph__rank_price *prices = ph__arena_alloc_array(&search->arena, world_size, sizeof *prices);
    double ms;
    if (prices == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__plan_price(pricing_of(search), &search->greedy, prices, &ms));
    if (!keeps_limits(search, prices))
        return PH_OK;
    if (placing->from != NULL)
        ms += placing->ms_per_moved_gb / 1e9 *
              (double)ph__plan_moved_bytes(placing->from, &search->greedy, pricing_of(search)->tables);
    search->greedy_ms = ms;
    return PH_OK;
}

static ph_status begin(struct search *search)
{
    const struct ph__pricing *pricing = pricing_of(search);
    cut_whole(search);
    PH_TRY(try_cuts(search, NULL));
    cut_rows(search);
    PH_TRY(try_cuts(search, NULL));
    if (pricing->machine->rank_bytes > 0) {
        cut_to_fit(search);
        PH_TRY(try_cuts(search, NULL));
    }
    if (search->options->placing.from != NULL) {
        cut_as(search, search->options->placing.from);
        PH_TRY(try_cuts(search, NULL));
    }
    if (ph__plan_greedy(pricing->machine, pricing->topology, pricing->step, pricing->tables,
            pricing->num_tables, &search->greedy) != PH_OK)
        return PH_OK; /* the search says what does not fit */
    PH_TRY(price_greedy(search));
    cut_as(search, &search->greedy);
    return try_cuts(search, NULL);
}

/* ---- the search ---- */

static ph_status run(struct search *search)
{
    bool *is_taken = ph__arena_alloc_array(&search->arena, pricing_of(search)->num_tables, sizeof *is_taken);
    if (is_taken == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(begin(search));
    for (size_t level = 1, vain = 0; level <= DEPTH && vain < 1 + search->width / 3 && !search->is_stopped;
         level++) {
        struct state *const beam = search->beam;
        const struct ph__placement before = search->best.placement;
        search->beam = search->next;
        search->num_beam = search->num_next;
        search->next = beam;
        search->num_next = 0;
        search->progress.level = level;
        for (size_t i = 0; i < search->num_beam; i++)
            PH_TRY(extend(search, &search->beam[i], is_taken));
        vain = ph__placement_is_better(&search->best.placement, &before) ? 0 : vain + 1;
    }
    return PH_OK;
}

/* Refines the best state, and those of the last beams, any of which may become the best. */
static ph_status refine(struct search *search)
{
    PH_TRY(ph__placer_refine(search->placer, search->best.cuts, &search->best.placement));
    for (size_t i = 0; i < search->num_next + search->num_beam; i++) {
        struct state *state = i < search->num_next ? &search->next[i] : &search->beam[i - search->num_next];
        PH_TRY(ph__placer_refine(search->placer, state->cuts, &state->placement));
        if (ph__placement_is_better(&state->placement, &search->best.placement))
            copy_state(search, state, &search->best);
    }
    return PH_OK;
}

/* Gives the choice of a table as the best state has it; ranks (world_size) are filled. */
static struct ph__plan_choice choice_of(const struct search *search, size_t table, uint32_t *ranks)
{
    const size_t world_size = pricing_of(search)->topology->world_size;
    const struct ph__table_cut *cut = &search->best.cuts[table];
    size_t count = 0;
    for (size_t rank = 0; rank < world_size; rank++)
        if (search->best.placement.is_there[table * world_size + rank])
            ranks[count++] = (uint32_t)rank;
    return (struct ph__plan_choice){count == 1 ? PH_SHARD_TABLE_WISE : cut->kind, ranks, count, NULL};
}

static ph_status build(struct search *search, struct ph__plan *plan_out)
{
    const struct ph__pricing *pricing = pricing_of(search);
    const size_t num_tables = pricing->num_tables, world_size = pricing->topology->world_size;
    struct ph__plan_choice *choices = ph__arena_alloc_array(&search->arena, num_tables, sizeof *choices);
    uint32_t *ranks = ph__arena_alloc_array(&search->arena, num_tables * world_size, sizeof *ranks);
    if (choices == NULL || ranks == NULL)
        return PH_ERROR_MEMORY;
    for (size_t table = 0; table < num_tables; table++)
        choices[table] = choice_of(search, table, ranks + table * world_size);
    return ph__plan_build(pricing->topology, pricing->tables, num_tables, choices, plan_out);
}

static ph_status refuse(const struct search *search)
{
    const struct ph__plan_limits *limits = &search->options->placing.limits;
    const struct ph__pricing *pricing = pricing_of(search);
    char missing[PH_NUMBER_TEXT_BYTES], all[PH_NUMBER_TEXT_BYTES], limit[2 * PH_NUMBER_TEXT_BYTES];
    uint64_t bytes = 0;
    for (size_t table = 0; table < pricing->num_tables; table++)
        bytes += ph__table_shard_bytes(
            &pricing->tables[table], pricing->tables[table].num_rows, pricing->tables[table].dim);
    if (search->best.placement.short_bytes == UINT64_MAX)
        return ph_fail(PH_ERROR_MEMORY, "tables that lie apart leave no rank for other parts of them");
    if (limits->host_bytes > 0)
        snprintf(limit, sizeof limit, "%s a host", ph__bytes_text(limits->host_bytes, all));
    else if (limits->rank_bytes != NULL)
        snprintf(limit, sizeof limit, "each rank");
    else
        snprintf(limit, sizeof limit, "%s a rank", ph__bytes_text(pricing->machine->rank_bytes, all));
    return ph_fail(PH_ERROR_MEMORY,
        "the tables (%s with their optimizer's slots) do not fit: the best of %zu ways to cut and place them "
        "is %s short of the limit of %s",
        ph__bytes_text(bytes, all), search->progress.num_tried,
        ph__bytes_text(search->best.placement.short_bytes, missing), limit);
}

static ph_status create(struct search *search)
{
    const struct ph__plan_limits *limits = &search->options->placing.limits;
    search->is_whole =
        ph__arena_alloc_array(&search->arena, pricing_of(search)->num_tables, sizeof *search->is_whole);
    search->width =
        ph__min(ph__max(BEAM_TABLES / ph__max(pricing_of(search)->num_tables, 1u), LEAST_BEAM), MOST_BEAM);
    search->beam = ph__arena_alloc_array(&search->arena, 2 * search->width, sizeof *search->beam);
    if (search->is_whole == NULL || search->beam == NULL)
        return PH_ERROR_MEMORY;
    search->next = search->beam + search->width;
    for (size_t i = 0; i < 2 * search->width; i++)
        PH_TRY(make_state(search, &search->beam[i]));
    PH_TRY(make_state(search, &search->best));
    PH_TRY(make_state(search, &search->trial));
    for (size_t g = 0; g < limits->num_groups; g++)
        for (size_t k = 0; !limits->groups[g].is_apart && k < limits->groups[g].num_tables; k++)
            search->is_whole[limits->groups[g].tables[k]] = true;
    return ph__placer_create(&search->options->placing, &search->placer);
}

/* Gives the best plan that was found; the greedy one where none is cheaper. */
static ph_status finish(struct search *search, struct ph__plan *plan_out, double *slowest_ms_out)
{
    const struct ph__placement *best = &search->best.placement;
    *slowest_ms_out = best->ms;
    if (search->greedy_ms < INFINITY &&
        (best->short_bytes > 0 || search->greedy_ms < best->ms + best->moved_ms)) {
        *slowest_ms_out = search->greedy_ms;
        *plan_out = search->greedy;
        search->greedy = (struct ph__plan){0};
        return PH_OK;
    }
    return best->short_bytes > 0 ? refuse(search) : build(search, plan_out);
}

ph_status ph__plan_search(
    const struct ph__search_options *options, struct ph__plan *plan_out, double *slowest_ms_out)
{
    struct search search = {.options = options, .greedy_ms = INFINITY};
    ph_status status = create(&search);
    if (status == PH_OK)
        status = run(&search);
    if (status == PH_OK)
        status = refine(&search);
    if (status == PH_OK)
        status = finish(&search, plan_out, slowest_ms_out);
    ph__plan_fini(&search.greedy);
    ph__placer_destroy(search.placer);
    ph__arena_fini(&search.arena);
    return status;
}

/* ---- moved bytes ---- */

/* Counts the bytes of a shard that its rank has in another plan. */
static uint64_t bytes_there(const struct ph__plan *from, const struct ph__plan_table *table,
    const struct ph__table_facts *facts, const struct ph__table_shard *shard)
{
    uint64_t bytes = 0;
    if (table->kind == PH_SHARD_DATA_PARALLEL)
        return ph__table_shard_bytes(facts, shard->num_rows, shard->num_columns);
    for (size_t i = 0; i < table->num_shards; i++) {
        const struct ph__table_shard *other = &from->shards[table->first_shard + i];
        const uint64_t first_row = ph__max(shard->first_row, other->first_row),
                       end_row =
                           ph__min(shard->first_row + shard->num_rows, other->first_row + other->num_rows);
        const size_t first_column = ph__max(shard->first_column, other->first_column),
                     end_column = ph__min((size_t)shard->first_column + shard->num_columns,
                         (size_t)other->first_column + other->num_columns);
        if (other->rank == shard->rank && first_row < end_row && first_column < end_column)
            bytes += ph__table_shard_bytes(facts, end_row - first_row, end_column - first_column);
    }
    return bytes;
}

uint64_t ph__plan_moved_bytes(
    const struct ph__plan *from, const struct ph__plan *to, const struct ph__table_facts *tables)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < to->num_shards; i++) {
        const struct ph__table_shard *shard = &to->shards[i];
        const struct ph__table_facts *facts = &tables[shard->table];
        bytes += ph__table_shard_bytes(facts, shard->num_rows, shard->num_columns) -
                 bytes_there(from, &from->tables[shard->table], facts, shard);
    }
    return bytes;
}
