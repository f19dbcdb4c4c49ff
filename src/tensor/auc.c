/* Exact AUC in linear time: positives and negatives are sorted apart, by radix over the bits of their scores,
 * then counted against each other in one merge. */
#include "tensor/auc.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

#define RADIX_BITS 8
#define RADIX_SIZE 256

/* Returns bits in the order of the scores; both zeros are one score. */
static uint64_t ordered_bits(double score)
{
    uint64_t bits;
    score += 0.0;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 63 ? ~bits : bits | (1ull << 63);
}

/* Makes one stable pass over byte `byte`; returns false when all keys share it and nothing was moved. */
static bool radix_pass(const uint64_t *from, uint64_t *to, size_t n, unsigned byte)
{
    size_t starts[RADIX_SIZE] = {0};
    unsigned shift = byte * RADIX_BITS;
    for (size_t i = 0; i < n; i++)
        starts[(from[i] >> shift) & (RADIX_SIZE - 1)]++;
    if (n > 0 && starts[(from[0] >> shift) & (RADIX_SIZE - 1)] == n)
        return false;
    size_t sum = 0;
    for (size_t digit = 0; digit < RADIX_SIZE; digit++) {
        size_t count = starts[digit];
        starts[digit] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[starts[(from[i] >> shift) & (RADIX_SIZE - 1)]++] = from[i];
    return true;
}

/* Sorts keys, with `other` of the same size as scratch; returns the array that holds the result. */
static uint64_t *radix_sort(uint64_t *keys, uint64_t *other, size_t n)
{
    for (unsigned byte = 0; byte < sizeof *keys; byte++) {
        if (radix_pass(keys, other, n, byte)) {
            uint64_t *sorted = other;
            other = keys;
            keys = sorted;
        }
    }
    return keys;
}

/* Returns twice the number of pairs won by positives, ties counting one. Both arrays ascend. */
static uint64_t twice_wins(
    const uint64_t *positives, size_t num_positives, const uint64_t *negatives, size_t num_negatives)
{
    uint64_t wins = 0;
    size_t below = 0, not_above = 0;
    for (size_t i = 0; i < num_positives; i++) {
        while (below < num_negatives && negatives[below] < positives[i])
            below++;
        while (not_above < num_negatives && negatives[not_above] <= positives[i])
            not_above++;
        wins += below + not_above;
    }
    return wins;
}

ph_status ph__auc(size_t n, const ph_real *scores, const ph_real *labels, double *auc_out)
{
    uint64_t *keys = malloc((2 * n + 1) * sizeof *keys);
    if (keys == NULL)
        return ph__out_of_memory("cannot rank %zu scores", n);
    size_t num_positives = 0, num_negatives = 0;
    bool is_ordered = true;
    for (size_t i = 0; i < n; i++) { /* positives from the front, negatives from the back */
        uint64_t key = ordered_bits((double)scores[i]);
        is_ordered = is_ordered && !isnan(scores[i]);
        if (labels[i] > (ph_real)0.5)
            keys[num_positives++] = key;
        else
            keys[n - ++num_negatives] = key;
    }
    if (is_ordered && num_positives > 0 && num_negatives > 0) {
        uint64_t *positives = radix_sort(keys, keys + n, num_positives);
        uint64_t *negatives = radix_sort(keys + num_positives, keys + n + num_positives, num_negatives);
        uint64_t wins = twice_wins(positives, num_positives, negatives, num_negatives);
        *auc_out = (double)wins / (2.0 * (double)num_positives * (double)num_negatives);
    } else {
        *auc_out = (double)NAN;
    }
    free(keys);
    return PH_OK;
}

struct member {
    int64_t group;
    size_t index;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static size_t group_end(const struct member *members, size_t n, size_t begin)
{
    size_t end = begin;
    while (end < n && members[end].group == members[begin].group)
        end++;
    return end;
}

static ph_status sum_groups(size_t n, const struct member *members, const ph_real *scores,
    const ph_real *labels, ph_real *gathered, double *auc_out)
{
    double sum = 0, weight = 0;
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = group_end(members, n, begin);
        size_t size = end - begin;
        for (size_t i = 0; i < size; i++) {
            gathered[i] = scores[members[begin + i].index];
            gathered[size + i] = labels[members[begin + i].index];
        }
        double auc;
        PH_TRY(ph__auc(size, gathered, gathered + size, &auc));
        if (!isnan(auc)) {
            sum += auc * (double)size;
            weight += (double)size;
        }
    }
    *auc_out = weight > 0 ? sum / weight : (double)NAN;
    return PH_OK;
}

ph_status ph__grouped_auc(
    size_t n, const ph_real *scores, const ph_real *labels, const int64_t *groups, double *auc_out)
{
    struct member *members = malloc((n + 1) * sizeof *members);
    ph_real *gathered = malloc((2 * n + 1) * sizeof *gathered);
    ph_status status = PH_OK;
    if (members == NULL || gathered == NULL) {
        status = ph__out_of_memory("cannot rank %zu scores by group", n);
    } else {
        for (size_t i = 0; i < n; i++)
            members[i] = (struct member){groups[i], i};
        qsort(members, n, sizeof *members, compare_members);
        status = sum_groups(n, members, scores, labels, gathered, auc_out);
    }
    free(gathered);
    free(members);
    return status;
}

/* ---- by bins ---- */

#define MANTISSA_BITS 16          /* kept, of a float's 23 */
#define LEAST_EXPONENT (127 - 14) /* as a float stores it */
#define NUM_OCTAVES 21
#define NUM_A_SIDE (((size_t)NUM_OCTAVES << MANTISSA_BITS) + 1) /* and one for larger scores */
#define NUM_BINS (2 * NUM_A_SIDE + 1)                           /* and one for scores near 0, in the middle */

struct ph__score_bins {
    bool has_nan;
    uint32_t *counts; /* (NUM_BINS,2): negatives, positives */
};

#define COUNTS_BYTES (NUM_BINS * 2 * sizeof(uint32_t))

ph_status ph__score_bins_create(struct ph__score_bins **bins_out)
{
    void *counts = NULL;
    struct ph__score_bins *bins = calloc(1, sizeof *bins);
    if (bins == NULL)
        return ph__out_of_memory("bins of scores");
    ph_status status = ph__memory_alloc(COUNTS_BYTES, "bins of scores", &counts);
    if (status != PH_OK) {
        free(bins);
        return status;
    }
    bins->counts = counts;
    *bins_out = bins;
    return PH_OK;
}

void ph__score_bins_destroy(struct ph__score_bins *bins)
{
    if (bins == NULL)
        return;
    ph__memory_free(bins->counts, COUNTS_BYTES);
    free(bins);
}

/* Returns the bin of a score, ascending with it: its distance from the middle follows the upper bits of the
 * score's magnitude. */
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

void ph__score_bins_add(struct ph__score_bins *bins, size_t n, const ph_real *scores, const ph_real *labels)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(scores[i]))
            bins->has_nan = true;
        else
            bins->counts[2 * bin_of((float)scores[i]) + (labels[i] > (ph_real)0.5 ? 1 : 0)]++;
    }
}

void ph__score_bins_auc(const struct ph__score_bins *bins, double *auc_out, double *error_out)
{
    double below = 0, positives = 0, won = 0, tied = 0; /* below: negatives so far; won, tied: pairs */
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
