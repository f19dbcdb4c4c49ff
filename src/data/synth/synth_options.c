#include "data/synth/synth_options.h"

#include <stddef.h>

#define SYNTH(member) struct ph_synth_settings, member

#define STEP(member) struct ph__synth_step, member

#define DOMAIN(member) struct ph__synth_domain, member

#define MAX_ROWS 1e10

static const struct ph__option step_options[] = {
    PH_INTEGER_KEY(
        "order", STEP(order), NULL, 1, PH_SYNTH_MAX_ORDER, "Number of features that interact: 1, 2, 4 or 8."),
    PH_NUMBER_KEY("weight", STEP(weight), "1", 1e-6, 1e6,
        "Standard deviation of this order's part of the logit, relative to the other parts."),
};

static const struct ph__option_table step_table = {
    .section = "synth.staircase",
    .help = "One order of the staircase of interactions.",
    .options = step_options,
    .num_options = sizeof step_options / sizeof *step_options,
    .settings_size = sizeof(struct ph__synth_step),
};

static const struct ph__option domain_options[] = {
    PH_NUMBER_KEY("traffic", DOMAIN(traffic), NULL, 1e-6, 1e6, "Share of the rows, relative to the others'."),
    PH_NUMBER_KEY("odds", DOMAIN(odds), "1", 1e-6, 1e6,
        "Odds of a positive label, as a multiple of those by the shared model."),
    PH_NUMBER_KEY("own", DOMAIN(own), "0", 0, 1,
        "Share of the logit's variance that is a linear model of the domain's own; the rest is the shared "
        "model's."),
};

static const struct ph__option_table domain_table = {
    .section = "synth.domains",
    .help = "One domain of the stream.",
    .options = domain_options,
    .num_options = sizeof domain_options / sizeof *domain_options,
    .settings_size = sizeof(struct ph__synth_domain),
};

static const struct ph__option synth_options[] = {
    PH_INTEGER_KEY("train_rows", SYNTH(train_rows), "1000000", 1, MAX_ROWS, "Rows of the training file."),
    PH_INTEGER_KEY(
        "valid_rows", SYNTH(valid_rows), "100000", 0, MAX_ROWS, "Rows of the validation file. 0: none."),
    PH_INTEGER_KEY("test_rows", SYNTH(test_rows), "100000", 0, MAX_ROWS, "Rows of the test file. 0: none."),
    PH_INTEGER_KEY("dense", SYNTH(num_dense), "13", 0, 1000,
        "Number of dense features: counts with a log-normal spread."),
    PH_INTEGER_KEY("sparse", SYNTH(num_sparse), "26", 1, PH_SYNTH_MAX_FIELDS, "Number of sparse features."),
    PH_INTEGERS_KEY("table_rows", SYNTH(table_rows), "1000", 1, 4e9,
        "Number of different ids of each sparse feature: one number for all, or one for each."),
    PH_INTEGERS_KEY("bag_sizes", SYNTH(bag_sizes), "1", 1, 10000,
        "Number of ids in a cell of each sparse feature (multi-hot): one number for all, or one for each."),
    PH_NUMBER_KEY("exponent", SYNTH(exponent), "1.05", 0, 8,
        "Exponent of the ids' power law: the r-th most frequent id occurs in proportion to r^-exponent. 0: "
        "uniform."),
    PH_INTEGER_KEY("planted", SYNTH(num_planted), "4", 0, PH_SYNTH_MAX_FIELDS,
        "Number of sparse features, from the first on, that the label depends on."),
    PH_INTEGER_KEY("planted_dense", SYNTH(num_planted_dense), "2", 0, 1000,
        "Number of dense features, from the first on, that the label depends on."),
    PH_INTEGER_KEY("groups", SYNTH(num_groups), "1", 1, PH_SYNTH_MAX_FIELDS,
        "Number of equal groups of planted features; features interact inside their group alone. Feature f "
        "is in group f modulo the number of groups."),
    PH_INTEGER_KEY("order", SYNTH(order), "2", 1, PH_SYNTH_MAX_ORDER,
        "Highest order of the interactions among planted features. 1: a linear model."),
    PH_BOOL_KEY("interactions_only", SYNTH(has_no_linear_part), "false",
        "true: sparse features matter by their interactions alone, which are then all of the logit but "
        "planted_dense."),
    PH_INTEGER_KEY("latent_dim", SYNTH(latent_dim), "4", 1, PH_SYNTH_MAX_LATENT_DIM,
        "Length of the hidden vectors whose products are the interactions."),
    PH_RECORDS_KEY("staircase", SYNTH(staircase), "", &step_table,
        "Orders of interactions that replace synth.order: exactly these; each interaction is the product of "
        "two of half its order (docs/DATA.md). Requires planted_dense: 0, drift: 0, groups: 1, "
        "interactions_only: false, and a number of planted features that every order divides."),
    PH_INTEGER_KEY("staircase_rounds", SYNTH(num_rounds), "1", 1, PH_SYNTH_MAX_ROUNDS,
        "Number of random arrangements of the P planted features; each gives P/k interactions of order k."),
    PH_NUMBER_KEY("scale", SYNTH(scale), "1.5", 0, 100,
        "Standard deviation of the true logit for ids drawn uniformly; a larger one makes labels easier to "
        "predict."),
    PH_NUMBER_KEY("base_rate", SYNTH(base_rate), "0.25", 0.001, 0.999,
        "Share of positive labels; with drift, over the whole training file."),
    PH_NUMBER_KEY("drift", SYNTH(drift), "0", 0, 100,
        "Quarter turns of the true model along the training file: at share t of the rows the weights are "
        "cos(a) w0 + sin(a) w1, with a = drift * t * pi / 2 and w0, w1 drawn independently. 0: no drift. 1: "
        "nothing of the first model is left at the end. Valid and test rows are drawn at the end."),
    PH_NUMBER_KEY("turnover", SYNTH(turnover), "0", 0, 1000,
        "Number of times that each id is replaced by a new one along the training file. Ids begin at "
        "different ages. A feature has table_rows ids at any time. Valid and test rows have those of the "
        "end."),
    PH_RECORDS_KEY("domains", SYNTH(domains), "", &domain_table,
        "Domains that the rows belong to, each with its share of the rows, its odds and a part of the model "
        "of its own; column domain, 0 for the first. Empty: all rows are alike."),
    PH_BOOL_KEY("truth", SYNTH(has_truth), "false",
        "true: adds columns row, the row's number in its file, and truth, its true probability."),
    PH_CHOICE_KEY("format", SYNTH(format), "tsv", "tsv|criteo",
        "Format of the files. tsv: a header and decimal ids. criteo: no header, hexadecimal categories, one "
        "id a cell, 13 dense and 26 sparse features."),
    PH_CHOICE_KEY("compression", SYNTH(compression), "none", "none|gz|zst",
        "Compression of the files. none: plain. gz: gzip. zst: Zstandard."),
    PH_INTEGER_KEY("seed", SYNTH(seed), "1", 0, 9e15,
        "Seed of all that is drawn at random; the same seed and settings write the same files."),
};

const struct ph__option_table ph__synth_options = {
    .section = "synth",
    .help = "Synthetic click data with a known best model.",
    .options = synth_options,
    .num_options = sizeof synth_options / sizeof synth_options[0],
    .settings_size = sizeof(struct ph_synth_settings),
};
