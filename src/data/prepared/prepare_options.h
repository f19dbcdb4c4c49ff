/* The keys under "prepare" of a config. */
#ifndef PH_DATA_PREPARE_OPTIONS_H
#define PH_DATA_PREPARE_OPTIONS_H

#include "base/option/option.h"
#include "phloem/data.h"

extern const struct ph__option_table ph__prepare_options; /* struct ph_prepare_settings */

/* The options that a program gives, the keys' defaults in the place of 0. PH_ERROR_USAGE for what is beyond
 * the ranges of the keys. */
ph_status ph__prepare_options_fill(
    const struct ph_prepare_options *options, struct ph_prepare_options *filled_out);

#endif
