/* What the walk makes of a program; that the numbers come out right is shown by tests/oracle/onnx_check.py.
 */
#include "serve/onnx_export.h"

#include <stdio.h>

#include "base/file/file.h"
#include "data/encode/encoder.h"
#include "phloem/op.h"
#include "unit/base/protobuf_reader.h"

/* A store with what the program learns, as an executor adds it. */
static void open_folder(
    struct ph__model_folder *folder, struct ph_builder *builder, struct ph_encoder *encoder)
{
    struct ph_backend *backend;
    struct ph_executor *executor;
    *folder = (struct ph__model_folder){.encoder = encoder};
    assert_ok(ph_builder_finish(builder, &folder->program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(test_seed(), &folder->store));
    assert_ok(ph_state_create(&folder->state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(folder->program, folder->store, folder->state, backend, &executor));
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
}

static void close_folder(struct ph__model_folder *folder)
{
    folder->encoder = NULL; /* the test's */
    ph__model_folder_close(folder);
}

/* logits = relu(x W^T + b), x (B,3), W (2,3) */
static ph_value build_product(struct ph_builder *builder)
{
    const struct ph_init init = {PH_INIT_NORMAL, 1.0};
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){2, 3}, init);
    ph_value bias = ph_parameter(builder, "bias", 1, (size_t[]){2}, init);
    return ph_linear(builder, ph_input_dense(builder, 3), weight, bias, PH_RELU);
}

/* The graph of the file that the export writes. */
static struct message export_graph(
    struct ph__arena *arena, const struct ph__model_folder *folder, const char *name)
{
    const char *path = ph__path_join(arena, test_folder(), name);
    char *text;
    size_t size;
    assert_ok(ph__onnx_export(folder, "product", path));
    assert_ok(ph__file_read(arena, path, 1 << 20, &text, &size));
    return inner_field((struct message){(unsigned char *)text, (unsigned char *)text + size}, 7, 0);
}

