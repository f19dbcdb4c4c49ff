#include "data/prepared/prepare_options.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/text/number.h"
#include "base/thread/parallel.h"
#include "data/prepared/part_block.h"

static const struct ph__option prepare_options[] = {
    PH_INTEGER_KEY("part_bytes", struct ph_prepare_settings, part_bytes, "268435456", 4096, 1e12,
        "Bytes of text, after decompression, in one part of prepared data. An interrupted preparation loses "
        "at most one part for each thread; threads work on different parts of a plain file."),
    PH_INTEGER_KEY("block_rows", struct ph_prepare_settings, block_rows, "1024", 1, PH_BLOCK_MAX_ROWS,
        "Rows of a block, the unit of reading. Shuffling fills data.shuffle_bytes with randomly drawn "
        "blocks: smaller blocks mix sorted data better; larger ones are a little smaller on disk and "
        "faster."),
    PH_INTEGER_KEY("vocabulary_bytes", struct ph_prepare_settings, vocabulary_bytes, "1073741824", 65536,
        1e12,
        "Bytes of memory, all threads together, for ids while vocabularies are learnt; more ids wait on "
        "disk. The ids that reach min_count must fit."),
};

const struct ph__option_table ph__prepare_options = {
    .section = "prepare",
    .help = "Sizes that phloem prepare works with.",
    .options = prepare_options,
    .num_options = sizeof prepare_options / sizeof *prepare_options,
    .settings_size = sizeof(struct ph_prepare_settings),
};

/* Replaces 0 by the default, and checks the range of other values. */
static ph_status fill(const struct ph__option *option, struct ph_prepare_settings *settings)
{
    uint64_t *value = (void *)((char *)settings + option->offset);
    if (*value == 0)
        return ph__integer_parse(option->default_text, (int64_t *)value)
                   ? PH_OK
                   : ph_fail(PH_ERROR_BUG, "prepare.%s: the default is not an integer", option->key);
    if (*value >= (uint64_t)option->min && *value <= (uint64_t)option->max)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "prepare.%s: %" PRIu64 " is not in the range %.0f to %.0f", option->key,
        *value, option->min, option->max);
}

ph_status ph__prepare_options_fill(
    const struct ph_prepare_options *options, struct ph_prepare_options *filled_out)
{
    struct ph_prepare_options filled = *options;
    if (options->num_threads > PH_MAX_THREADS)
        return ph_fail(PH_ERROR_USAGE, "prepare: %zu threads are too many, at most %d", options->num_threads,
            PH_MAX_THREADS);
    for (size_t i = 0; i < ph__prepare_options.num_options; i++)
        PH_TRY(fill(&prepare_options[i], &filled.settings));
    *filled_out = filled;
    return PH_OK;
}
