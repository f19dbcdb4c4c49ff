/* Tensors from raw bytes, from JSON and from the lists of protobuf: the same values, the same refusals. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "serve/wire/wire_tensor.h"
#include "support/test_support.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TWO_TO_62 ((int64_t)1 << 62)

/* ---- messages ---- */

static struct ph__oip_tensor message(const char *datatype, size_t num_dims, const int64_t *dims)
{
    static int64_t copy[PH_TENSOR_MAX_DIMS + 1];
    if (num_dims > 0)
        memcpy(copy, dims, num_dims * sizeof *dims);
    return (struct ph__oip_tensor){
        .name = ph__bytes_of("x"), .datatype = ph__bytes_of(datatype), .shape = {copy, num_dims}};
}

static struct ph__oip_tensor flat_message(const char *datatype, size_t count)
{
    const int64_t dim = (int64_t)count;
    return message(datatype, 1, &dim);
}

static struct ph__oip_tensor json_message(const char *datatype, size_t count, const char *data)
{
    struct ph__oip_tensor tensor = flat_message(datatype, count);
    tensor.data = ph__bytes_of(data);
    return tensor;
}

static ph_status read_json(
    struct ph__arena *arena, const char *datatype, size_t count, const char *data, struct ph__tensor *tensor)
{
    const struct ph__oip_tensor json = json_message(datatype, count, data);
    return ph__tensor_read(&json, NULL, arena, tensor);
}

static ph_status read_raw(struct ph__arena *arena, const char *datatype, size_t count, const void *bytes,
    size_t size, struct ph__tensor *tensor)
{
    const struct ph__oip_tensor binary = flat_message(datatype, count);
    const struct ph__bytes raw = {bytes, size};
    return ph__tensor_read(&binary, &raw, arena, tensor);
}

/* Refuses, and takes no memory before it does. */
static void assert_refuses_shape(const char *datatype, size_t num_dims, const int64_t *dims, const char *part)
{
    static const struct ph__bytes raw = {"12345678", 8};
    struct ph__oip_tensor tensor = message(datatype, num_dims, dims);
    struct ph__arena arena = {0};
    struct ph__tensor read;
    assert_fails(ph__tensor_read(&tensor, &raw, &arena, &read), PH_ERROR_DATA, part);
    assert_fails(ph__tensor_read(&tensor, NULL, &arena, &read), PH_ERROR_DATA, "tensor 'x'");
    tensor.data = ph__bytes_of("[1,2,3]");
    assert_fails(ph__tensor_read(&tensor, NULL, &arena, &read), PH_ERROR_DATA, "tensor 'x'");
    assert_null(arena.blocks);
}

static void assert_integers(const struct ph__tensor *tensor, const int64_t *integers, size_t count)
{
    assert_true(ph__tensor_is_integer(tensor) && !ph__tensor_is_text(tensor));
    assert_int_equal(tensor->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(ph__tensor_integer(tensor, i) == integers[i]);
        assert_true(ph__tensor_real(tensor, i) == (double)integers[i]);
    }
}

static void assert_reals(const struct ph__tensor *tensor, const double *reals, size_t count)
{
    assert_true(!ph__tensor_is_integer(tensor) && !ph__tensor_is_text(tensor));
    assert_int_equal(tensor->count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(ph__tensor_real(tensor, i) == reals[i]);
}

static void assert_texts(const struct ph__tensor *tensor, const char *const *texts, size_t count)
{
    assert_true(ph__tensor_is_text(tensor) && !ph__tensor_is_integer(tensor));
    assert_int_equal(tensor->count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(ph__bytes_are(ph__tensor_text(tensor, i), texts[i]));
}

/* ---- raw bytes ---- */

/* Each integer type at its bounds, at every alignment. */
static void raw_integers_are_read_at_any_alignment(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        size_t bytes;
        int64_t values[3];
    } cases[] = {
        {"UINT8", 1, {0, 200, UINT8_MAX}},
        {"UINT16", 2, {0, 60000, UINT16_MAX}},
        {"UINT32", 4, {0, 4000000000, UINT32_MAX}},
        {"UINT64", 8, {0, 1, INT64_MAX}},
        {"INT8", 1, {INT8_MIN, -1, INT8_MAX}},
        {"INT16", 2, {INT16_MIN, -1, INT16_MAX}},
        {"INT32", 4, {INT32_MIN, -1, INT32_MAX}},
        {"INT64", 8, {INT64_MIN, -1, INT64_MAX}},
    };
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t shift = 0; shift < 8; shift++) {
            char bytes[32];
            for (size_t v = 0; v < 3; v++)
                memcpy(bytes + shift + v * cases[i].bytes, &cases[i].values[v], cases[i].bytes);
            assert_ok(read_raw(&arena, cases[i].type, 3, bytes + shift, 3 * cases[i].bytes, &tensor));
            assert_integers(&tensor, cases[i].values, 3);
            assert_string_equal(ph__tensor_type_name(tensor.type), cases[i].type);
        }
    assert_null(arena.blocks); /* values are borrowed */
    ph__arena_fini(&arena);
}

