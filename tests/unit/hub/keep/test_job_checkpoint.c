#include "support/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/rng.h"
#include "hub/keep/job_checkpoint.h"
#include "store/safetensors.h"

/* Every setting is another than its default, and no two are alike. */
static const struct ph_hub_optimizer optimizers[] = {
    {.rule.kind = PH_MOMENTUM,
        .rule.is_nesterov = true,
        .learning_rate = .1F,
        .rule.momentum = .9F,
        .l2 = 1e-3F,
        .rule.beta1 = .01F,
        .rule.beta2 = .02F,
        .rule.epsilon = .03F,
        .rule.weight_decay = .04F},
    {.rule.kind = PH_ADAMW,
        .learning_rate = 1e-30F,
        .rule.beta1 = .91F,
        .rule.beta2 = .9991F,
        .rule.epsilon = 1e-7F,
        .rule.weight_decay = .013F},
    {.rule.kind = PH_ADAGRAD, .learning_rate = .07F, .rule.epsilon = 1e-9F},
    {.is_none = true},
};
static const struct ph__init_key keys[] = {{5, PH_F32, 0}, {40, PH_BF16, 1}, {1, PH_F16, 2}, {17, PH_F32, 3}};
enum { NUM_OPTIMIZERS = 4, NUM_KEYS = 4, CHUNK_BYTES = 64 };

/* They point into themselves: not to be copied. */
static void make_settings(enum ph_hub_mode mode, struct ph__service_settings *settings_out)
{
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "click model / 7",
        .nonce = 0xfedcba9876543210u,
        .num_workers = 3,
        .mode = mode,
        .staleness = 5,
        .order = PH_HUB_ARRIVAL_ORDER,
        .on_death = PH_HUB_SHRINK,
        .is_mean = true,
        .clip_norm = mode == PH_HUB_SYNCHRONOUS ? 1.75F : 0,
        .chunk_bytes = CHUNK_BYTES,
        .depth = 2,
        .checkpoint_every = 1000000007,
        .optimizers = optimizers,
        .num_optimizers = NUM_OPTIMIZERS};
    assert_ok(ph__service_check(&service));
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, settings_out);
}

static void fill(struct ph__rng_sequence *chances, float *numbers, size_t count)
{
    for (size_t i = 0; numbers != NULL && i < count; i++)
        numbers[i] = (float)(ph__rng_next_uniform(chances) - .5) * 1e-20F;
}

/* As shards leave it: chance numbers, the same version everywhere. */
static struct ph__snapshot *make_snapshot(enum ph_hub_mode mode, uint64_t version)
{
    struct ph__rng_sequence chances = {.key = {.seed = test_seed()}};
    struct ph__service_settings of_job;
    make_settings(mode, &of_job);
    struct ph__snapshot *snapshot;
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &snapshot));
    const struct ph__layout_sizes *sizes = &snapshot->layout->sizes;
    fill(&chances, snapshot->weights, sizes->num_weights);
    fill(&chances, snapshot->m, sizes->num_weights);
    fill(&chances, snapshot->s, sizes->num_weights);
    for (size_t i = 0; i < sizes->num_chunks; i++)
        snapshot->chunks[i] = (struct ph__snapshot_chunk){
            version, .125F * (float)(1 + keys[snapshot->layout->chunks[i].key].optimizer) + 1e-8F};
    ph__snapshot_finish(snapshot);
    return snapshot;
}

static void assert_same_numbers(
    const struct ph__snapshot *snapshot, const float *actual, const float *expected, bool (*is_kept)(size_t))
{
    for (size_t key = 0; key < NUM_KEYS; key++) {
        const struct ph__key_place *place = &snapshot->layout->keys[key];
        if (is_kept(key))
            assert_memory_equal(actual + place->first_weight, expected + place->first_weight,
                place->num_elements * sizeof(float));
    }
}

static bool is_any(size_t key)
{
    (void)key;
    return true;
}

