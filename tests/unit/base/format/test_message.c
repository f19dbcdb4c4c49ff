/* Messages through both formats. The bytes of protobuf are written by hand after protobuf.dev, "Encoding". */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/message.h"
#include "support/test_support.h"

/* ---- the messages ---- */

struct value {
    uint32_t which;
    bool boolean;
    int64_t integer;
    struct ph__bytes text;
    double real;
};

struct pair {
    struct ph__bytes key;
    struct value value;
};

struct point {
    int64_t x;
    double y;
};

struct sample {
    bool flag;
    int64_t number;
    uint64_t count;
    float small;
    struct ph__bytes name, blob, raw;
    int64_t word;
    struct point point;
    struct ph__list numbers, names, points, pairs;
};

#define VALUE(member) offsetof(struct value, member)
static const struct ph__field value_fields[] = {
    {.number = 1, .type = PH_FIELD_TYPE_BOOL, .offset = VALUE(boolean)},
    {.number = 2, .type = PH_FIELD_TYPE_INT64, .offset = VALUE(integer)},
    {.number = 3, .type = PH_FIELD_TYPE_TEXT, .offset = VALUE(text)},
    {.number = 4, .type = PH_FIELD_TYPE_DOUBLE, .offset = VALUE(real)},
};
static const struct ph__message value_message = {.name = "Value",
    .size = sizeof(struct value),
    PH_MESSAGE_FIELDS(value_fields),
    .is_choice = true,
    .choice = VALUE(which)};

static const struct ph__field pair_fields[] = {
    {.number = 1, .type = PH_FIELD_TYPE_TEXT, .offset = offsetof(struct pair, key)},
    {.number = 2,
        .type = PH_FIELD_TYPE_NESTED,
        .message = &value_message,
        .offset = offsetof(struct pair, value)},
};
static const struct ph__message pair_message = {
    .name = "Pair", .size = sizeof(struct pair), PH_MESSAGE_FIELDS(pair_fields)};

static const struct ph__field point_fields[] = {
    {"x", 1, PH_FIELD_TYPE_INT64, .offset = offsetof(struct point, x), .is_always = true},
    {"y", 2, PH_FIELD_TYPE_DOUBLE, .offset = offsetof(struct point, y)},
};
static const struct ph__message point_message = {
    .name = "Point", .size = sizeof(struct point), PH_MESSAGE_FIELDS(point_fields)};

#define SAMPLE(member) offsetof(struct sample, member)
static const char *const words[] = {"NONE", "SOME", NULL};
static const struct ph__field sample_fields[] = {
    {"flag", 1, PH_FIELD_TYPE_BOOL, .offset = SAMPLE(flag)},
    {"number", 2, PH_FIELD_TYPE_INT64, .offset = SAMPLE(number)},
    {"count", 3, PH_FIELD_TYPE_UINT64, .offset = SAMPLE(count)},
    {"small", 4, PH_FIELD_TYPE_FLOAT, .offset = SAMPLE(small)},
    {"name", 5, PH_FIELD_TYPE_TEXT, .offset = SAMPLE(name)},
    {NULL, 6, PH_FIELD_TYPE_BYTES, .offset = SAMPLE(blob)},
    {"raw", 0, PH_FIELD_TYPE_JSON, .offset = SAMPLE(raw)},
    {"word", 7, PH_FIELD_TYPE_WORD, .offset = SAMPLE(word), .words = words},
    {"point", 8, PH_FIELD_TYPE_NESTED, .offset = SAMPLE(point), .message = &point_message},
    {"numbers", 9, PH_FIELD_TYPE_INT64, .form = PH_FIELD_FORM_LIST, .offset = SAMPLE(numbers),
        .is_always = true},
    {"names", 10, PH_FIELD_TYPE_TEXT, .form = PH_FIELD_FORM_LIST, .offset = SAMPLE(names)},
    {"points", 11, PH_FIELD_TYPE_NESTED, .form = PH_FIELD_FORM_LIST, .offset = SAMPLE(points),
        .message = &point_message},
    {"pairs", 16, PH_FIELD_TYPE_NESTED, .form = PH_FIELD_FORM_MAP, .offset = SAMPLE(pairs),
        .message = &pair_message},
};
static const struct ph__message sample_message = {
    .name = "Sample", .size = sizeof(struct sample), PH_MESSAGE_FIELDS(sample_fields)};

