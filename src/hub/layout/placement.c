#include "hub/layout/placement.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"

void ph__machine_fini(struct ph__machine *machine)
{
    free(machine->units);
    free(machine->interfaces);
    *machine = (struct ph__machine){0};
}

/* ---- choice of interfaces ---- */

typedef bool is_kept_function(const struct ph__machine_interface *interface, uint32_t number);

static void keep(struct ph__machine *machine, is_kept_function *is_kept, uint32_t number)
{
    size_t num_kept = 0;
    for (size_t i = 0; i < machine->num_interfaces; i++)
        if (is_kept(&machine->interfaces[i], number))
            machine->interfaces[num_kept++] = machine->interfaces[i];
    machine->num_interfaces = num_kept;
}

static bool can_be_reached(const struct ph__machine_interface *interface, uint32_t num_families)
{
    bool has_host = false;
    for (uint32_t family = 0; family < num_families; family++)
        has_host |= interface->hosts[family][0] != '\0';
    return has_host && !interface->is_loopback;
}

static bool is_direct(const struct ph__machine_interface *interface, uint32_t unused)
{
    (void)unused;
    return !interface->is_indirect;
}

static bool has_speed(const struct ph__machine_interface *interface, uint32_t speed_mbit)
{
    return interface->speed_mbit == speed_mbit;
}

void ph__machine_keep_choice(struct ph__machine *machine, bool has_ipv6)
{
    uint32_t fastest = 0;
    bool has_direct = false;
    keep(machine, can_be_reached, has_ipv6 ? PH_NUM_FAMILIES : PH_IPV4 + 1);
    for (size_t i = 0; i < machine->num_interfaces; i++)
        has_direct |= !machine->interfaces[i].is_indirect;
    if (has_direct)
        keep(machine, is_direct, 0);
    for (size_t i = 0; i < machine->num_interfaces; i++)
        if (machine->interfaces[i].speed_mbit > fastest)
            fastest = machine->interfaces[i].speed_mbit;
    keep(machine, has_speed, fastest);
    if (machine->num_interfaces == 1)
        ph__machine_forget_interfaces(machine);
}

void ph__machine_forget_interfaces(struct ph__machine *machine)
{
    machine->num_interfaces = 0;
}

/* ---- units ---- */

struct candidate {
    struct ph__machine_unit unit;
    size_t core_rank; /* rank of its core within the node */
    size_t unit_rank; /* rank of the unit within its core */
};

static int compare(size_t left, size_t right)
{
    return (left > right) - (left < right);
}

static int by_place(const void *left, const void *right)
{
    const struct ph__machine_unit *a = &((const struct candidate *)left)->unit,
                                  *b = &((const struct candidate *)right)->unit;
    if (a->node != b->node)
        return compare(a->node, b->node);
    if (a->core != b->core)
        return compare(a->core, b->core);
    return compare(a->processor, b->processor);
}

/* Orders candidates by turn: ranks within cores, ranks of cores, nodes. */
static int by_turn(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->unit_rank != b->unit_rank)
        return compare(a->unit_rank, b->unit_rank);
    if (a->core_rank != b->core_rank)
        return compare(a->core_rank, b->core_rank);
    return compare(a->unit.node, b->unit.node);
}

/* Ranks candidates, and sorts them by turn. */
static void order_candidates(struct candidate *candidates, size_t count)
{
    qsort(candidates, count, sizeof *candidates, by_place);
    for (size_t i = 1; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        const struct candidate *former = candidate - 1;
        const bool is_same_node = candidate->unit.node == former->unit.node;
        const bool is_same_core = is_same_node && candidate->unit.core == former->unit.core;
        candidate->unit_rank = is_same_core ? former->unit_rank + 1 : 0;
        candidate->core_rank = is_same_node ? former->core_rank + !is_same_core : 0;
    }
    qsort(candidates, count, sizeof *candidates, by_turn);
}

static ph_status pin(const struct ph__machine *machine, struct ph__placement *placement)
{
    struct candidate *candidates = calloc(machine->num_units, sizeof *candidates);
    if (candidates == NULL)
        return ph__out_of_memory("cannot place threads on %zu processors", machine->num_units);
    for (size_t i = 0; i < machine->num_units; i++)
        candidates[i].unit = machine->units[i];
    order_candidates(candidates, machine->num_units);
    for (size_t t = 0; t < placement->num_threads; t++) {
        const struct ph__machine_unit *unit = &candidates[t].unit;
        placement->threads[t] = (struct ph__thread_place){
            .processor = unit->processor, .core = unit->core, .node = unit->node, .interface = PH_NOWHERE};
    }
    free(candidates);
    placement->is_pinned = true;
    return PH_OK;
}

