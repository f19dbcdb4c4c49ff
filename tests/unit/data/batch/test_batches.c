/* From text to batches: what each kind of cell becomes, what is refused, and that the prefetch thread changes
 * nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/stream.h"
#include "base/rng.h"
#include "unit/data/data_fixture.h"

static const struct ph_batches_options whole_file = {.size = sizeof whole_file, .batch_size = 1000};

static void batch_is_in_the_combined_format(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path =
        fixture_file("combined.csv", "label,user,tags,price\n1,u,x|y,2.5\n0,v,,-1\n1,u,y|z|x,0\n");
    fixture_init(&fixture, path);
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "tags", PH_FIELD_ID)->is_list = true;
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->num_samples, 3);
    assert_int_equal(batch->num_dense, 1);
    assert_int_equal(batch->num_sparse, 2);
    assert_int_equal(batch->num_tasks, 1);
    assert_int_equal(batch->num_ids, 8);
    const int32_t lengths[] = {1, 1, 1, 2, 0, 3};
    const uint32_t offsets[] = {0, 1, 2, 3, 5, 5, 8};
    const int64_t ids[] = {1, 2, 1, 1, 2, 2, 3, 1};
    assert_memory_equal(batch->lengths, lengths, sizeof lengths);
    assert_memory_equal(batch->offsets, offsets, sizeof offsets);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_true(batch->dense[0] == (ph_real)2.5 && batch->dense[1] == -1 && batch->dense[2] == 0);
    assert_true(batch->labels[0] == 1 && batch->labels[1] == 0 && batch->labels[2] == 1);
    assert_null(batch->label_mask);
    assert_null(batch->weights);
    assert_null(batch->groups);
    assert_null(batch->id_weights);
    assert_null(fixture_next(batches));
    assert_null(fixture_next(batches));
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void only_the_last_batch_is_smaller(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("last.csv", "label,a\n1,1\n0,2\n1,3\n0,4\n1,5\n");
    fixture_init(&fixture, path);
    fixture_label_and_ids(&fixture);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_training_rows(encoder), 5);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 2, .reading.num_prefetched = 1};
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    for (size_t i = 0; i < 3; i++) {
        const struct ph_batch *batch = fixture_next(batches);
        assert_int_equal(batch->num_samples, i < 2 ? 2 : 1);
        assert_int_equal(batch->first_sample, 2 * i);
        assert_int_equal(batch->ids[0], 2 * i + 1);
    }
    assert_null(fixture_next(batches));
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void blank_labels_are_masked(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("mask.csv", "click,like,a\n1,0.25,x\n0,,y\n");
    fixture_init(&fixture, path);
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "like", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const ph_real labels[] = {1, 0.25, 0, 0}, mask[] = {1, 1, 1, 0};
    assert_int_equal(batch->num_tasks, 2);
    assert_memory_equal(batch->labels, labels, sizeof labels);
    assert_memory_equal(batch->label_mask, mask, sizeof mask);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void weights_and_groups_come_with_the_samples(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("weights.csv", "label,w,user\n1,0.5,u\n0,2,unseen\n1,0,u\n0,1,other\n");
    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "w", PH_FIELD_WEIGHT);
    struct ph__field_settings *user = fixture_field(&fixture, "user", PH_FIELD_ID);
    user->is_group = true;
    user->min_count = 2;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_true(ph_encoder_has_weights(encoder));
    assert_true(ph_encoder_has_groups(encoder));
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const ph_real weights[] = {0.5, 2, 0, 1};
    const int64_t ids[] = {1, 0, 1, 0};
    assert_memory_equal(batch->weights, weights, sizeof weights);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_true(batch->groups[0] == batch->groups[2]);
    assert_true(batch->groups[1] != batch->groups[3]); /* both are row 0, yet two groups */
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void dense_cells_are_filled_and_transformed(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("dense.csv", "label,count,price\n1,3,\n0,-2,1e3\n1,,2\n0,123456.5,-7\n");
    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "count", PH_FIELD_DENSE)->transform = PH_TRANSFORM_LOG1P;
    fixture_field(&fixture, "price", PH_FIELD_DENSE)->missing = 9;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const double dense[] = {log1p(3), 9, 0, 1000, 0, 2, log1p(123456.5), -7};
    for (size_t i = 0; i < 8; i++)
        assert_near((double)batch->dense[i], dense[i], 0, 1e-7);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void hashed_ids_stay_in_the_table_and_blanks_are_row_zero(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("hash.csv", "label,a,b\n1,x,7\n0,,0\n1,\xff,6\n");
    fixture_init(&fixture, path);
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "b", PH_FIELD_ID)->encoding = PH_ENCODING_RAW;
    fixture.settings.encoding = PH_ENCODING_HASH;
    fixture.settings.rows = 8;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    assert_in_range(batch->ids[0], 1, 7);
    assert_int_equal(batch->ids[1], 0);
    assert_in_range(batch->ids[2], 1, 7);
    assert_int_equal(batch->ids[3], 7);
    assert_int_equal(batch->ids[4], 0);
    assert_int_equal(batch->ids[5], 6);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void long_lists_are_cut_and_blank_items_skipped(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("lists.csv", "label,a\n1,p|q|r\n0,|q||\n1,q\n");
    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    struct ph__field_settings *field = fixture_field(&fixture, "a", PH_FIELD_ID);
    field->is_list = true;
    field->max_length = 2;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 3); /* r was never read */
    struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const int32_t lengths[] = {2, 1, 1};
    const int64_t ids[] = {1, 2, 2, 2};
    assert_memory_equal(batch->lengths, lengths, sizeof lengths);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void quotes_line_ends_and_empty_lines_change_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *plain = fixture_file("plain.csv", "label,a,b\n1,x y,2\n0,q\"t,3\n");
    const char *odd =
        fixture_file("odd.csv", "\xef\xbb\xbf\"label\",a,b\r\n\r\n1,\"x y\",2\r\n0,\"q\"\"t\",\"3\"");
    fixture_init(&fixture, plain);
    fixture_label_and_ids(&fixture);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, odd, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const int64_t ids[] = {1, 2, 1, 2};
    assert_int_equal(batch->num_samples, 2);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* Also where no header stands before the first row. */
