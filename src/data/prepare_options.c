#include "data/prepare_options.h"

#include <stddef.h>

#include "data/part_block.h"

static const struct ph_option prepare_options[] = {
    {.key = "part_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_prepare_settings, part_bytes),
        .default_text = "268435456",
        .min = 4096,
        .max = 1e12,
        .help = "Text of one part of a prepared data set, after decompression: what an interrupted "
                "preparation loses at most for each thread, and what threads work on beside each other in a "
                "plain file."},
    {.key = "block_rows",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_prepare_settings, block_rows),
        .default_text = "1024",
        .min = 1,
        .max = PH_BLOCK_MAX_ROWS,
        .help = "Rows of a block, which is read as a whole. Shuffling draws blocks into data.shuffle_bytes: "
                "smaller "
                "ones mix data that lie in some order better, larger ones are a little smaller and faster."},
    {.key = "vocabulary_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct ph_prepare_settings, vocabulary_bytes),
        .default_text = "1073741824",
        .min = 65536,
        .max = 1e12,
        .help = "Memory for the ids of vocabularies while they are learnt, for all threads together; what "
                "does not fit waits on disk. The ids that stay, those of min_count, must fit in it."},
};

const struct ph_option_table ph__prepare_options = {
    .section = "prepare",
    .help = "How phloem prepare cuts the data.",
    .options = prepare_options,
    .num_options = sizeof prepare_options / sizeof *prepare_options,
    .settings_size = sizeof(struct ph_prepare_settings),
};
