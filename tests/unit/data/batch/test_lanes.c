/* Shuffling in lanes: every row once, in an order that no rank changes, and each rank reads its lanes alone.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/batch/rank_rows.h"
#include "unit/data/prepare_fixture.h"
#include "unit/data/ranks_fixture.h"

#define ROW_FEATURE 0 /* the sparse feature whose id is the row's number */
#define MAX_LANES 32

/* Some 60 blocks of 50 rows, but for the last of each part. */
static struct rank_data prepare(const char *folder)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    const struct ph_prepare_options options = {.size = sizeof options,
        .num_threads = 2,
        .settings.part_bytes = PREPARE_PART_BYTES,
        .settings.block_rows = 50};
    char name[64];
    snprintf(name, sizeof name, "%s/train", folder);
    prepare_fixture_init(&fixture, prepare_file("lanes.csv", PREPARE_ROWS, 1));
    assert_ok(ph_prepare(&fixture.settings, test_path(folder), &options, &summary));
    return (struct rank_data){.encoder = prepare_encoder(folder), .path = test_path(name)};
}

static void destroy(const struct rank_data *data)
{
    ph_encoder_destroy((struct ph_encoder *)data->encoder);
}

static struct ph_batches_options in_lanes(size_t num_lanes, size_t batch_size, size_t window_bytes)
{
    return (struct ph_batches_options){.size = sizeof(struct ph_batches_options),
        .batch_size = batch_size,
        .reading.is_shuffled = true,
        .reading.shuffle_bytes = window_bytes,
        .reading.shuffle_lanes = num_lanes,
        .seed = test_seed(),
        .epoch = 1};
}

/* The number of each row in the order of the pass; returns how many. All batches but the last are full. */
static size_t row_numbers(
    const struct rank_data *data, const struct ph_batches_options *options, int64_t numbers[PREPARE_ROWS])
{
    struct ph_batches *batches = fixture_open(data->encoder, data->path, options);
    size_t count = 0;
    for (const struct ph_batch *batch; (batch = fixture_next(batches)) != NULL;) {
        assert_int_equal(batch->first_sample, count);
        assert_int_equal(count % options->batch_size, 0);
        for (size_t b = 0; b < batch->num_samples; b++) {
            assert_true(count < PREPARE_ROWS);
            numbers[count++] = batch->ids[ROW_FEATURE * batch->num_samples + b];
        }
    }
    ph_batches_close(batches);
    return count;
}

static const size_t lane_counts[] = {2, 3, 8, 31, 1000}; /* the last: one a block */
static const size_t windows[] = {1, 20000, 1 << 30};

#define NUM_LANE_COUNTS (sizeof lane_counts / sizeof *lane_counts)
#define NUM_WINDOWS (sizeof windows / sizeof *windows)

/* ---- the order ---- */

static void every_row_comes_once(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS];
    const struct rank_data data = prepare("once");
    for (size_t l = 0; l < NUM_LANE_COUNTS; l++)
        for (size_t w = 0; w < NUM_WINDOWS; w++)
            for (size_t batch_size = 1; batch_size < 4000; batch_size = batch_size * 7 + 3) {
                bool is_seen[PREPARE_ROWS] = {false};
                const struct ph_batches_options options = in_lanes(lane_counts[l], batch_size, windows[w]);
                assert_int_equal(row_numbers(&data, &options, numbers), PREPARE_ROWS);
                for (size_t i = 0; i < PREPARE_ROWS; i++) {
                    assert_false(is_seen[numbers[i]]);
                    is_seen[numbers[i]] = true;
                }
            }
    destroy(&data);
}

static void the_order_follows_seed_epoch_and_lanes(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS], others[PREPARE_ROWS];
    const struct rank_data data = prepare("order");
    struct ph_batches_options options = in_lanes(4, 100, 20000);
    row_numbers(&data, &options, numbers);
    options.reading.num_prefetched = 2;
    row_numbers(&data, &options, others);
    assert_memory_equal(others, numbers, sizeof numbers);
    options.epoch++;
    row_numbers(&data, &options, others);
    assert_memory_not_equal(others, numbers, sizeof numbers);
    options.epoch--;
    options.seed++;
    row_numbers(&data, &options, others);
    assert_memory_not_equal(others, numbers, sizeof numbers);
    options.seed--;
    options.reading.shuffle_lanes = 5;
    row_numbers(&data, &options, others);
    assert_memory_not_equal(others, numbers, sizeof numbers);
    destroy(&data);
}

