/* embedding_rows: the row of each item by itself, where embedding_bag pools a bag's.
 *
 * slots jagged u32 (B bags, I), table (rows, D), id weights (I) or none -> (I,D): row i = w_i
 * table[slot_i,:].
 *
 * A block of items goes through embedding_bag's kernel as bags of one item, which gives the rows the same
 * bits in any row format. The gradient by the table is sparse_rows, as embedding_bag's; an entry's row is its
 * position. */
#include "op/table/op_table.h"

enum { BLOCK_ITEMS = 1024 };

static ph_status embedding_rows_infer(struct ph__infer *infer)
{
    PH_TRY(ph__embedding_check(infer));
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){infer->inputs[PH_EMBEDDING_SLOTS].dims[1],
                                              infer->inputs[PH_EMBEDDING_TABLE].dims[1]});
    return PH_OK;
}

static void embedding_rows_gradient(struct ph__gradient *gradient)
{
    ph__embedding_gradient(gradient, PH_LOOKUP_ITEMS);
}

static void look_up(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    struct ph__embedding_bag_args args = ph__embedding_args(call);
    uint32_t offsets[BLOCK_ITEMS + 1];
    (void)worker;
    for (size_t i = first; i <= last; i++)
        offsets[i - first] = (uint32_t)i;
    args.offsets = offsets;
    args.num_samples = last - first;
    args.num_features = 1;
    args.out_stride = args.dim;
    args.out = (ph_real *)call->outputs[0].data + first * args.dim;
    call->backend->kernels->embedding_bag(&args);
}

static ph_status embedding_rows_run(struct ph__call *call)
{
    ph__for_blocks(call->backend, ph__rows(&call->outputs[0]), BLOCK_ITEMS, look_up, call);
    return PH_OK;
}

const struct ph__op ph__op_embedding_rows = {
    .name = "embedding_rows",
    .traits = PH_OP_READS_ROW_FORMATS,
    .infer = embedding_rows_infer,
    .gradient = embedding_rows_gradient,
    .cost = ph__embedding_cost,
    .run = embedding_rows_run,
};

ph_value ph_embedding_rows(
    struct ph_builder *builder, ph_value bags, ph_value table, size_t feature, ph_value id_weights)
{
    const struct ph__declaration *declaration = ph__lookup_table(builder, "embedding_rows", bags, table);
    if (declaration == NULL)
        return 0;
    if (ph_value_type(builder, bags).dims[0].extent != 1)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "embedding_rows: '%s' is not the bags of one feature", ph_value_name(builder, bags));
    if (feature >= declaration->num_features)
        return ph_builder_fail(builder, PH_ERROR_CONFIG,
            "embedding_rows: table '%s' has %zu features, but no feature %zu", declaration->name,
            declaration->num_features, feature);
    const struct ph__embedding_bag_attributes attributes = {
        .reads_all = ph_builder_mode(builder) == PH_INFERENCE};
    const ph_value inputs[PH_EMBEDDING_INPUTS] = {ph__slots(builder, bags, declaration, &feature), table,
        ph__selected_weights(builder, bags, id_weights)};
    return ph__emit1(
        builder, &ph__op_embedding_rows, NULL, &attributes, sizeof attributes, PH_EMBEDDING_INPUTS, inputs);
}