static void raw_bools_are_0_and_1(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_raw(&arena, "BOOL", 4, "\0\1\2\377", 4, &tensor));
    assert_integers(&tensor, (const int64_t[]){0, 1, 1, 1}, 4);
    ph__arena_fini(&arena);
}

static void a_raw_uint64_beyond_int64_wraps(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    const uint64_t values[] = {UINT64_MAX, (uint64_t)1 << 63};
    assert_ok(read_raw(&arena, "UINT64", 2, values, sizeof values, &tensor));
    assert_integers(&tensor, (const int64_t[]){-1, INT64_MIN}, 2);
    ph__arena_fini(&arena);
}

static void raw_reals_are_read_at_any_alignment(void **state)
{
    (void)state;
    static const float floats[] = {-0.1f, FLT_MAX, FLT_TRUE_MIN};
    static const double doubles[] = {-0.1, DBL_MAX, DBL_TRUE_MIN};
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff}, bfloats[] = {0x3f80, 0xc000, 0x4049};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t shift = 0; shift < 8; shift++) {
        char bytes[40];
        memcpy(bytes + shift, floats, sizeof floats);
        assert_ok(read_raw(&arena, "FP32", 3, bytes + shift, sizeof floats, &tensor));
        assert_reals(&tensor, (const double[]){(double)floats[0], (double)floats[1], (double)floats[2]}, 3);
        memcpy(bytes + shift, doubles, sizeof doubles);
        assert_ok(read_raw(&arena, "FP64", 3, bytes + shift, sizeof doubles, &tensor));
        assert_reals(&tensor, doubles, 3);
        memcpy(bytes + shift, halves, sizeof halves);
        assert_ok(read_raw(&arena, "FP16", 3, bytes + shift, sizeof halves, &tensor));
        assert_reals(&tensor, (const double[]){1, -2, 65504}, 3);
        memcpy(bytes + shift, bfloats, sizeof bfloats);
        assert_ok(read_raw(&arena, "BF16", 3, bytes + shift, sizeof bfloats, &tensor));
        assert_reals(&tensor, (const double[]){1, -2, 3.140625}, 3);
    }
    ph__arena_fini(&arena);
}

static void raw_texts_have_their_lengths_before_them(void **state)
{
    (void)state;
    static const char bytes[] = "?\3\0\0\0abc\0\0\0\0\1\0\0\0z"; /* not aligned */
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_raw(&arena, "BYTES", 3, bytes + 1, sizeof bytes - 2, &tensor));
    assert_texts(&tensor, (const char *const[]){"abc", "", "z"}, 3);
    ph__arena_fini(&arena);
}

static void raw_texts_that_are_cut_off_or_left_over_are_refused(void **state)
{
    (void)state;
    static const char bytes[] = "\3\0\0\0abc\2\0\0\0de";
    const size_t size = sizeof bytes - 1;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t cut = 8; cut < size; cut++)
        assert_fails(read_raw(&arena, "BYTES", 2, bytes, cut, &tensor), PH_ERROR_DATA,
            "tensor 'x': text 1 ends behind the tensor's bytes");
    for (size_t cut = 0; cut < 8; cut++)
        assert_fails(read_raw(&arena, "BYTES", 2, bytes, cut, &tensor), PH_ERROR_DATA,
            "cannot hold 2 texts with their lengths");
    assert_fails(read_raw(&arena, "BYTES", 1, bytes, size, &tensor), PH_ERROR_DATA,
        "tensor 'x': 6 bytes are left over behind its last text");
    assert_fails(read_raw(&arena, "BYTES", 0, bytes, 1, &tensor), PH_ERROR_DATA, "1 bytes are left over");
    assert_fails(
        read_raw(&arena, "BYTES", 1, "\377\377\377\377abc", 7, &tensor), PH_ERROR_DATA, "text 0 ends behind");
    ph__arena_fini(&arena);
}

