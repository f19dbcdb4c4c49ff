/* From a file's lines to encoded rows (their layout is in encoder.h). One thread at a time per reader. */
#ifndef PH_DATA_ROW_READER_H
#define PH_DATA_ROW_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stream.h"
#include "data/encoder.h"

/* Encoded rows one after the other. Zero-initialised is empty; memory is kept when num_rows is set back. */
struct ph__rows {
    uint32_t *words;
    size_t words_capacity;
    size_t *starts; /* (num_rows + 1) into words once there is a row */
    size_t starts_capacity;
    size_t num_rows;
};

struct ph__row_reader {
    const struct ph_encoder *encoder;
    struct ph_reader *reader;
    const struct ph__column **columns; /* by the file's columns; NULL: skipped */
    size_t num_columns;
    size_t *lists; /* sparse slots of list columns, in the file's order */
    size_t num_lists;
    struct ph__lookups lookups; /* of the row in the making; target: its word in the row */
    bool needs_no_labels;
    bool is_unmatched; /* a file without a header whose first row decides whether it has labels */
};

/* Opens the file and matches its columns with the encoder's: by name when there is a header (any order,
 * others are skipped), else by position. Errors: PH_ERROR_DATA. To be closed also on failure. */
ph_status ph__row_reader_open(
    struct ph__row_reader *reader, const struct ph_encoder *encoder, const char *path, bool needs_no_labels);
void ph__row_reader_close(struct ph__row_reader *reader);

/* Encodes the next row behind those in `rows`; *is_end_out when there was none. Empty lines are skipped. */
ph_status ph__row_reader_next(struct ph__row_reader *reader, struct ph__rows *rows, bool *is_end_out);

/* Appends a copy of row `index` of `from` to `rows`. */
ph_status ph__rows_append(struct ph__rows *rows, const struct ph__rows *from, size_t index);
size_t ph__rows_num_words(const struct ph__rows *rows);
void ph__rows_fini(struct ph__rows *rows);

static inline uint32_t ph__word_from_float(float number)
{
    union {
        float number;
        uint32_t word;
    } bits = {.number = number};
    return bits.word;
}

static inline float ph__word_as_float(uint32_t word)
{
    union {
        uint32_t word;
        float number;
    } bits = {.word = word};
    return bits.number;
}

#endif
