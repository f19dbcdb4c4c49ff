#include "serve/onnx_operators.h"

#include <string.h>

#include "op/attributes.h"

/* ---- helpers ---- */

const char *ph__onnx_name(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix)
{
    return ph__onnx_model_text(walk->model, "%s/%s", node->name, suffix);
}

const char *ph__onnx_emit(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *operator_name, const char *const *inputs, const struct ph__onnx_attribute *attributes)
{
    const struct ph__onnx_node written = {operator_name, inputs, attributes};
    return ph__onnx_model_node(walk->model, ph__onnx_name(walk, node, suffix), &written);
}

const char *ph__onnx_integer(
    struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix, int64_t value)
{
    return ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, suffix), 1, &value);
}

/* Adds a constant () named "<node>/<suffix>". */
static const char *number_of(
    struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix, ph_real value)
{
    return ph__onnx_model_real(walk->model, ph__onnx_name(walk, node, suffix), value);
}

const char *ph__onnx_input(const struct ph__onnx_walk *walk, const struct ph__node *node, uint32_t index)
{
    return node->inputs[index] != 0 ? walk->names[node->inputs[index]] : NULL;
}

static const struct ph_type *type_of(const struct ph__onnx_walk *walk, ph_value value)
{
    return &walk->graph->values[value].type;
}

void ph__onnx_set_output(struct ph__onnx_walk *walk, const struct ph__node *node, const char *name)
{
    walk->names[node->outputs[0]] = name;
}

const char *ph__onnx_sum(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, const char *axis, bool keeps_dim)
{
    return ph__onnx_emit(
        walk, node, suffix, "ReduceSum", PH_ONNX_INPUTS(x, axis), PH_ONNX_ATTRIBUTE("keepdims", keeps_dim));
}

const char *ph__onnx_transpose(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, size_t num_dims, const int64_t *order)
{
    const struct ph__onnx_attribute permutation[] = {
        {.name = "perm", .kind = PH_ONNX_INTEGERS, .num_integers = num_dims, .integers = order},
        {.name = NULL}};
    return ph__onnx_emit(walk, node, suffix, "Transpose", PH_ONNX_INPUTS(x), permutation);
}

/* ---- operators ---- */

/* Gives the output the input's name: the memory is the same, or the same numbers in a layout that only our
 * own kernels read. */
static void same(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    ph__onnx_set_output(walk, node, ph__onnx_input(walk, node, 0));
}

/* Multiplies by Gemm, which is for matrices, or by MatMul for more dimensions. */
static const char *product(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *x = ph__onnx_input(walk, node, 0), *weight = ph__onnx_input(walk, node, 1),
               *bias = ph__onnx_input(walk, node, 2);
    if (type_of(walk, node->inputs[0])->num_dims == 2)
        return ph__onnx_emit(
            walk, node, "product", "Gemm", PH_ONNX_INPUTS(x, weight, bias), PH_ONNX_ATTRIBUTE("transB", 1));
    const char *turned = ph__onnx_emit(walk, node, "turned", "Transpose", PH_ONNX_INPUTS(weight), NULL);
    const char *y = ph__onnx_emit(walk, node, "product", "MatMul", PH_ONNX_INPUTS(x, turned), NULL);
    return bias != NULL ? ph__onnx_emit(walk, node, "biased", "Add", PH_ONNX_INPUTS(y, bias), NULL) : y;
}

static void linear(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__linear_attributes *attributes = node->attributes;
    const char *y = product(walk, node);
    if (attributes->activation == PH_RELU)
        y = ph__onnx_emit(walk, node, "relu", "Relu", PH_ONNX_INPUTS(y), NULL);
    else if (attributes->activation == PH_SIGMOID)
        y = ph__onnx_emit(walk, node, "sigmoid", "Sigmoid", PH_ONNX_INPUTS(y), NULL);
    ph__onnx_set_output(walk, node, y);
}

/* Adds the ONNX operator of the same meaning, over all inputs. */
static void elementwise(struct ph__onnx_walk *walk, const struct ph__node *node, const char *operator_name)
{
    const char *const inputs[] = {
        ph__onnx_input(walk, node, 0), node->num_inputs > 1 ? ph__onnx_input(walk, node, 1) : NULL, NULL};
    ph__onnx_set_output(walk, node, ph__onnx_emit(walk, node, "out", operator_name, inputs, NULL));
}

