/* Many ranks read what one would, and no more of it than they must. */
#include "data/batch/rank_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "unit/data/array_fixture.h"
#include "unit/data/arrow_fixture.h"
#include "unit/data/prepare_fixture.h"
#include "unit/data/ranks_fixture.h"

#define NUM_ROWS 430
#define ROW_FEATURE 0 /* of the prepared rows: the sparse feature whose id is the row's number */

static const size_t batch_sizes[] = {5, 64, 1000};

/* In the order of the data, shuffled in small windows, and as a whole. */
static struct ph_batches_options order(int number, size_t batch_size)
{
    return (struct ph_batches_options){.size = sizeof(struct ph_batches_options),
        .batch_size = batch_size,
        .reading.is_shuffled = number > 0,
        .reading.shuffle_bytes = number == 1 ? 4096 : 0,
        .seed = test_seed(),
        .epoch = 2};
}

/* From one number of ranks to the next. */
static size_t ranks_step(void)
{
    return test_is_brief() ? 4 : 1;
}

static void assert_all_share(const struct rank_data *data, size_t num_rows)
{
    for (int number = 0; number < 3; number++)
        for (size_t size = 0; size < sizeof batch_sizes / sizeof *batch_sizes; size++)
            for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += ranks_step()) {
                const struct ph_batches_options options = order(number, batch_sizes[size]);
                assert_int_equal(assert_ranks_share(data, &options, world_size),
                    (num_rows + options.batch_size - 1) / options.batch_size);
            }
}

/* ---- every format ---- */

/* Lists, weighted lists, weights, groups and dense features. */
static struct ph_encoder *csv_encoder(const char *path)
{
    struct fixture fixture;
    prepare_fixture_init(&fixture, path);
    return fixture_encoder(&fixture);
}

static void ranks_share_csv(void **state)
{
    (void)state;
    const char *path = prepare_file("rows.csv.gz", NUM_ROWS, 1);
    struct ph_encoder *encoder = csv_encoder(path);
    assert_all_share(&(struct rank_data){.encoder = encoder, .path = path}, NUM_ROWS);
    ph_encoder_destroy(encoder);
}

/* A part may have no blank label where the batch has some. */
static void ranks_share_labels_that_are_blank(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(
        &fixture, fixture_file("blank.csv", "click,like,a\n1,1,x\n0,0,y\n1,,x\n0,1,z\n,,y\n1,0,y\n0,0,x\n"));
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "like", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_all_share(&(struct rank_data){.encoder = encoder, .path = fixture.settings.paths.train}, 7);
    ph_encoder_destroy(encoder);
}

/* Comments and empty lines are no rows. */
static const char *sparse_rows(const char *name, const char *pair)
{
    struct ph__writer *writer;
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    const char *path = test_path(name);
    assert_ok(ph__writer_open(path, &writer));
    for (int row = 0; row < NUM_ROWS; row++) {
        assert_ok(ph__writer_printf(writer, "%s%d", row % 5 == 3 ? "\n# a comment\n" : "", row % 2));
        for (uint64_t i = ph__rng_below(&rng, 4); i > 0; i--)
            assert_ok(ph__writer_printf(writer, pair, (int)i, (int)ph__rng_below(&rng, 30)));
        assert_ok(ph__writer_printf(writer, "\n"));
    }
    assert_ok(ph__writer_printf(writer, "\n# the end\n\n"));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static void ranks_share_libsvm_and_libffm(void **state)
{
    (void)state;
    for (int has_fields = 0; has_fields < 2; has_fields++) {
        struct fixture fixture;
        fixture_init(&fixture,
            has_fields ? sparse_rows("rows.ffm", " %d:%d:0.5") : sparse_rows("rows.svm", " %d%d:0.5"));
        fixture.settings.format = has_fields ? PH_DATA_LIBFFM : PH_DATA_LIBSVM;
        struct ph_encoder *encoder = fixture_encoder(&fixture);
        assert_all_share(
            &(struct rank_data){.encoder = encoder, .path = fixture.settings.paths.train}, NUM_ROWS);
        ph_encoder_destroy(encoder);
    }
}

/* Two columns of numbers that an encoder by raw ids reads from arrays and from batches alike. */
struct columns {
    float label[NUM_ROWS], price[NUM_ROWS];
    int64_t user[NUM_ROWS];
};

static void fill_columns(struct columns *columns)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        columns->label[i] = (float)(i % 3 == 0);
        columns->price[i] = (float)i / 4;
        columns->user[i] = i;
    }
}

