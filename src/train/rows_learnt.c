#include "train/rows_learnt.h"

#include <string.h>

#include "store/store.h"
#include "train/optimizer_groups.h"

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

/* Whether the slice has the feature's rows, or some of them. */
static bool is_of(const struct ph_parameter *parameter, size_t slice, const struct ph_table_slice *feature)
{
    const char *name = parameter->slices[slice].name;
    const size_t scope = scope_length(parameter->name);
    return strncmp(name, parameter->name, scope) == 0 && strcmp(name + scope, feature->name) == 0;
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

static void mark_feature(
    const struct ph_parameter *parameter, size_t feature, struct ph__id_coverage *coverage)
{
    size_t first_row = 0;
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const struct ph_table_slice *slice = &parameter->slices[s];
        const bool is_wanted = is_of(parameter, s, &coverage->slices[feature]);
        for (size_t row = 0; is_wanted && row < slice->num_rows; row++)
            if (has_changed(parameter, first_row + row))
                ph__id_coverage_mark(coverage, feature, parameter->parts[s].first_row + row);
        if (is_wanted)
            ph__id_coverage_know(coverage, feature);
        first_row += slice->num_rows;
    }
}

void ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage)
{
    for (size_t f = 0; f < coverage->num_features; f++)
        for (size_t p = 0; p < ph__store_num_parameters(store); p++) {
            const struct ph_parameter *parameter = ph__store_parameter(store, p);
            bool is_wanted = coverage->owner[f] == f && coverage->seen[f] != NULL && !coverage->is_known[f];
            if (is_wanted && slots_tell(parameter, settings))
                mark_feature(parameter, f, coverage);
        }
}
