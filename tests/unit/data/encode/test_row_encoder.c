/* The same cell, whatever it is handed over as, is encoded alike; lists lie in the order of their slots. */
#include "data/encode/row_encoder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/data/data_fixture.h"

/* label, price, then ids: word (vocabulary), number (raw), mark (hash), range (bucket), when (hour), two
 * lists. */
static struct ph_encoder *make_encoder(void)
{
    struct fixture fixture;
    fixture_init(
        &fixture, fixture_file("rows.csv",
                      "label,word,number,mark,range,when,tags,likes\n"
                      "1,7,3,x,2,14102105,-4|9,5:2\n0,-4,3,x,2,14102106,18446744073709551615,6:1\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "word", PH_FIELD_ID)->is_group = true;
    struct ph__field_settings *number = fixture_field(&fixture, "number", PH_FIELD_ID);
    number->encoding = PH_ENCODING_RAW;
    number->rows = 10;
    struct ph__field_settings *mark = fixture_field(&fixture, "mark", PH_FIELD_ID);
    mark->encoding = PH_ENCODING_HASH;
    mark->rows = 1000;
    struct ph__field_settings *range = fixture_field(&fixture, "range", PH_FIELD_ID);
    range->encoding = PH_ENCODING_BUCKET;
    range->boundaries = "0, 2, 5";
    fixture_field(&fixture, "when", PH_FIELD_ID)->part = PH_TIME_HOUR;
    struct ph__field_settings *tags = fixture_field(&fixture, "tags", PH_FIELD_ID);
    tags->is_list = true;
    tags->max_length = 3;
    struct ph__field_settings *likes = fixture_field(&fixture, "likes", PH_FIELD_ID);
    likes->is_list = likes->is_weighted = true;
    return fixture_encoder(&fixture);
}

struct made {
    struct ph_encoder *encoder;
    struct ph__row_encoder row;
    struct ph__rows rows;
};

static void begin(struct made *made)
{
    assert_ok(ph__row_begin(&made->row, &made->rows));
}

static const struct ph__column *column(const struct made *made, const char *name)
{
    return fixture_column(made->encoder, name);
}

static int setup(void **state)
{
    static struct made made;
    memset(&made, 0, sizeof made);
    made.encoder = make_encoder();
    ph__row_encoder_init(&made.row, made.encoder, NULL);
    *state = &made;
    return 0;
}

static int teardown(void **state)
{
    struct made *made = *state;
    ph__row_encoder_fini(&made->row);
    ph__rows_fini(&made->rows);
    ph_encoder_destroy(made->encoder);
    return 0;
}

/* The last two rows must be the same words. */
static void assert_last_two_are_equal(const struct made *made)
{
    const struct ph__rows *rows = &made->rows;
    size_t last = rows->num_rows - 1;
    size_t num_words = rows->starts[last + 1] - rows->starts[last];
    assert_int_equal(rows->starts[last] - rows->starts[last - 1], num_words);
    assert_memory_equal(rows->words + rows->starts[last], rows->words + rows->starts[last - 1],
        num_words * sizeof *rows->words);
}

static void integers_are_their_decimal_text(void **state)
{
    struct made *made = *state;
    static const char *const names[] = {"word", "number", "mark", "range", "tags", "likes"};
    static const int64_t numbers[] = {7, 3, 0, 9, -4, 123456789012345678, INT64_MIN};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            char text[32];
            bool is_raw = strcmp(names[i], "number") == 0;
            if (is_raw && (numbers[k] < 0 || numbers[k] > 9))
                continue;
            snprintf(text, sizeof text, "%" PRId64, numbers[k]);
            begin(made);
            assert_ok(ph__row_text(&made->row, column(made, names[i]), text, strlen(text)));
            assert_ok(ph__row_commit(&made->row));
            begin(made);
            assert_ok(ph__row_integer(&made->row, column(made, names[i]), numbers[k]));
            assert_ok(ph__row_commit(&made->row));
            assert_last_two_are_equal(made);
        }
}

static void unsigned_numbers_beyond_63_bits_are_their_decimal_text(void **state)
{
    struct made *made = *state;
    static const char *const names[] = {"word", "mark", "tags"};
    for (size_t i = 0; i < 3; i++) {
        begin(made);
        assert_ok(ph__row_text(&made->row, column(made, names[i]), "18446744073709551615", 20));
        assert_ok(ph__row_commit(&made->row));
        begin(made);
        assert_ok(ph__row_unsigned(&made->row, column(made, names[i]), UINT64_MAX));
        assert_ok(ph__row_commit(&made->row));
        assert_last_two_are_equal(made);
    }
    assert_fails(ph__row_unsigned(&made->row, column(made, "number"), UINT64_MAX), PH_ERROR_DATA,
        "field 'number': '18446744073709551615' is not a raw id");
}

static void times_are_read_from_numbers_too(void **state)
{
    struct made *made = *state;
    begin(made);
    assert_ok(ph__row_text(&made->row, column(made, "when"), "2014-10-21 05:00:00", 19));
    assert_ok(ph__row_commit(&made->row));
    begin(made);
    assert_ok(ph__row_integer(&made->row, column(made, "when"), 14102105));
    assert_ok(ph__row_commit(&made->row));
    assert_last_two_are_equal(made);
    uint32_t word =
        made->rows.words[made->rows.starts[1] + made->encoder->sparse_word + column(made, "when")->slot];
    assert_int_equal(word, 1); /* hour 5, the first of the vocabulary */
}

/* Also of what is no time: neither a unix time nor an hour that has lost its leading zero. */
static void numbers_that_are_no_times_are_refused_as_their_text_is(void **state)
{
    struct made *made = *state;
    static const int64_t numbers[] = {-14102105, 1412010203, 2014102105, 9102105, 14132105, 0, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, numbers[i]);
        begin(made);
        assert_fails(ph__row_text(&made->row, column(made, "when"), text, strlen(text)), PH_ERROR_DATA, text);
        begin(made);
        assert_fails(ph__row_integer(&made->row, column(made, "when"), numbers[i]), PH_ERROR_DATA, text);
    }
}

