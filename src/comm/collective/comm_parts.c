#include "comm/collective/comm_parts.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

/* ---- choices ---- */

/* Gives each rank its position, and this one its groups. order: (2 world); counts: (2 world) of zeros. */
static void order_ranks(struct ph__comm_choices *choices, const struct ph__group *world,
    const uint32_t *groups, uint32_t *order, uint32_t *counts)
{
    struct ph__group *inner = &choices->inner, *outer = &choices->outer;
    uint32_t *numbers = counts + world->size, *members = order + world->size; /* numbers: from 1 */
    *outer = *inner = (struct ph__group){0};
    for (size_t rank = 0; rank < world->size; rank++)
        if (numbers[groups[rank]] == 0)
            numbers[groups[rank]] = (uint32_t)++outer->size;
    for (size_t rank = 0; rank < world->size; rank++) {
        const size_t group = numbers[groups[rank]] - 1, place = counts[group]++;
        assert(place * outer->size < world->size);
        order[place * outer->size + group] = (uint32_t)rank;
        if (rank == world->own)
            outer->own = group, inner->own = place;
    }
    inner->size = world->size / outer->size;
    for (size_t place = 0; place < inner->size; place++)
        members[place] = order[place * outer->size + outer->own];
    inner->ranks = members;
    outer->ranks = order + inner->own * outer->size;
}

static ph_status set_groups(
    struct ph__comm_choices *choices, const struct ph__group *world, const uint32_t *groups)
{
    const size_t world_size = world->size;
    uint32_t *order = calloc(2 * world_size, sizeof *order);
    uint32_t *counts = calloc(2 * world_size, sizeof *counts);
    if (order != NULL && counts != NULL)
        order_ranks(choices, world, groups, order, counts);
    free(choices->order);
    free(counts);
    choices->order = order;
    return order != NULL && counts != NULL ? PH_OK : ph__out_of_memory("groups of %zu ranks", world_size);
}

ph_status ph__choices_set(struct ph__comm_choices *choices, const struct ph__group *world,
    const struct ph__collective_choice *list, size_t count, const uint32_t *groups)
{
    assert(count <= PH_COLLECTIVE_MOST_CHOICES);
    if (groups != NULL)
        PH_TRY(set_groups(choices, world, groups));
    choices->world_size = world->size;
    choices->count = count;
    for (size_t i = 0; i < count; i++)
        choices->list[i] = list[i];
    return PH_OK;
}

void ph__choices_fini(struct ph__comm_choices *choices)
{
    free(choices->order);
}

enum ph_collective ph__choices_of(
    const struct ph__comm_choices *choices, const struct ph__group *group, uint64_t bytes)
{
    enum ph_collective kind = PH_COLLECTIVE_EXCHANGE;
    for (size_t i = 0; i < choices->count && choices->list[i].from_bytes <= bytes; i++)
        kind = choices->list[i].kind;
    if (group->size == 1 || group->size != choices->world_size)
        return PH_COLLECTIVE_EXCHANGE;
    const bool has_levels = choices->inner.size > 1 && choices->outer.size > 1;
    return kind == PH_COLLECTIVE_HIERARCHICAL && !has_levels ? PH_COLLECTIVE_EXCHANGE : kind;
}

struct ph__comm_choices ph__choices_to_come(const struct ph__comm_choices *choices, enum ph_collective kind)
{
    struct ph__comm_choices coming = *choices;
    if (choices->may_change) {
        coming.list[0] = (struct ph__collective_choice){0, kind};
        coming.count = 1;
    }
    return coming;
}

/* ---- dividing ---- */