static void a_byte_order_mark_belongs_to_no_row(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("mark.csv", "\xef\xbb\xbfx,1\nx,0\n"));
    fixture.settings.has_header = false;
    fixture_field(&fixture, "a", PH_FIELD_ID);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 2); /* x, and row 0 */
    ph_encoder_destroy(encoder);
    fixture_init(&fixture, fixture_file("mark.svm", "\xef\xbb\xbf"
                                                    "1 3:1\n0 4:1\n"));
    fixture.settings.format = PH_DATA_LIBSVM;
    encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 3);
    ph_encoder_destroy(encoder);
}

static void columns_are_found_by_name_in_any_order(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("order.csv", "label,a,l,d\n1,x,m|n,3\n"));
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "l", PH_FIELD_ID)->is_list = true;
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const char *other = fixture_file("other.csv", "extra,l,d,a,label\n?,n|n|m,4,x,0\n");
    struct ph_batches *batches = fixture_open(encoder, other, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    const int64_t ids[] = {1, 2, 2, 1};
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_true(batch->dense[0] == 4 && batch->labels[0] == 0);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void prediction_needs_no_labels_weights_or_groups(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("full.csv", "label,w,g,a\n1,1,u,x\n"));
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "w", PH_FIELD_WEIGHT);
    fixture_field(&fixture, "g", PH_FIELD_GROUP);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const char *bare = fixture_file("bare.csv", "a\nx\n");
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 4, .needs_no_labels = true};
    struct ph_batches *batches = fixture_open(encoder, bare, &options);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->ids[0], 1);
    assert_true(batch->labels[0] == 0 && batch->weights[0] == 1);
    ph_batches_close(batches);
    assert_fails(ph_batches_open(encoder, bare, &whole_file, &batches), PH_ERROR_DATA,
        "bare.csv:1: the header lacks column 'label'");
    ph_encoder_destroy(encoder);
}

/* ---- what is refused ---- */

