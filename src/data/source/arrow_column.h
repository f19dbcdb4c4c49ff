/* One column of a batch in Arrow's columnar format, as the Arrow C data interface hands it over
 * (https://arrow.apache.org/docs/format/CDataInterface.html and Columnar.html).
 *
 * What the schema says is kept, and where the buffers lie; nothing is copied. Sizes and places that can be
 * checked without reading the rows are checked when a column is made, others when a value is read. Any number
 * of threads may read. */
#ifndef PH_DATA_ARROW_COLUMN_H
#define PH_DATA_ARROW_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "phloem/data.h"

enum ph__arrow_kind {
    PH_ARROW_UNKNOWN, /* of a type that is not read: an error only when somebody wants the column */
    PH_ARROW_BLANK,   /* the null type */
    PH_ARROW_INTEGER, /* bool and unsigned integers but uint64 included */
    PH_ARROW_UINT64,
    PH_ARROW_REAL,
    PH_ARROW_TEXT,
    PH_ARROW_TIME,       /* dates and timestamps */
    PH_ARROW_DECIMAL,    /* of 128 bits */
    PH_ARROW_DICTIONARY, /* indices into `child` */
    PH_ARROW_LIST,       /* ranges of `child` */
};

/* How the numbers of a column of times count. */
struct ph__arrow_clock {
    int64_t ticks_a_day; /* 0: the format is none of a date or a time since 1970 */
    int num_digits;      /* of a fraction of a second */
    bool is_date;        /* the time of day is not told */
};

struct ph__arrow_column {
    char *name, *format; /* of the arena */
    enum ph__arrow_kind kind;
    char code;                       /* the first character of the format, of times that of their integers */
    struct ph__arrow_clock clock;    /* of times */
    int64_t length, offset;          /* rows, and where the first of them lies in the buffers */
    const unsigned char *validity;   /* NULL: nothing is null */
    const unsigned char *values;     /* numbers, bits, offsets or views; NULL of a list of fixed size */
    const unsigned char *text;       /* what the offsets point into; NULL: nothing */
    const void *const *text_buffers; /* of views: (num_text_buffers), and their sizes */
    const unsigned char *text_sizes;
    int64_t num_text_buffers;
    int64_t list_size;              /* of a list of fixed size */
    int scale;                      /* of decimals: digits behind the point */
    struct ph__arrow_column *child; /* of a dictionary or list: scalars */
};

/* Makes column `index` of a record batch (a struct array). Borrows the batch's buffers until it is released;
 * of the schema nothing. PH_ERROR_DATA naming the column when batch and schema disagree. */
ph_status ph__arrow_column_init(struct ph__arena *arena, const struct ArrowSchema *schema,
    const struct ArrowArray *batch, int64_t index, struct ph__arrow_column *column_out);

/* PH_ERROR_DATA naming column and format unless values of its type can be read. */
ph_status ph__arrow_column_check(const struct ph__arrow_column *column);

/* Of row `row` of a column that has been checked. The others are of rows that are not null, by the column's
 * kind. */
bool ph__arrow_is_null(const struct ph__arrow_column *column, int64_t row);
int64_t ph__arrow_integer(const struct ph__arrow_column *column, int64_t row); /* of uint64: its bits */
double ph__arrow_real(const struct ph__arrow_column *column, int64_t row);
/* Not NUL-terminated; borrowed from the batch. PH_ERROR_DATA when it lies nowhere. */
ph_status ph__arrow_text(
    const struct ph__arrow_column *column, int64_t row, const char **text_out, size_t *length_out);
/* Times and decimals as they are written. PH_ERROR_DATA for a time that cannot be. */
#define PH_ARROW_WRITTEN_BYTES 64
ph_status ph__arrow_written(const struct ph__arrow_column *column, int64_t row,
    char text[PH_ARROW_WRITTEN_BYTES], size_t *length_out);
/* The row of the dictionary, and the items of a list: rows [first, end) of the child. */
ph_status ph__arrow_index(const struct ph__arrow_column *column, int64_t row, int64_t *index_out);
ph_status ph__arrow_items(
    const struct ph__arrow_column *column, int64_t row, int64_t *first_out, int64_t *end_out);

/* Whether bit `row` of a bitmap (NULL: all ones) is set. */
static inline bool ph__arrow_bit(const unsigned char *bitmap, int64_t row)
{
    return bitmap == NULL || (bitmap[row / 8] >> (row % 8) & 1) != 0;
}

#endif
