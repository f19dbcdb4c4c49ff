/* Synthetic tables whose costs are measured: together they have given statistics of locality, each one its
 * own.
 *
 * Design: a row of bin k is read c_k times on average, the same in all tables. Then the mixture of all tables
 * has both histograms and the mean reuse of the statistics as soon as its reads are spread over the bins as
 * theirs. Each table draws its reads (log-normal), and a bin around which they lie more or less densely: rows
 * of one table are read alike, those of another very unlike. Alternate scaling of tables and bins (iterative
 * proportional fitting) brings the mixture back. Rows are whole: what rounding leaves in a bin goes to the
 * next table. */
#ifndef PH_TRAIN_COST_TABLES_H
#define PH_TRAIN_COST_TABLES_H

#include "base/rng.h"
#include "train/cost/locality.h"

enum { PH_COST_NUM_DIMS = 10 };
extern const size_t ph__cost_dims[PH_COST_NUM_DIMS]; /* ascending; a half of one is one, where 4 divides it */

/* A table, and the reads of a batch of the size that it was generated for. */
struct ph__cost_table {
    uint64_t num_rows;
    size_t dim;
    double ids_per_sample;
    double accesses[PH_ACCESS_BINS]; /* share of the rows read, as in struct ph__table_facts */
    uint64_t num_ids, num_read;      /* reads of a batch, and rows that they read */
    uint64_t rows[PH_ACCESS_BINS];   /* rows that are read so often; sum: num_read */
    uint64_t ids[PH_ACCESS_BINS];    /* reads of these; sum: num_ids */
};

/* Generates (num_tables) tables; the same for the same seed. PH_ERROR_MEMORY. */
ph_status ph__cost_tables_make(const struct ph__locality *locality, size_t batch_size, size_t num_tables,
    uint64_t seed, struct ph__cost_table *tables_out);

struct ph__cost_split {
    size_t num_train, num_valid, num_test; /* in this order among the tables */
};
/* Shuffles the tables and splits them 80 : 10 : 10, so that a net is tested on tables that it never saw. */
struct ph__cost_split ph__cost_tables_split(struct ph__cost_table *tables, size_t num_tables, uint64_t seed);

/* Draws the ids of a batch (num_ids), in [0, range): distinct rows where the range suffices, each read as
 * often as its bin says, in random order. range > 0, below 2^32. Needs scratch (num_read). */
void ph__cost_ids_draw(const struct ph__cost_table *table, uint64_t range, struct ph__rng_sequence *rng,
    uint32_t *scratch, uint32_t *ids_out);

/* Counts how often ids read each row, and gives each bin's share of the rows read. Sorts the ids. */
void ph__accesses_count(int64_t *ids, size_t num_ids, double shares_out[PH_ACCESS_BINS]);

#endif
