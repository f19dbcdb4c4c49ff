#include "base/format/json_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

struct record {
    uint64_t count, many[3];
    size_t size;
    int64_t number;
    double real, reals[2], none;
    bool is_on, is_off;
    char text[8];
};

#define AT(member) offsetof(struct record, member)
static const struct ph__json_field fields[] = {
    {"count", PH_JSON_COUNT, AT(count), 0},
    {"many", PH_JSON_COUNT, AT(many), 3},
    {"size", PH_JSON_SIZE, AT(size), 0},
    {"number", PH_JSON_SIGNED, AT(number), 0},
    {"real", PH_JSON_NUMBER, AT(real), 0},
    {"reals", PH_JSON_NUMBER, AT(reals), 2},
    {"none", PH_JSON_NUMBER, AT(none), 0},
    {"is_on", PH_JSON_BOOL, AT(is_on), 0},
    {"is_off", PH_JSON_BOOL, AT(is_off), 0},
    {"text", PH_JSON_TEXT, AT(text), sizeof((struct record *)0)->text},
};
#define NUM_FIELDS (sizeof fields / sizeof *fields)

static const struct record sample = {
    .count = UINT64_MAX - 1,
    .many = {0, UINT64_C(1) << 63, 12345678901234567890u},
    .size = 7,
    .number = INT64_MIN,
    .real = 0.1 + 0.2,
    .reals = {5e-324, -1.7976931348623157e308},
    .none = NAN,
    .is_on = true,
    .text = "seven c",
};

static struct ph__json *reread(struct ph__json *object)
{
    char *text = NULL;
    struct ph__json *json = NULL;
    assert_ok(ph__json_text(object, 0, &text));
    ph__json_destroy(object);
    assert_ok(ph__json_parse(text, strlen(text), "here", PH_ERROR_DATA, &json));
    free(text);
    return json;
}

static struct ph__json *sample_object(void)
{
    struct ph__json *object = ph__json_object();
    ph__json_set_fields(object, fields, NUM_FIELDS, &sample);
    return object;
}

static void struct_comes_back_bit_for_bit(void **state)
{
    (void)state;
    struct record record;
    memset(&record, 0xff, sizeof record);
    struct ph__json *json = reread(sample_object());
    assert_null(ph__json_get_fields(json, fields, NUM_FIELDS, &record));
    assert_true(record.count == sample.count && record.size == sample.size && record.number == sample.number);
    assert_memory_equal(record.many, sample.many, sizeof sample.many);
    assert_memory_equal(&record.real, &sample.real, sizeof sample.real);
    assert_memory_equal(record.reals, sample.reals, sizeof sample.reals);
    assert_true(isnan(record.none));
    assert_true(record.is_on && !record.is_off);
    assert_string_equal(record.text, sample.text);
    ph__json_destroy(json);
}

static void expect_refused(const char *key, struct ph__json *object)
{
    struct record record;
    struct ph__json *json = reread(object);
    const char *found = ph__json_get_fields(json, fields, NUM_FIELDS, &record);
    assert_non_null(found);
    assert_string_equal(found, key);
    ph__json_destroy(json);
}

static void member_that_is_missing_or_of_another_type_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_FIELDS; i++) {
        struct ph__json *object = ph__json_object();
        ph__json_set_fields(object, fields, i, &sample);
        ph__json_set_fields(object, fields + i + 1, NUM_FIELDS - i - 1, &sample);
        expect_refused(fields[i].key, object);

        object = sample_object();
        ph__json_set(object, fields[i].key, ph__json_object());
        expect_refused(fields[i].key, object);
    }
}

static void text_and_array_must_have_their_length(void **state)
{
    (void)state;
    struct ph__json *object = sample_object();
    ph__json_set_text(object, "text", "eight ch");
    expect_refused("text", object);
    object = sample_object();
    struct ph__json *array = ph__json_array();
    ph__json_append_integer(array, 1);
    ph__json_set(object, "many", array);
    expect_refused("many", object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(struct_comes_back_bit_for_bit),
        cmocka_unit_test(member_that_is_missing_or_of_another_type_is_named),
        cmocka_unit_test(text_and_array_must_have_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