static void add(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    elementwise(walk, node, "Add");
}

/* Multiplies number by number, or each row by its factor, which ONNX broadcasts from extent 1. */
static void multiply(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    elementwise(walk, node, "Mul");
}

static void scale(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__scale_attributes *attributes = node->attributes;
    const char *factor = number_of(walk, node, "factor", (ph_real)attributes->factor);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(walk, node, "out", "Mul", PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), factor), NULL));
}

static void cross(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *product = ph__onnx_emit(walk, node, "product", "Mul",
        PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), ph__onnx_input(walk, node, 1)), NULL);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(
            walk, node, "out", "Add", PH_ONNX_INPUTS(product, ph__onnx_input(walk, node, 2)), NULL));
}

static void row_dots(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *product = ph__onnx_emit(walk, node, "product", "Mul",
        PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), ph__onnx_input(walk, node, 1)), NULL);
    const char *axis = ph__onnx_integer(walk, node, "axis", 1);
    ph__onnx_set_output(walk, node, ph__onnx_sum(walk, node, "out", product, axis, true));
}

static void relu(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    elementwise(walk, node, "Relu");
}

static void sigmoid(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    elementwise(walk, node, "Sigmoid");
}

static void hard_swish(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    elementwise(walk, node, "HardSwish");
}

static void sum_last(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *axis = ph__onnx_integer(walk, node, "axis", -1);
    ph__onnx_set_output(
        walk, node, ph__onnx_sum(walk, node, "out", ph__onnx_input(walk, node, 0), axis, false));
}

static void sum_features(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *axis = ph__onnx_integer(walk, node, "axis", 1);
    ph__onnx_set_output(
        walk, node, ph__onnx_sum(walk, node, "out", ph__onnx_input(walk, node, 0), axis, false));
}

/* Adds Reshape; 0 in the shape keeps the batch's dimension. */
static void reshape(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph_type *type = type_of(walk, node->outputs[0]);
    int64_t dims[PH_MAX_DIMS] = {0};
    for (uint32_t i = 1; i < type->num_dims; i++)
        dims[i] = (int64_t)type->dims[i].extent;
    const char *shape =
        ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "shape"), type->num_dims, dims);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(
            walk, node, "out", "Reshape", PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), shape), NULL));
}

static void concat(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__concat_attributes *attributes = node->attributes;
    const char *inputs[PH_MAX_OPERANDS + 1] = {NULL};
    for (uint32_t i = 0; i < node->num_inputs; i++)
        inputs[i] = ph__onnx_input(walk, node, i);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(
            walk, node, "out", "Concat", inputs, PH_ONNX_ATTRIBUTE("axis", (int64_t)attributes->axis)));
}

static void slice(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__slice_attributes *attributes = node->attributes;
    const char *begin = ph__onnx_integer(walk, node, "begin", (int64_t)attributes->begin);
    const char *end = ph__onnx_integer(walk, node, "end", (int64_t)(attributes->begin + attributes->size));
    const char *axis = ph__onnx_integer(walk, node, "axis", (int64_t)attributes->axis);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(walk, node, "out", "Slice",
            PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), begin, end, axis), NULL));
}

/* Computes 1/2 sum_d ((sum_f x)^2 - sum_f x^2). */
static void fm(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *x = ph__onnx_input(walk, node, 0), *axis = ph__onnx_integer(walk, node, "axis", 1);
    const char *half = number_of(walk, node, "half", (ph_real)0.5);
    const char *sum = ph__onnx_sum(walk, node, "sum", x, axis, false); /* (B,D) */
    const char *sum_squared = ph__onnx_emit(walk, node, "sum_squared", "Mul", PH_ONNX_INPUTS(sum, sum), NULL);
    const char *squares = ph__onnx_emit(walk, node, "squares", "Mul", PH_ONNX_INPUTS(x, x), NULL);
    const char *square_sum = ph__onnx_sum(walk, node, "square_sum", squares, axis, false);
    const char *difference =
        ph__onnx_emit(walk, node, "difference", "Sub", PH_ONNX_INPUTS(sum_squared, square_sum), NULL);
    const char *twice = ph__onnx_sum(walk, node, "twice", difference, axis, true); /* (B,1) */
    ph__onnx_set_output(
        walk, node, ph__onnx_emit(walk, node, "out", "Mul", PH_ONNX_INPUTS(twice, half), NULL));
}