/* ---- the texts ---- */

#define SAMPLE_JSON                                                                                   \
    "{\"flag\":true,\"number\":-3,\"count\":300,\"small\":0.100000001,\"name\":\"caf\xc3\xa9\","      \
    "\"raw\":[1, {\"a\":null}],\"word\":\"SOME\",\"point\":{\"x\":1,\"y\":2.5},\"numbers\":[1,2,3,4," \
    "5],\"names\":[\"a\",\"b\"],\"points\":[{\"x\":0},{\"x\":7}],\"pairs\":{\"yes\":true,\"n\":4,"    \
    "\"t\":\"x\",\"r\":1.5}}"

static const unsigned char sample_bytes[] = {
    0x08,
    1, /* flag */
    0x10,
    0xfd,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0x01, /* number */
    0x18,
    0xac,
    0x02, /* count */
    0x25,
    0xcd,
    0xcc,
    0xcc,
    0x3d, /* small */
    0x2a,
    5,
    'c',
    'a',
    'f',
    0xc3,
    0xa9, /* name */
    0x38,
    1, /* word */
    0x42,
    11,
    0x08,
    1,
    0x11,
    0,
    0,
    0,
    0,
    0,
    0,
    0x04,
    0x40, /* point */
    0x48,
    1,
    0x48,
    2,
    0x48,
    3,
    0x48,
    4,
    0x48,
    5, /* numbers */
    0x52,
    1,
    'a',
    0x52,
    1,
    'b', /* names */
    0x5a,
    0,
    0x5a,
    2,
    0x08,
    7, /* points */
    0x82,
    0x01,
    9,
    0x0a,
    3,
    'y',
    'e',
    's',
    0x12,
    2,
    0x08,
    1, /* pairs */
    0x82,
    0x01,
    7,
    0x0a,
    1,
    'n',
    0x12,
    2,
    0x10,
    4, /* pairs */
    0x82,
    0x01,
    8,
    0x0a,
    1,
    't',
    0x12,
    3,
    0x1a,
    1,
    'x', /* pairs */
    0x82,
    0x01,
    14,
    0x0a,
    1,
    'r',
    0x12,
    9,
    0x21,
    0,
    0,
    0,
    0,
    0,
    0,
    0xf8,
    0x3f,
};

