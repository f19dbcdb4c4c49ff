/* Data: from rows to batches.
 *
 * An encoder is the schema of the rows and all that was learnt from the training data: vocabularies,
 * statistics, boundaries. It turns cells into numbers, and is saved with the model so that evaluation,
 * prediction and serving encode exactly as training did. Rows come from text, arrays (.npy), Arrow batches
 * and streams, prepared data, or as cells that a program hands to a session (phloem/serve.h). Batches stream
 * through the encoder, shuffled if asked, made ahead by a thread.
 *
 * Unless a comment says otherwise, an object is used by one thread at a time; an encoder is read-only and may
 * be used by any number. Errors number rows as their source does: lines of text and rows of arrays from 1;
 * cells of a program, batches of Arrow and rows in them, from 0. */
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

/* Files of a job; NULL: none. */
struct ph_data_paths {
    const char *train, *valid, *test;
};

/* Settings for reading rows: the keys under "data" that a training takes. */
struct ph_reading {
    bool is_shuffled;     /* training rows, by seed and epoch, within a window of shuffle_bytes */
    size_t shuffle_bytes; /* 0: 32 MiB. Rows are shuffled fully when they fit, window by window otherwise */
    /* Lanes that shuffled prepared data is dealt to (other data: one; 0: one); each rank need read only some.
     * The order depends on lanes and batch size, never on ranks. */
    size_t shuffle_lanes;
    size_t num_prefetched; /* batches made ahead by a thread, up to 1024; 0: none, no thread */
    uint64_t max_bad_rows; /* bad rows of a file that are left out and counted; one more is PH_ERROR_DATA,
                              naming it */
    /* Share of the rows with first label 0 that is kept, drawn by seed, epoch and the row's number; 0: all;
     * PH_ERROR_USAGE outside [0, 1]. */
    double negative_rate;
};
struct ph_encoder;
struct ph_batches;

/* One sparse feature: ids in [0, num_rows). The encoder owns names. */
struct ph_sparse_feature {
    const char *name;
    size_t num_rows; /* rows of its embedding table, the out-of-vocabulary row 0 included */
    size_t owner;    /* feature that owns the rows: itself, unless its field shares another field's */
};

/* Kind of one cell of a row that a program hands over (a file's cells are text). Pointers are borrowed during
 * the call. A cell encodes as its text would: an integer as its decimal text. */
enum ph_cell_kind {
    PH_CELL_BLANK,
    PH_CELL_TEXT,     /* text, length; a list is ids separated by data.list_separator */
    PH_CELL_INTEGER,  /* integer */
    PH_CELL_REAL,     /* real; NaN is a blank */
    PH_CELL_INTEGERS, /* a list: integers (count) and, where the list is weighted, weights (count) or NULL:
                         all 1. Where it is not weighted, weights are ignored */
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
 * standardised values), one pass over the training file does it; libffm without num_fields needs one more, to
 * count them. No other file is read. Settings that name prepared data give that data's encoder. Errors:
 * PH_ERROR_CONFIG for the schema, PH_ERROR_DATA with file:line and field for the data, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_encoder_create(
    const struct ph_data_settings *settings, struct ph_encoder **encoder_out);
/* Writes an encoder as JSON with a seal, atomically. PH_ERROR_CONFIG: vocabularies of more than 2 GiB;
 * PH_ERROR_DISK, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_encoder_save(const struct ph_encoder *encoder, const char *path);
/* Reads an encoder. PH_ERROR_CHECKPOINT: the file is missing, damaged, of another version or not an encoder;
 * PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_encoder_load(const char *path, struct ph_encoder **encoder_out);
void ph_encoder_destroy(struct ph_encoder *encoder); /* NULL is fine */

size_t ph_encoder_num_dense(const struct ph_encoder *encoder);
size_t ph_encoder_num_tasks(const struct ph_encoder *encoder);
size_t ph_encoder_num_classes(const struct ph_encoder *encoder); /* tasks are classes of one label; or 0 */
size_t ph_encoder_num_sparse(const struct ph_encoder *encoder);
const struct ph_sparse_feature *ph_encoder_sparse(const struct ph_encoder *encoder, size_t feature);
const char *ph_encoder_dense_name(const struct ph_encoder *encoder, size_t feature);
bool ph_encoder_has_teacher(const struct ph_encoder *encoder); /* batches carry a teacher's probabilities */
bool ph_encoder_has_weights(const struct ph_encoder *encoder); /* batches carry weights */
bool ph_encoder_has_groups(const struct ph_encoder *encoder);  /* batches carry groups */
bool ph_encoder_has_id_weights(const struct ph_encoder *encoder); /* batches carry a weight for each id */
/* Returns the number of training rows; 0: not counted, since no field learns from them. */
uint64_t ph_encoder_num_training_rows(const struct ph_encoder *encoder);

