/* Sees the rows that enter the products of a program: learns their distribution and keeps a sample of each
 * product, while the program runs. A product is a linear layer forward, or the gradient of its input.
 *
 * A probe is a hook of the backend, set for the steps that are to be seen:
 *
 *     backend->simulator = ph__probe_hook(probe);  ... run entries ...  backend->simulator = NULL;
 *
 * Distributions take matrices of width^2 numbers: where a product has more than PH_PROBE_MOST_WIDTH terms or
 * outputs, rows are kept and no distribution is learnt. The executor's thread alone. Source: LoKA (arXiv
 * 2605.10886), the probe. */
#ifndef PH_TRAIN_PROBE_H
#define PH_TRAIN_PROBE_H

#include "base/memory/arena.h"
#include "base/rng.h"
#include "graph/op.h"
#include "train/probe/matrix_normal.h"
#include "train/probe/row_statistics.h"

enum {
    PH_PROBE_ROWS = 1024,      /* kept of each product */
    PH_PROBE_BATCH_ROWS = 256, /* seen of a product's rows when it runs: the first ones */
    PH_PROBE_RECENT = 2048,    /* rows: later ones take the places of earlier ones as if no more had been */
    PH_PROBE_MOST_WIDTH = 2048
};
#define PH_PROBE_MOMENTUM .95 /* of the weights' distributions */

struct ph__probe_product {
    size_t weight; /* index of the probe's */
    bool is_backward;
    size_t terms, outputs;
    uint64_t num_seen;                    /* rows */
    double amax;                          /* largest magnitude in them */
    struct ph__row_statistics statistics; /* of the rows that enter, (rows, terms); closed where too wide */
    ph_real *rows;                        /* (num_rows, terms) a sample of the recent ones */
    size_t num_rows;
    struct ph__rng_sequence random;
};

struct ph__probe_weight {
    const char *name; /* of the parameter; the probe's */
    size_t out_features, in_features;
    struct ph__matrix_normal distribution; /* closed until it is seen, and where too wide */
};

struct ph__probe {
    struct ph__simulator hook; /* first */
    const struct ph_program *program;
    size_t *product_of;                 /* by node: its product, SIZE_MAX: none */
    struct ph__probe_product *products; /* (num_products) in the order of nodes */
    struct ph__probe_weight *weights;   /* (num_weights) */
    size_t num_products, num_weights;
    size_t num_weights_seen;
    double seconds; /* that the probe has taken */
    struct ph__arena arena;
};

/* Creates a probe of a program's products with learnt weights; both are borrowed. PH_ERROR_MEMORY. */
ph_status ph__probe_create(
    const struct ph_program *program, struct ph__gemm *gemm, struct ph__probe **probe_out);
void ph__probe_destroy(struct ph__probe *probe); /* NULL is fine */
const struct ph__simulator *ph__probe_hook(const struct ph__probe *probe);
uint64_t ph__probe_bytes(const struct ph__probe *probe); /* once all weights have been seen */

/* Adds the next of the weights, one after the other, as it is now to its distribution. PH_ERROR_MEMORY. */
ph_status ph__probe_see_weight(struct ph__probe *probe, const struct ph_store *store);

/* Writes distributions and rows into a file, atomically, for phloem precision, which reads them into a probe
 * without a program. num_steps: those that the training had taken. PH_ERROR_DISK, PH_ERROR_CHECKPOINT naming
 * the file. */
ph_status ph__probe_write(const struct ph__probe *probe, uint64_t num_steps, const char *path);
ph_status ph__probe_read(const char *path, struct ph__gemm *gemm, struct ph__probe **probe_out);

/* Makes a probe without products, with room for as many. */
ph_status ph__probe_make(size_t most_products, struct ph__probe **probe_out);
/* Adds a product, and its weight unless the probe has it; the weight's name is copied. */
ph_status ph__probe_add_product(struct ph__probe *probe, struct ph__gemm *gemm,
    const struct ph__probe_weight *weight, bool is_backward, struct ph__probe_product **product_out);

#endif
