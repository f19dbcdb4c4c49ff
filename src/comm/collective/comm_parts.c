#include "comm/collective/comm_parts.h"

#include "base/sizes.h"
#include "comm/collective/comm_inside.h"

/* ---- dividing ---- */

void ph__parts_divide(const struct ph_comm *comm, const struct ph__group *group, bool is_ordered,
    uint64_t bytes, struct ph__parts *parts)
{
    const enum ph_collective kind = ph__comm_collective(comm, group, bytes);
    const struct ph__comm_choices *choices = &comm->choices;
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

static size_t count_requests(const struct ph_comm *comm, struct ph__runs runs)
{
    size_t num_requests = 0;
    while (ph__runs_next(&runs))
        num_requests += ph__operation_num_cuts(comm, runs.bytes);
    return num_requests;
}

size_t ph__parts_round_requests(const struct ph_comm *comm, const struct ph__parts *parts,
    const struct ph__group *group, size_t first, size_t span)
{
    const size_t own = count_requests(comm, ph__runs_of(parts, first + group->own * span, span));
    size_t num_requests = (group->size - 1) * own;
    for (size_t member = 0; member < group->size; member++)
        if (member != group->own)
            num_requests += count_requests(comm, ph__runs_of(parts, first + member * span, span));
    return num_requests;
}

size_t ph__parts_ring_requests(const struct ph_comm *comm, const struct ph__parts *parts)
{
    size_t most = 0;
    for (size_t position = 0; position < parts->size; position++)
        most = ph__max(most, count_requests(comm, ph__runs_of(parts, position, 1)));
    return 2 * most;
}
