/* Embeddings that a session gives against the rows of its checkpoint. */
#include "unit/serve/run_folder.h"

#include <math.h>
#include <string.h>

static struct {
    char folder[512];
    struct ph__model_config config;
    struct ph__model_folder model;
} fixture;

/* A model with a table of first-order weights beside that of vectors. */
static int make_fixture(void **state)
{
    (void)state;
    snprintf(fixture.folder, sizeof fixture.folder, "%s", make_run_folder("deepfm"));
    assert_ok(ph__model_config_read(&fixture.config, fixture.folder));
    assert_ok(ph__model_folder_open(
        &fixture.model, fixture.folder, &fixture.config.model.settings, 0, PH_ROWS_FP32, NULL));
    return 0;
}

static int drop_fixture(void **state)
{
    (void)state;
    ph__model_folder_close(&fixture.model);
    ph__model_config_fini(&fixture.config);
    return 0;
}

static struct ph_session *open_session(enum ph_row_format format)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = 2, .row_format = format};
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

static const float *stored_row(const char *slice, size_t row)
{
    struct ph_tensor tensor;
    assert_ok(ph_store_find(fixture.model.store, slice, &tensor));
    assert_true(row < tensor.shape.dims[0]);
    return (const float *)tensor.data + row * tensor.shape.dims[1];
}

static struct ph_cell text_cell(const char *text)
{
    return (struct ph_cell){.kind = PH_CELL_TEXT, .text = text, .length = strlen(text)};
}

static struct ph_cell integer_cell(int64_t integer)
{
    return (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = integer};
}

static void dimensions_are_those_of_the_widest_table(void **state)
{
    (void)state;
    struct ph_session *session = open_session(PH_ROWS_FP32);
    assert_int_equal(ph_session_embedding_dim(session, "user"), 6);
    assert_int_equal(ph_session_embedding_dim(session, "topics"), 6);
    assert_int_equal(ph_session_embedding_dim(session, "price_class"), 6);
    assert_int_equal(ph_session_embedding_dim(session, "price"), 0); /* dense */
    assert_int_equal(ph_session_embedding_dim(session, "nobody"), 0);
    ph_session_close(session);
}

/* Rows by first appearance; more than fit in a batch. */
static void ids_give_the_rows_of_their_vocabulary(void **state)
{
    (void)state;
    struct ph_session *session = open_session(PH_ROWS_FP32);
    const struct ph_cell cells[] = {
        text_cell("u0"), text_cell("u5"), text_cell("u10"), text_cell("stranger"), {.kind = PH_CELL_BLANK}};
    static const size_t rows[] = {1, 2, 3, 0, 0};
    float vectors[5][6];
    assert_ok(ph_session_embed(session, "user", 5, cells, vectors[0]));
    for (int i = 0; i < 5; i++)
        assert_memory_equal(vectors[i], stored_row("embedding.user", rows[i]), sizeof vectors[i]);
    assert_ok(ph_session_embed(session, "user", 0, NULL, NULL));
    const struct ph_cell shop = integer_cell(49);
    assert_ok(ph_session_embed(session, "shop", 1, &shop, vectors[0]));
    assert_memory_equal(vectors[0], stored_row("embedding.shop", 49), sizeof vectors[0]);
    ph_session_close(session);
}

static void lists_take_one_id_or_none(void **state)
{
    (void)state;
    struct ph_session *session = open_session(PH_ROWS_FP32);
    const int64_t ids[] = {5, 6};
    const struct ph_cell cells[] = {text_cell("5"), integer_cell(5),
        {.kind = PH_CELL_INTEGERS, .integers = ids, .count = 1}, {.kind = PH_CELL_BLANK}, integer_cell(1000)};
    static const float zeros[6];
    float vectors[5][6];
    assert_ok(ph_session_embed(session, "seen", 5, cells, vectors[0]));
    for (int i = 0; i < 3; i++) /* row 1's only id is the first of all */
        assert_memory_equal(vectors[i], stored_row("embedding.seen", 1), sizeof vectors[i]);
    assert_memory_equal(vectors[3], zeros, sizeof zeros);
    assert_memory_equal(vectors[4], stored_row("embedding.seen", 0), sizeof vectors[4]);
    const struct ph_cell several[] = {integer_cell(5), text_cell("5|6")};
    assert_fails(ph_session_embed(session, "seen", 2, several, vectors[0]), PH_ERROR_DATA,
        "id 1: field 'seen': the cell has 2 ids; give it one");
    ph_session_close(session);
}

/* Those of bf16_split have all bits; int4 is the coarsest. */
static void rows_of_other_formats_are_rounded(void **state)
{
    (void)state;
    const struct ph_cell cell = text_cell("u5");
    const float *wanted = stored_row("embedding.user", 2);
    for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++) {
        struct ph_session *session = open_session((enum ph_row_format)format);
        float vector[6];
        assert_ok(ph_session_embed(session, "user", 1, &cell, vector));
        const bool is_exact = memcmp(vector, wanted, sizeof vector) == 0;
        assert_int_equal(is_exact, format == PH_ROWS_FP32 || format == PH_ROWS_BF16_SPLIT);
        for (int d = 0; d < 6; d++)
            assert_true(fabsf(vector[d] - wanted[d]) < 0.1F);
        ph_session_close(session);
    }
}

static void wrong_ids_and_features_are_named(void **state)
{
    (void)state;
    struct ph_session *session = open_session(PH_ROWS_FP32);
    const struct ph_cell cells[] = {integer_cell(3), integer_cell(50)};
    float vectors[2][6];
    assert_fails(ph_session_embed(session, "shop", 2, cells, vectors[0]), PH_ERROR_DATA,
        "id 1: field 'shop': '50' is beyond the rows of the table");
    assert_fails(ph_session_embed(session, "price", 1, cells, vectors[0]), PH_ERROR_USAGE,
        "the model has no embeddings of a feature 'price'");
    ph_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_are_those_of_the_widest_table),
        cmocka_unit_test(ids_give_the_rows_of_their_vocabulary),
        cmocka_unit_test(lists_take_one_id_or_none),
        cmocka_unit_test(rows_of_other_formats_are_rounded),
        cmocka_unit_test(wrong_ids_and_features_are_named),
    };
    return cmocka_run_group_tests(tests, make_fixture, drop_fixture);
}
