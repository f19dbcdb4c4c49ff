/* Snapshots of a shard's chunks: of one version, whoever comes to it when, and of now; and the way back. */
#include <string.h>

#include "base/thread/cpu.h"
#include "hub/keep/snapshot.h"
#include "support/shard_walk.h"
#include "support/test_support.h"

enum { NUM_WORKERS = 2, MAX_KEYS = 8 };

/* A shard on trial, the snapshot that it fills, and another that the test fills itself. */
struct trial {
    struct shard_trial *shard;
    struct ph__snapshot *got, *wanted;
    uint32_t num_chunks;
};

static struct ph__snapshot *make_snapshot(const struct trial_job *job)
{
    struct ph__init_key keys[MAX_KEYS];
    struct ph__service_settings settings;
    struct ph__snapshot *snapshot;
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "trial",
        .num_workers = NUM_WORKERS,
        .optimizers = job->optimizers,
        .num_optimizers = job->num_optimizers};
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    for (size_t i = 0; i < job->num_keys; i++)
        keys[i] =
            (struct ph__init_key){job->keys[i].num_elements, job->keys[i].dtype, job->keys[i].optimizer};
    assert_ok(ph__snapshot_create(&settings, keys, job->num_keys, job->chunk_bytes, &snapshot));
    return snapshot;
}

static void begin(struct trial *trial, enum trial_transport transport, bool is_lawless)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    struct shard_trial_options options = {
        .job = shard_walk_job(ph__kernels_for(isa), walk_optimizers, WALK_NUM_OPTIMIZERS, test_seed()),
        .mode = PH_HUB_SYNCHRONOUS,
        .num_workers = NUM_WORKERS,
        .depth = 1,
        .num_shards = 1,
        .is_lawless = is_lawless};
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        options.transports[worker] = transport;
    *trial = (struct trial){.shard = shard_trial_create(&options),
        .got = make_snapshot(&options.job),
        .wanted = make_snapshot(&options.job)};
    trial->num_chunks = (uint32_t)trial->got->layout->sizes.num_chunks;
}

static void end(struct trial *trial)
{
    shard_trial_destroy(trial->shard);
    ph__snapshot_destroy(trial->got);
    ph__snapshot_destroy(trial->wanted);
}

static uint64_t version_of(const struct trial *trial, uint32_t chunk)
{
    return trial->shard->memory.chunks[chunk].version;
}

/* All workers push the chunk; it is on its way. */
static void push(struct trial *trial, uint32_t chunk)
{
    for (uint32_t worker = 0; worker < NUM_WORKERS; worker++)
        shard_trial_push(trial->shard, worker, chunk, PH_HUB_PUSHPULL);
}

static void update(struct trial *trial, uint32_t chunk)
{
    push(trial, chunk);
    shard_trial_settle(trial->shard);
}

/* What each chunk has had at its version must stay the snapshot's: weights by the oracle, slots as they are
 * now. */
static void want(struct trial *trial, uint32_t chunk)
{
    const struct ph__job_memory *memory = &trial->shard->memory;
    const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
    const size_t at = place->first_weight, size = place->num_elements * sizeof(float);
    const uint32_t optimizer = trial->shard->optimizer_of_key[place->key];
    memcpy(trial->wanted->weights + at, shard_oracle_weights(trial->shard->oracle, chunk), size);
    memcpy(trial->wanted->m + at, memory->m + at, size);
    memcpy(trial->wanted->s + at, memory->s + at, size);
    trial->wanted->chunks[chunk] =
        (struct ph__snapshot_chunk){version_of(trial, chunk), trial->shard->learning_rates[0][optimizer]};
}

static void check_snapshot(const struct trial *trial)
{
    for (uint32_t chunk = 0; chunk < trial->num_chunks; chunk++) {
        const struct ph__chunk_place *place = &trial->got->layout->chunks[chunk];
        const size_t at = place->first_weight, size = place->num_elements * sizeof(float);
        assert_int_equal(trial->got->chunks[chunk].version, trial->wanted->chunks[chunk].version);
        assert_true(trial->got->chunks[chunk].learning_rate == trial->wanted->chunks[chunk].learning_rate);
        assert_memory_equal(trial->got->weights + at, trial->wanted->weights + at, size);
        assert_memory_equal(trial->got->m + at, trial->wanted->m + at, size);
        assert_memory_equal(trial->got->s + at, trial->wanted->s + at, size);
    }
}

