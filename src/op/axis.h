/* An array seen along one axis: `rows` runs of `extent * inner` reals, for joining and cutting. */
#ifndef PH_OP_AXIS_H
#define PH_OP_AXIS_H

#include "op/operator.h"

struct ph_axis_view {
    size_t rows;  /* product of the dimensions before the axis */
    size_t inner; /* product of those after it */
};

struct ph_axis_view ph__axis_view(const struct ph_shape *shape, size_t axis);
/* Can x be joined or cut along the axis: not the batch, and fixed? */
bool ph__axis_is_valid(const struct ph_type *x, size_t axis);

#endif
