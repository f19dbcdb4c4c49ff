/* Which rows of the tables training has met, and how many ids of an evaluation name a row that it has not.
 *
 * A bit a row, set as batches are learnt from until one whole pass over the data has been seen: later passes bring the
 * same rows. Tables beyond PH_COVERAGE_BYTES of bits together, the last ones, are not followed. One thread at a time. */
#ifndef PH_TRAIN_ID_COVERAGE_H
#define PH_TRAIN_ID_COVERAGE_H

#include "phloem/model.h"
#include "phloem/tensor.h"

#define PH_COVERAGE_BYTES ((size_t)16 << 20) /* 134 million rows */

/* Of one feature in an evaluation. */
struct ph__id_counts {
    uint64_t ids;
    uint64_t unknown; /* row 0: of a vocabulary, what training had too rarely */
    uint64_t unseen;  /* rows that training has not met */
};

struct ph__id_coverage { /* zero-initialised is of no features: nothing is counted */
    size_t num_features;
    const struct ph_table_slice *features; /* borrowed */
    uint64_t **seen;                       /* by feature: bits; NULL: not followed */
    bool is_whole;                         /* a whole pass has been seen: nothing is learnt any more */
};

/* features: borrowed until fini. PH_ERROR_MEMORY. */
ph_status ph__id_coverage_init(
    const struct ph_model_features *features, size_t max_bytes, struct ph__id_coverage *coverage_out);
void ph__id_coverage_fini(struct ph__id_coverage *coverage);

/* Marks the rows of a batch that is learnt from. Allocates nothing. */
void ph__id_coverage_learn(struct ph__id_coverage *coverage, const struct ph_batch *batch);
/* Adds a batch's ids to counts, (F). */
void ph__id_coverage_count(
    const struct ph__id_coverage *coverage, const struct ph_batch *batch, struct ph__id_counts *counts);

bool ph__id_coverage_follows(const struct ph__id_coverage *coverage, size_t feature);
uint64_t ph__id_coverage_rows_seen(const struct ph__id_coverage *coverage, size_t feature);

#endif
