#include "train/ranks/rows_learnt.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "store/store.h"
#include "train/config/optimizer_groups.h"

/* ---- rows by slots ---- */

static bool slots_tell(const struct ph_parameter *parameter, const struct ph_optimizer_settings *settings)
{
    if (!parameter->is_table || parameter->num_slots == 0)
        return false;
    const struct ph_optimizer optimizer = ph__optimizer_for(settings, parameter->family, true);
    return !optimizer.is_whole_table || (optimizer.l2 <= 0 && optimizer.rule.weight_decay <= 0);
}

/* Returns the length of "embedding." in "embedding.table", whose slices are "embedding.user" and so on. */
static size_t scope_length(const char *name)
{
    const char *last = strrchr(name, '.');
    return last != NULL ? (size_t)(last - name) + 1 : 0;
}

/* Finds the feature of which the slice has all or some rows; PH_NO_NAME: none. features: the features'
 * slices. */
static size_t feature_of(
    const struct ph_parameter *parameter, size_t slice, const struct ph__name_index *features)
{
    const char *name = parameter->slices[slice].name;
    const size_t scope = scope_length(parameter->name);
    const bool is_scoped = strncmp(name, parameter->name, scope) == 0;
    return is_scoped ? ph__name_index_find(features, name + scope) : PH_NO_NAME;
}

static bool has_changed(const struct ph_parameter *parameter, size_t row)
{
    for (size_t s = 0; s < parameter->num_slots; s++) {
        const struct ph__slot *slot = &parameter->slots[s];
        size_t dim = slot->is_per_row ? 1 : parameter->shape.dims[1];
        for (size_t d = 0; d < dim; d++)
            if (slot->data[row * dim + d] != 0) /* exact: the initial value */
                return true;
    }
    return false;
}

/* Returns true when the rows of this feature are still to be marked. Features that share a slice are marked
 * by the first of them. */
static bool is_wanted(const struct ph__id_coverage *coverage, size_t feature)
{
    return feature != PH_NO_NAME && coverage->seen[feature] != NULL && !coverage->is_known[feature];
}

static void mark_slices(const struct ph_parameter *parameter, const struct ph__name_index *features,
    struct ph__id_coverage *coverage)
{
    size_t first_row = 0;
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const struct ph_table_slice *slice = &parameter->slices[s];
        const size_t feature = feature_of(parameter, s, features);
        for (size_t row = 0; is_wanted(coverage, feature) && row < slice->num_rows; row++)
            if (has_changed(parameter, first_row + row))
                ph__id_coverage_mark(coverage, feature, parameter->shards[s].first_row + row);
        first_row += slice->num_rows;
    }
    /* A feature may have several parts: it is known after all of them. */
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const size_t feature = feature_of(parameter, s, features);
        if (is_wanted(coverage, feature))
            coverage->is_known[feature] = true;
    }
}

static ph_status index_features(const struct ph__id_coverage *coverage, struct ph__name_index *features)
{
    for (size_t f = 0; f < coverage->num_features; f++)
        PH_TRY(ph__name_index_add(features, coverage->slices[f].name));
    return PH_OK;
}

ph_status ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage)
{
    struct ph__name_index features = {0};
    const ph_status status = index_features(coverage, &features);
    for (size_t p = 0; p < ph__store_num_parameters(store) && status == PH_OK; p++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, p);
        if (slots_tell(parameter, settings))
            mark_slices(parameter, &features, coverage);
    }
    ph__name_index_fini(&features);
    return status;
}

/* ---- flags that ranks exchange ---- */

enum { WORD_BITS = 64 };

/* Bit 0: there are new marks. Bit f + 1: the flag of feature f. */
struct flags {
    uint64_t *words;
    size_t num_words;
};

static ph_status flags_init(const struct ph__id_coverage *coverage, struct flags *flags_out)
{
    const size_t num_words = coverage->num_features / WORD_BITS + 1;
    *flags_out = (struct flags){calloc(num_words, sizeof *flags_out->words), num_words};
    return flags_out->words != NULL ? PH_OK : ph__out_of_memory("cannot compare marks of rows");
}

static void set_flag(struct flags *flags, size_t bit)
{
    flags->words[bit / WORD_BITS] |= (uint64_t)1 << bit % WORD_BITS;
}

static bool has_flag(const struct flags *flags, size_t bit)
{
    return (flags->words[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

/* ---- marks ---- */

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
        PH_TRY(ph__comm_unite_once(comm, num_words, coverage->seen[f]));
        coverage->num_seen[f] = count_bits(num_words, coverage->seen[f]);
    }
    coverage->has_news = false;
    return PH_OK;
}

/* Unites the flags of all ranks and, when any of them has new marks, the marks. */
static ph_status gather(struct ph_comm *comm, struct ph__id_coverage *coverage, struct flags *flags)
{
    if (coverage->has_news)
        set_flag(flags, 0);
    PH_TRY(ph__comm_unite_once(comm, flags->num_words, flags->words));
    return has_flag(flags, 0) ? gather_marks(comm, coverage) : PH_OK;
}

ph_status ph__rows_learnt_gather(struct ph_comm *comm, struct ph__id_coverage *coverage)
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

/* ---- slots ---- */

/* Gathers what slots have told some ranks, after ph__rows_learnt_gather, so that all ranks know the same
 * features. */
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

ph_status ph__rows_learnt_mark_all(struct ph_comm *comm, const struct ph_store *store,
    const struct ph_optimizer_settings *settings, struct ph__id_coverage *coverage)
{
    PH_TRY(ph__rows_learnt_gather(comm, coverage));
    PH_TRY(ph__rows_learnt_mark(store, settings, coverage));
    return comm != NULL && coverage->num_features > 0 ? gather_told(comm, coverage) : PH_OK;
}

/* ---- counts ---- */

ph_status ph__rows_learnt_sum(struct ph_comm *comm, size_t num_features, struct ph__id_counts *counts)
{
    enum { IDS, UNKNOWN, UNSEEN, NUM_NUMBERS };
    if (comm == NULL || num_features == 0)
        return PH_OK;
    uint64_t(*numbers)[NUM_NUMBERS] = calloc(num_features, sizeof *numbers);
    if (numbers == NULL)
        return ph__out_of_memory("the ids of %zu features", num_features);
    for (size_t f = 0; f < num_features; f++) {
        numbers[f][IDS] = counts[f].ids;
        numbers[f][UNKNOWN] = counts[f].unknown;
        numbers[f][UNSEEN] = counts[f].unseen;
    }
    ph_status status = ph__comm_sum_once(comm, num_features * NUM_NUMBERS, numbers[0]);
    for (size_t f = 0; f < num_features && status == PH_OK; f++) {
        counts[f].ids = numbers[f][IDS];
        counts[f].unknown = numbers[f][UNKNOWN];
        counts[f].unseen = numbers[f][UNSEEN];
    }
    free(numbers);
    return status;
}
