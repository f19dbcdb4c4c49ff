/* The keys under "prepare" of a config. */
#ifndef PH_DATA_PREPARE_OPTIONS_H
#define PH_DATA_PREPARE_OPTIONS_H

#include "base/option.h"
#include "phloem/data.h"

struct ph_prepare_settings {
    int64_t part_bytes;       /* of text in one part */
    int64_t block_rows;       /* that are read together */
    int64_t vocabulary_bytes; /* of memory for ids while they are learnt */
};

extern const struct ph_option_table ph__prepare_options;

/* PH_ERROR_USAGE for options that a program gives and that are beyond the ranges of the keys; 0 stands for a default. */
ph_status ph__prepare_options_check(const struct ph_prepare_options *options);

#endif
