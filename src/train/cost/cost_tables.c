#include "train/cost/cost_tables.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

const size_t ph__cost_dims[PH_COST_NUM_DIMS] = {4, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/* ---- the mixture ---- */

/* Gives the mean reads of a row of each bin: reuse * accesses / rows, where the share of rows is more than a
 * rounded digit, else the middle of the bin. */
static void mean_reads(const struct ph__locality *locality, double reads_out[PH_ACCESS_BINS])
{
    const double least_share = .01; /* three decimals: exact to a twentieth */
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        const double low = floor(ph__access_bin_floor(bin)) + 1;
        const double high = bin + 1 < PH_ACCESS_BINS ? ldexp(1, (int)bin) : 2 * low;
        double reads = sqrt(low * high);
        if (locality->rows[bin] >= least_share)
            reads = locality->reuse * locality->accesses[bin] / locality->rows[bin];
        reads_out[bin] = fmin(fmax(reads, low), high);
    }
}

/* Draws each table's reads, and a spread of them over the bins that its reads can fill. */
static void draw_tables(const struct ph__locality *locality, const double reads[PH_ACCESS_BINS], double total,
    size_t num_tables, uint64_t seed, double (*spread_out)[PH_ACCESS_BINS], double *ids_out)
{
    struct ph__rng_sequence rng = {.key = {seed, 0, ph__hash_name("cost.tables")}};
    double sum = 0;
    for (size_t t = 0; t < num_tables; t++) {
        ids_out[t] = exp(ph__rng_next_normal(&rng));
        sum += ids_out[t];
    }
    for (size_t t = 0; t < num_tables; t++) {
        const double centre = PH_ACCESS_BINS * ph__rng_next_uniform(&rng);
        const double narrowness = 2 * ph__rng_next_uniform(&rng); /* 1 / deviation, in bins */
        ids_out[t] *= total / sum;
        for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
            const double distance = ((double)bin - centre) * narrowness;
            spread_out[t][bin] = bin == 0 || reads[bin] <= ids_out[t]
                                     ? (locality->accesses[bin] + 1e-9) * exp(-.5 * distance * distance)
                                     : 0;
        }
    }
}

/* Scales bins, then tables, in turn, until the mixture has the shares of the statistics. */
static void fit_mixture(const struct ph__locality *locality, double total, size_t num_tables,
    const double *ids, double (*spread)[PH_ACCESS_BINS])
{
    enum { ROUNDS = 200 };
    for (size_t round = 0; round < 2 * ROUNDS; round++) {
        double sums[PH_ACCESS_BINS] = {0};
        for (size_t t = 0; t < num_tables; t++) {
            double sum = 0;
            for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
                sum += spread[t][bin];
            for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
                spread[t][bin] *= ids[t] / sum;
                sums[bin] += spread[t][bin];
            }
        }
        for (size_t t = 0; t < num_tables; t++)
            for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
                spread[t][bin] *= sums[bin] > 0 ? locality->accesses[bin] * total / sums[bin] : 0;
    }
}

/* Rounds a table's rows, and takes them from what is left of the bins. */
static void round_rows(const double reads[PH_ACCESS_BINS], const double spread[PH_ACCESS_BINS],
    double left[PH_ACCESS_BINS], struct ph__cost_table *table)
{
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        left[bin] += spread[bin] / reads[bin];
        const double rows = spread[bin] > 0 ? fmax(0, round(left[bin])) : 0;
        left[bin] -= rows;
        table->rows[bin] = (uint64_t)rows;
        table->ids[bin] = (uint64_t)round(rows * reads[bin]);
    }
    table->rows[0] += table->rows[0] == 0; /* no table is empty */
    table->ids[0] = table->rows[0];
}

static void finish_table(size_t batch_size, struct ph__rng_sequence *rng, struct ph__cost_table *table)
{
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        table->num_ids += table->ids[bin];
        table->num_read += table->rows[bin];
    }
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        table->accesses[bin] = (double)table->rows[bin] / (double)table->num_read;
    table->ids_per_sample = (double)table->num_ids / (double)batch_size;
    /* log-uniform: a batch reads all of the rows, or a thousandth of them */
    table->num_rows = (uint64_t)ceil((double)table->num_read * pow(1000, ph__rng_next_uniform(rng)));
    table->dim = ph__cost_dims[ph__rng_below(rng, PH_COST_NUM_DIMS)];
}