static void set_learning_rates(struct trial *trial, float rate)
{
    for (uint32_t i = 0; i < WALK_NUM_OPTIMIZERS; i++)
        shard_trial_set_learning_rate(trial->shard, i, rate / (float)(i + 1));
}

static void on_each_transport(void (*test)(struct trial *trial))
{
    for (int transport = TRIAL_SHARED; transport <= TRIAL_PAYLOADS; transport++) {
        struct trial trial;
        begin(&trial, (enum trial_transport)transport, false);
        test(&trial);
        end(&trial);
    }
}

/* ---- of one version ---- */

/* The first chunks have come to it, the others come later, and on: each is copied as it was. */
static void copy_version_one(struct trial *trial)
{
    const uint32_t half = trial->num_chunks / 2;
    for (uint32_t chunk = 0; chunk < half; chunk++) {
        update(trial, chunk);
        want(trial, chunk);
    }
    ph__shard_begin_snapshot(trial->shard->shards[0], trial->got, 1);
    shard_trial_settle(trial->shard);
    for (uint32_t chunk = half; chunk < trial->num_chunks; chunk++) {
        assert_int_equal(trial->shard->num_copied, 0);
        update(trial, chunk);
        want(trial, chunk);
    }
    assert_int_equal(trial->shard->num_copied, 1);
    for (uint32_t chunk = 0; chunk < trial->num_chunks; chunk++)
        update(trial, chunk);
    assert_int_equal(trial->shard->num_copied, 1);
    check_snapshot(trial);
}

static void chunks_are_copied_when_they_come_to_the_version(void **state)
{
    (void)state;
    on_each_transport(copy_version_one);
}

/* Their next updates are work to do already when the snapshot begins, so that these come before the copies.
 */
static void copy_before_updates(struct trial *trial)
{
    for (uint32_t chunk = 0; chunk < trial->num_chunks; chunk++) {
        update(trial, chunk);
        want(trial, chunk);
    }
    set_learning_rates(trial, .03125F);
    for (uint32_t chunk = 0; chunk < trial->num_chunks; chunk++)
        push(trial, chunk);
    shard_trial_run(trial->shard, 0, 0);
    assert_int_equal(version_of(trial, 0), 1);
    ph__shard_begin_snapshot(trial->shard->shards[0], trial->got, 1);
    shard_trial_run(trial->shard, 0, 1);
    assert_int_equal(version_of(trial, 0), 2);
    assert_int_equal(trial->got->chunks[0].version, 1);
    assert_int_equal(trial->shard->num_copied, 0);
    shard_trial_settle(trial->shard);
    assert_int_equal(trial->shard->num_copied, 1);
    check_snapshot(trial);
}

static void a_chunk_is_copied_before_its_next_update(void **state)
{
    (void)state;
    on_each_transport(copy_before_updates);
}

/* ---- of now ---- */

static void copy_now(struct trial *trial)
{
    for (uint32_t chunk = 0; chunk < trial->num_chunks; chunk++) {
        for (uint32_t i = 0; i < chunk % 3; i++)
            update(trial, chunk);
        want(trial, chunk);
    }
    set_learning_rates(trial, .0625F);
    push(trial, 1);
    push(trial, 2);
    shard_trial_run(trial->shard, 0, 0);
    ph__shard_begin_snapshot(trial->shard->shards[0], trial->got, PH_SNAPSHOT_NOW);
    shard_trial_settle(trial->shard);
    assert_int_equal(trial->shard->num_copied, 1);
    assert_int_equal(version_of(trial, 1), 2);
    assert_int_equal(version_of(trial, 2), 3);
    check_snapshot(trial);
}

