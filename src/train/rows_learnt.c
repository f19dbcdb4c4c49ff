#include "train/rows_learnt.h"

#include <string.h>

#include "store/store.h"
#include "train/optimizer_groups.h"

static bool slots_tell(const struct ph_parameter *parameter, const struct ph_optimizer_settings *settings)
{
    if (!parameter->is_table || parameter->num_slots == 0)
        return false;
    const struct ph_optimizer optimizer = ph__optimizer_for(settings, parameter->name, true);
    return !optimizer.is_whole_table || (optimizer.l2 <= 0 && optimizer.weight_decay <= 0);
}

/* "embedding." of the table "embedding.table", whose slices are "embedding.user" and so on: its length. */
static size_t scope_length(const char *name)
{
    const char *last = strrchr(name, '.');
    return last != NULL ? (size_t)(last - name) + 1 : 0;
}

/* The table's slice for the feature's rows, and its first row; NULL: it has none. */
static const struct ph_table_slice *find_slice(
    const struct ph_parameter *parameter, const struct ph_table_slice *feature, size_t *first_row_out)
{
    size_t first_row = 0, scope = scope_length(parameter->name);
    for (size_t s = 0; s < parameter->num_slices; s++) {
        const struct ph_table_slice *slice = &parameter->slices[s];
        bool is_scoped = strncmp(slice->name, parameter->name, scope) == 0;
        if (is_scoped && strcmp(slice->name + scope, feature->name) == 0) {
            *first_row_out = first_row;
            return slice;
        }
        first_row += slice->num_rows;
    }
    return NULL;
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
    const struct ph_table_slice *slice = find_slice(parameter, &coverage->slices[feature], &first_row);
    if (slice == NULL)
        return;
    for (size_t row = 0; row < slice->num_rows; row++)
        if (has_changed(parameter, first_row + row))
            ph__id_coverage_mark(coverage, feature, row);
    ph__id_coverage_know(coverage, feature);
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