static struct ph_encoder *column_encoder(const char *train, enum ph__data_format format)
{
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture.settings.format = format;
    fixture.settings.encoding = PH_ENCODING_RAW;
    fixture.settings.rows = NUM_ROWS;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    fixture_field(&fixture, "user", PH_FIELD_ID)->is_group = true;
    return fixture_encoder(&fixture);
}

static void ranks_share_arrays(void **state)
{
    (void)state;
    static struct columns columns;
    static struct archive archive;
    const struct {
        const char *name, *type;
        const void *rows;
        size_t size;
    } arrays[] = {{"label.npy", "<f4", columns.label, sizeof columns.label},
        {"price.npy", "<f4", columns.price, sizeof columns.price},
        {"user.npy", "<i8", columns.user, sizeof columns.user}};
    char shape[32];
    fill_columns(&columns);
    snprintf(shape, sizeof shape, "(%d,)", NUM_ROWS);
    for (size_t i = 0; i < 3; i++) {
        static struct bytes bytes;
        bytes.size = 0;
        bytes_add_npy(&bytes, arrays[i].type, shape, arrays[i].rows, arrays[i].size);
        archive_add(&archive, arrays[i].name, &bytes, i == 1);
    }
    const char *path = archive_file(&archive, "rows.npz");
    struct ph_encoder *encoder = column_encoder(path, PH_DATA_NPY);
    assert_all_share(&(struct rank_data){.encoder = encoder, .path = path}, NUM_ROWS);
    ph_encoder_destroy(encoder);
}

static void ranks_share_datasets(void **state)
{
    (void)state;
    static struct columns columns;
    static const int64_t ends[] = {100, 100, 101, NUM_ROWS}; /* of the batches; one is empty */
    struct ph_dataset *dataset = NULL;
    fill_columns(&columns);
    assert_ok(ph_dataset_create(&dataset));
    for (int64_t i = 0, first = 0; i < 4; first = ends[i++]) {
        const int64_t length = ends[i] - first;
        struct arrow_pair batch = arrow_batch(length, 0);
        arrow_add_child(&batch, ARROW_COLUMN("label", "f", length, first, NULL, columns.label));
        arrow_add_child(&batch, ARROW_COLUMN("price", "f", length, first, NULL, columns.price));
        arrow_add_child(&batch, ARROW_COLUMN("user", "l", length, first, NULL, columns.user));
        assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    }
    struct ph_encoder *encoder = column_encoder(NULL, PH_DATA_ARROW);
    assert_all_share(&(struct rank_data){.encoder = encoder, .dataset = dataset}, NUM_ROWS);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

/* A dozen blocks of some 250 rows. */
static struct rank_data prepare(const char *folder)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    char name[64];
    snprintf(name, sizeof name, "%s/train", folder);
    prepare_fixture_init(&fixture, prepare_file("prepared.csv", PREPARE_ROWS, 1));
    assert_ok(prepare_into(&fixture, folder, 2, &summary));
    return (struct rank_data){.encoder = prepare_encoder(folder), .path = test_path(name)};
}

static void ranks_share_prepared_data(void **state)
{
    (void)state;
    const struct rank_data data = prepare("shared");
    for (int number = 0; number < 3; number++)
        for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += ranks_step()) {
            struct ph_batches_options options = order(number, 370);
            options.reading.shuffle_bytes *= 16;
            assert_int_equal(assert_ranks_share(&data, &options, world_size), 9);
            options.batch_size = 7; /* less than there are ranks */
            assert_int_equal(assert_ranks_share(&data, &options, world_size), 429);
        }
    ph_encoder_destroy((struct ph_encoder *)data.encoder);
}

