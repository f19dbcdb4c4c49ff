#include "store/tensor_shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

bool ph__shape_equal(const struct ph_shape *a, const struct ph_shape *b)
{
    if (a->num_dims != b->num_dims)
        return false;
    for (size_t i = 0; i < a->num_dims; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool ph__tensor_is_shard(const struct ph_tensor *tensor)
{
    return tensor->whole.num_dims > 0;
}

struct ph_shape ph__tensor_whole(const struct ph_tensor *tensor)
{
    return ph__tensor_is_shard(tensor) ? tensor->whole : tensor->shape;
}

bool ph__tensor_excludes(const struct ph_tensor *a, const struct ph_tensor *b)
{
    if (strcmp(a->name, b->name) != 0)
        return false;
    const struct ph_shape whole = ph__tensor_whole(a), other = ph__tensor_whole(b);
    if ((!ph__tensor_is_shard(a) && !ph__tensor_is_shard(b)) || !ph__shape_equal(&whole, &other))
        return true;
    const struct ph__area area = ph__tensor_area(a), other_area = ph__tensor_area(b);
    return ph__area_common(&area, &other_area).num_rows > 0;
}

/* ---- areas ---- */

struct ph__area ph__shape_area(const struct ph_shape *shape)
{
    struct ph__area area = {.num_rows = shape->num_dims > 0 ? shape->dims[0] : 1, .num_columns = 1};
    for (size_t i = 1; i < shape->num_dims; i++)
        area.num_columns *= shape->dims[i];
    return area;
}

struct ph__area ph__tensor_area(const struct ph_tensor *tensor)
{
    struct ph__area area = ph__shape_area(&tensor->shape);
    area.first_row = tensor->first_row;
    area.first_column = tensor->shape.num_dims > 1 ? tensor->first_column : 0;
    return area;
}

static size_t common(size_t first, size_t count, size_t other_first, size_t other_count, size_t *first_out)
{
    const size_t end = ph__min(first + count, other_first + other_count);
    *first_out = ph__max(first, other_first);
    return *first_out < end ? end - *first_out : 0;
}

struct ph__area ph__area_common(const struct ph__area *a, const struct ph__area *b)
{
    struct ph__area area;
    area.num_rows = common(a->first_row, a->num_rows, b->first_row, b->num_rows, &area.first_row);
    area.num_columns =
        common(a->first_column, a->num_columns, b->first_column, b->num_columns, &area.first_column);
    if (area.num_columns == 0)
        area.num_rows = 0;
    return area;
}

static bool is_within(size_t first, size_t count, size_t whole_first, size_t whole_count)
{
    return first >= whole_first && count <= whole_count && first - whole_first <= whole_count - count;
}

bool ph__area_is_within(const struct ph__area *area, const struct ph__area *whole)
{
    return is_within(area->first_row, area->num_rows, whole->first_row, whole->num_rows) &&
           is_within(area->first_column, area->num_columns, whole->first_column, whole->num_columns);
}

const char *ph__area_name(
    struct ph__arena *arena, const char *name, const struct ph_shape *shape, const struct ph__area *area)
{
    const size_t end_row = area->first_row + area->num_rows;
    if (shape->num_dims < 2)
        return ph__arena_printf(arena, "%s[%zu:%zu]", name, area->first_row, end_row);
    return ph__arena_printf(arena, "%s[%zu:%zu,%zu:%zu]", name, area->first_row, end_row, area->first_column,
        area->first_column + area->num_columns);
}

/* ---- covering ---- */

static int compare_columns(const void *a, const void *b)
{
    const struct ph__area *left = a, *right = b;
    return (left->first_column > right->first_column) - (left->first_column < right->first_column);
}

/* Returns the first row behind `row` where an area begins or ends. */
static size_t end_of_band(const struct ph__area *areas, size_t num_areas, size_t row, size_t end_row)
{
    for (size_t i = 0; i < num_areas; i++) {
        const size_t begin = areas[i].first_row, end = begin + areas[i].num_rows;
        if (begin > row)
            end_row = ph__min(end_row, begin);
        else if (end > row)
            end_row = ph__min(end_row, end);
    }
    return end_row;
}

/* Checks a row of the band. Visits the areas in the row in the order of their first columns; `end` is the
 * column up to which they cover the row. */
static bool is_row_covered(const struct ph__area *whole, const struct ph__area *areas, size_t num_areas,
    struct ph__area *band, bool *is_missing_out)
{
    size_t end = whole->first_column;
    for (size_t i = 0; i < num_areas; i++) {
        const struct ph__area *area = &areas[i];
        if (area->num_columns == 0 || area->first_row > band->first_row ||
            band->first_row - area->first_row >= area->num_rows)
            continue;
        if (area->first_column != end) {
            *is_missing_out = area->first_column > end;
            const size_t other_end = area->first_column + area->num_columns;
            band->first_column = ph__min(end, area->first_column);
            band->num_columns =
                (*is_missing_out ? area->first_column : ph__min(end, other_end)) - band->first_column;
            return false;
        }
        end += area->num_columns;
    }
    band->first_column = end;
    band->num_columns = whole->first_column + whole->num_columns - end;
    *is_missing_out = true;
    return band->num_columns == 0;
}

bool ph__areas_cover(const struct ph__area *whole, struct ph__area *areas, size_t num_areas,
    struct ph__area *fault_out, bool *is_missing_out)
{
    const size_t end_row = whole->first_row + whole->num_rows;
    qsort(areas, num_areas, sizeof *areas, compare_columns);
    for (size_t row = whole->first_row, next; row < end_row; row = next) {
        next = end_of_band(areas, num_areas, row, end_row);
        struct ph__area band = {.first_row = row, .num_rows = next - row};
        if (!is_row_covered(whole, areas, num_areas, &band, is_missing_out)) {
            *fault_out = band;
            return false;
        }
    }
    return true;
}

/* ---- slices ---- */

struct ph_tensor ph__slice_tensor(
    const struct ph_table_slice *slice, const struct ph__slice_shard *shard, size_t dim)
{
    struct ph_tensor tensor = {.name = slice->name, .shape = {.num_dims = 2, .dims = {slice->num_rows, dim}}};
    if (shard->whole_rows == slice->num_rows && shard->whole_columns == dim)
        return tensor;
    tensor.first_row = shard->first_row;
    tensor.first_column = shard->first_column;
    tensor.whole = (struct ph_shape){.num_dims = 2, .dims = {shard->whole_rows, shard->whole_columns}};
    return tensor;
}