static void assert_is_sample(const struct sample *sample)
{
    const struct ph__bytes *names = sample->names.items;
    const struct point *points = sample->points.items;
    const struct pair *pairs = sample->pairs.items;
    assert_true(sample->flag && sample->number == -3 && sample->count == 300 && sample->small == .1f);
    assert_true(ph__bytes_are(sample->name, "caf\xc3\xa9") && sample->word == 1);
    assert_true(sample->point.x == 1 && sample->point.y == 2.5);
    assert_int_equal(sample->numbers.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(((const int64_t *)sample->numbers.items)[i], i + 1);
    assert_true(sample->names.count == 2 && ph__bytes_are(names[0], "a") && ph__bytes_are(names[1], "b"));
    assert_true(sample->points.count == 2 && points[0].x == 0 && points[1].x == 7);
    assert_int_equal(sample->pairs.count, 4);
    assert_true(ph__bytes_are(pairs[0].key, "yes") && pairs[0].value.which == 1 && pairs[0].value.boolean);
    assert_true(pairs[1].value.which == 2 && pairs[1].value.integer == 4);
    assert_true(pairs[2].value.which == 3 && ph__bytes_are(pairs[2].value.text, "x"));
    assert_true(pairs[3].value.which == 4 && pairs[3].value.real == 1.5);
}

/* ---- tests ---- */

static void json_is_read_and_written(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__buffer text = {0};
    struct sample sample;
    assert_ok(ph__message_from_json(&sample_message, SAMPLE_JSON, strlen(SAMPLE_JSON), &arena, &sample));
    assert_is_sample(&sample);
    assert_true(ph__bytes_are(sample.raw, "[1, {\"a\":null}]"));
    ph__message_to_json(&sample_message, &sample, &text);
    assert_int_equal(text.size, strlen(SAMPLE_JSON));
    assert_memory_equal(text.bytes, SAMPLE_JSON, text.size);
    ph__buffer_fini(&text);
    ph__arena_fini(&arena);
}

static void protobuf_is_read_and_written(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__buffer bytes = {0};
    struct sample sample;
    assert_ok(ph__message_from_protobuf(&sample_message, sample_bytes, sizeof sample_bytes, &arena, &sample));
    assert_is_sample(&sample);
    ph__message_to_protobuf(&sample_message, &sample, &bytes);
    assert_int_equal(bytes.size, sizeof sample_bytes);
    assert_memory_equal(bytes.bytes, sample_bytes, sizeof sample_bytes);
    ph__buffer_fini(&bytes);
    ph__arena_fini(&arena);
}

static void packed_numbers_and_unknown_fields_are_read(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0x4a, 3, 1, 2, 3, 0x48, 4, /* numbers, packed and not */
        0x98, 0x06, 1, 0x9a, 0x06, 2, 0, 0, 0x99, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0x9d, 0x06, 0, 0, 0, 0, 0x4a,
        1, 5};
    struct ph__arena arena = {0};
    struct sample sample;
    assert_ok(ph__message_from_protobuf(&sample_message, bytes, sizeof bytes, &arena, &sample));
    assert_int_equal(sample.numbers.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(((const int64_t *)sample.numbers.items)[i], i + 1);
    ph__arena_fini(&arena);
}

static void long_nested_messages_get_long_lengths(void **state)
{
    (void)state;
    static char key[20000];
    struct ph__arena arena = {0};
    struct ph__buffer bytes = {0};
    struct pair pair = {{key, sizeof key}, {.which = 2, .integer = 0}};
    struct sample sample = {.pairs = {&pair, 1}}, again;
    memset(key, 'k', sizeof key);
    ph__message_to_protobuf(&sample_message, &sample, &bytes);
    assert_ok(ph__message_from_protobuf(&sample_message, bytes.bytes, bytes.size, &arena, &again));
    const struct pair *read = again.pairs.items;
    assert_true(again.pairs.count == 1 && read->key.size == sizeof key && read->value.which == 2);
    ph__buffer_fini(&bytes);
    ph__arena_fini(&arena);
}

static void every_cut_is_refused_or_reads_less(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct sample sample;
    size_t num_refused = 0;
    for (size_t size = 0; size < sizeof sample_bytes; size++)
        num_refused +=
            ph__message_from_protobuf(&sample_message, sample_bytes, size, &arena, &sample) != PH_OK;
    assert_true(num_refused > sizeof sample_bytes / 2);
    for (size_t size = 0; size < strlen(SAMPLE_JSON); size++)
        assert_fails(ph__message_from_json(&sample_message, SAMPLE_JSON, size, &arena, &sample),
            PH_ERROR_DATA, "JSON, byte");
    ph__arena_fini(&arena);
}

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"{\"number\":1.5}", "'number': an integer"},
        {"{\"count\":-1}", "'count': an integer from 0"},
        {"{\"word\":\"OTHER\"}", "'word': unknown word"},
        {"{\"numbers\":{}}", "'numbers': an array"},
        {"{\"pairs\":[]}", "'pairs': an object"},
        {"{\"point\":{\"x\":\"1.5\"}}", "'x': an integer"},
        {"{\"point\":{\"x\":\"\"}}", "'x': an integer"},
        {"[]", "an object is expected"},
    };
    static const unsigned char other_type[] = {0x10 | 2, 0}, no_utf8[] = {0x2a, 1, 0xff};
    struct ph__arena arena = {0};
    struct sample sample;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(
            ph__message_from_json(&sample_message, cases[i].text, strlen(cases[i].text), &arena, &sample),
            PH_ERROR_DATA, cases[i].part);
    assert_fails(ph__message_from_protobuf(&sample_message, other_type, 2, &arena, &sample), PH_ERROR_DATA,
        "field 2 has wire type 2");
    assert_fails(ph__message_from_protobuf(&sample_message, no_utf8, 3, &arena, &sample), PH_ERROR_DATA,
        "field 5 is not UTF-8");
    ph__arena_fini(&arena);
}

