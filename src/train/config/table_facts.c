#include "train/config/table_facts.h"

#include <string.h>

#include "graph/graph.h"
#include "op/table/op_table.h"
#include "op/update/op_update.h"
#include "plan/plan_units.h"
#include "serve/scorer.h"
#include "shard/tower/tower_cone.h"
#include "store/declaration.h"
#include "tensor/row_format.h"
#include "train/config/training_program.h"
#include "train/cost/cost_tables.h"
#include "train/job_rows.h"

struct counting {
    const struct ph__graph *graph;
    const struct ph_batch *batch;
    struct ph__table_facts *tables;
    size_t *first_tables;          /* (num_declarations) index of a declaration's first slice */
    const uint64_t **first_rows;   /* (num_declarations) first rows of a declaration's slices */
    struct ph__table_read **reads; /* (num_tables) */
};

static const struct ph__node *producer_of(const struct ph__graph *graph, ph_value value)
{
    const uint32_t producer = graph->values[value].producer;
    return producer != PH_NO_NODE ? &graph->nodes[producer] : NULL;
}

/* Returns the mean number of ids a sample, or 1 for a stream, whose ids are not known before (batch NULL). */
static double ids_per_sample(const struct ph_batch *batch, size_t feature)
{
    if (batch == NULL)
        return 1;
    const size_t first = feature * batch->num_samples;
    if (batch->num_samples == 0)
        return 0;
    return (double)(batch->offsets[first + batch->num_samples] - batch->offsets[first]) /
           (double)batch->num_samples;
}

/* Called for each slice that a lookup reads, once for each feature of the lookup's ids; these may be a
 * selection of the batch's features. */
typedef void (*read_visit)(const struct counting *counting, size_t table, struct ph__table_read read);

static void visit_lookup(const struct counting *counting, const struct ph__node *lookup, read_visit visit)
{
    const struct ph__graph *graph = counting->graph;
    const uint32_t source = graph->values[lookup->inputs[PH_EMBEDDING_TABLE]].source;
    const struct ph__node *slots = producer_of(graph, lookup->inputs[PH_EMBEDDING_SLOTS]);
    const struct ph__node *selection = producer_of(graph, slots->inputs[0]);
    const size_t *features = selection != NULL ? ph__selected_features(selection) : NULL;
    const size_t num_features = graph->values[slots->inputs[0]].type.dims[0].extent;
    for (size_t i = 0; i < num_features; i++) {
        const size_t slice = ph__declaration_slice_at(
            &graph->declarations[source], counting->first_rows[source], ph__slots_ranges(slots)[i].first_row);
        visit(counting, counting->first_tables[source] + slice,
            (struct ph__table_read){
                (uint32_t)(features != NULL ? features[i] : i), lookup->op == &ph__op_embedding_rows});
    }
}

static void visit_lookups(const struct counting *counting, read_visit visit)
{
    for (size_t i = 0; i < counting->graph->num_nodes; i++) {
        const struct ph__node *node = &counting->graph->nodes[i];
        if (node->op == &ph__op_embedding_bag || node->op == &ph__op_embedding_rows)
            visit_lookup(counting, node, visit);
    }
}

static void count_read(const struct counting *counting, size_t table, struct ph__table_read read)
{
    counting->tables[table].num_features++;
    counting->tables[table].ids_per_sample += ids_per_sample(counting->batch, read.feature);
}

static void add_read(const struct counting *counting, size_t table, struct ph__table_read read)
{
    counting->reads[table][counting->tables[table].num_features++] = read;
}

static ph_status list_reads(const struct counting *counting, struct ph__table_list *list)
{
    visit_lookups(counting, count_read);
    for (size_t i = 0; i < list->num_tables; i++) {
        struct ph__table_facts *table = &list->tables[i];
        counting->reads[i] =
            ph__arena_alloc_array(&list->arena, table->num_features, sizeof *counting->reads[i]);
        if (counting->reads[i] == NULL)
            return PH_ERROR_MEMORY;
        table->reads = counting->reads[i];
        table->num_features = 0;
    }
    visit_lookups(counting, add_read);
    return PH_OK;
}

