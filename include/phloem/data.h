/* Data: from rows to batches.
 *
 * An encoder is the schema of the rows and what was learnt from the training data: vocabularies, statistics,
 * boundaries. It decides how a cell becomes numbers, and is saved with the model so that evaluation,
 * prediction and serving encode exactly as training did. Rows come from text, arrays (.npy), Arrow batches,
 * prepared data, or as cells that a program hands to a session (phloem/serve.h). Batches stream through the
 * encoder, shuffled if asked, made ahead by a thread.
 *
 * Unless it is said otherwise, an object is used by one thread at a time; an encoder is only read, by any
 * number. Errors name rows as their source counts them: lines of text and rows of arrays from 1; what a
 * program hands over, batches of Arrow and rows in them, from 0. */
#ifndef PHLOEM_DATA_H
#define PHLOEM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/options.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_data_settings; /* the keys under "data" of a config: ph_config_data of phloem/config.h */

/* The files of a job; NULL: none. */
struct ph_data_paths {
    const char *train, *valid, *test;
};

/* How rows are read: the keys under "data" that a training takes. */
struct ph_reading {
    bool is_shuffled;     /* training rows, by seed and epoch, within a window of shuffle_bytes */
    size_t shuffle_bytes; /* 0: 32 MiB. Rows are shuffled fully when they fit, window by window otherwise */
    /* Prepared data that is shuffled is dealt to so many lanes (else one; 0: one), of which each rank need
     * read only some. The order depends on lanes and batch size, never on ranks. */
    size_t shuffle_lanes;
    size_t num_prefetched; /* batches made ahead by a thread, up to 1024; 0: none, no thread */
    uint64_t max_bad_rows; /* of a file: left out and counted; one more is PH_ERROR_DATA, naming it */
    /* Share of the rows whose first label is 0 that is kept, drawn by seed, epoch and the row's number; 0:
     * all are; PH_ERROR_USAGE beyond [0, 1]. */
    double negative_rate;
};
struct ph_encoder;
struct ph_batches;

/* One sparse feature: ids in [0, num_rows). Names are owned by the encoder. */
struct ph_sparse_feature {
    const char *name;
    size_t num_rows; /* of its embedding table, the out-of-vocabulary row 0 included */
    size_t owner;    /* the feature whose rows these are: itself, unless its field shares another's */
};

/* One cell of a row that a program hands over (a file's cells are text). Everything is borrowed during the
 * call. What is encoded is the same as if the cell had been text: an integer is as its decimal text is. */
enum ph_cell_kind {
    PH_CELL_BLANK,
    PH_CELL_TEXT,     /* text, length; of a list: ids separated by data.list_separator */
    PH_CELL_INTEGER,  /* integer */
    PH_CELL_REAL,     /* real; NaN is a blank */
    PH_CELL_INTEGERS, /* a list: integers (count) and, where the list is weighted, weights (count) or NULL:
                         all 1. Where it is not, weights are not looked at */
};

struct ph_cell {
    enum ph_cell_kind kind;
    const char *text;
    size_t length;
    int64_t integer;
    double real;
    const int64_t *integers;
    const float *weights;
    size_t count;
};

/* Builds an encoder from settings. Where a field learns from the data (a vocabulary, quantile buckets,
 * standardised values), one pass over the training file does it; libffm without num_fields takes one more,
 * which counts them. No other file is read. Settings that name prepared data give that data's encoder.
 * Errors: PH_ERROR_CONFIG for the schema, PH_ERROR_DATA with file:line and field for the data,
 * PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_encoder_create(
    const struct ph_data_settings *settings, struct ph_encoder **encoder_out);
/* JSON with a seal, atomic. PH_ERROR_CONFIG: vocabularies of more than 2 GiB; PH_ERROR_DISK, PH_ERROR_MEMORY.
 */
PH_MUST_CHECK ph_status ph_encoder_save(const struct ph_encoder *encoder, const char *path);
/* PH_ERROR_CHECKPOINT for a file that is missing, damaged, of another version or no encoder; PH_ERROR_MEMORY.
 */
PH_MUST_CHECK ph_status ph_encoder_load(const char *path, struct ph_encoder **encoder_out);
void ph_encoder_destroy(struct ph_encoder *encoder); /* NULL is fine */

size_t ph_encoder_num_dense(const struct ph_encoder *encoder);
size_t ph_encoder_num_tasks(const struct ph_encoder *encoder);
size_t ph_encoder_num_sparse(const struct ph_encoder *encoder);
const struct ph_sparse_feature *ph_encoder_sparse(const struct ph_encoder *encoder, size_t feature);
const char *ph_encoder_dense_name(const struct ph_encoder *encoder, size_t feature);
bool ph_encoder_has_weights(const struct ph_encoder *encoder);    /* batches carry weights */
bool ph_encoder_has_groups(const struct ph_encoder *encoder);     /* batches carry groups */
bool ph_encoder_has_id_weights(const struct ph_encoder *encoder); /* batches carry a weight for each id */
/* 0: not counted, since nothing is learnt from them. */
uint64_t ph_encoder_num_training_rows(const struct ph_encoder *encoder);

