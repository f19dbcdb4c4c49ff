/* Reads of a table's rows, as the facts of a batch give them: bins by how often a row is read (plan.h). */
#ifndef PH_PLAN_SEARCH_PLAN_ACCESSES_H
#define PH_PLAN_SEARCH_PLAN_ACCESSES_H

#include "plan/plan.h"

/* Returns how many of num_rows rows num_ids of the table's ids name at least once: by the mean number of
 * accesses where that is known, else as for uniform ids. */
double ph__distinct_rows(const struct ph__table_facts *table, double num_rows, double num_ids);

/* A run of a table's rows that are read about equally often. */
struct ph__access_step {
    double rows;
    double reads; /* a step of the job, of all these rows together */
};

enum { PH_MOST_ACCESS_STEPS = PH_ACCESS_BINS + 1 };

/* Describes num_rows of a table's rows, which num_ids of a step's ids read, by its accesses in a batch: rows
 * of falling reads. A step's batch reads other rows than the one that was counted, so each bin gets the reads
 * to be expected of its rows in the *next* batch: rows without a read get those of rows with one read, and
 * these get those of rows with two. Where accesses are not known, all rows are read equally often. Returns
 * the number of steps.
 *
 * Source: Good 1953 (Biometrika 40, 237-264), equation 2. */
size_t ph__access_steps(const struct ph__table_facts *table, double num_rows, double num_ids,
    struct ph__access_step steps_out[PH_MOST_ACCESS_STEPS]);

#endif
