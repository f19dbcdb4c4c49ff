#include "data/data_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"

#define FIELD(member) offsetof(struct ph__field_settings, member)
#define DATA(member) offsetof(struct ph_data_settings, member)

#define MAX_TABLE_ROWS 4294967295.0

static const struct ph__option field_options[] = {
    {.key = "name",
        .type = PH_OPTION_TEXT,
        .offset = FIELD(name),
        .default_text = NULL,
        .help = "Column of the file. A name that ends in '*' stands for every column that starts so and has  "
                "no entry of its own; \"*\" is all the rest."},
    {.key = "from",
        .type = PH_OPTION_TEXT,
        .offset = FIELD(from),
        .default_text = "",
        .help = "Column of the file that this feature is made of, where the name is the feature's own: "
                "several features "
                "of one column."},
    {.key = "kind",
        .type = PH_OPTION_CHOICE,
        .offset = FIELD(kind),
        .default_text = NULL,
        .choices = PH_FIELD_KIND_WORDS,
        .help = "What the column is. Several labels are several tasks; at most one weight and one group."},
    {.key = "encoding",
        .type = PH_OPTION_CHOICE,
        .offset = FIELD(encoding),
        .default_text = "inherit",
        .choices = PH_ENCODING_WORDS "|inherit",
        .help = "How an id becomes a row of its table: the number itself, its place in a vocabulary built "
                "from the "
                "training file, a hash, or the bucket that a number falls into. log_bucket: counts up to 2 "
                "as they "
                "are, larger ones by ln(x)^2, rounded down. inherit: data.encoding."},
    {.key = "rows",
        .type = PH_OPTION_INTEGER,
        .offset = FIELD(rows),
        .default_text = "0",
        .min = 0,
        .max = MAX_TABLE_ROWS,
        .help = "Rows of the table of a raw or hashed id field. 0: data.rows."},
    {.key = "min_count",
        .type = PH_OPTION_INTEGER,
        .offset = FIELD(min_count),
        .default_text = "0",
        .min = 0,
        .max = 1e9,
        .help = "An id seen less often in the training file shares row 0. 0: data.min_count."},
    {.key = "hash_seed",
        .type = PH_OPTION_INTEGER,
        .offset = FIELD(hash_seed),
        .default_text = "-1",
        .min = -1,
        .max = 9e15,
        .help = "Seed of the hash. -1: data.hash_seed."},
    {.key = "shares",
        .type = PH_OPTION_TEXT,
        .offset = FIELD(shares),
        .default_text = "",
        .help = "Of an id: the id field whose rows of the table it shares, and so encoding, vocabulary, rows "
                "and hash. An id then has one vector in both, as the items of a history and the item in "
                "question should, and a vocabulary counts the ids of both."},
    {.key = "list",
        .type = PH_OPTION_BOOL,
        .offset = FIELD(is_list),
        .default_text = "false",
        .help = "The cell holds any number of ids, separated by data.list_separator (multi-hot)."},
    {.key = "weighted",
        .type = PH_OPTION_BOOL,
        .offset = FIELD(is_weighted),
        .default_text = "false",
        .help = "Of a list: ids are written id:weight, and vectors are multiplied by the weight before "
                "pooling; a mean still divides by the number of ids."},
    {.key = "part",
        .type = PH_OPTION_CHOICE,
        .offset = FIELD(part),
        .default_text = "whole",
        .choices = PH_TIME_COMPONENT_WORDS,
        .help = "Of an id that is a time, written YYMMDDHH or YYYY-MM-DD HH:MM:SS: what becomes the id in "
                "its place."},
    {.key = "buckets",
        .type = PH_OPTION_INTEGER,
        .offset = FIELD(num_buckets),
        .default_text = "0",
        .min = 0,
        .max = 4096,
        .help = "Of encoding bucket: so many, bounded by quantiles of the training file."},
    {.key = "boundaries",
        .type = PH_OPTION_TEXT,
        .offset = FIELD(boundaries),
        .default_text = "",
        .help = "Of encoding bucket, in place of buckets: \"1, 2.5, 10\", numbers that grow. A value on one "
                "falls above it."},
    {.key = "max_length",
        .type = PH_OPTION_INTEGER,
        .offset = FIELD(max_length),
        .default_text = "0",
        .min = 0,
        .max = 1e6,
        .help = "Ids kept of a list, from its start. 0: all."},
    {.key = "group",
        .type = PH_OPTION_BOOL,
        .offset = FIELD(is_group),
        .default_text = "false",
        .help = "Grouped AUC groups by this id field."},
    {.key = "transform",
        .type = PH_OPTION_CHOICE,
        .offset = FIELD(transform),
        .default_text = "none",
        .choices = PH_TRANSFORM_WORDS,
        .help = "Of a dense value x. log1p: log(1 + max(x, 0)), for counts. standardise: less the mean of "
                "the training "
                "file, divided by the standard deviation; a blank becomes 0. log1p_standardise: both, in "
                "this order."},
    {.key = "missing",
        .type = PH_OPTION_NUMBER,
        .offset = FIELD(missing),
        .default_text = "0",
        .min = -1e30,
        .max = 1e30,
        .help = "What a blank dense cell stands for, before the transform."},
    {.key = "missing_indicator",
        .type = PH_OPTION_BOOL,
        .offset = FIELD(has_indicator),
        .default_text = "false",
        .help = "Of a dense field: adds a dense feature NAME.missing, 1 where the cell is blank, else 0."},
};

