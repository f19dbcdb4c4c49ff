#include "train/config/study_options.h"

#define PUBLISHED(member) struct ph__published_settings, member
#define TUNE(member) struct ph__tune_settings, member
#define RANGE(member) struct ph__range_settings, member

/* ---- published ---- */

static const struct ph__option published_options[] = {
    PH_TEXT_KEY("source", PUBLISHED(source), "", "Source of the figures, precise enough to be looked up."),
    PH_NUMBER_KEY("auc", PUBLISHED(auc), "0", 0, 1, "Published AUC on the test data. 0: none."),
    PH_NUMBER_KEY("logloss", PUBLISHED(logloss), "0", 0, 100, "Published logloss on the test data. 0: none."),
    PH_NUMBER_KEY("bar_auc", PUBLISHED(bar_auc), "0", 0, 1,
        "Test AUC that the mean over seeds should reach; phloem compare says whether it did. 0: none."),
};

const struct ph__option_table ph__published_options = {
    .section = "published",
    .help = "Published figures that phloem compare shows beside its own. Training does not use them.",
    .options = published_options,
    .num_options = sizeof published_options / sizeof *published_options,
    .settings_size = sizeof(struct ph__published_settings),
    .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME,
};

/* ---- tune ---- */

static const struct ph__option range_options[] = {
    PH_TEXT_KEY("key", RANGE(key), NULL, "Key of the config that is varied, such as optimizer.embedding_l2."),
    PH_NUMBER_KEY(
        "min", RANGE(min), "0", 0, 0, "Least value. min and max are given together, or values instead."),
    PH_NUMBER_KEY("max", RANGE(max), "0", 0, 0, "Greatest value."),
    PH_CHOICE_KEY("scale", RANGE(scale), "linear", "linear|log",
        "Scale on which values are drawn evenly. linear: the value itself. log: its logarithm, so that each "
        "power of ten gets an equal share; min is above 0."),
    PH_CHOICE_KEY("kind", RANGE(kind), "number", "number|integer",
        "Kind of the values between min and max. number: rounded to four significant digits. integer: whole "
        "numbers."),
    PH_TEXTS_KEY("values", RANGE(values), "",
        "List of values, instead of min and max; each is drawn equally often. A list is written as one text: "
        "\"400,400\"."),
};

static const struct ph__option_table range_table = {
    .section = "tune.ranges",
    .help = "A key that is varied, and its values.",
    .options = range_options,
    .num_options = sizeof range_options / sizeof *range_options,
    .settings_size = sizeof(struct ph__range_settings),
};

static const struct ph__option tune_options[] = {
    PH_CHOICE_KEY("search", TUNE(search), "random", "random|halving",
        "Search method. random: trains each candidate to its end. halving: trains all candidates for "
        "min_epochs epochs, goes on with the best one in eta for eta times as many, and so on up to "
        "train.epochs."),
    PH_INTEGER_KEY("runs", TUNE(runs), "20", 1, 10000,
        "Maximum number of trainings, tune.seeds for each candidate; a candidate that goes on counts once. "
        "The first candidate is the config as it is."),
    PH_NUMBER_KEY("minutes", TUNE(minutes), "0", 0, 1e6,
        "Minutes after which no further training begins; the same command goes on later. 0: no limit."),
    PH_INTEGER_KEY("seeds", TUNE(seeds), "1", 1, 100,
        "Trainings of each candidate, with the config's seed and the seeds after it; their mean counts."),
    PH_INTEGER_KEY("seed", TUNE(seed), "1", 0, 9007199254740992.0, "Seed that candidates are drawn by."),
    PH_CHOICE_KEY("metric", TUNE(metric), "selection", "selection|auc|logloss",
        "Metric on data.valid that decides between candidates. selection: that of train.selection. auc: the "
        "highest. logloss: the lowest."),
    PH_INTEGER_KEY(
        "eta", TUNE(eta), "3", 2, 100, "halving: one in eta candidates goes on, for eta times the epochs."),
    PH_INTEGER_KEY("min_epochs", TUNE(min_epochs), "1", 1, 1e6, "halving: epochs that every candidate gets."),
    PH_RECORDS_KEY("ranges", TUNE(ranges), "", &range_table, "Keys that are varied, and their values."),
};

const struct ph__option_table ph__tune_options = {
    .section = "tune",
    .help = "Search of phloem tune: keys, method and budget.",
    .options = tune_options,
    .num_options = sizeof tune_options / sizeof *tune_options,
    .settings_size = sizeof(struct ph__tune_settings),
};
