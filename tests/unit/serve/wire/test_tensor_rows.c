/* Rows of tensors against a session's cells and lines: the same bits, whatever way a column comes. */
#include "unit/serve/run_tensors.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct {
    struct ph_session *session;
    struct run_tensors run;
    float wanted[NUM_ROWS]; /* ph_session_score_text of the lines */
} fixture;

static int make_fixture(void **state)
{
    (void)state;
    static char text[NUM_ROWS * 200];
    const struct ph_session_options options = {.size = sizeof options, .max_batch = 16};
    size_t size = 0, num_rows = 0;
    run_tensors_fill(&fixture.run);
    assert_ok(ph_session_open(make_run_folder("dlrm"), &options, &fixture.session));
    for (size_t row = 0; row < NUM_ROWS; row++)
        size += (size_t)sprintf(text + size, "%s\n", fixture.run.lines[row]);
    assert_ok(ph_session_score_text(fixture.session, text, size, fixture.wanted, NUM_ROWS, &num_rows));
    assert_int_equal(num_rows, NUM_ROWS);
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    ph_session_close(fixture.session);
    return 0;
}

/* ---- scoring ---- */

static ph_status match(
    const struct ph__tensor *tensors, size_t count, struct ph__arena *arena, struct ph__tensor_rows *rows)
{
    return ph__tensor_rows_match(fixture.session, tensors, count, arena, rows);
}

/* Scores rows in batches of a context, as a worker does. */
static void score(const struct ph__tensor *tensors, size_t count, size_t num_rows, float *probabilities)
{
    struct ph__context *context = &fixture.session->contexts[0];
    struct ph__arena arena = {0};
    struct ph__tensor_rows rows;
    assert_ok(match(tensors, count, &arena, &rows));
    assert_int_equal(rows.num_rows, num_rows);
    context->rows.num_rows = 0;
    for (size_t row = 0, first = 0; row < num_rows; row++) {
        assert_ok(ph__tensor_rows_encode(&rows, fixture.session, context, row));
        const size_t batch = context->rows.num_rows;
        if (batch < fixture.session->max_batch && row + 1 < num_rows)
            continue;
        assert_ok(ph__context_run(fixture.session, context, PH_LOGITS_SET));
        assert_ok(ph__context_output(
            fixture.session, context, PH_OUTPUT_PROBABILITY, 0, batch, probabilities + first));
        first += batch;
    }
    ph__arena_fini(&arena);
}

static void assert_scores(
    const struct ph__tensor *tensors, size_t count, size_t num_rows, const float *wanted)
{
    float scores[NUM_ROWS] = {0};
    score(tensors, count, num_rows, scores);
    assert_memory_equal(scores, wanted, num_rows * sizeof *wanted);
}

/* Asserts that a column scores as these cells do, all other columns being absent. */
static void assert_scores_as_cells(const struct ph__tensor *tensors, size_t count, const char *column,
    const struct ph_cell *cells, size_t num_rows)
{
    struct ph_cell all[8 * RUN_NUM_COLUMNS] = {{.kind = PH_CELL_BLANK}};
    float wanted[8];
    for (size_t i = 0; i < COUNT(all); i++)
        all[i].kind = PH_CELL_BLANK;
    for (size_t row = 0; row < num_rows; row++)
        all[row * RUN_NUM_COLUMNS + ph_session_find_column(fixture.session, column)] = cells[row];
    assert_ok(ph_session_score(fixture.session, num_rows, all, wanted));
    assert_scores(tensors, count, num_rows, wanted);
}

/* ---- bits ---- */

static void columns_of_text_score_as_lines(void **state)
{
    (void)state;
    struct ph__tensor tensors[RUN_NUM_COLUMNS];
    float wanted[NUM_ROWS];
    run_text_tensors(&fixture.run, 0, NUM_ROWS, tensors);
    assert_scores(tensors, RUN_NUM_COLUMNS, NUM_ROWS, fixture.wanted);
    assert_ok(ph_session_score(fixture.session, NUM_ROWS, fixture.run.cells, wanted));
    assert_memory_equal(wanted, fixture.wanted, sizeof wanted);
    run_text_tensors(&fixture.run, 17, 100, tensors);
    assert_scores(tensors, RUN_NUM_COLUMNS, 100, fixture.wanted + 17);
}

