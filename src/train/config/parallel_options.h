/* The keys under "parallel" of a config. */
#ifndef PH_TRAIN_PARALLEL_OPTIONS_H
#define PH_TRAIN_PARALLEL_OPTIONS_H

#include "base/option/option.h"
#include "phloem/train.h"

extern const struct ph__option_table ph__parallel_options; /* struct ph_parallel_settings */

#endif
