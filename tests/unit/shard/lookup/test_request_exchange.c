/* What ranks ask each other for, against what the rank of a stream finds in the whole batch by itself; and
 * what is refused. */
#include "shard/lookup/request_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "shard/plan_distribution.h"
#include "support/thread_ranks.h"

enum { WORLD = 3, NUM_FEATURES = 2, NUM_STEPS = 4, MOST_SAMPLES = 40, MOST_OF_BAG = 3 };
enum { MOST_IDS = MOST_OF_BAG * NUM_FEATURES * MOST_SAMPLES };

/* Batches that grow and shrink, of fewer samples than ranks too. */
static const size_t batches[NUM_STEPS] = {17, 2, 1, MOST_SAMPLES};
static const uint64_t num_rows[NUM_FEATURES] = {10, 7};

/* The first rank has two streams, the second one, which is the rest of a table, and the third none. */
static const struct ph__stream streams[] = {{0, "a", 0, 6, 10}, {1, "b", 0, 7, 7}, {0, "a", 6, 4, 10}};
static const size_t first_streams[WORLD + 1] = {0, 2, 3, 3};

/* ---- the data ---- */

struct samples {
    struct ph_batch batch;
    uint32_t offsets[NUM_FEATURES * MOST_SAMPLES + 1];
    int64_t ids[MOST_IDS];
    ph_real weights[MOST_IDS];
};

/* Appends a bag of the step's batch. */
static void add_bag(struct samples *samples, size_t step, size_t feature, size_t sample)
{
    const struct ph__rng_key key = {test_seed(), step, feature};
    const size_t length = ph__rng_word(&key, sample, 0) % (MOST_OF_BAG + 1);
    for (uint32_t i = 0; i < length; i++) {
        const size_t at = samples->batch.num_ids++;
        samples->ids[at] = (int64_t)(ph__rng_word(&key, sample, 2 * i + 1) % num_rows[feature]);
        samples->weights[at] = (ph_real)(ph__rng_word(&key, sample, 2 * i + 2) % 64);
    }
}

static void make_samples(struct samples *samples, size_t step, size_t first, size_t last)
{
    size_t bag = 0;
    samples->batch = (struct ph_batch){.num_samples = last - first,
        .num_sparse = NUM_FEATURES,
        .num_global_samples = batches[step],
        .first_sample = first,
        .offsets = samples->offsets,
        .ids = samples->ids,
        .id_weights = samples->weights};
    for (size_t f = 0; f < NUM_FEATURES; f++)
        for (size_t b = first; b < last; b++) {
            samples->offsets[bag++] = (uint32_t)samples->batch.num_ids;
            add_bag(samples, step, f, b);
        }
    samples->offsets[bag] = (uint32_t)samples->batch.num_ids;
}

/* ---- one rank ---- */

static ph_status make_sharding(struct ph_comm *comm, struct ph__sharding **sharding_out)
{
    const struct ph__distribution_options options = {.comm = comm};
    PH_TRY(ph__sharding_create(&options, sharding_out));
    (*sharding_out)->has_weights = true;
    for (size_t rank = 0; rank < (*sharding_out)->world_size; rank++) {
        struct ph__stream_list *list = &(*sharding_out)->streams[rank];
        const size_t count = first_streams[rank + 1] - first_streams[rank];
        list->items = calloc(count + 1, sizeof *list->items);
        list->count = count;
        RANK_CHECK(list->items != NULL);
        memcpy(list->items, streams + first_streams[rank], count * sizeof *list->items);
    }
    return PH_OK;
}

/* The bag of a stream and a sample of the whole batch stands from *position on, which moves behind it. */
static ph_status check_bag(const struct ph__requests *requests, const struct ph__stream *stream,
    const struct samples *whole, size_t bag, size_t *position)
{
    const size_t first = whole->offsets[bag], last = whole->offsets[bag + 1];
    for (size_t i = first; i < last; i++) {
        const uint64_t row = (uint64_t)whole->ids[i] - stream->first_row;
        if (row >= stream->num_rows)
            continue;
        RANK_CHECK(*position < requests->num_ids);
        RANK_CHECK((uint64_t)requests->ids[*position] == row);
        RANK_CHECK(requests->weights[(*position)++] == whole->weights[i]);
    }
    return PH_OK;
}

static ph_status check_requests(
    const struct ph__sharding *sharding, const struct ph__requests *requests, const struct samples *whole)
{
    const size_t num_samples = whole->batch.num_samples;
    size_t position = 0, bag = 0;
    RANK_CHECK(requests->num_samples == num_samples);
    RANK_CHECK(requests->num_global_ids == whole->batch.num_ids);
    RANK_CHECK(requests->num_streams == sharding->streams[sharding->rank].count);
    for (size_t s = 0; s < requests->num_streams; s++) {
        const struct ph__stream *stream = &sharding->streams[sharding->rank].items[s];
        const size_t begin = position;
        for (size_t b = 0, rank = 0; b < num_samples; b++) {
            for (; rank < WORLD && sharding->bounds[rank] <= b; rank++)
                RANK_CHECK(
                    sharding->bounds[rank] < b || ph__requests_begin(sharding, s, rank) == position - begin);
            RANK_CHECK(requests->offsets[bag++] == position);
            PH_TRY(check_bag(requests, stream, whole, stream->feature * num_samples + b, &position));
        }
        RANK_CHECK(ph__requests_begin(sharding, s, WORLD) == position - begin);
    }
    RANK_CHECK(requests->offsets[bag] == position && requests->num_ids == position);
    return PH_OK;
}

