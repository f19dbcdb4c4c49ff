#include "serve/onnx_model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "phloem/version.h"

#define IR_VERSION 8 /* version of the ONNX releases that have operator set 17 */
#define OPERATOR_SET 17
#define MAX_FILE_BYTES ((uint64_t)INT32_MAX)

/* Field numbers of onnx.proto3. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_METADATA = 14,
};
enum { OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_IS_FLOAT = 1, TYPE_IS_INT = 2, TYPE_IS_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_DATA_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW_DATA = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

void ph__onnx_model_fini(struct ph__onnx_model *model)
{
    ph__buffer_fini(&model->nodes);
    ph__buffer_fini(&model->tail);
    ph__buffer_fini(&model->metadata);
    ph__buffer_fini(&model->node);
    ph__buffer_fini(&model->nested);
    free(model->tensors);
    ph__arena_fini(&model->arena);
    *model = (struct ph__onnx_model){0};
}

/* ---- building ---- */

void ph__onnx_model_fail(struct ph__onnx_model *model, ph_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (model->status != PH_OK)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    model->status = ph_fail(status, "%s", text);
}

static void fail_for_memory(struct ph__onnx_model *model)
{
    ph__onnx_model_fail(model, PH_ERROR_MEMORY, "out of memory: an ONNX model");
}

