#include "train/id_coverage.h"

#include <stdlib.h>

#define WORD_BITS 64

static size_t num_words(size_t num_rows)
{
    return (num_rows + WORD_BITS - 1) / WORD_BITS;
}

ph_status ph__id_coverage_init(
    const struct ph_model_features *features, size_t max_bytes, struct ph__id_coverage *coverage_out)
{
    struct ph__id_coverage coverage = {.num_features = features->num_sparse, .features = features->sparse};
    size_t words_left = max_bytes / sizeof(uint64_t);
    coverage.seen = calloc(coverage.num_features + 1, sizeof *coverage.seen);
    ph_status status = coverage.seen != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t f = 0; f < coverage.num_features && status == PH_OK; f++) {
        size_t words = num_words(features->sparse[f].num_rows);
        if (words > words_left)
            continue;
        words_left -= words;
        coverage.seen[f] = calloc(words + 1, sizeof **coverage.seen);
        status = coverage.seen[f] != NULL ? PH_OK : PH_ERROR_MEMORY;
    }
    if (status != PH_OK) {
        ph__id_coverage_fini(&coverage);
        return ph_fail(status, "no memory to mark the rows of %zu tables", features->num_sparse);
    }
    *coverage_out = coverage;
    return PH_OK;
}

void ph__id_coverage_fini(struct ph__id_coverage *coverage)
{
    for (size_t f = 0; coverage->seen != NULL && f < coverage->num_features; f++)
        free(coverage->seen[f]);
    free(coverage->seen);
    *coverage = (struct ph__id_coverage){0};
}

/* The ids of a feature: its bags lie one behind the other. */
static const int64_t *ids_of(const struct ph_batch *batch, size_t feature, size_t *count_out)
{
    size_t first = batch->offsets[feature * batch->num_samples];
    *count_out = batch->offsets[(feature + 1) * batch->num_samples] - first;
    return batch->ids + first;
}

void ph__id_coverage_learn(struct ph__id_coverage *coverage, const struct ph_batch *batch)
{
    for (size_t f = 0; f < coverage->num_features && !coverage->is_whole; f++) {
        uint64_t *seen = coverage->seen[f];
        size_t count;
        const int64_t *ids = ids_of(batch, f, &count);
        for (size_t i = 0; seen != NULL && i < count; i++)
            seen[(uint64_t)ids[i] / WORD_BITS] |= (uint64_t)1 << (uint64_t)ids[i] % WORD_BITS;
    }
}

void ph__id_coverage_count(
    const struct ph__id_coverage *coverage, const struct ph_batch *batch, struct ph__id_counts *counts)
{
    for (size_t f = 0; f < coverage->num_features; f++) {
        const uint64_t *seen = coverage->seen[f];
        size_t count;
        const int64_t *ids = ids_of(batch, f, &count);
        counts[f].ids += count;
        for (size_t i = 0; i < count; i++) {
            uint64_t id = (uint64_t)ids[i];
            counts[f].unknown += id == 0;
            counts[f].unseen += seen != NULL && (seen[id / WORD_BITS] >> id % WORD_BITS & 1) == 0;
        }
    }
}

bool ph__id_coverage_follows(const struct ph__id_coverage *coverage, size_t feature)
{
    return feature < coverage->num_features && coverage->seen[feature] != NULL;
}

uint64_t ph__id_coverage_rows_seen(const struct ph__id_coverage *coverage, size_t feature)
{
    uint64_t rows = 0;
    for (size_t w = 0; w < num_words(coverage->features[feature].num_rows); w++)
        rows += (uint64_t)__builtin_popcountll(coverage->seen[feature][w]);
    return rows;
}
