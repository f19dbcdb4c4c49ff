/* What a hub keeps of services and jobs, what it does with files that are damaged, and how workers come back
 * to it. */
#include "support/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "hub/kept_job.h"

/* ---- services ---- */

static ph_status create(const struct hub_thread *hub, const char *name, uint64_t nonce, uint32_t num_workers)
{
    const struct ph_hub_service service = {.size = sizeof service,
        .name = name,
        .nonce = nonce,
        .num_workers = num_workers,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
    return ph_hub_create_service(&hub->options, &service);
}

static void a_service_survives_the_hub_before_it_begins(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const char *folder = test_fresh_folder();
    char same_folder[300];
    kept_job_begin_hub(&hub, folder);
    assert_ok(create(&hub, "a", 1, 1));
    assert_ok(create(&hub, "b", 2, 1));
    assert_ok(create(&hub, "b", 2, 1));
    assert_ok(ph_hub_destroy_service(&hub.options, "b", 2));
    assert_fails(ph_hub_connect(&hub.options, "b", 2, 0, &client), PH_ERROR_PEER, "does not exist");
    hub_thread_end(&hub);
    snprintf(same_folder, sizeof same_folder, "%s/", folder);
    kept_job_begin_hub(&hub, same_folder);
    assert_ok(ph_hub_connect(&hub.options, "a", 1, 0, &client));
    ph_hub_client_destroy(client);
    assert_ok(create(&hub, "a", 1, 1));
    assert_fails(create(&hub, "a", 1, 2), PH_ERROR_USAGE, "other settings");
    assert_fails(create(&hub, "a", 7, 1), PH_ERROR_USAGE, "another nonce");
    assert_fails(ph_hub_connect(&hub.options, "b", 2, 0, &client), PH_ERROR_PEER, "does not exist");
    assert_ok(ph_hub_destroy_service(&hub.options, "a", 1));
    assert_false(ph__file_exists(kept_job_path(folder, "a.safetensors")));
    assert_ok(create(&hub, "a", 7, 2));
    hub_thread_end(&hub);
}

static void a_period_has_a_limit(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct kept_job trial = kept_job_make(trial_momentum);
    kept_job_begin_hub(&hub, test_fresh_folder());
    trial.hub = &hub;
    trial.stop_at = 3;
    trial.service.mode = PH_HUB_ASYNCHRONOUS;
    trial.service.checkpoint_every = PH_HUB_MAX_PERIOD;
    assert_ok(kept_job_run(&trial));
    trial.service.checkpoint_every = PH_HUB_MAX_PERIOD + 1;
    assert_fails(kept_job_run(&trial), PH_ERROR_USAGE, "checkpoint_every is");
    hub_thread_end(&hub);
}

static void a_destroyed_job_begins_anew(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct kept_job trial = kept_job_make(trial_momentum);
    const char *folder = test_fresh_folder();
    kept_job_begin_hub(&hub, folder);
    trial.hub = &hub;
    trial.stop_at = 6;
    trial.is_saved = true;
    assert_ok(kept_job_run(&trial));
    assert_ok(ph_hub_destroy_service(&hub.options, "job", TRIAL_NONCE));
    assert_false(ph__file_exists(kept_job_file(folder)));
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    hub_thread_end(&hub);
}

static void other_keys_cannot_go_on(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    const char *folder = test_fresh_folder();
    kept_job_run_until(&trial, folder, 3);
    kept_job_begin_hub(&hub, folder);
    trial.hub = &hub;
    trial.dtype = PH_F16;
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "other keys");
    hub_thread_end(&hub);
}

static void without_a_folder_there_are_no_checkpoints(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    kept_job_begin_hub(&hub, NULL);
    trial.hub = &hub;
    trial.stop_at = 3;
    trial.is_saved = true;
    assert_fails(kept_job_run(&trial), PH_ERROR_USAGE, "no checkpoints");
    hub_thread_end(&hub);
}

/* ---- damage ---- */

static void flip_byte(const char *path, off_t at)
{
    char byte;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static void damaged_settings_are_told_and_left_alone(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    struct ph_hub_client *client;
    const char *folder = test_fresh_folder();
    kept_job_run_until(&trial, folder, 3);
    flip_byte(kept_job_file(folder), 300);
    kept_job_begin_hub(&hub, folder); /* it serves all the same */
    trial.hub = &hub;
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "remove that file to begin the service anew");
    assert_fails(
        ph_hub_connect(&hub.options, "job", TRIAL_NONCE, 0, &client), PH_ERROR_CHECKPOINT, "damaged");
    assert_ok(create(&hub, "another", 1, 1));
    unlink(kept_job_file(folder));
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    hub_thread_end(&hub);
}

static void damaged_parameters_are_never_used(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    const char *folder = test_fresh_folder();
    uint64_t size;
    kept_job_run_until(&trial, folder, 3);
    assert_ok(ph__file_size(kept_job_file(folder), &size));
    flip_byte(kept_job_file(folder), (off_t)size - 5);
    kept_job_begin_hub(&hub, folder);
    trial.hub = &hub;
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "job.safetensors");
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "job.safetensors");
    assert_ok(ph_hub_destroy_service(&hub.options, "job", TRIAL_NONCE));
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    hub_thread_end(&hub);
}

