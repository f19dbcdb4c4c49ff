/* Sessions against scorers over files: the same bits, whatever way the rows come. */
#include "unit/serve/run_folder.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "serve/scorer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { NUM_COLUMNS = 7 };

static struct {
    char folder[512];
    char text[NUM_ROWS * 200]; /* the rows as lines without labels */
    size_t size;
    float wanted[NUM_ROWS]; /* what a scorer says of the file's rows */
    struct ph_cell cells[NUM_ROWS * NUM_COLUMNS];
    char prices[NUM_ROWS][32], users[NUM_ROWS][16], topics[NUM_ROWS][64];
    int64_t seen[NUM_ROWS][4];
} fixture;

/* ---- the rows as cells, of every kind ---- */

static struct ph_cell text_cell(const char *text)
{
    return (struct ph_cell){.kind = PH_CELL_TEXT, .text = text, .length = strlen(text)};
}

static struct ph_cell integer_cell(int64_t integer)
{
    return (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = integer};
}

/* As write_cells has them. */
static void fill_row(unsigned row, struct ph_cell cells[NUM_COLUMNS])
{
    snprintf(fixture.prices[row], sizeof fixture.prices[row], "%.3f", (double)row / 7 - 11);
    snprintf(fixture.users[row], sizeof fixture.users[row], "u%u", row * 5 % 23);
    for (unsigned i = 0, length = 0; i < row % 5; i++)
        length += (unsigned)snprintf(fixture.topics[row] + length, sizeof fixture.topics[row] - length,
            "%st%u", i > 0 ? "|" : "", (row * 3 + i) % 17);
    for (unsigned i = 0; i < row % 4; i++)
        fixture.seen[row][i] = (row * 5 + i * 7) % 30;
    cells[0] = row % 7 != 3 ? integer_cell(row * 13 % 1000) : (struct ph_cell){.kind = PH_CELL_BLANK};
    cells[1] = row % 2 == 0
                   ? text_cell(fixture.prices[row])
                   : (struct ph_cell){.kind = PH_CELL_REAL, .real = strtod(fixture.prices[row], NULL)};
    cells[2] = text_cell(fixture.users[row]);
    cells[3] = integer_cell((int)(row * 11 % 101) - 50);
    cells[4] = row % 2 == 0 ? integer_cell(row * 7 % 50)
                            : (struct ph_cell){.kind = PH_CELL_REAL, .real = row * 7 % 50};
    cells[5] = text_cell(fixture.topics[row]);
    cells[6] = (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = fixture.seen[row], .count = row % 4};
}

static int make_fixture(void **state)
{
    (void)state;
    char path[600];
    snprintf(fixture.folder, sizeof fixture.folder, "%s", make_run_folder("dlrm"));
    snprintf(path, sizeof path, "%s/rows.csv", test_folder());
    score_file(fixture.folder, path, fixture.wanted);
    for (unsigned row = 0; row < NUM_ROWS; row++) {
        char cells[200];
        fill_row(row, fixture.cells + row * (size_t)NUM_COLUMNS);
        write_cells(cells, row);
        fixture.size += (size_t)sprintf(fixture.text + fixture.size, "%s\n", cells);
    }
    return 0;
}