static void columns_of_numbers_and_lists_score_as_lines(void **state)
{
    (void)state;
    struct ph__tensor tensors[RUN_NUM_TYPED], reversed[RUN_NUM_TYPED];
    run_typed_tensors(&fixture.run, NUM_ROWS, tensors);
    assert_scores(tensors, RUN_NUM_TYPED, NUM_ROWS, fixture.wanted);
    for (size_t i = 0; i < RUN_NUM_TYPED; i++)
        reversed[i] = tensors[RUN_NUM_TYPED - 1 - i];
    assert_scores(reversed, RUN_NUM_TYPED, NUM_ROWS, fixture.wanted);
}

static void a_column_may_have_two_dimensions(void **state)
{
    (void)state;
    struct ph__tensor tensors[RUN_NUM_TYPED];
    run_typed_tensors(&fixture.run, 50, tensors);
    for (size_t i = 1; i < 6; i++) {
        tensors[i].num_dims = 2;
        tensors[i].dims[1] = 1;
    }
    assert_scores(tensors, RUN_NUM_TYPED, 50, fixture.wanted);
}

static void lines_may_have_labels(void **state)
{
    (void)state;
    struct ph__bytes mixed[NUM_ROWS];
    struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, fixture.run.line_texts, NUM_ROWS);
    assert_scores(&lines, 1, NUM_ROWS, fixture.wanted);
    lines.values = fixture.run.labelled_texts;
    assert_scores(&lines, 1, NUM_ROWS, fixture.wanted);
    for (size_t row = 0; row < NUM_ROWS; row++)
        mixed[row] = row % 3 == 0 ? fixture.run.line_texts[row] : fixture.run.labelled_texts[row];
    lines.values = mixed;
    assert_scores(&lines, 1, NUM_ROWS, fixture.wanted);
}

static void a_line_may_end_with_its_newline(void **state)
{
    (void)state;
    char texts[2][210];
    struct ph__bytes values[2];
    snprintf(texts[0], sizeof texts[0], "%s\n", fixture.run.lines[0]);
    snprintf(texts[1], sizeof texts[1], "%s\r\n", fixture.run.labelled[1]);
    for (size_t i = 0; i < 2; i++)
        values[i] = ph__bytes_of(texts[i]);
    const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, values, 2);
    assert_scores(&lines, 1, 2, fixture.wanted);
}

static void absent_columns_are_blank(void **state)
{
    (void)state;
    struct ph_cell cells[8];
    const struct ph__tensor user = run_tensor("user", PH_TENSOR_BYTES, fixture.run.texts[2], 8);
    const struct ph__tensor price = run_tensor("price", PH_TENSOR_FP64, fixture.run.price, 8);
    for (size_t row = 0; row < 8; row++)
        cells[row] = fixture.run.cells[row * RUN_NUM_COLUMNS + 2];
    assert_scores_as_cells(&user, 1, "user", cells, 8);
    for (size_t row = 0; row < 8; row++)
        cells[row] = (struct ph_cell){.kind = PH_CELL_REAL, .real = fixture.run.price[row]};
    assert_scores_as_cells(&price, 1, "price", cells, 8);
}

/* A dense column, of each type of numbers. */
static void reals_of_any_type_score_as_cells(void **state)
{
    (void)state;
    static const float singles[] = {0.1f, -3, 7.25f};
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x4248}; /* 1, -2, 3.140625 */
    static const int64_t integers[] = {1, -2, 3};
    static const bool bools[] = {true, false, true};
    struct ph_cell cells[3];
    struct ph__tensor tensor = run_tensor("price", PH_TENSOR_FP32, singles, 3);
    for (size_t i = 0; i < 3; i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_REAL, .real = (double)singles[i]};
    assert_scores_as_cells(&tensor, 1, "price", cells, 3);
    cells[0].real = 1;
    cells[1].real = -2;
    cells[2].real = 3.140625;
    tensor = run_tensor("price", PH_TENSOR_FP16, halves, 3);
    assert_scores_as_cells(&tensor, 1, "price", cells, 3);
    cells[2].real = 3;
    tensor = run_tensor("price", PH_TENSOR_INT64, integers, 3);
    assert_scores_as_cells(&tensor, 1, "price", cells, 3);
    cells[0].real = cells[2].real = 1;
    cells[1].real = 0;
    tensor = run_tensor("price", PH_TENSOR_BOOL, bools, 3);
    assert_scores_as_cells(&tensor, 1, "price", cells, 3);
}