/* Where a pass stands: numbers to be saved and given back, meaningless to anybody else. All zero: its
 * beginning. */
#define PH_POSITION_WORDS 8
struct ph_position {
    uint64_t words[PH_POSITION_WORDS];
};

struct ph_batches_options {
    size_t size;       /* sizeof the struct: phloem/options.h */
    size_t batch_size; /* rows, at least 1; of all ranks together */
    struct ph_reading reading;
    uint64_t seed, epoch;
    /* Of a batch of n samples rank r of W gets samples n r / W to n (r + 1) / W - 1, rounded down, which may
     * be none: an empty batch, not the end. All ranks see as many batches. world_size 0: one rank. */
    size_t rank, world_size;
    bool needs_no_labels; /* prediction: a missing label column is fine, labels are 0 */
    /* NULL: the beginning; else of ph_batches_position, of the same file by the same encoder and options
     * (num_prefetched, rank and world_size may differ). Borrowed during open. */
    const struct ph_position *start;
    /* NULL; or set by a signal handler, and waiting for text ends with PH_ERROR_INTERRUPTED. */
    const volatile int *stop_signal;
};

/* Opens one file, the files of a pattern, or one split of prepared data (its folder) for one pass. The
 * encoder is borrowed until close and may be shared by several batches. Errors: PH_ERROR_USAGE for options
 * out of range, for an encoder whose rows a program hands over, without files, and for a pipe that several
 * ranks would read; PH_ERROR_DATA for files that are missing, do not have the encoder's columns, or have
 * become shorter than start; PH_ERROR_MEMORY; PH_ERROR_INTERRUPTED by stop_signal. */
PH_MUST_CHECK ph_status ph_batches_open(const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, struct ph_batches **batches_out);

/* The next batch, or the rank's part of it, NULL at the end; the last may be smaller. Borrowed until the next
 * call or close. Memory grows only while batches grow. One thread. Errors arrive in the order of the rows,
 * and stay: PH_ERROR_DATA, naming the place and the field, for one bad row more than max_bad_rows, for data
 * without rows, and for a file that cannot be read to its end; several ranks read the same, but a bad row
 * that ends the reading at once (max_bad_rows 0) may be met by some of them alone; PH_ERROR_MEMORY;
 * PH_ERROR_INTERRUPTED by stop_signal. */
PH_MUST_CHECK ph_status ph_batches_next(struct ph_batches *batches, const struct ph_batch **batch_out);

/* Where the pass stands behind the batch that was returned last: opened again with this start, the next
 * batches are those that would have followed. The same on all ranks, however many there are. */
void ph_batches_position(const struct ph_batches *batches, struct ph_position *position_out);

/* Rows left out up to the batch that was returned last (shuffled: in the windows up to its), and the first of
 * them with its place and what is wrong with it, "" while there is none; borrowed until close. */
uint64_t ph_batches_num_bad_rows(const struct ph_batches *batches);
const char *ph_batches_first_bad_row(const struct ph_batches *batches);
void ph_batches_close(struct ph_batches *batches);

/* ---- prepared data ---- */

/* How far a preparation is. */
struct ph_prepare_progress {
    bool is_learning; /* the first pass, which vocabularies and statistics need; over the training data alone
                       */
    uint64_t num_rows, num_text_bytes; /* of this pass so far, without parts that were there */
    uint64_t total_text_bytes; /* 0: not known, since files are compressed, arrays or standard input */
    double seconds;            /* since the pass began */
};

/* The keys under "prepare". */
struct ph_prepare_settings {
    uint64_t part_bytes; /* text of one part, 4096 to 10^12; 0: 256 MiB */
    uint64_t block_rows; /* read together, 1 to 8192; 0: 1024. Fewer mix better when they are shuffled */
    uint64_t vocabulary_bytes; /* memory to learn vocabularies' ids in, 65536 to 10^12; 0: 1 GiB */
};

struct ph_prepare_options {
    size_t size;        /* sizeof the struct: phloem/options.h */
    size_t num_threads; /* up to 4096; 0: all that it may run on. The result does not depend on it */
    struct ph_prepare_settings settings;
    bool may_resume; /* keep what an interrupted preparation has left in the folder; else it must be empty */
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM */
    /* NULL, or told about every progress_seconds how far it is: by any of the threads, one at a time. */
    void (*on_progress)(void *context, const struct ph_prepare_progress *progress);
    void *progress_context;
    double progress_seconds;
    struct ph_buffer first_bad_row; /* gets its place and what is wrong with it; "": none */
};

struct ph_prepare_summary {
    uint64_t num_text_bytes; /* read, after decompression */
    uint64_t num_bytes;      /* of all parts */
    uint64_t num_rows, num_bad_rows;
    size_t num_parts, num_kept_parts, num_threads;
    double seconds; /* of encoding: without the pass that an encoder may need */
};