/* Also where lanes are asked for of what has none: rows in order, and text. */
static void one_lane_is_none(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS], others[PREPARE_ROWS];
    const struct rank_data data = prepare("one");
    const struct rank_data text = {.encoder = data.encoder, .path = test_path("lanes.csv")};
    struct ph_batches_options options = in_lanes(0, 100, 20000);
    for (int is_text = 0; is_text < 2; is_text++) {
        options.reading.shuffle_lanes = 0;
        row_numbers(is_text ? &text : &data, &options, numbers);
        options.reading.shuffle_lanes = is_text ? 4 : 1;
        row_numbers(is_text ? &text : &data, &options, others);
        assert_memory_equal(others, numbers, sizeof numbers);
    }
    options.reading.is_shuffled = false;
    row_numbers(&data, &options, others);
    for (int64_t i = 0; i < PREPARE_ROWS; i++)
        assert_int_equal(others[i], i);
    destroy(&data);
}

/* A lane's first rows come from blocks all over the data, and no lane gives the rows of a block in their
 * order. */
static void rows_are_mixed(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS];
    const struct rank_data data = prepare("mixed");
    const struct ph_batches_options options = in_lanes(4, 100, 40000);
    row_numbers(&data, &options, numbers);
    size_t num_far = 0, num_next = 0;
    for (size_t i = 1; i < PREPARE_ROWS; i++) {
        num_far += llabs(numbers[i] - numbers[i - 1]) > 500;
        num_next += numbers[i] == numbers[i - 1] + 1;
    }
    assert_true(num_far > PREPARE_ROWS / 3);
    assert_true(num_next < PREPARE_ROWS / 20);
    destroy(&data);
}

/* Of a lane's rows from `first` on, every num_lanes-th of the pass, the places within their block, if the
 * next 50 are one. */
static bool find_permutation(const int64_t *numbers, size_t first, size_t num_lanes, int64_t places[50])
{
    int64_t least = INT64_MAX, greatest = 0;
    for (size_t i = 0; i < 50; i++) {
        places[i] = numbers[first + i * num_lanes];
        least = places[i] < least ? places[i] : least;
        greatest = places[i] > greatest ? places[i] : greatest;
    }
    for (size_t i = 0; i < 50; i++)
        places[i] -= least;
    return greatest - least == 49;
}

/* A window of one block each. */
static void windows_are_permuted_by_keys_of_their_own(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS];
    const struct rank_data data = prepare("keys");
    const struct ph_batches_options options = in_lanes(2, 2, 1);
    int64_t places[2][50];
    size_t num_found = 0, num_same = 0;
    row_numbers(&data, &options, numbers);
    for (size_t first = 0; first + 100 < PREPARE_ROWS; first++) {
        if (!find_permutation(numbers, first, 2, places[num_found % 2]))
            continue;
        num_same += num_found++ > 0 && memcmp(places[0], places[1], sizeof places[0]) == 0;
    }
    assert_true(num_found > 10);
    assert_int_equal(num_same, 0);
    destroy(&data);
}

/* ---- dealing ---- */

/* Which lane each row is dealt to, and how many rows each lane has left. */
struct deal {
    size_t lane[PREPARE_ROWS];
    uint64_t left[MAX_LANES];
};

static void know_deal(const struct ph__lanes *lanes, struct deal *deal)
{
    memset(deal->left, 0, sizeof deal->left);
    for (size_t l = 0; l < lanes->num_lanes; l++) {
        const struct ph__prepared_source *own = &lanes->lanes[l].window.prepared;
        for (size_t place = own->next; place < own->end; place++) {
            const struct ph__set_block *block = ph__prepared_set_block(own->set, own->order[place]);
            for (uint64_t row = block->first_row; row < block->first_row + block->num_rows; row++)
                deal->lane[row] = l;
        }
        deal->left[l] = lanes->lanes[l].num_left;
    }
}