static void ids_of_any_type_score_as_cells(void **state)
{
    (void)state;
    static const int16_t shorts[] = {-5, 0, 77};
    static const float singles[] = {-5, 0, 77};
    static const uint64_t large[] = {UINT64_MAX, (uint64_t)1 << 63, 77};
    static const char *const texts[] = {"18446744073709551615", "9223372036854775808", "77"};
    struct ph_cell cells[3];
    struct ph__tensor tensor = run_tensor("city", PH_TENSOR_INT16, shorts, 3);
    for (size_t i = 0; i < 3; i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = shorts[i]};
    assert_scores_as_cells(&tensor, 1, "city", cells, 3);
    tensor = run_tensor("city", PH_TENSOR_FP32, singles, 3);
    assert_scores_as_cells(&tensor, 1, "city", cells, 3);
    for (size_t i = 0; i < 3; i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = texts[i], .length = strlen(texts[i])};
    tensor = run_tensor("city", PH_TENSOR_UINT64, large, 3);
    assert_scores_as_cells(&tensor, 1, "city", cells, 3);
}

static void a_list_may_be_one_id_a_row(void **state)
{
    (void)state;
    struct ph_cell cells[4];
    const struct ph__tensor tensor = run_tensor("seen", PH_TENSOR_INT64, fixture.run.seen, 4);
    for (size_t i = 0; i < 4; i++)
        cells[i] = (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = &fixture.run.seen[i], .count = 1};
    assert_scores_as_cells(&tensor, 1, "seen", cells, 4);
}

static void weights_of_a_list_without_weights_are_ignored(void **state)
{
    (void)state;
    static float ones[4 * NUM_ROWS];
    struct ph__tensor tensors[RUN_NUM_TYPED + 1];
    run_typed_tensors(&fixture.run, NUM_ROWS, tensors);
    tensors[RUN_NUM_TYPED] =
        run_tensor("topics__weights", PH_TENSOR_FP32, ones, (size_t)fixture.run.topics_offsets[NUM_ROWS]);
    assert_scores(tensors, RUN_NUM_TYPED + 1, NUM_ROWS, fixture.wanted);
}

static void there_may_be_no_rows(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    struct ph__tensor_rows rows;
    struct ph__tensor tensors[RUN_NUM_TYPED];
    run_typed_tensors(&fixture.run, 0, tensors);
    assert_ok(match(tensors, RUN_NUM_TYPED, &arena, &rows));
    assert_int_equal(rows.num_rows, 0);
    ph__arena_fini(&arena);
}

/* ---- refusals ---- */

static void assert_refuses(const struct ph__tensor *tensors, size_t count, const char *part)
{
    struct ph__arena arena = {0};
    struct ph__tensor_rows rows;
    assert_fails(match(tensors, count, &arena, &rows), PH_ERROR_DATA, part);
    ph__arena_fini(&arena);
}

static void unknown_inputs_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"label", "row", "other", "price_class", "", "Price", "prices", "pric",
        "__values", "seen_values", "line"};
    assert_refuses(NULL, 0, "the request has no inputs");
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct ph__tensor tensor = run_tensor(names[i], PH_TENSOR_FP64, fixture.run.price, 3);
        char part[64];
        snprintf(part, sizeof part, "the model has no input '%s'", names[i]);
        assert_refuses(&tensor, 1, part);
    }
}

static void columns_of_other_shapes_are_refused(void **state)
{
    (void)state;
    struct ph__tensor tensors[] = {run_tensor("price", PH_TENSOR_FP64, fixture.run.price, 4),
        run_tensor("clicks", PH_TENSOR_FP64, fixture.run.clicks, 3)};
    assert_refuses(tensors, 2, "tensor 'clicks' has 3 rows, but 'price' has 4");
    tensors[1] = run_tensor("seen__offsets", PH_TENSOR_INT64, fixture.run.seen_offsets, 4);
    assert_refuses(tensors, 2, "tensor 'seen__offsets' has 3 rows, but 'price' has 4");
    tensors[0].num_dims = 2;
    tensors[0].dims[0] = tensors[0].dims[1] = 2;
    assert_refuses(tensors, 1, "tensor 'price': the shape must be [B] or [B,1]");
    tensors[0].num_dims = 0;
    tensors[0].count = 1;
    assert_refuses(tensors, 1, "tensor 'price': the shape must be [B] or [B,1]");
    tensors[0].num_dims = 3;
    tensors[0].dims[0] = tensors[0].dims[1] = tensors[0].dims[2] = 1;
    assert_refuses(tensors, 1, "tensor 'price': the shape must be [B] or [B,1]");
}

