#include "plan/search/plan_layout.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

static const struct ph__pricing *pricing_of(const struct ph__layout *layout)
{
    return layout->units->placing->pricing;
}

/* ---- limits ---- */

static uint64_t rank_limit(const struct ph__layout *layout, size_t rank)
{
    const uint64_t *limits = layout->units->placing->limits.rank_bytes;
    const uint64_t limit = limits != NULL ? limits[rank] : pricing_of(layout)->machine->rank_bytes;
    return limit > 0 ? limit : UINT64_MAX;
}

uint64_t ph__layout_beyond(const struct ph__layout *layout, size_t rank, uint64_t added, uint64_t taken)
{
    const uint64_t host_limit = layout->units->placing->limits.host_bytes, limit = rank_limit(layout, rank);
    const uint64_t own = layout->prices[rank].bytes - taken + added;
    const uint64_t host =
        layout->host_bytes[rank / pricing_of(layout)->topology->ranks_per_host] - taken + added;
    const uint64_t beyond = own > limit ? ph__min(own - limit, added) : 0;
    const uint64_t beyond_host = host_limit > 0 && host > host_limit ? ph__min(host - host_limit, added) : 0;
    return ph__max(beyond, beyond_host);
}

static bool is_group_there(
    const struct ph__layout *layout, const struct ph__table_group *group, uint32_t table, size_t rank)
{
    const size_t world_size = pricing_of(layout)->topology->world_size;
    bool is_of_group = false, is_there = false;
    for (size_t k = 0; group->is_apart && k < group->num_tables; k++) {
        is_of_group |= group->tables[k] == table;
        is_there |= layout->is_there[group->tables[k] * world_size + rank];
    }
    return is_of_group && is_there;
}

bool ph__layout_is_kept_apart(const struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    const struct ph__plan_limits *limits = &layout->units->placing->limits;
    for (size_t g = 0; g < limits->num_groups; g++)
        for (size_t t = 0; t < unit->num_tables; t++)
            if (is_group_there(layout, &limits->groups[g], unit->tables[t], rank))
                return true;
    return false;
}

/* ---- the plan to start from ---- */

/* Returns true where the plan has some of the table on the rank, cut in the same way. */
static bool lay_there(const struct ph__plan *from, size_t table, const struct ph__table_cut *cut, size_t rank)
{
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

double ph__layout_moved_ms(const struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    const struct ph__placing *placing = layout->units->placing;
    double bytes = 0;
    for (size_t k = 0; placing->from != NULL && k < unit->num_tables; k++)
        if (!lay_there(placing->from, unit->tables[k], &unit->cut, rank))
            bytes += (double)ph__cut_bytes(&placing->pricing->tables[unit->tables[k]], &unit->cut);
    return bytes / 1e9 * placing->ms_per_moved_gb;
}

/* ---- parts ---- */

static void add(struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    const size_t width = pricing_of(layout)->model->width;
    for (size_t i = 0; i < width; i++)
        layout->sums[rank * width + i] += unit->description[i];
    layout->prices[rank].bytes += unit->bytes;
    layout->prices[rank].columns += unit->columns;
    layout->host_bytes[rank / pricing_of(layout)->topology->ranks_per_host] += unit->bytes;
    layout->moved_ms += ph__layout_moved_ms(layout, unit, rank);
}

static void mark(struct ph__layout *layout, const struct ph__unit *unit, size_t rank, bool is_there)
{
    for (size_t k = 0; k < unit->num_tables; k++)
        layout->is_there[unit->tables[k] * pricing_of(layout)->topology->world_size + rank] = is_there;
}

void ph__layout_put(struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    layout->short_bytes += ph__layout_beyond(layout, rank, unit->bytes, 0);
    add(layout, unit, rank);
    mark(layout, unit, rank, true);
}

void ph__layout_take(struct ph__layout *layout, const struct ph__unit *unit, size_t rank)
{
    const size_t width = pricing_of(layout)->model->width;
    for (size_t i = 0; i < width; i++)
        layout->sums[rank * width + i] -= unit->description[i];
    layout->prices[rank].bytes -= unit->bytes;
    layout->prices[rank].columns -= unit->columns;
    layout->host_bytes[rank / pricing_of(layout)->topology->ranks_per_host] -= unit->bytes;
    layout->moved_ms -= ph__layout_moved_ms(layout, unit, rank);
    mark(layout, unit, rank, false);
}

/* ---- all ranks ---- */

static void add_copies(struct ph__layout *layout, const struct ph__unit *unit)
{
    for (size_t rank = 0; rank < pricing_of(layout)->topology->world_size; rank++) {
        layout->short_bytes += ph__layout_beyond(layout, rank, unit->bytes, 0);
        add(layout, unit, rank);
        layout->prices[rank].replicas_ms += ph__replica_ms(pricing_of(layout), unit->tables[0]);
    }
}

ph_status ph__layout_compute(struct ph__layout *layout)
{
    const struct ph__pricing *pricing = pricing_of(layout);
    const size_t world_size = pricing->topology->world_size;
    PH_TRY(pricing->model->compute(pricing->model->context, layout->sums, world_size, layout->ms));
    for (size_t rank = 0; rank < world_size; rank++)
        layout->prices[rank].compute_ms = layout->ms[rank] * ph__slowness(pricing, rank);
    return PH_OK;
}

ph_status ph__layout_begin(struct ph__layout *layout)
{
    const struct ph__pricing *pricing = pricing_of(layout);
    const size_t world_size = pricing->topology->world_size;
    layout->moved_ms = 0;
    layout->short_bytes = 0;
    memset(layout->sums, 0, world_size * pricing->model->width * sizeof *layout->sums);
    memset(layout->prices, 0, world_size * sizeof *layout->prices);
    memset(layout->host_bytes, 0, world_size * sizeof *layout->host_bytes);
    memset(layout->is_there, 0, pricing->num_tables * world_size * sizeof *layout->is_there);
    for (size_t u = 0; u < layout->units->num_units; u++)
        if (layout->units->units[u].cut.kind == PH_SHARD_DATA_PARALLEL)
            add_copies(layout, &layout->units->units[u]);
    return ph__layout_compute(layout);
}

ph_status ph__layout_init(const struct ph__units *units, struct ph__arena *arena, struct ph__layout *layout)
{
    const struct ph__pricing *pricing = units->placing->pricing;
    const size_t world_size = pricing->topology->world_size, width = pricing->model->width;
    *layout = (struct ph__layout){.units = units,
        .sums = ph__arena_alloc_array(arena, world_size * width, sizeof *layout->sums),
        .prices = ph__arena_alloc_array(arena, world_size, sizeof *layout->prices),
        .host_bytes = ph__arena_alloc_array(arena, world_size, sizeof *layout->host_bytes),
        .is_there = ph__arena_alloc_array(arena, pricing->num_tables * world_size, sizeof *layout->is_there),
        .ms = ph__arena_alloc_array(arena, world_size, sizeof *layout->ms)};
    return layout->sums != NULL && layout->prices != NULL && layout->host_bytes != NULL &&
                   layout->is_there != NULL && layout->ms != NULL
               ? PH_OK
               : PH_ERROR_MEMORY;
}
