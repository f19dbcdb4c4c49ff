#include "store/tensor_part.h"

#include <string.h>

bool ph__shape_equal(const struct ph_shape *a, const struct ph_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool ph__tensor_is_part(const struct ph_tensor *tensor)
{
    return tensor->whole.rank > 0;
}

struct ph_shape ph__tensor_whole(const struct ph_tensor *tensor)
{
    return ph__tensor_is_part(tensor) ? tensor->whole : tensor->shape;
}

static bool have_common(size_t first, size_t count, size_t other_first, size_t other_count)
{
    return count > 0 && other_count > 0 && first < other_first + other_count && other_first < first + count;
}

bool ph__tensor_excludes(const struct ph_tensor *a, const struct ph_tensor *b)
{
    if (strcmp(a->name, b->name) != 0)
        return false;
    const struct ph_shape whole = ph__tensor_whole(a), other = ph__tensor_whole(b);
    if ((!ph__tensor_is_part(a) && !ph__tensor_is_part(b)) || !ph__shape_equal(&whole, &other))
        return true;
    return have_common(a->first_row, a->shape.dims[0], b->first_row, b->shape.dims[0]) &&
           have_common(a->first_column, a->shape.dims[1], b->first_column, b->shape.dims[1]);
}

struct ph_tensor ph__slice_tensor(
    const struct ph_table_slice *slice, const struct ph_slice_part *part, size_t dim)
{
    struct ph_tensor tensor = {.name = slice->name, .shape = {.rank = 2, .dims = {slice->num_rows, dim}}};
    if (part->whole_rows == slice->num_rows && part->whole_columns == dim)
        return tensor;
    tensor.first_row = part->first_row;
    tensor.first_column = part->first_column;
    tensor.whole = (struct ph_shape){.rank = 2, .dims = {part->whole_rows, part->whole_columns}};
    return tensor;
}