ph_status ph__cost_tables_make(const struct ph__locality *locality, size_t batch_size, size_t num_tables,
    uint64_t seed, struct ph__cost_table *tables_out)
{
    const double total = locality->pooling * (double)batch_size * (double)num_tables;
    struct ph__rng_sequence rng = {.key = {seed, 0, ph__hash_name("cost.rows")}};
    double reads[PH_ACCESS_BINS], left[PH_ACCESS_BINS] = {0};
    double *ids = calloc(num_tables, sizeof *ids);
    double(*spread)[PH_ACCESS_BINS] = calloc(num_tables, sizeof *spread);
    if (ids == NULL || spread == NULL) {
        free(spread);
        free(ids);
        return ph_fail(PH_ERROR_MEMORY, "out of memory: %zu synthetic tables", num_tables);
    }
    mean_reads(locality, reads);
    draw_tables(locality, reads, total, num_tables, seed, spread, ids);
    fit_mixture(locality, total, num_tables, ids, spread);
    for (size_t t = 0; t < num_tables; t++) {
        tables_out[t] = (struct ph__cost_table){0};
        round_rows(reads, spread[t], left, &tables_out[t]);
        finish_table(batch_size, &rng, &tables_out[t]);
    }
    free(spread);
    free(ids);
    return PH_OK;
}

struct ph__cost_split ph__cost_tables_split(struct ph__cost_table *tables, size_t num_tables, uint64_t seed)
{
    struct ph__rng_sequence rng = {.key = {seed, 0, ph__hash_name("cost.split")}};
    for (size_t i = num_tables; i > 1; i--) {
        const size_t other = (size_t)ph__rng_below(&rng, i);
        const struct ph__cost_table table = tables[i - 1];
        tables[i - 1] = tables[other];
        tables[other] = table;
    }
    const size_t tenth = num_tables / 10;
    return (struct ph__cost_split){num_tables - 2 * tenth, tenth, tenth};
}

/* ---- ids ---- */

/* Draws one row from each of num_rows equal runs of the range. */
static void draw_rows(uint64_t range, struct ph__rng_sequence *rng, size_t num_rows, uint32_t *rows_out)
{
    for (size_t i = 0; i < num_rows; i++) {
        const uint64_t first = range * i / num_rows, end = range * (i + 1) / num_rows;
        rows_out[i] = (uint32_t)(end > first ? first + ph__rng_below(rng, end - first) : first);
    }
    ph__rng_shuffle(rng, rows_out, num_rows);
}

void ph__cost_ids_draw(const struct ph__cost_table *table, uint64_t range, struct ph__rng_sequence *rng,
    uint32_t *scratch, uint32_t *ids_out)
{
    const uint32_t *row = scratch;
    size_t count = 0;
    draw_rows(range, rng, (size_t)table->num_read, scratch);
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        for (size_t i = 0; i < table->rows[bin]; i++, row++)
            for (size_t end = count +
                              ph__range_start((size_t)table->ids[bin], i + 1, (size_t)table->rows[bin]) -
                              ph__range_start((size_t)table->ids[bin], i, (size_t)table->rows[bin]);
                 count < end; count++)
                ids_out[count] = *row;
    ph__rng_shuffle(rng, ids_out, count);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

void ph__accesses_count(int64_t *ids, size_t num_ids, double shares_out[PH_ACCESS_BINS])
{
    size_t num_rows = 0;
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        shares_out[bin] = 0;
    if (num_ids > 0)
        qsort(ids, num_ids, sizeof *ids, compare_ids);
    for (size_t i = 0, end; i < num_ids; i = end, num_rows++) {
        for (end = i + 1; end < num_ids && ids[end] == ids[i];)
            end++;
        shares_out[ph__access_bin(end - i)]++;
    }
    for (size_t bin = 0; num_rows > 0 && bin < PH_ACCESS_BINS; bin++)
        shares_out[bin] /= (double)num_rows;
}
