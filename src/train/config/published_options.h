/* The keys under "published" of a config: what is known elsewhere of such a model on such data. Nothing is learnt from them;
 * they stand beside what is measured. */
#ifndef PH_TRAIN_PUBLISHED_OPTIONS_H
#define PH_TRAIN_PUBLISHED_OPTIONS_H

#include "base/option/option.h"

struct ph__published_settings {
    const char *source;
    double auc, logloss; /* of test data; 0: none */
    double bar_auc;      /* that the mean over seeds is to reach; 0: none */
};

extern const struct ph__option_table ph__published_options;

#endif
