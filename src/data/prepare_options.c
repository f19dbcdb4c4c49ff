#include "data/prepare_options.h"

#include <stddef.h>

static const struct ph_option prepare_options[] = {
    {.key = "part_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_prepare_settings, part_bytes),
        .default_text = "268435456",
        .min = 4096,
        .max = 1e12,
        .help = "Text of one part of a prepared data set, after decompression: what an interrupted "
                "preparation loses "
                "at most for each thread, and what threads work on beside each other in a plain file."},
};

const struct ph_option_table ph__prepare_options = {
    .section = "prepare",
    .help = "How phloem prepare cuts the data.",
    .options = prepare_options,
    .num_options = sizeof prepare_options / sizeof *prepare_options,
    .settings_size = sizeof(struct ph_prepare_settings),
};
