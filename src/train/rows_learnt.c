#include "train/rows_learnt.h"

#include "store/store.h"
#include "train/optimizer_groups.h"

/* A table has a slice a feature, in their order. */
static bool slots_tell(const struct ph_parameter *parameter, const struct ph_optimizer_settings *settings,
    const struct ph__id_coverage *coverage)
{
    if (!parameter->is_table || parameter->num_slots == 0 || parameter->num_slices != coverage->num_features)
        return false;
    const struct ph_optimizer optimizer = ph__optimizer_for(settings, parameter->name, true);
    return !optimizer.is_whole_table || (optimizer.l2 <= 0 && optimizer.weight_decay <= 0);
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

static size_t first_row(const struct ph_parameter *parameter, size_t feature)
{
    size_t first = 0;
    for (size_t f = 0; f < feature; f++)
        first += parameter->slices[f].num_rows;
    return first;
}

static void mark_feature(
    const struct ph_parameter *parameter, size_t feature, struct ph__id_coverage *coverage)
{
    size_t first = first_row(parameter, feature);
    for (size_t row = 0; row < parameter->slices[feature].num_rows; row++)
        if (has_changed(parameter, first + row))
            ph__id_coverage_mark(coverage, feature, row);
    ph__id_coverage_know(coverage, feature);
}

void ph__rows_learnt_mark(const struct ph_store *store, const struct ph_optimizer_settings *settings,
    struct ph__id_coverage *coverage)
{
    for (size_t f = 0; f < coverage->num_features; f++)
        for (size_t p = 0; p < ph__store_num_parameters(store); p++) {
            const struct ph_parameter *parameter = ph__store_parameter(store, p);
            bool is_wanted = coverage->seen[f] != NULL && !coverage->is_known[f];
            if (is_wanted && slots_tell(parameter, settings, coverage))
                mark_feature(parameter, f, coverage);
        }
}