static struct ph_session *open_session(size_t max_batch, size_t num_threads)
{
    struct ph_session *session = NULL;
    struct ph_session_options options = {
        .size = sizeof options, .max_batch = max_batch, .num_threads = num_threads};
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

static const struct ph_cell *row_cells(size_t row)
{
    return fixture.cells + row * NUM_COLUMNS;
}

/* ---- tests ---- */

static void columns_are_those_that_features_are_made_of(void **state)
{
    (void)state;
    static const char *const names[NUM_COLUMNS] = {
        "clicks", "price", "user", "city", "shop", "topics", "seen"};
    struct ph_session *session = open_session(1, 1);
    assert_int_equal(ph_session_num_columns(session), NUM_COLUMNS);
    for (size_t i = 0; i < NUM_COLUMNS; i++) {
        assert_string_equal(ph_session_column_name(session, i), names[i]);
        assert_int_equal(ph_session_find_column(session, names[i]), i);
    }
    assert_true(ph_session_find_column(session, "label") == SIZE_MAX);
    assert_true(ph_session_find_column(session, "price_class") == SIZE_MAX);
    assert_int_equal(ph_session_num_tasks(session), 1);
    ph_session_close(session);
}

static void cells_score_as_the_rows_of_the_file(void **state)
{
    (void)state;
    static const size_t max_batches[] = {1, 7, 64, NUM_ROWS + 50}, calls[] = {1, 7, 64, NUM_ROWS};
    for (size_t i = 0; i < COUNT(max_batches); i++) {
        struct ph_session *session = open_session(max_batches[i], 1);
        for (size_t c = 0; c < COUNT(calls); c++) {
            float scores[NUM_ROWS] = {0};
            for (size_t first = 0; first < NUM_ROWS; first += calls[c]) {
                const size_t left = NUM_ROWS - first, count = left < calls[c] ? left : calls[c];
                assert_ok(ph_session_score(session, count, row_cells(first), scores + first));
            }
            assert_memory_equal(scores, fixture.wanted, sizeof scores);
        }
        ph_session_close(session);
    }
}

static void lines_score_as_the_rows_of_the_file(void **state)
{
    (void)state;
    struct ph_session *session = open_session(64, 1);
    float scores[NUM_ROWS] = {0};
    size_t num_rows = 0;
    assert_ok(ph_session_score_text(session, fixture.text, fixture.size, scores, NUM_ROWS, &num_rows));
    assert_int_equal(num_rows, NUM_ROWS);
    assert_memory_equal(scores, fixture.wanted, sizeof scores);
    ph_session_close(session);
}

static void lean_layers_score_as_the_rows_of_the_file(void **state)
{
    (void)state;
    static const size_t max_batches[] = {1, 64};
    const char *folder = make_run_folder_with("dlrm", LEAN_KEYS);
    char path[600];
    float wanted[NUM_ROWS], scores[NUM_ROWS];
    snprintf(path, sizeof path, "%s/rows.csv", test_folder());
    score_file(folder, path, wanted);
    for (size_t i = 0; i < COUNT(max_batches); i++) {
        struct ph_session *session = NULL;
        const struct ph_session_options options = {.size = sizeof options, .max_batch = max_batches[i]};
        assert_ok(ph_session_open(folder, &options, &session));
        assert_ok(ph_session_score(session, NUM_ROWS, row_cells(0), scores));
        assert_memory_equal(scores, wanted, sizeof scores);
        ph_session_close(session);
    }
}

/* With a label, with an empty one, after empty lines, with CR-LF, without a last newline. */
static void lines_may_have_labels_and_other_ends(void **state)
{
    (void)state;
    struct ph_session *session = open_session(2, 1);
    char cells[4][200], text[1000];
    float scores[4] = {0};
    size_t num_rows = 0;
    for (unsigned row = 0; row < 4; row++)
        write_cells(cells[row], row);
    int size = snprintf(
        text, sizeof text, "\n1,%s\r\n0,%s\n\r\n\n,%s\n1,%s", cells[0], cells[1], cells[2], cells[3]);
    assert_ok(ph_session_score_text(session, text, (size_t)size, scores, 4, &num_rows));
    assert_int_equal(num_rows, 4);
    assert_memory_equal(scores, fixture.wanted, sizeof scores);
    assert_ok(ph_session_score_text(session, text, 0, scores, 0, &num_rows));
    assert_int_equal(num_rows, 0);
    ph_session_close(session);
}

static void several_labels_give_several_probabilities(void **state)
{
    (void)state;
    static const char rows[] = "like,item,share\n1,3,0\n0,1,1\n0,4,0\n";
    char config[900], path[512];
    snprintf(path, sizeof path, "%s", test_write_file("labels.csv", rows));
    snprintf(config, sizeof config,
        "data: {train: %s, fields: [{name: like, kind: label}, {name: item, kind: id, encoding: raw, rows: "
        "9},"
        " {name: share, kind: label}]}\n"
        "model: {kind: dnn, embedding_dim: 4, embedding_init_std: 0.5, hidden_units: [5]}\n",
        path);
    const char *folder = make_folder("labels", config);
    const struct ph_cell cells[3] = {integer_cell(3), integer_cell(1), integer_cell(4)};
    float wanted[6], scores[6] = {0};
    size_t num_rows = 0;
    struct ph_session *session = NULL;
    score_file(folder, path, wanted);
    assert_true(wanted[0] != wanted[1] && wanted[0] != wanted[2]);
    assert_ok(ph_session_open(folder,
        &(struct ph_session_options){.size = sizeof(struct ph_session_options), .max_batch = 2}, &session));
    assert_int_equal(ph_session_num_tasks(session), 2);
    assert_ok(ph_session_score(session, 3, cells, scores));
    assert_memory_equal(scores, wanted, sizeof scores);
    memset(scores, 0, sizeof scores);
    assert_ok(ph_session_score_text(session, "3\n1\n4\n", 6, scores, 3, &num_rows)); /* no labels */
    assert_memory_equal(scores, wanted, sizeof scores);
    assert_fails(ph_session_score_text(session, "\"1,2,3\"\n", 8, scores, 3, &num_rows), PH_ERROR_DATA,
        "line 1: field 'item': '1,2,3' is not a raw id"); /* one cell, the item of a row without labels */
    ph_session_close(session);
}

/* Comments, weights, labels or none; the list of a row as a cell gives the same, too. */
static void libsvm_lines_score_as_the_rows_of_their_file(void **state)
{
    (void)state;
    static const char rows[] = "1 3:1 7:0.5\n# none\n0 2:2 3:-1.5 9:1 # last\n\n-1 7:1\n",
                      unlabelled[] = "3:1 7:0.5\n  # none\n2:2 3:-1.5 9:1\n7:1";
    char config[900], path[512];
    snprintf(path, sizeof path, "%s", test_write_file("rows.libsvm", rows));
    snprintf(config, sizeof config,
        "data: {train: %s, format: libsvm, encoding: raw, rows: 12}\n"
        "model: {kind: fm, embedding_dim: 6, embedding_init_std: 0.3}\n",
        path);
    const char *folder = make_folder("libsvm", config);
    float wanted[3], scores[3] = {0};
    size_t num_rows = 0;
    struct ph_session *session = NULL;
    score_file(folder, path, wanted);
    assert_ok(ph_session_open(folder, NULL, &session));
    assert_ok(ph_session_score_text(session, rows, sizeof rows - 1, scores, 3, &num_rows));
    assert_int_equal(num_rows, 3);
    assert_memory_equal(scores, wanted, sizeof scores);
    memset(scores, 0, sizeof scores);
    assert_ok(ph_session_score_text(session, unlabelled, sizeof unlabelled - 1, scores, 3, &num_rows));
    assert_int_equal(num_rows, 3);
    assert_memory_equal(scores, wanted, sizeof scores);
    const int64_t ids[] = {2, 3, 9};
    const float weights[] = {2, -1.5f, 1};
    const struct ph_cell cell = {.kind = PH_CELL_INTEGERS, .integers = ids, .weights = weights, .count = 3};
    assert_int_equal(ph_session_num_columns(session), 1);
    assert_ok(ph_session_score(session, 1, &cell, scores));
    assert_memory_equal(scores, wanted + 1, sizeof *scores);
    assert_fails(ph_session_score_text(session, "3:1\n4", 5, scores, 3, &num_rows), PH_ERROR_DATA,
        "line 2: field 'label': 4 is not a label in [0, 1]");
    ph_session_close(session);
}

/* Of a program that rounds upwards, and looks at its exception flags. */
static void scores_do_not_follow_the_callers_arithmetic(void **state)
{
    (void)state;
    float scores[2][NUM_ROWS];
    size_t num_rows = 0;
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    struct ph_session *session = open_session(64, 1);
    ph_status cells = ph_session_score(session, NUM_ROWS, fixture.cells, scores[0]);
    ph_status text =
        ph_session_score_text(session, fixture.text, fixture.size, scores[1], NUM_ROWS, &num_rows);
    const int rounding = fegetround(), flags = fetestexcept(FE_DIVBYZERO | FE_INEXACT);
    fesetround(FE_TONEAREST);
    assert_ok(cells);
    assert_ok(text);
    assert_int_equal(rounding, FE_UPWARD);
    assert_int_equal(flags, FE_DIVBYZERO);
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(scores[i], fixture.wanted, sizeof fixture.wanted);
    ph_session_close(session);
}

static void expect_bad_row(
    struct ph_session *session, size_t row, size_t column, struct ph_cell cell, const char *part)
{
    struct ph_cell cells[5 * NUM_COLUMNS];
    float scores[5] = {5, 5, 5, 5, 5};
    memcpy(cells, fixture.cells, sizeof cells);
    cells[row * NUM_COLUMNS + column] = cell;
    assert_fails(ph_session_score(session, 5, cells, scores), PH_ERROR_DATA, part);
    for (size_t i = 0; i < 5; i++)
        assert_true(scores[i] == 5);
    assert_ok(ph_session_score(session, 5, fixture.cells, scores)); /* the session is as good as before */
    assert_memory_equal(scores, fixture.wanted, sizeof scores);
}

/* Pieces of two rows: the last row is in the third of them. */
static void bad_cells_are_named_and_nothing_is_written(void **state)
{
    (void)state;
    struct ph_session *session = open_session(2, 1);
    const struct ph_cell real = {.kind = PH_CELL_REAL, .real = 0.5},
                         infinite = {.kind = PH_CELL_REAL, .real = (double)INFINITY},
                         list = {.kind = PH_CELL_INTEGERS, .integers = fixture.seen[1], .count = 1};
    expect_bad_row(session, 4, 1, text_cell("dear"), "row 4: field 'price': 'dear' is not a finite number");
    expect_bad_row(session, 0, 0, infinite, "row 0: field 'clicks': inf is not a finite number");
    expect_bad_row(
        session, 3, 4, integer_cell(50), "row 3: field 'shop': '50' is beyond the rows of the table");
    expect_bad_row(session, 1, 4, integer_cell(-1), "row 1: field 'shop': '-1' is not a raw id");
    expect_bad_row(session, 2, 4, real, "row 2: field 'shop': 0.5 is not an id, a whole number");
    expect_bad_row(session, 2, 3, list, "row 2: field 'city': not a list of ids");
    ph_session_close(session);
}

static void expect_bad_text(struct ph_session *session, const char *text, size_t size, const char *part)
{
    float scores[4] = {5, 5, 5, 5};
    size_t num_rows = 77;
    assert_fails(ph_session_score_text(session, text, size, scores, 4, &num_rows), PH_ERROR_DATA, part);
    assert_true(scores[0] == 5 && num_rows == 77);
}

static void bad_lines_are_named_and_nothing_is_written(void **state)
{
    (void)state;
    struct ph_session *session = open_session(1, 1);
    static const char good[] = "0,1,2,u,3,4,t,5,x\n", zero[] = "0,1,2,u\0,3,4,t,5,x\n";
    char text[200];
    int size = snprintf(text, sizeof text, "%s\n%s0,1,2,u,3,x,t,5,x\n", good, good);
    expect_bad_text(session, text, (size_t)size, "line 4: field 'shop': 'x' is not a raw id");
    size = snprintf(text, sizeof text, "%s1,2,3\n", good);
    expect_bad_text(session, text, (size_t)size, "line 2: the row has 3 cells; it must have 9");
    expect_bad_text(session, zero, sizeof zero - 1, "line 1: the row has a zero byte");
    float score = 5;
    size_t num_rows;
    size = snprintf(text, sizeof text, "%s%s", good, good);
    assert_fails(ph_session_score_text(session, text, (size_t)size, &score, 1, &num_rows), PH_ERROR_USAGE,
        "the text has 2 rows, but capacity_rows is 1");
    assert_true(score == 5);
    ph_session_close(session);
}

/* ---- many threads ---- */

enum { NUM_THREADS = 6, NUM_CALLS = 40 };

static void *call_often(void *argument)
{
    struct ph_session *session = argument;
    size_t num_wrong = 0;
    for (size_t i = 0; i < NUM_CALLS; i++) {
        const size_t first = i * 37 % (NUM_ROWS - 20), count = 1 + i % 20;
        float scores[20] = {0};
        if (ph_session_score(session, count, row_cells(first), scores) != PH_OK ||
            memcmp(scores, fixture.wanted + first, count * sizeof *scores) != 0)
            num_wrong++;
    }
    return (void *)(uintptr_t)num_wrong;
}

/* More threads than contexts: some wait. */
static void many_threads_get_the_same_bits(void **state)
{
    (void)state;
    struct ph_session *session = open_session(8, 3);
    pthread_t threads[NUM_THREADS];
    for (size_t i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, session), 0);
    for (size_t i = 0; i < NUM_THREADS; i++) {
        void *num_wrong = NULL;
        pthread_join(threads[i], &num_wrong);
        assert_null(num_wrong);
    }
    ph_session_close(session);
}

