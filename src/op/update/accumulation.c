/* Adds the nodes that keep and combine the gradients of micro-batches. Their design: accumulation.h. */
#include "op/update/accumulation.h"

#include <assert.h>

struct pass {
    struct ph_builder *builder;
    const struct ph__accumulation *accumulation;
    uint32_t backward, combine; /* entries of the program */
};

/* Adds the gradient of a lookup of all micro-batches, from what they kept of it, as one lookup's. */
static ph_value combine_lookup(const struct pass *pass, const struct ph__node *former)
{
    struct ph_builder *builder = pass->builder;
    const struct ph__lookup_entries lookup =
        ph__lookup_entries(ph__builder_producer(builder, former->inputs[PH_LOOKUP_ROWS]));
    const struct ph__slot_range *ranges = ph__slots_ranges(ph__builder_producer(builder, lookup.slots));
    const size_t num_features = ph_value_type(builder, lookup.slots).dims[0].extent;
    ph_value kept[PH_KEPT_OUTPUTS], grouped[2], inputs[PH_LOOKUP_INPUTS] = {0};
    builder->entry = pass->backward;
    ph__keep_lookup(builder, pass->accumulation, &lookup, former->inputs[PH_LOOKUP_GRADIENT], kept);
    builder->entry = pass->combine;
    ph__group_positions(builder, pass->accumulation, kept[PH_KEPT_SLOTS], num_features, grouped);
    ph__merge_ranges(builder, grouped[0], ranges, &inputs[PH_LOOKUP_UNIQUE], &inputs[PH_LOOKUP_ORDER]);
    const ph_value entries[] = {
        inputs[PH_LOOKUP_ORDER], grouped[1], kept[PH_KEPT_ROWS], kept[PH_KEPT_COEFFICIENTS]};
    ph__emit(builder, &ph__op_kept_entries, NULL, NULL, 0, 4, entries,
        kept[PH_KEPT_COEFFICIENTS] != 0 ? 2 : 1, &inputs[PH_LOOKUP_ROWS]);
    inputs[PH_LOOKUP_GRADIENT] = kept[PH_KEPT_GRADIENT];
    return ph__emit1(builder, &ph__op_embedding_gradient, NULL, NULL, 0, PH_LOOKUP_INPUTS, inputs);
}

/* Returns the combined gradient of a table: the sum over its lookups where there are several. */
static ph_value combine_rows(const struct pass *pass, ph_value gradient)
{
    struct ph_builder *builder = pass->builder;
    if (ph_builder_status(builder) != PH_OK)
        return 0;
    const struct ph__node node = *ph__builder_producer(builder, gradient);
    if (node.op != &ph__op_accumulate) {
        assert(node.op == &ph__op_embedding_gradient);
        return combine_lookup(pass, &node);
    }
    const ph_value parts[] = {combine_rows(pass, node.inputs[0]), combine_rows(pass, node.inputs[1])};
    return ph__emit1(builder, &ph__op_accumulate, NULL, NULL, 0, 2, parts);
}

static ph_value sum_up(const struct pass *pass, ph_value gradient)
{
    const ph_value inputs[] = {gradient, pass->accumulation->num_before};
    pass->builder->entry = pass->backward;
    const ph_value sum = ph__emit1(pass->builder, &ph__op_gradient_sum, NULL, NULL, 0, 2, inputs);
    pass->builder->entry = pass->combine;
    return sum;
}

void ph__accumulate_gradients(struct ph_builder *builder, const struct ph__accumulation *accumulation,
    size_t count, ph_value *gradients)
{
    struct pass pass = {builder, accumulation, builder->entry, 0};
    ph_builder_begin_entry(builder, "combine");
    pass.combine = builder->entry;
    for (size_t i = 0; i < count && ph_builder_status(builder) == PH_OK; i++) {
        if (gradients[i] == 0)
            continue;
        const bool is_of_table = ph_value_type(builder, gradients[i]).kind == PH_SPARSE_ROWS;
        gradients[i] = is_of_table ? combine_rows(&pass, gradients[i]) : sum_up(&pass, gradients[i]);
    }
}
