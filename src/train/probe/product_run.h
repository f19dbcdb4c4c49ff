/* Products with a learnt weight by each recipe as programs run them: forward as scorers make them, or of the
 * input's gradient as trainings do. */
#ifndef PH_TRAIN_PRODUCT_RUN_H
#define PH_TRAIN_PRODUCT_RUN_H

#include "graph/op.h"

struct ph__recipe_product {
    size_t out_features, in_features; /* of the weight */
    bool is_backward;
    enum ph_recipe recipe;
};

/* Gives the least seconds of products of so many rows, packing apart. PH_ERROR_MEMORY. */
ph_status ph__product_time(const struct ph_backend *backend, size_t rows,
    const struct ph__recipe_product *product, double *seconds_out);

/* Gives how far products of rows x (rows, terms) and a weight (out, in) are from those of the rounded
 * operands in double: the largest difference, over the rms of the latter. Rounding of sums leaves some 1e-6;
 * more is a fault of the kernel. PH_ERROR_MEMORY. */
ph_status ph__product_check(const struct ph_backend *backend, size_t rows,
    const struct ph__recipe_product *product, const ph_real *x, const ph_real *weight, double *off_out);

#endif
