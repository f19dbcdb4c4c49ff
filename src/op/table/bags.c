#include "op/table/bags.h"

bool ph__type_is_bags(const struct ph_type *type)
{
    return type->kind == PH_JAGGED && type->dims[0].extent == 1 && type->dims[0].symbol == PH_SYMBOL_BATCH;
}

ph_value ph__bags_of(const struct ph_builder *builder, const struct ph_type *type)
{
    const struct ph_graph *graph = &builder->graph;
    for (ph_value value = 1; value < graph->num_values; value++) {
        const struct ph_type *bags = &graph->values[value].type;
        if (ph__type_is_bags(bags) && ph__dim_equal(bags->dims[1], type->dims[0]))
            return value;
    }
    return 0;
}

bool ph__are_item_weights(const struct ph_type *weights, const struct ph_type *bags)
{
    return weights->kind == PH_TOKEN ||
           (ph__type_is_real_of_rank(weights, 2) && ph__dim_equal(weights->dims[0], bags->dims[1]) &&
               ph__dim_equal(weights->dims[1], ph__dim(1)));
}

void ph__for_bags(const struct ph_backend *backend, const struct ph_operand *bags, size_t row_elements,
    ph_range_task task, void *argument)
{
    const size_t num_samples = bags->shape.dims[0];
    const size_t average_items = num_samples > 0 ? bags->shape.dims[1] / num_samples + 1 : 1;
    ph__for_blocks(backend, num_samples, ph__block_rows(average_items * row_elements), task, argument);
}
