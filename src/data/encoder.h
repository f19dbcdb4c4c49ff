/* The encoder's inside: the columns of the training file, what each becomes, and where it lies in an encoded
 * row.
 *
 * An encoded row is a run of 32-bit words (floats by their bits): first a fixed part
 *     labels (T) | dense (D) | weight (1, if any) | group (2, if any) | sparse (F)
 * whose sparse word is the id of a single-valued feature or the number of ids of a list; then the ids of the
 * lists, list by list in the order of the columns of the file that the row came from. Immutable after
 * creation; any number of threads may read it. */
#ifndef PH_DATA_ENCODER_H
#define PH_DATA_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/data_options.h"
#include "data/vocabulary.h"
#include "phloem/data.h"

#define PH_LOG1P_TABLE_SIZE 1024

struct ph__column {
    char *name;
    enum ph_field_kind kind;
    size_t slot; /* among the labels, the dense or the sparse features */
    /* id */
    enum ph_field_encoding encoding;
    uint64_t num_rows; /* of the table, row 0 included */
    uint64_t min_count;
    uint64_t hash_seed;
    bool is_list;
    size_t max_length; /* SIZE_MAX: no limit */
    bool is_group;
    struct ph__vocabulary vocabulary;
    /* dense */
    enum ph_dense_transform transform;
    float missing; /* before the transform */
};

struct ph_encoder {
    enum ph_data_format format;
    char separator, list_separator;
    bool has_header;
    struct ph__column *columns;
    size_t num_columns, columns_capacity;
    size_t num_tasks, num_dense, num_sparse;
    bool has_weight, has_group;
    uint64_t num_training_rows; /* 0: not counted */
    struct ph_sparse_feature *sparse;
    const char **dense_names;
    /* where the parts of an encoded row start */
    size_t dense_word, weight_word, group_word, sparse_word, num_fixed_words;
    float log1p[PH_LOG1P_TABLE_SIZE]; /* of 0, 1, 2 …: most counts are small */
};

/* Appends a column; `name` is copied. The column is zero but for its name; borrowed until the next one. */
ph_status ph__encoder_add_column(
    struct ph_encoder *encoder, const char *name, struct ph__column **column_out);

/* After all columns and vocabularies: gives the slots, lays out the row, fills the tables. `where` names the
 * source in errors, `status` is what a wrong schema gives. */
ph_status ph__encoder_seal(struct ph_encoder *encoder, const char *where, ph_status status);

/* NULL when there is none of that name. */
const struct ph__column *ph__encoder_find(const struct ph_encoder *encoder, const char *name);

/* The columns from the settings and the header (names, may be empty when there is none). */
ph_status ph__schema_build(const struct ph_data_settings *settings, char *const *names, size_t num_names,
    struct ph_encoder *encoder);

bool ph__is_utf8(const char *text, size_t length);

#endif
