/* Walks over an inference program: its leaves become the inputs and constants of the ONNX graph, and the
 * function of each node's operator adds ONNX nodes. */
#include "serve/onnx_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "serve/onnx_operators.h"

#define ENTRY "forward"
#define LOGITS "logits"

/* ---- leaves ---- */

static ph_status add_parameter(struct ph__onnx_walk *walk, struct ph_store *store,
    const struct ph__declaration *declaration, ph_value value)
{
    struct ph_parameter *parameter;
    PH_TRY(ph__store_add(store, declaration, NULL, &parameter));
    const struct ph__onnx_tensor tensor = {
        declaration->name, PH_ONNX_REAL, declaration->shape, parameter->data};
    walk->names[value] = ph__onnx_model_tensor(walk->model, &tensor);
    return PH_OK;
}

static ph_status add_state(struct ph__onnx_walk *walk, struct ph_state *state,
    const struct ph__state_declaration *declaration, ph_value value)
{
    struct ph__state_array *array;
    PH_TRY(ph__state_add(
        state, declaration->name, declaration->elements, (ph_real)declaration->initial, &array));
    const struct ph__onnx_tensor tensor = {
        declaration->name, PH_ONNX_REAL, {.num_dims = 1, .dims = {declaration->elements}}, array->data};
    walk->names[value] = ph__onnx_model_tensor(walk->model, &tensor);
    return PH_OK;
}

static ph_status add_weights(struct ph__onnx_walk *walk, const struct ph__model_folder *folder)
{
    const struct ph__graph *graph = walk->graph;
    for (ph_value value = 1; value < graph->num_values; value++) {
        const struct ph__value_info *info = &graph->values[value];
        if (info->storage == PH_STORAGE_PARAMETER)
            PH_TRY(add_parameter(walk, folder->store, &graph->declarations[info->source], value));
        else if (info->storage == PH_STORAGE_STATE)
            PH_TRY(add_state(walk, folder->state, &graph->states[info->source], value));
    }
    return PH_OK;
}

static void add_inputs(struct ph__onnx_walk *walk)
{
    const ph_value *inputs = walk->graph->batch_inputs;
    const struct ph__onnx_dim dense[] = {{0, "batch"}, {walk->encoder->num_dense, NULL}};
    if (inputs[PH_INPUT_DENSE] != 0) {
        ph__onnx_model_input(walk->model, "dense", PH_ONNX_REAL, 2, dense);
        walk->names[inputs[PH_INPUT_DENSE]] = "dense";
    }
    if (inputs[PH_INPUT_IDS] != 0)
        ph__onnx_add_id_inputs(walk, inputs[PH_INPUT_ID_WEIGHTS] != 0);
}

/* ---- nodes ---- */

static ph_status add_nodes(struct ph__onnx_walk *walk, const char *kind)
{
    const struct ph__graph *graph = walk->graph;
    for (size_t i = 0; i < graph->num_nodes; i++) {
        const struct ph__node *node = &graph->nodes[i];
        if (strcmp(graph->entries[node->entry], ENTRY) != 0)
            continue;
        ph__onnx_operator *add = ph__onnx_operator_find(node->op->name);
        if (add == NULL)
            return ph_fail(PH_ERROR_USAGE,
                "model '%s' cannot be exported to ONNX: node '%s' has operator '%s', which ONNX lacks", kind,
                node->name, node->op->name);
        add(walk, node);
    }
    return PH_OK;
}

/* Returns the program's output (B,T), 0 without one. */
static ph_value find_logits(const struct ph__graph *graph)
{
    for (size_t i = 0; i < graph->num_outputs; i++)
        if (strcmp(graph->outputs[i].name, LOGITS) == 0)
            return graph->outputs[i].value;
    return 0;
}

