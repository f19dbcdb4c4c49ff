#include "op/registry.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static void every_operator_is_found_by_its_name(void **state)
{
    (void)state;
    assert_true(ph__registry_count() > 30);
    for (size_t i = 0; i < ph__registry_count(); i++)
        assert_ptr_equal(ph__op_find(ph__registry_at(i).op->name), ph__registry_at(i).op);
    assert_null(ph__op_find("no_such_operator"));
}

static void every_operator_has_its_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ph__registry_count(); i++) {
        const struct ph__op *op = ph__registry_at(i).op;
        const bool is_alias = (op->traits & PH_OP_ALIAS) != 0;
        if (op->infer == NULL || op->cost == NULL || (op->run == NULL) != is_alias)
            fail_msg("%s lacks a shape rule, a cost rule or a way to run", op->name);
    }
}

static void an_operator_without_gradient_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < ph__registry_count(); i++) {
        const struct ph__registered_op entry = ph__registry_at(i);
        if ((entry.op->gradient == NULL) != (entry.no_gradient != NULL))
            fail_msg("%s: a gradient rule, or a reason in ops.def, and not both", entry.op->name);
    }
}

static char *read_text(const char *path)
{
    enum { CAPACITY = 1 << 17 };
    char *text = calloc(CAPACITY, 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, CAPACITY - 1, file) < CAPACITY - 1);
    fclose(file);
    return text;
}

/* Marks the operators that a file of gradient tests puts on trial: `.op = "name"`. */
static void mark_tested(const char *path, bool *is_tested)
{
    char *text = read_text(path);
    for (size_t i = 0; i < ph__registry_count(); i++) {
        char line[128];
        snprintf(line, sizeof line, ".op = \"%s\"", ph__registry_at(i).op->name);
        is_tested[i] = is_tested[i] || strstr(text, line) != NULL;
    }
    free(text);
}

static void every_gradient_is_compared_with_differences(void **state)
{
    (void)state;
    glob_t found;
    bool *is_tested = calloc(ph__registry_count(), sizeof *is_tested);
    assert_non_null(is_tested);
    assert_int_equal(glob(PH_SOURCE_DIR "/tests/gradient/test_*.c", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        mark_tested(found.gl_pathv[i], is_tested);
    globfree(&found);
    for (size_t i = 0; i < ph__registry_count(); i++)
        if (ph__registry_at(i).op->gradient != NULL && !is_tested[i])
            fail_msg("%s has no case in tests/gradient/", ph__registry_at(i).op->name);
    free(is_tested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_is_found_by_its_name),
        cmocka_unit_test(every_operator_has_its_rules),
        cmocka_unit_test(an_operator_without_gradient_says_why),
        cmocka_unit_test(every_gradient_is_compared_with_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
