/* Checkpoints of a job whose keys several hubs share: each hub keeps its part, and they go on together or not
 * at all. */
#include "support/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hub/job_folders.h"

static struct ph_hub_service service_of_one(void)
{
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = "job",
        .nonce = TRIAL_NONCE,
        .num_workers = 1,
        .chunk_bytes = 256,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
}

/* ---- going on ---- */

static void goes_on_like_one_hubs_job(struct ph_hub_optimizer optimizer, uint32_t chunk_bytes)
{
    struct kept_job undisturbed = kept_job_make(optimizer), trial = kept_job_make(optimizer);
    const struct folders folders = fresh_folders();
    undisturbed.service.chunk_bytes = trial.service.chunk_bytes = chunk_bytes;
    kept_job_run_until(&undisturbed, NULL, 16);
    folders_run_until(&trial, &folders, 5);
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        assert_true(folder_has_open(folders.paths[i], 5) || folder_has_kept(folders.paths[i], 5));
    folders_run_until(&trial, &folders, 9);
    assert_int_equal(trial.first_iteration, 5);
    folders_run_until(&trial, &folders, 16);
    assert_int_equal(trial.first_iteration, 9);
    assert_memory_equal(trial.last, undisturbed.last, sizeof trial.last);
}

static void a_job_goes_on_from_its_parts(void **state)
{
    (void)state;
    const struct ph_hub_optimizer adam = {.rule.kind = PH_ADAM,
        .learning_rate = .125F,
        .rule.beta1 = .875F,
        .rule.beta2 = .96875F,
        .rule.epsilon = 1e-6F};
    goes_on_like_one_hubs_job(trial_momentum, 256);
    goes_on_like_one_hubs_job(adam, 4096);
}

static void push_once(struct ph_hub_client *client)
{
    assert_ok(ph_hub_pushpull_start(client, 0));
    assert_ok(ph_hub_wait(client, 0));
}

/* An iteration of one small key, and a checkpoint. */
static void push_and_save(const struct several_hubs *hubs, uint64_t first_iteration)
{
    struct ph_hub_client *client;
    const struct ph_hub_key key = {.num_elements = 10, .dtype = PH_F32};
    struct ph_hub_service service = service_of_one();
    uint64_t iteration;
    service.checkpoint_every = 1;
    assert_ok(ph_hub_create_service(&hubs->all.options, &service));
    assert_ok(ph_hub_connect(&hubs->all.options, "job", TRIAL_NONCE, 0, &client));
    assert_ok(ph_hub_init(client, &key, 1, &iteration));
    assert_int_equal(iteration, first_iteration);
    push_once(client);
    assert_ok(ph_hub_checkpoint(client));
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
}

static size_t count_checkpoints(const char *path)
{
    char line[1024];
    size_t count = 0;
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        count += strstr(line, "event=checkpoint_written") != NULL;
    fclose(log);
    return count;
}

/* One key and one chunk: the second hub has none, and yet parts of the iterations that the first has. */
static void a_part_may_be_empty(void **state)
{
    (void)state;
    struct several_hubs hubs;
    const struct folders folders = fresh_folders();
    const char *path = test_path("empty.log");
    const int log = open(path, O_WRONLY | O_CREAT, 0600);
    for (uint64_t run = 0; run < 3; run++) {
        const struct ph_hub_server_options options[NUM_HUBS] = {{.checkpoint_folder = folders.paths[0]},
            {.checkpoint_folder = folders.paths[1], .log_descriptor = log}};
        several_hubs_begin(&hubs, NUM_HUBS, options);
        push_and_save(&hubs, run);
        several_hubs_end(&hubs);
        for (uint32_t i = 0; i < NUM_HUBS; i++)
            assert_true(
                folder_has_open(folders.paths[i], run + 1) || folder_has_kept(folders.paths[i], run + 1));
    }
    close(log);
    assert_true(count_checkpoints(path) >= 4);
}

/* ---- not going on ---- */

static void parts_of_different_iterations_are_told_apart(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct several_hubs hubs;
    struct folders folders = fresh_folders();
    const struct folders aside = parts_set_aside(&trial);
    put_kept(&aside, &folders, 0, 9);
    put_kept(&aside, &folders, 1, 5);
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, "of iteration 9");
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, "of iteration 5");
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, NULL);
    folders_begin_hubs(&hubs, &trial, &folders);
    assert_ok(ph_hub_destroy_service(&hubs.all.options, "job", TRIAL_NONCE));
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    several_hubs_end(&hubs);
}

/* Rank 0 finds out, and all workers hear of it: nobody waits for the others. */
static ph_status ends_with_that(struct test_worker *worker)
{
    const ph_status status = kept_job_train(worker);
    return status == PH_ERROR_CHECKPOINT ? PH_OK : ph_fail(PH_ERROR_BUG, "it ended with %d", status);
}

