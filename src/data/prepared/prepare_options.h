/* The keys under "prepare" of a config. */
#ifndef PH_DATA_PREPARE_OPTIONS_H
#define PH_DATA_PREPARE_OPTIONS_H

#include "base/option/option.h"
#include "phloem/data.h"

extern const struct ph__option_table ph__prepare_options; /* struct ph_prepare_settings */

/* Copies a program's options, with the keys' defaults in place of 0. PH_ERROR_USAGE for values beyond the
 * ranges of the keys. */
ph_status ph__prepare_options_fill(
    const struct ph_prepare_options *options, struct ph_prepare_options *filled_out);

#endif
