#include "op/axis.h"

struct ph_axis_view ph__axis_view(const struct ph_shape *shape, size_t axis)
{
    struct ph_axis_view view = {1, 1};
    for (size_t i = 0; i < axis; i++)
        view.rows *= shape->dims[i];
    for (size_t i = axis + 1; i < shape->rank; i++)
        view.inner *= shape->dims[i];
    return view;
}

bool ph__axis_is_valid(const struct ph_type *x, size_t axis)
{
    return ph__type_is_real(x) && axis >= 1 && axis < x->rank && x->dims[axis].symbol == 0;
}
