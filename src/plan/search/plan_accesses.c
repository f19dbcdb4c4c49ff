#include "plan/search/plan_accesses.h"

#include <math.h>

#include "plan/plan_cost.h"

/* Returns how often a batch reads a row of a bin, on average: the middle of the bin. */
static double bin_reads(size_t bin)
{
    return bin == 0 ? 1 : .75 * ldexp(1, (int)bin);
}

double ph__distinct_rows(const struct ph__table_facts *table, double num_rows, double num_ids)
{
    double mean = 0;
    if (table->accesses == NULL)
        return ph__expected_rows(num_rows, num_ids);
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        mean += table->accesses[bin] * bin_reads(bin);
    return fmin(num_rows, num_ids / mean);
}

/* Adds a step behind the others, joined with those before it that are not read more often. */
static size_t add_step(struct ph__access_step *steps, size_t count, double rows, double reads)
{
    if (rows == 0 && reads == 0)
        return count;
    for (; count > 0 && reads * steps[count - 1].rows >= steps[count - 1].reads * rows; count--) {
        rows += steps[count - 1].rows;
        reads += steps[count - 1].reads;
    }
    steps[count] = (struct ph__access_step){rows, reads};
    return count + 1;
}

size_t ph__access_steps(const struct ph__table_facts *table, double num_rows, double num_ids,
    struct ph__access_step steps_out[PH_MOST_ACCESS_STEPS])
{
    const double num_read = ph__distinct_rows(table, num_rows, num_ids);
    double reads[PH_ACCESS_BINS], sum = 0;
    size_t count = 0;
    if (table->accesses == NULL)
        return add_step(steps_out, 0, num_rows, num_ids);
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        sum += reads[bin] = table->accesses[bin] * bin_reads(bin);
    for (size_t bin = 0; bin < PH_ACCESS_BINS; bin++)
        reads[bin] *= num_ids / sum;
    const double often = num_ids - reads[0], /* of rows with two reads or more */
        kept = often > 0 ? fmax(0, often - reads[1]) / often : 0;
    for (size_t bin = PH_ACCESS_BINS - 1; bin > 0; bin--)
        count = add_step(steps_out, count, num_read * table->accesses[bin], kept * reads[bin]);
    count = add_step(steps_out, count, num_read * table->accesses[0], reads[1]);
    return add_step(steps_out, count, num_rows - num_read, reads[0]);
}
