/* Products among a sample's vectors, and of vectors with a weight, in ONNX's own operators. */
#include "op/attributes.h"
#include "serve/onnx_operators.h"

static const struct ph_dim *dims_of(const struct ph__onnx_walk *walk, ph_value value)
{
    return walk->graph->values[value].type.dims;
}

static int64_t extent(const struct ph__onnx_walk *walk, ph_value value, uint32_t dim)
{
    return (int64_t)dims_of(walk, value)[dim].extent;
}

static const char *binary(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *operator_name, const char *a, const char *b)
{
    return ph__onnx_emit(walk, node, suffix, operator_name, PH_ONNX_INPUTS(a, b), NULL);
}

/* Reshapes x (B,...) to (B, dims[1], ...): 0 in front keeps the batch's dimension. */
static const char *reshape(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, size_t num_dims, const int64_t *dims)
{
    const char *name = ph__onnx_model_text(walk->model, "%s/%s_shape", node->name, suffix);
    const char *shape = ph__onnx_model_integers(walk->model, name, num_dims, dims);
    return binary(walk, node, suffix, "Reshape", x, shape);
}

/* Adds a dimension of extent 1 to x at `axis`, a constant. */
static const char *spread(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, const char *axis)
{
    return binary(walk, node, suffix, "Unsqueeze", x, axis);
}

/* Adds bias (m), if there is one, to every number of a vector of y (B,m,d), and sets the node's output. */
static void set_biased(
    struct ph__onnx_walk *walk, const struct ph__node *node, const char *y, uint32_t bias_index)
{
    if (node->inputs[bias_index] != 0) {
        const char *axis = ph__onnx_integer(walk, node, "bias_axis", 1);
        const char *bias = spread(walk, node, "bias", ph__onnx_input(walk, node, bias_index), axis);
        y = binary(walk, node, "out", "Add", y, bias);
    }
    ph__onnx_set_output(walk, node, y);
}

/* ---- products of two matrices of a sample, and with a weight ---- */

static const char *matrix(struct ph__onnx_walk *walk, const struct ph__node *node, const char *suffix,
    const char *x, bool is_transposed)
{
    return is_transposed ? ph__onnx_transpose(walk, node, suffix, x, 3, (const int64_t[]){0, 2, 1}) : x;
}

static void batch_product(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const struct ph__batch_product_attributes *attributes = node->attributes;
    const char *a = matrix(walk, node, "a", ph__onnx_input(walk, node, 0), attributes->is_a_transposed);
    const char *b = matrix(walk, node, "b", ph__onnx_input(walk, node, 1), attributes->is_b_transposed);
    ph__onnx_set_output(walk, node, binary(walk, node, "out", "MatMul", a, b));
}

/* Multiplies weight (m,n) by x (B,n,d). */
static void mix_fields(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const char *y =
        binary(walk, node, "product", "MatMul", ph__onnx_input(walk, node, 1), ph__onnx_input(walk, node, 0));
    set_biased(walk, node, y, 2);
}

/* Multiplies weight (k,h*m) by (B,h*m,d), the products of x (B,h,1,d) and first (B,1,m,d). */
static void cin(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const int64_t dims[] = {0, extent(walk, node->inputs[2], 1), extent(walk, node->outputs[0], 2)};
    const char *x_axis = ph__onnx_integer(walk, node, "x_axis", 2);
    const char *first_axis = ph__onnx_integer(walk, node, "first_axis", 1);
    const char *x = spread(walk, node, "x", ph__onnx_input(walk, node, 0), x_axis);
    const char *first = spread(walk, node, "first", ph__onnx_input(walk, node, 1), first_axis);
    const char *pairs = binary(walk, node, "pairs", "Mul", x, first); /* (B,h,m,d) */
    const char *rows = reshape(walk, node, "rows", pairs, 3, dims);
    set_biased(walk, node, binary(walk, node, "product", "MatMul", ph__onnx_input(walk, node, 2), rows), 3);
}