static const struct ph__option_table field_table = {
    .section = "data.fields",
    .help = "One column of the data, or several of the same kind.",
    .options = field_options,
    .num_options = sizeof field_options / sizeof field_options[0],
    .settings_size = sizeof(struct ph__field_settings),
};

static const struct ph__option data_options[] = {
    {.key = "train",
        .type = PH_OPTION_PATH,
        .offset = DATA(paths.train),
        .default_text = "",
        .help = "Training file, plain, .gz or .zst, or a pattern (day_*.tsv) of several, or - for "
                "standard input, read once. Vocabularies are "
                "built from it alone.",
        .traits = PH_KEY_IS_PLACE},
    {.key = "valid",
        .type = PH_OPTION_PATH,
        .offset = DATA(paths.valid),
        .default_text = "",
        .help = "Validation file: model selection and early stopping.",
        .traits = PH_KEY_IS_PLACE},
    {.key = "test",
        .type = PH_OPTION_PATH,
        .offset = DATA(paths.test),
        .default_text = "",
        .help = "Test file, evaluated once with the best model.",
        .traits = PH_KEY_IS_PLACE},
    {.key = "prepared",
        .type = PH_OPTION_PATH,
        .offset = DATA(prepared),
        .default_text = "",
        .help =
            "Folder that phloem prepare has made. Its splits are train, valid and test where those are not "
            "given, or are the files that it was made of; another valid or test file is read by its "
            "encoder, another train file is refused. Its encoder goes before all that says here how to "
            "encode.",
        .traits = PH_KEY_IS_PLACE | PH_KEY_NO_ENCODING},
    {.key = "format",
        .type = PH_OPTION_CHOICE,
        .offset = DATA(format),
        .default_text = "csv",
        .choices = PH_DATA_FORMAT_WORDS,
        .help =
            "csv: commas, double quotes allowed. tsv: tabs, no quotes. criteo: label, I1 to I13, C1 to C26, "
            "tabs, no header. avazu: the contest's CSV. libsvm: label id:value ... libffm: label "
            "field:id:value ... "
            "npy: arrays, as MLPerf lays out multi-hot Criteo. arrow: batches that a program hands over."},
    {.key = "separator",
        .type = PH_OPTION_TEXT,
        .offset = DATA(separator),
        .default_text = "",
        .help = "One character between cells, where it is not the format's."},
    {.key = "list_separator",
        .type = PH_OPTION_TEXT,
        .offset = DATA(list_separator),
        .default_text = "|",
        .help = "One character between the ids of a list."},
    {.key = "has_header",
        .type = PH_OPTION_BOOL,
        .offset = DATA(has_header),
        .default_text = "true",
        .help = "The first line names the columns. Without it data.fields lists every column in order. "
                "Criteo files have none, Avazu's must have one."},
    {.key = "encoding",
        .type = PH_OPTION_CHOICE,
        .offset = DATA(encoding),
        .default_text = "vocabulary",
        .choices = PH_ENCODING_WORDS,
        .help = "Of id fields that do not say their own."},
    {.key = "rows",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(rows),
        .default_text = "0",
        .min = 0,
        .max = MAX_TABLE_ROWS,
        .help = "Table rows of raw and hashed id fields that do not say their own."},
    {.key = "min_count",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(min_count),
        .default_text = "1",
        .min = 1,
        .max = 1e9,
        .help = "Minimum count of vocabulary fields that do not say their own."},
    {.key = "hash_seed",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(hash_seed),
        .default_text = "0",
        .min = 0,
        .max = 9e15,
        .help = "Seed of hashed fields that do not say their own."},
    {.key = "fields",
        .type = PH_OPTION_RECORDS,
        .offset = DATA(fields),
        .default_text = "",
        .records = &field_table,
        .help = "The schema: one entry a column. Format criteo has one of its own."},
    {.key = "num_fields",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(num_fields),
        .default_text = "0",
        .min = 0,
        .max = 4096,
        .help = "Of format libffm: fields of a row. 0: counted in the training file."},
    {.key = "max_bad_rows",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(reading.max_bad_rows),
        .default_text = "0",
        .min = 0,
        .max = 9e15,
        .help = "Bad rows of a file, or of all files of a pattern, that are left out and counted; one more "
                "ends the run. Predictions leave "
                "none out.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_ENCODING},
    {.key = "negative_rate",
        .type = PH_OPTION_NUMBER,
        .offset = DATA(reading.negative_rate),
        .default_text = "1",
        .min = 1e-6,
        .max = 1,
        .help =
            "Of the training rows whose label is 0 this share is learnt from, others every epoch. "
            "Predictions "
            "are corrected for it: odds times the rate, in evaluation, prediction, sessions and ONNX alike. "
            "Needs a single label.",
        .traits = PH_KEY_OF_MODEL | PH_KEY_NO_ENCODING},
    {.key = "shuffle",
        .type = PH_OPTION_BOOL,
        .offset = DATA(reading.is_shuffled),
        .default_text = "true",
        .help = "Training rows in a new order every epoch, by the seed.",
        .traits = PH_KEY_NO_ENCODING},
    {.key = "shuffle_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(reading.shuffle_bytes),
        .default_text = "33554432",
        .min = 65536,
        .max = 1e12,
        .help = "Memory of encoded rows to shuffle within; a file that fits is shuffled as a whole.",
        .traits = PH_KEY_NO_ENCODING},
    {.key = "shuffle_lanes",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(reading.shuffle_lanes),
        .default_text = "1",
        .min = 1,
        .max = 65536,
        .help = "Of prepared data: its blocks are dealt anew every epoch to so many lanes, each shuffled "
                "within its share of "
                "data.shuffle_bytes, and a batch takes as much from each. As many lanes as ranks, or a "
                "multiple: each rank decodes only its own. The order of the rows depends on the lanes, not "
                "on the ranks.",
        .traits = PH_KEY_NO_ENCODING},
    {.key = "prefetch",
        .type = PH_OPTION_INTEGER,
        .offset = DATA(reading.num_prefetched),
        .default_text = "2",
        .min = 0,
        .max = 64,
        .help = "Batches made ahead by a thread of their own. 0: none, no thread.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK | PH_KEY_NO_ENCODING},
};

const struct ph__option_table ph__data_options = {
    .section = "data",
    .help = "Where the rows are and what their columns mean.",
    .options = data_options,
    .num_options = sizeof data_options / sizeof data_options[0],
    .settings_size = sizeof(struct ph_data_settings),
};

static ph_status check_measured(const char *key, const char *path)
{
    if (path == NULL || !ph__file_is_pipe(path))
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "%s: only data.train may be standard input or a pipe", key);
}

ph_status ph__data_settings_check_measured(const struct ph_data_settings *settings)
{
    PH_TRY(check_measured("data.valid", settings->paths.valid));
    return check_measured("data.test", settings->paths.test);
}

ph_status ph__data_settings_compare(
    const char *path, const struct ph_data_settings *settings, const char *rule)
{
    struct ph__arena arena = {0};
    struct ph_data_settings before, after = *settings;
    const struct ph__section kept = {&ph__data_options, &before}, now = {&ph__data_options, &after};
    const struct ph__key_filter filter = {.without = PH_KEY_MAY_CHANGE | PH_KEY_NO_ENCODING};
    ph_status status = ph__config_read(path, NULL, 0, &kept, 1, &arena);
    if (status == PH_OK)
        status = ph__config_compare(&kept, &now, 1, filter, rule);
    ph__arena_fini(&arena);
    return status;
}

int ph__data_word_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int index = 0;; index++) {
        size_t size = strcspn(words, "|");
        if (size == length && memcmp(words, word, size) == 0)
            return index;
        if (words[size] == '\0')
            return -1;
        words += size + 1;
    }
}

const char *ph__data_word(const char *words, int index, char word_out[PH_DATA_WORD_BYTES])
{
    for (; index > 0; index--)
        words += strcspn(words, "|") + 1;
    snprintf(word_out, PH_DATA_WORD_BYTES, "%.*s", (int)strcspn(words, "|"), words);
    return word_out;
}

/* ---- splits ---------------------------------------------------------------------------------------------- */

const char *const ph__split_names[PH_SPLIT_COUNT] = {"train", "valid", "test"};

const char *ph__split_path(const struct ph_data_settings *settings, size_t split)
{
    const char *const paths[PH_SPLIT_COUNT] = {
        settings->paths.train, settings->paths.valid, settings->paths.test};
    return paths[split];
}