static void what_a_killed_hub_left_half_is_removed(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_server *second;
    const char *folder = test_fresh_folder();
    const struct ph_hub_server_options options = {
        .size = sizeof options, .checkpoint_folder = folder, .num_threads = 1};
    test_write_text(kept_job_path(folder, "x.safetensors.tmp"), "half a file");
    test_write_text(kept_job_path(folder, "notes.txt"), "somebody's");
    kept_job_begin_hub(&hub, folder);
    assert_false(ph__file_exists(kept_job_path(folder, "x.safetensors.tmp")));
    assert_true(ph__file_exists(kept_job_path(folder, "notes.txt")));
    assert_fails(ph_hub_server_create(&options, &second), PH_ERROR_CONFIG, "(hub.checkpoint_folder): ");
    hub_thread_end(&hub);
}

/* The job goes on; whoever has asked hears why there is no file. */
static void a_disk_that_fails_is_told(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct kept_job trial = kept_job_make(trial_momentum);
    const char *folder = test_fresh_folder();
    kept_job_begin_hub(&hub, folder);
    trial.hub = &hub;
    trial.stop_at = 3;
    trial.is_saved = true;
    assert_ok(kept_job_run(&trial));
    unlink(kept_job_file(folder));
    assert_int_equal(rmdir(folder), 0);
    assert_fails(create(&hub, "another", 1, 1), PH_ERROR_DISK, "cannot write");
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "cannot open"); /* its own is gone, too */
    hub_thread_end(&hub);
}

static ph_status run_with(struct kept_job *trial, uint64_t max_bytes, const char *folder)
{
    struct hub_thread hub;
    hub_thread_begin(
        &hub, (struct ph_hub_server_options){.max_bytes = max_bytes, .checkpoint_folder = folder});
    trial->hub = &hub;
    const ph_status status = kept_job_run(trial);
    hub_thread_end(&hub);
    return status;
}

static void snapshots_count_for_the_quota(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    uint64_t enough = 1 << 20;
    trial.service.chunk_bytes = 1 << 15;
    trial.stop_at = 2;
    for (uint64_t step = enough / 2; step >= 1024;
         step /= 2) { /* the least that a job without checkpoints needs */
        const ph_status status = run_with(&trial, enough - step, NULL);
        assert_true(status == PH_OK || status == PH_ERROR_MEMORY);
        enough -= status == PH_OK ? step : 0;
    }
    assert_ok(run_with(&trial, enough, NULL));
    enough += TRIAL_NUMBERS * sizeof(float); /* half of a snapshot's: it has a slot of each, too */
    assert_fails(run_with(&trial, enough, test_fresh_folder()), PH_ERROR_MEMORY, "are left for it");
}

/* ---- coming back ---- */

static ph_status connect_twice(struct test_worker *worker)
{
    const struct hub_thread *hub = worker->context;
    for (int i = 0; i < 50; i++) {
        struct ph_hub_client *client;
        PH_TRY(ph_hub_connect(&hub->options, "job", TRIAL_NONCE, 0, &client));
        ph_hub_client_destroy(client);
    }
    return PH_OK;
}

static void a_worker_that_comes_again_replaces_its_dead_self(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct test_worker worker = {.function = connect_twice, .context = &hub};
    struct ph_hub_client *client, *second;
    kept_job_begin_hub(&hub, NULL);
    assert_ok(create(&hub, "job", TRIAL_NONCE, 2));
    assert_ok(test_workers_run(&worker, 1));
    assert_ok(ph_hub_connect(&hub.options, "job", TRIAL_NONCE, 0, &client));
    assert_fails(
        ph_hub_connect(&hub.options, "job", TRIAL_NONCE, 0, &second), PH_ERROR_PEER, "has joined already");
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

static ph_status connect_early(struct test_worker *worker)
{
    const struct hub_thread *hub = worker->context;
    return ph_hub_connect(&hub->options, "job", TRIAL_NONCE, 0, &worker->client);
}

static void a_worker_waits_for_a_hub_that_is_started_again(void **state)
{
    (void)state;
    const struct timespec pause = {.tv_nsec = 200000000};
    struct hub_thread hub, again;
    struct test_worker worker = {.function = connect_early, .context = &hub};
    const char *folder = test_fresh_folder();
    kept_job_begin_hub(&hub, folder);
    assert_ok(create(&hub, "job", TRIAL_NONCE, 1));
    hub_thread_end(&hub);
    test_worker_begin(&worker);
    nanosleep(&pause, NULL);
    hub_thread_begin(
        &again, (struct ph_hub_server_options){.address = hub.address, .checkpoint_folder = folder});
    assert_ok(test_worker_end(&worker));
    hub_thread_end(&again);
    hub.options.timeout_ms = 100;
    assert_fails(create(&hub, "job", TRIAL_NONCE, 1), PH_ERROR_PEER, "refused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_survives_the_hub_before_it_begins),
        cmocka_unit_test(a_period_has_a_limit),
        cmocka_unit_test(a_destroyed_job_begins_anew),
        cmocka_unit_test(other_keys_cannot_go_on),
        cmocka_unit_test(without_a_folder_there_are_no_checkpoints),
        cmocka_unit_test(damaged_settings_are_told_and_left_alone),
        cmocka_unit_test(damaged_parameters_are_never_used),
        cmocka_unit_test(what_a_killed_hub_left_half_is_removed),
        cmocka_unit_test(a_disk_that_fails_is_told),
        cmocka_unit_test(snapshots_count_for_the_quota),
        cmocka_unit_test(a_worker_that_comes_again_replaces_its_dead_self),
        cmocka_unit_test(a_worker_waits_for_a_hub_that_is_started_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