/* ---- rows that are left out ---- */

#define BAD_EVERY 7

/* label, d: every BAD_EVERYth row is bad. */
static const char *rows_with_bad_ones(const char *name)
{
    struct ph__writer *writer;
    const char *path = test_path(name);
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "label,d\n"));
    for (int row = 0; row < NUM_ROWS; row++)
        assert_ok(ph__writer_printf(writer, "%d,%s%d\n", row % 2, row % BAD_EVERY == 4 ? "bad" : "", row));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static struct ph_encoder *number_encoder(void)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    return fixture_encoder(&fixture);
}

static void ranks_leave_out_the_same_rows(void **state)
{
    (void)state;
    const char *path = rows_with_bad_ones("bad.csv");
    struct ph_encoder *encoder = number_encoder();
    const struct rank_data data = {.encoder = encoder, .path = path};
    for (int number = 0; number < 3; number++)
        for (int has_negatives = 0; has_negatives < 2; has_negatives++)
            for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += ranks_step()) {
                struct ph_batches_options options = order(number, 32);
                options.reading.max_bad_rows = NUM_ROWS / BAD_EVERY + 1;
                options.reading.negative_rate = has_negatives ? 0.3 : 0;
                assert_ranks_share(&data, &options, world_size);
                assert_ranks_go_on(&data, &options, world_size);
            }
    ph_encoder_destroy(encoder);
}

static void ranks_leave_out_the_same_negatives(void **state)
{
    (void)state;
    const struct rank_data data = prepare("negatives");
    const struct rank_data text = {.encoder = data.encoder, .path = test_path("prepared.csv")};
    for (int number = 0; number < 3; number++)
        for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += ranks_step()) {
            struct ph_batches_options options = order(number, 100);
            options.reading.shuffle_bytes *= 16;
            options.reading.negative_rate = 0.02;
            assert_ranks_share(&data, &options, world_size);
            assert_ranks_share(&text, &options, world_size);
            assert_ranks_go_on(&data, &options, world_size);
        }
    ph_encoder_destroy((struct ph_encoder *)data.encoder);
}

/* Without a header the first row decides whether there are labels, though it be another rank's: then the
 * second has a cell too much. */
static void the_first_row_decides_for_every_rank(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("labelled.csv", "1,x\n0,y\n"));
    fixture.settings.has_header = false;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const struct rank_data data = {.encoder = encoder, .path = fixture_file("mixed.csv", "x\n1,y\n")};
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 2, .needs_no_labels = true};
    for (size_t rank = 0; rank < 2; rank++) {
        struct ph_batches *batches = ranks_open_one(&data, &options, rank, 2);
        const struct ph_batch *batch = NULL;
        assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "mixed.csv:2: the row has 2 cells");
        ph_batches_close(batches);
    }
    ph_encoder_destroy(encoder);
}

/* Row 4 is the first bad one: in a batch of 8 rows it is rank 2's of 4. */
static void a_bad_row_ends_the_rank_that_has_it(void **state)
{
    (void)state;
    struct ph_encoder *encoder = number_encoder();
    const struct rank_data data = {.encoder = encoder, .path = rows_with_bad_ones("one_bad.csv")};
    const struct ph_batches_options options = order(0, 8);
    for (size_t rank = 0; rank < 4; rank++) {
        struct ph_batches *batches = ranks_open_one(&data, &options, rank, 4);
        const struct ph_batch *batch = NULL;
        if (rank == 2)
            assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "one_bad.csv:6: field 'd'");
        else
            assert_int_equal(fixture_next(batches)->num_samples, 2);
        ph_batches_close(batches);
    }
    ph_encoder_destroy(encoder);
}

