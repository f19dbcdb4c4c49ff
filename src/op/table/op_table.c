/* Helpers of the table operators: checks, the kernel's view of a lookup, walks over rows. */
#include "op/table/op_table.h"

#include "base/memory/memory.h"
#include "store/init.h"
#include "tensor/row_format.h"

enum { BLOCK_POSITIONS = 2048 };

const struct ph__declaration *ph__lookup_table(
    struct ph_builder *builder, const char *operator_name, ph_value ids, ph_value table)
{
    if (ph_builder_status(builder) != PH_OK)
        return NULL;
    const struct ph_type type = ph_value_type(builder, ids);
    const struct ph__declaration *declaration = ph__builder_declaration(builder, table);
    if (type.kind != PH_JAGGED || type.dtype != PH_I64) {
        ph_builder_fail(builder, PH_ERROR_CONFIG, "%s: '%s' is not jagged ids", operator_name,
            ph_value_name(builder, ids));
        return NULL;
    }
    if (declaration == NULL || !declaration->is_table) {
        ph_builder_fail(builder, PH_ERROR_CONFIG, "%s: '%s' is not a table", operator_name,
            ph_value_name(builder, table));
        return NULL;
    }
    return declaration;
}

/* ---- lookups ---- */

ph_status ph__embedding_check(const struct ph__infer *infer)
{
    const struct ph_type *slots = &infer->inputs[PH_EMBEDDING_SLOTS],
                         *table = &infer->inputs[PH_EMBEDDING_TABLE],
                         *weights = &infer->inputs[PH_EMBEDDING_WEIGHTS];
    const bool are_weights_right =
        weights->kind == PH_TOKEN ||
        (ph__type_is_real_of_dims(weights, 1) && ph__dim_equal(weights->dims[0], slots->dims[1]));
    if (slots->kind != PH_JAGGED || slots->dtype != PH_U32 || !ph__type_is_real_of_dims(table, 2) ||
        !are_weights_right)
        return ph__infer_fail(infer, "slots, a table (rows,D), weights (N) or none");
    return PH_OK;
}

/* Returns the low words to read; NULL: none. */
static const uint16_t *low_words(const struct ph__call *call)
{
    const struct ph__embedding_bag_attributes *attributes = call->attributes;
    return attributes->reads_all ? call->inputs[PH_EMBEDDING_TABLE].parameter->low : NULL;
}

struct ph__embedding_bag_args ph__embedding_args(const struct ph__call *call)
{
    const struct ph__operand *table = &call->inputs[PH_EMBEDDING_TABLE];
    return (struct ph__embedding_bag_args){.table = table->data,
        .format = table->parameter->row_format,
        .low = low_words(call),
        .dim = table->shape.dims[1],
        .slots = call->inputs[PH_EMBEDDING_SLOTS].data,
        .weights = call->inputs[PH_EMBEDDING_WEIGHTS].data};
}

/* Counts a multiplication and an addition for each number of each row read. */
void ph__embedding_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__operand *table = &call->inputs[PH_EMBEDDING_TABLE];
    const struct ph_shape *slots = &call->inputs[PH_EMBEDDING_SLOTS].shape;
    const enum ph_row_format format = table->parameter->row_format;
    const size_t dim = table->shape.dims[1];
    const size_t row_bytes =
        low_words(call) != NULL ? ph__table_bytes(format, 1, dim) : ph__row_bytes(format, dim);
    const double positions = (double)slots->dims[1];
    const double weights = call->inputs[PH_EMBEDDING_WEIGHTS].data != NULL ? positions : 0;
    cost_out->flops = 2 * positions * (double)dim;
    cost_out->gathered_bytes = positions * (double)row_bytes;
    cost_out->bytes = cost_out->gathered_bytes +
                      (weights + (double)ph__elements(&call->outputs[0])) * sizeof(ph_real) +
                      (positions + (double)slots->dims[0]) * sizeof(uint32_t);
}

size_t ph__worker_positions(const struct ph_backend *backend, size_t num_positions, size_t largest)
{
    const size_t fair = num_positions / ph__team_num_threads(backend->team);
    return largest <= fair ? fair : 0;
}

