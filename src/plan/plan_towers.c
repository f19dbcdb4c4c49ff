/* Towers of a plan: their checks, and the planner that gives them hosts.
 *
 * The planner gives each host as many towers, the costliest first to the host with least cost so far. It
 * tries all of their tables whole, each on the host's emptiest rank, and all cut by rows over the host's
 * ranks; tables of no tower stay as in the plan that is given. Each trial counts with towers on their hosts
 * and with towers on every rank, since its tables may lie better than in that plan. The best of all is taken
 * by the cost of plan_cost.h; of equal ones the one without hosts for towers. That cost has a tower's
 * vectors, but not the gradients of its layers, which hosts sum at less cost than all ranks would. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/plan_cost.h"

const struct ph__plan_tower *ph__plan_find_tower(const struct ph__plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->num_towers; i++)
        if (strcmp(plan->towers[i].of.name, name) == 0)
            return &plan->towers[i];
    return NULL;
}

/* Checks that the table lies whole on the tower's host. */
static ph_status check_table(
    const struct ph__plan *plan, const struct ph__plan_table *table, const struct ph__plan_tower *tower)
{
    const struct ph__table_shard *shards = plan->shards + table->first_shard;
    if (table->kind != PH_SHARD_TABLE_WISE && table->kind != PH_SHARD_TABLE_ROW_WISE)
        return ph_fail(PH_ERROR_CONFIG,
            "tower '%s' is on host %u, but its table '%s' is %s: tables of a tower must be table_wise or "
            "table_row_wise, on its host",
            tower->of.name, tower->host, table->name, ph__shard_kind_name(table->kind));
    for (size_t i = 0; i < table->num_shards; i++)
        if (shards[i].rank / plan->topology.ranks_per_host != tower->host)
            return ph_fail(PH_ERROR_CONFIG,
                "tower '%s' is on host %u, but its table '%s' is on host %zu: a tower must not be split "
                "over hosts",
                tower->of.name, tower->host, table->name,
                (size_t)shards[i].rank / plan->topology.ranks_per_host);
    return PH_OK;
}

