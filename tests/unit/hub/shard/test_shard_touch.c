/* First touch: afterwards all pages of a shard's chunks are there, of nobody else's, and hold what they held.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "hub/shard/shard.h"
#include "support/test_support.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define NUM_CHUNKS 24u

struct trial {
    struct ph__layout *layout;
    struct ph__job_memory *memory;
    struct ph__shard_job job;
    struct ph__shard *shard;
    uint16_t core_of_chunk[NUM_CHUNKS];
    struct ph__chunk_lists chunks_of_core;
    uint32_t optimizer_of_key[1];
    struct ph_hub_optimizer optimizer;
    int num_touched; /* calls of the callback */
};

static void touched(void *context)
{
    ((struct trial *)context)->num_touched++;
}

/* Every third chunk is another shard's. */
static void begin(struct trial *trial)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    *trial =
        (struct trial){.optimizer = {.rule.kind = PH_MOMENTUM, .learning_rate = 1, .rule.momentum = .5F}};
    const struct ph__layout_key key = {
        .num_elements = NUM_CHUNKS * CHUNK_BYTES / sizeof(float), .dtype = PH_F32};
    assert_ok(ph__layout_create(&key, 1, CHUNK_BYTES, &trial->layout));
    const struct ph__job_memory_options options = {
        .layout = trial->layout, .num_workers = 1, .depth = 1, .num_versions = 1, .has_m = true};
    assert_ok(ph__job_memory_create(&options, &trial->memory));
    const struct ph__worker_region_sizes sizes = {.num_cores = 2,
        .ring_capacity = 64,
        .gradient_bytes = trial->layout->sizes.gradient_bytes,
        .depth = 1};
    assert_ok(ph__job_memory_add_worker(trial->memory, 0, true, &sizes));
    for (uint32_t chunk = 0; chunk < NUM_CHUNKS; chunk++)
        trial->core_of_chunk[chunk] = chunk % 3 == 1;
    assert_ok(ph__chunk_lists_init(&trial->chunks_of_core, trial->core_of_chunk, NUM_CHUNKS, 2));
    trial->job = (struct ph__shard_job){.kernels = ph__kernels_for(isa),
        .memory = trial->memory,
        .core_of_chunk = trial->core_of_chunk,
        .chunks_of_core = &trial->chunks_of_core,
        .service = {.num_workers = 1, .depth = 1, .optimizers = &trial->optimizer, .num_optimizers = 1},
        .optimizer_of_key = trial->optimizer_of_key};
    const struct ph__shard_callbacks callbacks = {.context = trial, .touched = touched};
    assert_ok(ph__shard_create(&trial->job, 0, &callbacks, &trial->shard));
}

static void end(struct trial *trial)
{
    ph__shard_destroy(trial->shard);
    ph__job_memory_destroy(trial->memory);
    ph__layout_destroy(trial->layout);
    ph__chunk_lists_fini(&trial->chunks_of_core);
}

static size_t count_runs(struct trial *trial, size_t max_bytes)
{
    size_t num_runs = 0, bytes;
    for (int num_before = trial->num_touched; trial->num_touched == num_before; num_runs++)
        ph__shard_run(trial->shard, max_bytes, &bytes);
    return num_runs;
}

/* The pages that lie inside of a chunk's part of an array, wherever this begins. */
static bool is_there(const void *array, size_t offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = CHUNK_BYTES - 2 * page;
    const uintptr_t begin = ((uintptr_t)array + offset + page - 1) / page * page;
    unsigned char pages[CHUNK_BYTES / 1024];
    assert_int_equal(mincore((void *)begin, size, pages), 0);
    bool is_all = true;
    for (size_t i = 0; i < size / page; i++)
        is_all &= (pages[i] & 1) != 0;
    return is_all;
}

static void a_shard_touches_all_of_its_chunks(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    ph__shard_begin_touch(trial.shard);
    count_runs(&trial, SIZE_MAX);
    for (uint32_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
        const size_t offset = trial.layout->chunks[chunk].gradient_offset;
        if (trial.core_of_chunk[chunk] != 0)
            continue;
        assert_true(is_there(trial.memory->weights[0], offset));
        assert_true(is_there(trial.memory->m, offset));
    }
    assert_int_equal(trial.num_touched, 1);
    end(&trial);
}

/* A file of small pages, as the worker's region is where its pages are not large: the other shard's are not
 * touched. */
static void and_of_no_others(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    const struct ph__region *region = &trial.memory->workers[0].region;
    madvise(region->memory, region->size, MADV_NOHUGEPAGE);
    ph__shard_begin_touch(trial.shard);
    count_runs(&trial, SIZE_MAX);
    for (uint32_t chunk = 0; chunk < NUM_CHUNKS; chunk++) {
        const size_t offset = trial.layout->chunks[chunk].gradient_offset;
        assert_int_equal(
            is_there(trial.memory->workers[0].gradients[0], offset), trial.core_of_chunk[chunk] == 0);
    }
    end(&trial);
}

static void touching_changes_nothing(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    const size_t count = trial.layout->sizes.num_weights;
    for (size_t i = 0; i < count; i++)
        trial.memory->weights[0][i] = (float)i;
    ph__shard_begin_touch(trial.shard);
    count_runs(&trial, SIZE_MAX);
    for (size_t i = 0; i < count; i++)
        assert_true(trial.memory->weights[0][i] == (float)i);
    end(&trial);
}

/* 16 chunks of three arrays of 64 KiB: 3 MiB in all. */
static void it_is_done_in_turns(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    size_t bytes;
    ph__shard_begin_touch(trial.shard);
    assert_int_equal(ph__shard_run(trial.shard, 0, &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_true(ph__shard_run(trial.shard, CHUNK_BYTES, &bytes) > 0);
    assert_int_equal(bytes, 2 * CHUNK_BYTES); /* what the job has of a chunk */
    assert_true(ph__shard_run(trial.shard, 1, &bytes) > 0);
    assert_true(bytes >= CHUNK_BYTES); /* what its worker has, in pages of any size */
    assert_true(count_runs(&trial, SIZE_MAX) >= 7);
    ph__shard_run(trial.shard, SIZE_MAX, &bytes);
    assert_int_equal(bytes, 0);
    assert_int_equal(trial.num_touched, 1);
    end(&trial);
}

/* Its thread must not sleep over it. */
static void a_shard_that_touches_does_not_let_its_thread_sleep(void **state)
{
    (void)state;
    struct trial trial;
    begin(&trial);
    ph__shard_begin_touch(trial.shard);
    assert_false(ph__shard_begin_sleep(trial.shard));
    ph__shard_end_sleep(trial.shard);
    count_runs(&trial, SIZE_MAX);
    assert_true(ph__shard_begin_sleep(trial.shard));
    ph__shard_end_sleep(trial.shard);
    end(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_touches_all_of_its_chunks),
        cmocka_unit_test(and_of_no_others),
        cmocka_unit_test(touching_changes_nothing),
        cmocka_unit_test(it_is_done_in_turns),
        cmocka_unit_test(a_shard_that_touches_does_not_let_its_thread_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