static void data_without_rows_fail_on_every_rank(void **state)
{
    (void)state;
    struct ph_encoder *encoder = number_encoder();
    const struct rank_data data = {.encoder = encoder, .path = fixture_file("none.csv", "label,d\n")};
    const struct ph_batches_options options = order(0, 8);
    for (size_t rank = 0; rank < 3; rank++) {
        struct ph_batches *batches = ranks_open_one(&data, &options, rank, 3);
        const struct ph_batch *batch = NULL;
        assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "none.csv: has no rows");
        ph_batches_close(batches);
    }
    ph_encoder_destroy(encoder);
}

/* ---- places ---- */

/* The last files of the pattern have no rows: all ranks come to stand behind them. */
static void ranks_go_on_where_others_have_left(void **state)
{
    (void)state;
    prepare_file("day_1.csv", 130, 1);
    prepare_file("day_2.csv.zst", 61, 2);
    prepare_file("day_3.csv", 0, 3);
    const char *pattern = test_path("day_*");
    struct ph_encoder *encoder = csv_encoder(pattern);
    const struct rank_data text = {.encoder = encoder, .path = pattern}, prepared = prepare("left");
    for (int number = 0; number < 3; number++)
        for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += ranks_step()) {
            struct ph_batches_options options = order(number, 20);
            assert_ranks_share(&text, &options, world_size);
            assert_ranks_go_on(&text, &options, world_size);
            options.batch_size = 191; /* all rows at once: whether there are more is not known yet */
            assert_ranks_share(&text, &options, world_size);
            options.batch_size = 330;
            options.reading.shuffle_bytes *= 16;
            assert_ranks_go_on(&prepared, &options, world_size);
        }
    ph_encoder_destroy(encoder);
    ph_encoder_destroy((struct ph_encoder *)prepared.encoder);
}

/* ---- what is not done ---- */

static uint64_t rows_encoded(
    const struct rank_data *data, const struct ph_batches_options *options, size_t rank, size_t world_size)
{
    struct ph__rank_rows rows;
    struct ph__rank_batch batch;
    struct ph_batches_options own = *options;
    own.rank = rank;
    own.world_size = world_size;
    assert_ok(ph__rank_rows_open(&rows, data->encoder, data->path, NULL, NULL, &own));
    do
        assert_ok(ph__rank_rows_next(&rows, &batch));
    while (batch.num_global > 0);
    uint64_t num_encoded = rows.window.source.num_encoded;
    ph__rank_rows_close(&rows);
    return num_encoded;
}

/* 6 batches of 64 rows and one of 46: of that a rank first takes its part of 64 rows as far as they go. */
static void a_rank_encodes_its_part_of_text_in_order(void **state)
{
    (void)state;
    const size_t world_size = 4, num_full = NUM_ROWS / 64, last = NUM_ROWS % 64;
    const char *path = prepare_file("few.csv", NUM_ROWS, 1);
    struct ph_encoder *encoder = csv_encoder(path);
    const struct rank_data data = {.encoder = encoder, .path = path};
    for (size_t rank = 0; rank < world_size; rank++) {
        struct ph_batches_options options = order(0, 64);
        const size_t first = 16 * rank, there = last < first ? 0 : last - first;
        const size_t again = last * (rank + 1) / world_size - last * rank / world_size;
        assert_int_equal(rows_encoded(&data, &options, rank, world_size),
            16 * num_full + (there < 16 ? there : 16) + again);
        options.reading.max_bad_rows = 1; /* each row may be the one */
        assert_int_equal(rows_encoded(&data, &options, rank, world_size), NUM_ROWS);
        options.reading.max_bad_rows = 0;
        options.reading.negative_rate = 0.5;
        assert_int_equal(rows_encoded(&data, &options, rank, world_size), NUM_ROWS);
    }
    ph_encoder_destroy(encoder);
}

