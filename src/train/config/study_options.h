/* The keys of a config that study/ compares and searches by. Training does not depend on them. */
#ifndef PH_TRAIN_STUDY_OPTIONS_H
#define PH_TRAIN_STUDY_OPTIONS_H

#include "base/option/option.h"

/* ---- "published": figures known from elsewhere for such a model on such data ---- */

struct ph__published_settings {
    const char *source;
    double auc, logloss; /* on test data; 0: none */
    double bar_auc;      /* the mean over seeds that is aimed at; 0: none */
};

extern const struct ph__option_table ph__published_options;

/* ---- "tune": the keys that a search varies, and its effort ---- */

enum ph__tune_search { PH_TUNE_RANDOM, PH_TUNE_HALVING };
enum ph__tune_metric { PH_TUNE_SELECTION, PH_TUNE_AUC, PH_TUNE_LOGLOSS };
enum ph__range_scale { PH_RANGE_LINEAR, PH_RANGE_LOG };
enum ph__range_kind { PH_RANGE_NUMBER, PH_RANGE_INTEGER };

struct ph__range_settings {
    const char *key;
    double min, max; /* both 0: values are listed */
    enum ph__range_scale scale;
    enum ph__range_kind kind;
    struct ph__text_list values;
};

struct ph__tune_settings {
    enum ph__tune_search search;
    int64_t runs;
    double minutes; /* 0: no limit */
    int64_t seeds;
    int64_t seed;
    enum ph__tune_metric metric;
    int64_t eta, min_epochs;
    struct ph__record_list ranges; /* of struct ph__range_settings */
};

extern const struct ph__option_table ph__tune_options;

#endif