static void raw_bytes_of_another_size_are_refused(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    const char bytes[64] = {0};
    assert_fails(read_raw(&arena, "INT32", 3, bytes, 11, &tensor), PH_ERROR_DATA,
        "tensor 'x' has 11 bytes; its shape and type INT32 take 12");
    assert_fails(read_raw(&arena, "INT32", 3, bytes, 13, &tensor), PH_ERROR_DATA, "has 13 bytes");
    assert_fails(read_raw(&arena, "FP16", 1, bytes, 0, &tensor), PH_ERROR_DATA, "FP16 take 2");
    assert_fails(read_raw(&arena, "BOOL", 0, bytes, 1, &tensor), PH_ERROR_DATA, "BOOL take 0");
    ph__arena_fini(&arena);
}

/* ---- JSON ---- */

static void json_gives_every_integer_type(void **state)
{
    (void)state;
    static const char *const types[] = {
        "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_ok(read_json(&arena, types[i], 3, "[0, 1, 127]", &tensor));
        assert_integers(&tensor, (const int64_t[]){0, 1, 127}, 3);
        assert_string_equal(ph__tensor_type_name(tensor.type), types[i]);
    }
    assert_ok(read_json(&arena, "INT64", 2, "[-9223372036854775808,9223372036854775807]", &tensor));
    assert_integers(&tensor, (const int64_t[]){INT64_MIN, INT64_MAX}, 2);
    assert_ok(read_json(&arena, "BOOL", 4, "[true,false,1,0]", &tensor));
    assert_integers(&tensor, (const int64_t[]){1, 0, 1, 0}, 4);
    ph__arena_fini(&arena);
}

static void json_gives_reals_as_their_type_holds_them(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_json(&arena, "FP32", 3, "[0.1, -2, 1e-3]", &tensor));
    assert_reals(&tensor, (const double[]){(double)0.1f, -2, (double)1e-3f}, 3);
    assert_ok(read_json(&arena, "FP64", 3, "[0.1, -2, 1e300]", &tensor));
    assert_reals(&tensor, (const double[]){0.1, -2, 1e300}, 3);
    ph__arena_fini(&arena);
}

static void json_gives_texts(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_json(&arena, "BYTES", 3, "[\"a\",\"\",\"\\u00e9\\n\"]", &tensor));
    assert_texts(&tensor, (const char *const[]){"a", "", "\xc3\xa9\n"}, 3);
    ph__arena_fini(&arena);
}

static void json_may_be_nested_or_flat(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1,2,3,4,5,6]", "[[1,2,3],[4,5,6]]", "[[1,2],[3,4],[5,6]]",
        "[[[1],[2],[3]],[[4],[5],[6]]]", " [ [1,2,3] , [4,5,6] ] "};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct ph__oip_tensor json = message("INT64", 3, (const int64_t[]){2, 3, 1});
        json.data = ph__bytes_of(texts[i]);
        assert_ok(ph__tensor_read(&json, NULL, &arena, &tensor));
        assert_integers(&tensor, (const int64_t[]){1, 2, 3, 4, 5, 6}, 6);
        assert_int_equal(tensor.num_dims, 3);
        assert_true(tensor.dims[0] == 2 && tensor.dims[1] == 3 && tensor.dims[2] == 1);
    }
    ph__arena_fini(&arena);
}

