/* The figures of a comparison's rows, over the runs of all seeds. */
#ifndef PH_STUDY_COMPARISON_FIGURES_H
#define PH_STUDY_COMPARISON_FIGURES_H

#include "base/format/json_fields.h"
#include "study/comparison.h"

#define PH_COMPARISON_CONFIDENCE 0.95

/* Spread over the seeds whose runs have finished. */
struct ph__spread {
    double mean;
    double deviation; /* of a sample; NaN for fewer than two */
};

/* A row's figure less its base's, over the seeds that both have finished. */
struct ph__difference {
    double mean;
    double half_width; /* of the true mean's interval by PH_COMPARISON_CONFIDENCE; NaN for one seed */
};

enum ph__pairing {
    PH_PAIRED,
    PH_PAIR_IS_BASE,       /* the row is its own base */
    PH_PAIR_OF_OTHER_DATA, /* the test data differ from the base's, or one of the two has none */
    PH_PAIR_HAS_NO_SEED,   /* there is no seed that both have finished */
};

/* Figures of one row; NaN where not measured. */
struct ph__comparison_figures {
    uint64_t num_finished, num_failed;
    bool has_all_seeds; /* all seeds have finished */
    struct ph__spread test_auc, test_logloss, test_ne, test_calibration, valid_auc, valid_logloss;
    enum ph__pairing pairing;
    uint64_t num_pairs;
    struct ph__difference auc_difference, logloss_difference;
    double parameters, flops_per_sample;
    double samples_per_s; /* median */
    double train_seconds, epochs;
    double published_auc, published_logloss, bar_auc;              /* NaN: none */
    double published_auc_difference, published_logloss_difference; /* measured less published */
};

/* The numbers of the struct by their names, for compare.csv and compare.json. */
extern const struct ph__json_field ph__comparison_fields[];
extern const size_t ph__num_comparison_fields;

/* PH_ERROR_MEMORY. */
ph_status ph__comparison_figures(
    const struct ph__comparison *comparison, size_t row, struct ph__comparison_figures *figures_out);

/* Returns "reached" or "missed"; NULL when there is no bar, or not all seeds have been measured. */
const char *ph__bar_word(const struct ph__comparison_figures *figures);

#endif