/* ---- opening ---- */

static void expect_no_session(const char *folder, const char *missing, ph_status status, const char *part)
{
    struct ph_session *session = NULL;
    char path[600], aside[700];
    snprintf(path, sizeof path, "%s/%s", folder, missing);
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_fails(ph_session_open(folder, NULL, &session), status, part);
    assert_int_equal(rename(aside, path), 0);
}

/* A file that is there but cannot be got at, whoever asks: a link to itself in its place. */
static void expect_unreadable(const char *name)
{
    struct ph_session *session = NULL;
    char path[1024], aside[1040], part[64];
    snprintf(path, sizeof path, "%s/%s", fixture.folder, name);
    snprintf(aside, sizeof aside, "%s.aside", path);
    snprintf(part, sizeof part, "%s: cannot read: Too many levels of symbolic links", name);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(name, path), 0);
    assert_fails(ph_session_open(fixture.folder, NULL, &session), PH_ERROR_CHECKPOINT, part);
    assert_int_equal(rename(aside, path), 0);
}

static void folders_that_lack_a_file_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    expect_no_session(fixture.folder, "config.yaml", PH_ERROR_CHECKPOINT, "config.yaml does not exist, and ");
    expect_no_session(fixture.folder, "encoder.json", PH_ERROR_CHECKPOINT, "encoder.json does not exist: ");
    expect_no_session(
        fixture.folder, "model.safetensors", PH_ERROR_CHECKPOINT, "model.safetensors does not exist: ");
    assert_fails(ph_session_open("/nonexistent", NULL, &session), PH_ERROR_CHECKPOINT, "does not exist");
    expect_unreadable("config.yaml"); /* which would stand for weights that do not say what they are of */
    expect_unreadable("encoder.json");
    assert_ok(ph_session_open(fixture.folder, NULL, &session));
    ph_session_close(session);
    ph_session_close(NULL);
}