static void a_value_on_a_boundary_falls_above_it(void **state)
{
    struct made *made = *state;
    static const double values[] = {-1, 0, 1.99, 2, 4, 5, 1e30, NAN};
    static const uint32_t rows[] = {1, 2, 2, 3, 3, 4, 4, 0};
    for (size_t i = 0; i < 8; i++) {
        begin(made);
        assert_ok(ph__row_real(&made->row, column(made, "range"), values[i]));
        assert_ok(ph__row_commit(&made->row));
        size_t start = made->rows.starts[made->rows.num_rows - 1];
        assert_int_equal(
            made->rows.words[start + made->encoder->sparse_word + column(made, "range")->slot], rows[i]);
    }
}

/* Pieces of lists in any order end as one list each, by slot: ids, then weights. */
static void lists_come_in_pieces_and_lie_by_slot(void **state)
{
    struct made *made = *state;
    begin(made);
    assert_ok(ph__row_item(&made->row, column(made, "likes"), "6", 1, 0.5f));
    assert_ok(ph__row_integer_item(&made->row, column(made, "tags"), 9, 1));
    assert_ok(ph__row_item(&made->row, column(made, "likes"), "5", 1, 2));
    assert_ok(ph__row_text(&made->row, column(made, "tags"), "-4|", 3));
    assert_ok(ph__row_integer_item(&made->row, column(made, "tags"), 1000, 1));
    assert_ok(ph__row_integer_item(&made->row, column(made, "tags"), 9, 1)); /* beyond max_length */
    assert_ok(ph__row_commit(&made->row));
    const uint32_t wanted[] = {2, 1, 0, 2, 1, ph__word_from_float(0.5f), ph__word_from_float(2)};
    const uint32_t *lists = made->rows.words + made->encoder->num_fixed_words;
    assert_int_equal(ph__rows_num_words(&made->rows), made->encoder->num_fixed_words + 7);
    assert_memory_equal(lists, wanted, sizeof wanted);
    begin(made);
    assert_ok(ph__row_text(&made->row, column(made, "tags"), "9|-4|1000|9", 11));
    assert_ok(ph__row_text(&made->row, column(made, "likes"), "6:0.5|5:2", 9));
    assert_ok(ph__row_commit(&made->row));
    assert_last_two_are_equal(made);
}

static void a_row_begun_anew_leaves_nothing_behind(void **state)
{
    struct made *made = *state;
    begin(made);
    assert_ok(ph__row_commit(&made->row));
    begin(made);
    assert_ok(ph__row_text(&made->row, column(made, "word"), "7", 1));
    assert_ok(ph__row_text(&made->row, column(made, "tags"), "9|-4", 4));
    assert_fails(ph__row_real(&made->row, column(made, "label"), 3), PH_ERROR_DATA, "3 is not a label");
    begin(made);
    assert_ok(ph__row_commit(&made->row));
    assert_int_equal(made->rows.num_rows, 2);
    assert_last_two_are_equal(made);
}

