/* What allocates nothing once it runs: a shard's work on what has come, whatever the mode, and sealing and
 * checking frames. */
#include "support/count_allocations.h"

#include "base/thread/cpu.h"
#include "hub/shard/shard.h"
#include "net/frame_key.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

enum { NUM_WORKERS = 3, HEADER_BYTES = 16, PAYLOAD_BYTES = 32768 };

static struct shard_trial *start_trial(enum ph_hub_mode mode)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    struct shard_trial_options options = {
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .mode = mode,
        .num_workers = NUM_WORKERS,
        .depth = 2,
        .num_shards = 2,
        .is_lawless = true /* so that the trial allocates nothing either */};
    options.job.clip_norm = mode == PH_HUB_SYNCHRONOUS ? 1 : 0;
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        options.transports[worker] = TRIAL_OWN;
    return shard_trial_create(&options);
}

static void push_all(struct shard_trial *trial)
{
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        for (uint32_t chunk = 0; chunk < trial->layout->sizes.num_chunks; chunk++)
            shard_trial_push(trial, worker, chunk, PH_HUB_PUSHPULL);
}

static void a_run_allocates_nothing(void **state)
{
    (void)state;
    for (int mode = PH_HUB_SYNCHRONOUS; mode <= PH_HUB_BOUNDED; mode++) {
        struct shard_trial *trial = start_trial((enum ph_hub_mode)mode);
        for (uint64_t iteration = 1; iteration <= 4; iteration++) {
            push_all(trial);
            count_allocations(true);
            shard_trial_run_all(trial);
            count_allocations(false);
            assert_int_equal(
                trial->memory.chunks[0].version, iteration * (mode == PH_HUB_SYNCHRONOUS ? 1 : NUM_WORKERS));
        }
        assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
        shard_trial_destroy(trial);
    }
}

static ph_status check(struct ph__frame_key *key, const void *header, const void *payload, const void *tag)
{
    PH_TRY(ph__frame_begin(key, header, HEADER_BYTES));
    PH_TRY(ph__frame_add(key, payload, PAYLOAD_BYTES));
    return ph__frame_check(key, tag, "127.0.0.1:7");
}

static void a_frame_allocates_nothing(void **state)
{
    (void)state;
    static const unsigned char bytes[PH_CONNECTION_KEY_BYTES] = {8}, header[HEADER_BYTES] = {200};
    static const unsigned char payload[PAYLOAD_BYTES] = {7};
    struct ph__frame_key *sender, *receiver;
    assert_ok(ph__frame_key_create(bytes, &sender));
    assert_ok(ph__frame_key_create(bytes, &receiver));
    for (int frame = 0; frame < 20; frame++) {
        unsigned char tag[PH_FRAME_TAG_BYTES];
        count_allocations(true);
        const ph_status made = ph__frame_mac(sender, header, HEADER_BYTES, payload, PAYLOAD_BYTES, tag);
        const ph_status checked = check(receiver, header, payload, tag);
        count_allocations(false);
        assert_ok(made);
        assert_ok(checked);
    }
    assert_int_equal(num_allocations(ALLOCATOR_OURS), 0);
    ph__frame_key_destroy(sender);
    ph__frame_key_destroy(receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_allocates_nothing),
        cmocka_unit_test(a_frame_allocates_nothing),
    };
    if (!allocations_are_counted())
        test_skip("a sanitizer owns malloc: allocations cannot be counted");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
