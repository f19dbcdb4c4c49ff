#include "train/measure/id_coverage.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"

#define WORD_BITS 64

static ph_status find_owners(struct ph__id_coverage *coverage)
{
    struct ph__name_index names = {0};
    ph_status status = PH_OK;
    for (size_t f = 0; f < coverage->num_features && status == PH_OK; f++) {
        const char *name = coverage->slices[f].name;
        status = ph__name_index_add(&names, name);
        if (status == PH_OK)
            coverage->owner[f] = ph__name_index_find(&names, name);
    }
    ph__name_index_fini(&names);
    return status;
}

static ph_status follow(struct ph__id_coverage *coverage, size_t max_bytes)
{
    size_t words_left = max_bytes / sizeof(uint64_t);
    for (size_t f = 0; f < coverage->num_features; f++) {
        size_t words = ph__id_coverage_words(coverage, f);
        if (coverage->owner[f] != f || words > words_left)
            continue;
        words_left -= words;
        coverage->seen[f] = calloc(words + 1, sizeof **coverage->seen);
        if (coverage->seen[f] == NULL)
            return PH_ERROR_MEMORY;
        coverage->is_known[f] = true;
    }
    return PH_OK;
}

ph_status ph__id_coverage_init(const struct ph_model_features *features, size_t max_bytes, uint64_t max_ids,
    struct ph__id_coverage *coverage_out)
{
    size_t count = features->num_sparse;
    struct ph__id_coverage coverage = {.num_features = count,
        .slices = features->slices != NULL ? features->slices : features->sparse,
        .owner = calloc(count + 1, sizeof *coverage.owner),
        .seen = calloc(count + 1, sizeof *coverage.seen),
        .num_seen = calloc(count + 1, sizeof *coverage.num_seen),
        .is_known = calloc(count + 1, sizeof *coverage.is_known),
        .ids_left = max_ids};
    bool has_memory = coverage.owner != NULL && coverage.seen != NULL && coverage.num_seen != NULL &&
                      coverage.is_known != NULL;
    if (has_memory && find_owners(&coverage) == PH_OK && follow(&coverage, max_bytes) == PH_OK) {
        *coverage_out = coverage;
        return PH_OK;
    }
    ph__id_coverage_fini(&coverage);
    return ph__out_of_memory("cannot mark the rows of %zu tables", count);
}

void ph__id_coverage_fini(struct ph__id_coverage *coverage)
{
    for (size_t f = 0; coverage->seen != NULL && f < coverage->num_features; f++)
        free(coverage->seen[f]);
    free(coverage->owner);
    free(coverage->seen);
    free(coverage->num_seen);
    free(coverage->is_known);
    *coverage = (struct ph__id_coverage){0};
}

/* Returns the ids of a feature: its bags lie one behind the other. */
static const int64_t *ids_of(const struct ph_batch *batch, size_t feature, size_t *count_out)
{
    size_t first = batch->offsets[feature * batch->num_samples];
    *count_out = batch->offsets[(feature + 1) * batch->num_samples] - first;
    return batch->ids + first;
}

/* Sets the bits of the ids; returns how many were not set before. */
static uint64_t mark(uint64_t *seen, const int64_t *ids, size_t count)
{
    uint64_t num_new = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t *word = &seen[(uint64_t)ids[i] / WORD_BITS], bit = (uint64_t)ids[i] % WORD_BITS;
        num_new += ~*word >> bit & 1;
        *word |= (uint64_t)1 << bit;
    }
    return num_new;
}

static bool holds_row_0(const int64_t *ids, size_t count)
{
    bool is_there = false;
    for (size_t i = 0; i < count; i++) /* no early exit: several ids at once */
        is_there |= ids[i] == 0;
    return is_there;
}

/* Marks the ids of a feature. Skips tables that are marked as a whole, or all but row 0, which a vocabulary
 * may keep for ids to come: most tables soon are. */
static void learn_feature(struct ph__id_coverage *coverage, const struct ph_batch *batch, size_t feature)
{
    size_t owner = coverage->owner[feature], count;
    uint64_t *seen = coverage->seen[owner],
             num_left = coverage->slices[owner].num_rows - coverage->num_seen[owner];
    const int64_t *ids = ids_of(batch, feature, &count);
    if (seen == NULL || num_left == 0)
        return;
    if (num_left == 1 && (seen[0] & 1) == 0 && !holds_row_0(ids, count))
        return;
    const uint64_t num_new = mark(seen, ids, count);
    coverage->num_seen[owner] += num_new;
    coverage->has_news = coverage->has_news || num_new > 0;
}

void ph__id_coverage_learn(struct ph__id_coverage *coverage, const struct ph_batch *batch)
{
    if (coverage->is_over)
        return;
    if (batch->num_ids > coverage->ids_left) {
        coverage->is_over = true;
        ph__id_coverage_miss(coverage);
        return;
    }
    coverage->ids_left -= batch->num_ids;
    for (size_t f = 0; f < coverage->num_features; f++)
        learn_feature(coverage, batch, f);
}

void ph__id_coverage_end_pass(struct ph__id_coverage *coverage)
{
    if (coverage->is_over)
        return;
    coverage->is_over = true;
    for (size_t f = 0; f < coverage->num_features; f++)
        coverage->is_known[f] = coverage->seen[f] != NULL;
}

void ph__id_coverage_miss(struct ph__id_coverage *coverage)
{
    for (size_t f = 0; f < coverage->num_features; f++)
        coverage->is_known[f] = false;
}

void ph__id_coverage_mark(struct ph__id_coverage *coverage, size_t feature, size_t row)
{
    const int64_t id = (int64_t)row;
    coverage->num_seen[feature] += mark(coverage->seen[feature], &id, 1);
    coverage->has_news = true;
}

double ph__id_coverage_share(const struct ph__id_coverage *coverage, size_t feature)
{
    size_t owner = coverage->owner[feature];
    if (!coverage->is_known[owner])
        return (double)NAN;
    return (double)coverage->num_seen[owner] / (double)coverage->slices[owner].num_rows;
}

void ph__id_coverage_count(
    const struct ph__id_coverage *coverage, const struct ph_batch *batch, struct ph__id_counts *counts)
{
    for (size_t f = 0; f < coverage->num_features; f++) {
        size_t owner = coverage->owner[f];
        const uint64_t *seen = coverage->is_known[owner] ? coverage->seen[owner] : NULL;
        size_t count;
        const int64_t *ids = ids_of(batch, f, &count);
        counts[f].ids += count;
        counts[f].knows_unseen = seen != NULL;
        for (size_t i = 0; i < count; i++) {
            uint64_t id = (uint64_t)ids[i];
            counts[f].unknown += id == 0;
            counts[f].unseen += seen != NULL && (seen[id / WORD_BITS] >> id % WORD_BITS & 1) == 0;
        }
    }
}
