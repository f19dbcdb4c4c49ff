/* Time of a product with a learnt weight, by each recipe: of calls of so many rows, packing apart. */
#ifndef PH_TRAIN_PRODUCT_TIME_H
#define PH_TRAIN_PRODUCT_TIME_H

#include "kernel/gemm.h"
#include "phloem/graph.h"

/* Gives the median seconds of forward products of x (rows, in) with a weight (out, in), as scorers make them.
 * PH_ERROR_MEMORY. */
ph_status ph__product_time(struct ph__gemm *gemm, size_t rows, size_t out_features, size_t in_features,
    enum ph_recipe recipe, double *seconds_out);

#endif