void ph__parts_divide(const struct ph__comm_choices *choices, const struct ph__group *group, bool is_ordered,
    uint64_t bytes, struct ph__parts *parts)
{
    const enum ph_collective kind = ph__choices_of(choices, group, bytes);
    parts->is_ring = kind == PH_COLLECTIVE_RING;
    parts->size = group->size;
    parts->inner = *group;
    parts->outer = (struct ph__group){1, 0, group->ranks + group->own};
    parts->order = NULL;
    if (kind == PH_COLLECTIVE_HIERARCHICAL) {
        parts->inner = choices->inner;
        parts->outer = choices->outer;
        parts->order = is_ordered ? choices->order : NULL;
    }
    parts->own = parts->inner.own * parts->outer.size + parts->outer.own;
}

/* ---- runs ---- */

/* Returns the first row of a member's part; of the last member's end for member = size. */
static size_t first_row(const struct ph__parts *parts, size_t array, size_t member)
{
    const size_t *bounds = parts->arrays[array].bounds;
    const size_t least = parts->rows / parts->size, more = parts->rows % parts->size;
    return bounds != NULL ? bounds[member] : member * least + ph__min(member, more);
}

static size_t wire_bytes(const struct ph__parts *parts, size_t array, size_t rows)
{
    const size_t row_bytes = parts->arrays[array].row_bytes;
    return parts->wire == PH_WIRE_FP32 ? rows * row_bytes
                                       : ph__wire_bytes(parts->wire, rows, row_bytes / sizeof(ph_real));
}

struct ph__runs ph__runs_of(const struct ph__parts *parts, size_t position, size_t count)
{
    return (struct ph__runs){.parts = parts, .position = position, .end = position + count};
}

bool ph__runs_next(struct ph__runs *runs)
{
    const struct ph__parts *parts = runs->parts;
    const bool is_joined = parts->num_arrays == 1 && parts->order == NULL;
    while (runs->position < runs->end) {
        const size_t first = parts->order != NULL ? parts->order[runs->position] : runs->position;
        const size_t end = is_joined ? runs->end : first + 1;
        runs->array = runs->next_array++;
        runs->row = first_row(parts, runs->array, first);
        runs->rows = first_row(parts, runs->array, end) - runs->row;
        runs->bytes = wire_bytes(parts, runs->array, runs->rows);
        if (runs->next_array == parts->num_arrays) {
            runs->next_array = 0;
            runs->position = is_joined ? runs->end : runs->position + 1;
        }
        if (runs->bytes > 0)
            return true;
    }
    return false;
}

size_t ph__parts_bytes(const struct ph__parts *parts, size_t position, size_t count)
{
    struct ph__runs runs = ph__runs_of(parts, position, count);
    size_t bytes = 0;
    while (ph__runs_next(&runs))
        bytes += runs.bytes;
    return bytes;
}

size_t ph__parts_numbers(const struct ph__parts *parts, size_t position, size_t count)
{
    struct ph__runs runs = ph__runs_of(parts, position, count);
    size_t numbers = 0;
    while (ph__runs_next(&runs))
        numbers += runs.rows * ph__runs_columns(&runs);
    return numbers;
}

/* ---- requests ---- */

static size_t count_requests(size_t cut_bytes, struct ph__runs runs)
{
    size_t num_requests = 0;
    while (ph__runs_next(&runs))
        num_requests += ph__num_cuts(cut_bytes, runs.bytes);
    return num_requests;
}

size_t ph__parts_round_requests(
    size_t cut_bytes, const struct ph__parts *parts, const struct ph__group *group, size_t first, size_t span)
{
    const size_t own = count_requests(cut_bytes, ph__runs_of(parts, first + group->own * span, span));
    size_t num_requests = (group->size - 1) * own;
    for (size_t member = 0; member < group->size; member++)
        if (member != group->own)
            num_requests += count_requests(cut_bytes, ph__runs_of(parts, first + member * span, span));
    return num_requests;
}

size_t ph__parts_ring_requests(size_t cut_bytes, const struct ph__parts *parts)
{
    size_t most = 0;
    for (size_t position = 0; position < parts->size; position++)
        most = ph__max(most, count_requests(cut_bytes, ph__runs_of(parts, position, 1)));
    return 2 * most;
}
