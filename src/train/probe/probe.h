/* Sees the rows that enter the products of a program: counts them, and keeps a sample of each product, while
 * the program runs. A product is a linear layer forward, or the gradient of its input.
 *
 * A probe is a hook of the backend, set for the steps that are to be seen:
 *
 *     backend->simulator = ph__probe_hook(probe);  ... run entries ...  backend->simulator = NULL;
 *
 * The executor's thread alone. Source: LoKA (arXiv 2605.10886), the probe. */
#ifndef PH_TRAIN_PROBE_H
#define PH_TRAIN_PROBE_H

#include "base/rng.h"
#include "graph/op.h"
#include "train/probe/row_statistics.h"

enum { PH_PROBE_ROWS = 64 }; /* kept of each product */

struct ph__probe_product {
    const char *weight; /* name of the parameter; the program's */
    bool is_backward;
    size_t terms, outputs;
    struct ph__row_statistics statistics; /* of the rows that enter, (rows, terms) */
    ph_real *rows;                        /* (num_rows, terms) a sample of them without favour */
    size_t num_rows;
    struct ph__rng_sequence random;
};

struct ph__probe {
    struct ph__simulator hook; /* first */
    const struct ph_program *program;
    size_t *product_of;                 /* by node: its product, SIZE_MAX: none */
    struct ph__probe_product *products; /* (num_products) in the order of nodes */
    size_t num_products;
};

/* Creates a probe of a program's products with learnt weights; both are borrowed. PH_ERROR_MEMORY. */
ph_status ph__probe_create(
    const struct ph_program *program, struct ph__gemm *gemm, struct ph__probe **probe_out);
void ph__probe_destroy(struct ph__probe *probe); /* NULL is fine */
const struct ph__simulator *ph__probe_hook(const struct ph__probe *probe);

#endif
