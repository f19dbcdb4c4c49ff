/* The products of a model: what each loses and gains in fewer bits, and the recipe that is chosen for it. */
#ifndef PH_CLI_PRECISION_SITES_H
#define PH_CLI_PRECISION_SITES_H

#include "cli/verb/scoring.h"
#include "train/probe/probe.h"
#include "train/probe/product_error.h"

/* A product with a learnt weight, forward or of its input's gradient. */
struct cli_site {
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
    enum ph_recipe recipe;
};

struct cli_precision_wish {
    double threshold, speed_up, most_loss; /* most_loss: of NE, percent */
    size_t rows, backward_rows;            /* of the calls that are timed */
    enum ph_recipe only;                   /* the one that is chosen beside fp32; fp32: any */
};

struct cli_sites {
    struct cli_site *sites; /* (count) */
    size_t count;
};

/* Measures the forward products that scored rows were seen to enter by the probe `seen`, and, where the
 * training's probe `learnt` is not NULL, predicts their errors and measures the backward products too.
 * PH_ERROR_MEMORY. */
ph_status cli_sites_measure(struct cli_sites *sites, const struct cli_scoring *scoring,
    const struct ph__probe *seen, const struct ph__probe *learnt, const struct cli_precision_wish *wish);
void cli_sites_fini(struct cli_sites *sites);

/* Chooses the fastest of the wish's recipes whose error is below the threshold, among those that are faster
 * than fp32 by its ratio. */
void cli_site_choose(struct cli_site *site, double threshold, const struct cli_precision_wish *wish);
/* Returns the error by which a recipe is chosen; 0 for fp32. */
double cli_site_error(const struct cli_site *site, enum ph_recipe recipe);
/* Returns the forward product in fewer bits that errs most; NULL: all are fp32. */
struct cli_site *cli_sites_worst(struct cli_sites *sites);

/* Tells how many products' errors in int8 were predicted within 15 %, how many the standard normal numbers
 * miss by a factor of 1.3, and of how many. Forward products, whose measured rows no training has seen. */
struct cli_prediction {
    size_t within, missed_by_standard, count;
};
struct cli_prediction cli_sites_prediction(const struct cli_sites *sites);

#endif
