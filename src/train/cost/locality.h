/* Locality statistics of a batch of many tables: how many ids a sample has, and how often a batch reads a
 * row. They are read from a file in the form of those that accompany the dlrm_datasets, or come from a
 * mixture of power laws. */
#ifndef PH_TRAIN_LOCALITY_H
#define PH_TRAIN_LOCALITY_H

#include "plan/plan.h"

struct ph__locality {
    double pooling;                  /* ids of a sample, mean over the tables */
    double reuse;                    /* reads of a row that is read at all, mean over all tables' rows */
    double rows[PH_ACCESS_BINS];     /* share of the rows that are read so often */
    double accesses[PH_ACCESS_BINS]; /* share of the reads that go to such rows */
};

/* Returns the bin of a row that a batch reads so often, at least once. */
size_t ph__access_bin(uint64_t reads);

/* Returns the reads above which a row belongs to the bin. */
double ph__access_bin_floor(size_t bin);

/* Reads the first section of a file of locality statistics. PH_ERROR_DATA: the file cannot be read.
 * PH_ERROR_CONFIG, with file and line: a line is missing or damaged. */
ph_status ph__locality_read(const char *path, struct ph__locality *locality_out);

/* Fills the statistics of tables whose ids follow power laws. */
void ph__locality_default(struct ph__locality *locality_out);

#endif