/* Returns the node of all units, or PH_NOWHERE when they have several. */
static uint32_t only_node(const struct ph__machine *machine)
{
    for (size_t i = 1; i < machine->num_units; i++)
        if (machine->units[i].node != machine->units[0].node)
            return PH_NOWHERE;
    return machine->num_units > 0 ? machine->units[0].node : PH_NOWHERE;
}

static void leave_unpinned(const struct ph__machine *machine, struct ph__placement *placement)
{
    const uint32_t node = only_node(machine);
    for (size_t t = 0; t < placement->num_threads; t++)
        placement->threads[t] = (struct ph__thread_place){
            .processor = PH_NOWHERE, .core = PH_NOWHERE, .node = node, .interface = PH_NOWHERE};
}

/* ---- interfaces ---- */

enum distance { ON_THE_NODE, OF_NO_NODE, ON_ANOTHER_NODE };

static enum distance distance(const struct ph__machine_interface *interface, uint32_t node)
{
    if (interface->node == PH_NOWHERE || node == PH_NOWHERE)
        return OF_NO_NODE;
    return interface->node == node ? ON_THE_NODE : ON_ANOTHER_NODE;
}

/* Returns the interface nearest to the node. num_threads: threads of each interface so far. */
static uint32_t nearest(const struct ph__machine *machine, uint32_t node, const size_t *num_threads)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < machine->num_interfaces; i++) {
        const enum distance here = distance(&machine->interfaces[i], node),
                            there = distance(&machine->interfaces[best], node);
        if (here < there || (here == there && num_threads[i] < num_threads[best]))
            best = i;
    }
    return best;
}

static ph_status choose_interfaces(const struct ph__machine *machine, struct ph__placement *placement)
{
    if (machine->num_interfaces == 0)
        return PH_OK;
    size_t *num_threads = calloc(machine->num_interfaces, sizeof *num_threads);
    if (num_threads == NULL)
        return ph__out_of_memory("cannot count threads of %zu interfaces", machine->num_interfaces);
    for (size_t t = 0; t < placement->num_threads; t++) {
        struct ph__thread_place *place = &placement->threads[t];
        place->interface = nearest(machine, place->node, num_threads);
        num_threads[place->interface]++;
    }
    free(num_threads);
    return PH_OK;
}

/* ---- the plan ---- */

static ph_status plan(const struct ph__machine *machine, struct ph__placement *placement)
{
    if (placement->num_threads <= machine->num_units)
        PH_TRY(pin(machine, placement));
    else
        leave_unpinned(machine, placement);
    return choose_interfaces(machine, placement);
}

ph_status ph__placement_plan(
    const struct ph__machine *machine, size_t num_threads, struct ph__placement *placement_out)
{
    assert(num_threads > 0);
    struct ph__placement placement = {
        .num_threads = num_threads, .threads = calloc(num_threads, sizeof *placement.threads)};
    if (placement.threads == NULL)
        return ph__out_of_memory("cannot place %zu threads", num_threads);
    const ph_status status = plan(machine, &placement);
    if (status != PH_OK) {
        ph__placement_fini(&placement);
        return status;
    }
    *placement_out = placement;
    return PH_OK;
}

void ph__placement_fini(struct ph__placement *placement)
{
    free(placement->threads);
    *placement = (struct ph__placement){0};
}

/* ---- in words ---- */

const char *ph__thread_place_text(const struct ph__machine *machine, const struct ph__placement *placement,
    size_t thread, char text[PH_THREAD_PLACE_TEXT_BYTES])
{
    const struct ph__thread_place *place = &placement->threads[thread];
    const bool has_interface = place->interface != PH_NOWHERE;
    char unit[64], node[32] = "";
    if (placement->is_pinned)
        snprintf(unit, sizeof unit, "processor %u, core %u", place->processor, place->core);
    else
        snprintf(unit, sizeof unit, "not pinned (%zu threads, %zu processors)", placement->num_threads,
            machine->num_units);
    if (place->node != PH_NOWHERE)
        snprintf(node, sizeof node, ", node %u", place->node);
    snprintf(text, PH_THREAD_PLACE_TEXT_BYTES, "%s%s%s%s", unit, node, has_interface ? ", interface " : "",
        has_interface ? machine->interfaces[place->interface].name : "");
    return text;
}
