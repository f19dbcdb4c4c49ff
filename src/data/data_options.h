/* The keys under "data" of a config: where the rows are, what each column means, how rows are shuffled.
 *
 * A column of the file takes the first entry of `fields` whose name matches: exact names first, then names
 * that end in '*', in their order ("C*" is every column that starts with C, "*" is all the rest). An id field
 * inherits data.encoding, data.rows, data.min_count and data.hash_seed where it sets none of its own. */
#ifndef PH_DATA_DATA_OPTIONS_H
#define PH_DATA_DATA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option/option.h"
#include "phloem/data.h"

enum ph__data_format {
    PH_DATA_CSV,
    PH_DATA_TSV,
    PH_DATA_CRITEO,
    PH_DATA_AVAZU,
    PH_DATA_LIBSVM,
    PH_DATA_LIBFFM,
    PH_DATA_NPY,
    PH_DATA_ARROW, /* batches handed over by the program: ph_dataset_append_arrow */
    PH_DATA_GRAPH, /* nodes as CSV, with edges beside them (source_graph.c) */
};
#define PH_DATA_FORMAT_WORDS "csv|tsv|criteo|avazu|libsvm|libffm|npy|arrow|graph"

enum ph__field_kind {
    PH_FIELD_LABEL,
    PH_FIELD_ID,
    PH_FIELD_DENSE,
    PH_FIELD_TEACHER,
    PH_FIELD_WEIGHT,
    PH_FIELD_GROUP,
    PH_FIELD_SPLIT,
    PH_FIELD_IGNORE,
};
#define PH_FIELD_KIND_WORDS "label|id|dense|teacher|weight|group|split|ignore"

enum ph__field_encoding {
    PH_ENCODING_RAW,
    PH_ENCODING_VOCABULARY,
    PH_ENCODING_HASH,
    PH_ENCODING_BUCKET,
    PH_ENCODING_LOG_BUCKET,
    PH_ENCODING_INHERIT,
};
#define PH_ENCODING_WORDS "raw|vocabulary|hash|bucket|log_bucket"

enum ph__dense_transform {
    PH_TRANSFORM_NONE,
    PH_TRANSFORM_LOG1P,
    PH_TRANSFORM_STANDARDISE,
    PH_TRANSFORM_LOG1P_STANDARDISE,
};
#define PH_TRANSFORM_WORDS "none|log1p|standardise|log1p_standardise"

enum ph__time_component { PH_TIME_WHOLE, PH_TIME_HOUR, PH_TIME_WEEKDAY, PH_TIME_WEEKEND };
#define PH_TIME_COMPONENT_WORDS "whole|hour|weekday|weekend"

struct ph__field_settings {
    const char *name; /* column's name; a trailing '*' matches every column that starts so */
    const char *from; /* column of the file, where `name` names only the feature; "": the same as name */
    enum ph__field_kind kind;
    enum ph__field_encoding encoding;
    int64_t rows;       /* raw, hash: rows of the table; 0: data.rows */
    int64_t min_count;  /* vocabulary; 0: data.min_count */
    int64_t hash_seed;  /* -1: data.hash_seed */
    const char *shares; /* id field whose rows and settings above (except name) this one has; "": none */
    bool is_list;       /* several ids a cell, cut at data.list_separator */
    bool is_weighted;   /* list: each id is written id:weight */
    enum ph__time_component part;
    int64_t num_buckets;    /* bucket: number of quantiles of the training file */
    const char *boundaries; /* bucket: numbers separated by commas, in place of quantiles; "": none */
    int64_t max_length;     /* list: ids kept from its start; 0: no limit */
    bool is_group;          /* id: grouped AUC groups by this field, too */
    enum ph__dense_transform transform;
    double missing;               /* value of a blank dense cell, before the transform */
    bool has_indicator;           /* dense: adds a feature that is 1 where the cell is blank */
    struct ph__text_list classes; /* label: words of its cells, of which each is a task; none: a number */
};

/* Names of the columns that format graph makes. */
#define PH_GRAPH_NEIGHBOURS "neighbours"
#define PH_GRAPH_WORDS "words"
#define PH_GRAPH_SPLIT "split"

/* Files beside the nodes, and what is made of them. */
struct ph__graph_settings {
    const char *edges, *words;        /* relative to the folder of the nodes' file; words "": none */
    bool has_self_loops, is_shuffled; /* is_shuffled: neighbours come in an order drawn by split_seed */
    double train_share,
        valid_share; /* of the nodes, drawn at random; train_share 0: the file has the splits */
    int64_t split_seed;
};

#define PH_DEFAULT_SHUFFLE_BYTES ((size_t)32 << 20)

struct ph_data_settings {
    struct ph_data_paths paths;
    struct ph_reading reading;
    const char *prepared; /* a folder of ph_prepare; NULL: none */
    enum ph__data_format format;
    const char *separator;      /* one character; "": the format's */
    const char *list_separator; /* one character */
    bool has_header;
    enum ph__field_encoding encoding; /* defaults for id fields */
    int64_t rows, min_count, hash_seed;
    struct ph__record_list fields; /* struct ph__field_settings */
    int64_t num_fields;            /* libffm: fields of a row; 0: counted in the training file */
    struct ph__graph_settings graph;
};

extern const struct ph__option_table ph__data_options;

#define PH_PREPARED_SOURCE "source.yaml" /* in a prepared folder: the data section that it was made by */

/* Completes settings that name a folder in `prepared` (prepared_settings.c). The folder's splits stand for
 * train, valid and test where those are not given, or where they are the files that the folder was made of.
 * Another file for valid or test is kept, and read by the folder's encoder. PH_ERROR_DATA when the folder is
 * not of ph_prepare, or not finished; PH_ERROR_CONFIG for another file for train, and when the settings have
 * a schema other than the prepared data's. */
ph_status ph__data_settings_finish(struct ph_data_settings *settings, struct ph__arena *arena);

/* PH_ERROR_CONFIG naming the key when valid or test is a pipe: both are read more than once. */
ph_status ph__data_settings_check_measured(const struct ph_data_settings *settings);

/* PH_ERROR_CONFIG, naming the key and the rule, when an encoder of these settings would differ from an
 * encoder of the settings kept at `path`. The data's path, its order and the rows left out may differ. */
ph_status ph__data_settings_compare(
    const char *path, const struct ph_data_settings *settings, const char *rule);

/* Returns the index of `word` among words separated by '|', -1 when it is not among them. ph__data_word
 * writes the word of an index into `word_out` and returns it. */
int ph__data_word_index(const char *words, const char *word);
#define PH_DATA_WORD_BYTES 24 /* longest word and its NUL */
const char *ph__data_word(const char *words, int index, char word_out[PH_DATA_WORD_BYTES]);

/* The three parts of a job's data. */
enum ph__split { PH_SPLIT_TRAIN, PH_SPLIT_VALID, PH_SPLIT_TEST, PH_SPLIT_COUNT };

extern const char *const ph__split_names[PH_SPLIT_COUNT]; /* train, valid, test */

/* Returns the settings' path for a split; NULL: none. */
const char *ph__split_path(const struct ph_data_settings *settings, size_t split);

#endif
