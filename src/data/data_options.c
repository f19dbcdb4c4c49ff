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
        "Name of the column in the file. A name that ends in '*' stands for every column that starts so and "
        "has no entry of its own; \"*\" stands for all other columns."),
    PH_TEXT_KEY("from", FIELD(from), "",
        "Column of the file that the feature is made of, where it differs from name: one column can give "
        "several features. Empty: the column called name."),
    PH_CHOICE_KEY("kind", FIELD(kind), NULL, PH_FIELD_KIND_WORDS,
        "Content of the column. label: number from 0 to 1; several labels are several tasks. id: ids of a "
        "sparse feature. dense: number. teacher: probability of the label by another model, above 0 and "
        "below 1, "
        "for train.distill; one for each label, in their order, or none. weight: weight of the sample; at "
        "most one column. group: group of "
        "the grouped AUC; at most one column. split: name of the split that the row is of: a path that ends "
        "in #NAME reads labels of the rows of that split alone, and all other cells of all rows. ignore: not "
        "read."),
    PH_CHOICE_KEY("encoding", FIELD(encoding), "inherit", PH_ENCODING_WORDS "|inherit",
        "Mapping from an id to a row of its table. raw: the number itself. vocabulary: its place in a "
        "vocabulary learnt from the training file. hash: a hash of its text. bucket: the bucket that the "
        "number falls into; see buckets and boundaries. log_bucket: counts up to 2 as they are, larger ones "
        "as ln(x)^2, rounded down. inherit: data.encoding."),
    PH_INTEGER_KEY("rows", FIELD(rows), "0", 0, MAX_TABLE_ROWS,
        "Rows of the table of a raw or hashed id field. 0: data.rows."),
    PH_INTEGER_KEY("min_count", FIELD(min_count), "0", 0, 1e9,
        "Least number of times that an id of a vocabulary occurs in the training file; rarer ids share row "
        "0. 0: data.min_count."),
    PH_INTEGER_KEY(
        "hash_seed", FIELD(hash_seed), "-1", -1, 9e15, "Seed of the hash of ids. -1: data.hash_seed."),
    PH_TEXT_KEY("shares", FIELD(shares), "",
        "Name of the id field whose table rows this id field uses, with its encoding, vocabulary and hash. "
        "An id then has one vector in both, as items of a history and the target item should; a vocabulary "
        "counts the ids of both. Empty: rows of its own."),
    PH_BOOL_KEY("list", FIELD(is_list), "false",
        "true: a cell holds any number of ids, separated by data.list_separator (multi-hot)."),
    PH_BOOL_KEY("weighted", FIELD(is_weighted), "false",
        "true: ids of the list are written id:weight, and their vectors are multiplied by the weights before "
        "pooling; a mean still divides by the number of ids."),
    PH_CHOICE_KEY("part", FIELD(part), "whole", PH_TIME_COMPONENT_WORDS,
        "Part of a time that becomes the id; times are written YYMMDDHH or YYYY-MM-DD HH:MM:SS. whole: the "
        "cell as it is. hour: 0 to 23. weekday: 0 (Monday) to 6. weekend: 1 on Saturday and Sunday, else 0."),
    PH_INTEGER_KEY("buckets", FIELD(num_buckets), "0", 0, 4096,
        "Number of buckets of encoding bucket, bounded by quantiles of the training file. 0: boundaries "
        "bound them."),
    PH_TEXT_KEY("boundaries", FIELD(boundaries), "",
        "Boundaries between the buckets of encoding bucket, instead of buckets: ascending numbers such as "
        "\"1, 2.5, 10\". A value equal to a boundary falls into the bucket above it."),
    PH_INTEGER_KEY("max_length", FIELD(max_length), "0", 0, 1e6,
        "Greatest number of ids of a list; further ids are dropped from its end. 0: no limit."),
    PH_BOOL_KEY(
        "group", FIELD(is_group), "false", "true: this id field also is the group of the grouped AUC."),
    PH_CHOICE_KEY("transform", FIELD(transform), "none", PH_TRANSFORM_WORDS,
        "Transform of a dense value x. none: x. log1p: log(1 + max(x, 0)), for counts. standardise: x less "
        "the mean of the training file, divided by its standard deviation; a blank cell becomes 0. "
        "log1p_standardise: log1p, then standardise."),
    PH_NUMBER_KEY("missing", FIELD(missing), "0", -1e30, 1e30,
        "Value of a blank dense cell, before the transform; not with standardise."),
    PH_BOOL_KEY("missing_indicator", FIELD(has_indicator), "false",
        "true: adds a dense feature NAME.missing, 1 where the cell of this dense field is blank, else 0."),
    PH_TEXTS_KEY("classes", FIELD(classes), "",
        "Words that cells of a label hold, two or more: the model learns to choose one of them by a softmax, "
        "and gives each its probability. A blank, or -1 where that is not a class, is no label. Empty: the "
        "label is a number."),
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
        "Training file, plain, .gz or .zst; a pattern of several (day_*.tsv); or - for standard input, read "
        "once. Vocabularies are built from these rows alone.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("valid", DATA(paths.valid), "", "Validation file, for model selection and early stopping.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("test", DATA(paths.test), "", "Test file, evaluated once, with the best model.",
        .traits = PH_KEY_IS_PLACE),
    PH_PATH_KEY("prepared", DATA(prepared), "",
        "Folder made by phloem prepare. Its splits are train, valid and test where these are not given or "
        "name the files that it was made from. Another valid or test file is read with its encoder; another "
        "train file is refused. Its encoder replaces all keys that say how to encode.",
        .traits = PH_KEY_IS_PLACE | PH_KEY_NO_ENCODING),
    PH_CHOICE_KEY("format", DATA(format), "csv", PH_DATA_FORMAT_WORDS,
        "Format of the files. csv: commas, double quotes allowed. tsv: tabs, no quotes. criteo: label, I1 to "
        "I13, C1 to C26, tabs, no header. avazu: CSV of the Avazu contest. libsvm: label id:value ... "
        "libffm: label field:id:value ... npy: NumPy arrays, as MLPerf stores multi-hot Criteo. arrow: "
        "record batches that a program passes. graph: a CSV of nodes, numbered from 0 in their first column, "
        "with the keys of data.graph; all nodes are one batch, whatever train.batch_size says."),
    PH_TEXT_KEY("separator", DATA(separator), "",
        "Character that separates cells. Empty: comma or tab, by data.format."),
    PH_TEXT_KEY("list_separator", DATA(list_separator), "|", "Character that separates the ids of a list."),
    PH_BOOL_KEY("has_header", DATA(has_header), "true",
        "true: the first line of a csv or tsv file names the columns. false: data.fields lists all columns "
        "in order. criteo never has a header, avazu always."),
    PH_CHOICE_KEY("encoding", DATA(encoding), "vocabulary", PH_ENCODING_WORDS,
        "Encoding of id fields without one of their own; the words are explained at data.fields[].encoding."),
    PH_INTEGER_KEY("rows", DATA(rows), "0", 0, MAX_TABLE_ROWS,
        "Table rows of raw and hashed id fields without rows of their own."),
    PH_INTEGER_KEY("min_count", DATA(min_count), "1", 1, 1e9,
        "Least count of an id in vocabularies without a min_count of their own."),
    PH_INTEGER_KEY(
        "hash_seed", DATA(hash_seed), "0", 0, 9e15, "Seed of hashed id fields without one of their own."),
    PH_RECORDS_KEY("fields", DATA(fields), "", &field_table,
        "Schema: one entry for each column. criteo, avazu, libsvm and libffm have a built-in one, in which "
        "entries replace columns."),
    PH_INTEGER_KEY("num_fields", DATA(num_fields), "0", 0, 4096,
        "Number of fields in a row of format libffm. 0: counted in the training file."),
    PH_TEXT_KEY("graph.edges", DATA(graph.edges), "",
        "Edges of format graph: a file in the folder of the nodes, two node numbers a line with a comma "
        "between them, behind a header or none. They are undirected; loops and duplicates are dropped. A "
        "node's "
        "neighbours are its column neighbours, a list of ids."),
    PH_TEXT_KEY("graph.words", DATA(graph.words), "",
        "File in the same folder, a JSON object of lists of numbers by node number: the column words. Empty: "
        "none."),
    PH_BOOL_KEY(
        "graph.self_loops", DATA(graph.has_self_loops), "false", "true: each node is among its neighbours."),
    PH_BOOL_KEY("graph.shuffled", DATA(graph.is_shuffled), "false",
        "true: neighbours come in an order that is drawn for each node, by graph.split_seed; false: "
        "ascending. "
        "The strategy bucket then samples as well as stride does, and reads the lists of ids in a run."),
    PH_NUMBER_KEY("graph.train_share", DATA(graph.train_share), "0", 0, 1,
        "Share of the nodes, drawn at random, that the column split says are of split train. 0: the column "
        "is one of the file."),
    PH_NUMBER_KEY("graph.valid_share", DATA(graph.valid_share), "0", 0, 1,
        "Share of the nodes of split valid; the rest is test."),
    PH_INTEGER_KEY(
        "graph.split_seed", DATA(graph.split_seed), "0", 0, 9e15, "Seed of the drawn splits and orders."),
    PH_INTEGER_KEY("max_bad_rows", DATA(reading.max_bad_rows), "0", 0, 9e15,
        "Number of bad rows of a file, or of all files of a pattern, that are left out and counted; one more "
        "ends the run. Predictions leave none out. A resumed training may only raise it.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_ENCODING),
    PH_NUMBER_KEY("negative_rate", DATA(reading.negative_rate), "1", 1e-6, 1,
        "Share of the training rows with label 0 that an epoch learns from, drawn anew each epoch. All "
        "scores are corrected for it (odds times the rate), in evaluation, prediction, sessions and ONNX. "
        "Requires a single label.",
        .traits = PH_KEY_OF_MODEL | PH_KEY_NO_ENCODING),
    PH_BOOL_KEY("shuffle", DATA(reading.is_shuffled), "true",
        "true: training rows come in a new order each epoch, by seed.", .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("shuffle_bytes", DATA(reading.shuffle_bytes), "33554432", 65536, 1e12,
        "Bytes of encoded rows within which rows are shuffled; a file that fits is shuffled as a whole.",
        .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("shuffle_lanes", DATA(reading.shuffle_lanes), "1", 1, 65536,
        "Number of lanes for shuffling prepared data. Blocks are dealt to the lanes anew each epoch; each "
        "lane is shuffled within its share of data.shuffle_bytes, and a batch takes equally many rows from "
        "each. With a multiple of the number of ranks each rank decodes only its own lanes. The order "
        "depends on the lanes, not on the ranks.",
        .traits = PH_KEY_NO_ENCODING),
    PH_INTEGER_KEY("prefetch", DATA(reading.num_prefetched), "2", 0, 64,
        "Number of batches that a separate thread makes ahead. 0: no such thread.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK | PH_KEY_NO_ENCODING),
};

const struct ph__option_table ph__data_options = {
    .section = "data",
    .help = "Files of rows, their format and their columns.",
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
