/* The two operators of clipping: squared_norm for each gradient, chained, then clip_factor. */
#ifndef PH_OP_OP_CLIP_H
#define PH_OP_OP_CLIP_H

#include "op/table/op_table.h"

enum { PH_NORM_PARAMETER, PH_NORM_GRADIENT, PH_NORM_SUM, PH_NORM_INPUTS };

struct ph_norm_attributes {
    double l2;
    bool is_table;
    bool is_every_row; /* of a table: l2 acts on rows without a gradient too */
};

#endif