struct ph__embedding_gradient_source ph__gradient_source(const struct ph__operand *lookup)
{
    const struct ph__operand *gradient = &lookup[PH_LOOKUP_GRADIENT];
    return (struct ph__embedding_gradient_source){
        .num_entries = lookup[PH_LOOKUP_ORDER].shape.dims[1],
        .rows = lookup[PH_LOOKUP_ROWS].data,
        .coefficients = lookup[PH_LOOKUP_COEFFICIENTS].data,
        .grad = gradient->data,
        .dim = ph__row_width(gradient),
    };
}

size_t ph__lower_bound(const uint32_t *items, size_t count, size_t key)
{
    size_t first = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (items[first + half] < key) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

struct merged_job {
    const uint32_t *starts;
    size_t num_unique;
    ph__range_task task;
    void *argument;
};

static void run_positions(void *argument, size_t first, size_t last, size_t worker)
{
    const struct merged_job *job = argument;
    const size_t begin = ph__lower_bound(job->starts, job->num_unique, first);
    const size_t end = ph__lower_bound(job->starts, job->num_unique, last);
    if (begin < end)
        job->task(job->argument, begin, end, worker);
}

void ph__for_merged(
    const struct ph_backend *backend, const struct ph__operand *order, ph__range_task task, void *argument)
{
    struct merged_job job = {order->index, order->shape.dims[0], task, argument};
    ph__for_blocks(backend, order->shape.dims[1], BLOCK_POSITIONS, run_positions, &job);
}

/* ---- rows whose format the store chose ---- */

struct ph__table_rows ph__table_rows(const struct ph__call *call, const struct ph_parameter *parameter)
{
    size_t rows, columns;
    ph__init_matrix(&parameter->shape, &rows, &columns);
    return (struct ph__table_rows){.format = parameter->row_format,
        .dim = columns,
        .memory = parameter->memory,
        .low = parameter->low,
        .seed = call->run->seed,
        .step = call->run->step,
        .slices = parameter->row_slices,
        .num_slices = parameter->num_slices};
}

ph_real *ph__table_numbers(const struct ph__table_rows *table, size_t row)
{
    return table->format == PH_ROWS_FP32 ? (ph_real *)table->memory + row * table->dim : NULL;
}

size_t ph__table_block_bytes(size_t columns)
{
    return ph__size_align(ph__block_rows(columns) * columns * sizeof(ph_real));
}

size_t ph__table_scratch_bytes(const struct ph__call *call, size_t columns)
{
    return ph__team_num_threads(call->backend->team) * ph__table_block_bytes(columns);
}

/* ---- rows and their gradients ---- */

void ph__visit_rows(
    const struct ph__operand *gradient, size_t first, size_t last, ph__row_visit visit, void *argument)
{
    const size_t num_slots = gradient->data != NULL ? gradient->shape.dims[0] : 0;
    const size_t dim = gradient->data != NULL ? gradient->shape.dims[1] : 0;
    const uint32_t *slots = gradient->index;
    size_t row = first;
    for (size_t i = ph__lower_bound(slots, num_slots, first); i < num_slots && slots[i] < last; i++) {
        if (row < slots[i])
            visit(argument, row, slots[i] - row, NULL);
        visit(argument, slots[i], 1, (const ph_real *)gradient->data + i * dim);
        row = (size_t)slots[i] + 1;
    }
    if (row < last)
        visit(argument, row, last - row, NULL);
}

/* ---- histories ---- */

bool ph__type_is_bags(const struct ph_type *type)
{
    return type->kind == PH_JAGGED && type->dims[0].extent == 1 && type->dims[0].symbol == PH_SYMBOL_BATCH;
}

ph_value ph__bags_of(const struct ph_builder *builder, const struct ph_type *type)
{
    const struct ph__graph *graph = &builder->graph;
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
           (ph__type_is_real_of_dims(weights, 2) && ph__dim_equal(weights->dims[0], bags->dims[1]) &&
               ph__dim_equal(weights->dims[1], ph__dim(1)));
}

void ph__for_bags(const struct ph_backend *backend, const struct ph__operand *bags, size_t row_elements,
    ph__range_task task, void *argument)
{
    const size_t num_samples = bags->shape.dims[0];
    const size_t average_items = num_samples > 0 ? bags->shape.dims[1] / num_samples + 1 : 1;
    ph__for_blocks(backend, num_samples, ph__block_rows(average_items * row_elements), task, argument);
}