static bool has_m(size_t key)
{
    return key == 0 || key == 1;
}

static bool has_s(size_t key)
{
    return key == 1 || key == 2;
}

static void what_was_written_is_read_back(void **state)
{
    (void)state;
    const char *path = test_path("job.safetensors");
    struct ph__snapshot *written = make_snapshot(PH_HUB_SYNCHRONOUS, 70000000003), *read;
    struct ph__service_settings of_job;
    make_settings(PH_HUB_SYNCHRONOUS, &of_job);
    assert_ok(ph__job_checkpoint_write(path, written));
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &read));
    assert_ok(ph__job_checkpoint_read(path, read));
    assert_int_equal(read->iteration, 70000000003);
    assert_same_numbers(read, read->weights, written->weights, is_any);
    assert_same_numbers(read, read->m, written->m, has_m);
    assert_same_numbers(read, read->s, written->s, has_s);
    assert_memory_equal(read->learning_rates, written->learning_rates, sizeof read->learning_rates);
    for (size_t i = 0; i < read->layout->sizes.num_chunks; i++)
        assert_int_equal(read->chunks[i].version, 70000000003);
    ph__snapshot_destroy(read);
    ph__snapshot_destroy(written);
}

static void assert_same_optimizer(const struct ph_hub_optimizer *a, const struct ph_hub_optimizer *b)
{
    const double numbers[][7] = {{a->learning_rate, a->rule.momentum, a->rule.beta1, a->rule.beta2,
                                     a->rule.epsilon, a->l2, a->rule.weight_decay},
        {b->learning_rate, b->rule.momentum, b->rule.beta1, b->rule.beta2, b->rule.epsilon, b->l2,
            b->rule.weight_decay}};
    assert_int_equal(a->is_none, b->is_none);
    assert_int_equal(a->rule.kind, b->rule.kind);
    assert_int_equal(a->rule.is_nesterov, b->rule.is_nesterov);
    assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
}

static void the_head_has_every_setting(void **state)
{
    (void)state;
    const char *path = test_path("head.safetensors");
    struct ph__service_settings wanted;
    make_settings(PH_HUB_SYNCHRONOUS, &wanted);
    struct ph__snapshot *written = make_snapshot(PH_HUB_SYNCHRONOUS, 12);
    struct ph__job_checkpoint_head head;
    assert_ok(ph__job_checkpoint_write(path, written));
    ph__snapshot_destroy(written);
    assert_ok(ph__job_checkpoint_read_head(path, &head));
    const struct ph_hub_service *service = &head.settings.service, *other = &wanted.service;
    assert_string_equal(service->name, other->name);
    assert_int_equal(service->nonce, other->nonce);
    assert_int_equal(service->num_workers, other->num_workers);
    assert_int_equal(service->mode, other->mode);
    assert_int_equal(service->staleness, other->staleness);
    assert_int_equal(service->order, other->order);
    assert_int_equal(service->on_death, other->on_death);
    assert_int_equal(service->is_mean, other->is_mean);
    assert_memory_equal(&service->clip_norm, &other->clip_norm, sizeof(float));
    assert_int_equal(service->chunk_bytes, other->chunk_bytes);
    assert_int_equal(service->depth, other->depth);
    assert_int_equal(service->checkpoint_every, other->checkpoint_every);
    assert_int_equal(service->num_optimizers, NUM_OPTIMIZERS);
    for (size_t i = 0; i < NUM_OPTIMIZERS; i++)
        assert_same_optimizer(&service->optimizers[i], &wanted.service.optimizers[i]);
    assert_ptr_equal(service->optimizers, head.settings.optimizers);
    assert_int_equal(head.iteration, 12);
    assert_int_equal(head.chunk_bytes, CHUNK_BYTES);
    assert_int_equal(head.num_keys, NUM_KEYS);
    const float rate = .25F + 1e-8F; /* as changed, beside the settings' own */
    assert_memory_equal(&head.learning_rates[1], &rate, sizeof rate);
}