static void json_that_is_no_array_of_such_values_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type, *data, *part;
    } cases[] = {
        {"INT64", "[1.5]", "an integer of 64 bits is expected"},
        {"INT64", "[9223372036854775808]", "an integer of 64 bits is expected"},
        {"INT64", "[\"1\"]", "a number is expected"},
        {"INT64", "[null]", "a number is expected"},
        {"INT64", "[{\"a\":1}]", "a number is expected"},
        {"INT64", "{\"a\":1}", "an array is expected"},
        {"INT64", "1", "an array is expected"},
        {"INT64", "\"1\"", "an array is expected"},
        {"INT64", "[1", "a comma or a closing bracket is expected"},
        {"INT64", "[1]]", "the text goes on behind its value"},
        {"INT64", "[,1]", "a number is expected"},
        {"FP32", "[true]", "a number is expected"},
        {"FP32", "[NaN]", "a number is expected"},
        {"FP64", "[1e999]", "a number within the range of double is expected"},
        {"BYTES", "[1]", "a string is expected"},
        {"BYTES", "[\"\xff\"]", "the text is not UTF-8"},
    };
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_fails(
            read_json(&arena, cases[i].type, 1, cases[i].data, &tensor), PH_ERROR_DATA, cases[i].part);
        assert_non_null(strstr(ph_error_text(), "tensor 'x': data: "));
    }
    ph__arena_fini(&arena);
}

static void json_integers_out_of_their_types_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type, *data;
    } cases[] = {{"UINT8", "[256]"}, {"UINT8", "[-1]"}, {"UINT16", "[65536]"}, {"UINT32", "[4294967296]"},
        {"UINT64", "[-1]"}, {"INT8", "[128]"}, {"INT8", "[-129]"}, {"INT16", "[32768]"},
        {"INT32", "[2147483648]"}, {"INT32", "[-2147483649]"}, {"BOOL", "[2]"}, {"BOOL", "[-1]"}};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(
            read_json(&arena, cases[i].type, 1, cases[i].data, &tensor), PH_ERROR_DATA, "tensor 'x': data: ");
    ph__arena_fini(&arena);
}

/* ---- lists of protobuf ---- */

static ph_status read_contents(struct ph__arena *arena, const char *datatype, size_t count,
    const struct ph__oip_contents *contents, struct ph__tensor *tensor)
{
    struct ph__oip_tensor listed = flat_message(datatype, count);
    listed.contents = *contents;
    return ph__tensor_read(&listed, NULL, arena, tensor);
}

static void lists_give_every_integer_type(void **state)
{
    (void)state;
    static int64_t numbers[] = {-1, 0, 100};
    static uint64_t naturals[] = {1, 0, 100};
    static const int64_t read_naturals[] = {1, 0, 100};
    static bool bools[] = {true, false, true};
    const struct ph__oip_contents contents = {.bools = {bools, 3},
        .int32s = {numbers, 3},
        .int64s = {numbers, 3},
        .uint32s = {naturals, 3},
        .uint64s = {naturals, 3}};
    static const char *const are_signed[] = {"INT8", "INT16", "INT32", "INT64"}, *const are_not[] = {"UINT8",
                                                                                     "UINT16", "UINT32",
                                                                                     "UINT64"};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(read_contents(&arena, are_signed[i], 3, &contents, &tensor));
        assert_integers(&tensor, numbers, 3);
        assert_ok(read_contents(&arena, are_not[i], 3, &contents, &tensor));
        assert_integers(&tensor, read_naturals, 3);
    }
    assert_ok(read_contents(&arena, "BOOL", 3, &contents, &tensor));
    assert_integers(&tensor, (const int64_t[]){1, 0, 1}, 3);
    assert_null(arena.blocks); /* values are borrowed */
    ph__arena_fini(&arena);
}

static void lists_give_reals_and_texts(void **state)
{
    (void)state;
    static float floats[] = {-0.1f, FLT_MAX};
    static double doubles[] = {-0.1, DBL_MAX};
    static struct ph__bytes texts[] = {{"a|b", 3}, {"", 0}};
    const struct ph__oip_contents contents = {
        .fp32s = {floats, 2}, .fp64s = {doubles, 2}, .texts = {texts, 2}};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_contents(&arena, "FP32", 2, &contents, &tensor));
    assert_reals(&tensor, (const double[]){(double)floats[0], (double)floats[1]}, 2);
    assert_ok(read_contents(&arena, "FP64", 2, &contents, &tensor));
    assert_reals(&tensor, doubles, 2);
    assert_ok(read_contents(&arena, "BYTES", 2, &contents, &tensor));
    assert_texts(&tensor, (const char *const[]){"a|b", ""}, 2);
    ph__arena_fini(&arena);
}

/* ---- refusals of every form ---- */

