/* Recipes beside a run folder: each model computes with them, rows stay independent, and tables that do not
 * fit are refused. */
#include "unit/serve/run_folder.h"

#include <math.h>
#include <string.h>

#include "graph/recipe_table.h"
#include "serve/session.h"

enum { NUM_COLUMNS = 7, ROWS = 37 };

static struct ph_cell cells[ROWS * NUM_COLUMNS];

/* Fills rows as the run folder's sessions want them: numbers and short lists. */
static int fill_rows(void **state)
{
    (void)state;
    static const int64_t list[] = {3, 7, 11};
    for (size_t row = 0; row < ROWS; row++)
        for (size_t c = 0; c < NUM_COLUMNS; c++)
            cells[row * NUM_COLUMNS + c] =
                c < 5 ? (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)(row * 7 + c) % 40}
                      : (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = list, .count = row % 4};
    return 0;
}

static ph_status open_with(const char *folder, enum ph_precision precision, struct ph_session **session)
{
    const struct ph_session_options options = {
        .size = sizeof options, .max_batch = 16, .precision = precision};
    return ph_session_open(folder, &options, session);
}

static void write_table(const char *folder, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, PH_RECIPE_TABLE_FILE);
    test_write_text(path, text);
}

/* Writes one recipe for all sites that take int8. Returns how many those are. */
static size_t write_all(const char *folder, const struct ph_program *program, enum ph_recipe recipe)
{
    char text[8192] = "{\"sites\": [";
    size_t count = 0;
    for (size_t i = 0; i < ph_program_num_sites(program); i++) {
        const struct ph_site site = ph_program_site(program, i);
        if (!site.takes_int8)
            continue;
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s{\"weight\": \"%s\", \"forward\": \"%s\"}",
            count++ > 0 ? ", " : "", site.weight, ph_recipe_name(recipe));
    }
    strcat(text, "]}");
    write_table(folder, text);
    return count;
}

static void score(const char *folder, float probabilities[ROWS])
{
    struct ph_session *session = NULL;
    float single;
    assert_ok(open_with(folder, PH_PRECISION_FP32, &session));
    assert_ok(ph_session_score(session, ROWS, cells, probabilities));
    for (size_t row = 0; row < ROWS; row++) {
        assert_ok(ph_session_score(session, 1, cells + row * NUM_COLUMNS, &single));
        assert_true(single == probabilities[row]);
    }
    ph_session_close(session);
}

static void check_folder(const char *folder)
{
    struct ph_session *session = NULL;
    float exact[ROWS], same[ROWS], bytes[ROWS], most = 0;
    score(folder, exact);
    assert_ok(open_with(folder, PH_PRECISION_FP32, &session));
    const size_t count = write_all(folder, session->model.program, PH_RECIPE_FP32);
    score(folder, same);
    assert_memory_equal(same, exact, sizeof exact);
    (void)write_all(folder, session->model.program, PH_RECIPE_INT8);
    ph_session_close(session);
    score(folder, bytes);
    for (size_t row = 0; row < ROWS; row++)
        most = fmaxf(most, fabsf(bytes[row] - exact[row]));
    if (most > .1f || (count > 0) != (most > 0))
        fail_msg("%s: %zu products of bytes, scores differ by up to %g", folder, count, (double)most);
}

static void every_model_computes_by_its_recipes(void **state)
{
    (void)state;
    for (int kind = 0; kind < (int)ph_model_count(); kind++) {
        check_folder(make_run_folder(ph_model_name(kind)));
        check_folder(make_run_folder_with(ph_model_name(kind), LEAN_KEYS));
    }
}

static void assert_refused_table(
    const char *folder, enum ph_precision precision, const char *text, ph_status status, const char *reason)
{
    struct ph_session *session = NULL;
    write_table(folder, text);
    assert_fails(open_with(folder, precision, &session), status, reason);
}

static void tables_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const char *folder = make_run_folder("dnn");
    struct ph_session *session = NULL;
    assert_ok(open_with(folder, PH_PRECISION_FP32, &session));
    (void)write_all(folder, session->model.program, PH_RECIPE_INT8);
    ph_session_close(session);
    assert_fails(
        open_with(folder, PH_PRECISION_BF16, &session), PH_ERROR_CONFIG, "it needs the precision fp32");
    assert_refused_table(
        folder, PH_PRECISION_FP32, "{}", PH_ERROR_CHECKPOINT, "recipes.json: there is no list 'sites'");
    assert_refused_table(folder, PH_PRECISION_FP32, "{\"sites\": [{\"forward\": \"int8\"}]}",
        PH_ERROR_CHECKPOINT, "a site has no 'weight'");
    assert_refused_table(folder, PH_PRECISION_FP32,
        "{\"sites\": [{\"weight\": \"a\", \"forward\": \"int4\"}]}", PH_ERROR_CHECKPOINT,
        "'forward' is 'int4', which is not a recipe");
    assert_refused_table(folder, PH_PRECISION_FP32, "{\"sites\": [{\"weight\": \"a\"}]}", PH_ERROR_CONFIG,
        "recipe of 'a': the program has no product with it");
    assert_refused_table(folder, PH_PRECISION_FP32, "{\"sites\": [", PH_ERROR_CHECKPOINT, "recipes.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_computes_by_its_recipes),
        cmocka_unit_test(tables_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, fill_rows, NULL);
}