static void bad_rows_are_named_by_file_line_and_field(void **state)
{
    (void)state;
    const char *const cases[][2] = {
        {"1,1,1,1\n1,1,1\n", "bad.csv:3: the row has 3 cells; it must have 4"},
        {"1,1,1,1,1,1\n", "bad.csv:2: the row has 6 cells; it must have 4"},
        {"1,1,1,1,\"1,\"\"1\",1\n", "bad.csv:2: the row has 6 cells; it must have 4"},
        {"1,1,1,1,\"1,1\n", "bad.csv:2: the row has 5 cells; it must have 4"},
        {"2,1,1,1\n", "bad.csv:2: field 'label': '2' is not a label in [0, 1]"},
        {"-0.1,1,1,1\n", "'-0.1' is not a label"},
        {"yes,1,1,1\n", "'yes' is not a label"},
        {"1,x,1,1\n", "bad.csv:2: field 'a': 'x' is not a raw id"},
        {"1,-1,1,1\n", "'-1' is not a raw id"},
        {"1,10,1,1\n", "'10' is beyond the rows of the table"},
        {"1,99999999999999999999,1,1\n", "is not a raw id"},
        {"1,1,nan,1\n", "field 'd': 'nan' is not a finite number"},
        {"1,1,inf,1\n", "'inf' is not a finite number"},
        {"1,1,1e39,1\n", "'1e39' is beyond the range of a 32-bit float"},
        {"1,1,1,-1\n", "field 'w': '-1' is not a weight"},
        {"1,1,1,\n", "field 'w': '' is not a weight"},
        {"1,\"1,1,1\n", "field 'a': a quote is not closed"},
        {"1,\"1\"x,1,1\n", "field 'a': a quote is not closed, or text follows it"},
        {"", "bad.csv: has no rows"},
    };
    for (size_t prefetched = 0; prefetched < 2; prefetched++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct fixture fixture;
            char text[200];
            snprintf(text, sizeof text, "label,a,d,w\n%s", cases[i][0]);
            fixture_init(&fixture, fixture_file("bad.csv", text));
            fixture.settings.encoding = PH_ENCODING_RAW;
            fixture.settings.rows = 10;
            fixture_label_and_ids(&fixture);
            fixture_field(&fixture, "d", PH_FIELD_DENSE);
            fixture_field(&fixture, "w", PH_FIELD_WEIGHT);
            struct ph_encoder *encoder = fixture_encoder(&fixture);
            const struct ph_batches_options options = {
                .size = sizeof options, .batch_size = 10, .reading.num_prefetched = prefetched};
            struct ph_batches *batches = fixture_open(encoder, fixture.settings.paths.train, &options);
            const struct ph_batch *batch = NULL;
            assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, cases[i][1]);
            assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, cases[i][1]);
            assert_null(batch);
            ph_batches_close(batches);
            ph_encoder_destroy(encoder);
        }
    }
}

static void an_error_arrives_after_the_batches_before_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("late.csv", "label,d\n1,1\n1,2\n1,3\n1,x\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 1, .reading.num_prefetched = 8};
    struct ph_batches *batches = fixture_open(encoder, fixture.settings.paths.train, &options);
    for (int i = 1; i <= 3; i++)
        assert_true(fixture_next(batches)->dense[0] == (ph_real)i);
    const struct ph_batch *batch;
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "late.csv:5: field 'd'");
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void missing_files_and_impossible_options_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = NULL;
    assert_fails(
        ph_batches_open(encoder, "/nowhere/x.csv", &whole_file, &batches), PH_ERROR_DATA, "/nowhere/x.csv");
    const struct ph_batches_options no_size = {.size = sizeof no_size};
    assert_fails(
        ph_batches_open(encoder, "/nowhere/x.csv", &no_size, &batches), PH_ERROR_USAGE, "batch size of 0");
    assert_null(batches);
    ph_batches_close(NULL);
    ph_encoder_destroy(encoder);
}

/* ---- order ---- */

#define NUM_ROWS 3000

static const char *numbered_rows(void)
{
    char *text = malloc(NUM_ROWS * 12 + 20);
    char *at = text + sprintf(text, "label,d\n");
    for (int i = 0; i < NUM_ROWS; i++)
        at += sprintf(at, "%d,%d\n", i % 2, i);
    const char *path = fixture_file("numbered.csv", text);
    free(text);
    return path;
}