static void chunks_are_copied_as_they_are_now(void **state)
{
    (void)state;
    on_each_transport(copy_now);
}

/* ---- looking at versions ---- */

static void what_is_held_updates_nothing(void **state)
{
    (void)state;
    struct trial trial;
    uint64_t least, most;
    begin(&trial, TRIAL_SHARED, false);
    update(&trial, 3);
    update(&trial, 3);
    for (uint32_t chunk = 0; chunk < trial.num_chunks; chunk++)
        push(&trial, chunk);
    ph__shard_hold(trial.shard->shards[0]);
    for (size_t i = 0; i < 3; i++)
        shard_trial_run(trial.shard, 0, SIZE_MAX);
    ph__shard_versions(trial.shard->shards[0], &least, &most);
    assert_int_equal(least, 0);
    assert_int_equal(most, 2);
    ph__shard_release(trial.shard->shards[0]);
    shard_trial_settle(trial.shard);
    ph__shard_versions(trial.shard->shards[0], &least, &most);
    assert_int_equal(least, 1);
    assert_int_equal(most, 3);
    end(&trial);
}

static void a_version_is_told_of_once_when_the_first_chunk_reaches_it(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial, TRIAL_SHARED, false);
    ph__shard_watch(trial.shard->shards[0], 2);
    for (uint32_t chunk = 0; chunk < trial.num_chunks; chunk++)
        update(&trial, chunk);
    assert_int_equal(trial.shard->num_reached, 0);
    update(&trial, 5);
    assert_int_equal(trial.shard->num_reached, 1);
    for (uint32_t chunk = 0; chunk < trial.num_chunks; chunk++)
        update(&trial, chunk);
    assert_int_equal(trial.shard->num_reached, 1);
    assert_int_equal(trial.shard->num_copied, 0);
    end(&trial);
}

/* ---- the way back ---- */

/* A shard that has done nothing yet, and a snapshot of another's: results are those that the other's workers
 * had. */
static void restore_into(struct trial *to, const struct trial *from)
{
    struct ph__job_memory *memory = &to->shard->memory;
    for (uint32_t chunk = 0; chunk < to->num_chunks; chunk++)
        memory->chunks[chunk].version = from->got->chunks[chunk].version;
    ph__shard_begin_restore(to->shard->shards[0], from->got);
    assert_int_equal(to->shard->num_copied, 0);
    shard_trial_settle(to->shard);
    assert_int_equal(to->shard->num_copied, 1);
    for (uint32_t chunk = 0; chunk < to->num_chunks; chunk++) {
        const struct ph__chunk_place *place = &memory->layout->chunks[chunk];
        const uint64_t version = from->got->chunks[chunk].version;
        const size_t copy = version % memory->num_versions, at = place->first_weight;
        const size_t size = place->num_elements * sizeof(float);
        assert_memory_equal(memory->weights[copy] + at, from->wanted->weights + at, size);
        assert_memory_equal(memory->m + at, from->wanted->m + at, size);
        assert_memory_equal(memory->s + at, from->wanted->s + at, size);
        assert_true(memory->chunks[chunk].learning_rate == from->wanted->chunks[chunk].learning_rate);
        assert_true(shard_oracle_is(
            from->shard->oracle, chunk, version, memory->results[copy] + place->gradient_offset));
    }
}

static void restore(struct trial *from)
{
    struct trial to;
    copy_now(from);
    begin(&to, from->shard->options.transports[0], true);
    restore_into(&to, from);
    end(&to);
}

static void a_shard_goes_on_from_what_was_copied(void **state)
{
    (void)state;
    on_each_transport(restore);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_copied_when_they_come_to_the_version),
        cmocka_unit_test(a_chunk_is_copied_before_its_next_update),
        cmocka_unit_test(chunks_are_copied_as_they_are_now),
        cmocka_unit_test(what_is_held_updates_nothing),
        cmocka_unit_test(a_version_is_told_of_once_when_the_first_chunk_reaches_it),
        cmocka_unit_test(a_shard_goes_on_from_what_was_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