static size_t ids_of(const struct ph_batch *batch, size_t feature, const int64_t **ids_out)
{
    const size_t first = feature * batch->num_samples;
    *ids_out = batch->ids + batch->offsets[first];
    return batch->offsets[first + batch->num_samples] - batch->offsets[first];
}

/* Counts how often the batch reads the table's rows; ids (most ids that a table reads) are scratch. */
static ph_status count_accesses(
    const struct ph_batch *batch, struct ph__table_facts *table, int64_t *ids, struct ph__arena *arena)
{
    double *accesses = ph__arena_alloc_array(arena, PH_ACCESS_BINS, sizeof *accesses);
    size_t count = 0;
    if (accesses == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < table->num_features; i++) {
        const int64_t *own;
        const size_t num_own = ids_of(batch, table->reads[i].feature, &own);
        memcpy(ids + count, own, num_own * sizeof *ids);
        count += num_own;
    }
    ph__accesses_count(ids, count, accesses);
    table->accesses = count > 0 ? accesses : NULL;
    return PH_OK;
}

/* Needs the tables' reads. Of a batch without ids nothing is known. */
static ph_status list_accesses(const struct ph_batch *batch, struct ph__table_list *list)
{
    size_t most = 0;
    if (batch == NULL || batch->ids == NULL)
        return PH_OK;
    for (size_t i = 0; i < list->num_tables; i++) {
        const int64_t *own;
        size_t count = 0;
        for (size_t k = 0; k < list->tables[i].num_features; k++)
            count += ids_of(batch, list->tables[i].reads[k].feature, &own);
        most = count > most ? count : most;
    }
    int64_t *ids = ph__arena_alloc_array(&list->arena, most, sizeof *ids);
    if (ids == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < list->num_tables; i++)
        PH_TRY(count_accesses(batch, &list->tables[i], ids, &list->arena));
    return PH_OK;
}

static void count_update(const struct counting *counting, const struct ph__node *update)
{
    const uint32_t source = counting->graph->values[update->inputs[PH_UPDATE_PARAMETER]].source;
    const struct ph__declaration *declaration = &counting->graph->declarations[source];
    const struct ph_optimizer *optimizer = update->attributes;
    const uint64_t bytes = update->op->slot_bytes(update, declaration) / declaration->shape.dims[0];
    for (size_t i = 0; declaration->is_table && i < declaration->num_slices; i++) {
        struct ph__table_facts *table = &counting->tables[counting->first_tables[source] + i];
        table->slot_bytes = bytes;
        table->row_slot_bytes = optimizer->rule.kind == PH_ROWWISE_ADAGRAD ? bytes : 0;
        table->has_whole_rows = optimizer->rule.kind == PH_ROWWISE_ADAGRAD && optimizer->is_whole_table;
    }
}

static void count_updates(const struct counting *counting)
{
    for (size_t i = 0; i < counting->graph->num_nodes; i++)
        if (counting->graph->nodes[i].op->slot_bytes != NULL)
            count_update(counting, &counting->graph->nodes[i]);
}

static ph_status list_tables(
    const struct ph__graph *graph, enum ph_row_format row_format, struct ph__table_list *list)
{
    for (size_t d = 0; d < graph->num_declarations; d++) {
        const struct ph__declaration *declaration = &graph->declarations[d];
        for (size_t i = 0; declaration->is_table && i < declaration->num_slices; i++) {
            const struct ph_table_slice *slice = &declaration->slices[i];
            const size_t dim = declaration->shape.dims[1];
            struct ph__table_facts *table = &list->tables[list->num_tables++];
            *table = (struct ph__table_facts){.name = ph__arena_strdup(&list->arena, slice->name),
                .num_rows = slice->num_rows,
                .dim = dim,
                .weight_bytes = ph__table_bytes(row_format, 1, dim),
                .parameter = (uint32_t)d};
            if (table->name == NULL)
                return PH_ERROR_MEMORY;
        }
    }
    return PH_OK;
}