/* What a batch of n rows takes from each lane, said another way than rank_rows.c does: rounds of fractions.
 */
static void expect_shares(const struct deal *deal, size_t num_lanes, size_t n, size_t shares[MAX_LANES])
{
    memset(shares, 0, MAX_LANES * sizeof *shares);
    while (n > 0) {
        size_t open[MAX_LANES], num_open = 0, given = 0;
        for (size_t l = 0; l < num_lanes; l++)
            if (shares[l] < deal->left[l])
                open[num_open++] = l;
        for (size_t k = 0; k < num_open; k++) {
            double part = floor((double)n * (double)(k + 1) / (double)num_open) -
                          floor((double)n * (double)k / (double)num_open);
            double room = (double)(deal->left[open[k]] - shares[open[k]]);
            shares[open[k]] += (size_t)fmin(part, room);
            given += (size_t)fmin(part, room);
        }
        n -= given;
    }
}

static void check_deal(
    const struct rank_data *data, size_t num_lanes, size_t batch_size, double negative_rate)
{
    static struct deal deal;
    struct ph__lanes lanes;
    struct ph_batches_options options = in_lanes(num_lanes, batch_size, 20000);
    options.reading.negative_rate = negative_rate;
    assert_ok(ph__lanes_open(&lanes, data->encoder, data->path, &options, 0));
    assert_int_equal(lanes.num_lanes, num_lanes);
    know_deal(&lanes, &deal);
    while (lanes.num_left > 0) {
        const uint32_t *const *rows;
        size_t shares[MAX_LANES];
        size_t n = lanes.num_left < batch_size ? (size_t)lanes.num_left : batch_size, at = 0;
        expect_shares(&deal, num_lanes, n, shares);
        assert_ok(ph__lanes_take(&lanes, n, 0, n, &rows));
        for (size_t l = 0; l < num_lanes; l++)
            for (size_t i = 0; i < shares[l]; i++, at++)
                assert_int_equal(deal.lane[rows[at][data->encoder->sparse_word + ROW_FEATURE]], l);
        assert_int_equal(at, n);
        for (size_t l = 0; l < num_lanes; l++)
            deal.left[l] -= shares[l];
    }
    ph__lanes_close(&lanes);
}

static void a_batch_takes_even_parts_from_its_lanes(void **state)
{
    (void)state;
    const struct rank_data data = prepare("deal");
    for (size_t num_lanes = 2; num_lanes < MAX_LANES; num_lanes += 5)
        for (size_t batch_size = MAX_LANES; batch_size < 3000; batch_size *= 3) {
            check_deal(&data, num_lanes, batch_size, 1);
            check_deal(&data, num_lanes, batch_size, 0.1);
        }
    destroy(&data);
}

/* ---- ranks ---- */

static void ranks_share_lanes(void **state)
{
    (void)state;
    const struct rank_data data = prepare("ranks");
    for (size_t l = 0; l < NUM_LANE_COUNTS; l++)
        for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += test_is_brief() ? 4 : 1)
            for (int has_negatives = 0; has_negatives < 2; has_negatives++) {
                struct ph_batches_options options =
                    in_lanes(lane_counts[l], 217, windows[world_size % NUM_WINDOWS]);
                options.reading.negative_rate = has_negatives ? 0.05 : 0;
                assert_true(assert_ranks_share(&data, &options, world_size) > 7);
                options.batch_size = 1100;
                assert_ranks_share(&data, &options, world_size);
            }
    destroy(&data);
}