/* Encodes train, valid and test once and for all: FOLDER/train and so on, to be opened by ph_batches_open,
 * beside FOLDER/encoder.json and FOLDER/prepared.yaml, the data section that reads them. Each thread needs
 * some tens of MB, whatever the size of the data. What is left by a crash or an error can be resumed: the
 * result is then the same, byte for byte. Errors: PH_ERROR_USAGE for options out of range, a folder that is
 * not empty or in use, PH_ERROR_CONFIG, PH_ERROR_DATA with file:line and field, PH_ERROR_DISK,
 * PH_ERROR_MEMORY, PH_ERROR_INTERRUPTED or PH_ERROR_TERMINATED by a signal. */
PH_MUST_CHECK ph_status ph_prepare(const struct ph_data_settings *settings, const char *folder,
    const struct ph_prepare_options *options, struct ph_prepare_summary *summary_out);

/* ---- rows in memory, by the Arrow C data interface ---- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/* Record batches that any Arrow producer hands over; their buffers are read where they are. */
struct ph_dataset;

PH_MUST_CHECK ph_status ph_dataset_create(struct ph_dataset **dataset_out); /* PH_ERROR_MEMORY */
void ph_dataset_destroy(struct ph_dataset *dataset); /* releases every batch; NULL is fine */

/* Takes a record batch: an array of type struct, format "+s", whose children are the columns. On success both
 * are moved: the batch is the dataset's, which releases it when it is destroyed, the schema has been read and
 * released, and release is NULL in both. On failure both stay the caller's as they were. Not while batches of
 * the dataset are open.
 *
 * Columns meet a schema by name; one that is wanted may be there once only. Values may be of bool, int8 to
 * uint64, float16 to float64, utf8, binary (also large, and views), date, timestamp and decimal128 with a
 * scale of at least 0. Those up to the views may be dictionary-encoded, and the items of list, large_list and
 * fixed_size_list, which are lists of ids. Null is blank, in a list nothing. A batch may carry columns of
 * other types as long as nobody wants them. Errors: PH_ERROR_DATA naming batch (from 0) and column, when
 * batch and schema disagree; PH_ERROR_USAGE when either has been released; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_dataset_append_arrow(
    struct ph_dataset *dataset, struct ArrowArray *batch, struct ArrowSchema *schema);
uint64_t ph_dataset_num_rows(const struct ph_dataset *dataset);

/* As ph_encoder_create, with the dataset in the place of the training file: its columns are those of the
 * first batch, and vocabularies and statistics are learnt from all rows. data.format decides only which
 * built-in schema there is; with arrow there is none. PH_ERROR_DATA also for a column of a type that is not
 * read, naming it and its format string; PH_ERROR_CONFIG also for a column's name that is there twice. */
PH_MUST_CHECK ph_status ph_encoder_create_from_dataset(const struct ph_data_settings *settings,
    const struct ph_dataset *dataset, struct ph_encoder **encoder_out);

/* As ph_batches_open, with the rows of the dataset, in the order of the batches. Both are borrowed until
 * close. Any encoder fits whose columns the batches have, whatever format it was made for. Errors name batch
 * and row, both from 0. */
PH_MUST_CHECK ph_status ph_dataset_batches_open(const struct ph_dataset *dataset,
    const struct ph_encoder *encoder, const struct ph_batches_options *options,
    struct ph_batches **batches_out);

/* ---- synthetic data ---- */

struct ph_synth_settings; /* the keys under "synth" of a config: ph_config_synth of phloem/config.h */

#define PH_SYNTH_MAX_STEPS 4

/* How well those models predict whose logit is a number plus multiples of the staircase's parts up to an
 * order: the multiples with the least expected logloss on these rows. */
struct ph_synth_order_truth {
    int64_t order; /* the highest: 1, 2, 4 or 8 */
    double logloss, ne, expected_logloss, expected_ne;
};

/* How well the model that drew the labels predicts them: on the labels as drawn, and in expectation over
 * labels for the same rows. No model can be expected to do better. auc is NaN where all labels are equal. */
struct ph_synth_truth {
    uint64_t num_rows;
    double base_rate, auc, logloss, ne;
    double expected_base_rate, expected_auc, expected_logloss, expected_ne;
    size_t num_orders; /* of synth.staircase; 0 without one */
    struct ph_synth_order_truth orders[PH_SYNTH_MAX_STEPS];
};

enum ph_synth_file { PH_SYNTH_TRAIN, PH_SYNTH_VALID, PH_SYNTH_TEST, PH_SYNTH_FILE_COUNT };

/* Writes train, valid and test into the folder (made if missing, else empty), truth.json, and synth.yaml: the
 * "data" section that reads them. truth_out (PH_SYNTH_FILE_COUNT), zero for files that are not written, may
 * be NULL. Needs 16 bytes of memory a row, and of a staircase 8 more for each order up to its highest, named
 * or not. Errors: PH_ERROR_CONFIG, PH_ERROR_USAGE for a folder that is not empty, PH_ERROR_DISK,
 * PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_synth_write(
    const struct ph_synth_settings *settings, const char *folder, struct ph_synth_truth *truth_out);

#ifdef __cplusplus
}
#endif
#endif