/* ---- dense parameters ---- */

/* Returns the first node of an entry that reads the parameter or what is its memory; SIZE_MAX: none does. */
static size_t first_use(const struct ph__graph *graph, const char *entry, ph_value parameter)
{
    for (size_t i = 0; i < graph->num_nodes; i++)
        for (uint32_t k = 0; k < graph->nodes[i].num_inputs; k++)
            if (strcmp(graph->entries[graph->nodes[i].entry], entry) == 0 &&
                ph__graph_root(graph, graph->nodes[i].inputs[k]) == parameter)
                return i;
    return SIZE_MAX;
}

/* Notes what the parameter's update says of its optimizer. */
static void note_update(const struct ph__graph *graph, ph_value parameter, struct ph__dense_facts *facts)
{
    const struct ph__declaration *declaration = &graph->declarations[graph->values[parameter].source];
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *update = &graph->nodes[i];
        if (update->op->slot_bytes == NULL || update->inputs[PH_UPDATE_PARAMETER] != parameter)
            continue;
        const struct ph_optimizer *optimizer = update->attributes;
        facts->is_element_wise = optimizer->rule.kind != PH_ROWWISE_ADAGRAD;
        facts->num_slots =
            (size_t)(update->op->slot_bytes(update, declaration) / (facts->rows * facts->columns)) /
            sizeof(ph_real);
    }
}

static ph_status list_dense(const struct ph__graph *graph, struct ph__table_list *list)
{
    list->dense = ph__arena_alloc_array(&list->arena, graph->num_declarations, sizeof *list->dense);
    if (list->dense == NULL)
        return PH_ERROR_MEMORY;
    for (size_t d = 0; d < graph->num_declarations; d++) {
        const struct ph__declaration *declaration = &graph->declarations[d];
        const ph_value parameter = graph->declaration_values[d];
        if (declaration->is_table)
            continue;
        list->num_dense += ph_shape_elements(&declaration->shape);
        if (declaration->shape.num_dims == 0)
            continue;
        struct ph__dense_facts *facts = &list->dense[list->num_dense_parameters++];
        *facts = (struct ph__dense_facts){.name = ph__arena_strdup(&list->arena, declaration->name),
            .rows = declaration->shape.dims[0],
            .columns = ph__type_elements_from(&graph->values[parameter].type, 1),
            .is_element_wise = true,
            .is_read_backward = first_use(graph, "backward", parameter) < SIZE_MAX,
            .first_use = first_use(graph, "forward", parameter),
            .is_of_tower = ph__tower_name(declaration->name) != NULL};
        if (facts->name == NULL)
            return PH_ERROR_MEMORY;
        note_update(graph, parameter, facts);
    }
    return PH_OK;
}

/* ---- towers ---- */

/* Sums up the numbers of the parameters that the layers of a tower read. */
static size_t layer_numbers(const struct ph__graph *graph, const struct ph__tower_cone *cone)
{
    size_t count = 0;
    for (size_t d = 0; d < graph->num_declarations; d++) {
        bool is_read = false;
        for (size_t i = 0; i <= cone->last && !graph->declarations[d].is_table; i++)
            for (uint32_t k = 0; cone->is_inside[i] && k < graph->nodes[i].num_inputs; k++) {
                const struct ph__value_info *input = &graph->values[graph->nodes[i].inputs[k]];
                is_read |= input->storage == PH_STORAGE_PARAMETER && input->source == d;
            }
        count += is_read ? ph_shape_elements(&graph->declarations[d].shape) : 0;
    }
    return count;
}