/* Adds logits (B,T) + [shift, 0, …]. */
static void add_shifted(struct ph__onnx_walk *walk, const char *logits, size_t num_tasks, double shift)
{
    ph_real *shifts = ph__arena_alloc_array(&walk->model->arena, num_tasks, sizeof *shifts);
    if (shifts == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu tasks", num_tasks);
        return;
    }
    shifts[0] = (ph_real)shift;
    const struct ph__onnx_tensor tensor = {
        "logit_shift", PH_ONNX_REAL, {.num_dims = 1, .dims = {num_tasks}}, shifts};
    const char *const inputs[] = {logits, ph__onnx_model_tensor(walk->model, &tensor), NULL};
    ph__onnx_model_node(walk->model, LOGITS, &(struct ph__onnx_node){"Add", inputs, NULL});
}

static ph_status add_outputs(struct ph__onnx_walk *walk, double logit_shift)
{
    const ph_value logits = find_logits(walk->graph);
    if (logits == 0)
        return ph_fail(PH_ERROR_BUG, "the program has no output '%s'", LOGITS);
    const size_t num_tasks = walk->graph->values[logits].type.dims[1].extent;
    const struct ph__onnx_dim dims[] = {{0, "batch"}, {num_tasks, NULL}};
    const char *const value[] = {walk->names[logits], NULL}, *const named[] = {LOGITS, NULL};
    if (logit_shift != 0)
        add_shifted(walk, walk->names[logits], num_tasks, logit_shift);
    else
        ph__onnx_model_node(walk->model, LOGITS, &(struct ph__onnx_node){"Identity", value, NULL});
    ph__onnx_model_node(walk->model, "probability", &(struct ph__onnx_node){"Sigmoid", named, NULL});
    ph__onnx_model_output(walk->model, "probability", PH_ONNX_REAL, 2, dims);
    ph__onnx_model_output(walk->model, LOGITS, PH_ONNX_REAL, 2, dims);
    return PH_OK;
}

/* ---- metadata ---- */

/* Writes the feature of each column of an input into the metadata, one name a line. */
static void add_names(
    struct ph__onnx_walk *walk, const char *input, const char *const *names, size_t num_names)
{
    size_t size = 1;
    for (size_t i = 0; i < num_names; i++)
        size += strlen(names[i]) + 1;
    char *text = ph__arena_alloc(&walk->model->arena, size), *end = text;
    if (text == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu names", num_names);
        return;
    }
    for (size_t i = 0; i < num_names; i++) {
        if (i > 0)
            *end++ = '\n';
        end = stpcpy(end, names[i]);
    }
    ph__onnx_model_metadata(walk->model, input, text);
}

static void add_metadata(struct ph__onnx_walk *walk)
{
    const struct ph_encoder *encoder = walk->encoder;
    const char **ids = ph__arena_alloc_array(&walk->model->arena, encoder->num_sparse + 1, sizeof *ids);
    size_t num_ids = 0;
    if (ids == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu names", encoder->num_sparse);
        return;
    }
    for (size_t i = 0; i < encoder->num_sparse; i++)
        if (!encoder->sparse_columns[i]->is_list)
            ids[num_ids++] = encoder->sparse[i].name;
    add_names(walk, "dense", encoder->dense_names, encoder->num_dense);
    add_names(walk, "ids", ids, num_ids);
}

static ph_status export_walk(
    struct ph__onnx_walk *walk, const struct ph__model_folder *folder, const char *kind, const char *path)
{
    add_inputs(walk);
    add_metadata(walk);
    PH_TRY(add_weights(walk, folder));
    PH_TRY(add_nodes(walk, kind));
    PH_TRY(add_outputs(walk, folder->logit_shift));
    return ph__onnx_model_write(walk->model, kind, path);
}

ph_status ph__onnx_export(const struct ph__model_folder *folder, const char *kind, const char *path)
{
    const struct ph__graph *graph = &folder->program->graph;
    struct ph__onnx_model model = {0};
    struct ph__onnx_walk walk = {.graph = graph,
        .encoder = folder->encoder,
        .model = &model,
        .names = calloc(graph->num_values, sizeof *walk.names)};
    ph_status status = walk.names != NULL ? export_walk(&walk, folder, kind, path)
                                          : ph__out_of_memory("%zu values", graph->num_values);
    free(walk.names);
    ph__onnx_model_fini(&model);
    return status;
}