/* The rows' numbers in the order of the samples. */
static void read_order(const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, int order_out[NUM_ROWS])
{
    struct ph_batches *batches = fixture_open(encoder, path, options);
    size_t count = 0;
    for (const struct ph_batch *batch; (batch = fixture_next(batches)) != NULL;) {
        assert_int_equal(batch->first_sample, count);
        for (size_t i = 0; i < batch->num_samples; i++) {
            assert_true(count < NUM_ROWS);
            order_out[count++] = (int)batch->dense[i];
        }
    }
    assert_int_equal(count, NUM_ROWS);
    ph_batches_close(batches);
}

static struct ph_encoder *numbered_encoder(void)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    return fixture_encoder(&fixture);
}

static void order_depends_on_seed_and_epoch_alone(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static int first[NUM_ROWS], other[NUM_ROWS];
    struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 64, .reading.is_shuffled = true, .seed = 5, .epoch = 1};
    read_order(encoder, path, &options, first);
    for (size_t prefetched = 0; prefetched < 6; prefetched += 2) {
        options.reading.num_prefetched = prefetched;
        options.batch_size = 64 + 37 * prefetched;
        read_order(encoder, path, &options, other);
        assert_memory_equal(first, other, sizeof first);
    }
    options.epoch = 2;
    read_order(encoder, path, &options, other);
    assert_memory_not_equal(first, other, sizeof first);
    options.epoch = 1;
    options.seed = 6;
    read_order(encoder, path, &options, other);
    assert_memory_not_equal(first, other, sizeof first);
    ph_encoder_destroy(encoder);
}

static void every_row_comes_once_and_far_from_home(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static int order[NUM_ROWS];
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 100, .reading.is_shuffled = true, .seed = test_seed()};
    read_order(encoder, path, &options, order);
    static bool is_seen[NUM_ROWS];
    double distance = 0;
    for (int i = 0; i < NUM_ROWS; i++) {
        assert_false(is_seen[order[i]]);
        is_seen[order[i]] = true;
        distance += fabs((double)(order[i] - i)) / NUM_ROWS;
    }
    assert_near(distance, NUM_ROWS / 3.0, NUM_ROWS / 30.0, 0); /* of a uniform permutation */
    ph_encoder_destroy(encoder);
}

static void small_windows_keep_rows_near_home(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static int order[NUM_ROWS];
    /* a row is 2 words, a start and an index: 20 bytes */
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 64, .reading.is_shuffled = true, .reading.shuffle_bytes = 2000};
    read_order(encoder, path, &options, order);
    static bool is_seen[NUM_ROWS];
    bool is_moved = false;
    for (int i = 0; i < NUM_ROWS; i++) {
        assert_false(is_seen[order[i]]);
        is_seen[order[i]] = true;
        is_moved |= order[i] != i;
        assert_int_equal(order[i] / 100, i / 100);
    }
    assert_true(is_moved);
    ph_encoder_destroy(encoder);
}

static void unshuffled_rows_keep_their_order(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static int order[NUM_ROWS];
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 7, .reading.num_prefetched = 3, .seed = 9};
    read_order(encoder, path, &options, order);
    for (int i = 0; i < NUM_ROWS; i++)
        assert_int_equal(order[i], i);
    ph_encoder_destroy(encoder);
}

static void closing_early_stops_the_thread(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 7, .reading.num_prefetched = 2};
    for (int taken = 0; taken < 4; taken++) {
        struct ph_batches *batches = fixture_open(encoder, path, &options);
        for (int i = 0; i < taken; i++)
            assert_non_null(fixture_next(batches));
        ph_batches_close(batches);
    }
    ph_encoder_destroy(encoder);
}