static void another_number_of_values_is_refused(void **state)
{
    (void)state;
    static int64_t numbers[] = {1, 2, 3};
    const struct ph__oip_contents contents = {.int64s = {numbers, 3}};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_fails(read_contents(&arena, "INT64", 4, &contents, &tensor), PH_ERROR_DATA,
        "tensor 'x' has 3 values, but its shape says 4");
    assert_fails(read_contents(&arena, "INT64", 2, &contents, &tensor), PH_ERROR_DATA, "has 3 values, but");
    assert_fails(read_contents(&arena, "INT32", 3, &contents, &tensor), PH_ERROR_DATA, "has 0 values, but");
    assert_fails(read_json(&arena, "INT64", 4, "[1,2,3]", &tensor), PH_ERROR_DATA,
        "tensor 'x' has 3 values, but its shape says 4");
    assert_fails(
        read_json(&arena, "INT64", 2, "[1,2,3]", &tensor), PH_ERROR_DATA, "more values than the shape says");
    assert_fails(read_json(&arena, "INT64", 0, "[[],[[1]]]", &tensor), PH_ERROR_DATA,
        "more values than the shape says");
    assert_fails(read_json(&arena, "BYTES", 1, "[]", &tensor), PH_ERROR_DATA, "has 0 values, but");
    ph__arena_fini(&arena);
}

static void listed_integers_out_of_their_types_range_are_refused(void **state)
{
    (void)state;
    static int64_t numbers[] = {0, (int64_t)1 << 31};
    static uint64_t naturals[] = {0, (uint64_t)1 << 32};
    const struct ph__oip_contents contents = {.int32s = {numbers, 2}, .uint32s = {naturals, 2}};
    static const char *const types[] = {"INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(types); i++)
        assert_fails(read_contents(&arena, types[i], 2, &contents, &tensor), PH_ERROR_DATA,
            "tensor 'x': value 1 is out of the range of");
    ph__arena_fini(&arena);
}

static void listed_uint64s_beyond_int64_wrap(void **state)
{
    (void)state;
    static uint64_t naturals[] = {UINT64_MAX};
    const struct ph__oip_contents contents = {.uint64s = {naturals, 1}};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    assert_ok(read_contents(&arena, "UINT64", 1, &contents, &tensor));
    assert_integers(&tensor, (const int64_t[]){-1}, 1);
    ph__arena_fini(&arena);
}

static void halves_must_be_binary(void **state)
{
    (void)state;
    const struct ph__oip_contents contents = {.fp32s = {NULL, 0}};
    static const char *const types[] = {"FP16", "BF16"};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < 2; i++) {
        assert_fails(read_json(&arena, types[i], 1, "[1]", &tensor), PH_ERROR_DATA, "must be binary");
        assert_fails(read_contents(&arena, types[i], 0, &contents, &tensor), PH_ERROR_DATA, "must be binary");
        assert_non_null(strstr(ph_error_text(), types[i]));
    }
    ph__arena_fini(&arena);
}

static void unknown_datatypes_are_refused(void **state)
{
    (void)state;
    static const char *const types[] = {"", "FLOAT", "fp32", "FP32 ", "INT", "INT128", "TYPE_INT64", "NONE"};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(types); i++) {
        char part[64];
        snprintf(part, sizeof part, "tensor 'x': unknown datatype '%s'", types[i]);
        assert_fails(read_json(&arena, types[i], 1, "[1]", &tensor), PH_ERROR_DATA, part);
        assert_fails(read_raw(&arena, types[i], 1, "1234", 4, &tensor), PH_ERROR_DATA, part);
    }
    ph__arena_fini(&arena);
}

static void impossible_shapes_take_no_memory(void **state)
{
    (void)state;
    static const int64_t nine[PH_TENSOR_MAX_DIMS + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const types[] = {"INT64", "FP32", "BYTES", "BOOL"};
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_refuses_shape(types[i], 1, (const int64_t[]){-1}, "dimension -1 is impossible");
        assert_refuses_shape(types[i], 2, (const int64_t[]){3, INT64_MIN}, "is impossible");
        assert_refuses_shape(types[i], 2, (const int64_t[]){0, -1}, "dimension -1 is impossible");
        assert_refuses_shape(types[i], 3, (const int64_t[]){TWO_TO_62, 2, 2}, "dimension 2 is impossible");
        assert_refuses_shape(types[i], 2, (const int64_t[]){INT64_MAX, INT64_MAX}, "is impossible");
        assert_refuses_shape(types[i], PH_TENSOR_MAX_DIMS + 1, nine, "has 9 dimensions; at most 8");
    }
}

