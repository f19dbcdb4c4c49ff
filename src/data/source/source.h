/* Sources of rows: one file, the files that a pattern matches, or a dataset, in any format that is read row
 * by row.
 *
 * A format is a table of functions over one open file at a time; this file does the work that formats share:
 * several files, bad rows, positions. Rows leave a source encoded; a source with a fit only learns from them.
 * One thread at a time. */
#ifndef PH_DATA_SOURCE_H
#define PH_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "data/encode/row_encoder.h"
#include "data/source/fingerprint.h"

struct ph__source;

/* Position of a source: the next row to read. */
struct ph__source_position {
    uint64_t file;                   /* index of the file in the pattern */
    uint64_t row;                    /* lines (text) or rows read of that file */
    uint64_t byte;                   /* text: start of the next line, after decompression */
    uint64_t num_rows, num_bad_rows; /* good and bad rows so far */
};

struct ph__format {
    /* Opens paths[file] and matches its columns. `position` is in that file; row 0: its beginning. */
    ph_status (*open)(struct ph__source *source, const struct ph__source_position *position);
    void (*close)(struct ph__source *source); /* also after a failed open */
    /* Moves to the next row. An error here is the file's, and ends the reading. */
    ph_status (*fetch)(struct ph__source *source, bool *is_end_out);
    /* Gives the row's cells to source->row. PH_ERROR_DATA: this row is bad, the next one may be good. */
    ph_status (*encode)(struct ph__source *source);
    /* Appends up to `wanted` of the rows that follow, faster than one by one, and goes on behind them;
     * *num_rows_out: how many, 0 where that cannot be. PH_ERROR_DATA with *num_rows_out > 0: one of so many
     * rows is bad, and nothing was done; other errors end the reading. NULL: rows come one by one. */
    ph_status (*encode_run)(
        struct ph__source *source, struct ph__rows *rows, size_t wanted, size_t *num_rows_out);
    /* Writes the place of the row, "train.csv:12". */
    void (*locate)(const struct ph__source *source, char *text, size_t size);
    /* Sets row and byte to the next row's. */
    void (*tell)(const struct ph__source *source, struct ph__source_position *position);
};

struct ph__source_options {
    bool needs_no_labels;                /* true: the file may lack labels, weights and groups */
    uint64_t max_bad_rows;               /* one more bad row is the error */
    const struct ph_dataset *dataset;    /* NULL, or its rows are read, as one file */
    struct ph__fingerprint *fingerprint; /* NULL, or the path's fingerprint, carried on */
    const volatile int *stop_signal;     /* NULL, or ends reading text (PH_ERROR_INTERRUPTED) once not 0 */
    struct ph__fit *fit;                 /* NULL, or learns from the rows instead of encoding them */
    /* NULL: the beginning; borrowed during open. In text a byte without a row is an uncounted start: errors
     * count the lines before it. */
    const struct ph__source_position *start;
    bool is_one_file;  /* true: reading ends with start's file */
    uint64_t end_byte; /* text, with is_one_file: only lines that begin before it; 0: all lines */
};

struct ph__source {
    const struct ph__format *format;
    const struct ph_encoder *encoder;
    struct ph__source_options options;
    struct ph__arena arena; /* owns the paths */
    const char **paths;
    size_t num_paths;
    size_t file; /* index of the open file */
    bool is_open;
    bool is_uncounted; /* true: the number of lines before the start is unknown */
    struct ph__row_encoder row;
    uint64_t num_rows, num_bad_rows;
    size_t num_single;       /* rows to encode one by one: among them is a bad one */
    uint64_t num_encoded;    /* rows encoded so far, bad ones included: the cost of the pass */
    char first_bad_row[512]; /* place and problem; "": none. After an uncounted start without the line, which
                                would take reading everything before it, unless the row ended the reading. */
    uint64_t first_bad_line; /* number of its line since the start */
    char first_bad_reason[512];
    void *state; /* the format's state of the open file */
};

/* Opens a source. A path with *, ? or [ that is not a file itself is a pattern; its files come in the order
 * of their names. #NAME at its end names the split whose rows have labels. "-" is standard input. With a
 * dataset the path is ignored. Errors: PH_ERROR_DATA. Close the source also on failure. */
ph_status ph__source_open(struct ph__source *source, const struct ph_encoder *encoder, const char *path,
    const struct ph__source_options *options);
void ph__source_close(struct ph__source *source);

/* Encodes the next good row after those in `rows` (with a fit: appends nothing). Sets *is_end_out when there
 * was no further row. */
ph_status ph__source_next(struct ph__source *source, struct ph__rows *rows, bool *is_end_out);
/* Encodes, or learns from, some of the next rows as ph__source_next would: one to `wanted`, which is not 0.
 */
ph_status ph__source_next_run(
    struct ph__source *source, struct ph__rows *rows, size_t wanted, bool *is_end_out);
/* Skips `count` rows without encoding them, fewer only at the end; bad rows go unnoticed, and count as
 * good. */
ph_status ph__source_skip(struct ph__source *source, uint64_t count, uint64_t *num_skipped_out);
/* Goes back to a position that the source had before. */
ph_status ph__source_return(struct ph__source *source, const struct ph__source_position *position);
void ph__source_tell(const struct ph__source *source, struct ph__source_position *position_out);

/* Returns the checksum that takes in the bytes of a file of the open path, by the file's name; NULL: none. */
struct ph__running_checksum *ph__source_checksum(const struct ph__source *source, const char *name);

extern const struct ph__format ph__format_delimited; /* csv, tsv, criteo, avazu */
extern const struct ph__format ph__format_libsvm;    /* libsvm, libffm */
extern const struct ph__format ph__format_npy;
extern const struct ph__format ph__format_arrow; /* a dataset */
extern const struct ph__format ph__format_graph;

#endif
