/* Writes each operator of inference programs in ONNX: one small function an operator, in a table by name. */
#ifndef PH_SERVE_ONNX_OPERATORS_H
#define PH_SERVE_ONNX_OPERATORS_H

#include "data/encode/encoder.h"
#include "graph/graph.h"
#include "serve/onnx_model.h"

/* State of a program's conversion into a model. */
struct ph__onnx_walk {
    const struct ph__graph *graph;
    const struct ph_encoder *encoder;
    struct ph__onnx_model *model;
    const char **names; /* by value: its name in the model; NULL where it has no single name */
};

/* Adds ONNX nodes that compute the node, and names the node's outputs. Errors are sticky in the model. */
typedef void ph__onnx_operator(struct ph__onnx_walk *walk, const struct ph__node *node);

struct ph__onnx_entry {
    const char *name; /* name of the operator */
    ph__onnx_operator *add;
};

ph__onnx_operator *ph__onnx_operator_find(const char *name); /* NULL: the operator has no ONNX form */

/* ---- for operators ---- */

/* Inputs of a node; attributes of a node that are one integer. Both live as long as the enclosing block. */
#define PH_ONNX_INPUTS(...) \
    (const char *const[])   \
    {                       \
        __VA_ARGS__, NULL   \
    }
#define PH_ONNX_ATTRIBUTE(attribute, value)                                 \
    (const struct ph__onnx_attribute[])                                     \
    {                                                                       \
        {.name = (attribute), .kind = PH_ONNX_INTEGER, .integer = (value)}, \
        {                                                                   \
            .name = NULL                                                    \
        }                                                                   \
    }

/* Returns "<node>/<suffix>", a name that no other node uses. */
const char *ph__onnx_name(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix);
/* Adds an ONNX node with output "<node>/<suffix>", which it returns. inputs: NULL-terminated; attributes:
 * ended by one without a name, or NULL. */
const char *ph__onnx_emit(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *operator_name, const char *const *inputs, const struct ph__onnx_attribute *attributes);
/* Adds a constant (1) named "<node>/<suffix>". */
const char *ph__onnx_integer(
    struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix, int64_t value);

/* Returns the name in the model of an input of the node; NULL: absent. */
const char *ph__onnx_input(const struct ph__onnx_walk *walk, const struct ph__node *node, uint32_t index);
void ph__onnx_set_output(struct ph__onnx_walk *walk, const struct ph__node *node, const char *name);
/* Sums x along the dimension that a constant (1) names. */
const char *ph__onnx_sum(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, const char *axis, bool keeps_dim);
const char *ph__onnx_transpose(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, size_t num_dims, const int64_t *order);

/* Operators of other files, ended by one without a name: table lookups, in onnx_lookup.c, and products among
 * vectors, in onnx_products.c. */
extern const struct ph__onnx_entry ph__onnx_lookups[], ph__onnx_products[];

/* Adds the model's inputs for the ids of the program: "ids" int64 (batch, features with one id a sample), in
 * their order, and for each feature with lists "ids.<feature>" int64 (batch, length), padded with -1, and
 * where they are weighted "weights.<feature>" (batch, length). */
void ph__onnx_add_id_inputs(struct ph__onnx_walk *walk, bool has_weights);

#endif