static void a_batch_has_rows_and_no_more_than_1024_are_made_ahead(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    struct ph_batches *batches = NULL;
    const struct ph_batches_options none = {.size = sizeof none, .reading.num_prefetched = 1};
    const struct ph_batches_options most = {
        .size = sizeof most, .batch_size = 7, .reading.num_prefetched = 1024};
    const struct ph_batches_options more = {
        .size = sizeof more, .batch_size = 7, .reading.num_prefetched = 1025};
    assert_int_equal(ph_batches_open(encoder, path, &none, &batches), PH_ERROR_USAGE);
    assert_int_equal(ph_batches_open(encoder, path, &more, &batches), PH_ERROR_USAGE);
    assert_null(batches);
    batches = fixture_open(encoder, path, &most);
    assert_int_equal(fixture_next(batches)->num_samples, 7);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* ---- real files ---- */

static void compressed_files_give_the_same_batches(void **state)
{
    (void)state;
    const char *text = "label,d\n1,1\n0,2\n1,3\n";
    struct ph_encoder *encoder = numbered_encoder();
    const char *const names[] = {"small.csv", "small.csv.gz", "small.csv.zst"};
    for (size_t i = 0; i < 3; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", test_folder(), names[i]);
        struct ph__writer *writer;
        assert_ok(ph__writer_open(path, &writer));
        assert_ok(ph__writer_write(writer, text, strlen(text)));
        assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
        struct ph_batches *batches = fixture_open(encoder, path, &whole_file);
        const struct ph_batch *batch = fixture_next(batches);
        assert_int_equal(batch->num_samples, 3);
        assert_true(batch->dense[2] == 3);
        ph_batches_close(batches);
    }
    ph_encoder_destroy(encoder);
}

static void criteo_lines_are_read_with_their_blanks(void **state)
{
    (void)state;
    struct fixture fixture;
    char text[2000] = "0\t1\t\t-2\t\t3\t4\t5\t6\t7\t8\t9\t10\t11";
    for (int i = 0; i < 26; i++)
        strcat(text, i % 2 == 0 ? "\t68fd1e64" : "\t");
    strcat(text, "\n");
    fixture_init(&fixture, fixture_file("criteo.tsv", text));
    fixture.settings.format = PH_DATA_CRITEO;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, fixture.settings.paths.train, &whole_file);
    const struct ph_batch *batch = fixture_next(batches);
    assert_near((double)batch->dense[0], log1p(1), 0, 1e-7);
    assert_true(batch->dense[1] == 0 && batch->dense[2] == 0);
    assert_near((double)batch->dense[12], log1p(11), 0, 1e-7);
    for (size_t f = 0; f < 26; f++) {
        assert_int_equal(batch->ids[f], f % 2 == 0 ? 1 : 0);
        assert_int_equal(batch->lengths[f], 1);
    }
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_is_in_the_combined_format),
        cmocka_unit_test(only_the_last_batch_is_smaller),
        cmocka_unit_test(blank_labels_are_masked),
        cmocka_unit_test(weights_and_groups_come_with_the_samples),
        cmocka_unit_test(dense_cells_are_filled_and_transformed),
        cmocka_unit_test(hashed_ids_stay_in_the_table_and_blanks_are_row_zero),
        cmocka_unit_test(long_lists_are_cut_and_blank_items_skipped),
        cmocka_unit_test(quotes_line_ends_and_empty_lines_change_nothing),
        cmocka_unit_test(a_byte_order_mark_belongs_to_no_row),
        cmocka_unit_test(columns_are_found_by_name_in_any_order),
        cmocka_unit_test(prediction_needs_no_labels_weights_or_groups),
        cmocka_unit_test(bad_rows_are_named_by_file_line_and_field),
        cmocka_unit_test(an_error_arrives_after_the_batches_before_it),
        cmocka_unit_test(missing_files_and_impossible_options_are_refused),
        cmocka_unit_test(order_depends_on_seed_and_epoch_alone),
        cmocka_unit_test(every_row_comes_once_and_far_from_home),
        cmocka_unit_test(small_windows_keep_rows_near_home),
        cmocka_unit_test(unshuffled_rows_keep_their_order),
        cmocka_unit_test(closing_early_stops_the_thread),
        cmocka_unit_test(a_batch_has_rows_and_no_more_than_1024_are_made_ahead),
        cmocka_unit_test(compressed_files_give_the_same_batches),
        cmocka_unit_test(criteo_lines_are_read_with_their_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