/* Marks the blocks that hold the rows, and returns how many are marked. */
static uint64_t mark_blocks(const struct rank_data *data, struct ph__prepared_set *set,
    const struct ph__rank_batch *batch, bool *is_marked)
{
    const size_t num_blocks = ph__prepared_set_num_blocks(set);
    uint64_t num_marked = 0;
    for (size_t b = 0; b < num_blocks; b++) {
        const struct ph__set_block *block = ph__prepared_set_block(set, b);
        for (size_t i = 0; i < batch->num_rows; i++) {
            uint64_t number = batch->rows[i][data->encoder->sparse_word + ROW_FEATURE];
            is_marked[b] |= number >= block->first_row && number < block->first_row + block->num_rows;
        }
        num_marked += is_marked[b];
    }
    return num_marked;
}

/* Two full batches; a rank's part of each, a sixth, lies in a few of the dozen blocks. */
static void check_blocks(const struct rank_data *data, size_t rank, size_t batch_size, double negative_rate)
{
    struct ph_batches_options options = order(0, batch_size);
    struct ph__rank_rows rows;
    bool is_marked[PREPARE_ROWS] = {false};
    options.rank = rank;
    options.world_size = 6;
    options.reading.negative_rate = negative_rate;
    assert_ok(ph__rank_rows_open(&rows, data->encoder, data->path, NULL, NULL, &options));
    struct ph__prepared_source *source = &rows.window.prepared;
    for (int i = 0; i < 2; i++) {
        struct ph__rank_batch batch;
        assert_ok(ph__rank_rows_next(&rows, &batch));
        assert_int_equal(batch.num_global, batch_size);
        const uint64_t num_marked = mark_blocks(data, source->set, &batch, is_marked);
        assert_int_equal(source->num_decoded, num_marked);
        assert_true(num_marked > 0 && num_marked < ph__prepared_set_num_blocks(source->set));
    }
    ph__rank_rows_close(&rows);
}

static void a_rank_decodes_the_blocks_of_its_rows(void **state)
{
    (void)state;
    const struct rank_data data = prepare("blocks");
    for (size_t rank = 0; rank < 6; rank++) {
        check_blocks(&data, rank, PREPARE_ROWS / 2, 1);
        check_blocks(&data, rank, 700, 0.01);
    }
    ph_encoder_destroy((struct ph_encoder *)data.encoder);
}

/* ---- what is refused ---- */

static void ranks_that_are_none_and_pipes_are_refused(void **state)
{
    (void)state;
    struct ph_encoder *encoder = number_encoder();
    struct ph_batches *batches = NULL;
    const char *path = rows_with_bad_ones("refused.csv"), *pipe = test_path("pipe");
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 8, .rank = 3, .world_size = 3};
    assert_fails(ph_batches_open(encoder, path, &options, &batches), PH_ERROR_USAGE,
        "rank 3 must be below the number of ranks, 3");
    options.world_size = 0;
    assert_fails(ph_batches_open(encoder, path, &options, &batches), PH_ERROR_USAGE,
        "rank 3 must be below the number of ranks, 0");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    options.world_size = 4;
    assert_fails(ph_batches_open(encoder, pipe, &options, &batches), PH_ERROR_USAGE,
        "pipe: can be read only once, but each of 4 ranks needs all of it");
    assert_null(batches);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_csv),
        cmocka_unit_test(ranks_share_labels_that_are_blank),
        cmocka_unit_test(ranks_share_libsvm_and_libffm),
        cmocka_unit_test(ranks_share_arrays),
        cmocka_unit_test(ranks_share_datasets),
        cmocka_unit_test(ranks_share_prepared_data),
        cmocka_unit_test(ranks_leave_out_the_same_rows),
        cmocka_unit_test(ranks_leave_out_the_same_negatives),
        cmocka_unit_test(the_first_row_decides_for_every_rank),
        cmocka_unit_test(a_bad_row_ends_the_rank_that_has_it),
        cmocka_unit_test(data_without_rows_fail_on_every_rank),
        cmocka_unit_test(ranks_go_on_where_others_have_left),
        cmocka_unit_test(a_rank_encodes_its_part_of_text_in_order),
        cmocka_unit_test(a_rank_decodes_the_blocks_of_its_rows),
        cmocka_unit_test(ranks_that_are_none_and_pipes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