/* Returns positions (i,j), j < i, of the matrix of all products, row by row. */
static const char *lower_triangle(struct ph__onnx_walk *walk, const struct ph__node *node, size_t num_fields)
{
    const size_t count = num_fields * (num_fields - 1) / 2;
    int64_t *positions = ph__arena_alloc_array(&walk->model->arena, count, sizeof *positions);
    if (positions == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu products", count);
        return "";
    }
    size_t next = 0;
    for (size_t i = 1; i < num_fields; i++)
        for (size_t j = 0; j < i; j++)
            positions[next++] = (int64_t)(i * num_fields + j);
    return ph__onnx_model_integers(
        walk->model, ph__onnx_name(walk, node, "lower_triangle"), count, positions);
}

/* Multiplies all pairs of vectors (B,F,D) as one batched matrix product v v^T, and keeps the strictly lower
 * triangle: (B,P). The triangle is gathered from the transposed products, whole rows of B numbers at a time:
 * gathering single numbers was the dearest node of the graph, and took four times as long for 64 samples. */
static const char *pair_products(
    struct ph__onnx_walk *walk, const struct ph__node *node, const char *vectors, size_t num_fields)
{
    const int64_t shape[] = {0, (int64_t)(num_fields * num_fields)};
    const char *flat_shape =
        ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "shape"), 2, shape);
    const char *turned = ph__onnx_transpose(walk, node, "turned", vectors, 3, (const int64_t[]){0, 2, 1});
    const char *products =
        ph__onnx_emit(walk, node, "products", "MatMul", PH_ONNX_INPUTS(vectors, turned), NULL);
    const char *flat = ph__onnx_emit(
        walk, node, "flat", "Reshape", PH_ONNX_INPUTS(products, flat_shape), NULL); /* (B,F*F) */
    const char *by_pair = ph__onnx_transpose(walk, node, "by_pair", flat, 2, (const int64_t[]){1, 0});
    const char *kept = ph__onnx_emit(walk, node, "kept", "Gather",
        PH_ONNX_INPUTS(by_pair, lower_triangle(walk, node, num_fields)), PH_ONNX_ATTRIBUTE("axis", 0));
    return ph__onnx_transpose(walk, node, "pairs", kept, 2, (const int64_t[]){1, 0});
}

static void dot_interaction(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *first = ph__onnx_input(walk, node, 0), *vectors = ph__onnx_input(walk, node, 1);
    const size_t num_rest = type_of(walk, node->inputs[1])->dims[1].extent;
    if (first == NULL) {
        ph__onnx_set_output(walk, node, pair_products(walk, node, vectors, num_rest));
        return;
    }
    const char *axis = ph__onnx_integer(walk, node, "axis", 1);
    const char *row = ph__onnx_emit(walk, node, "first", "Unsqueeze", PH_ONNX_INPUTS(first, axis), NULL);
    const char *joined = ph__onnx_emit(
        walk, node, "vectors", "Concat", PH_ONNX_INPUTS(row, vectors), PH_ONNX_ATTRIBUTE("axis", 1));
    const char *pairs = pair_products(walk, node, joined, num_rest + 1);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(
            walk, node, "out", "Concat", PH_ONNX_INPUTS(first, pairs), PH_ONNX_ATTRIBUTE("axis", 1)));
}

/* Multiplies x (B,F), as (B,F,1), by vectors (F,D). */
static void dense_embedding(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *axis = ph__onnx_integer(walk, node, "axis", 2);
    const char *x = ph__onnx_emit(
        walk, node, "x", "Unsqueeze", PH_ONNX_INPUTS(ph__onnx_input(walk, node, 0), axis), NULL);
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(walk, node, "out", "Mul", PH_ONNX_INPUTS(x, ph__onnx_input(walk, node, 1)), NULL));
}