static void weights_of_another_model_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    char path[600], text[2048];
    snprintf(path, sizeof path, "%s/config.yaml", make_run_folder("fm"));
    snprintf(text, sizeof text, RUN_FOLDER_CONFIG, "unused.csv", "dnn", "batch_norm: true");
    test_write_text(path, text);
    path[strlen(path) - strlen("/config.yaml")] = '\0';
    assert_fails(ph_session_open(path, NULL, &session), PH_ERROR_CHECKPOINT, "model.safetensors");
}

/* The same columns, but another hash. */
static void files_of_two_trainings_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    struct ph__model_config config = {0};
    struct ph_encoder *encoder = NULL;
    char path[600];
    const char *folder = make_run_folder("wide_deep");
    assert_ok(ph__model_config_read(&config, folder));
    config.data.hash_seed = 5;
    assert_ok(ph_encoder_create(&config.data, &encoder));
    snprintf(path, sizeof path, "%s/encoder.json", folder);
    assert_ok(ph_encoder_save(encoder, path));
    assert_fails(
        ph_session_open(folder, NULL, &session), PH_ERROR_CHECKPOINT, "the files are from two trainings");
    ph_encoder_destroy(encoder);
    ph__model_config_fini(&config);
}

/* How far from fp32's the probabilities of a format may be. The weights here are random and the rows short (6
 * numbers), so that one level weighs as much as it ever does. */
