/* slots: from ids to rows of a table.
 *
 * ids jagged i64 (F*B bags, N) -> slots jagged u32 (F*B bags, N): slot = first row of the feature's slice +
 * id. An id outside its slice is bad data. Other operators in this place could hash, or use memory tiers. */
#include <string.h>

#include "base/text/utf8.h"
#include "op/attributes.h"
#include "op/table/op_table.h"
#include "store/declaration.h"

enum { BLOCK_SAMPLES = 1024 };

/* Attributes: F ranges of rows, then the features' names, each with its NUL. They are compared as bytes, so
 * that tables whose slices have equal rows and end in equal names ("linear.user", "embedding.user") share one
 * node. */
static size_t num_features(const struct ph_type *ids)
{
    return ids->dims[0].extent;
}

static const char *feature_name(const struct ph__call *call, size_t feature)
{
    const char *name =
        (const char *)((const struct ph__slot_range *)call->attributes + num_features(call->inputs[0].type));
    for (; feature > 0; feature--)
        name += strlen(name) + 1;
    return name;
}

static ph_status slots_infer(struct ph__infer *infer)
{
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dtype = PH_U32;
    return PH_OK;
}

static void slots_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph_shape *shape = &call->inputs[0].shape;
    cost_out->bytes = (double)shape->dims[1] * (sizeof(int64_t) + sizeof(uint32_t)) +
                      (double)shape->dims[0] * 2 * sizeof(uint32_t);
}

/* Counts the blocks of a feature's samples. Each task, a block of one feature, has a flag: it met an id
 * outside its slice. */
static size_t num_blocks(const struct ph__operand *ids)
{
    const size_t num_samples = ids->shape.dims[0] / num_features(ids->type);
    return (num_samples + BLOCK_SAMPLES - 1) / BLOCK_SAMPLES;
}

static size_t slots_scratch_bytes(const struct ph__call *call)
{
    return num_blocks(&call->inputs[0]) * num_features(call->inputs[0].type);
}

/* Fills the slots of one block of samples, of one feature. */
static void slots_task(void *argument, size_t task, size_t worker)
{
    const struct ph__call *call = argument;
    const struct ph__operand *input = &call->inputs[0];
    const size_t features = num_features(input->type), num_samples = input->shape.dims[0] / features;
    const size_t feature = task % features, first = task / features * BLOCK_SAMPLES;
    const size_t last = first + BLOCK_SAMPLES < num_samples ? first + BLOCK_SAMPLES : num_samples;
    const uint32_t *offsets = input->index + feature * num_samples;
    const struct ph__slot_range range = ((const struct ph__slot_range *)call->attributes)[feature];
    const int64_t *ids = input->data;
    uint32_t *slots = call->outputs[0].data;
    (void)worker;

    bool is_bad = false;
    for (size_t p = offsets[first]; p < offsets[last]; p++) {
        is_bad |= (uint64_t)ids[p] >= range.num_rows;
        slots[p] = (uint32_t)(range.first_row + (uint64_t)ids[p]);
    }
    memcpy(call->outputs[0].index + feature * num_samples + first, offsets + first,
        (last - first) * sizeof *offsets);
    ((uint8_t *)call->scratch)[task] = is_bad;
}

/* Reports this task's first id outside its slice. */
static ph_status report_bad_id(const struct ph__call *call, size_t task)
{
    const struct ph__operand *input = &call->inputs[0];
    const size_t features = num_features(input->type), num_samples = input->shape.dims[0] / features;
    const size_t feature = task % features;
    const uint32_t *offsets = input->index + feature * num_samples;
    const uint64_t num_rows = ((const struct ph__slot_range *)call->attributes)[feature].num_rows;
    const int64_t *ids = input->data;
    size_t sample = task / features * BLOCK_SAMPLES;
    size_t p = offsets[sample];
    while ((uint64_t)ids[p] < num_rows)
        p++;
    while (offsets[sample + 1] <= p)
        sample++;
    return ph_fail(PH_ERROR_DATA, "feature '%s', sample %llu: id %lld is outside its table of %llu rows",
        feature_name(call, feature), (unsigned long long)(call->run->first_sample + sample),
        (long long)ids[p], (unsigned long long)num_rows);
}

static ph_status slots_run(struct ph__call *call)
{
    const struct ph__operand *input = &call->inputs[0];
    const size_t num_tasks = num_blocks(input) * num_features(input->type);
    ph__parallel_for(call->backend->team, num_tasks, slots_task, call);
    call->outputs[0].index[input->shape.dims[0]] = input->index[input->shape.dims[0]];
    for (size_t task = 0; task < num_tasks; task++)
        if (((const uint8_t *)call->scratch)[task] != 0)
            return report_bad_id(call, task);
    return PH_OK;
}

const struct ph__op ph__op_slots = {
    .name = "slots",
    .traits = PH_OP_OF_IDS,
    .infer = slots_infer,
    .cost = slots_cost,
    .scratch_bytes = slots_scratch_bytes,
    .run = slots_run,
};

const struct ph__slot_range *ph__slots_ranges(const struct ph__node *node)
{
    return node->attributes;
}

/* Returns the slice of the table's feature features[i], or of feature i where features is NULL. */
static size_t slice_of(const struct ph__declaration *table, const size_t *features, size_t i)
{
    return table->feature_slices[features != NULL ? features[i] : i];
}

static void *make_attributes(struct ph_builder *builder, const struct ph__declaration *table, size_t count,
    const size_t *features, size_t *size_out)
{
    size_t size = count * sizeof(struct ph__slot_range);
    for (size_t i = 0; i < count; i++)
        size += strlen(ph__last_word(table->slices[slice_of(table, features, i)].name, '.')) + 1;
    struct ph__slot_range *ranges = ph__arena_alloc(&builder->graph.arena, size);
    const uint64_t *first_rows = ph__declaration_first_rows(table, &builder->graph.arena);
    if (ranges == NULL || first_rows == NULL) {
        ph_builder_fail(builder, PH_ERROR_MEMORY, "out of memory: the rows of '%s'", table->name);
        return NULL;
    }
    char *next = (char *)(ranges + count);
    for (size_t i = 0; i < count; i++) {
        const size_t slice = slice_of(table, features, i);
        ranges[i] = (struct ph__slot_range){first_rows[slice], table->slices[slice].num_rows};
        next = stpcpy(next, ph__last_word(table->slices[slice].name, '.')) + 1;
    }
    *size_out = size;
    return ranges;
}

ph_value ph__slots(
    struct ph_builder *builder, ph_value ids, const struct ph__declaration *table, const size_t *features)
{
    const size_t count = ph_value_type(builder, ids).dims[0].extent;
    size_t size;
    void *attributes = make_attributes(builder, table, count, features, &size);
    if (attributes == NULL)
        return 0;
    const ph_value known = ph__builder_find(builder, &ph__op_slots, attributes, size, 1, &ids, 0);
    return known != 0 ? known : ph__emit1(builder, &ph__op_slots, NULL, attributes, size, 1, &ids);
}
