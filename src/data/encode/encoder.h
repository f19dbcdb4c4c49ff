/* The encoder's layout: the columns of the training file, the feature that each becomes, and the feature's
 * place in an encoded row.
 *
 * An encoded row is a run of 32-bit words (floats by their bits): first a fixed part
 *     labels (T) | teachers (T, if any) | dense (D) | weight (1, if any) | group (2, if any) | sparse (F)
 * whose sparse word is the id of a single-valued feature or the number of ids of a list; then the lists in
 * the order of their sparse slots, each with its ids and, if the list is weighted, as many weights. Immutable
 * after creation; any number of threads may read the encoder. */
#ifndef PH_DATA_ENCODER_H
#define PH_DATA_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "data/encode/vocabulary.h"
#include "phloem/data.h"

#define PH_LOG1P_TABLE_SIZE 1024

/* Statistics of a dense column in the training data, without blanks; after log1p where the column has that
 * transform. */
struct ph__statistics {
    uint64_t num_values, num_blanks;
    double min, max, mean, deviation;
};

struct ph__column {
    char *name;
    char *from;         /* the file's column; mostly the same as name */
    size_t class_start; /* label: where in name the class begins that it is 1 for; 0: it has no classes */
    enum ph__field_kind kind;
    size_t slot; /* index among the labels, the teachers, the dense or the sparse features */
    /* id */
    char *shares; /* id column that owns the rows, and all members down to hash_start; NULL: this one */
    size_t owner; /* index of the column that owns vocabulary and rows, mostly this one; set by the seal */
    enum ph__field_encoding encoding;
    uint64_t num_rows; /* rows of the table, row 0 included */
    uint64_t min_count;
    uint64_t hash_seed;
    uint64_t hash_start; /* hash state that follows from hash_seed; set by the seal */
    bool is_list;
    bool is_weighted;  /* each id of the list carries a weight */
    size_t max_length; /* SIZE_MAX: no limit */
    bool is_group;
    enum ph__time_component component;
    struct ph__vocabulary vocabulary;
    size_t num_buckets; /* buckets to cut by quantiles; 0: boundaries are given */
    double *boundaries; /* (num_boundaries) ascending, owned */
    size_t num_boundaries;
    /* dense */
    enum ph__dense_transform transform;
    float missing;      /* value of a blank, before the transform */
    bool has_indicator; /* the next dense slot is 1 where the cell is blank, else 0 */
    struct ph__statistics statistics;
};

static inline bool ph__column_is_standardised(const struct ph__column *column)
{
    return column->transform == PH_TRANSFORM_STANDARDISE ||
           column->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
}

/* Tells whether finite numbers of a dense column go into rows as they are. */
static inline bool ph__column_is_plain(const struct ph__column *column)
{
    return column->kind == PH_FIELD_DENSE && column->transform == PH_TRANSFORM_NONE && !column->has_indicator;
}

/* Returns true when the data may lack the file's column: it is ignored, or needed only for training. */
static inline bool ph__column_may_lack(const struct ph__column *column, bool needs_no_labels)
{
    bool is_for_training = column->kind == PH_FIELD_LABEL || column->kind == PH_FIELD_TEACHER ||
                           column->kind == PH_FIELD_WEIGHT || column->kind == PH_FIELD_GROUP ||
                           column->kind == PH_FIELD_SPLIT;
    return column->kind == PH_FIELD_IGNORE || (is_for_training && needs_no_labels);
}

/* Tells whether the format makes the column of another file than the one that has the header. */
static inline bool ph__column_is_made(const struct ph__graph_settings *graph, const char *name)
{
    return (graph->edges != NULL && graph->edges[0] != '\0' && strcmp(name, PH_GRAPH_NEIGHBOURS) == 0) ||
           (graph->words != NULL && graph->words[0] != '\0' && strcmp(name, PH_GRAPH_WORDS) == 0) ||
           (graph->train_share > 0 && strcmp(name, PH_GRAPH_SPLIT) == 0);
}

/* Returns the class that a label is 1 for; NULL: it has no classes. */
static inline const char *ph__column_class(const struct ph__column *column)
{
    return column->class_start > 0 ? column->name + column->class_start : NULL;
}

static inline bool ph__column_is_bucket(const struct ph__column *column)
{
    return column->encoding == PH_ENCODING_BUCKET || column->encoding == PH_ENCODING_LOG_BUCKET;
}

struct ph_encoder {
    enum ph__data_format format;
    struct ph__graph_settings graph; /* of format graph */
    char separator, list_separator;
    bool has_header;
    struct ph__column *columns;
    size_t num_columns, columns_capacity;
    size_t num_tasks, num_dense, num_sparse;
    size_t num_teachers; /* num_tasks, or 0 */
    size_t num_classes;  /* num_tasks, or 0 */
    bool has_weight, has_group, has_split;
    bool has_id_weights;        /* true: some list is weighted */
    uint64_t num_training_rows; /* 0: not counted */
    size_t *lists;              /* (num_lists) sparse slots of lists, ascending */
    size_t num_lists;
    const struct ph__column **sparse_columns; /* (num_sparse) by slot */
    const struct ph__column **by_source;      /* (num_columns) by `from`, then in order */
    struct ph__arena arena;                   /* owns the names of indicator features */
    struct ph_sparse_feature *sparse;
    const char **dense_names;
    /* starts of the parts of an encoded row */
    size_t dense_word, weight_word, group_word, sparse_word, num_fixed_words;
    char digest[65];                  /* seal of the file that the encoder was loaded from; "": not loaded */
    float log1p[PH_LOG1P_TABLE_SIZE]; /* log1p of 0, 1, 2 …: most counts are small */
};

/* Creates an encoder without columns. PH_ERROR_MEMORY. */
ph_status ph__encoder_new(struct ph_encoder **encoder_out);

/* Appends a column that is zero except for copies of the texts; borrowed until the next column is added. */
ph_status ph__encoder_add_column(
    struct ph_encoder *encoder, const char *name, const char *from, struct ph__column **column_out);

/* Makes the column share the rows of the id column called `shares`. PH_ERROR_MEMORY. */
ph_status ph__column_share(struct ph__column *column, const char *shares);

/* Copies the settings of a graph. PH_ERROR_MEMORY. */
ph_status ph__encoder_set_graph(struct ph_encoder *encoder, const struct ph__graph_settings *graph);

/* Assigns the slots, lays out the row and fills the tables. Call after all columns were added, and again when
 * vocabularies or boundaries have changed. `where` names the source in errors, `status` is the error for a
 * wrong schema. */
ph_status ph__encoder_seal(struct ph_encoder *encoder, const char *where, ph_status status);

/* Returns the columns of a sealed encoder that are made from the file's column `name`, in their order;
 * borrowed. */
const struct ph__column *const *ph__encoder_made_from(
    const struct ph_encoder *encoder, const char *name, size_t *count_out);

/* Writes the seal (base/format/seal.h) of the file that the encoder was loaded from, else of the file that
 * ph_encoder_save would write. Encoders that encode alike have the same seal. */
ph_status ph__encoder_digest(const struct ph_encoder *encoder, char hex_out[65]);

/* PH_ERROR_DATA naming the field when a vocabulary cannot keep the id: vocabularies are saved as lines of
 * UTF-8. */
ph_status ph__encoder_check_word(const struct ph__column *column, const char *word, size_t length);

#define PH_LOG_BUCKET_NEGATIVES 3 /* counts -3, -2 and -1 have buckets of their own */
#define PH_LOG_BUCKET_MAX 480     /* ln(2^31)^2 = 461.7 */

#endif
