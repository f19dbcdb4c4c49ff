#include "base/format/text_table.h"

#include <math.h>
#include <stdio.h>

#include "support/test_support.h"

static const struct ph__text_column columns[] = {{"name", false}, {"AUC", true}};

static const char *written(const struct ph__text_table *table)
{
    static char text[1024];
    const char *path = test_path("table.md");
    struct ph__writer *writer;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__text_table_write(table, writer));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    (void)state;
    struct ph__text_table table;
    ph__text_table_init(&table, columns, 2);
    ph__text_table_cell(&table, "%s", "dlrm");
    ph__text_table_cell(&table, "%.1f ± %.1f", 0.5, 0.1);
    ph__text_table_cell(&table, "a|b\nc");
    ph__text_table_number(&table, "%.2f", (double)NAN);
    ph__text_table_cell(&table, "x");
    ph__text_table_number(&table, "%.2f", 0.25);
    assert_int_equal(ph__text_table_num_rows(&table), 3);
    assert_string_equal(ph__text_table_at(&table, 2, 1), "0.25");
    assert_string_equal(ph__text_table_at(&table, 1, 0), "a|b\nc");
    assert_string_equal(written(&table), "| name   |       AUC |\n"
                                         "|--------|----------:|\n"
                                         "| dlrm   | 0.5 ± 0.1 |\n"
                                         "| a\\|b c |         – |\n"
                                         "| x      |      0.25 |\n");
    ph__text_table_fini(&table);
}

/* GitHub Flavored Markdown: a bar behind a backslash is no border, one behind two is. */
static void what_would_end_a_cell_is_escaped(void **state)
{
    (void)state;
    struct ph__text_table table;
    ph__text_table_init(&table, columns, 2);
    ph__text_table_cell(&table, "q\\|r");
    ph__text_table_cell(&table, "\\");
    assert_string_equal(written(&table), "| name   | AUC |\n"
                                         "|--------|----:|\n"
                                         "| q\\\\\\|r |  \\\\ |\n");
    ph__text_table_fini(&table);
}

static void a_table_without_rows_is_its_heading(void **state)
{
    (void)state;
    struct ph__text_table table;
    ph__text_table_init(&table, columns, 2);
    assert_string_equal(written(&table), "| name | AUC |\n|------|----:|\n");
    ph__text_table_fini(&table);
}

static void cells_are_quoted_and_numbers_exact(void **state)
{
    (void)state;
    const char *path = test_path("cells.csv");
    char text[256];
    struct ph__writer *writer;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__csv_write_text(writer, "a \"b\", \"c\"\nd"));
    assert_ok(ph__writer_write(writer, ",", 1));
    assert_ok(ph__csv_write_text(writer, ""));
    assert_ok(ph__writer_write(writer, ",", 1));
    assert_ok(ph__csv_write_number(writer, 0.1));
    assert_ok(ph__writer_write(writer, ",", 1));
    assert_ok(ph__csv_write_number(writer, (double)NAN));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "\"a \"\"b\"\", \"\"c\"\"\nd\",\"\",0.1,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(what_would_end_a_cell_is_escaped),
        cmocka_unit_test(a_table_without_rows_is_its_heading),
        cmocka_unit_test(cells_are_quoted_and_numbers_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