/* Place in a pass: opaque numbers that are saved and given back. All zero: the beginning. */
#define PH_POSITION_WORDS 8
struct ph_position {
    uint64_t words[PH_POSITION_WORDS];
};

struct ph_batches_options {
    size_t size;       /* sizeof the struct: phloem/options.h */
    size_t batch_size; /* rows of all ranks together, at least 1 */
    struct ph_reading reading;
    uint64_t seed, epoch;
    /* Rank r of W gets samples n r / W to n (r + 1) / W - 1 of a batch of n samples, rounded down, which may
     * be none: an empty batch, not the end. All ranks see as many batches. world_size 0: one rank. */
    size_t rank, world_size;
    bool needs_no_labels; /* prediction: a missing label column is fine, labels are 0 */
    /* NULL: the beginning; otherwise a place from ph_batches_position, of the same file by the same encoder
     * and options (num_prefetched, rank and world_size may differ). Borrowed during open. */
    const struct ph_position *start;
    /* NULL, or set by a signal handler: waiting for text then ends with PH_ERROR_INTERRUPTED. */
    const volatile int *stop_signal;
};

/* Opens one file, the files of a pattern, or one split of prepared data (its folder) for one pass. The
 * encoder is borrowed until close and may be shared by several batches. Errors: PH_ERROR_USAGE for options
 * out of range, for an encoder whose rows a program hands over, without files, and for a pipe that several
 * ranks would read; PH_ERROR_DATA for files that are missing, lack the encoder's columns, or have become
 * shorter than start; PH_ERROR_MEMORY; PH_ERROR_INTERRUPTED by stop_signal. */
PH_MUST_CHECK ph_status ph_batches_open(const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, struct ph_batches **batches_out);

/* Gives the next batch, or the rank's part of it, NULL at the end; the last one may be smaller. Borrowed
 * until the next call or close. Memory grows only while batches grow. Called by one thread. Errors arrive in
 * the order of the rows, and stay: PH_ERROR_DATA, naming the place and the field, for one bad row more than
 * max_bad_rows, for data without rows, and for a file that cannot be read to its end; PH_ERROR_MEMORY;
 * PH_ERROR_INTERRUPTED by stop_signal. All ranks get the same errors, except that a bad row that ends the
 * reading at once (max_bad_rows 0) may reach only some. */
PH_MUST_CHECK ph_status ph_batches_next(struct ph_batches *batches, const struct ph_batch **batch_out);

/* Gives the place of the pass behind the batch that was returned last: batches that are opened with this
 * start continue there. The place is the same on all ranks, for any number of ranks. */
void ph_batches_position(const struct ph_batches *batches, struct ph_position *position_out);

/* Return the number of rows left out up to the batch that was returned last (shuffled: up to its window), and
 * the first of them with its place and the reason, "" if there is none; borrowed until close. */
uint64_t ph_batches_num_bad_rows(const struct ph_batches *batches);
const char *ph_batches_first_bad_row(const struct ph_batches *batches);
void ph_batches_close(struct ph_batches *batches);

/* ---- prepared data ---- */

/* Progress of a preparation. */
struct ph_prepare_progress {
    bool is_learning; /* set in the first pass, which vocabularies and statistics need; over the training data
                         alone */
    uint64_t num_rows, num_text_bytes; /* of this pass so far, parts that already existed not counted */
    uint64_t total_text_bytes;         /* 0: unknown, since files are compressed, arrays or standard input */
    double seconds;                    /* since the pass began */
};

/* The keys under "prepare". */
struct ph_prepare_settings {
    uint64_t part_bytes;       /* text of one part, 4096 to 10^12; 0: 256 MiB */
    uint64_t block_rows;       /* rows read together, 1 to 8192; 0: 1024. Smaller blocks shuffle better */
    uint64_t vocabulary_bytes; /* memory to learn vocabularies' ids in, 65536 to 10^12; 0: 1 GiB */
};

