/* What the runs of a comparison say together. */
#ifndef PH_STUDY_COMPARISON_FIGURES_H
#define PH_STUDY_COMPARISON_FIGURES_H

#include "base/format/json_fields.h"
#include "study/comparison.h"

#define PH_COMPARISON_CONFIDENCE 0.95

/* Over the seeds whose runs are finished. */
struct ph__spread {
    double mean;
    double deviation; /* of a sample; NaN for fewer than two */
};

/* Of a row less its base, over the seeds that both have finished. */
struct ph__difference {
    double mean;
    double half_width; /* of the interval that covers the true mean with PH_COMPARISON_CONFIDENCE; NaN for one
                          seed */
};

enum ph__pairing {
    PH_PAIRED,
    PH_PAIR_IS_BASE,       /* the row is its own base */
    PH_PAIR_OF_OTHER_DATA, /* the test data are not those of the base, or one of them has none */
    PH_PAIR_HAS_NO_SEED,   /* that both have finished */
};

/* Of one row; what was not measured is NaN. */
struct ph__comparison_figures {
    uint64_t num_finished, num_failed;
    bool has_all_seeds; /* have finished */
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

/* Each number of them by its name: of a machine's table. */
extern const struct ph__json_field ph__comparison_fields[];
extern const size_t ph__num_comparison_fields;

/* PH_ERROR_MEMORY. */
ph_status ph__comparison_figures(
    const struct ph__comparison *comparison, size_t row, struct ph__comparison_figures *figures_out);

/* "reached" or "missed"; NULL where there is no bar, or nothing to hold against it yet: that takes all seeds.
 */
const char *ph__bar_word(const struct ph__comparison_figures *figures);

#endif