static const struct {
    enum ph_row_format format;
    double tolerance;
    size_t row_bytes;
} row_formats[] = {{PH_ROWS_FP32, 0, 24}, {PH_ROWS_FP16, 2e-3, 12}, {PH_ROWS_BF16, 1e-2, 12},
    {PH_ROWS_BF16_SPLIT, 0, 24}, {PH_ROWS_INT8, 1e-2, 14}, {PH_ROWS_INT4, 0.2, 7}};

static struct ph_session *open_format(enum ph_row_format format, size_t max_batch)
{
    struct ph_session *session = NULL;
    struct ph_session_options options = {
        .size = sizeof options, .max_batch = max_batch, .row_format = format};
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

static void rows_of_every_format_score_near_those_of_fp32(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(row_formats); i++) {
        struct ph_session *session = open_format(row_formats[i].format, 64);
        float scores[NUM_ROWS] = {0};
        double largest = 0;
        assert_ok(ph_session_score(session, NUM_ROWS, row_cells(0), scores));
        for (size_t row = 0; row < NUM_ROWS; row++)
            largest = fmax(largest, fabs((double)scores[row] - (double)fixture.wanted[row]));
        print_message("%s: %.2g from fp32\n", ph_row_format_name(row_formats[i].format), largest);
        assert_true(largest <= row_formats[i].tolerance);
        assert_true(row_formats[i].tolerance <= 0 || largest > 0);
        ph_session_close(session);
    }
}