static void integers_may_be_strings_of_digits(void **state)
{
    (void)state;
    static const char text[] = "{\"number\":\"-3\",\"count\":\"300\",\"numbers\":[\"9\",8]}";
    struct ph__arena arena = {0};
    struct sample sample;
    assert_ok(ph__message_from_json(&sample_message, text, strlen(text), &arena, &sample));
    assert_true(sample.number == -3 && sample.count == 300 && sample.numbers.count == 2);
    assert_true(*(const int64_t *)sample.numbers.items == 9);
    ph__arena_fini(&arena);
}

static void a_strict_message_names_the_key_that_it_does_not_have(void **state)
{
    (void)state;
    static const struct ph__message strict = {
        .name = "Point", .size = sizeof(struct point), PH_MESSAGE_FIELDS(point_fields), .is_strict = true};
    static const char text[] = "{\"x\":1,\"z\\u0031\":{\"y\":2}}";
    struct ph__arena arena = {0};
    struct point point;
    assert_ok(ph__message_from_json(&point_message, text, strlen(text), &arena, &point));
    assert_fails(ph__message_from_json(&strict, text, strlen(text), &arena, &point), PH_ERROR_DATA,
        "'z1': the key is not supported");
    ph__arena_fini(&arena);
}

static void null_is_a_missing_key_and_zeros_are_left_out(void **state)
{
    (void)state;
    static const char text[] = "{\"name\":null,\"numbers\":null,\"other\":[1,{}],\"pairs\":{\"n\":null}}";
    struct ph__arena arena = {0};
    struct ph__buffer written = {0};
    struct sample sample;
    assert_ok(ph__message_from_json(&sample_message, text, strlen(text), &arena, &sample));
    assert_true(sample.name.size == 0 && sample.numbers.count == 0 && sample.pairs.count == 1);
    ph__message_to_json(&sample_message, &sample, &written);
    assert_memory_equal(written.bytes, "{\"numbers\":[],\"pairs\":{\"n\":null}}", written.size);
    ph__buffer_fini(&written);
    ph__arena_fini(&arena);
}

/* Found by fuzzing: "-0" would be read back as the integer 0. */
static void the_zero_below_zero_stays_a_real(void **state)
{
    (void)state;
    static const char text[] = "{\"numbers\":[],\"pairs\":{\"r\":-0.0}}";
    struct ph__arena arena = {0};
    struct ph__buffer written = {0};
    struct sample sample;
    assert_ok(ph__message_from_json(&sample_message, text, strlen(text), &arena, &sample));
    ph__message_to_json(&sample_message, &sample, &written);
    assert_int_equal(written.size, strlen(text));
    assert_memory_equal(written.bytes, text, written.size);
    ph__buffer_fini(&written);
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_read_and_written),
        cmocka_unit_test(protobuf_is_read_and_written),
        cmocka_unit_test(packed_numbers_and_unknown_fields_are_read),
        cmocka_unit_test(long_nested_messages_get_long_lengths),
        cmocka_unit_test(every_cut_is_refused_or_reads_less),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(integers_may_be_strings_of_digits),
        cmocka_unit_test(a_strict_message_names_the_key_that_it_does_not_have),
        cmocka_unit_test(null_is_a_missing_key_and_zeros_are_left_out),
        cmocka_unit_test(the_zero_below_zero_stays_a_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
