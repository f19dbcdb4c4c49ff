/* The file, field by field as onnx.proto3 numbers them, by a reader of its own. */
#include "serve/onnx_model.h"

#include "base/file/file.h"
#include "unit/base/protobuf_reader.h"

static struct message read_model(struct ph__arena *arena, const char *path)
{
    char *text;
    size_t size;
    assert_ok(ph__file_read(arena, path, 1 << 20, &text, &size));
    return (struct message){(const unsigned char *)text, (const unsigned char *)text + size};
}

static char *path_of(struct ph__arena *arena, const char *name)
{
    return ph__arena_printf(arena, "%s/%s", test_folder(), name);
}

/* y = Gemm(x, w) with transB = 1 */
static void add_product(struct ph__onnx_model *model, const ph_real *weight)
{
    const struct ph__onnx_dim x[] = {{0, "batch"}, {3, NULL}}, y[] = {{0, "batch"}, {2, NULL}};
    const struct ph__onnx_tensor tensor = {"w", PH_ONNX_REAL, {.num_dims = 2, .dims = {2, 3}}, weight};
    const struct ph__onnx_attribute attributes[] = {{.name = "transB", .kind = PH_ONNX_INTEGER, .integer = 1},
        {.name = "alpha", .kind = PH_ONNX_NUMBER, .number = 1.0f}, {.name = NULL}};
    const char *const inputs[] = {"x", "w", NULL};
    ph__onnx_model_input(model, "x", PH_ONNX_FLOAT, 2, x);
    ph__onnx_model_tensor(model, &tensor);
    ph__onnx_model_node(model, "y", &(struct ph__onnx_node){"Gemm", inputs, attributes});
    ph__onnx_model_output(model, "y", PH_ONNX_FLOAT, 2, y);
    ph__onnx_model_metadata(model, "dense", "a\nb\nc");
}

