/* Where rows come from: one file, or the files that a pattern matches, in any format that is read row by row.
 *
 * A format is a table of functions over one open file at a time; what they share – several files, bad rows,
 * positions – is here. Rows leave a source encoded, or, for a source with a fit, are only learnt from. One
 * thread at a time. */
#ifndef PH_DATA_SOURCE_H
#define PH_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "data/encode/row_encoder.h"
#include "data/source/fingerprint.h"

struct ph__source;

/* Where a source stands: the next row to be read. */
struct ph__source_position {
    uint64_t file;                   /* among those of the pattern */
    uint64_t row;                    /* lines read (of text), or rows, of that file */
    uint64_t byte;                   /* of text: where the next line begins, after decompression */
    uint64_t num_rows, num_bad_rows; /* good and bad ones so far */
};

struct ph__format {
    /* Opens paths[file] and matches its columns. `position` is within it; row 0: its beginning. */
    ph_status (*open)(struct ph__source *source, const struct ph__source_position *position);
    void (*close)(struct ph__source *source); /* also after a failed open */
    /* Moves to the next row. What fails here is the file's fault and ends the reading. */
    ph_status (*fetch)(struct ph__source *source, bool *is_end_out);
    /* Gives the row's cells to source->row. PH_ERROR_DATA: this row is bad, the next one may be good. */
    ph_status (*encode)(struct ph__source *source);
    /* "train.csv:12", the place of the row, into the caller's buffer. */
    void (*locate)(const struct ph__source *source, char *text, size_t size);
    /* Sets row and byte to the next row's. */
    void (*tell)(const struct ph__source *source, struct ph__source_position *position);
};

struct ph__source_options {
    bool needs_no_labels;                /* labels, weights and groups may be missing from the file */
    uint64_t max_bad_rows;               /* more are an error; the error is the one bad row too many */
    const struct ph_dataset *dataset;    /* NULL, or whose rows are read, its batches in the place of files */
    struct ph__fingerprint *fingerprint; /* NULL, or of the path's files, and carried on */
    const volatile int
        *stop_signal;    /* NULL, or once it is not 0 reading text fails with PH_ERROR_INTERRUPTED */
    struct ph__fit *fit; /* NULL, or learns from the rows instead of encoding them */
    const struct ph__source_position *start; /* NULL: the beginning. Of text, a byte without a row is a place
                                                whose lines before have not been counted: errors count them
                                                then. Borrowed during open. */
    bool is_one_file;                        /* reading ends with the file that `start` names */
    uint64_t
        end_byte; /* of text, with is_one_file: lines that begin at or behind it are not read; 0: all are */
};

struct ph__source {
    const struct ph__format *format;
    const struct ph_encoder *encoder;
    struct ph__source_options options;
    struct ph__arena arena; /* the paths */
    const char **paths;
    size_t num_paths;
    size_t file; /* the open one */
    bool is_open;
    bool is_uncounted; /* the lines before the start are not known */
    struct ph__row_encoder row;
    uint64_t num_rows, num_bad_rows;
    uint64_t num_encoded;    /* rows that were encoded so far, bad ones included: what the pass has cost */
    char first_bad_row[512]; /* its place and what was wrong with it; "": none. Of an uncounted start without
                                the line, unless it has ended the reading: that would take reading all before
                                it */
    uint64_t first_bad_line; /* among the lines since the start */
    char first_bad_reason[512];
    void *state; /* of the format, for the open file */
};

/* A path with *, ? or [ that is no file itself is a pattern; its files come in the order of their names. "-"
 * is standard input. Of a dataset the path is only its name in errors. Errors: PH_ERROR_DATA. To be closed
 * also on failure. */
ph_status ph__source_open(struct ph__source *source, const struct ph_encoder *encoder, const char *path,
    const struct ph__source_options *options);
void ph__source_close(struct ph__source *source);

/* Encodes the next good row behind those in `rows` (with a fit: nothing is appended); *is_end_out when there
 * was none. */
ph_status ph__source_next(struct ph__source *source, struct ph__rows *rows, bool *is_end_out);
/* Goes over so many rows without encoding them, fewer only at the end; bad ones are not noticed, and count as
 * good. */
ph_status ph__source_skip(struct ph__source *source, uint64_t count, uint64_t *num_skipped_out);
/* Goes back to where the source once stood. */
ph_status ph__source_return(struct ph__source *source, const struct ph__source_position *position);
void ph__source_tell(const struct ph__source *source, struct ph__source_position *position_out);

/* Gives the checksum that takes in the bytes of a file of the open path, by its name; NULL: none does. */
struct ph__running_checksum *ph__source_checksum(const struct ph__source *source, const char *name);

extern const struct ph__format ph__format_delimited; /* csv, tsv, criteo, avazu */
extern const struct ph__format ph__format_libsvm;    /* libsvm, libffm */
extern const struct ph__format ph__format_npy;
extern const struct ph__format ph__format_arrow; /* a dataset */

#endif