/* The product fits size_t, but neither the bytes of the values nor what the message holds. */
static void large_shapes_without_the_values_take_no_memory(void **state)
{
    (void)state;
    static const char *const types[] = {"INT64", "FP64", "BYTES"};
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_refuses_shape(types[i], 1, (const int64_t[]){INT64_MAX}, "tensor 'x'");
        assert_refuses_shape(types[i], 2, (const int64_t[]){TWO_TO_62, 2}, "tensor 'x'");
        assert_refuses_shape(types[i], 2, (const int64_t[]){1 << 20, 1 << 12}, "tensor 'x'");
    }
}

static void tensors_may_be_empty_or_without_dimensions(void **state)
{
    (void)state;
    static const char *const types[] = {"INT64", "FP32", "BYTES", "BOOL"};
    const struct ph__oip_contents contents = {.int64s = {NULL, 0}};
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_ok(read_raw(&arena, types[i], 0, "", 0, &tensor));
        assert_int_equal(tensor.count, 0);
        assert_ok(read_json(&arena, types[i], 0, "[]", &tensor));
        assert_int_equal(tensor.count, 0);
        assert_ok(read_json(&arena, types[i], 0, "[[],[]]", &tensor));
        assert_ok(read_contents(&arena, types[i], 0, &contents, &tensor));
        assert_int_equal(tensor.count, 0);
    }
    struct ph__oip_tensor scalar = message("INT64", 0, NULL);
    scalar.data = ph__bytes_of("[7]");
    assert_ok(ph__tensor_read(&scalar, NULL, &arena, &tensor));
    assert_integers(&tensor, (const int64_t[]){7}, 1);
    assert_int_equal(tensor.num_dims, 0);
    ph__arena_fini(&arena);
}

static void long_names_are_cut_in_errors(void **state)
{
    (void)state;
    static char name[100000];
    memset(name, 'n', sizeof name);
    struct ph__arena arena = {0};
    struct ph__tensor tensor;
    struct ph__oip_tensor json = json_message("INT64", 2, "[1]");
    json.name = (struct ph__bytes){name, sizeof name};
    assert_fails(ph__tensor_read(&json, NULL, &arena, &tensor), PH_ERROR_DATA, "n' has 1 values");
    json.datatype = json.name;
    assert_fails(ph__tensor_read(&json, NULL, &arena, &tensor), PH_ERROR_DATA, "n': unknown datatype 'nn");
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_integers_are_read_at_any_alignment),
        cmocka_unit_test(raw_bools_are_0_and_1),
        cmocka_unit_test(a_raw_uint64_beyond_int64_wraps),
        cmocka_unit_test(raw_reals_are_read_at_any_alignment),
        cmocka_unit_test(raw_texts_have_their_lengths_before_them),
        cmocka_unit_test(raw_texts_that_are_cut_off_or_left_over_are_refused),
        cmocka_unit_test(raw_bytes_of_another_size_are_refused),
        cmocka_unit_test(json_gives_every_integer_type),
        cmocka_unit_test(json_gives_reals_as_their_type_holds_them),
        cmocka_unit_test(json_gives_texts),
        cmocka_unit_test(json_may_be_nested_or_flat),
        cmocka_unit_test(json_that_is_no_array_of_such_values_is_refused),
        cmocka_unit_test(json_integers_out_of_their_types_range_are_refused),
        cmocka_unit_test(lists_give_every_integer_type),
        cmocka_unit_test(lists_give_reals_and_texts),
        cmocka_unit_test(listed_integers_out_of_their_types_range_are_refused),
        cmocka_unit_test(listed_uint64s_beyond_int64_wrap),
        cmocka_unit_test(another_number_of_values_is_refused),
        cmocka_unit_test(halves_must_be_binary),
        cmocka_unit_test(unknown_datatypes_are_refused),
        cmocka_unit_test(impossible_shapes_take_no_memory),
        cmocka_unit_test(large_shapes_without_the_values_take_no_memory),
        cmocka_unit_test(tensors_may_be_empty_or_without_dimensions),
        cmocka_unit_test(long_names_are_cut_in_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