static void ranks_go_on_where_others_have_left(void **state)
{
    (void)state;
    const struct rank_data data = prepare("left");
    for (size_t l = 0; l < NUM_LANE_COUNTS; l++)
        for (size_t world_size = 1; world_size <= MAX_RANKS; world_size += test_is_brief() ? 7 : 4) {
            struct ph_batches_options options = in_lanes(lane_counts[l], 97, 20000);
            assert_ranks_go_on(&data, &options, world_size);
            options.reading.negative_rate = 0.2;
            assert_ranks_go_on(&data, &options, world_size);
        }
    destroy(&data);
}

/* As long as all lanes have rows, which they do for half a pass. */
static void a_rank_reads_its_lanes_alone(void **state)
{
    (void)state;
    const struct rank_data data = prepare("alone");
    for (size_t lanes_each = 1; lanes_each <= 2; lanes_each++)
        for (size_t rank = 0; rank < 4; rank++) {
            struct ph__rank_rows rows;
            struct ph__rank_batch batch;
            struct ph_batches_options options = in_lanes(4 * lanes_each, 101, 20000);
            options.rank = rank;
            options.world_size = 4;
            assert_ok(ph__rank_rows_open(&rows, data.encoder, data.path, NULL, NULL, &options));
            for (int i = 0; i < 15; i++)
                assert_ok(ph__rank_rows_next(&rows, &batch));
            for (size_t l = 0; l < 4 * lanes_each; l++) {
                const struct ph__window *lane = &rows.lanes.lanes[l].window;
                assert_int_equal(lane->prepared.num_decoded > 0, l / lanes_each == rank);
                assert_int_equal(lane->rows.words != NULL, l / lanes_each == rank);
            }
            ph__rank_rows_close(&rows);
        }
    destroy(&data);
}

/* ---- what is refused ---- */

static void a_place_behind_the_last_row_is_refused(void **state)
{
    (void)state;
    const struct rank_data data = prepare("refused");
    struct ph_batches *batches = NULL;
    struct ph_position position = {{0}};
    struct ph_batches_options options = in_lanes(4, 100, 20000);
    options.start = &position;
    position.words[PH_POSITION_WORDS - 1] = PREPARE_ROWS + 1;
    assert_fails(ph_batches_open(data.encoder, data.path, &options, &batches), PH_ERROR_DATA,
        "has fewer rows than the 3001 that were read");
    position.words[PH_POSITION_WORDS - 1] = PREPARE_ROWS;
    batches = fixture_open(data.encoder, data.path, &options);
    assert_null(fixture_next(batches));
    ph_batches_close(batches);
    options.reading.negative_rate = 2;
    assert_fails(ph_batches_open(data.encoder, data.path, &options, &batches), PH_ERROR_USAGE,
        "must be between 0 and 1");
    destroy(&data);
}

/* The only row is negative, and is not kept. */
static void a_pass_without_rows_fails(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_prepare_summary summary;
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch = NULL;
    fixture_init(&fixture, fixture_file("negative.csv", "label,a\n0,x\n"));
    fixture.settings.reading.shuffle_bytes = 1 << 25;
    fixture_label_and_ids(&fixture);
    assert_ok(prepare_into(&fixture, "negative", 1, &summary));
    struct ph_encoder *encoder = prepare_encoder("negative");
    struct ph_batches_options options = in_lanes(4, 100, 20000);
    options.reading.negative_rate = 1e-6;
    batches = fixture_open(encoder, test_path("negative/train"), &options);
    assert_fails(
        ph_batches_next(batches, &batch), PH_ERROR_DATA, "negative/train: none of the 1 rows is kept");
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_comes_once),
        cmocka_unit_test(the_order_follows_seed_epoch_and_lanes),
        cmocka_unit_test(one_lane_is_none),
        cmocka_unit_test(rows_are_mixed),
        cmocka_unit_test(windows_are_permuted_by_keys_of_their_own),
        cmocka_unit_test(a_batch_takes_even_parts_from_its_lanes),
        cmocka_unit_test(ranks_share_lanes),
        cmocka_unit_test(ranks_go_on_where_others_have_left),
        cmocka_unit_test(a_rank_reads_its_lanes_alone),
        cmocka_unit_test(a_place_behind_the_last_row_is_refused),
        cmocka_unit_test(a_pass_without_rows_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
