/* An ONNX model under construction, and its file: nodes, constants, inputs and outputs of one graph.
 *
 * Field numbers, types and versions are those of onnx/onnx.proto3 of the ONNX project (github.com/onnx/onnx);
 * operators are those of its operator set 17. Names are copied; the arrays of constants are borrowed until
 * the model is written, and go into the file without a copy. Errors are sticky: ph__onnx_model_write reports
 * the first one. */
#ifndef PH_SERVE_ONNX_MODEL_H
#define PH_SERVE_ONNX_MODEL_H

#include "base/format/protobuf.h"
#include "base/memory/arena.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

/* TensorProto.DataType */
enum ph__onnx_type { PH_ONNX_FLOAT = 1, PH_ONNX_INT64 = 7, PH_ONNX_DOUBLE = 11 };
#define PH_ONNX_REAL (sizeof(ph_real) == sizeof(double) ? PH_ONNX_DOUBLE : PH_ONNX_FLOAT)

enum ph__onnx_attribute_kind { PH_ONNX_INTEGER, PH_ONNX_NUMBER, PH_ONNX_INTEGERS };

struct ph__onnx_attribute {
    const char *name; /* NULL ends a list of attributes */
    enum ph__onnx_attribute_kind kind;
    int64_t integer;
    float number;
    size_t num_integers;
    const int64_t *integers;
};

struct ph__onnx_node {
    const char *operator_name;                   /* "Gemm" */
    const char *const *inputs;                   /* names, NULL-terminated */
    const struct ph__onnx_attribute *attributes; /* NULL: none */
};

struct ph__onnx_tensor {
    const char *name;
    enum ph__onnx_type type;
    struct ph_shape shape;
    const void *data; /* borrowed until the model is written */
};

/* A dimension of an input or an output: named by `symbol`, or fixed if that is NULL. */
struct ph__onnx_dim {
    size_t extent;
    const char *symbol;
};

struct ph__onnx_model { /* zero-initialised is empty */
    struct ph__arena arena;
    ph_status status;               /* the first error; its text is recorded */
    struct ph__buffer nodes;        /* fields of the graph: its nodes */
    struct ph__buffer tail;         /* fields of the graph: its inputs and outputs */
    struct ph__buffer metadata;     /* fields of the model */
    struct ph__buffer node, nested; /* messages being written: empty between calls */
    struct ph__onnx_tensor *tensors;
    size_t num_tensors, tensors_capacity;
};

void ph__onnx_model_fini(struct ph__onnx_model *model);

/* Records ph_fail(status, ...) unless the model has failed already. */
void ph__onnx_model_fail(struct ph__onnx_model *model, ph_status status, const char *format, ...)
    PH_PRINTF(3, 4);
/* Prints a text in the model's memory, for names; "" after failure. */
const char *ph__onnx_model_text(struct ph__onnx_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a node with one output, after those that make its inputs. Returns `output`. */
const char *ph__onnx_model_node(
    struct ph__onnx_model *model, const char *output, const struct ph__onnx_node *node);
/* Add a constant and return its name. */
const char *ph__onnx_model_tensor(struct ph__onnx_model *model, const struct ph__onnx_tensor *tensor);
const char *ph__onnx_model_integers(/* (count), copied */
    struct ph__onnx_model *model, const char *name, size_t count, const int64_t *integers);
const char *ph__onnx_model_real(struct ph__onnx_model *model, const char *name, ph_real value); /* no dims */

void ph__onnx_model_input(struct ph__onnx_model *model, const char *name, enum ph__onnx_type type,
    size_t num_dims, const struct ph__onnx_dim *dims);
void ph__onnx_model_output(struct ph__onnx_model *model, const char *name, enum ph__onnx_type type,
    size_t num_dims, const struct ph__onnx_dim *dims);
void ph__onnx_model_metadata(struct ph__onnx_model *model, const char *key, const char *value);

/* Writes the file atomically, the graph under this name. PH_ERROR_USAGE above the 2 GiB of a protobuf
 * message, PH_ERROR_DISK, or the first error while the model was built. */
ph_status ph__onnx_model_write(struct ph__onnx_model *model, const char *graph_name, const char *path);

#endif