/* Adds BatchNormalization, which takes x, gamma, beta, mean, variance in the same order. */
static void batch_norm_inference(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph_batch_norm_options *options = node->attributes;
    const char *inputs[PH_MAX_OPERANDS + 1] = {NULL};
    for (uint32_t i = 0; i < node->num_inputs; i++)
        inputs[i] = ph__onnx_input(walk, node, i);
    const struct ph__onnx_attribute epsilon[] = {
        {.name = "epsilon", .kind = PH_ONNX_NUMBER, .number = (float)options->epsilon}, {0}};
    ph__onnx_set_output(walk, node, ph__onnx_emit(walk, node, "out", "BatchNormalization", inputs, epsilon));
}

static void layer_norm(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__layer_norm_attributes *attributes = node->attributes;
    const struct ph__onnx_attribute written[] = {{.name = "axis", .kind = PH_ONNX_INTEGER, .integer = -1},
        {.name = "epsilon", .kind = PH_ONNX_NUMBER, .number = (float)attributes->epsilon}, {0}};
    ph__onnx_set_output(walk, node,
        ph__onnx_emit(walk, node, "out", "LayerNormalization",
            PH_ONNX_INPUTS(
                ph__onnx_input(walk, node, 0), ph__onnx_input(walk, node, 1), ph__onnx_input(walk, node, 2)),
            written));
}

/* Adds a constant (K,G) for G blocks of K columns, or (G,K) where is_transposed: in a block's columns 1 /
 * their number, or 1 where is_transposed; zeros elsewhere. */
static const char *blocks_of(
    struct ph__onnx_walk *walk, const struct ph__node *node, size_t columns, bool is_transposed)
{
    const size_t blocks = ph__divide_up(columns, PH_NORM_BLOCK), count = columns * blocks;
    ph_real *numbers = ph__arena_alloc_array(&walk->model->arena, count, sizeof *numbers);
    if (numbers == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu blocks", blocks);
        return "";
    }
    memset(numbers, 0, count * sizeof *numbers);
    for (size_t k = 0; k < columns; k++) {
        const size_t block = k / PH_NORM_BLOCK;
        const size_t width = ph__min(PH_NORM_BLOCK, columns - block * PH_NORM_BLOCK);
        if (is_transposed)
            numbers[block * columns + k] = 1;
        else
            numbers[k * blocks + block] = 1 / (ph_real)width;
    }
    struct ph__onnx_tensor tensor = {.name = ph__onnx_name(walk, node, is_transposed ? "spread" : "shares"),
        .type = PH_ONNX_REAL,
        .shape = {.num_dims = 2, .dims = {columns, blocks}},
        .data = numbers};
    if (is_transposed)
        tensor.shape = (struct ph_shape){.num_dims = 2, .dims = {blocks, columns}};
    return ph__onnx_model_tensor(walk->model, &tensor);
}

/* Divides by the root of a block's mean square, which two products sum and spread over its columns. */
static void block_norm(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__block_norm_attributes *attributes = node->attributes;
    const size_t columns = ph__last_dim(type_of(walk, node->inputs[0])).extent;
    const char *x = ph__onnx_input(walk, node, 0), *shares = blocks_of(walk, node, columns, false),
               *spread = blocks_of(walk, node, columns, true);
    const char *epsilon = number_of(walk, node, "epsilon", (ph_real)PH_NORM_EPSILON);
    const char *squares = ph__onnx_emit(walk, node, "squares", "Mul", PH_ONNX_INPUTS(x, x), NULL);
    const char *means = ph__onnx_emit(walk, node, "means", "MatMul", PH_ONNX_INPUTS(squares, shares), NULL);
    const char *shifted = ph__onnx_emit(walk, node, "shifted", "Add", PH_ONNX_INPUTS(means, epsilon), NULL);
    const char *roots = ph__onnx_emit(walk, node, "roots", "Sqrt", PH_ONNX_INPUTS(shifted), NULL);
    const char *wide = ph__onnx_emit(walk, node, "wide", "MatMul", PH_ONNX_INPUTS(roots, spread), NULL);
    const char *y = ph__onnx_emit(walk, node, "normed", "Div", PH_ONNX_INPUTS(x, wide), NULL);
    if (attributes->is_swished)
        y = ph__onnx_emit(walk, node, "swished", "HardSwish", PH_ONNX_INPUTS(y), NULL);
    ph__onnx_set_output(walk, node, y);
}