static void a_column_that_is_there_twice_is_refused(void **state)
{
    (void)state;
    struct ph__tensor tensors[RUN_NUM_TYPED + 1];
    run_typed_tensors(&fixture.run, 5, tensors);
    for (size_t i = 0; i < RUN_NUM_TYPED; i++) {
        char part[64];
        tensors[RUN_NUM_TYPED] = tensors[i];
        snprintf(part, sizeof part, "tensor '%s': the column is there twice", tensors[i].name.bytes);
        assert_refuses(tensors, RUN_NUM_TYPED + 1, part);
    }
    tensors[RUN_NUM_TYPED] = run_tensor("seen", PH_TENSOR_INT64, fixture.run.seen, 5);
    assert_refuses(tensors, RUN_NUM_TYPED + 1, "tensor 'seen': the column is there twice");
}

static void lists_without_all_their_tensors_are_refused(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, 3}, ids[] = {1, 2, 3};
    static const float weights[] = {1, 1, 1};
    const struct ph__tensor values = run_tensor("seen__values", PH_TENSOR_INT64, ids, 3),
                            ends = run_tensor("seen__offsets", PH_TENSOR_INT64, offsets, 3),
                            numbers = run_tensor("seen__weights", PH_TENSOR_FP32, weights, 3),
                            plain = run_tensor("seen", PH_TENSOR_INT64, ids, 2);
    static const char needs[] = "a list of 'seen' needs 'seen__values' and 'seen__offsets'";
    assert_refuses(&values, 1, "'seen__values' needs 'seen__offsets'");
    assert_refuses(&ends, 1, needs);
    assert_refuses(&numbers, 1, needs);
    assert_refuses((const struct ph__tensor[]){values, numbers}, 2, needs);
    assert_refuses((const struct ph__tensor[]){ends, numbers}, 2, needs);
    assert_refuses((const struct ph__tensor[]){ends, plain}, 2, needs);
    assert_refuses((const struct ph__tensor[]){plain, numbers}, 2, needs);
}

static void lists_of_other_types_are_refused(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, 3}, ids[] = {1, 2, 3};
    struct ph__tensor tensors[] = {run_tensor("seen__values", PH_TENSOR_INT64, ids, 3),
        run_tensor("seen__offsets", PH_TENSOR_INT64, offsets, 3),
        run_tensor("seen__weights", PH_TENSOR_FP64, ids, 3)};
    static const enum ph__tensor_type reals[] = {
        PH_TENSOR_FP64, PH_TENSOR_FP32, PH_TENSOR_FP16, PH_TENSOR_UINT64};
    for (size_t i = 0; i < COUNT(reals); i++) {
        tensors[0].type = tensors[0].held = reals[i];
        assert_refuses(tensors, 2, "tensor 'seen__values': ids must be INT64 or BYTES");
    }
    tensors[0].type = tensors[0].held = PH_TENSOR_INT64;
    tensors[2].count = 2;
    assert_refuses(tensors, 3, "tensor 'seen__weights': there must be one number for each of 3 values");
    tensors[2] = run_tensor("seen__weights", PH_TENSOR_BYTES, fixture.run.texts[0], 3);
    assert_refuses(tensors, 3, "tensor 'seen__weights': there must be one number for each of 3 values");
    tensors[1] = run_tensor("seen__offsets", PH_TENSOR_FP64, fixture.run.price, 3);
    assert_refuses(tensors, 2, "tensor 'seen__offsets': offsets must be INT32 or INT64");
    tensors[1] = run_tensor("seen__offsets", PH_TENSOR_INT64, offsets, 0);
    assert_refuses(tensors, 2, "tensor 'seen__offsets': B rows have B + 1 offsets");
    tensors[0].name = ph__bytes_of("city__values");
    tensors[1] = run_tensor("city__offsets", PH_TENSOR_INT64, offsets, 3);
    assert_refuses(tensors, 2, "column 'city' is not a list: send one value a row as 'city'");
}