static void convolution(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const int64_t height = extent(walk, node->inputs[1], 2) / 2, width = extent(walk, node->inputs[1], 3) / 2;
    const int64_t pads[] = {height, width, height, width};
    const struct ph__onnx_attribute padding[] = {
        {.name = "pads", .kind = PH_ONNX_INTEGERS, .num_integers = 4, .integers = pads}, {.name = NULL}};
    const char *const *inputs = PH_ONNX_INPUTS(
        ph__onnx_input(walk, node, 0), ph__onnx_input(walk, node, 1), ph__onnx_input(walk, node, 2));
    ph__onnx_set_output(walk, node, ph__onnx_emit(walk, node, "out", "Conv", inputs, padding));
}

/* ---- sums of products ---- */

/* Gathers the vectors v_ij, i < j, of x (B,F*F,D) or, if is_changed, their partners v_ji, in this order. */
static const char *vectors_of_pairs(struct ph__onnx_walk *walk, const struct ph__node *node,
    const char *suffix, const char *x, size_t num_fields, bool is_changed)
{
    const size_t count = num_fields * (num_fields - 1) / 2;
    int64_t *positions = ph__arena_alloc_array(&walk->model->arena, count + 1, sizeof *positions);
    if (positions == NULL) {
        ph__onnx_model_fail(walk->model, PH_ERROR_MEMORY, "out of memory: %zu pairs", count);
        return "";
    }
    size_t next = 0;
    for (size_t i = 0; i < num_fields; i++)
        for (size_t j = i + 1; j < num_fields; j++)
            positions[next++] = (int64_t)(is_changed ? j * num_fields + i : i * num_fields + j);
    const char *name = ph__onnx_model_text(walk->model, "%s/%s_positions", node->name, suffix);
    const char *constant = ph__onnx_model_integers(walk->model, name, count, positions);
    return ph__onnx_emit(
        walk, node, suffix, "Gather", PH_ONNX_INPUTS(x, constant), PH_ONNX_ATTRIBUTE("axis", 1));
}

static void field_aware(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const int64_t num_fields = extent(walk, node->inputs[0], 1);
    const int64_t dims[] = {0, num_fields * num_fields, extent(walk, node->inputs[0], 2) / num_fields};
    const char *x = reshape(walk, node, "vectors", ph__onnx_input(walk, node, 0), 3, dims);
    const char *vectors = vectors_of_pairs(walk, node, "left", x, (size_t)num_fields, false);
    const char *partners = vectors_of_pairs(walk, node, "right", x, (size_t)num_fields, true);
    const char *products = binary(walk, node, "products", "Mul", vectors, partners); /* (B,P,D) */
    const char *dots =
        ph__onnx_sum(walk, node, "dots", products, ph__onnx_integer(walk, node, "dots_axis", 2), false);
    ph__onnx_set_output(
        walk, node, ph__onnx_sum(walk, node, "out", dots, ph__onnx_integer(walk, node, "out_axis", 1), true));
}

/* Multiplies x as (B,1,heads,1,k) by weight (T,heads,k,m): (B,T,heads,1,m). Multiplies that as (B,T,M) by y
 * (B,1,M), and sums. */
static void bilinear_head(struct ph__onnx_walk *walk, const struct ph__node *node)
{
    const ph_value weight = node->inputs[2];
    const int64_t x_dims[] = {0, 1, extent(walk, weight, 1), 1, extent(walk, weight, 2)};
    const int64_t dims[] = {0, extent(walk, weight, 0), extent(walk, node->inputs[1], 1)};
    const char *x = reshape(walk, node, "x", ph__onnx_input(walk, node, 0), 5, x_dims);
    const char *heads = binary(walk, node, "heads", "MatMul", x, ph__onnx_input(walk, node, 2));
    const char *rows = reshape(walk, node, "rows", heads, 3, dims);
    const char *axis = ph__onnx_integer(walk, node, "y_axis", 1);
    const char *y = spread(walk, node, "y", ph__onnx_input(walk, node, 1), axis);
    const char *products = binary(walk, node, "products", "Mul", rows, y);
    ph__onnx_set_output(walk, node,
        ph__onnx_sum(walk, node, "out", products, ph__onnx_integer(walk, node, "out_axis", 2), false));
}

const struct ph__onnx_entry ph__onnx_products[] = {
    {"batch_product", batch_product},
    {"mix_fields", mix_fields},
    {"cin", cin},
    {"convolution", convolution},
    {"field_aware", field_aware},
    {"bilinear_head", bilinear_head},
    {.name = NULL},
};
