/* Rows that come as Arrow batches: the bits of the same rows as text, and the caller's to release. */
#include "unit/serve/run_batches.h"

#include <string.h>

static struct {
    char folder[512];
    float wanted[NUM_ROWS];
    struct run_columns columns;
} fixture;

static int make_fixture(void **state)
{
    (void)state;
    static char text[NUM_ROWS * 200];
    char cells[200];
    size_t size = 0, num_rows = 0;
    struct ph_session *session = NULL;
    snprintf(fixture.folder, sizeof fixture.folder, "%s", make_run_folder("deepfm"));
    run_columns_fill(&fixture.columns);
    for (unsigned row = 0; row < NUM_ROWS; row++) {
        write_cells(cells, row);
        size += (size_t)sprintf(text + size, "%s\n", cells);
    }
    assert_ok(ph_session_open(fixture.folder, NULL, &session));
    assert_ok(ph_session_score_text(session, text, size, fixture.wanted, NUM_ROWS, &num_rows));
    assert_int_equal(num_rows, NUM_ROWS);
    ph_session_close(session);
    return 0;
}

static struct ph_session *open_session(size_t max_batch)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = max_batch};
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

static void batches_are_scored_as_the_same_rows_of_text(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 64, 65, NUM_ROWS};
    for (size_t max_batch = 1; max_batch <= 400; max_batch *= 20) {
        struct ph_session *session = open_session(max_batch);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            const int64_t first = (NUM_ROWS - counts[i]) / 2;
            float probabilities[NUM_ROWS] = {0};
            struct arrow_pair batch = run_batch(&fixture.columns, first, counts[i]);
            assert_ok(ph_session_score_arrow(session, &batch.array, &batch.schema, probabilities));
            assert_memory_equal(
                probabilities, fixture.wanted + first, (size_t)counts[i] * sizeof *probabilities);
            arrow_release(&batch); /* still ours */
        }
        ph_session_close(session);
    }
    assert_arrow_is_released();
}

static void expect_refusal(
    struct ph_session *session, struct arrow_pair *batch, ph_status status, const char *text)
{
    float probabilities[NUM_ROWS];
    for (int i = 0; i < NUM_ROWS; i++)
        probabilities[i] = -1;
    assert_fails(ph_session_score_arrow(session, &batch->array, &batch->schema, probabilities), status, text);
    for (int i = 0; i < NUM_ROWS; i++)
        assert_true(probabilities[i] == -1); /* nothing has been written */
}

static void wrong_batches_are_refused_and_stay_the_callers(void **state)
{
    (void)state;
    struct ph_session *session = open_session(20);
    struct arrow_pair batch = run_batch(&fixture.columns, 0, NUM_ROWS);
    fixture.columns.label[7] = 7; /* nobody looks at it */
    fixture.columns.shop[77] = 50;
    expect_refusal(session, &batch, PH_ERROR_DATA, "row 77: field 'shop': '50' is beyond the rows");
    fixture.columns.shop[77] = 77 * 7 % 50;
    batch.schema.children[5]->name = "prise";
    expect_refusal(session, &batch, PH_ERROR_DATA, "the batch has no column 'price'");
    batch.schema.children[5]->name = "price";
    batch.schema.children[5]->format = "tDs";
    expect_refusal(session, &batch, PH_ERROR_DATA, "column 'price' (format 'tDs') has a type that is not");
    batch.schema.children[5]->format = "g";
    batch.schema.children[0]->name = "user";
    expect_refusal(session, &batch, PH_ERROR_DATA, "two columns are called 'user'");
    batch.schema.children[0]->name = "seen";
    batch.array.length++;
    expect_refusal(session, &batch, PH_ERROR_DATA, "has fewer rows than its batch");
    batch.array.length--;
    batch.schema.format = "i";
    expect_refusal(session, &batch, PH_ERROR_DATA, "format 'i' is not a record batch");
    arrow_release(&batch);
    expect_refusal(session, &batch, PH_ERROR_USAGE, "has been released");
    ph_session_close(session);
    assert_arrow_is_released();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_scored_as_the_same_rows_of_text),
        cmocka_unit_test(wrong_batches_are_refused_and_stay_the_callers),
    };
    return cmocka_run_group_tests(tests, make_fixture, NULL);
}