static void rows_of_every_format_score_the_same_bits_in_any_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(row_formats); i++) {
        struct ph_session *together = open_format(row_formats[i].format, NUM_ROWS);
        struct ph_session *alone = open_format(row_formats[i].format, 1);
        float scores[2][NUM_ROWS] = {{0}};
        assert_ok(ph_session_score(together, NUM_ROWS, row_cells(0), scores[0]));
        for (size_t row = 0; row < NUM_ROWS; row++)
            assert_ok(ph_session_score(alone, 1, row_cells(row), &scores[1][row]));
        assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
        ph_session_close(together);
        ph_session_close(alone);
    }
}

static void bf16_layers_score_near_those_of_fp32_and_the_same_bits_in_any_batch(void **state)
{
    (void)state;
    struct ph_session *together = NULL, *alone = NULL;
    struct ph_session_options options = {
        .size = sizeof options, .max_batch = NUM_ROWS, .precision = PH_PRECISION_BF16};
    assert_ok(ph_session_open(fixture.folder, &options, &together));
    options.max_batch = 1;
    assert_ok(ph_session_open(fixture.folder, &options, &alone));
    float scores[2][NUM_ROWS] = {{0}};
    assert_ok(ph_session_score(together, NUM_ROWS, row_cells(0), scores[0]));
    for (size_t row = 0; row < NUM_ROWS; row++) {
        assert_ok(ph_session_score(alone, 1, row_cells(row), &scores[1][row]));
        assert_near((double)scores[0][row], (double)fixture.wanted[row], 3e-2, 0);
    }
    assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    assert_memory_not_equal(scores[0], fixture.wanted, sizeof scores[0]);
    ph_session_close(together);
    ph_session_close(alone);
}

static void weight_bytes_follow_the_row_format(void **state)
{
    (void)state;
    struct ph_session *session = open_format(PH_ROWS_FP32, 1);
    const uint64_t of_fp32 = ph_session_weight_bytes(session);
    ph_session_close(session);
    session = open_format(PH_ROWS_FP16, 1);
    const uint64_t num_rows = (of_fp32 - ph_session_weight_bytes(session)) / 12;
    ph_session_close(session);
    assert_true(num_rows > 100); /* city, shop and the vocabularies */
    for (size_t i = 0; i < COUNT(row_formats); i++) {
        session = open_format(row_formats[i].format, 1);
        assert_int_equal(
            ph_session_weight_bytes(session), of_fp32 - num_rows * (24 - row_formats[i].row_bytes));
        ph_session_close(session);
    }
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    struct ph_session *session = NULL;
    struct ph_session_options options[] = {{.max_batch = 65537}, {.num_threads = 1025},
        {.list_length = 65537}, {.max_batch = SIZE_MAX}, {.row_format = PH_ROW_FORMAT_COUNT},
        {.precision = (enum ph_precision)7}};
    static const char *const parts[] = {"max_batch 65537 must be at most 65536",
        "num_threads 1025 must be at most 1024", "list_length 65537 must be at most 65536", "max_batch",
        "row_format 6 is unknown", "precision 7 is unknown"};
    for (size_t i = 0; i < COUNT(options); i++) {
        options[i].size = sizeof options[i];
        assert_fails(ph_session_open(fixture.folder, &options[i], &session), PH_ERROR_USAGE, parts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_that_features_are_made_of),
        cmocka_unit_test(cells_score_as_the_rows_of_the_file),
        cmocka_unit_test(lines_score_as_the_rows_of_the_file),
        cmocka_unit_test(lean_layers_score_as_the_rows_of_the_file),
        cmocka_unit_test(lines_may_have_labels_and_other_ends),
        cmocka_unit_test(several_labels_give_several_probabilities),
        cmocka_unit_test(libsvm_lines_score_as_the_rows_of_their_file),
        cmocka_unit_test(scores_do_not_follow_the_callers_arithmetic),
        cmocka_unit_test(bad_cells_are_named_and_nothing_is_written),
        cmocka_unit_test(bad_lines_are_named_and_nothing_is_written),
        cmocka_unit_test(many_threads_get_the_same_bits),
        cmocka_unit_test(folders_that_lack_a_file_are_refused),
        cmocka_unit_test(weights_of_another_model_are_refused),
        cmocka_unit_test(files_of_two_trainings_are_refused),
        cmocka_unit_test(rows_of_every_format_score_near_those_of_fp32),
        cmocka_unit_test(rows_of_every_format_score_the_same_bits_in_any_batch),
        cmocka_unit_test(bf16_layers_score_near_those_of_fp32_and_the_same_bits_in_any_batch),
        cmocka_unit_test(weight_bytes_follow_the_row_format),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, make_fixture, NULL);
}
