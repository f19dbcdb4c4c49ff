/* Marks the rows of tables that training has learnt from, and counts the ids of an evaluation whose row is
 * not marked.
 *
 * A bit a row is set as batches come, until one whole pass over the data has been seen – later passes bring
 * the same rows – or PH_COVERAGE_IDS ids: this takes some tenths of a second a training at most. Beyond that,
 * and in a resumed training, the optimizer's slots tell (rows_learnt.h). A table whose bits do not fit into
 * the rest of PH_COVERAGE_BYTES is not followed; a smaller one after it may be. One thread at a time. */
#ifndef PH_TRAIN_ID_COVERAGE_H
#define PH_TRAIN_ID_COVERAGE_H

#include "phloem/model.h"
#include "phloem/tensor.h"

#define PH_COVERAGE_BYTES ((size_t)16 << 20) /* 134 million rows */
#define PH_COVERAGE_IDS ((uint64_t)1 << 24)

/* Counts of one feature in an evaluation. */
struct ph__id_counts {
    uint64_t ids;
    uint64_t unknown; /* row 0: in a vocabulary, ids that training had too rarely */
    uint64_t unseen;  /* rows that training has not learnt from, as far as known at the time */
    bool knows_unseen;
};

struct ph__id_coverage { /* zero-initialised: no features; nothing is counted */
    size_t num_features;
    const struct ph_table_slice *slices; /* of each feature; borrowed */
    size_t *owner;      /* by feature: the first feature with the same slice, whose rows it shares */
    uint64_t **seen;    /* by owner: bits; NULL: not followed */
    uint64_t *num_seen; /* by owner: bits that are set */
    bool *is_known;     /* by owner: the bits cover all that was learnt from */
    bool has_news;      /* bits were set since the ranks' marks were last gathered (rows_learnt.h) */
    uint64_t ids_left;  /* still to look at */
    bool is_over;       /* a whole pass has been seen, or the most ids */
};

/* features: borrowed until fini. PH_ERROR_MEMORY. */
ph_status ph__id_coverage_init(const struct ph_model_features *features, size_t max_bytes, uint64_t max_ids,
    struct ph__id_coverage *coverage_out);
void ph__id_coverage_fini(struct ph__id_coverage *coverage);

/* Marks the rows of a batch that is learnt from. Allocates nothing. */
void ph__id_coverage_learn(struct ph__id_coverage *coverage, const struct ph_batch *batch);
/* Notes that a whole pass over the training data has been learnt from. */
void ph__id_coverage_end_pass(struct ph__id_coverage *coverage);
/* Notes that something was learnt from and not marked: no feature is known any more. */
void ph__id_coverage_miss(struct ph__id_coverage *coverage);
/* Marks one row. The feature must be an owner, and followed. */
void ph__id_coverage_mark(struct ph__id_coverage *coverage, size_t feature, size_t row);

/* Returns the size of a followed owner's bits, in words of 64. */
static inline size_t ph__id_coverage_words(const struct ph__id_coverage *coverage, size_t feature)
{
    return (coverage->slices[feature].num_rows + 63) / 64;
}

/* Returns the share of a feature's rows that training has learnt from; NaN when unknown. */
double ph__id_coverage_share(const struct ph__id_coverage *coverage, size_t feature);

/* Adds a batch's ids to counts, (F). */
void ph__id_coverage_count(
    const struct ph__id_coverage *coverage, const struct ph_batch *batch, struct ph__id_counts *counts);

#endif