static void a_service_that_has_not_begun_has_settings_alone(void **state)
{
    (void)state;
    const char *path = test_path("new.safetensors");
    struct ph__service_settings of_job;
    make_settings(PH_HUB_BOUNDED, &of_job);
    struct ph__job_checkpoint_head head;
    struct ph__snapshot *snapshot;
    assert_ok(ph__snapshot_create(&of_job, NULL, 0, 0, &snapshot));
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    assert_ok(ph__job_checkpoint_read_head(path, &head));
    assert_int_equal(head.num_keys, 0);
    assert_int_equal(head.settings.service.mode, PH_HUB_BOUNDED);
    assert_memory_equal(&head.learning_rates[0], &optimizers[0].learning_rate, sizeof(float));
}

/* What each worker has done at least, of chunks that stand differently. */
static void an_asynchronous_job_goes_on_from_its_slowest_chunk(void **state)
{
    (void)state;
    const char *path = test_path("asynchronous.safetensors");
    struct ph__snapshot *snapshot = make_snapshot(PH_HUB_ASYNCHRONOUS, 31), *read;
    struct ph__service_settings of_job;
    make_settings(PH_HUB_ASYNCHRONOUS, &of_job);
    snapshot->chunks[2].version = 23;
    ph__snapshot_finish(snapshot);
    assert_int_equal(snapshot->iteration, 7); /* 23 updates of three workers */
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &read));
    assert_ok(ph__job_checkpoint_read(path, read));
    assert_int_equal(read->iteration, 7);
    assert_int_equal(read->chunks[2].version, 23);
    assert_int_equal(read->chunks[1].version, 31);
    ph__snapshot_destroy(read);
}

/* ---- damage ---- */

static ph_status read_whole(const char *path)
{
    struct ph__service_settings of_job;
    make_settings(PH_HUB_SYNCHRONOUS, &of_job);
    struct ph__snapshot *snapshot;
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &snapshot));
    const ph_status status = ph__job_checkpoint_read(path, snapshot);
    ph__snapshot_destroy(snapshot);
    return status;
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static char *read_bytes(struct ph__arena *arena, const char *path, size_t *size_out)
{
    char *bytes;
    assert_ok(ph__file_read(arena, path, 1 << 20, &bytes, size_out));
    return bytes;
}

static void any_damage_is_found(void **state)
{
    (void)state;
    const char *path = test_path("damaged.safetensors");
    struct ph__snapshot *snapshot = make_snapshot(PH_HUB_SYNCHRONOUS, 9);
    struct ph__arena arena = {0};
    size_t size;
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    char *bytes = read_bytes(&arena, path, &size);
    assert_ok(read_whole(path));
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < size; i++) {
        const char damaged = (char)(bytes[i] ^ 1 << i % 7);
        assert_int_equal(pwrite(file, &damaged, 1, (off_t)i), 1);
        const ph_status status = read_whole(path);
        if (status != PH_ERROR_CHECKPOINT)
            fail_msg("byte %zu of %zu: %d %s", i, size, status, ph_error_text());
        assert_int_equal(pwrite(file, &bytes[i], 1, (off_t)i), 1);
    }
    close(file);
    for (size_t cut = 0; cut < size; cut += 13) {
        write_bytes(path, bytes, cut);
        assert_int_equal(read_whole(path), PH_ERROR_CHECKPOINT);
    }
    ph__arena_fini(&arena);
}

/* Damage to the settings shows before the parameters are read. */
static void the_metadata_have_a_checksum_of_their_own(void **state)
{
    (void)state;
    const char *path = test_path("metadata.safetensors");
    struct ph__snapshot *snapshot = make_snapshot(PH_HUB_SYNCHRONOUS, 9);
    struct ph__job_checkpoint_head head;
    struct ph__arena arena = {0};
    size_t size;
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    char *bytes = read_bytes(&arena, path, &size);
    char *digit = memmem(bytes, size, "\"service\":\"", 11);
    assert_non_null(digit);
    digit[25] = digit[25] == '0' ? '1' : '0';
    write_bytes(path, bytes, size);
    assert_fails(ph__job_checkpoint_read_head(path, &head), PH_ERROR_CHECKPOINT, "checksum");
    ph__arena_fini(&arena);
}

