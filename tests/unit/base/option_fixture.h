/* Settings of every type, in three sections, for the tests of options. */
#ifndef PH_TEST_OPTION_FIXTURE_H
#define PH_TEST_OPTION_FIXTURE_H

#include "base/option/option.h"

struct top_settings {
    int64_t seed;
};

struct field_settings {
    const char *name;
    int kind;
    int64_t rows;
};

struct data_settings {
    const char *train;
    struct ph__record_list fields;
};

struct train_settings {
    int64_t epochs;
    double learning_rate;
    bool is_fast;
    int schedule;
    const char *title;
    struct ph__integer_list steps;
};

static const struct ph__option top_options[] = {
    {.key = "seed",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct top_settings, seed),
        .default_text = "1",
        .help = "Of everything random."},
};
static const struct ph__option_table top_table = {
    "", "For the whole run.", top_options, 1, sizeof(struct top_settings), 0};

static const struct ph__option field_options[] = {
    {.key = "name",
        .type = PH_OPTION_TEXT,
        .offset = offsetof(struct field_settings, name),
        .help = "Of the column."},
    {.key = "kind",
        .type = PH_OPTION_CHOICE,
        .offset = offsetof(struct field_settings, kind),
        .default_text = "id",
        .choices = "label|id|dense",
        .help = "What it is."},
    {.key = "rows",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct field_settings, rows),
        .default_text = "10",
        .min = 1,
        .max = 4294967295.0,
        .help = "Of its table."},
};
static const struct ph__option_table field_table = {
    "fields", "One column; '*' is any | all.", field_options, 3, sizeof(struct field_settings), 0};

static const struct ph__option data_options[] = {
    {.key = "train",
        .type = PH_OPTION_PATH,
        .offset = offsetof(struct data_settings, train),
        .default_text = "",
        .help = "Training file.",
        .traits = PH_KEY_MAY_CHANGE},
    {.key = "fields",
        .type = PH_OPTION_RECORDS,
        .offset = offsetof(struct data_settings, fields),
        .default_text = "",
        .records = &field_table,
        .help = "The columns."},
};
static const struct ph__option_table data_table = {
    "data", "What is read.", data_options, 2, sizeof(struct data_settings), 0};

static const struct ph__option train_options[] = {
    {.key = "epochs",
        .type = PH_OPTION_INTEGER,
        .offset = offsetof(struct train_settings, epochs),
        .min = 1,
        .max = 1000,
        .help = "Passes over the data."},
    {.key = "learning_rate",
        .type = PH_OPTION_NUMBER,
        .offset = offsetof(struct train_settings, learning_rate),
        .default_text = "1e-3",
        .min = 0,
        .max = 10,
        .help = "Of a step."},
    {.key = "fast",
        .type = PH_OPTION_BOOL,
        .offset = offsetof(struct train_settings, is_fast),
        .default_text = "false",
        .help = "Bits may differ."},
    {.key = "schedule",
        .type = PH_OPTION_CHOICE,
        .offset = offsetof(struct train_settings, schedule),
        .default_text = "constant",
        .choices = "constant|cosine|step",
        .help = "Of the learning rate."},
    {.key = "title",
        .type = PH_OPTION_TEXT,
        .offset = offsetof(struct train_settings, title),
        .default_text = "",
        .help = "For people."},
    {.key = "steps",
        .type = PH_OPTION_INTEGERS,
        .offset = offsetof(struct train_settings, steps),
        .default_text = "10,20",
        .min = 1,
        .max = 100,
        .help = "Where step steps."},
};
static const struct ph__option_table train_table = {
    "train", "How it is trained.", train_options, 6, sizeof(struct train_settings), 0};

static const struct ph__option_table *const all_tables[] = {&top_table, &data_table, &train_table};

struct settings {
    struct top_settings top;
    struct data_settings data;
    struct train_settings train;
    struct ph__arena arena;
};

#define NUM_SECTIONS 3

static inline void bind_sections(struct settings *settings, struct ph__section sections[NUM_SECTIONS])
{
    sections[0] = (struct ph__section){&top_table, &settings->top};
    sections[1] = (struct ph__section){&data_table, &settings->data};
    sections[2] = (struct ph__section){&train_table, &settings->train};
}

static inline ph_status read_settings(
    struct settings *settings, const char *path, const char *const *sets, size_t num_sets)
{
    struct ph__section sections[NUM_SECTIONS];
    bind_sections(settings, sections);
    return ph__config_read(path, sets, num_sets, sections, NUM_SECTIONS, &settings->arena);
}

#endif
