/* Ranks that share a reading get what each would read alone, however far one is ahead of another. */
#include "data/batch/shared_batches.h"

#include "unit/data/prepare_fixture.h"
#include "unit/data/ranks_fixture.h"

#define NUM_ROWS 430
#define BATCH 32
#define WORLD 5

struct readers {
    struct ph_batches *shared[WORLD], *alone[WORLD];
    bool is_over[WORLD];
};

static struct ph_batches *open_as(const struct ph_encoder *encoder, const char *path,
    struct ph__shared_batches *shared, size_t rank, uint64_t epoch)
{
    const struct ph__rows_origin origin = {.path = path, .shared = shared};
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = BATCH,
        .reading = {.is_shuffled = true, .shuffle_bytes = 4096, .num_prefetched = 2},
        .seed = test_seed(),
        .epoch = epoch,
        .rank = rank,
        .world_size = WORLD};
    struct ph_batches *batches;
    assert_ok(ph__batches_open(encoder, &origin, &options, &batches));
    return batches;
}

static void assert_same_batch(const struct ph_batch *shared, const struct ph_batch *alone)
{
    assert_int_equal(shared == NULL, alone == NULL);
    if (shared == NULL)
        return;
    assert_int_equal(shared->num_samples, alone->num_samples);
    assert_int_equal(shared->num_global_samples, alone->num_global_samples);
    assert_int_equal(shared->first_sample, alone->first_sample);
    assert_int_equal(shared->num_ids, alone->num_ids);
    for (size_t b = 0; b < shared->num_samples; b++)
        assert_same_sample(shared, b, alone, b);
}

/* Takes a rank's next batch both ways; a rank that has come to the end closes its batches. */
static void take(struct readers *readers, size_t rank)
{
    const struct ph_batch *batch = fixture_next(readers->shared[rank]);
    assert_same_batch(batch, fixture_next(readers->alone[rank]));
    assert_same_place(readers->shared[rank], readers->alone[rank]);
    readers->is_over[rank] = batch == NULL;
}

static void close_readers(struct readers *readers)
{
    for (size_t rank = 0; rank < WORLD; rank++) {
        ph_batches_close(readers->shared[rank]);
        ph_batches_close(readers->alone[rank]);
    }
}

static struct ph_encoder *encoder_of(const char *path)
{
    struct fixture fixture;
    prepare_fixture_init(&fixture, path);
    return fixture_encoder(&fixture);
}

static void ranks_read_in_any_order(void **state)
{
    (void)state;
    const char *path = prepare_file("shared.csv", NUM_ROWS, 1);
    struct ph_encoder *encoder = encoder_of(path);
    struct ph__rng_sequence rng = {.key.seed = test_seed()};
    struct ph__shared_batches *shared;
    assert_ok(ph__shared_batches_create(WORLD, &shared));
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        struct readers readers = {{NULL}, {NULL}, {false}};
        size_t num_over = 0;
        for (size_t rank = 0; rank < WORLD; rank++) {
            readers.shared[rank] = open_as(encoder, path, shared, rank, epoch);
            readers.alone[rank] = open_as(encoder, path, NULL, rank, epoch);
        }
        while (num_over < WORLD) {
            const size_t rank = (size_t)ph__rng_below(&rng, WORLD);
            if (!readers.is_over[rank]) {
                take(&readers, rank);
                num_over += readers.is_over[rank];
            }
        }
        close_readers(&readers);
    }
    ph__shared_batches_destroy(shared);
    ph_encoder_destroy(encoder);
}

/* The first rank has read three batches, and has left, before the second opens the pass. */
static void a_rank_may_leave_before_others_come(void **state)
{
    (void)state;
    const char *path = prepare_file("left.csv", NUM_ROWS, 2);
    struct ph_encoder *encoder = encoder_of(path);
    struct ph__shared_batches *shared;
    assert_ok(ph__shared_batches_create(WORLD, &shared));
    for (size_t rank = 0; rank < WORLD; rank++) {
        struct readers readers = {{NULL}, {NULL}, {false}};
        readers.shared[rank] = open_as(encoder, path, shared, rank, 1);
        readers.alone[rank] = open_as(encoder, path, NULL, rank, 1);
        for (size_t i = 0; i < 3 + 2 * rank; i++)
            take(&readers, rank);
        close_readers(&readers);
    }
    ph__shared_batches_destroy(shared);
    ph_encoder_destroy(encoder);
}

static void all_ranks_get_the_error_of_a_bad_row(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("good.csv", "label,d\n1,1\n0,2\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const char *path = fixture_file("bad.csv", "label,d\n1,1\n0,x\n");
    struct ph__shared_batches *shared;
    assert_ok(ph__shared_batches_create(WORLD, &shared));
    for (size_t rank = 0; rank < WORLD; rank++) {
        struct ph_batches *batches = open_as(encoder, path, shared, rank, 1);
        const struct ph_batch *batch;
        for (int i = 0; i < 2; i++)
            assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "bad.csv:3: field 'd'");
        ph_batches_close(batches);
    }
    ph__shared_batches_destroy(shared);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_read_in_any_order),
        cmocka_unit_test(a_rank_may_leave_before_others_come),
        cmocka_unit_test(all_ranks_get_the_error_of_a_bad_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
