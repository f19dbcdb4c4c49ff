#include "data/data_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"

#define FIELD(member) struct ph__field_settings, member
#define DATA(member) struct ph_data_settings, member

#define MAX_TABLE_ROWS 4294967295.0

/* ---- keys ---- */

static const struct ph__option field_options[] = {
    PH_TEXT_KEY("name", FIELD(name), NULL,
        "Column of the file. A name that ends in '*' stands for every column that starts so and has  no "
        "entry of its own; \"*\" is all the rest."),
    PH_TEXT_KEY("from", FIELD(from), "",
        "Column of the file that this feature is made of, where the name is the feature's own: several "
        "features of one column."),
    PH_CHOICE_KEY("kind", FIELD(kind), NULL, PH_FIELD_KIND_WORDS,
        "What the column is. Several labels are several tasks; at most one weight and one group."),
    PH_CHOICE_KEY("encoding", FIELD(encoding), "inherit", PH_ENCODING_WORDS "|inherit",
        "How an id becomes a row of its table: the number itself, its place in a vocabulary built from the "
        "training file, a hash, or the bucket that a number falls into. log_bucket: counts up to 2 as they "
        "are, larger ones by ln(x)^2, rounded down. inherit: data.encoding."),
    PH_INTEGER_KEY("rows", FIELD(rows), "0", 0, MAX_TABLE_ROWS,
        "Rows of the table of a raw or hashed id field. 0: data.rows."),
    PH_INTEGER_KEY("min_count", FIELD(min_count), "0", 0, 1e9,
        "An id seen less often in the training file shares row 0. 0: data.min_count."),
    PH_INTEGER_KEY("hash_seed", FIELD(hash_seed), "-1", -1, 9e15, "Seed of the hash. -1: data.hash_seed."),
    PH_TEXT_KEY("shares", FIELD(shares), "",
        "Of an id: the id field whose rows of the table it shares, and so encoding, vocabulary, rows and "
        "hash. An id then has one vector in both, as the items of a history and the item in question should, "
        "and a vocabulary counts the ids of both."),
    PH_BOOL_KEY("list", FIELD(is_list), "false",
        "The cell holds any number of ids, separated by data.list_separator (multi-hot)."),
    PH_BOOL_KEY("weighted", FIELD(is_weighted), "false",
        "Of a list: ids are written id:weight, and vectors are multiplied by the weight before pooling; a "
        "mean still divides by the number of ids."),
    PH_CHOICE_KEY("part", FIELD(part), "whole", PH_TIME_COMPONENT_WORDS,
        "Of an id that is a time, written YYMMDDHH or YYYY-MM-DD HH:MM:SS: what becomes the id in its "
        "place."),
    PH_INTEGER_KEY("buckets", FIELD(num_buckets), "0", 0, 4096,
        "Of encoding bucket: so many, bounded by quantiles of the training file."),
    PH_TEXT_KEY("boundaries", FIELD(boundaries), "",
        "Of encoding bucket, in place of buckets: \"1, 2.5, 10\", numbers that grow. A value on one falls "
        "above it."),
    PH_INTEGER_KEY(
        "max_length", FIELD(max_length), "0", 0, 1e6, "Ids kept of a list, from its start. 0: all."),
    PH_BOOL_KEY("group", FIELD(is_group), "false", "Grouped AUC groups by this id field."),
    PH_CHOICE_KEY("transform", FIELD(transform), "none", PH_TRANSFORM_WORDS,
        "Of a dense value x. log1p: log(1 + max(x, 0)), for counts. standardise: less the mean of the "
        "training file, divided by the standard deviation; a blank becomes 0. log1p_standardise: both, in "
        "this order."),
    PH_NUMBER_KEY("missing", FIELD(missing), "0", -1e30, 1e30,
        "What a blank dense cell stands for, before the transform."),
    PH_BOOL_KEY("missing_indicator", FIELD(has_indicator), "false",
        "Of a dense field: adds a dense feature NAME.missing, 1 where the cell is blank, else 0."),
};

static const struct ph__option_table field_table = {
    .section = "data.fields",
    .help = "One column of the data, or several of the same kind.",
    .options = field_options,
    .num_options = sizeof field_options / sizeof field_options[0],
    .settings_size = sizeof(struct ph__field_settings),
};

