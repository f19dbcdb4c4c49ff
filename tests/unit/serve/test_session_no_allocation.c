/* An open session takes no memory to score, of ours or of a library's, for any number of rows, and wakes
 * nobody. */
#include "unit/serve/run_folder.h"

#include <string.h>
#include <sys/resource.h>

#include "support/count_allocations.h"

enum { NUM_COLUMNS = 7, MAX_BATCH = 64, MAX_ROWS = 150 };

static void score_rows(
    struct ph_session *session, size_t num_rows, const struct ph_cell *cells, float *scores)
{
    count_allocations(true);
    ph_status status = ph_session_score(session, num_rows, cells, scores);
    count_allocations(false);
    assert_ok(status);
}

static void score_lines(struct ph_session *session, float *scores)
{
    char text[MAX_ROWS * 200], cells[200];
    size_t size = 0, num_rows = 0;
    for (unsigned row = 0; row < MAX_ROWS; row++) {
        write_cells(cells, row);
        size += (size_t)sprintf(text + size, "%s\n", cells);
    }
    count_allocations(true);
    ph_status status = ph_session_score_text(session, text, size, scores, MAX_ROWS, &num_rows);
    count_allocations(false);
    assert_ok(status);
    assert_int_equal(num_rows, MAX_ROWS);
}

/* Full lists, and more: the text of the longest, and one id more than list_length, which the model keeps. */
static void fill_cells(struct ph_cell *cells, const int64_t *ids, size_t list_length)
{
    memset(cells, 0, MAX_ROWS * NUM_COLUMNS * sizeof *cells);
    for (size_t row = 0; row < MAX_ROWS; row++) {
        struct ph_cell *of_row = cells + row * NUM_COLUMNS;
        of_row[1] = (struct ph_cell){.kind = PH_CELL_REAL, .real = (double)row};
        of_row[2] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = "u3", .length = 2};
        of_row[4] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (int64_t)row % 50};
        of_row[5] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = "t1|t2|t3|t4", .length = 11};
        of_row[6] = (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = ids, .count = list_length};
    }
}

static void warm_session_allocates_nothing(void **state)
{
    (void)state;
    static struct ph_cell cells[MAX_ROWS * NUM_COLUMNS];
    const int64_t ids[6] = {1, 2, 3, 4, 5, 6};
    float scores[MAX_ROWS];
    struct ph_session *session = NULL;
    struct ph_session_options options = {.size = sizeof options, .max_batch = MAX_BATCH, .list_length = 5};
    assert_ok(ph_session_open(make_run_folder("dlrm"), &options, &session));
    fill_cells(cells, ids, 5);
    for (size_t num_rows = 0; num_rows <= MAX_ROWS; num_rows++)
        score_rows(session, num_rows, cells, scores);
    score_lines(session, scores);
    print_message("allocations in %d calls: %u ours, %u of libraries\n", MAX_ROWS + 2,
        num_allocations(ALLOCATOR_OURS), num_allocations(ALLOCATOR_LIBRARY));
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    assert_int_equal(num_allocations(ALLOCATOR_LIBRARY), 0);
    fill_cells(cells, ids, 6); /* longer lists than were prepared for take memory, */
    score_rows(session, MAX_BATCH, cells, scores);
    if (allocations_are_counted())
        assert_true(num_allocations(ALLOCATOR_OURS) > 0); /* which the interposed malloc sees, */
    const unsigned grown = num_allocations(ALLOCATOR_OURS);
    score_rows(session, MAX_BATCH, cells, scores);
    assert_int_equal(num_allocations(ALLOCATOR_OURS), grown); /* once */
    ph_session_close(session);
}

/* Times that the calling thread has given up its processor to wait for something. */
static long waits_of_this_thread(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* Without other threads there is nobody to wake, and nobody to wait for. */
static void session_scores_on_its_callers_thread_alone(void **state)
{
    (void)state;
    static struct ph_cell cells[MAX_ROWS * NUM_COLUMNS];
    const int64_t ids[5] = {1, 2, 3, 4, 5};
    const size_t num_threads = test_count_threads();
    float scores[MAX_ROWS];
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(make_run_folder("dlrm"), NULL, &session));
    fill_cells(cells, ids, 5);
    const long num_waits = waits_of_this_thread();
    for (size_t num_rows = 0; num_rows <= MAX_ROWS; num_rows++)
        assert_ok(ph_session_score(session, num_rows, cells, scores));
    assert_int_equal(waits_of_this_thread(), num_waits);
    assert_int_equal(test_count_threads(), num_threads);
    ph_session_close(session);
}

/* A session of this data section's model: lists of up to 40 ids, rows of 4 at a time. */
static struct ph_session *open_small(const char *name, const char *data)
{
    char config[900];
    struct ph_session *session = NULL;
    const struct ph_session_options options = {.size = sizeof options, .max_batch = 4, .list_length = 40};
    snprintf(config, sizeof config, "data: {%s}\nmodel: {kind: fm, embedding_dim: 4}\n", data);
    assert_ok(ph_session_open(make_folder(name, config), &options, &session));
    return session;
}

static unsigned allocations_of_text(struct ph_session *session, const char *text)
{
    float scores[4];
    size_t num_rows = 0;
    const unsigned before = num_allocations(ALLOCATOR_OURS);
    count_allocations(true);
    ph_status status = ph_session_score_text(session, text, strlen(text), scores, 4, &num_rows);
    count_allocations(false);
    assert_ok(status);
    return num_allocations(ALLOCATOR_OURS) - before;
}

/* What the single feature takes for one id is a list of them to the other. */
static void column_of_a_list_and_a_single_feature_is_prepared_for(void **state)
{
    (void)state;
    char data[700], text[4 * 200] = "";
    snprintf(data, sizeof data,
        "train: %s, format: csv, fields: [{name: y, kind: label}, {name: tags, kind: id, encoding: hash, "
        "rows: 50, list: true}, {name: first, from: tags, kind: id, encoding: hash, rows: 20}]",
        test_write_file("both.csv", "y,tags\n1,8\n0,6\n"));
    struct ph_session *session = open_small("both", data);
    for (int row = 0; row < 4; row++) {
        for (int i = 0; i < 40; i++)
            sprintf(text + strlen(text), "%s%d", i > 0 ? "|" : "", i % 7);
        strcat(text, "\n");
    }
    assert_int_equal(allocations_of_text(session, text), 0);
    ph_session_close(session);
}

/* Each id is a piece of its list. */
static void interleaved_fields_are_prepared_for(void **state)
{
    (void)state;
    char data[700], text[4000] = "";
    snprintf(data, sizeof data, "train: %s, format: libffm, num_fields: 4, encoding: hash, rows: 50",
        test_write_file("ffm.txt", "1 0:1:1 1:4:1 2:1:1 3:7:1\n0 0:7:1\n"));
    struct ph_session *session = open_small("libffm", data);
    for (int row = 0; row < 2; row++) {
        strcat(text, "0");
        for (int i = 0; i < 160; i++)
            sprintf(text + strlen(text), " %d:%d:1", i % 4, i % 9);
        strcat(text, "\n");
    }
    assert_int_equal(allocations_of_text(session, text), 0);
    ph_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_session_allocates_nothing),
        cmocka_unit_test(session_scores_on_its_callers_thread_alone),
        cmocka_unit_test(column_of_a_list_and_a_single_feature_is_prepared_for),
        cmocka_unit_test(interleaved_fields_are_prepared_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