static void a_part_that_is_missing_is_told(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct test_worker workers[TRIAL_WORKERS];
    struct several_hubs hubs;
    struct folders folders = fresh_folders();
    const struct folders aside = parts_set_aside(&trial);
    put_kept(&aside, &folders, 0, 5);
    put_open(&aside, &folders, 0, 9);
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, ": parts of iteration 5, 9; hub ");
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, ": none): restore the missing parts");
    folders_fail(&trial, &folders, PH_ERROR_CHECKPOINT, NULL);
    folders_begin_hubs(&hubs, &trial, &folders);
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++)
        workers[rank] = (struct test_worker){.rank = rank, .function = ends_with_that, .context = &trial};
    assert_ok(test_workers_run(workers, TRIAL_WORKERS));
    several_hubs_end(&hubs);
    assert_true(folder_has_open(folders.paths[0], 9)); /* nothing was thrown away */
}

static void a_part_of_another_hub_is_refused(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct folders folders = fresh_folders();
    struct folders turned;
    folders_run_until(&trial, &folders, 5);
    memcpy(turned.paths[0], folders.paths[1], sizeof turned.paths[0]);
    memcpy(turned.paths[1], folders.paths[0], sizeof turned.paths[1]);
    folders_fail(
        &trial, &turned, PH_ERROR_CHECKPOINT, "the checkpoint here is of hub 2 of 2, not hub 1 of 2");
    kept_job_run_until(&trial, test_fresh_folder(), 3);
    folders_run_until(&trial, &folders, 6);
    assert_int_equal(trial.first_iteration, 5);
}

static void a_part_is_no_whole_job(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    const struct folders folders = fresh_folders();
    folders_run_until(&trial, &folders, 5);
    kept_job_begin_hub(&hub, folders.paths[0]);
    trial.hub = &hub;
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, "of hub 1 of 2, not hub 1 of 1");
    hub_thread_end(&hub);
}

/* ---- hubs that stop ---- */

/* One that saved what it has would be ahead of those that are killed. */
static void hubs_that_stop_leave_the_parts_that_fit(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct kept_job trial;
    struct ph_hub_client *client;
    const struct folders folders = fresh_folders();
    const struct ph_hub_key key = {.num_elements = 3000, .dtype = PH_F32};
    folders_begin_hubs(&hubs, &trial, &folders);
    const struct ph_hub_service service = service_of_one();
    assert_ok(ph_hub_create_service(&hubs.all.options, &service));
    assert_ok(ph_hub_connect(&hubs.all.options, "job", TRIAL_NONCE, 0, &client));
    assert_ok(ph_hub_init(client, &key, 1, NULL));
    push_once(client);
    assert_ok(ph_hub_checkpoint(client));
    push_once(client);
    several_hubs_end(&hubs);
    ph_hub_client_destroy(client);
    for (uint32_t i = 0; i < NUM_HUBS; i++) {
        assert_true(folder_has_open(folders.paths[i], 1) || folder_has_kept(folders.paths[i], 1));
        assert_false(folder_has_open(folders.paths[i], 2) || folder_has_kept(folders.paths[i], 2));
    }
}

/* ---- hubs that keep none ---- */

static ph_status ask_for_a_checkpoint(struct test_worker *worker)
{
    struct kept_job *trial = worker->context;
    const struct ph_hub_key key = {.num_elements = 3000, .dtype = PH_F32};
    const struct ph_hub_service service = service_of_one();
    PH_TRY(ph_hub_create_service(&trial->hub->options, &service));
    PH_TRY(ph_hub_connect(&trial->hub->options, "job", TRIAL_NONCE, 0, &worker->client));
    PH_TRY(ph_hub_init(worker->client, &key, 1, NULL));
    assert_fails(ph_hub_checkpoint(worker->client), PH_ERROR_USAGE, "keeps no checkpoints");
    push_once(worker->client); /* the other hub's answer is not taken for anything else */
    return ph_hub_leave(worker->client);
}

static void a_job_survives_a_hub_that_keeps_no_checkpoints(void **state)
{
    (void)state;
    struct kept_job trial;
    struct test_worker worker = {.context = &trial};
    for (uint32_t without = 0; without < NUM_HUBS; without++) {
        struct several_hubs hubs;
        struct ph_hub_server_options options[NUM_HUBS] = {0};
        options[1 - without].checkpoint_folder = test_fresh_folder();
        several_hubs_begin(&hubs, NUM_HUBS, options);
        trial.hub = &hubs.all;
        assert_ok(ask_for_a_checkpoint(&worker));
        ph_hub_client_destroy(worker.client);
        several_hubs_end(&hubs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_goes_on_from_its_parts),
        cmocka_unit_test(a_part_may_be_empty),
        cmocka_unit_test(parts_of_different_iterations_are_told_apart),
        cmocka_unit_test(a_part_that_is_missing_is_told),
        cmocka_unit_test(a_part_of_another_hub_is_refused),
        cmocka_unit_test(a_part_is_no_whole_job),
        cmocka_unit_test(hubs_that_stop_leave_the_parts_that_fit),
        cmocka_unit_test(a_job_survives_a_hub_that_keeps_no_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