static const struct ph__option data_options[] = {
    PH_PATH_KEY("train", DATA(paths.train), "",
        "Training file, plain, .gz or .zst, or a pattern (day_*.tsv) of several, or - for standard input, "
        "read once. Vocabularies are built from it alone.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("valid", DATA(paths.valid), "", "Validation file: model selection and early stopping.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("test", DATA(paths.test), "", "Test file, evaluated once with the best model.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("prepared", DATA(prepared), "",
        "Folder that phloem prepare has made. Its splits are train, valid and test where those are not "
        "given, or are the files that it was made of; another valid or test file is read by its encoder, "
        "another train file is refused. Its encoder goes before all that says here how to encode.",
        .traits = PH_KEY_IS_PLACE | PH_KEY_NO_ENCODING),
    PH_CHOICE_KEY("format", DATA(format), "csv", PH_DATA_FORMAT_WORDS,
        "csv: commas, double quotes allowed. tsv: tabs, no quotes. criteo: label, I1 to I13, C1 to C26, "
        "tabs, no header. avazu: the contest's CSV. libsvm: label id:value ... libffm: label field:id:value "
        "... npy: arrays, as MLPerf lays out multi-hot Criteo. arrow: batches that a program hands over."),
    PH_TEXT_KEY(
        "separator", DATA(separator), "", "One character between cells, where it is not the format's."),
    PH_TEXT_KEY("list_separator", DATA(list_separator), "|", "One character between the ids of a list."),
    PH_BOOL_KEY("has_header", DATA(has_header), "true",
        "The first line names the columns. Without it data.fields lists every column in order. Criteo files "
        "have none, Avazu's must have one."),
    PH_CHOICE_KEY("encoding", DATA(encoding), "vocabulary", PH_ENCODING_WORDS,
        "Of id fields that do not say their own."),
    PH_INTEGER_KEY("rows", DATA(rows), "0", 0, MAX_TABLE_ROWS,
        "Table rows of raw and hashed id fields that do not say their own."),
    PH_INTEGER_KEY("min_count", DATA(min_count), "1", 1, 1e9,
        "Minimum count of vocabulary fields that do not say their own."),
    PH_INTEGER_KEY(
        "hash_seed", DATA(hash_seed), "0", 0, 9e15, "Seed of hashed fields that do not say their own."),
    PH_RECORDS_KEY("fields", DATA(fields), "", &field_table,
        "The schema: one entry a column. Format criteo has one of its own."),
    PH_INTEGER_KEY("num_fields", DATA(num_fields), "0", 0, 4096,
        "Of format libffm: fields of a row. 0: counted in the training file."),
    PH_INTEGER_KEY("max_bad_rows", DATA(reading.max_bad_rows), "0", 0, 9e15,
        "Bad rows of a file, or of all files of a pattern, that are left out and counted; one more ends the "
        "run. Predictions leave none out.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_ENCODING),
    PH_NUMBER_KEY("negative_rate", DATA(reading.negative_rate), "1", 1e-6, 1,
        "Of the training rows whose label is 0 this share is learnt from, others every epoch. Predictions "
        "are corrected for it: odds times the rate, in evaluation, prediction, sessions and ONNX alike. "
        "Needs a single label.",
        .traits = PH_KEY_OF_MODEL | PH_KEY_NO_ENCODING),
    PH_BOOL_KEY("shuffle", DATA(reading.is_shuffled), "true",
        "Training rows in a new order every epoch, by the seed.", .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("shuffle_bytes", DATA(reading.shuffle_bytes), "33554432", 65536, 1e12,
        "Memory of encoded rows to shuffle within; a file that fits is shuffled as a whole.",
        .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("shuffle_lanes", DATA(reading.shuffle_lanes), "1", 1, 65536,
        "Of prepared data: its blocks are dealt anew every epoch to so many lanes, each shuffled within its "
        "share of data.shuffle_bytes, and a batch takes as much from each. As many lanes as ranks, or a "
        "multiple: each rank decodes only its own. The order of the rows depends on the lanes, not on the "
        "ranks.",
        .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("prefetch", DATA(reading.num_prefetched), "2", 0, 64,
        "Batches made ahead by a thread of their own. 0: none, no thread.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK | PH_KEY_NO_ENCODING),
};

const struct ph__option_table ph__data_options = {
    .section = "data",
    .help = "Where the rows are and what their columns mean.",
    .options = data_options,
    .num_options = sizeof data_options / sizeof data_options[0],
    .settings_size = sizeof(struct ph_data_settings),
};

/* ---- checks ---- */

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

/* ---- words ---- */

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

/* ---- splits ---- */

const char *const ph__split_names[PH_SPLIT_COUNT] = {"train", "valid", "test"};

const char *ph__split_path(const struct ph_data_settings *settings, size_t split)
{
    const char *const paths[PH_SPLIT_COUNT] = {
        settings->paths.train, settings->paths.valid, settings->paths.test};
    return paths[split];
}