static ph_status add_tower(const struct counting *counting, const struct ph__named_value *named,
    const char *name, struct ph__table_list *list)
{
    const struct ph__graph *graph = counting->graph;
    const struct ph_type *type = &graph->values[named->value].type;
    struct ph__tower_facts *tower = ph__arena_alloc(&list->arena, sizeof *tower);
    struct ph__tower_cone cone;
    if (tower == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__tower_cone_find(graph, named, &list->arena, &cone));
    *tower = (struct ph__tower_facts){.name = ph__arena_strdup(&list->arena, name),
        .num_vectors = type->dims[1].extent,
        .dim = type->dims[2].extent,
        .num_numbers = layer_numbers(graph, &cone)};
    const uint32_t table = graph->values[graph->nodes[cone.lookup].inputs[PH_EMBEDDING_TABLE]].source;
    for (size_t i = 0; i < graph->declarations[table].num_slices; i++)
        list->tables[counting->first_tables[table] + i].tower = tower;
    return tower->name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status list_towers(const struct counting *counting, struct ph__table_list *list)
{
    const struct ph__graph *graph = counting->graph;
    for (size_t i = 0; i < graph->num_named; i++) {
        const char *name = ph__tower_name(graph->named[i].name);
        if (name != NULL && graph->values[graph->named[i].value].type.num_dims == 3)
            PH_TRY(add_tower(counting, &graph->named[i], name, list));
    }
    return PH_OK;
}

/* ---- all ---- */

ph_status ph__table_list_init(const struct ph_program *program, enum ph_row_format row_format,
    const struct ph_batch *batch, struct ph__table_list *list)
{
    const struct ph__graph *graph = &program->graph;
    size_t num_tables = 0;
    *list = (struct ph__table_list){0};
    size_t *first_tables = ph__arena_alloc_array(&list->arena, graph->num_declarations, sizeof *first_tables);
    const uint64_t **first_rows =
        ph__arena_alloc_array(&list->arena, graph->num_declarations, sizeof *first_rows);
    if (first_tables == NULL || first_rows == NULL)
        return PH_ERROR_MEMORY;
    for (size_t d = 0; d < graph->num_declarations; d++) {
        first_tables[d] = num_tables;
        first_rows[d] = ph__declaration_first_rows(&graph->declarations[d], &list->arena);
        if (first_rows[d] == NULL)
            return PH_ERROR_MEMORY;
        num_tables += graph->declarations[d].is_table ? graph->declarations[d].num_slices : 0;
    }
    list->tables = ph__arena_alloc_array(&list->arena, num_tables, sizeof *list->tables);
    struct ph__table_read **reads = ph__arena_alloc_array(&list->arena, num_tables, sizeof *reads);
    if (list->tables == NULL || reads == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(list_tables(graph, row_format, list));
    const struct counting counting = {graph, batch, list->tables, first_tables, first_rows, reads};
    count_updates(&counting);
    PH_TRY(list_dense(graph, list));
    PH_TRY(list_towers(&counting, list));
    PH_TRY(list_reads(&counting, list));
    return list_accesses(batch, list);
}

void ph__table_list_fini(struct ph__table_list *list)
{
    ph__arena_fini(&list->arena);
    *list = (struct ph__table_list){0};
}

ph_status ph__table_list_read_plan(const char *path, const struct ph__topology *topology,
    const struct ph__table_list *list, const enum ph__dense_mode *mode, struct ph__plan *plan_out)
{
    struct ph__plan plan;
    PH_TRY(ph__plan_read(path, topology, list->tables, list->num_tables, &plan));
    const ph_status status = ph__plan_units_read(path, mode, list->dense, list->num_dense_parameters, &plan);
    if (status == PH_OK)
        *plan_out = plan;
    else
        ph__plan_fini(&plan);
    return status;
}

const enum ph__dense_mode *ph__named_dense_mode(enum ph_dense_sharding named, enum ph__dense_mode *mode)
{
    *mode = named != PH_DENSE_SHARDING_AUTO ? (enum ph__dense_mode)(named - PH_DENSE_SHARDING_REPLICATED)
                                            : PH_DENSE_REPLICATED;
    return named != PH_DENSE_SHARDING_AUTO ? mode : NULL;
}

ph_status ph__table_list_make_units(const struct ph__table_list *list, const struct ph__train_job *job,
    uint64_t rank_bytes, struct ph__plan *plan)
{
    const struct ph_parallel_settings *parallel = job->parallel;
    const bool sums_whole = parallel->sync == PH_SYNC_HUB || parallel->dense == PH_WIRE_INT8;
    struct ph__dense_settings settings = {.prefetch = 1};
    if (ph__named_dense_mode(parallel->dense_mode, &settings.mode) == NULL && rank_bytes > 0 && !sums_whole)
        PH_TRY(ph__dense_mode_choose(plan, list->tables, list->dense, list->num_dense_parameters,
            ph__num_micro_batches(job->train), rank_bytes, &settings.mode));
    return ph__plan_units_make(plan, &settings, list->dense, list->num_dense_parameters);
}

/* ---- of a job ---- */

static ph_status list_by_batch(
    const struct ph__train_job *job, const struct ph_program *program, struct ph__table_list *list)
{
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .seed = job->run.seed,
        .reading.max_bad_rows = job->reading.max_bad_rows};
    const struct ph__rows_origin rows = ph__job_train(job);
    struct ph_batches *batches;
    const struct ph_batch *batch;
    if (ph__job_rows_flow(rows))
        return ph__table_list_init(program, job->train->row_format, NULL, list);
    PH_TRY(ph__batches_open(job->encoder, &rows, &options, &batches));
    ph_status status = ph_batches_next(batches, &batch);
    if (status == PH_OK)
        status = ph__table_list_init(program, job->train->row_format, batch, list);
    ph_batches_close(batches);
    return status;
}

ph_status ph__table_list_of_job(const struct ph__train_job *job, struct ph__table_list *list)
{
    struct ph_model_features features;
    struct ph__training_program learning;
    *list = (struct ph__table_list){0};
    if (!ph__job_rows_exist(ph__job_train(job)))
        return ph_fail(PH_ERROR_CONFIG, "data.train is missing: planning counts ids in its first batch");
    PH_TRY(ph__features_init(job->encoder, &features));
    ph_status status = ph__training_program_build(job, &features, NULL, &learning);
    ph__features_fini(&features);
    PH_TRY(status);
    status = list_by_batch(job, learning.program, list);
    ph_program_destroy(learning.program);
    return status;
}

static struct ph__plan_wire wire_of(enum ph_wire_format wire)
{
    static const struct ph__plan_wire wires[PH_WIRE_COUNT] = {{4, 0}, {2, 0}, {2, 0}, {1, 4}};
    return wires[wire];
}

struct ph__plan_step ph__plan_step_of_job(const struct ph__train_job *job)
{
    return (struct ph__plan_step){.batch_size = (size_t)job->train->batch_size,
        .has_id_weights = ph_encoder_has_id_weights(job->encoder),
        .pooled_wire = wire_of(job->parallel->forward),
        .gradient_wire = wire_of(job->parallel->backward)};
}

struct ph__plan_dense ph__plan_dense_of_job(
    const struct ph__train_job *job, const struct ph__table_list *list)
{
    const size_t bucket_numbers = (size_t)job->parallel->bucket_bytes / sizeof(ph_real);
    const bool is_among_ranks = job->parallel->sync == PH_SYNC_ALLREDUCE;
    return (struct ph__plan_dense){.num_numbers = is_among_ranks ? list->num_dense : 0,
        .bucket_numbers = bucket_numbers > 0 ? bucket_numbers : 1,
        .wire = wire_of(job->parallel->dense),
        .num_micro_batches = ph__num_micro_batches(job->train)};
}
