/* What an encoder learns from the training rows: the ids of its vocabularies with their counts, the
 * statistics of its dense columns, and samples for quantiles.
 *
 * One pass gathers, any number of gatherers may work on parts of the data, and merging them in the order of
 * the parts gives what one pass over the whole gives, bit for bit: ids keep the order of their first
 * appearance, sums are exact and the sample is chosen by the hash of a row's key. One thread at a time per
 * gatherer. */
#ifndef PH_DATA_FIT_H
#define PH_DATA_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/encode/encoder.h"

/* ---- exact sums ---- */

/* Sums of floats and of their squares without rounding, so that they depend neither on order nor on grouping.
 *
 * A fixed-point number of 32-bit digits, wide enough for any finite float, its square, and 2^60 of them:
 * digit i counts units of 2^(32 i - 352). A digit is kept in 64 bits, so that many additions need no carry.
 */
#define PH_EXACT_SUM_DIGITS 21

struct ph__exact_sum { /* zero-initialised is 0 */
    int64_t digits[PH_EXACT_SUM_DIGITS];
    uint32_t num_additions; /* since the last carry */
};

/* Add the number, its square, or all that another sum has. */
void ph__exact_sum_add(struct ph__exact_sum *sum, float number);
void ph__exact_sum_add_square(struct ph__exact_sum *sum, float number);
void ph__exact_sum_merge(struct ph__exact_sum *sum, const struct ph__exact_sum *other);
/* Tells whether bytes that were read can be a sum, so that no merge of 65,536 such overflows. */
bool ph__exact_sum_is_sound(const struct ph__exact_sum *sum);

/* Gives the sum, rounded. */
long double ph__exact_sum_value(const struct ph__exact_sum *sum);

/* ---- fits ---- */

#define PH_QUANTILE_SAMPLE 65536

/* The values whose hashes are the smallest: a sample that does not depend on how the rows were cut. */
struct ph__sample {
    struct ph__sampled {
        uint64_t hash;
        double value;
    } * items; /* a heap, the largest hash first */
    size_t count, capacity;
};

/* The numbers of a column. Fit files hold them as they are. */
struct ph__fit_totals {
    uint64_t num_values, num_blanks;
    double min, max;
    struct ph__exact_sum sum, sum_of_squares; /* of values rounded to float */
};

struct ph__fit_column {
    struct ph__vocabulary vocabulary;
    struct ph__fit_totals totals;
    struct ph__sample sample;
};

/* A value of the row in the making. */
struct ph__fit_value {
    size_t column;
    double value; /* NaN: blank */
};

struct ph__fit {
    const struct ph_encoder *encoder; /* its columns; vocabularies still empty */
    struct ph__fit_column *columns;   /* by column */
    struct ph__fit_value *values;     /* of the row in the making */
    size_t num_values, values_capacity;
    uint64_t num_rows;
    uint64_t row_key; /* set by the source: what the row in the making is called, wherever it is read */
};

/* The first column that wants the pass; NULL: none does. */
const struct ph__column *ph__fit_first_wanted(const struct ph_encoder *encoder);

ph_status ph__fit_init(struct ph__fit *fit, const struct ph_encoder *encoder);
void ph__fit_fini(struct ph__fit *fit);

/* The row encoder gives a dense value or a number to be put in a bucket, and the end of a good row, whose ids
 * are in `lookups`. Of a bad row nothing is kept: ph__fit_drop_row. */
ph_status ph__fit_value(struct ph__fit *fit, const struct ph__column *column, double value);
ph_status ph__fit_row(struct ph__fit *fit, const struct ph__lookups *lookups);
static inline void ph__fit_drop_row(struct ph__fit *fit)
{
    fit->num_values = 0;
}

/* Adds what a gatherer of the rows that follow has gathered of a column, all but its vocabulary. */
ph_status ph__fit_column_merge(struct ph__fit_column *column, const struct ph__fit_column *later);

/* Tells what memory the fit takes, vocabularies above all. */
uint64_t ph__fit_bytes(const struct ph__fit *fit);

/* Gives the encoder its vocabularies, statistics and boundaries. The fit is empty then. */
ph_status ph__fit_finish(struct ph__fit *fit, struct ph_encoder *encoder);

#endif