/* Ids of this rank's samples by whom they have gone to. */
static ph_status check_sent(const struct ph__sharding *sharding, const struct samples *own)
{
    for (size_t rank = 0; rank < WORLD; rank++)
        for (size_t s = 0; s < sharding->streams[rank].count; s++) {
            const struct ph__stream *stream = &sharding->streams[rank].items[s];
            const uint32_t *offsets = own->offsets + stream->feature * own->batch.num_samples;
            size_t count = 0;
            for (size_t i = offsets[0]; i < offsets[own->batch.num_samples]; i++)
                count += (uint64_t)own->ids[i] - stream->first_row < stream->num_rows;
            RANK_CHECK(ph__requests_sent(sharding, rank, s) == count);
        }
    return PH_OK;
}

static ph_status exchange_steps(struct ph__sharding *sharding)
{
    for (size_t step = 0; step < NUM_STEPS; step++) {
        struct samples own, whole;
        struct ph__requests requests;
        make_samples(
            &own, step, batches[step] * sharding->rank / WORLD, batches[step] * (sharding->rank + 1) / WORLD);
        make_samples(&whole, step, 0, batches[step]);
        PH_TRY(ph__requests_exchange(sharding, &own.batch, &requests));
        PH_TRY(check_requests(sharding, &requests, &whole));
        PH_TRY(check_sent(sharding, &own));
    }
    return PH_OK;
}

static ph_status run_steps(struct ph_comm *comm, void *context)
{
    struct ph__sharding *sharding = NULL;
    (void)context;
    ph_status status = make_sharding(comm, &sharding);
    if (status == PH_OK)
        status = exchange_steps(sharding);
    ph__sharding_destroy(sharding);
    return status;
}

static void a_rank_has_all_ids_that_lie_in_its_streams(void **state)
{
    (void)state;
    thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, run_steps, NULL, NULL);
}

/* ---- what is refused ---- */

/* The second rank's sixth id, of its third sample, is this one. */
static ph_status ask_for(struct ph_comm *comm, void *context)
{
    static const uint32_t offsets[] = {0, 2, 3, 6, 6, 6, 6};
    const size_t rank = ph_comm_rank(comm);
    int64_t ids[] = {0, 9, 5, 4, 3, 2};
    const struct ph_batch batch = {.num_samples = 3,
        .num_sparse = NUM_FEATURES,
        .num_ids = 6,
        .num_global_samples = 3 * WORLD,
        .first_sample = 3 * rank,
        .offsets = offsets,
        .ids = ids};
    struct ph__sharding *sharding = NULL;
    struct ph__requests requests;
    if (rank == 1)
        ids[5] = *(const int64_t *)context;
    ph_status status = make_sharding(comm, &sharding);
    if (status == PH_OK)
        status = ph__requests_exchange(sharding, &batch, &requests);
    ph__sharding_destroy(sharding);
    return status;
}

static void an_id_outside_its_table_ends_all_ranks(void **state)
{
    (void)state;
    static const int64_t ids[] = {10, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct thread_rank_end ends[WORLD];
        char text[100];
        int64_t id = ids[i];
        snprintf(text, sizeof text, "feature 'a', sample 5: id %lld is outside its table of 10 rows",
            (long long)id);
        thread_ranks_run(&(struct thread_ranks){.world_size = WORLD}, ask_for, &id, ends);
        for (size_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_DATA);
            assert_non_null(strstr(ends[rank].text, text));
        }
    }
}

/* The first rank has two samples of four, the second two of three. Nobody asks the second for anything: it
 * knows by the header. */
static ph_status ask_for_other_data(struct ph_comm *comm, void *context)
{
    static const uint32_t offsets[2 * NUM_FEATURES + 1] = {0};
    const struct ph_batch batch = {.num_samples = 2,
        .num_sparse = NUM_FEATURES,
        .num_global_samples = ph_comm_rank(comm) == 0 ? 4 : 3,
        .offsets = offsets};
    struct ph__sharding *sharding = NULL;
    struct ph__requests requests;
    (void)context;
    ph_status status = make_sharding(comm, &sharding);
    if (status == PH_OK) {
        sharding->streams[1].count = 0;
        status = ph__requests_exchange(sharding, &batch, &requests);
    }
    ph__sharding_destroy(sharding);
    return status;
}

static void ranks_whose_batches_do_not_fit_together_are_told_so(void **state)
{
    (void)state;
    struct thread_rank_end ends[2];
    thread_ranks_run(&(struct thread_ranks){.world_size = 2}, ask_for_other_data, NULL, ends);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_DATA);
        assert_non_null(strstr(
            ends[rank].text, "rank 0 has 2 samples of the batch, but rank 1 expects 1: give all ranks"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_has_all_ids_that_lie_in_its_streams),
        cmocka_unit_test(an_id_outside_its_table_ends_all_ranks),
        cmocka_unit_test(ranks_whose_batches_do_not_fit_together_are_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
