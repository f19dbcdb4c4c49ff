#include "train/config/study_options.h"

#define PUBLISHED(member) struct ph__published_settings, member
#define TUNE(member) struct ph__tune_settings, member
#define RANGE(member) struct ph__range_settings, member

/* ---- published ---- */

static const struct ph__option published_options[] = {
    PH_TEXT_KEY("source", PUBLISHED(source), "", "Where the figures are from, as a reader can look them up."),
    PH_NUMBER_KEY("auc", PUBLISHED(auc), "0", 0, 1, "AUC on the test data. 0: none is known."),
    PH_NUMBER_KEY("logloss", PUBLISHED(logloss), "0", 0, 100, "Logloss on the test data. 0: none is known."),
    PH_NUMBER_KEY("bar_auc", PUBLISHED(bar_auc), "0", 0, 1,
        "The test AUC that whoever wrote the config wants the mean over seeds to reach. 0: none."),
};

const struct ph__option_table ph__published_options = {
    .section = "published",
    .help = "Figures that phloem compare sets beside its own. Nothing is learnt from them.",
    .options = published_options,
    .num_options = sizeof published_options / sizeof *published_options,
    .settings_size = sizeof(struct ph__published_settings),
    .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME,
};

/* ---- tune ---- */

static const struct ph__option range_options[] = {
    PH_TEXT_KEY("key", RANGE(key), NULL, "Which key of the config is varied: optimizer.embedding_l2."),
    PH_NUMBER_KEY("min", RANGE(min), "0", 0, 0, "Least value; with max in the place of values."),
    PH_NUMBER_KEY("max", RANGE(max), "0", 0, 0, "Greatest value."),
    PH_CHOICE_KEY("scale", RANGE(scale), "linear", "linear|log",
        "log: the logarithm of the value is drawn evenly, so that each power of ten gets its share."),
    PH_CHOICE_KEY("kind", RANGE(kind), "number", "number|integer", "number: four digits that count."),
    PH_TEXTS_KEY("values", RANGE(values), "",
        "The values themselves, in the place of min and max: one is drawn, each as often as the others. A "
        "list is written as one text: \"400,400\"."),
};

static const struct ph__option_table range_table = {
    .section = "tune.ranges",
    .help = "One key and what it may be.",
    .options = range_options,
    .num_options = sizeof range_options / sizeof *range_options,
    .settings_size = sizeof(struct ph__range_settings),
};

static const struct ph__option tune_options[] = {
    PH_CHOICE_KEY("search", TUNE(search), "random", "random|halving",
        "random: each candidate is trained to its end. halving: all are trained for min_epochs epochs, the "
        "best part goes on for eta times as many, and so on up to train.epochs."),
    PH_INTEGER_KEY("runs", TUNE(runs), "20", 1, 10000,
        "Trainings at most; that of a candidate that goes on is the same one. Among the candidates is the "
        "config as it is."),
    PH_NUMBER_KEY("minutes", TUNE(minutes), "0", 0, 1e6,
        "After so long nothing further is begun; a further call goes on. 0: no limit."),
    PH_INTEGER_KEY("seeds", TUNE(seeds), "1", 1, 100,
        "Trainings of one candidate, with the config's seed and those that follow it; their mean counts."),
    PH_INTEGER_KEY("seed", TUNE(seed), "1", 0, 9007199254740992.0, "Of the candidates."),
    PH_CHOICE_KEY("metric", TUNE(metric), "selection", "selection|auc|logloss",
        "What of data.valid decides between candidates. selection: as train.selection."),
    PH_INTEGER_KEY("eta", TUNE(eta), "3", 2, 100,
        "halving: of so many candidates one goes on, for so many times the epochs."),
    PH_INTEGER_KEY("min_epochs", TUNE(min_epochs), "1", 1, 1e6, "halving: epochs of every candidate."),
    PH_RECORDS_KEY("ranges", TUNE(ranges), "", &range_table, "What is varied."),
};

const struct ph__option_table ph__tune_options = {
    .section = "tune",
    .help = "What phloem tune tries, and how much of it.",
    .options = tune_options,
    .num_options = sizeof tune_options / sizeof *tune_options,
    .settings_size = sizeof(struct ph__tune_settings),
};
