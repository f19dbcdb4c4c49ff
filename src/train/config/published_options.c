#include "train/config/published_options.h"

#define FIELD(member) struct ph__published_settings, member

static const struct ph__option options[] = {
    PH_TEXT_KEY("source", FIELD(source), "", "Where the figures are from, as a reader can look them up."),
    PH_NUMBER_KEY("auc", FIELD(auc), "0", 0, 1, "AUC on the test data. 0: none is known."),
    PH_NUMBER_KEY("logloss", FIELD(logloss), "0", 0, 100, "Logloss on the test data. 0: none is known."),
    PH_NUMBER_KEY("bar_auc", FIELD(bar_auc), "0", 0, 1,
        "The test AUC that whoever wrote the config wants the mean over seeds to reach. 0: none."),
};

const struct ph__option_table ph__published_options = {
    .section = "published",
    .help = "Figures that phloem compare sets beside its own. Nothing is learnt from them.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph__published_settings),
    .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME,
};