struct ph_prepare_options {
    size_t size;        /* sizeof the struct: phloem/options.h */
    size_t num_threads; /* up to 4096; 0: all processors that the process may run on. The result does not
                           depend on it */
    struct ph_prepare_settings settings;
    bool may_resume; /* set to keep the files of an interrupted preparation in the folder; otherwise it must
                        be empty */
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM */
    /* NULL, or called every progress_seconds with the progress: by any of the threads, one at a time. */
    void (*on_progress)(void *context, const struct ph_prepare_progress *progress);
    void *progress_context;
    double progress_seconds;
    struct ph_buffer first_bad_row; /* gets the place of the first bad row and the reason; "": none */
};

struct ph_prepare_summary {
    uint64_t num_text_bytes; /* read, after decompression */
    uint64_t num_bytes;      /* bytes of all parts */
    uint64_t num_rows, num_bad_rows;
    size_t num_parts, num_kept_parts, num_threads;
    double seconds; /* seconds of encoding, without the pass that an encoder may need */
};

/* Encodes train, valid and test once and for all into FOLDER/train and so on, for ph_batches_open, beside
 * FOLDER/encoder.json and FOLDER/prepared.yaml, the data section that reads them. Each thread needs some tens
 * of MB, for any size of the data. After a crash or an error a preparation can be resumed: the result is then
 * the same, byte for byte. Errors: PH_ERROR_USAGE for options out of range, a folder that is not empty or in
 * use, PH_ERROR_CONFIG, PH_ERROR_DATA with file:line and field, PH_ERROR_DISK, PH_ERROR_MEMORY,
 * PH_ERROR_INTERRUPTED or PH_ERROR_TERMINATED by a signal. */
PH_MUST_CHECK ph_status ph_prepare(const struct ph_data_settings *settings, const char *folder,
    const struct ph_prepare_options *options, struct ph_prepare_summary *summary_out);

/* ---- rows in memory and in streams, by the Arrow C data and stream interfaces ---- */

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

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* Record batches from any Arrow producer, in memory or in streams; their buffers are read in place. */
struct ph_dataset;

PH_MUST_CHECK ph_status ph_dataset_create(struct ph_dataset **dataset_out); /* PH_ERROR_MEMORY */
void ph_dataset_destroy(struct ph_dataset *dataset); /* releases every batch; NULL is fine */

/* Takes a record batch: an array of type struct, format "+s", whose children are the columns. On success both
 * are moved: the dataset owns the batch and releases it when destroyed, the schema has been read and
 * released, and release is NULL in both. On failure both stay the caller's, unchanged. Not allowed while
 * batches of the dataset are open, nor for a dataset of streams (PH_ERROR_USAGE).
 *
 * Columns match a schema by name; a column that is wanted may occur only once. Values may be of bool, int8 to
 * uint64, float16 to float64, utf8, binary (also large, and views), date, timestamp and decimal128 with a
 * scale of at least 0. Those up to the views may be dictionary-encoded, and may be the items of list,
 * large_list and fixed_size_list, which are lists of ids. Null is blank; in a list it is skipped. A batch may
 * carry unused columns of other types. Errors: PH_ERROR_DATA naming batch (from 0) and column, when batch and
 * schema disagree; PH_ERROR_USAGE when either has been released; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_dataset_append_arrow(
    struct ph_dataset *dataset, struct ArrowArray *batch, struct ArrowSchema *schema);

/* Opens a stream of the same rows each time. A pass over the data is one stream: to find the columns, to
 * learn vocabularies, to look at the first rows, each epoch, each evaluation, and again from the beginning
 * when a training resumes. */
struct ph_stream_opener {
    size_t size; /* sizeof the struct: phloem/options.h */
    /* Fills in a stream, which the dataset releases when the pass ends, early or not. Called by the thread
     * that opens the pass, never by two at once; the stream itself is read by one thread at a time, not
     * always the one that opened it. A status other than PH_OK ends the pass, and leaves no stream; its text
     * is what ph_fail has recorded, if anything. */
    ph_status (*open)(void *context, struct ArrowArrayStream *stream_out);
    void *context;    /* must stay until the dataset is destroyed */
    const char *name; /* stands for the data in errors, copied; NULL: "dataset" */
};

/* Creates a dataset whose record batches come from streams, with columns and types as for
 * ph_dataset_append_arrow. It works wherever a dataset does, and gives the bits of the same rows in memory,
 * however a stream cuts them into batches. A pass holds one batch at a time, and releases it before it asks
 * for the next one. Opens nothing yet. PH_ERROR_USAGE: no open; PH_ERROR_MEMORY.
 *
 * Passes fail with PH_ERROR_DATA, naming the batch (from 0), for a stream that fails, with its own error's
 * text; for a batch that does not fit the stream's schema; and for a pass that lacks a column of an earlier
 * one, or ends with another number of rows than the first pass that came to its end. */
