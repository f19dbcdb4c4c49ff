/* One column of a batch in Arrow's columnar format, as the Arrow C data interface hands it over
 * (https://arrow.apache.org/docs/format/CDataInterface.html and Columnar.html).
 *
 * A column keeps the schema's type and the places of the buffers; nothing is copied. Sizes and places that
 * can be checked without reading the rows are checked when a column is made, others when a value is read. Any
 * number of threads may read. */
#ifndef PH_DATA_ARROW_COLUMN_H
#define PH_DATA_ARROW_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/data.h"

enum ph__arrow_kind {
    PH_ARROW_UNKNOWN, /* other types: an error only when the column is wanted */
    PH_ARROW_BLANK,   /* the null type */
    PH_ARROW_INTEGER, /* bool, and integers except uint64 */
    PH_ARROW_UINT64,
    PH_ARROW_REAL,
    PH_ARROW_TEXT,
    PH_ARROW_TIME,       /* dates and timestamps */
    PH_ARROW_DECIMAL,    /* 128 bits */
    PH_ARROW_DICTIONARY, /* indices into `child` */
    PH_ARROW_LIST,       /* ranges of `child` */
};

/* Unit of the numbers in a column of times. */
struct ph__arrow_clock {
    int64_t ticks_a_day; /* 0: the format is not a date or a time since 1970 */
    int num_digits;      /* digits of the fraction of a second */
    bool is_date;        /* true: without the time of day */
};

struct ph__arrow_column {
    char *name, *format; /* owned by the arena */
    enum ph__arrow_kind kind;
    char code;                       /* first character of the format; for times that of their integers */
    struct ph__arrow_clock clock;    /* times only */
    int64_t length, offset;          /* rows, and the place of the first one in the buffers */
    const unsigned char *validity;   /* NULL: nothing is null */
    const unsigned char *values;     /* numbers, bits, offsets or views; NULL for a list of fixed size */
    const unsigned char *text;       /* text that the offsets point into; NULL: none */
    const void *const *text_buffers; /* views: (num_text_buffers), and their sizes */
    const unsigned char *text_sizes;
    int64_t num_text_buffers;
    int64_t list_size;              /* list of fixed size */
    int scale;                      /* decimals: digits behind the point */
    struct ph__arrow_column *child; /* values of a dictionary, or items of a list: scalars */
};

/* Makes column `index` of a record batch (a struct array). Borrows the batch's buffers until the batch is
 * released, and nothing of the schema. PH_ERROR_DATA naming the column when batch and schema disagree. */
ph_status ph__arrow_column_init(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *batch, int64_t index, struct ph__arrow_column *column_out);

/* PH_ERROR_DATA naming column and format unless values of the column's type can be read. */
ph_status ph__arrow_column_check(const struct ph__arrow_column *column);

/* Return values of row `row` of a checked column, by the column's kind. The row must not be null, except for
 * ph__arrow_is_null. */
bool ph__arrow_is_null(const struct ph__arrow_column *column, int64_t row);
int64_t ph__arrow_integer(const struct ph__arrow_column *column, int64_t row); /* uint64: the bits */
double ph__arrow_real(const struct ph__arrow_column *column, int64_t row);
/* Gives a text, not NUL-terminated, borrowed from the batch. PH_ERROR_DATA when it lies outside the
 * buffers. */
ph_status ph__arrow_text(
    const struct ph__arrow_column *column, int64_t row, const char **text_out, size_t *length_out);
/* Writes a time or a decimal as text. PH_ERROR_DATA for a time outside the years 1 to 9999. */
#define PH_ARROW_WRITTEN_BYTES 64
ph_status ph__arrow_written(const struct ph__arrow_column *column, int64_t row,
    char text[PH_ARROW_WRITTEN_BYTES], size_t *length_out);
/* Give the row of the dictionary, and the items of a list: rows [first, end) of the child. */
ph_status ph__arrow_index(const struct ph__arrow_column *column, int64_t row, int64_t *index_out);
ph_status ph__arrow_items(
    const struct ph__arrow_column *column, int64_t row, int64_t *first_out, int64_t *end_out);

/* Returns true when bit `row` of a bitmap (NULL: all ones) is set. */
static inline bool ph__arrow_bit(const unsigned char *bitmap, int64_t row)
{
    return bitmap == NULL || (bitmap[row / 8] >> (row % 8) & 1) != 0;
}

#endif
