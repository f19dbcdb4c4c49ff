/* The products of a model: what each loses and gains in fewer bits, and the recipe that is chosen for it. */
#ifndef PH_TRAIN_SITES_H
#define PH_TRAIN_SITES_H

#include "graph/op.h"
#include "train/probe/probe.h"
#include "train/probe/product_error.h"

/* A product with a learnt weight, forward or of its input's gradient. */
struct ph__site {
    const char *weight; /* its name; the probe's */
    bool is_backward;
    size_t out_features, in_features;
    double kurtosis; /* median of the features of its rows; 0: unknown */
    /* Errors of each enum ph__arithmetic: on real rows (forward: of the data, backward: of the training); as
     * the training's distributions predict; with standard normal numbers in place of both operands. */
    struct ph__product_error measured[PH_ARITHMETIC_COUNT], predicted[PH_ARITHMETIC_COUNT],
        standard[PH_ARITHMETIC_COUNT];
    bool is_predicted;               /* the training left a file of its probe */
    bool is_normal;                  /* the prediction is by drawn rows, else by rows of the training */
    double seconds[PH_RECIPE_COUNT]; /* 0: the site does not take the recipe */
    double off[PH_RECIPE_COUNT];     /* of the kernels from their rounded operands: ph__product_check */
    enum ph_recipe recipe;
};

#define PH_SITE_FAULT 1e-3 /* `off` from which on a kernel is wrong */

struct ph__site_wish {
    double threshold, speed_up, most_loss; /* most_loss: of NE, percent */
    size_t rows, backward_rows;            /* of the calls that are timed */
    enum ph_recipe only;                   /* the one that is chosen beside fp32; fp32: any */
};

struct ph__sites {
    struct ph__site *sites; /* (count) */
    size_t count;
};

struct ph__site_sources {
    const struct ph_store *store; /* of the weights */
    const struct ph_backend *backend;
    const struct ph__probe *seen;   /* of a program that scored rows */
    const struct ph__probe *learnt; /* of the training; NULL: none */
};

/* Measures forward products, and, where the training left its probe, predicts their errors and measures
 * backward products too. Borrows names from the probes. PH_ERROR_MEMORY. */
ph_status ph__sites_measure(
    struct ph__sites *sites, const struct ph__site_sources *from, const struct ph__site_wish *wish);
void ph__sites_fini(struct ph__sites *sites);

/* Times the site's product by each recipe that it takes. PH_ERROR_MEMORY. */
ph_status ph__site_time(
    struct ph__site *site, const struct ph_backend *backend, const struct ph__site_wish *wish);
/* Chooses the fastest of the wish's recipes whose error is below the threshold, among those that are faster
 * than fp32 by its ratio. */
void ph__site_choose(struct ph__site *site, double threshold, const struct ph__site_wish *wish);
/* Returns the error by which a recipe is chosen; 0 for fp32. */
double ph__site_error(const struct ph__site *site, enum ph_recipe recipe);
/* Returns the forward product in fewer bits that errs most; NULL: all are fp32. */
struct ph__site *ph__sites_worst(struct ph__sites *sites);

/* Tells how many products' errors in int8 were predicted within 15 %, how many the standard normal numbers
 * miss by a factor of 1.3, and of how many. Forward products, whose measured rows no training has seen. */
struct ph__prediction {
    size_t within, missed_by_standard, count;
};
struct ph__prediction ph__sites_prediction(const struct ph__sites *sites);

#endif
