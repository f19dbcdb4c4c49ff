/* The encoder's inside: the columns of the training file, what each becomes, and where it lies in an encoded
 * row.
 *
 * An encoded row is a run of 32-bit words (floats by their bits): first a fixed part
 *     labels (T) | dense (D) | weight (1, if any) | group (2, if any) | sparse (F)
 * whose sparse word is the id of a single-valued feature or the number of ids of a list; then the lists in
 * the order of their sparse slots, each its ids and, if it is weighted, as many weights. Immutable after
 * creation; any number of threads may read it. */
#ifndef PH_DATA_ENCODER_H
#define PH_DATA_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "data/encode/vocabulary.h"
#include "phloem/data.h"

#define PH_LOG1P_TABLE_SIZE 1024

/* What the training data says about a dense column, blanks apart; of the values after log1p where there is
 * one. */
struct ph__statistics {
    uint64_t num_values, num_blanks;
    double min, max, mean, deviation;
};

struct ph__column {
    char *name;
    char *from; /* the column of the file that it is made of; mostly its own name */
    enum ph__field_kind kind;
    size_t slot; /* among the labels, the dense or the sparse features */
    /* id */
    char *shares; /* the column whose rows it has; NULL: its own. What follows up to the vocabulary is then
                     that column's */
    size_t
        owner; /* index of the column whose vocabulary and rows these are: its own, mostly; set by the seal */
    enum ph__field_encoding encoding;
    uint64_t num_rows; /* of the table, row 0 included */
    uint64_t min_count;
    uint64_t hash_seed;
    uint64_t hash_start; /* of the seed, set by the seal */
    bool is_list;
    bool is_weighted;  /* each id of the list carries a weight */
    size_t max_length; /* SIZE_MAX: no limit */
    bool is_group;
    enum ph__time_component component;
    struct ph__vocabulary vocabulary;
    size_t num_buckets; /* wanted of quantiles; 0: the boundaries are given */
    double *boundaries; /* (num_boundaries) ascending, owned */
    size_t num_boundaries;
    /* dense */
    enum ph__dense_transform transform;
    float missing;      /* before the transform */
    bool has_indicator; /* the next dense slot is 1 where the cell is blank, else 0 */
    struct ph__statistics statistics;
};

static inline bool ph__column_is_standardised(const struct ph__column *column)
{
    return column->transform == PH_TRANSFORM_STANDARDISE ||
           column->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
}

/* Whether data need not have what the column is made from. */
static inline bool ph__column_may_lack(const struct ph__column *column, bool needs_no_labels)
{
    bool is_for_training =
        column->kind == PH_FIELD_LABEL || column->kind == PH_FIELD_WEIGHT || column->kind == PH_FIELD_GROUP;
    return column->kind == PH_FIELD_IGNORE || (is_for_training && needs_no_labels);
}

static inline bool ph__column_is_bucket(const struct ph__column *column)
{
    return column->encoding == PH_ENCODING_BUCKET || column->encoding == PH_ENCODING_LOG_BUCKET;
}

struct ph_encoder {
    enum ph__data_format format;
    char separator, list_separator;
    bool has_header;
    struct ph__column *columns;
    size_t num_columns, columns_capacity;
    size_t num_tasks, num_dense, num_sparse;
    bool has_weight, has_group;
    bool has_id_weights;        /* some list is weighted */
    uint64_t num_training_rows; /* 0: not counted */
    size_t *lists;              /* (num_lists) sparse slots of lists, ascending */
    size_t num_lists;
    const struct ph__column **sparse_columns; /* (num_sparse) by slot */
    const struct ph__column **by_source; /* (num_columns) by what they are made from, then in their order */
    struct ph__arena arena;              /* names made of others */
    struct ph_sparse_feature *sparse;
    const char **dense_names;
    /* where the parts of an encoded row start */
    size_t dense_word, weight_word, group_word, sparse_word, num_fixed_words;
    char digest[65];                  /* the seal of the file that it was loaded from; "": it was not */
    float log1p[PH_LOG1P_TABLE_SIZE]; /* of 0, 1, 2 …: most counts are small */
};

/* Without columns. PH_ERROR_MEMORY. */
ph_status ph__encoder_new(struct ph_encoder **encoder_out);

/* Appends a column; the texts are copied. The column is zero but for them; borrowed until the next one. */
ph_status ph__encoder_add_column(
    struct ph_encoder *encoder, const char *name, const char *from, struct ph__column **column_out);

/* The column has the rows of the id column of that name. PH_ERROR_MEMORY. */
ph_status ph__column_share(struct ph__column *column, const char *shares);

/* After all columns, and once more when vocabularies or boundaries have changed: gives the slots, lays out
 * the row, fills the tables. `where` names the source in errors, `status` is what a wrong schema gives. */
ph_status ph__encoder_seal(struct ph_encoder *encoder, const char *where, ph_status status);

/* The columns made from the file's column of this name, in their order; of a sealed encoder. Borrowed. */
const struct ph__column *const *ph__encoder_made_from(
    const struct ph_encoder *encoder, const char *name, size_t *count_out);

/* The seal of the encoder's file (base/format/seal.h): of the file that it was loaded from, else of the one
 * that ph_encoder_save would write. Two encoders that encode alike have the same. */
ph_status ph__encoder_digest(const struct ph_encoder *encoder, char hex_out[65]);

/* Whether an id may stand in a column with a vocabulary, which is saved as lines of UTF-8. PH_ERROR_DATA
 * naming the field. */
ph_status ph__encoder_check_word(const struct ph__column *column, const char *word, size_t length);

#define PH_LOG_BUCKET_NEGATIVES 3 /* counts -3, -2 and -1 have buckets of their own */
#define PH_LOG_BUCKET_MAX 480     /* ln(2^31)^2 = 461.7 */

#endif