static void a_linear_layer_becomes_a_product_an_activation_and_its_weights(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c"};
    struct ph_encoder encoder = {.num_dense = 3, .dense_names = names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", build_product(builder));
    open_folder(&folder, builder, &encoder);

    const struct message graph = export_graph(&arena, &folder, "product.onnx");
    const char *operators[] = {"Gemm", "Relu", "Identity", "Sigmoid"};
    assert_int_equal(num_fields(graph, 1), 4);
    for (size_t i = 0; i < 4; i++)
        assert_text_field(inner_field(graph, 1, i), 4, 0, operators[i]);
    const struct message attribute = inner_field(inner_field(graph, 1, 0), 5, 0);
    assert_text_field(attribute, 1, 0, "transB");
    assert_int_equal(integer_field(attribute, 3, 0), 1);
    assert_text_field(inner_field(graph, 11, 0), 1, 0, "dense");
    assert_text_field(inner_field(graph, 12, 0), 1, 0, "probability");
    assert_text_field(inner_field(graph, 12, 1), 1, 0, "logits");

    struct ph_tensor weight;
    assert_ok(ph_store_find(folder.store, "weight", &weight));
    assert_int_equal(num_fields(graph, 5), 2);
    assert_text_field(inner_field(graph, 5, 0), 8, 0, "weight");
    assert_memory_equal(inner_field(inner_field(graph, 5, 0), 9, 0).bytes, weight.data, 6 * sizeof(ph_real));
    close_folder(&folder);
    ph__arena_fini(&arena);
}

static void a_linear_layer_over_more_dimensions_becomes_a_matmul(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c", "d", "e", "f"};
    struct ph_encoder encoder = {.num_dense = 6, .num_tasks = 2, .dense_names = names};
    const struct ph_init init = {PH_INIT_NORMAL, 1.0};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_value x = ph_reshape(builder, ph_input_dense(builder, 6), 2, (size_t[]){2, 3});
    x = ph_linear(builder, x, ph_parameter(builder, "weight", 2, (size_t[]){1, 3}, init),
        ph_parameter(builder, "bias", 1, (size_t[]){1}, init), PH_RELU);
    ph_output(builder, "logits", ph_reshape(builder, x, 1, (size_t[]){2}));
    open_folder(&folder, builder, &encoder);

    const struct message graph = export_graph(&arena, &folder, "matmul.onnx");
    const char *operators[] = {"Reshape", "Transpose", "MatMul", "Add", "Relu", "Reshape"};
    for (size_t i = 0; i < 6; i++)
        assert_text_field(inner_field(graph, 1, i), 4, 0, operators[i]);
    close_folder(&folder);
    ph__arena_fini(&arena);
}

static int64_t constant(struct message graph, size_t index)
{
    int64_t value;
    const struct message data = inner_field(inner_field(graph, 5, index), 9, 0);
    assert_int_equal(data.end - data.bytes, sizeof value);
    memcpy(&value, data.bytes, sizeof value);
    return value;
}

/* What the six models do not use: columns 1 and 2 of x, times themselves, behind an operator that only
 * training knows. */
static void a_slice_names_its_range_and_an_alias_leaves_no_node(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c"};
    struct ph_encoder encoder = {.num_dense = 3, .num_tasks = 2, .dense_names = names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_value x = ph_slice(builder, ph_input_dense(builder, 3), 1, 1, 2);
    ph_output(builder, "logits", ph_multiply(builder, x, ph_stop_gradient(builder, x)));
    open_folder(&folder, builder, &encoder);

    const struct message graph = export_graph(&arena, &folder, "slice.onnx");
    const char *operators[] = {"Slice", "Mul", "Identity", "Sigmoid"};
    assert_int_equal(num_fields(graph, 1), 4);
    for (size_t i = 0; i < 4; i++)
        assert_text_field(inner_field(graph, 1, i), 4, 0, operators[i]);
    const struct message product = inner_field(graph, 1, 1), slice = inner_field(graph, 1, 0);
    const struct message sliced = inner_field(slice, 2, 0);
    for (size_t i = 0; i < 2; i++) {
        const struct message input = inner_field(product, 1, i);
        assert_int_equal(input.end - input.bytes, sliced.end - sliced.bytes);
        assert_memory_equal(input.bytes, sliced.bytes, (size_t)(input.end - input.bytes));
    }
    const int64_t range[] = {1, 3, 1}; /* begin, end, axis: inputs 1 to 3 of Slice */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(constant(graph, i), range[i]);
    close_folder(&folder);
    ph__arena_fini(&arena);
}

/* Three vectors of 4 that look at each other and are normalised; a head has 2 numbers. */
static ph_value build_attention(struct ph_builder *builder)
{
    const struct ph_init init = {PH_INIT_NORMAL, 1.0};
    const size_t columns = 4;
    ph_value gamma = ph_parameter(builder, "gamma", 1, &columns, init);
    ph_value beta = ph_parameter(builder, "beta", 1, &columns, init);
    ph_value x = ph_reshape(builder, ph_input_dense(builder, 12), 2, (size_t[]){3, 4});
    ph_value y = ph_attention(builder, x, x, x, 0,
        &(struct ph_attention_options){
            .size = sizeof(struct ph_attention_options), .num_heads = 2, .scale = 0.25});
    return ph_reshape(builder, ph_layer_norm(builder, y, gamma, beta, 0.5), 1, (size_t[]){12});
}

static const char *twelve_names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

static void attention_becomes_products_of_heads_and_a_softmax(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    struct ph_encoder encoder = {.num_dense = 12, .num_tasks = 12, .dense_names = twelve_names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", build_attention(builder));
    open_folder(&folder, builder, &encoder);

    const struct message graph = export_graph(&arena, &folder, "attention.onnx");
    const char *operators[] = {"Reshape", "Reshape", "Transpose", "Reshape", "Transpose", "Reshape",
        "Transpose", "MatMul", "Mul", "Softmax", "MatMul", "Transpose", "Reshape", "LayerNormalization",
        "Reshape", "Identity", "Sigmoid"};
    const size_t num_operators = sizeof operators / sizeof *operators;
    assert_int_equal(num_fields(graph, 1), num_operators);
    for (size_t i = 0; i < num_operators; i++)
        assert_text_field(inner_field(graph, 1, i), 4, 0, operators[i]);
    const struct message norm = inner_field(graph, 1, 13), epsilon = inner_field(norm, 5, 1);
    float number;
    assert_text_field(inner_field(norm, 5, 0), 1, 0, "axis");
    assert_int_equal((int64_t)integer_field(inner_field(norm, 5, 0), 3, 0), -1);
    assert_text_field(epsilon, 1, 0, "epsilon");
    memcpy(&number, inner_field(epsilon, 2, 0).bytes, sizeof number);
    assert_true(number == 0.5F);
    close_folder(&folder);
    ph__arena_fini(&arena);
}

/* k and v are layers of the ids' weights. */
static ph_value build_histories(struct ph_builder *builder)
{
    const struct ph_init init = {PH_INIT_NORMAL, 1.0};
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){4, 1}, init);
    ph_value ids = ph_reshape(builder, ph_input_id_weights(builder), 1, (size_t[]){1});
    ph_value rows = ph_linear(builder, ids, weight, 0, PH_IDENTITY);
    ph_value q = ph_reshape(builder, ph_input_dense(builder, 12), 2, (size_t[]){3, 4});
    ph_value y = ph_attention(builder, q, rows, rows, ph_input_ids(builder, 1),
        &(struct ph_attention_options){.size = sizeof(struct ph_attention_options), .num_heads = 2});
    return ph_reshape(builder, y, 1, (size_t[]){12});
}

static void attention_over_histories_is_refused_by_name(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    struct ph_encoder encoder = {.num_dense = 12, .num_tasks = 12, .dense_names = twelve_names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", build_histories(builder));
    open_folder(&folder, builder, &encoder);

    const char *path = ph__path_join(&arena, test_folder(), "histories.onnx");
    assert_fails(ph__onnx_export(&folder, "histories", path), PH_ERROR_USAGE,
        "cannot be exported to ONNX: attention over histories is not supported");
    assert_false(ph__file_exists(path));
    close_folder(&folder);
    ph__arena_fini(&arena);
}

static void a_shift_moves_the_logits_of_the_first_task_alone(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c"};
    struct ph_encoder encoder = {.num_dense = 3, .num_tasks = 2, .dense_names = names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", build_product(builder));
    open_folder(&folder, builder, &encoder);

    folder.logit_shift = -2.5;
    const struct message graph = export_graph(&arena, &folder, "shifted.onnx");
    const struct message add = inner_field(graph, 1, 2), shift = inner_field(graph, 5, 2);
    const ph_real expected[] = {(ph_real)-2.5, 0};
    assert_text_field(add, 4, 0, "Add");
    assert_text_field(add, 2, 0, "logits");
    assert_text_field(shift, 8, 0, "logit_shift");
    assert_int_equal(integer_field(shift, 1, 0), 2);
    assert_memory_equal(inner_field(shift, 9, 0).bytes, expected, sizeof expected);
    close_folder(&folder);
    ph__arena_fini(&arena);
}

static void an_operator_that_onnx_lacks_is_refused_by_name(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c"};
    struct ph_encoder encoder = {.num_dense = 3, .num_tasks = 2, .dense_names = names};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_value labels = ph_input_labels(builder, 2);
    ph_output(builder, "logits", ph_bce_with_logits(builder, build_product(builder), labels, 0, 0));
    open_folder(&folder, builder, &encoder);

    const char *path = ph__path_join(&arena, test_folder(), "loss.onnx");
    assert_fails(
        ph__onnx_export(&folder, "odd", path), PH_ERROR_USAGE, "model 'odd' cannot be exported to ONNX");
    assert_fails(ph__onnx_export(&folder, "odd", path), PH_ERROR_USAGE, "operator 'bce_with_logits'");
    assert_false(ph__file_exists(path));
    close_folder(&folder);
    ph__arena_fini(&arena);
}

/* ---- products of vectors: 12 dense features as vectors ---- */

static ph_value learnt(struct ph_builder *builder, const char *name, size_t rank, const size_t *dims)
{
    return ph_parameter(builder, name, rank, dims, (struct ph_init){PH_INIT_NORMAL, 1.0});
}

static ph_value flat(struct ph_builder *builder, ph_value x, size_t columns)
{
    return ph_reshape(builder, x, 1, &columns);
}

static ph_value build_batch_product(struct ph_builder *builder, ph_value x)
{
    ph_value a = ph_reshape(builder, x, 2, (size_t[]){3, 4});
    ph_value b = ph_reshape(builder, x, 2, (size_t[]){2, 6});
    ph_value products = ph_batch_product(builder, a, a, false, true); /* (B,3,3) */
    products = ph_batch_product(builder, products, a, true, false);   /* (B,3,4) */
    products = ph_reshape(builder, products, 2, (size_t[]){6, 2});
    return flat(builder, ph_batch_product(builder, products, b, false, false), 36);
}

static ph_value build_mix_fields(struct ph_builder *builder, ph_value x)
{
    ph_value vectors = ph_reshape(builder, x, 2, (size_t[]){4, 3});
    ph_value biased = ph_mix_fields(builder, vectors, learnt(builder, "weight", 2, (size_t[]){5, 4}),
        learnt(builder, "bias", 1, (size_t[]){5}));
    return flat(builder, ph_mix_fields(builder, biased, learnt(builder, "next", 2, (size_t[]){2, 5}), 0), 6);
}

static ph_value build_cin(struct ph_builder *builder, ph_value x)
{
    ph_value vectors = ph_reshape(builder, x, 2, (size_t[]){4, 3});
    ph_value y = ph_cin(builder, ph_slice(builder, vectors, 1, 0, 2), vectors,
        learnt(builder, "weight", 2, (size_t[]){5, 8}), learnt(builder, "bias", 1, (size_t[]){5}));
    return flat(builder, y, 15);
}

static ph_value build_convolution(struct ph_builder *builder, ph_value x)
{
    ph_value image = ph_reshape(builder, x, 3, (size_t[]){1, 4, 3});
    ph_value y = ph_convolution(builder, image, learnt(builder, "weight", 4, (size_t[]){2, 1, 3, 5}),
        learnt(builder, "bias", 1, (size_t[]){2}));
    return flat(builder, y, 24);
}

static ph_value build_field_aware(struct ph_builder *builder, ph_value x)
{
    return ph_field_aware(builder, ph_reshape(builder, ph_slice(builder, x, 1, 0, 9), 2, (size_t[]){3, 3}));
}

static ph_value build_bilinear_head(struct ph_builder *builder, ph_value x)
{
    return ph_bilinear_head(builder, ph_slice(builder, x, 1, 0, 6), ph_slice(builder, x, 1, 6, 4),
        learnt(builder, "weight", 4, (size_t[]){2, 2, 3, 2}));
}

/* The names of a program's nodes in ONNX, one behind the other. */
static void check_products(
    ph_value (*build)(struct ph_builder *builder, ph_value x), const char *file, const char *expected)
{
    struct ph__arena arena = {0};
    struct ph__model_folder folder;
    struct ph_builder *builder;
    const char *names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    struct ph_encoder encoder = {.num_dense = 12, .num_tasks = 1, .dense_names = names};
    char found[256] = "";
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "logits", build(builder, ph_input_dense(builder, 12)));
    open_folder(&folder, builder, &encoder);
    const struct message graph = export_graph(&arena, &folder, file);
    for (size_t i = 0; i < num_fields(graph, 1); i++) {
        const struct message name = inner_field(inner_field(graph, 1, i), 4, 0);
        const size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%.*s ", (int)(name.end - name.bytes),
            (const char *)name.bytes);
    }
    assert_string_equal(found, expected);
    close_folder(&folder);
    ph__arena_fini(&arena);
}

/* That the numbers come out right, too, tests/oracle/onnx_check.py shows on the models made of them. */
static void products_of_vectors_become_onnx_products(void **state)
{
    (void)state;
    check_products(build_batch_product, "batch_product.onnx",
        "Reshape Reshape Transpose MatMul Transpose MatMul Reshape MatMul Reshape Identity Sigmoid ");
    check_products(
        build_mix_fields, "mix_fields.onnx", "Reshape MatMul Unsqueeze Add MatMul Reshape Identity Sigmoid ");
    check_products(build_cin, "cin.onnx",
        "Reshape Slice Unsqueeze Unsqueeze Mul Reshape MatMul Unsqueeze Add Reshape Identity Sigmoid ");
    check_products(build_convolution, "convolution.onnx", "Reshape Conv Reshape Identity Sigmoid ");
    check_products(build_field_aware, "field_aware.onnx",
        "Slice Reshape Reshape Gather Gather Mul ReduceSum ReduceSum Identity Sigmoid ");
    check_products(build_bilinear_head, "bilinear_head.onnx",
        "Slice Slice Reshape MatMul Reshape Unsqueeze Mul ReduceSum Identity Sigmoid ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_layer_becomes_a_product_an_activation_and_its_weights),
        cmocka_unit_test(a_linear_layer_over_more_dimensions_becomes_a_matmul),
        cmocka_unit_test(a_slice_names_its_range_and_an_alias_leaves_no_node),
        cmocka_unit_test(attention_becomes_products_of_heads_and_a_softmax),
        cmocka_unit_test(attention_over_histories_is_refused_by_name),
        cmocka_unit_test(a_shift_moves_the_logits_of_the_first_task_alone),
        cmocka_unit_test(products_of_vectors_become_onnx_products),
        cmocka_unit_test(an_operator_that_onnx_lacks_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
