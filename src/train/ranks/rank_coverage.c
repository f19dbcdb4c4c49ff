#include "train/ranks/rank_coverage.h"

#include <stdlib.h>

#include "train/ranks/rank_numbers.h"

enum { WORD_BITS = 64 };

/* Bit 0: there are new marks. Bit f + 1: what is asked of feature f. */
struct flags {
    uint64_t *words;
    size_t num_words;
};

static ph_status flags_init(const struct ph__id_coverage *coverage, struct flags *flags_out)
{
    const size_t num_words = coverage->num_features / WORD_BITS + 1;
    *flags_out = (struct flags){calloc(num_words, sizeof *flags_out->words), num_words};
    return flags_out->words != NULL ? PH_OK : ph_fail(PH_ERROR_MEMORY, "no memory to compare marks of rows");
}

static void set_flag(struct flags *flags, size_t bit)
{
    flags->words[bit / WORD_BITS] |= (uint64_t)1 << bit % WORD_BITS;
}

static bool has_flag(const struct flags *flags, size_t bit)
{
    return (flags->words[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

/* ---- marks ------------------------------------------------------------------------------------------------- */

static uint64_t count_bits(size_t num_words, const uint64_t *words)
{
    uint64_t count = 0;
    for (size_t i = 0; i < num_words; i++)
        count += (uint64_t)__builtin_popcountll(words[i]);
    return count;
}

static ph_status gather_marks(struct ph_comm *comm, struct ph__id_coverage *coverage)
{
    for (size_t f = 0; f < coverage->num_features; f++) {
        if (coverage->seen[f] == NULL)
            continue;
        const size_t num_words = ph__id_coverage_words(coverage, f);
        PH_TRY(ph__rank_numbers_unite(comm, num_words, coverage->seen[f]));
        coverage->num_seen[f] = count_bits(num_words, coverage->seen[f]);
    }
    coverage->has_news = false;
    return PH_OK;
}

/* Marks of all ranks, where any has new ones, and the flags that any rank has set. */
static ph_status gather(struct ph_comm *comm, struct ph__id_coverage *coverage, struct flags *flags)
{
    if (coverage->has_news)
        set_flag(flags, 0);
    PH_TRY(ph__rank_numbers_unite(comm, flags->num_words, flags->words));
    return has_flag(flags, 0) ? gather_marks(comm, coverage) : PH_OK;
}

ph_status ph__rank_coverage_gather(struct ph_comm *comm, struct ph__id_coverage *coverage)
{
    struct flags unknown;
    if (comm == NULL || coverage->num_features == 0)
        return PH_OK;
    PH_TRY(flags_init(coverage, &unknown));
    for (size_t f = 0; f < coverage->num_features; f++)
        if (!coverage->is_known[f])
            set_flag(&unknown, f + 1);
    ph_status status = gather(comm, coverage, &unknown);
    for (size_t f = 0; f < coverage->num_features && status == PH_OK; f++)
        coverage->is_known[f] = !has_flag(&unknown, f + 1);
    free(unknown.words);
    return status;
}

/* ---- slots ------------------------------------------------------------------------------------------------- */

/* Behind ph__rank_coverage_gather, so that ranks know of the same features; then some have looked at slots. */
static ph_status gather_told(struct ph_comm *comm, struct ph__id_coverage *coverage)
{
    struct flags known;
    PH_TRY(flags_init(coverage, &known));
    for (size_t f = 0; f < coverage->num_features; f++)
        if (coverage->is_known[f])
            set_flag(&known, f + 1);
    ph_status status = gather(comm, coverage, &known);
    for (size_t f = 0; f < coverage->num_features && status == PH_OK; f++)
        coverage->is_known[f] = has_flag(&known, f + 1);
    free(known.words);
    return status;
}

ph_status ph__rank_coverage_mark(struct ph_comm *comm, const struct ph_store *store,
    const struct ph_optimizer_settings *settings, struct ph__id_coverage *coverage)
{
    PH_TRY(ph__rank_coverage_gather(comm, coverage));
    PH_TRY(ph__rows_learnt_mark(store, settings, coverage));
    return comm != NULL && coverage->num_features > 0 ? gather_told(comm, coverage) : PH_OK;
}

/* ---- counts ------------------------------------------------------------------------------------------------ */

ph_status ph__rank_coverage_sum(struct ph_comm *comm, size_t num_features, struct ph__id_counts *counts)
{
    enum { IDS, UNKNOWN, UNSEEN, NUM_NUMBERS };
    if (comm == NULL || num_features == 0)
        return PH_OK;
    uint64_t(*numbers)[NUM_NUMBERS] = calloc(num_features, sizeof *numbers);
    if (numbers == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the ids of %zu features", num_features);
    for (size_t f = 0; f < num_features; f++) {
        numbers[f][IDS] = counts[f].ids;
        numbers[f][UNKNOWN] = counts[f].unknown;
        numbers[f][UNSEEN] = counts[f].unseen;
    }
    ph_status status = ph__rank_numbers_sum(comm, num_features * NUM_NUMBERS, numbers[0]);
    for (size_t f = 0; f < num_features && status == PH_OK; f++) {
        counts[f].ids = numbers[f][IDS];
        counts[f].unknown = numbers[f][UNKNOWN];
        counts[f].unseen = numbers[f][UNSEEN];
    }
    free(numbers);
    return status;
}
