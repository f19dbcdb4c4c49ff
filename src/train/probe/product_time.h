/* Time of a product with a learnt weight, by each recipe: of calls of so many rows, packing apart. */
#ifndef PH_TRAIN_PRODUCT_TIME_H
#define PH_TRAIN_PRODUCT_TIME_H

#include "kernel/gemm.h"
#include "kernel/kernel.h"
#include "phloem/graph.h"

struct ph__timed_product {
    size_t out_features, in_features;
    bool is_backward;
    enum ph_recipe recipe;
};

/* Gives the median seconds of products of so many rows with a weight (out, in): forward as scorers make them,
 * or of the input's gradient as trainings do. PH_ERROR_MEMORY. */
ph_status ph__product_time(struct ph__gemm *gemm, const struct ph__kernels *kernels, size_t rows,
    const struct ph__timed_product *product, double *seconds_out);

#endif
