/* The keys under "tune" of a config: what a search over other keys tries, and how much of it. */
#ifndef PH_TRAIN_TUNE_OPTIONS_H
#define PH_TRAIN_TUNE_OPTIONS_H

#include "base/option/option.h"

enum ph_tune_search { PH_TUNE_RANDOM, PH_TUNE_HALVING };
enum ph_tune_metric { PH_TUNE_SELECTION, PH_TUNE_AUC, PH_TUNE_LOGLOSS };
enum ph_range_scale { PH_RANGE_LINEAR, PH_RANGE_LOG };
enum ph_range_kind { PH_RANGE_NUMBER, PH_RANGE_INTEGER };

struct ph_range_settings {
    const char *key;
    double min, max; /* both 0: values are listed */
    int scale;       /* enum ph_range_scale */
    int kind;        /* enum ph_range_kind */
    struct ph_text_list values;
};

struct ph_tune_settings {
    int search; /* enum ph_tune_search */
    int64_t runs;
    double minutes; /* 0: no limit */
    int64_t seeds;
    int64_t seed;
    int metric; /* enum ph_tune_metric */
    int64_t eta, min_epochs;
    struct ph_record_list ranges; /* of struct ph_range_settings */
};

extern const struct ph_option_table ph__tune_options;

#endif