static void versions_metadata_and_graph_are_the_fields_of_the_model(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const ph_real weight[6] = {0};
    add_product(&model, weight);
    const char *path = path_of(&arena, "versions.onnx");
    assert_ok(ph__onnx_model_write(&model, "product", path));
    const struct message read = read_model(&arena, path);
    assert_int_equal(integer_field(read, 1, 0), 8); /* ir_version */
    assert_text_field(read, 2, 0, "phloem");
    assert_int_equal(integer_field(inner_field(read, 8, 0), 2, 0), 17); /* opset_import.version */
    assert_text_field(inner_field(read, 14, 0), 1, 0, "dense");
    assert_text_field(inner_field(read, 14, 0), 2, 0, "a\nb\nc");
    assert_int_equal(num_fields(read, 7), 1);
    assert_text_field(inner_field(read, 7, 0), 2, 0, "product");
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void a_node_names_its_inputs_and_attributes_in_order(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const ph_real weight[6] = {0};
    add_product(&model, weight);
    const char *path = path_of(&arena, "node.onnx");
    assert_ok(ph__onnx_model_write(&model, "product", path));
    const struct message graph = inner_field(read_model(&arena, path), 7, 0);
    assert_int_equal(num_fields(graph, 1), 1);
    const struct message node = inner_field(graph, 1, 0);
    assert_int_equal(num_fields(node, 1), 2);
    assert_text_field(node, 1, 0, "x");
    assert_text_field(node, 1, 1, "w");
    assert_text_field(node, 2, 0, "y");
    assert_text_field(node, 4, 0, "Gemm");
    const struct message first = inner_field(node, 5, 0), second = inner_field(node, 5, 1);
    assert_text_field(first, 1, 0, "transB");
    assert_int_equal(integer_field(first, 3, 0), 1);
    assert_int_equal(integer_field(first, 20, 0), 2); /* INT */
    assert_text_field(second, 1, 0, "alpha");
    assert_memory_equal(inner_field(second, 2, 0).bytes, "\x00\x00\x80\x3f", 4);
    assert_int_equal(integer_field(second, 20, 0), 1); /* FLOAT */
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void constants_carry_shape_and_raw_data(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const ph_real weight[6] = {1, 2, 3, 4, 5, 6};
    const int64_t integers[] = {-1, 1000};
    add_product(&model, weight);
    ph__onnx_model_integers(&model, "shape", 2, integers);
    const char *path = path_of(&arena, "constants.onnx");
    assert_ok(ph__onnx_model_write(&model, "product", path));
    const struct message graph = inner_field(read_model(&arena, path), 7, 0);
    assert_int_equal(num_fields(graph, 5), 2);
    const struct message first = inner_field(graph, 5, 0), second = inner_field(graph, 5, 1);
    assert_text_field(first, 8, 0, "w");
    assert_int_equal(integer_field(first, 1, 0), 2);
    assert_int_equal(integer_field(first, 1, 1), 3);
    assert_int_equal(integer_field(first, 2, 0), PH_ONNX_REAL);
    assert_int_equal(inner_field(first, 9, 0).end - inner_field(first, 9, 0).bytes, sizeof weight);
    assert_memory_equal(inner_field(first, 9, 0).bytes, weight, sizeof weight);
    assert_int_equal(integer_field(second, 2, 0), 7); /* INT64 */
    assert_memory_equal(inner_field(second, 9, 0).bytes, integers, sizeof integers);
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void inputs_and_outputs_have_fixed_and_named_dimensions(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const ph_real weight[6] = {0};
    add_product(&model, weight);
    const char *path = path_of(&arena, "values.onnx");
    assert_ok(ph__onnx_model_write(&model, "product", path));
    const struct message graph = inner_field(read_model(&arena, path), 7, 0);
    const struct message input = inner_field(graph, 11, 0);
    const struct message type = inner_field(inner_field(input, 2, 0), 1, 0); /* type.tensor_type */
    const struct message shape = inner_field(type, 2, 0);
    assert_text_field(input, 1, 0, "x");
    assert_int_equal(integer_field(type, 1, 0), 1); /* FLOAT */
    assert_int_equal(num_fields(shape, 1), 2);
    assert_text_field(inner_field(shape, 1, 0), 2, 0, "batch");
    assert_int_equal(integer_field(inner_field(shape, 1, 1), 1, 0), 3);
    assert_text_field(inner_field(graph, 12, 0), 1, 0, "y");
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void a_model_above_2_gib_is_refused_and_leaves_no_file(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const float nothing = 0; /* never read */
    const struct ph__onnx_tensor tensor = {
        "embedding.table", PH_ONNX_FLOAT, {.num_dims = 2, .dims = {1u << 26, 8}}, &nothing};
    const char *path = path_of(&arena, "large.onnx");
    ph__onnx_model_tensor(&model, &tensor);
    assert_fails(ph__onnx_model_write(&model, "large", path), PH_ERROR_USAGE, "2147483647 bytes");
    assert_false(ph__file_exists(path));
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void the_first_error_is_what_writing_reports(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const char *path = path_of(&arena, "failed.onnx");
    ph__onnx_model_fail(&model, PH_ERROR_USAGE, "the %s", "first");
    ph__onnx_model_fail(&model, PH_ERROR_MEMORY, "the second");
    assert_fails(ph__onnx_model_write(&model, "failed", path), PH_ERROR_USAGE, "the first");
    assert_false(ph__file_exists(path));
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

static void a_folder_that_is_missing_is_a_disk_error(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__onnx_model model = {0};
    const ph_real weight[6] = {0};
    add_product(&model, weight);
    assert_fails(ph__onnx_model_write(&model, "product", path_of(&arena, "missing/model.onnx")),
        PH_ERROR_DISK, "missing/model.onnx");
    ph__onnx_model_fini(&model);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_metadata_and_graph_are_the_fields_of_the_model),
        cmocka_unit_test(a_node_names_its_inputs_and_attributes_in_order),
        cmocka_unit_test(constants_carry_shape_and_raw_data),
        cmocka_unit_test(inputs_and_outputs_have_fixed_and_named_dimensions),
        cmocka_unit_test(a_model_above_2_gib_is_refused_and_leaves_no_file),
        cmocka_unit_test(the_first_error_is_what_writing_reports),
        cmocka_unit_test(a_folder_that_is_missing_is_a_disk_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
