#include "train/config/published_options.h"

#define FIELD(member) offsetof(struct ph__published_settings, member)

static const struct ph__option options[] = {
    {.key = "source",
        .type = PH_OPTION_TEXT,
        .offset = FIELD(source),
        .default_text = "",
        .help = "Where the figures are from, as a reader can look them up."},
    {.key = "auc",
        .type = PH_OPTION_NUMBER,
        .offset = FIELD(auc),
        .default_text = "0",
        .min = 0,
        .max = 1,
        .help = "AUC on the test data. 0: none is known."},
    {.key = "logloss",
        .type = PH_OPTION_NUMBER,
        .offset = FIELD(logloss),
        .default_text = "0",
        .min = 0,
        .max = 100,
        .help = "Logloss on the test data. 0: none is known."},
    {.key = "bar_auc",
        .type = PH_OPTION_NUMBER,
        .offset = FIELD(bar_auc),
        .default_text = "0",
        .min = 0,
        .max = 1,
        .help = "The test AUC that whoever wrote the config wants the mean over seeds to reach. 0: none."},
};

const struct ph__option_table ph__published_options = {
    .section = "published",
    .help = "Figures that phloem compare sets beside its own. Nothing is learnt from them.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph__published_settings),
    .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME,
};