/* The text between the quotes behind `"name":"`. */
static char *find_text(const char *bytes, size_t size, const char *name, char *text_out)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
    char *place = memmem(bytes, size, quoted, strlen(quoted));
    assert_non_null(place);
    place += strlen(quoted);
    const size_t length = strcspn(place, "\"");
    memcpy(text_out, place, length);
    text_out[length] = '\0';
    return place;
}

static void chunks_that_no_hub_makes_are_refused(void **state)
{
    (void)state;
    static const char *const sizes[] = {"40000001", "21000000"}; /* 16 MiB and 64 bytes; 33 */
    const char *path = test_path("chunks.safetensors");
    struct ph__snapshot *snapshot = make_snapshot(PH_HUB_SYNCHRONOUS, 9);
    struct ph__job_checkpoint_head head;
    struct ph__arena arena = {0};
    char service[4096], of_keys[4096], progress[4096], sum[17];
    size_t size;
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    char *bytes = read_bytes(&arena, path, &size);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        find_text(bytes, size, "service", service);
        find_text(bytes, size, "keys", of_keys);
        memcpy(find_text(bytes, size, "progress", progress) + 16, sizes[i], 8); /* behind the iteration */
        find_text(bytes, size, "progress", progress);
        char *of_file = find_text(bytes, size, "sum", sum);
        ph__job_checkpoint_sum(service, of_keys, progress, sum);
        memcpy(of_file, sum, 16);
        write_bytes(path, bytes, size);
        assert_fails(ph__job_checkpoint_read_head(path, &head), PH_ERROR_CHECKPOINT, "chunks of");
    }
    ph__arena_fini(&arena);
}

static void other_files_and_other_jobs_are_refused(void **state)
{
    (void)state;
    const char *foreign = test_path("foreign.safetensors"), *path = test_path("other.safetensors");
    struct ph__job_checkpoint_head head;
    float number = 1;
    const struct ph_tensor tensor = {
        .name = "w", .dtype = PH_F32, .shape = {.num_dims = 1, .dims = {1}}, .data = &number};
    assert_ok(ph__safetensors_write(foreign, 1, &tensor, NULL));
    assert_fails(ph__job_checkpoint_read_head(foreign, &head), PH_ERROR_CHECKPOINT, "not the checkpoint");

    struct ph__snapshot *snapshot = make_snapshot(PH_HUB_SYNCHRONOUS, 9), *other;
    struct ph__service_settings of_job;
    make_settings(PH_HUB_SYNCHRONOUS, &of_job);
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS - 1, CHUNK_BYTES, &other));
    assert_fails(ph__job_checkpoint_read(path, other), PH_ERROR_CHECKPOINT, "other keys");
    ph__snapshot_destroy(other);
    of_job.service.nonce++;
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &other));
    assert_fails(ph__job_checkpoint_read(path, other), PH_ERROR_CHECKPOINT, "other settings");
    ph__snapshot_destroy(other);
}

static void the_part_of_another_hub_is_refused(void **state)
{
    (void)state;
    static const struct ph__hub_share shares[] = {{0, 2}, {2, 3}, {1, 2}};
    const char *path = test_path("part.safetensors");
    struct ph__service_settings of_job;
    struct ph__job_checkpoint_head head;
    struct ph__snapshot *part, *other;
    make_settings(PH_HUB_ASYNCHRONOUS, &of_job);
    of_job.share = shares[2];
    assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &part));
    assert_ok(ph__job_checkpoint_write(path, part));
    assert_ok(ph__job_checkpoint_read(path, part));
    ph__snapshot_destroy(part);
    assert_ok(ph__job_checkpoint_read_head(path, &head));
    assert_memory_equal(&head.settings.share, &shares[2], sizeof *shares);
    for (size_t i = 0; i < 2; i++) {
        of_job.share = shares[i];
        assert_ok(ph__snapshot_create(&of_job, keys, NUM_KEYS, CHUNK_BYTES, &other));
        assert_fails(ph__job_checkpoint_read(path, other), PH_ERROR_CHECKPOINT, "the part of hub 2 of 2");
        ph__snapshot_destroy(other);
    }
}

