/* Gradients against central differences, in double with the reference kernels.
 *
 * A case builds a small program over a random batch; every dense parameter, table and dense feature is moved
 * a little up and down, and the change of the loss is compared with what ph_backward says. Values of
 * parameters and batch are random (test_seed()). */
#ifndef PH_TEST_GRADIENT_CHECK_H
#define PH_TEST_GRADIENT_CHECK_H

#include <stdbool.h>

#include "phloem/op.h"
#include "support/test_support.h"

struct gradient_case {
    const char *op;     /* name of the operator on trial: the program must contain it */
    size_t num_samples; /* B */
    size_t num_dense;   /* columns of x, normal */
    size_t num_frozen;  /* the last so many columns of x are moved by nobody: their gradient must be zero */
    size_t num_tasks;   /* columns of the labels, where the program's result is a scalar */
    size_t num_sparse;  /* features with ids */
    size_t num_rows;    /* ids of each feature are in [0, num_rows) */
    size_t max_ids;     /* a bag has 0 .. max_ids ids */
    size_t
        max_elements; /* of a larger variable so many elements, chosen at random, are moved; 0: all of them */
    double parameter_scale;                     /* standard deviation of parameters and tables; 0: 1 */
    bool has_mask, has_weights, has_id_weights; /* in the batch: else NULL */
    /* Adds operators behind x (B,num_dense; 0 when num_dense is 0) and returns the loss, or an array (B,...)
     * of which a cross entropy against random labels is made. */
    ph_value (*build)(struct ph_builder *builder, ph_value x);
};

void check_gradients(const struct gradient_case *gradient_case);

/* x's columns [begin, begin + product of dims) as (B, dims...). */
ph_value take_columns(struct ph_builder *builder, ph_value x, size_t begin, size_t rank, const size_t *dims);

#endif
