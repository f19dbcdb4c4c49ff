/* The keys under "train", "optimizer" and "parallel" of a config. */
#ifndef PH_TRAIN_TRAIN_OPTIONS_H
#define PH_TRAIN_TRAIN_OPTIONS_H

#include "base/option/option.h"
#include "phloem/train.h"

struct ph__optimizer_section {
    struct ph_optimizer_settings settings;
    struct ph__record_list
        groups; /* of struct ph_optimizer_group; the settings point at them after reading */
};

extern const struct ph__option_table ph__train_options;     /* struct ph_train_settings */
extern const struct ph__option_table ph__parallel_options;  /* struct ph_parallel_settings */
extern const struct ph__option_table ph__optimizer_options; /* struct ph__optimizer_section */

#endif