static void offsets_that_do_not_ascend_to_the_end_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t offsets[3];
        const char *part;
    } cases[] = {
        {{1, 2, 3}, "tensor 'seen__offsets': offset 0 is 1"},
        {{-1, 2, 3}, "offset 0 is -1"},
        {{0, -1, 3}, "offset 1 is -1"},
        {{0, 3, 2}, "offset 2 is 2"},
        {{0, INT64_MAX, INT64_MIN}, "offset 2 is -9223372036854775808"},
        {{0, 1, 2}, "tensor 'seen__offsets' ends at 2, but there are 3 values"},
        {{0, 1, 4}, "ends at 4, but there are 3 values"},
        {{0, 1, INT64_MAX}, "ends at 9223372036854775807"},
    };
    static const int64_t ids[] = {1, 2, 3};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct ph__tensor tensors[] = {run_tensor("seen__values", PH_TENSOR_INT64, ids, 3),
            run_tensor("seen__offsets", PH_TENSOR_INT64, cases[i].offsets, 3)};
        assert_refuses(tensors, 2, cases[i].part);
    }
}

static void lines_beside_others_or_of_numbers_are_refused(void **state)
{
    (void)state;
    struct ph__tensor tensors[] = {run_tensor("lines", PH_TENSOR_BYTES, fixture.run.line_texts, 3),
        run_tensor("price", PH_TENSOR_FP64, fixture.run.price, 3)};
    assert_refuses(tensors, 2, "'lines' must be the only input");
    tensors[1] = tensors[0];
    assert_refuses(tensors, 2, "'lines' must be the only input");
    tensors[0] = run_tensor("lines", PH_TENSOR_INT64, fixture.run.seen, 3);
    assert_refuses(tensors, 1, "'lines': the datatype must be BYTES");
    tensors[1].num_dims = 2;
    tensors[1].dims[1] = 3;
    assert_refuses(&tensors[1], 1, "tensor 'lines': the shape must be [B] or [B,1]");
    const enum ph__line_kind kind = fixture.session->lines.kind;
    fixture.session->lines.kind = PH_LINES_NONE; /* as of a format without lines */
    tensors[1].num_dims = 1;
    assert_refuses(&tensors[1], 1, "rows of this model's format are not lines of text");
    fixture.session->lines.kind = kind;
}

/* Row 2 of the tensors cannot be encoded; rows around it can. */
static void assert_bad_row(const struct ph__tensor *tensors, size_t count, const char *part)
{
    struct ph__context *context = &fixture.session->contexts[0];
    struct ph__arena arena = {0};
    struct ph__tensor_rows rows;
    assert_ok(match(tensors, count, &arena, &rows));
    context->rows.num_rows = 0;
    for (size_t row = 0; row < rows.num_rows; row++) {
        if (row != 2) {
            assert_ok(ph__tensor_rows_encode(&rows, fixture.session, context, row));
            continue;
        }
        assert_fails(ph__tensor_rows_encode(&rows, fixture.session, context, row), PH_ERROR_DATA, "row 2: ");
        if (strstr(ph_error_text(), part) == NULL)
            fail_msg("'%s' lacks '%s'", ph_error_text(), part);
    }
    assert_int_equal(context->rows.num_rows, rows.num_rows - 1);
    context->rows.num_rows = 0;
    ph__arena_fini(&arena);
}

static void a_bad_row_is_named_with_its_column(void **state)
{
    (void)state;
    static const double prices[] = {1, 2, INFINITY, 3}, cities[] = {1, 2, 2.5, 3};
    static const int64_t shops[] = {1, 2, 50, 3}, negative[] = {1, 2, -1, 3};
    static const uint64_t large[] = {1, 2, UINT64_MAX, 3};
    static const struct ph__bytes texts[] = {{"1", 1}, {"2", 1}, {"x", 1}, {"", 0}};
    const struct ph__tensor tensors[] = {run_tensor("price", PH_TENSOR_FP64, prices, 4),
        run_tensor("city", PH_TENSOR_FP64, cities, 4), run_tensor("shop", PH_TENSOR_INT64, shops, 4),
        run_tensor("shop", PH_TENSOR_INT64, negative, 4), run_tensor("shop", PH_TENSOR_UINT64, large, 4),
        run_tensor("price", PH_TENSOR_BYTES, texts, 4), run_tensor("clicks", PH_TENSOR_BYTES, texts, 4)};
    for (size_t i = 0; i < COUNT(tensors); i++) {
        char part[32];
        snprintf(part, sizeof part, "%s", tensors[i].name.bytes);
        assert_bad_row(&tensors[i], 1, part);
    }
}

