#include "train/ranks/rows_learnt.h"

#include <string.h>

#include "base/text/name_index.h"
#include "store/store.h"
#include "train/config/optimizer_groups.h"

static bool slots_tell(const struct ph_parameter *parameter, const struct ph_optimizer_settings *settings)
{
    if (!parameter->is_table || parameter->num_slots == 0)
        return false;
    const struct ph_optimizer optimizer = ph__optimizer_for(settings, parameter->family, true);
    return !optimizer.is_whole_table || (optimizer.l2 <= 0 && optimizer.weight_decay <= 0);
}

/* "embedding." of the table "embedding.table", whose slices are "embedding.user" and so on: its length. */
static size_t scope_length(const char *name)
{
    const char *last = strrchr(name, '.');
    return last != NULL ? (size_t)(last - name) + 1 : 0;
}

/* Finds the feature whose rows, or some of them, the slice has; PH_NO_NAME: none. `features` are the features' slices. */
static size_t feature_of(
    const struct ph_parameter *parameter, size_t slice, const struct ph_name_index *features)
{
    const char *name = parameter->slices[slice].name;
    const size_t scope = scope_length(parameter->name);
    const bool is_scoped = strncmp(name, parameter->name, scope) == 0;
    return is_scoped ? ph__name_index_find(features, name + scope) : PH_NO_NAME;
}

static bool has_changed(const struct ph_parameter *parameter, size_t row)
{
    for (size_t s = 0; s < parameter->num_slots; s++) {
        const struct ph_slot *slot = &parameter->slots[s];
        size_t dim = slot->is_per_row ? 1 : parameter->shape.dims[1];
        for (size_t d = 0; d < dim; d++)
            if (slot->data[row * dim + d] != 0) /* exact: as it began */
                return true;
    }
    return false;
}

/* Says whether the rows of this feature are still to be marked; of features that share a slice it is the first. */
static bool is_wanted(const struct ph__id_coverage *coverage, size_t feature)
{
    return feature != PH_NO_NAME && coverage->seen[feature] != NULL && !coverage->is_known[feature];
}

static void mark_slices(const struct ph_parameter *parameter, const struct ph_name_index *features,
    struct ph__id_coverage *coverage)
{
    size_t first_row = 0;
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const struct ph_table_slice *slice = &parameter->slices[s];
        const size_t feature = feature_of(parameter, s, features);
        for (size_t row = 0; is_wanted(coverage, feature) && row < slice->num_rows; row++)
            if (has_changed(parameter, first_row + row))
                ph__id_coverage_mark(coverage, feature, parameter->parts[s].first_row + row);
        first_row += slice->num_rows;
    }
    /* A feature may have several parts: it is known behind all of them. */
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const size_t feature = feature_of(parameter, s, features);
        if (is_wanted(coverage, feature))
            ph__id_coverage_know(coverage, feature);
    }
}

static ph_status index_features(const struct ph__id_coverage *coverage, struct ph_name_index *features)
{
    for (size_t f = 0; f < coverage->num_features; f++)
        PH_TRY(ph__name_index_add(features, coverage->slices[f].name));
    return PH_OK;
}

ph_status ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage)
{
    struct ph_name_index features = {0};
    const ph_status status = index_features(coverage, &features);
    for (size_t p = 0; p < ph__store_num_parameters(store) && status == PH_OK; p++) {
        const struct ph_parameter *parameter = ph__store_parameter(store, p);
        if (slots_tell(parameter, settings))
            mark_slices(parameter, &features, coverage);
    }
    ph__name_index_fini(&features);
    return status;
}
