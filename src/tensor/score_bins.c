#include "tensor/score_bins.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory/memory.h"

#define MANTISSA_BITS 16          /* kept of a float's 23 */
#define LEAST_EXPONENT (127 - 14) /* as a float writes it */
#define NUM_OCTAVES 21
#define NUM_A_SIDE (((size_t)NUM_OCTAVES << MANTISSA_BITS) + 1) /* and what is larger */
#define NUM_BINS (2 * NUM_A_SIDE + 1)                           /* and what is near 0, in the middle */

struct ph_score_bins {
    bool has_nan;
    uint32_t *counts; /* (NUM_BINS,2): negatives, positives */
};

#define COUNTS_BYTES (NUM_BINS * 2 * sizeof(uint32_t))

ph_status ph__score_bins_create(struct ph_score_bins **bins_out)
{
    void *counts = NULL;
    struct ph_score_bins *bins = calloc(1, sizeof *bins);
    if (bins == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for bins of scores");
    ph_status status = ph__memory_alloc(COUNTS_BYTES, "bins of scores", &counts);
    if (status != PH_OK) {
        free(bins);
        return status;
    }
    bins->counts = counts;
    *bins_out = bins;
    return PH_OK;
}

void ph__score_bins_destroy(struct ph_score_bins *bins)
{
    if (bins == NULL)
        return;
    ph__memory_free(bins->counts, COUNTS_BYTES);
    free(bins);
}

/* Growing with the score: the middle, and as far from it as the upper bits of its magnitude say. */
static size_t bin_of(float score)
{
    union {
        float number;
        uint32_t bits;
    } magnitude = {.number = fabsf(score)};
    uint32_t upper = magnitude.bits >> (23 - MANTISSA_BITS),
             least = (uint32_t)LEAST_EXPONENT << MANTISSA_BITS;
    size_t away = upper < least ? 0 : (size_t)(upper - least) + 1;
    away = away < NUM_A_SIDE ? away : NUM_A_SIDE;
    return score < 0 ? NUM_A_SIDE - away : NUM_A_SIDE + away;
}

void ph__score_bins_add(struct ph_score_bins *bins, size_t n, const ph_real *scores, const ph_real *labels)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(scores[i]))
            bins->has_nan = true;
        else
            bins->counts[2 * bin_of((float)scores[i]) + (labels[i] > (ph_real)0.5 ? 1 : 0)]++;
    }
}

void ph__score_bins_auc(const struct ph_score_bins *bins, double *auc_out, double *error_out)
{
    double below = 0, positives = 0, won = 0, tied = 0; /* negatives so far; pairs */
    for (size_t i = 0; i < NUM_BINS; i++) {
        double negative = bins->counts[2 * i], positive = bins->counts[2 * i + 1];
        won += positive * below;
        tied += positive * negative;
        below += negative;
        positives += positive;
    }
    double pairs = positives * below;
    bool is_defined = pairs > 0 && !bins->has_nan;
    *auc_out = is_defined ? (won + 0.5 * tied) / pairs : (double)NAN;
    *error_out = is_defined ? 0.5 * tied / pairs : (double)NAN;
}
