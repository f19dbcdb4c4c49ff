/* Where gradients are received to: the place that was freed last is used next, no two gradients share one, and all that can be
 * under way have one. What is summed from there is held against the serial loop by the trial itself. */
#include "base/thread/cpu.h"
#include "hub/shard/shard_state.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

enum { NUM_WORKERS = 3, DEPTH = 2 };

static struct shard_trial *make_trial(enum ph_hub_order order, uint16_t num_shards)
{
    enum ph_isa isa;
    assert_ok(ph__cpu_isa(&isa));
    return shard_trial_create(&(struct shard_trial_options){
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .order = order,
        .num_workers = NUM_WORKERS,
        .depth = DEPTH,
        .num_shards = num_shards,
        .transports = {TRIAL_PAYLOADS, TRIAL_PAYLOADS, TRIAL_PAYLOADS}});
}

static bool is_whole(const struct shard_trial *trial, uint32_t chunk)
{
    return trial->layout->chunks[chunk].gradient_bytes == trial->layout->chunk_bytes;
}

static uint32_t next_whole(const struct shard_trial *trial, uint32_t chunk)
{
    while (!is_whole(trial, chunk))
        chunk++;
    assert_in_range(chunk, 0, trial->layout->sizes.num_chunks - 1);
    return chunk;
}

static size_t count_whole(const struct shard_trial *trial, uint16_t shard)
{
    size_t count = 0;
    for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
        count += is_whole(trial, chunk) && trial->core_of_chunk[chunk] == shard;
    return count;
}

static const char *place_of(
    const struct shard_trial *trial, uint32_t chunk, uint32_t worker, uint64_t iteration)
{
    return ph__request(&trial->memory, chunk, worker)->received[iteration % DEPTH];
}

static void push(struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    shard_trial_push(trial, worker, chunk, PH_HUB_PUSHPULL);
    shard_trial_run_all(trial);
}

static void what_was_freed_last_is_used_next(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_WORKER_ORDER, 1);
    const uint32_t first = next_whole(trial, 0), second = next_whole(trial, first + 1);
    push(trial, 0, first);
    push(trial, 1, first);
    const char *places[] = {place_of(trial, first, 0, 1), place_of(trial, first, 1, 1)};
    assert_non_null(places[0]);
    assert_non_null(places[1]);
    assert_ptr_not_equal(places[0], places[1]);
    push(trial, 2, first); /* all are there: they are summed, and worker 2's place was freed last */
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        assert_null(place_of(trial, first, worker, 1));
    push(trial, 1, second);
    push(trial, 2, second);
    assert_ptr_equal(place_of(trial, second, 2, 1), places[1]);
    push(trial, 0, second);
    shard_trial_destroy(trial);
}

static void all_that_can_be_under_way_have_a_place_of_their_own(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_WORKER_ORDER, 2);
    const uint32_t num_chunks = (uint32_t)trial->layout->sizes.num_chunks;
    const char *seen[64];
    size_t num_seen = 0;
    for (uint64_t iteration = 1; iteration <= DEPTH; iteration++) {
        for (uint32_t worker = 0; worker + 1 < NUM_WORKERS; worker++) { /* they wait for the last one */
            for (uint32_t chunk = 0; chunk < num_chunks; chunk++) {
                push(trial, worker, chunk);
                const char *place = place_of(trial, chunk, worker, iteration);
                assert_int_equal(place != NULL, is_whole(trial, chunk));
                for (size_t i = 0; i < num_seen; i++)
                    assert_ptr_not_equal(seen[i], place);
                if (place != NULL) {
                    assert_in_range(num_seen, 0, 63);
                    seen[num_seen++] = place;
                }
            }
        }
    }
    for (uint64_t iteration = 1; iteration <= DEPTH; iteration++) {
        for (uint32_t chunk = 0; chunk < num_chunks; chunk++)
            push(trial, NUM_WORKERS - 1, chunk);
        shard_trial_settle(trial);
    }
    shard_trial_check_end(trial, DEPTH);
    for (uint16_t shard = 0; shard < 2; shard++)
        assert_int_equal(trial->shards[shard]->num_places, count_whole(trial, shard) * NUM_WORKERS * DEPTH);
    shard_trial_destroy(trial);
}

/* Arrival order: a gradient's place is free as soon as it was added, though others are missing. */
static void what_was_added_leaves_its_place(void **state)
{
    (void)state;
    struct shard_trial *trial = make_trial(PH_HUB_ARRIVAL_ORDER, 1);
    const uint32_t chunk = next_whole(trial, 0);
    push(trial, 2, chunk);
    assert_null(place_of(trial, chunk, 2, 1));
    assert_int_equal(trial->shards[0]->num_places, count_whole(trial, 0) * NUM_WORKERS * DEPTH);
    shard_trial_destroy(trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_last_is_used_next),
        cmocka_unit_test(all_that_can_be_under_way_have_a_place_of_their_own),
        cmocka_unit_test(what_was_added_leaves_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
