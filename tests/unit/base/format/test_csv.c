#include "base/format/csv.h"

#include <math.h>
#include <stdio.h>

#include "support/test_support.h"

static void cells_are_quoted_and_numbers_exact(void **state)
{
    (void)state;
    const char *path = test_path("cells.csv");
    char text[256];
    struct ph_writer *writer;
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(cells_are_quoted_and_numbers_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