static void a_bad_line_is_named_by_its_row(void **state)
{
    (void)state;
    char two[420], zero[] = "1,2,3\0004";
    snprintf(two, sizeof two, "%s\n%s", fixture.run.lines[0], fixture.run.lines[1]);
    const struct {
        struct ph__bytes text;
        const char *part;
    } cases[] = {
        {{"", 0}, "the text is not a row"},
        {{"\n", 1}, "the text is not a row"},
        {ph__bytes_of("1,2"), "row 2: "},
        {ph__bytes_of("0,1,2,x,\"u\",1,2,t1,3,noise"), "price"},
        {ph__bytes_of(two), "the text has more than one line"},
        {{zero, sizeof zero - 1}, "the row has a zero byte"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph__bytes texts[4];
        memcpy(texts, fixture.run.line_texts, sizeof texts);
        texts[2] = cases[i].text;
        const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, texts, 4);
        assert_bad_row(&lines, 1, cases[i].part);
    }
}

/* What a bad row left behind does not change the rows after it. */
static void rows_after_a_bad_row_score_as_ever(void **state)
{
    (void)state;
    struct ph__context *context = &fixture.session->contexts[0];
    struct ph__arena arena = {0};
    struct ph__tensor_rows rows;
    struct ph__bytes texts[12];
    float score = 0;
    memcpy(texts, fixture.run.line_texts, sizeof texts);
    texts[5] = ph__bytes_of("0,1,2,\"u\",1,x");
    const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, texts, 12);
    assert_ok(match(&lines, 1, &arena, &rows));
    context->rows.num_rows = 0;
    for (size_t row = 0; row < 12; row++)
        if (ph__tensor_rows_encode(&rows, fixture.session, context, row) != PH_OK)
            assert_int_equal(row, 5);
    assert_ok(ph__context_run(fixture.session, context, PH_LOGITS_SET));
    for (size_t row = 0; row < 12; row++) {
        if (row == 5)
            continue;
        assert_ok(
            ph__context_output(fixture.session, context, PH_OUTPUT_PROBABILITY, row - (row > 5), 1, &score));
        assert_memory_equal(&score, &fixture.wanted[row], sizeof score);
    }
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_text_score_as_lines),
        cmocka_unit_test(columns_of_numbers_and_lists_score_as_lines),
        cmocka_unit_test(a_column_may_have_two_dimensions),
        cmocka_unit_test(lines_may_have_labels),
        cmocka_unit_test(a_line_may_end_with_its_newline),
        cmocka_unit_test(absent_columns_are_blank),
        cmocka_unit_test(reals_of_any_type_score_as_cells),
        cmocka_unit_test(ids_of_any_type_score_as_cells),
        cmocka_unit_test(a_list_may_be_one_id_a_row),
        cmocka_unit_test(weights_of_a_list_without_weights_are_ignored),
        cmocka_unit_test(there_may_be_no_rows),
        cmocka_unit_test(unknown_inputs_are_refused),
        cmocka_unit_test(columns_of_other_shapes_are_refused),
        cmocka_unit_test(a_column_that_is_there_twice_is_refused),
        cmocka_unit_test(lists_without_all_their_tensors_are_refused),
        cmocka_unit_test(lists_of_other_types_are_refused),
        cmocka_unit_test(offsets_that_do_not_ascend_to_the_end_are_refused),
        cmocka_unit_test(lines_beside_others_or_of_numbers_are_refused),
        cmocka_unit_test(a_bad_row_is_named_with_its_column),
        cmocka_unit_test(a_bad_line_is_named_by_its_row),
        cmocka_unit_test(rows_after_a_bad_row_score_as_ever),
    };
    return cmocka_run_group_tests(tests, make_fixture, close_fixture);
}
