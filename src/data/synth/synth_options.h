/* The keys under "synth": the shape of synthetic click data and of the model that draws its labels. */
#ifndef PH_DATA_SYNTH_OPTIONS_H
#define PH_DATA_SYNTH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option/option.h"

enum ph__synth_format { PH_SYNTH_TSV, PH_SYNTH_CRITEO };
enum ph__synth_compression { PH_SYNTH_PLAIN, PH_SYNTH_GZ, PH_SYNTH_ZST };

#define PH_SYNTH_MAX_ORDER 8
#define PH_SYNTH_MAX_LATENT_DIM 64
#define PH_SYNTH_MAX_FIELDS PH_LIST_MAX
#define PH_SYNTH_MAX_ROUNDS 64

/* An order of synth.staircase, and its weight in the logit. */
struct ph__synth_step {
    int64_t order;
    double weight;
};

/* A domain of synth.domains. */
struct ph__synth_domain {
    double traffic; /* share of the rows, relative to the others' */
    double odds;    /* of a positive label, as a multiple of the shared model's */
    double own;     /* share of the logit's variance that is the domain's own */
};

struct ph_synth_settings {
    int64_t train_rows, valid_rows, test_rows; /* 0: the file is not written */
    int64_t num_dense, num_sparse;
    struct ph__integer_list table_rows; /* ids of a sparse field; one number for all, or one for each */
    struct ph__integer_list bag_sizes;  /* ids in a cell, likewise */
    double exponent;                    /* exponent of the power law of ids */
    int64_t num_planted, num_planted_dense;
    int64_t num_groups; /* of planted features, f % num_groups; 0: one */
    int64_t order, latent_dim;
    bool has_no_linear_part;
    struct ph__record_list staircase; /* struct ph__synth_step; none: interactions of order 2 .. order */
    int64_t num_rounds;               /* rounds of the staircase */
    double scale, base_rate;
    double drift;                   /* turn of the true model along the training file, in quarter turns */
    double turnover;                /* times that an id is replaced by a new one along the training file */
    struct ph__record_list domains; /* struct ph__synth_domain; none: all rows are alike */
    bool has_truth;                 /* columns: number and true probability of the row */
    enum ph__synth_format format;
    enum ph__synth_compression compression;
    int64_t seed;
};

extern const struct ph__option_table ph__synth_options;

#endif