static void cells_of_the_public_kinds_are_encoded_alike(void **state)
{
    struct made *made = *state;
    const struct ph_cell word = {.kind = PH_CELL_INTEGER, .integer = 7};
    const struct ph_cell tags = {.kind = PH_CELL_INTEGERS, /* whose ids have no weights: not looked at */
        .integers = (const int64_t[]){9, -4},
        .weights = (const float[]){NAN, INFINITY},
        .count = 2};
    const struct ph_cell likes = {.kind = PH_CELL_INTEGERS,
        .integers = (const int64_t[]){5},
        .weights = (const float[]){0.25f},
        .count = 1};
    const struct ph_cell label = {.kind = PH_CELL_REAL, .real = 0.5}, blank = {.kind = PH_CELL_BLANK};
    begin(made);
    assert_ok(ph__row_cell(&made->row, column(made, "word"), &word));
    assert_ok(ph__row_cell(&made->row, column(made, "tags"), &tags));
    assert_ok(ph__row_cell(&made->row, column(made, "likes"), &likes));
    assert_ok(ph__row_cell(&made->row, column(made, "label"), &label));
    assert_ok(ph__row_cell(&made->row, column(made, "range"), &blank));
    assert_ok(ph__row_commit(&made->row));
    begin(made);
    assert_ok(ph__row_text(&made->row, column(made, "label"), "0.5", 3));
    assert_ok(ph__row_text(&made->row, column(made, "word"), "7", 1));
    assert_ok(ph__row_text(&made->row, column(made, "tags"), "9|-4", 4));
    assert_ok(ph__row_text(&made->row, column(made, "likes"), "5:0.25", 6));
    assert_ok(ph__row_commit(&made->row));
    assert_last_two_are_equal(made);
    begin(made);
    assert_fails(ph__row_cell(&made->row, column(made, "word"), &tags), PH_ERROR_DATA, "not a list of ids");
    assert_fails(
        ph__row_cell(&made->row, column(made, "likes"), &tags), PH_ERROR_DATA, "nan is not the weight");
}

/* Not an infinity that a model would be trained on. */
static void a_value_too_far_from_the_mean_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph__row_encoder row;
    struct ph__rows rows = {0};
    fixture_init(&fixture, fixture_file("narrow.csv", "label,narrow\n0,0\n1,1e-6\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "narrow", PH_FIELD_DENSE)->transform = PH_TRANSFORM_STANDARDISE;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    ph__row_encoder_init(&row, encoder, NULL);
    assert_ok(ph__row_begin(&row, &rows));
    assert_ok(ph__row_text(&row, fixture_column(encoder, "narrow"), "1e30", 4));
    assert_fails(ph__row_text(&row, fixture_column(encoder, "narrow"), "1e38", 4), PH_ERROR_DATA,
        "field 'narrow': 1e+38 is too many standard deviations");
    ph__row_encoder_fini(&row);
    ph__rows_fini(&rows);
    ph_encoder_destroy(encoder);
}

#define SIX "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
#define NINETEEN \
    SIX SIX SIX "\u00e9" /* 38 bytes: the cut at 40 falls into the next character behind an "a" */

static void bad_cells_are_named(void **state)
{
    struct made *made = *state;
    static const char *const cases[][3] = {
        {"label", "1.5", "field 'label': '1.5' is not a label in [0, 1]"},
        {"number", "10", "field 'number': '10' is beyond the rows of the table"},
        {"number", "x", "field 'number': 'x' is not a raw id, a whole number"},
        {"range", "x", "field 'range': 'x' is not a finite number"},
        {"range", "a" NINETEEN NINETEEN, "field 'range': 'a" NINETEEN "' is not a finite number"},
        {"when", "noon", "field 'when': 'noon' is not a time"},
        {"likes", "5:x", "field 'likes': '5:x' is not id:weight"},
        {"likes", ":1", "field 'likes': ':1' is not id:weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(made);
        assert_fails(ph__row_text(&made->row, column(made, cases[i][0]), cases[i][1], strlen(cases[i][1])),
            PH_ERROR_DATA, cases[i][2]);
    }
    assert_fails(ph__row_real(&made->row, column(made, "mark"), 0.5), PH_ERROR_DATA,
        "0.5 is not an id, a whole number");
    assert_fails(
        ph__row_real(&made->row, column(made, "range"), INFINITY), PH_ERROR_DATA, "inf is not a finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(integers_are_their_decimal_text, setup, teardown),
        cmocka_unit_test_setup_teardown(
            unsigned_numbers_beyond_63_bits_are_their_decimal_text, setup, teardown),
        cmocka_unit_test_setup_teardown(times_are_read_from_numbers_too, setup, teardown),
        cmocka_unit_test_setup_teardown(
            numbers_that_are_no_times_are_refused_as_their_text_is, setup, teardown),
        cmocka_unit_test_setup_teardown(a_value_on_a_boundary_falls_above_it, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_come_in_pieces_and_lie_by_slot, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_begun_anew_leaves_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_of_the_public_kinds_are_encoded_alike, setup, teardown),
        cmocka_unit_test(a_value_too_far_from_the_mean_is_refused),
        cmocka_unit_test_setup_teardown(bad_cells_are_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