PH_MUST_CHECK ph_status ph_dataset_create_from_streams(
    const struct ph_stream_opener *opener, struct ph_dataset **dataset_out);

uint64_t ph_dataset_num_rows(const struct ph_dataset *dataset); /* 0: unknown, for streams */

/* Gives fields for the columns of the dataset (of its first batch), in their order, as YAML for data.fields:
 * a flow sequence with a field on each line, to be used as it is or edited. labels (num_labels) names the
 * label columns; the type decides over the others:
 *
 *   text, binary, bool, integer      kind: id
 *   float, decimal                   kind: dense
 *   dictionary                       as its values
 *   list of what would be ids        kind: id, list: true
 *   date                             the id NAME.weekday
 *   timestamp                        the ids NAME.hour and NAME.weekday
 *   any other                        kind: ignore, with the Arrow format in a comment
 *
 * Times become parts that come again, since the ids of instants would not. ph_text_free frees the text.
 * PH_ERROR_DATA: a label that is not a column, or neither a number nor a bool; a column without a name or
 * with another's; a dataset without a batch. */
PH_MUST_CHECK ph_status ph_dataset_default_fields(
    const struct ph_dataset *dataset, const char *const *labels, size_t num_labels, char **yaml_out);

/* Builds an encoder as ph_encoder_create does, with the dataset in the place of the training file: its
 * columns are those of the first batch, and vocabularies and statistics are learnt from all rows. data.format
 * only chooses the built-in schema; with arrow there is none. PH_ERROR_DATA also for a column of an
 * unsupported type, naming it and its format string; PH_ERROR_CONFIG also for a column name that occurs
 * twice. */
PH_MUST_CHECK ph_status ph_encoder_create_from_dataset(const struct ph_data_settings *settings,
    const struct ph_dataset *dataset, struct ph_encoder **encoder_out);

/* Opens batches as ph_batches_open does, with the rows of the dataset, in the order of its batches. Both
 * arguments are borrowed until close. An encoder made for any format fits if the batches have its columns.
 * Errors name batch and row, both from 0. */
PH_MUST_CHECK ph_status ph_dataset_batches_open(const struct ph_dataset *dataset,
    const struct ph_encoder *encoder, const struct ph_batches_options *options,
    struct ph_batches **batches_out);

/* ---- synthetic data ---- */

struct ph_synth_settings; /* the keys under "synth" of a config: ph_config_synth of phloem/config.h */

#define PH_SYNTH_MAX_STEPS 4

/* Quality of models whose logit is a number plus multiples of the staircase's parts up to an order: with the
 * multiples of the least expected logloss on these rows. */
struct ph_synth_order_truth {
    int64_t order; /* highest order: 1, 2, 4 or 8 */
    double logloss, ne, expected_logloss, expected_ne;
};

/* Quality of the model that drew the labels: on the labels as drawn, and in expectation over labels for the
 * same rows. No model can be expected to do better. auc is NaN where all labels are equal. */
struct ph_synth_truth {
    uint64_t num_rows;
    double base_rate, auc, logloss, ne;
    double expected_base_rate, expected_auc, expected_logloss, expected_ne;
    size_t num_orders; /* of synth.staircase; 0 without one */
    struct ph_synth_order_truth orders[PH_SYNTH_MAX_STEPS];
};

enum ph_synth_file { PH_SYNTH_TRAIN, PH_SYNTH_VALID, PH_SYNTH_TEST, PH_SYNTH_FILE_COUNT };

/* Writes train, valid and test into the folder (made if missing, otherwise empty), truth.json, and
 * synth.yaml: the "data" section that reads them. truth_out (PH_SYNTH_FILE_COUNT), zero for files that are
 * not written, may be NULL. Needs 16 bytes of memory a row, and for a staircase 8 more for each order up to
 * its highest, named or not. Errors: PH_ERROR_CONFIG, PH_ERROR_USAGE for a folder that is not empty,
 * PH_ERROR_DISK, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_synth_write(
    const struct ph_synth_settings *settings, const char *folder, struct ph_synth_truth *truth_out);

#ifdef __cplusplus
}
#endif
#endif
