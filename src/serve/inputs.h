/* The columns that a program hands over with a row, and the features that are made of each. */
#ifndef PH_SERVE_INPUTS_H
#define PH_SERVE_INPUTS_H

#include "base/text/name_index.h"
#include "data/encode/row_encoder.h"

/* Those columns of the data that features are made of, in the order of the data: no labels, weights and groups. */
struct ph__inputs {                     /* zero-initialised is empty */
    struct ph_name_index index;         /* of the columns' names, the encoder's */
    size_t *first;                      /* (columns + 1) into features */
    const struct ph__column **features; /* the encoder's; those of column i are [first[i], first[i + 1]) */
};

ph_status ph__inputs_init(const struct ph_encoder *encoder, struct ph__inputs *inputs_out);
void ph__inputs_fini(struct ph__inputs *inputs);

/* Encodes a row of cells (index.count) behind those in `rows`. PH_ERROR_DATA naming the field. */
ph_status ph__inputs_encode(const struct ph__inputs *inputs, struct ph__row_encoder *row,
    const struct ph_cell *cells, struct ph__rows *rows);

#endif
