#include "data/source/arrow_column.h"

#include <time.h>

#include "base/rng.h"
#include "unit/data/arrow_fixture.h"

/* Column 0 of a batch of that column alone, whose rows [offset, offset + length) are taken. */
static ph_status init(struct arrow_pair column, int64_t length, int64_t offset, struct arrow_pair *batch_out,
    struct ph__arena *arena, struct ph__arrow_column *column_out)
{
    *batch_out = arrow_batch(length, offset);
    arrow_add_child(batch_out, column);
    return ph__arrow_column_init(arena, &batch_out->schema, &batch_out->array, 0, column_out);
}

/* Every integer type: rows 1 and 2 of three, of which the last is -1 or the largest. */
static void integers_of_every_width_are_read(void **state)
{
    (void)state;
    static const char formats[] = "cCsSiIlL";
    static const int64_t last[] = {-1, 255, -1, 65535, -1, 4294967295, -1, -1};
    for (size_t i = 0; i < 8; i++) {
        unsigned char values[24];
        size_t size = (size_t)1 << (i / 2);
        char format[2] = {formats[i], '\0'};
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        memset(values, 0xff, sizeof values);
        memset(values + size, 0, size);
        values[size] = 7;
        assert_ok(init(ARROW_COLUMN("x", format, 3, 0, NULL, values), 2, 1, &batch, &arena, &column));
        assert_int_equal(column.kind, i == 7 ? PH_ARROW_UINT64 : PH_ARROW_INTEGER);
        assert_int_equal(ph__arrow_integer(&column, 0), 7);
        assert_int_equal(ph__arrow_integer(&column, 1), last[i]);
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
    assert_arrow_is_released();
}

static void reals_of_every_width_are_read(void **state)
{
    (void)state;
    const uint16_t half[] = {0x3c00, 0xc000};
    const float single[] = {1, -2};
    const double whole[] = {1, -2};
    const void *const buffers[] = {half, single, whole};
    static const char *const formats[] = {"e", "f", "g"};
    for (size_t i = 0; i < 3; i++) {
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        assert_ok(init(ARROW_COLUMN("x", formats[i], 2, 0, NULL, buffers[i]), 2, 0, &batch, &arena, &column));
        assert_int_equal(column.kind, PH_ARROW_REAL);
        assert_true(ph__arrow_real(&column, 0) == 1);
        assert_true(ph__arrow_real(&column, 1) == -2);
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

/* Bits and the bitmap of nulls count from the offset of the column and that of the batch together. */
static void bits_are_found_behind_offsets(void **state)
{
    (void)state;
    struct arrow_pair batch;
    struct ph__arena arena = {0};
    struct ph__arrow_column column;
    const unsigned char values[] = {0x00, 0x0a},
                        validity[] = {0xff, 0x0b}; /* rows 8..11: 0 1 0 1, null: 10 */
    assert_ok(init(ARROW_COLUMN("x", "b", 7, 5, validity, values), 4, 3, &batch, &arena, &column));
    static const int64_t wanted[] = {0, 1, 0, 1};
    for (int64_t row = 0; row < 4; row++) {
        assert_int_equal(ph__arrow_is_null(&column, row), row == 2);
        assert_int_equal(ph__arrow_integer(&column, row), wanted[row]);
    }
    ph__arena_fini(&arena);
    arrow_release(&batch);
}

static void assert_text(const struct ph__arrow_column *column, int64_t row, const char *wanted)
{
    const char *text = NULL;
    size_t length = 0;
    assert_ok(ph__arrow_text(column, row, &text, &length));
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(text, wanted, length);
}

static void texts_have_offsets_of_two_widths(void **state)
{
    (void)state;
    const int32_t small[] = {1, 3, 3, 6};
    const int64_t large[] = {1, 3, 3, 6};
    for (int is_large = 0; is_large <= 1; is_large++) {
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        const void *offsets = is_large ? (const void *)large : small;
        assert_ok(init(ARROW_COLUMN("x", is_large ? "U" : "u", 3, 0, NULL, offsets, "?abcde?"), 3, 0, &batch,
            &arena, &column));
        assert_text(&column, 0, "ab");
        assert_text(&column, 1, "");
        assert_text(&column, 2, "cde");
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

static void decimals_are_written_with_their_scale(void **state)
{
    (void)state;
    const __int128 huge = ((__int128)1 << 126) - 1;
    const __int128 values[] = {1250, -7, 0, 99999, huge, -huge};
    static const struct {
        const char *format, *texts[6];
    } cases[] = {
        {"d:38,2", {"12.50", "-0.07", "0.00", "999.99", "850705917302346158658436518579420528.63",
                       "-850705917302346158658436518579420528.63"}},
        {"d:38,0,128", {"1250", "-7", "0", "99999", "85070591730234615865843651857942052863",
                           "-85070591730234615865843651857942052863"}},
        {"d:38,38",
            {"0.00000000000000000000000000000000001250", "-0.00000000000000000000000000000000000007",
                "0.00000000000000000000000000000000000000", "0.00000000000000000000000000000000099999",
                "0.85070591730234615865843651857942052863", "-0.85070591730234615865843651857942052863"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        assert_ok(
            init(ARROW_COLUMN("x", cases[i].format, 6, 0, NULL, values), 6, 0, &batch, &arena, &column));
        assert_int_equal(column.kind, PH_ARROW_DECIMAL);
        for (int64_t row = 0; row < 6; row++) {
            char text[PH_ARROW_WRITTEN_BYTES];
            size_t length = 0;
            assert_ok(ph__arrow_written(&column, row, text, &length));
            assert_int_equal(length, strlen(cases[i].texts[row]));
            assert_memory_equal(text, cases[i].texts[row], length);
        }
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

struct view {
    int32_t length;
    char prefix[4];
    int32_t buffer, place;
};

static void views_are_short_or_elsewhere(void **state)
{
    (void)state;
    struct arrow_pair batch;
    struct ph__arena arena = {0};
    struct ph__arrow_column column;
    const char *text;
    size_t length;
    struct view views[] = {
        {2, "ab", 0, 0}, {13, "thir", 1, 2}, {13, "thir", 1, 3}, {13, "thir", 2, 0}, {-1, "", 0, 0}};
    const int64_t sizes[] = {1, 15};
    assert_ok(init(ARROW_COLUMN("x", "vu", 5, 0, NULL, views, "-", "--thirteen byte", sizes), 5, 0, &batch,
        &arena, &column));
    assert_text(&column, 0, "ab");
    assert_text(&column, 1, "thirteen byte");
    assert_fails(ph__arrow_text(&column, 2, &text, &length), PH_ERROR_DATA, "outside its buffers");
    assert_fails(ph__arrow_text(&column, 3, &text, &length), PH_ERROR_DATA, "outside its buffers");
    assert_fails(ph__arrow_text(&column, 4, &text, &length), PH_ERROR_DATA, "negative length");
    ph__arena_fini(&arena);
    arrow_release(&batch);
}

static void a_dictionary_is_looked_into(void **state)
{
    (void)state;
    struct arrow_pair batch;
    struct ph__arena arena = {0};
    struct ph__arrow_column column;
    int64_t index;
    const int32_t offsets[] = {0, 1, 3};
    struct arrow_pair indices = ARROW_COLUMN("x", "C", 3, 0, NULL, "\x01\x00\x02");
    assert_ok(init(arrow_with_dictionary(indices, ARROW_COLUMN("", "u", 2, 0, NULL, offsets, "abb")), 3, 0,
        &batch, &arena, &column));
    assert_int_equal(column.kind, PH_ARROW_DICTIONARY);
    assert_ok(ph__arrow_index(&column, 0, &index));
    assert_text(column.child, index, "bb");
    assert_fails(ph__arrow_index(&column, 2, &index), PH_ERROR_DATA, "outside its dictionary");
    ph__arena_fini(&arena);
    arrow_release(&batch);
}

static void lists_are_ranges_of_their_items(void **state)
{
    (void)state;
    const int32_t small[] = {0, 2, 5, 7}, items[] = {1, 2, 3, 4, 5, 6};
    const int64_t large[] = {0, 2, 5, 7};
    static const char *const formats[] = {"+l", "+L", "+w:2"};
    for (int i = 0; i < 3; i++) {
        struct arrow_pair batch, item = ARROW_COLUMN("item", "i", 6, 0, NULL, items);
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        int64_t first, end;
        struct arrow_pair list = i == 2 ? ARROW_COLUMN("x", "+w:2", 3, 0, NULL)
                                        : ARROW_COLUMN("x", formats[i], 3, 0, NULL,
                                              i == 0 ? (const void *)small : (const void *)large);
        assert_ok(init(arrow_with_child(list, item), 2, 1, &batch, &arena, &column));
        assert_ok(ph__arrow_items(&column, 0, &first, &end));
        assert_int_equal(first, 2);
        assert_int_equal(end, i == 2 ? 4 : 5);
        if (i < 2)
            assert_fails(ph__arrow_items(&column, 1, &first, &end), PH_ERROR_DATA, "beyond its items");
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

static void unknown_types_are_refused_when_wanted(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "tDs", "tts", "d:19,10,256", "d:4,-2", "d:9", "d:39,39", "+us:0,1", "w:16", "", "vx"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        char part[64];
        snprintf(part, sizeof part, "column 'x' (format '%s')", formats[i]);
        assert_ok(init(ARROW_COLUMN("x", formats[i], 1, 0, NULL), 1, 0, &batch, &arena, &column));
        assert_fails(ph__arrow_column_check(&column), PH_ERROR_DATA, part);
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

static void a_list_of_lists_names_both(void **state)
{
    (void)state;
    struct arrow_pair batch;
    struct ph__arena arena = {0};
    struct ph__arrow_column column;
    const int32_t offsets[] = {0, 0};
    struct arrow_pair inner = arrow_with_child(
        ARROW_COLUMN("item", "+l", 0, 0, NULL, offsets), ARROW_COLUMN("item", "i", 0, 0, NULL, NULL));
    struct arrow_pair outer = ARROW_COLUMN("x", "+l", 1, 0, NULL, offsets);
    assert_ok(init(arrow_with_child(outer, inner), 1, 0, &batch, &arena, &column));
    assert_fails(ph__arrow_column_check(&column), PH_ERROR_DATA, "format '+l<+l>'");
    ph__arena_fini(&arena);
    arrow_release(&batch);
}

static void a_batch_that_belies_its_schema_is_refused(void **state)
{
    (void)state;
    const int32_t offsets[] = {0, 0};
    const struct {
        struct arrow_pair column;
        const char *problem;
    } cases[] = {
        {ARROW_COLUMN("x", "i", 1, 0, NULL, "1234", NULL), "number of buffers"},
        {ARROW_COLUMN("x", "u", 1, 0, NULL, offsets), "number of buffers"},
        {ARROW_COLUMN("x", "vu", 1, 0, NULL, "1234567890123456"), "number of buffers"},
        {ARROW_COLUMN("x", "i", 1, 0, NULL, NULL), "no buffer"},
        {ARROW_COLUMN("x", "i", -1, 0, NULL, NULL), "invalid length or offset"},
        {ARROW_COLUMN("x", "i", 1, -1, NULL, NULL), "invalid length or offset"},
        {ARROW_COLUMN("x", "i", 2, INT64_MAX - 1, NULL, "1"), "invalid length or offset"},
        {ARROW_COLUMN("x", "i", 0, 0, NULL, NULL), "fewer rows than its batch"},
        {ARROW_COLUMN("x", "+l", 1, 0, NULL, offsets), "has no items"},
        {arrow_with_child(ARROW_COLUMN("x", "+w:3", 1, 0, NULL), ARROW_COLUMN("", "c", 2, 0, NULL, "12")),
            "fewer items"},
        {arrow_with_child(ARROW_COLUMN("x", "+w:-3", 1, 0, NULL), ARROW_COLUMN("", "c", 2, 0, NULL, "12")),
            "no valid list size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        assert_fails(init(cases[i].column, 1, 0, &batch, &arena, &column), PH_ERROR_DATA, cases[i].problem);
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
    assert_arrow_is_released();
}

/* ---- dates and timestamps, against the C library's calendar ---- */

/* A time as it is written; NULL: it cannot be. */
static const char *text_of(const char *format, int64_t ticks)
{
    static char text[PH_ARROW_WRITTEN_BYTES + 1];
    struct arrow_pair batch;
    struct ph__arena arena = {0};
    struct ph__arrow_column column;
    const int32_t days = (int32_t)ticks;
    const void *values = strcmp(format, "tdD") == 0 ? (const void *)&days : &ticks;
    size_t length = 0;
    assert_ok(init(ARROW_COLUMN("t", format, 1, 0, NULL, values), 1, 0, &batch, &arena, &column));
    assert_int_equal(column.kind, PH_ARROW_TIME);
    const ph_status status = ph__arrow_written(&column, 0, text, &length);
    ph__arena_fini(&arena);
    arrow_release(&batch);
    if (status != PH_OK) {
        assert_int_equal(status, PH_ERROR_DATA);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static void times_are_those_of_the_c_library(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = 5};
    for (int i = 0; i < 20000; i++) {
        const time_t seconds = (time_t)ph__rng_below(&random, 20000000000) - 10000000000; /* 1653 to 2286 */
        char wanted[64];
        struct tm parts;
        assert_non_null(gmtime_r(&seconds, &parts));
        assert_true(strftime(wanted, sizeof wanted, "%Y-%m-%d %H:%M:%S", &parts) > 0);
        assert_string_equal(text_of("tss:", seconds), wanted);
        assert_string_equal(text_of("tsm:UTC", (int64_t)seconds * 1000), wanted);
        assert_string_equal(text_of("tsu:Europe/Berlin", (int64_t)seconds * 1000000), wanted);
        wanted[10] = '\0';
        assert_string_equal(text_of("tdm", (int64_t)seconds * 1000), wanted);
    }
}

static void fractions_have_the_digits_of_their_unit(void **state)
{
    (void)state;
    assert_string_equal(text_of("tsm:", 1413869400007), "2014-10-21 05:30:00.007");
    assert_string_equal(text_of("tsu:", -1), "1969-12-31 23:59:59.999999");
    assert_string_equal(text_of("tsn:", INT64_MIN), "1677-09-21 00:12:43.145224192");
    assert_string_equal(text_of("tsn:", INT64_MAX), "2262-04-11 23:47:16.854775807");
    assert_string_equal(text_of("tdD", -1), "1969-12-31");
}

static void what_is_beyond_the_calendar_is_no_text(void **state)
{
    (void)state;
    assert_null(text_of("tss:", INT64_MAX));
    assert_null(text_of("tss:", INT64_MIN));
    assert_null(text_of("tdD", INT32_MAX));
    assert_null(text_of("tss:", -62135596801));
    assert_string_equal(text_of("tss:", -62135596800), "0001-01-01 00:00:00");
}

static void other_formats_are_no_times(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "", "t", "td", "tds", "tdDx", "tdmm", "tss", "tts", "ttu", "tDs", "tiM", "l"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        static const int64_t value = 0;
        struct arrow_pair batch;
        struct ph__arena arena = {0};
        struct ph__arrow_column column;
        assert_ok(init(ARROW_COLUMN("t", formats[i], 1, 0, NULL, &value), 1, 0, &batch, &arena, &column));
        assert_int_not_equal(column.kind, PH_ARROW_TIME);
        ph__arena_fini(&arena);
        arrow_release(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_width_are_read),
        cmocka_unit_test(reals_of_every_width_are_read),
        cmocka_unit_test(bits_are_found_behind_offsets),
        cmocka_unit_test(texts_have_offsets_of_two_widths),
        cmocka_unit_test(decimals_are_written_with_their_scale),
        cmocka_unit_test(views_are_short_or_elsewhere),
        cmocka_unit_test(a_dictionary_is_looked_into),
        cmocka_unit_test(lists_are_ranges_of_their_items),
        cmocka_unit_test(unknown_types_are_refused_when_wanted),
        cmocka_unit_test(a_list_of_lists_names_both),
        cmocka_unit_test(a_batch_that_belies_its_schema_is_refused),
        cmocka_unit_test(times_are_those_of_the_c_library),
        cmocka_unit_test(fractions_have_the_digits_of_their_unit),
        cmocka_unit_test(what_is_beyond_the_calendar_is_no_text),
        cmocka_unit_test(other_formats_are_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
