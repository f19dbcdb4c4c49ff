#include "train/cost/locality.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "base/text/number.h"

#define ROUNDED .02 /* how far figures that were printed with few digits may contradict each other */

size_t ph__access_bin(uint64_t reads)
{
    size_t bin = 0;
    while (bin + 1 < PH_ACCESS_BINS && reads > (uint64_t)1 << bin)
        bin++;
    return bin;
}

double ph__access_bin_floor(size_t bin)
{
    return bin == 0 ? 0 : ldexp(1, (int)bin - 1);
}

/* ---- files ---- */

/* Gives the text behind `begin` in the next line. */
static ph_status take(struct ph__reader *reader, const char *begin, const char **rest_out)
{
    char *line;
    size_t length;
    PH_TRY(ph__reader_line(reader, &line, &length));
    const size_t begin_length = strlen(begin);
    if (line == NULL || strncmp(line, begin, begin_length) != 0)
        return ph_fail(PH_ERROR_CONFIG, "%s:%" PRIu64 ": expected '%s', but found '%s'",
            ph__reader_path(reader), ph__reader_line_number(reader) + (line == NULL), begin,
            line == NULL ? "the end of the file" : line);
    *rest_out = line + begin_length;
    return PH_OK;
}

static ph_status take_number(
    struct ph__reader *reader, const char *begin, double least, double most, double *number_out)
{
    const char *text;
    double number;
    PH_TRY(take(reader, begin, &text));
    if (!ph__number_parse(text, &number) || !(number >= least && number <= most))
        return ph_fail(PH_ERROR_CONFIG, "%s:%" PRIu64 ": expected a number from %g to %g, but found '%s'",
            ph__reader_path(reader), ph__reader_line_number(reader), least, most, text);
    *number_out = number;
    return PH_OK;
}

/* Reads "(2, 4]: 0.139" for each bin, then two lines of edges and running sums, which say the same. */
static ph_status take_histogram(
    struct ph__reader *reader, const char *title, double shares_out[PH_ACCESS_BINS])
{
    const char *rest;
    double sum = 0;
    PH_TRY(take(reader, title, &rest));
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        char begin[48];
        const double low = ph__access_bin_floor(bin);
        if (bin + 1 < PH_ACCESS_BINS)
            snprintf(begin, sizeof begin, "(%.0f, %.0f]: ", low, ph__access_bin_floor(bin + 1));
        else
            snprintf(begin, sizeof begin, "(%.0f+: ", low);
        PH_TRY(take_number(reader, begin, 0, 1, &shares_out[bin]));
        sum += shares_out[bin];
    }
    if (fabs(sum - 1) > ROUNDED)
        return ph_fail(PH_ERROR_CONFIG, "%s:%" PRIu64 ": the shares of '%s' sum to %g, not to 1",
            ph__reader_path(reader), ph__reader_line_number(reader), title, sum);
    PH_TRY(take(reader, "[", &rest));
    return take(reader, "[", &rest);
}

/* Finds the number of tables in a title such as "fbgemm_t856_bs65536.pt". */
static ph_status take_tables(struct ph__reader *reader, double *tables_out)
{
    const char *title;
    PH_TRY(take(reader, "", &title));
    const char *mark = strstr(title, "_t");
    const double tables = mark != NULL ? strtod(mark + 2, NULL) : 0;
    if (!(tables >= 1 && isfinite(tables)))
        return ph_fail(PH_ERROR_CONFIG,
            "%s:%" PRIu64 ": expected a title with '_t' and a number of tables, but found '%s'",
            ph__reader_path(reader), ph__reader_line_number(reader), title);
    *tables_out = tables;
    return PH_OK;
}

static ph_status read_section(struct ph__reader *reader, struct ph__locality *locality)
{
    double tables, batch_size, ids, rows;
    const double most = 1e15;
    PH_TRY(take_tables(reader, &tables));
    PH_TRY(take_number(reader, "Locality stats after processing 1 batches of size ", 1, most, &batch_size));
    PH_TRY(take_number(reader, "Avg # of indices: ", 1, most, &ids));
    PH_TRY(take_number(reader, "Avg # of unique cols: ", 1, ids, &rows));
    PH_TRY(take_number(reader, "Avg col size: ", 1, most, &locality->reuse));
    if (fabs(locality->reuse * rows / ids - 1) > ROUNDED)
        return ph_fail(PH_ERROR_CONFIG, "%s:%" PRIu64 ": %g ids of %g rows are %g a row, not %g",
            ph__reader_path(reader), ph__reader_line_number(reader), ids, rows, ids / rows, locality->reuse);
    PH_TRY(take_histogram(reader, "Histogram of col sizes:", locality->rows));
    PH_TRY(
        take_histogram(reader, "Ratio of index distribution at different column sizes:", locality->accesses));
    locality->pooling = ids / (tables * batch_size);
    locality->reuse = ids / rows;
    return PH_OK;
}

ph_status ph__locality_read(const char *path, struct ph__locality *locality_out)
{
    struct ph__reader *reader;
    struct ph__locality locality;
    PH_TRY(ph__reader_open(path, &reader));
    const ph_status status = read_section(reader, &locality);
    ph__reader_close(reader);
    if (status == PH_OK)
        *locality_out = locality;
    return status;
}

/* ---- power laws ---- */

/* Adds a table of the weights rank^-exponent. A row that is expected less than once is read with probability
 * 1 - e^-expected, then once. */
static void add_power_law(double exponent, size_t num_rows, double num_ids, struct ph__locality *sums)
{
    double total = 0;
    for (size_t rank = 1; rank <= num_rows; rank++)
        total += pow((double)rank, -exponent);
    for (size_t rank = 1; rank <= num_rows; rank++) {
        const double expected = num_ids * pow((double)rank, -exponent) / total;
        const double rows = expected >= 1 ? 1 : 1 - exp(-expected);
        const double reads = expected >= 1 ? round(expected) : 1;
        const size_t bin = ph__access_bin((uint64_t)reads);
        sums->rows[bin] += rows;
        sums->accesses[bin] += rows * reads;
    }
}

void ph__locality_default(struct ph__locality *locality_out)
{
    static const double exponents[] = {.6, .8, 1, 1.2};
    enum { NUM_ROWS = 100000 };
    struct ph__locality sums = {.pooling = 12};
    double rows = 0, reads = 0;
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        add_power_law(exponents[i], NUM_ROWS, 4 * NUM_ROWS, &sums);
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        rows += sums.rows[bin];
        reads += sums.accesses[bin];
    }
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++) {
        sums.rows[bin] /= rows;
        sums.accesses[bin] /= reads;
    }
    sums.reuse = reads / rows;
    *locality_out = sums;
}