const char *ph__onnx_model_text(struct ph__onnx_model *model, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = ph__arena_alloc(&model->arena, (size_t)length + 1);
    if (text == NULL) {
        fail_for_memory(model);
        return "";
    }
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

static void write_attribute(struct ph__buffer *message, const struct ph__onnx_attribute *attribute)
{
    ph__protobuf_text(message, ATTRIBUTE_NAME, attribute->name);
    switch (attribute->kind) {
    case PH_ONNX_INTEGER:
        ph__protobuf_integer(message, ATTRIBUTE_I, (uint64_t)attribute->integer);
        ph__protobuf_integer(message, ATTRIBUTE_TYPE, TYPE_IS_INT);
        break;
    case PH_ONNX_NUMBER:
        ph__protobuf_float(message, ATTRIBUTE_F, attribute->number);
        ph__protobuf_integer(message, ATTRIBUTE_TYPE, TYPE_IS_FLOAT);
        break;
    case PH_ONNX_INTEGERS:
        for (size_t i = 0; i < attribute->num_integers; i++)
            ph__protobuf_integer(message, ATTRIBUTE_INTS, (uint64_t)attribute->integers[i]);
        ph__protobuf_integer(message, ATTRIBUTE_TYPE, TYPE_IS_INTS);
        break;
    }
}

const char *ph__onnx_model_node(
    struct ph__onnx_model *model, const char *output, const struct ph__onnx_node *node)
{
    for (size_t i = 0; node->inputs[i] != NULL; i++)
        ph__protobuf_text(&model->node, NODE_INPUT, node->inputs[i]);
    ph__protobuf_text(&model->node, NODE_OUTPUT, output);
    ph__protobuf_text(&model->node, NODE_NAME, output);
    ph__protobuf_text(&model->node, NODE_OPERATOR, node->operator_name);
    for (size_t i = 0; node->attributes != NULL && node->attributes[i].name != NULL; i++) {
        write_attribute(&model->nested, &node->attributes[i]);
        ph__protobuf_message(&model->node, NODE_ATTRIBUTE, &model->nested);
    }
    ph__protobuf_message(&model->nodes, GRAPH_NODE, &model->node);
    return output;
}

const char *ph__onnx_model_tensor(struct ph__onnx_model *model, const struct ph__onnx_tensor *tensor)
{
    if (ph__array_reserve((void **)&model->tensors, &model->tensors_capacity, model->num_tensors + 1,
            sizeof *model->tensors) != PH_OK)
        fail_for_memory(model);
    else
        model->tensors[model->num_tensors++] = *tensor;
    return tensor->name;
}

/* Adds a copy of the bytes as a constant. */
static const char *add_copy(struct ph__onnx_model *model, struct ph__onnx_tensor tensor, size_t size)
{
    void *copy = ph__arena_alloc(&model->arena, size);
    if (copy == NULL) {
        fail_for_memory(model);
        return tensor.name;
    }
    memcpy(copy, tensor.data, size);
    tensor.data = copy;
    return ph__onnx_model_tensor(model, &tensor);
}

const char *ph__onnx_model_integers(
    struct ph__onnx_model *model, const char *name, size_t count, const int64_t *integers)
{
    const struct ph__onnx_tensor tensor = {name, PH_ONNX_INT64, {.num_dims = 1, .dims = {count}}, integers};
    return add_copy(model, tensor, count * sizeof *integers);
}

const char *ph__onnx_model_real(struct ph__onnx_model *model, const char *name, ph_real value)
{
    const struct ph__onnx_tensor tensor = {name, PH_ONNX_REAL, {.num_dims = 0}, &value};
    return add_copy(model, tensor, sizeof value);
}

/* Writes TypeProto { Tensor { elem_type, TensorShapeProto { dim … } } }, from the inside out. */
static void write_type(
    struct ph__buffer *message, enum ph__onnx_type type, size_t num_dims, const struct ph__onnx_dim *dims)
{
    struct ph__buffer dim = {0}, shape = {0}, tensor = {0};
    for (size_t i = 0; i < num_dims; i++) {
        if (dims[i].symbol != NULL)
            ph__protobuf_text(&dim, DIM_PARAM, dims[i].symbol);
        else
            ph__protobuf_integer(&dim, DIM_VALUE, dims[i].extent);
        ph__protobuf_message(&shape, SHAPE_DIM, &dim);
    }
    ph__protobuf_integer(&tensor, TENSOR_TYPE_ELEMENT, (uint64_t)type);
    ph__protobuf_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
    ph__protobuf_message(message, TYPE_TENSOR, &tensor);
    ph__buffer_fini(&dim);
    ph__buffer_fini(&shape);
    ph__buffer_fini(&tensor);
}

static void add_value(struct ph__onnx_model *model, uint32_t field, const char *name, enum ph__onnx_type type,
    size_t num_dims, const struct ph__onnx_dim *dims)
{
    write_type(&model->nested, type, num_dims, dims);
    ph__protobuf_text(&model->node, VALUE_NAME, name);
    ph__protobuf_message(&model->node, VALUE_TYPE, &model->nested);
    ph__protobuf_message(&model->tail, field, &model->node);
}

void ph__onnx_model_input(struct ph__onnx_model *model, const char *name, enum ph__onnx_type type,
    size_t num_dims, const struct ph__onnx_dim *dims)
{
    add_value(model, GRAPH_INPUT, name, type, num_dims, dims);
}

void ph__onnx_model_output(struct ph__onnx_model *model, const char *name, enum ph__onnx_type type,
    size_t num_dims, const struct ph__onnx_dim *dims)
{
    add_value(model, GRAPH_OUTPUT, name, type, num_dims, dims);
}

void ph__onnx_model_metadata(struct ph__onnx_model *model, const char *key, const char *value)
{
    ph__protobuf_text(&model->node, ENTRY_KEY, key);
    ph__protobuf_text(&model->node, ENTRY_VALUE, value);
    ph__protobuf_message(&model->metadata, MODEL_METADATA, &model->node);
}

/* ---- the file ---- */

static uint64_t data_bytes(const struct ph__onnx_tensor *tensor)
{
    const size_t element = tensor->type == PH_ONNX_FLOAT ? sizeof(float) : sizeof(double);
    return (uint64_t)ph_shape_elements(&tensor->shape) * element;
}

/* Bytes of an initializer before its data: its frame in the graph, and its fields. */
struct tensor_head {
    struct ph__buffer frame, fields;
};

static void fill_tensor_head(struct tensor_head *head, const struct ph__onnx_tensor *tensor)
{
    const uint64_t size = data_bytes(tensor);
    head->frame.size = head->fields.size = 0;
    for (size_t i = 0; i < tensor->shape.num_dims; i++)
        ph__protobuf_integer(&head->fields, TENSOR_DIMS, tensor->shape.dims[i]);
    ph__protobuf_integer(&head->fields, TENSOR_DATA_TYPE, (uint64_t)tensor->type);
    ph__protobuf_text(&head->fields, TENSOR_NAME, tensor->name);
    ph__protobuf_prefix(&head->fields, TENSOR_RAW_DATA, size);
    ph__protobuf_prefix(&head->frame, GRAPH_INITIALIZER, head->fields.size + size);
}

static void tensor_head_fini(struct tensor_head *head)
{
    ph__buffer_fini(&head->frame);
    ph__buffer_fini(&head->fields);
}

static uint64_t tensors_bytes(const struct ph__onnx_model *model, struct tensor_head *head)
{
    uint64_t total = 0;
    for (size_t i = 0; i < model->num_tensors; i++) {
        fill_tensor_head(head, &model->tensors[i]);
        total += head->frame.size + head->fields.size + data_bytes(&model->tensors[i]);
    }
    return total;
}

/* Writes the fields of the model; those of its graph follow, so the graph is the last. */
static void write_model_head(struct ph__onnx_model *model, uint64_t graph_bytes, struct ph__buffer *head)
{
    ph__protobuf_integer(head, MODEL_IR_VERSION, IR_VERSION);
    ph__protobuf_text(head, MODEL_PRODUCER_NAME, "phloem");
    ph__protobuf_text(head, MODEL_PRODUCER_VERSION, ph_version());
    ph__protobuf_integer(&model->node, OPSET_VERSION, OPERATOR_SET);
    ph__protobuf_message(head, MODEL_OPSET_IMPORT, &model->node);
    ph__protobuf_encoded(head, &model->metadata);
    ph__protobuf_prefix(head, MODEL_GRAPH, graph_bytes);
    ph__protobuf_encoded(head, &model->nodes);
}

static ph_status write_message(struct ph__atomic_file *file, const struct ph__buffer *message)
{
    return ph__atomic_file_write(file, message->bytes, message->size);
}

static ph_status write_parts(const struct ph__onnx_model *model, const struct ph__buffer *model_head,
    struct tensor_head *head, struct ph__atomic_file *file)
{
    PH_TRY(write_message(file, model_head));
    for (size_t i = 0; i < model->num_tensors; i++) {
        fill_tensor_head(head, &model->tensors[i]);
        PH_TRY(write_message(file, &head->frame));
        PH_TRY(write_message(file, &head->fields));
        PH_TRY(ph__atomic_file_write(file, model->tensors[i].data, (size_t)data_bytes(&model->tensors[i])));
    }
    return write_message(file, &model->tail);
}

static ph_status write_file(const struct ph__onnx_model *model, const struct ph__buffer *model_head,
    struct tensor_head *head, const char *path)
{
    struct ph__atomic_file file;
    PH_TRY(ph__atomic_file_open(path, &file));
    ph_status status = write_parts(model, model_head, head, &file);
    if (status == PH_OK)
        return ph__atomic_file_commit(&file);
    ph__atomic_file_abandon(&file);
    return status;
}

ph_status ph__onnx_model_write(struct ph__onnx_model *model, const char *graph_name, const char *path)
{
    struct tensor_head head = {0};
    struct ph__buffer model_head = {0};
    ph__protobuf_text(&model->tail, GRAPH_NAME, graph_name);
    const uint64_t graph_bytes = model->nodes.size + tensors_bytes(model, &head) + model->tail.size;
    write_model_head(model, graph_bytes, &model_head);
    const bool is_out_of_memory = model->nodes.has_failed || model->tail.has_failed ||
                                  model_head.has_failed || head.frame.has_failed || head.fields.has_failed;
    const uint64_t file_bytes = model_head.size - model->nodes.size + graph_bytes;
    if (is_out_of_memory)
        fail_for_memory(model);
    else if (file_bytes > MAX_FILE_BYTES)
        ph__onnx_model_fail(model, PH_ERROR_USAGE,
            "%s: an ONNX file holds at most %" PRIu64 " bytes, and this model needs %" PRIu64, path,
            MAX_FILE_BYTES, file_bytes);
    else if (model->status == PH_OK)
        model->status = write_file(model, &model_head, &head, path);
    tensor_head_fini(&head);
    ph__buffer_fini(&model_head);
    return model->status;
}