/* ---- names ---- */

static void assert_path(const char *service, const char *wanted)
{
    char *path;
    assert_ok(ph__job_checkpoint_path("folder", service, &path));
    assert_string_equal(path, wanted);
    free(path);
}

static void a_name_is_one_file_of_the_folder(void **state)
{
    (void)state;
    char longest[PH_HUB_MAX_NAME + 1] = "", other[PH_HUB_MAX_NAME + 1], *path, *other_path;
    assert_path("model-7.b_x", "folder/model-7.b_x.safetensors");
    assert_path("../etc/passwd", "folder/%2e.%2fetc%2fpasswd.safetensors");
    assert_path("50% ~ x", "folder/50%25%20%7e%20x.safetensors");
    assert_path("caf\xc3\xa9", "folder/caf\xc3\xa9.safetensors");
    memset(longest, '/', PH_HUB_MAX_NAME);
    strcpy(other, longest);
    other[PH_HUB_MAX_NAME - 1] = ' ';
    assert_ok(ph__job_checkpoint_path("folder", longest, &path));
    assert_ok(ph__job_checkpoint_path("folder", other, &other_path));
    assert_string_not_equal(path, other_path);
    assert_true(strlen(path) - strlen("folder/") + strlen(".tmp") < 255);
    free(path);
    free(other_path);
}

/* So that a quota can be asked before anything is made. */
static void a_snapshot_takes_what_was_measured(void **state)
{
    (void)state;
    struct ph__service_settings settings;
    struct ph__snapshot *snapshot;
    size_t bytes;
    make_settings(PH_HUB_SYNCHRONOUS, &settings);
    assert_ok(ph__snapshot_create(&settings, keys, NUM_KEYS, CHUNK_BYTES, &snapshot));
    assert_ok(ph__snapshot_measure(&settings, keys, NUM_KEYS, CHUNK_BYTES, &bytes));
    assert_int_equal(bytes, snapshot->num_bytes);
    ph__snapshot_destroy(snapshot);
    settings.share = (struct ph__hub_share){.hub = 1, .num_hubs = 2};
    assert_ok(ph__snapshot_create(&settings, keys, NUM_KEYS, CHUNK_BYTES, &snapshot));
    assert_ok(ph__snapshot_measure(&settings, keys, NUM_KEYS, CHUNK_BYTES, &bytes));
    assert_true(bytes > 0 && bytes < snapshot->num_bytes);
    ph__snapshot_destroy(snapshot);
    const struct ph__init_key large = {.num_elements = (size_t)1 << 24, .dtype = PH_F32};
    settings.share = (struct ph__hub_share){.num_hubs = 1};
    assert_ok(ph__snapshot_measure(&settings, &large, 1, CHUNK_BYTES, &bytes));
    assert_true(bytes > 3 * large.num_elements * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(the_head_has_every_setting),
        cmocka_unit_test(a_service_that_has_not_begun_has_settings_alone),
        cmocka_unit_test(an_asynchronous_job_goes_on_from_its_slowest_chunk),
        cmocka_unit_test(any_damage_is_found),
        cmocka_unit_test(the_metadata_have_a_checksum_of_their_own),
        cmocka_unit_test(chunks_that_no_hub_makes_are_refused),
        cmocka_unit_test(other_files_and_other_jobs_are_refused),
        cmocka_unit_test(the_part_of_another_hub_is_refused),
        cmocka_unit_test(a_name_is_one_file_of_the_folder),
        cmocka_unit_test(a_snapshot_takes_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
