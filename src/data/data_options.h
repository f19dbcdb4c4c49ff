/* The keys under "data" of a config: where the rows are, what each column means, how they are shuffled.
 *
 * A column of the file meets the first entry of `fields` whose name matches it: exact names first, then names
 * that end in '*' in their order ("C*" is every column that starts with C, "*" is all the rest). What an id
 * field does not say itself it inherits from data.encoding, data.rows, data.min_count and data.hash_seed. */
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
    PH_DATA_ARROW, /* batches handed over by the program itself: ph_dataset_append_arrow */
};
#define PH_DATA_FORMAT_WORDS "csv|tsv|criteo|avazu|libsvm|libffm|npy|arrow"

enum ph__field_kind {
    PH_FIELD_LABEL,
    PH_FIELD_ID,
    PH_FIELD_DENSE,
    PH_FIELD_WEIGHT,
    PH_FIELD_GROUP,
    PH_FIELD_IGNORE,
};
#define PH_FIELD_KIND_WORDS "label|id|dense|weight|group|ignore"

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
    const char *name; /* of the column; a trailing '*' matches every column that starts so */
    const char *from; /* the column of the file, where the name is the feature's own; "": the name */
    enum ph__field_kind kind;
    enum ph__field_encoding encoding;
    int64_t rows;       /* raw, hash: rows of the table; 0: data.rows */
    int64_t min_count;  /* vocabulary; 0: data.min_count */
    int64_t hash_seed;  /* -1: data.hash_seed */
    const char *shares; /* the id field whose rows this one has, and all above but its name; "": none */
    bool is_list;       /* several ids a cell, cut at data.list_separator */
    bool is_weighted;   /* of a list: each id is written id:weight */
    enum ph__time_component part;
    int64_t num_buckets;    /* bucket: quantiles of the training file */
    const char *boundaries; /* bucket: in their place, numbers separated by commas; "": none */
    int64_t max_length;     /* of a list, the rest is dropped; 0: no limit */
    bool is_group;          /* an id field that grouped AUC groups by, too */
    enum ph__dense_transform transform;
    double missing;     /* what a blank dense cell is, before the transform */
    bool has_indicator; /* of a dense field: another feature says whether the cell was blank */
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
    struct ph__record_list fields; /* of struct ph__field_settings */
    int64_t num_fields;            /* libffm: fields of a row; 0: counted in the training file */
};

extern const struct ph__option_table ph__data_options;

#define PH_PREPARED_SOURCE \
    "source.yaml" /* in a prepared data set's folder: the data section that it was made by */

/* After reading, in prepared_settings.c: where `prepared` names a folder, its splits stand for train, valid
 * and test where those are not given, or are the files that it was made of; another file for valid or test
 * stays, to be read by the folder's encoder. PH_ERROR_DATA when it is no such folder, or not finished;
 * PH_ERROR_CONFIG for another file for train, and when the settings have a schema that is not the one that
 * the data was prepared by. */
ph_status ph__data_settings_finish(struct ph_data_settings *settings, struct ph__arena *arena);

/* PH_ERROR_CONFIG naming the key when valid or test, which are read more than once, is a pipe. */
ph_status ph__data_settings_check_measured(const struct ph_data_settings *settings);

/* PH_ERROR_CONFIG when an encoder of these settings would differ from one of those kept at `path`, naming the
 * key and the rule against it. Where the data lies, its order and what is left out of it may differ. */
ph_status ph__data_settings_compare(
    const char *path, const struct ph_data_settings *settings, const char *rule);

/* The index of `word` among words separated by '|', -1 when it is none of them; and the way back, into
 * `word_out`. */
int ph__data_word_index(const char *words, const char *word);
#define PH_DATA_WORD_BYTES 24 /* the longest one and its NUL */
const char *ph__data_word(const char *words, int index, char word_out[PH_DATA_WORD_BYTES]);

/* The three parts of a job's data. */
enum ph__split { PH_SPLIT_TRAIN, PH_SPLIT_VALID, PH_SPLIT_TEST, PH_SPLIT_COUNT };

extern const char *const ph__split_names[PH_SPLIT_COUNT]; /* train, valid, test */

/* Gives the path that the settings have for a split; NULL: none. */
const char *ph__split_path(const struct ph_data_settings *settings, size_t split);

#endif
