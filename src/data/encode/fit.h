/* The encoder's fit to the training rows: the ids of its vocabularies with their counts, the statistics of
 * its dense columns, and samples for quantiles.
 *
 * A fit is gathered in one pass. Any number of fits may gather parts of the data; merging them in the order
 * of the parts gives the same as one pass over the whole, bit for bit: ids keep the order of their first
 * appearance, sums are exact, and the hash of a row's key decides whether the row is in the sample. One
 * thread at a time per fit. */
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

/* Add a number, a number's square, or another sum. */
void ph__exact_sum_add(struct ph__exact_sum *sum, float number);
void ph__exact_sum_add_square(struct ph__exact_sum *sum, float number);
void ph__exact_sum_merge(struct ph__exact_sum *sum, const struct ph__exact_sum *other);
/* Returns true when bytes that were read can be a sum: merging 65,536 such sums does not overflow. */
bool ph__exact_sum_is_sound(const struct ph__exact_sum *sum);

/* Returns the sum, rounded. */
long double ph__exact_sum_value(const struct ph__exact_sum *sum);

/* ---- fits ---- */

#define PH_QUANTILE_SAMPLE 65536

/* Sample of the values with the smallest hashes; independent of how the rows were cut into parts. */
struct ph__sample {
    struct ph__sampled {
        uint64_t hash;
        double value;
    } * items; /* heap with the largest hash first */
    size_t count, capacity;
};

/* Numbers of a column; fit files hold the struct as it is. */
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

/* Value of the row in the making. */
struct ph__fit_value {
    size_t column;
    double value; /* NaN: blank */
};

struct ph__fit {
    const struct ph_encoder *encoder; /* columns to learn; vocabularies still empty */
    struct ph__fit_column *columns;   /* by column */
    struct ph__fit_value *values;     /* values of the row in the making */
    size_t num_values, values_capacity;
    uint64_t num_rows;
    uint64_t row_key; /* set by the source: key of the row in the making, the same wherever the row is read */
};

/* Returns the first column that needs the pass; NULL: none. */
const struct ph__column *ph__fit_first_wanted(const struct ph_encoder *encoder);

ph_status ph__fit_init(struct ph__fit *fit, const struct ph_encoder *encoder);
void ph__fit_fini(struct ph__fit *fit);

/* Take the row encoder's values: a dense value or a number for a bucket, then the end of a good row, whose
 * ids are in `lookups`. A bad row is dropped with ph__fit_drop_row. */
ph_status ph__fit_value(struct ph__fit *fit, const struct ph__column *column, double value);
ph_status ph__fit_row(struct ph__fit *fit, const struct ph__lookups *lookups);
static inline void ph__fit_drop_row(struct ph__fit *fit)
{
    fit->num_values = 0;
}

/* Merges a column, except its vocabulary, of a fit that gathered later rows. */
ph_status ph__fit_column_merge(struct ph__fit_column *column, const struct ph__fit_column *later);

/* Returns the bytes of memory that the fit takes, mostly for vocabularies. */
uint64_t ph__fit_bytes(const struct ph__fit *fit);

/* Moves vocabularies, statistics and boundaries into the encoder; the fit is empty afterwards. */
ph_status ph__fit_finish(struct ph__fit *fit, struct ph_encoder *encoder);

#endif