/* Completes a tower by the facts that its tables give; its name is known. */
static ph_status complete(
    struct ph__plan *plan, const struct ph__table_facts *tables, struct ph__plan_tower *tower)
{
    const char *name = ph__arena_strdup(&plan->arena, tower->of.name);
    for (size_t i = 0; i < plan->num_tables && name != NULL; i++) {
        if (tables[i].tower == NULL || strcmp(tables[i].tower->name, name) != 0)
            continue;
        tower->of = *tables[i].tower;
        plan->tables[i].tower = tower;
        PH_TRY(check_table(plan, &plan->tables[i], tower));
    }
    tower->of.name = name;
    return name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__plan_add_towers(struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_tower *towers, size_t num_towers)
{
    plan->towers = ph__arena_alloc_array(&plan->arena, num_towers, sizeof *plan->towers);
    if (plan->towers == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_towers; i++) {
        plan->towers[i] = towers[i];
        PH_TRY(complete(plan, tables, &plan->towers[plan->num_towers++]));
    }
    return PH_OK;
}

/* ---- the planner ---- */

struct weighed {
    struct ph__plan_tower tower;
    double cost; /* numbers of its tables that a sample's ids name */
};

struct trial {
    struct ph__plan plan;
    double seconds; /* of the busiest rank; INFINITY: there is no plan that fits */
};

struct placing {
    const struct ph__plan_machine *machine;
    const struct ph__plan_step *step;
    const struct ph__table_facts *tables;
    const struct ph__plan *given;
    struct ph__arena arena;
    struct weighed *weighed; /* (num_towers) */
    struct ph__plan_tower *towers;
    size_t num_towers;
    struct ph__plan_choice *choices; /* (number of tables) */
    struct trial flat, on_hosts;     /* the best so far */
};

static int by_falling_cost(const void *a, const void *b)
{
    const struct weighed *left = a, *right = b;
    if (left->cost != right->cost)
        return left->cost > right->cost ? -1 : 1;
    return strcmp(left->tower.of.name, right->tower.of.name);
}

static void weigh_tower(struct placing *placing, const struct ph__table_facts *table)
{
    size_t i = 0;
    while (i < placing->num_towers && strcmp(placing->weighed[i].tower.of.name, table->tower->name) != 0)
        i++;
    if (i == placing->num_towers)
        placing->weighed[placing->num_towers++] = (struct weighed){{*table->tower, 0}, 0};
    placing->weighed[i].cost += table->ids_per_sample * (double)table->dim;
}

static ph_status list_towers(struct placing *placing)
{
    const size_t num_tables = placing->given->num_tables;
    placing->weighed = ph__arena_alloc_array(&placing->arena, num_tables, sizeof *placing->weighed);
    placing->towers = ph__arena_alloc_array(&placing->arena, num_tables, sizeof *placing->towers);
    placing->choices = ph__arena_alloc_array(&placing->arena, num_tables, sizeof *placing->choices);
    if (placing->weighed == NULL || placing->towers == NULL || placing->choices == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables; i++)
        if (placing->tables[i].tower != NULL)
            weigh_tower(placing, &placing->tables[i]);
    qsort(placing->weighed, placing->num_towers, sizeof *placing->weighed, by_falling_cost);
    return PH_OK;
}

/* Gives each host as many towers. */
static ph_status choose_hosts(struct placing *placing)
{
    const size_t num_hosts = ph__num_hosts(&placing->given->topology);
    double *costs = ph__arena_alloc_array(&placing->arena, num_hosts, sizeof *costs);
    size_t *counts = ph__arena_alloc_array(&placing->arena, num_hosts, sizeof *counts);
    if (costs == NULL || counts == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < placing->num_towers; i++) {
        size_t best = num_hosts;
        for (size_t host = 0; host < num_hosts; host++)
            if (counts[host] < placing->num_towers / num_hosts &&
                (best == num_hosts || costs[host] < costs[best]))
                best = host;
        counts[best]++;
        costs[best] += placing->weighed[i].cost;
        placing->towers[i] = placing->weighed[i].tower;
        placing->towers[i].host = (uint32_t)best;
    }
    return PH_OK;
}

static void choose_tables(struct placing *placing, enum ph__shard_kind kind)
{
    for (size_t i = 0; i < placing->given->num_tables; i++) {
        const struct ph__plan_table *planned = &placing->given->tables[i];
        placing->choices[i] =
            (struct ph__plan_choice){planned->kind, planned->places, planned->num_places, NULL};
        for (size_t t = 0; t < placing->num_towers && placing->tables[i].tower != NULL; t++)
            if (strcmp(placing->towers[t].of.name, placing->tables[i].tower->name) == 0)
                placing->choices[i] = (struct ph__plan_choice){kind, NULL, 0, &placing->towers[t].host};
    }
}

/* Finds the seconds of a plan's busiest rank; INFINITY where the plan does not fit. */
static ph_status busiest_seconds(
    const struct placing *placing, const struct ph__plan *plan, double *seconds_out)
{
    struct ph__plan_load *loads = calloc(plan->topology.world_size, sizeof *loads);
    if (loads == NULL)
        return ph__out_of_memory("the loads of %zu ranks", plan->topology.world_size);
    const ph_status status = ph__plan_loads(plan, placing->machine, placing->step, placing->tables, loads);
    *seconds_out = 0;
    for (size_t rank = 0; rank < plan->topology.world_size; rank++) {
        const uint64_t limit = placing->machine->rank_bytes;
        const bool fits = limit == 0 || loads[rank].bytes <= limit;
        *seconds_out = fmax(*seconds_out, fits ? loads[rank].seconds : INFINITY);
    }
    free(loads);
    return status;
}

/* Tries the choices with some of the towers on hosts; a plan that is better than the best becomes it. */
static ph_status try_choices(const struct placing *placing, size_t num_towers, struct trial *best)
{
    const struct ph__plan *given = placing->given;
    struct ph__plan plan = {0};
    double seconds = INFINITY;
    PH_TRY(ph__plan_build(&given->topology, placing->tables, given->num_tables, placing->choices, &plan));
    ph_status status = ph__plan_add_towers(&plan, placing->tables, placing->towers, num_towers);
    if (status == PH_OK)
        status = busiest_seconds(placing, &plan, &seconds);
    if (status != PH_OK || seconds >= best->seconds) {
        ph__plan_fini(&plan);
        return status;
    }
    ph__plan_fini(&best->plan);
    *best = (struct trial){plan, seconds};
    return PH_OK;
}

static ph_status try_kind(struct placing *placing, enum ph__shard_kind kind)
{
    const struct ph__plan *given = placing->given;
    choose_tables(placing, kind);
    PH_TRY(ph__plan_places(
        &given->topology, placing->tables, given->num_tables, placing->choices, &placing->arena));
    PH_TRY(try_choices(placing, 0, &placing->flat));
    return try_choices(placing, placing->num_towers, &placing->on_hosts);
}

static ph_status place_towers(struct placing *placing)
{
    PH_TRY(list_towers(placing));
    if (placing->num_towers == 0 || placing->num_towers % ph__num_hosts(&placing->given->topology) != 0)
        return PH_OK;
    PH_TRY(choose_hosts(placing));
    PH_TRY(busiest_seconds(placing, placing->given, &placing->flat.seconds));
    PH_TRY(try_kind(placing, PH_SHARD_TABLE_WISE));
    return try_kind(placing, PH_SHARD_TABLE_ROW_WISE);
}

/* Takes a plan, where there is one, in place of another. */
static void replace(struct ph__plan *plan, struct ph__plan *by)
{
    if (by->tables == NULL)
        return;
    ph__plan_fini(plan);
    *plan = *by;
    *by = (struct ph__plan){0};
}

ph_status ph__plan_towers_on_hosts(const struct ph__plan_machine *machine, const struct ph__plan_step *step,
    const struct ph__table_facts *tables, struct ph__plan *plan)
{
    struct placing placing = {.machine = machine,
        .step = step,
        .tables = tables,
        .given = plan,
        .flat.seconds = INFINITY,
        .on_hosts.seconds = INFINITY};
    if (ph__num_hosts(&plan->topology) == 1)
        return PH_OK;
    const ph_status status = place_towers(&placing);
    const double flat = placing.flat.seconds, on_hosts = placing.on_hosts.seconds;
    ph__arena_fini(&placing.arena);
    if (status == PH_OK)
        replace(plan, on_hosts < flat ? &placing.on_hosts.plan : &placing.flat.plan);
    if (status == PH_OK && isfinite(flat) && isfinite(on_hosts)) {
        plan->flat_seconds = flat;
        plan->tower_seconds = on_hosts;
    }
    ph__plan_fini(&placing.flat.plan);
    ph__plan_fini(&placing.on_hosts.plan);
    return status;
}