/* Returns input `index` (B,n,H d) as (B,H,n,d), or in another order of (B,n,H,d). */
static const char *heads_of(struct ph__onnx_walk *walk, const struct ph__node *node, uint32_t index,
    const char *const parts[2], const int64_t order[4])
{
    const struct ph_attention_options *options = node->attributes;
    const size_t columns = type_of(walk, node->inputs[index])->dims[2].extent;
    const int64_t dims[] = {0, 0, (int64_t)options->num_heads, (int64_t)(columns / options->num_heads)};
    const char *shape = ph__onnx_model_integers(walk->model,
        ph__onnx_model_text(walk->model, "%s_shape", ph__onnx_name(walk, node, parts[0])), 4, dims);
    const char *split = ph__onnx_emit(
        walk, node, parts[0], "Reshape", PH_ONNX_INPUTS(ph__onnx_input(walk, node, index), shape), NULL);
    return ph__onnx_transpose(walk, node, parts[1], split, 4, order);
}

/* Computes softmax(scale q k^T) v of each head, as batched products. */
static void attention(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    static const int64_t by_head[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1};
    const struct ph_attention_options *options = node->attributes;
    if (node->inputs[PH_ATTENTION_BAGS] != 0) {
        ph__onnx_model_fail(walk->model, PH_ERROR_USAGE,
            "node '%s' cannot be exported to ONNX: attention over histories is not supported", node->name);
        ph__onnx_set_output(walk, node, "");
        return;
    }
    const char *q = heads_of(walk, node, PH_ATTENTION_Q, (const char *const[]){"q_heads", "q"}, by_head);
    const char *k = heads_of(walk, node, PH_ATTENTION_K, (const char *const[]){"k_heads", "k"}, turned);
    const char *v = heads_of(walk, node, PH_ATTENTION_V, (const char *const[]){"v_heads", "v"}, by_head);
    const char *scale = number_of(walk, node, "scale", (ph_real)options->scale);
    const char *products = ph__onnx_emit(walk, node, "products", "MatMul", PH_ONNX_INPUTS(q, k), NULL);
    const char *scores = ph__onnx_emit(walk, node, "scores", "Mul", PH_ONNX_INPUTS(products, scale), NULL);
    const char *weights = ph__onnx_emit(
        walk, node, "weights", "Softmax", PH_ONNX_INPUTS(scores), PH_ONNX_ATTRIBUTE("axis", -1));
    const char *means = ph__onnx_emit(walk, node, "means", "MatMul", PH_ONNX_INPUTS(weights, v), NULL);
    const int64_t dims[] = {0, 0, (int64_t)type_of(walk, node->outputs[0])->dims[2].extent};
    const char *shape = ph__onnx_model_integers(walk->model, ph__onnx_name(walk, node, "shape"), 3, dims);
    const char *rows = ph__onnx_transpose(walk, node, "rows", means, 4, by_head);
    ph__onnx_set_output(
        walk, node, ph__onnx_emit(walk, node, "out", "Reshape", PH_ONNX_INPUTS(rows, shape), NULL));
}

/* ---- the table ---- */

static const struct ph__onnx_entry operators[] = {
    {"pack", same},
    {"reshape", reshape},
    {"stop_gradient", same},
    {"linear", linear},
    {"add", add},
    {"multiply", multiply},
    {"scale", scale},
    {"cross", cross},
    {"scale_rows", multiply},
    {"row_dots", row_dots},
    {"relu", relu},
    {"hard_swish", hard_swish},
    {"sigmoid", sigmoid},
    {"sum_features", sum_features},
    {"sum_last", sum_last},
    {"concat", concat},
    {"slice", slice},
    {"fm", fm},
    {"dot_interaction", dot_interaction},
    {"dense_embedding", dense_embedding},
    {"batch_norm_inference", batch_norm_inference},
    {"layer_norm", layer_norm},
    {"block_norm", block_norm},
    {"attention", attention},
    {.name = NULL},
};

ph__onnx_operator *ph__onnx_operator_find(const char *name)
{
    const struct ph__onnx_entry *const tables[] = {operators, ph__onnx_products, ph__onnx_lookups};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct ph__onnx_entry *entry = tables[i]; entry->name != NULL; entry++)
            if (strcmp(entry->name, name) == 0)
                return entry->add;
    return NULL;
}
