/* Checkpoints of a job whose keys several hubs share: each hub keeps its part, and they go on together or not at all. */
#include "support/test_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hub/kept_job.h"
#include "hub/several_hubs.h"

enum { NUM_HUBS = 2 };

struct folders {
    char paths[NUM_HUBS][300];
};

static struct folders fresh_folders(void)
{
    struct folders folders;
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        snprintf(folders.paths[i], sizeof folders.paths[i], "%s", kept_job_fresh_folder());
    return folders;
}

static void begin_hubs(struct several_hubs *hubs, struct kept_job *trial, const struct folders *folders)
{
    struct ph_hub_server_options options[NUM_HUBS] = {0};
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        options[i].checkpoint_folder = folders->paths[i];
    several_hubs_begin(hubs, NUM_HUBS, options);
    trial->hub = &hubs->all;
}

/* Up to this iteration, with a checkpoint of it. */
static void run_until(struct kept_job *trial, const struct folders *folders, uint64_t iteration)
{
    struct several_hubs hubs;
    begin_hubs(&hubs, trial, folders);
    trial->stop_at = iteration;
    trial->is_saved = true;
    assert_ok(kept_job_run(trial));
    several_hubs_end(&hubs);
}

static void fails_to_go_on(
    struct kept_job *trial, const struct folders *folders, ph_status status, const char *part)
{
    struct several_hubs hubs;
    begin_hubs(&hubs, trial, folders);
    assert_fails(kept_job_run(trial), status, part);
    several_hubs_end(&hubs);
}

static struct ph_hub_service service_of_one(void)
{
    return (struct ph_hub_service){.name = "job",
        .nonce = TRIAL_NONCE,
        .num_workers = 1,
        .chunk_bytes = 256,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
}

static void move_file(const char *from, const char *to)
{
    char source[4096];
    snprintf(source, sizeof source, "%s", kept_job_file(from));
    assert_int_equal(rename(source, kept_job_file(to)), 0);
}

/* ---- going on ---- */

static void goes_on_like_one_hubs_job(struct ph_hub_optimizer optimizer, uint32_t chunk_bytes)
{
    struct kept_job undisturbed = kept_job_make(optimizer), trial = kept_job_make(optimizer);
    const struct folders folders = fresh_folders();
    undisturbed.service.chunk_bytes = trial.service.chunk_bytes = chunk_bytes;
    kept_job_run_until(&undisturbed, NULL, 16);
    run_until(&trial, &folders, 5);
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        assert_int_equal(kept_job_iteration_of_file(folders.paths[i]), 5);
    run_until(&trial, &folders, 9);
    assert_int_equal(trial.first_iteration, 5);
    run_until(&trial, &folders, 16);
    assert_int_equal(trial.first_iteration, 9);
    assert_memory_equal(trial.last, undisturbed.last, sizeof trial.last);
}

static void a_job_goes_on_from_its_parts(void **state)
{
    (void)state;
    const struct ph_hub_optimizer adam = {
        .kind = PH_ADAM, .learning_rate = .125F, .beta1 = .875F, .beta2 = .96875F, .epsilon = 1e-6F};
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

/* One key and one chunk: the second hub has none, writes that once, and does not hinder the first. */
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
        assert_int_equal(kept_job_iteration_of_file(folders.paths[0]), run + 1);
        assert_int_equal(kept_job_iteration_of_file(folders.paths[1]), 0);
    }
    close(log);
    assert_int_equal(count_checkpoints(path), 1);
}

/* ---- not going on ---- */

static void parts_of_different_iterations_are_told_apart(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct several_hubs hubs;
    const struct folders folders = fresh_folders(), aside = fresh_folders();
    run_until(&trial, &folders, 5);
    move_file(folders.paths[1], aside.paths[1]);
    unlink(kept_job_file(folders.paths[0]));
    run_until(&trial, &folders, 8);
    move_file(aside.paths[1], folders.paths[1]);
    fails_to_go_on(&trial, &folders, PH_ERROR_CHECKPOINT, "of iteration 8");
    fails_to_go_on(&trial, &folders, PH_ERROR_CHECKPOINT, "of iteration 5");
    begin_hubs(&hubs, &trial, &folders);
    assert_fails(kept_job_run(&trial), PH_ERROR_CHECKPOINT, hubs.hubs[0].options.address);
    assert_non_null(strstr(ph_error_text(), hubs.hubs[1].options.address));
    assert_ok(ph_hub_destroy_service(&hubs.all.options, "job", TRIAL_NONCE));
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    several_hubs_end(&hubs);
}

/* A hub that has lost its file begins anew. */
static void a_part_that_is_missing_is_told(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    const struct folders folders = fresh_folders();
    run_until(&trial, &folders, 5);
    unlink(kept_job_file(folders.paths[1]));
    fails_to_go_on(&trial, &folders, PH_ERROR_CHECKPOINT, "of iteration 0");
}

/* Before the first iteration: the numbers agree, and yet one hub waits for parameters that the other has. */
static void a_part_of_the_beginning_needs_the_others(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    const struct folders folders = fresh_folders();
    run_until(&trial, &folders, 0);
    unlink(kept_job_file(folders.paths[0]));
    fails_to_go_on(&trial, &folders, PH_ERROR_CHECKPOINT, "goes on from a checkpoint");
}

static void a_part_of_another_hub_is_refused(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct folders folders = fresh_folders();
    struct folders turned;
    run_until(&trial, &folders, 5);
    memcpy(turned.paths[0], folders.paths[1], sizeof turned.paths[0]);
    memcpy(turned.paths[1], folders.paths[0], sizeof turned.paths[1]);
    fails_to_go_on(
        &trial, &turned, PH_ERROR_CHECKPOINT, "the checkpoint here is of hub 2 of 2, not hub 1 of 2");
    kept_job_run_until(&trial, kept_job_fresh_folder(), 3);
    run_until(&trial, &folders, 6);
    assert_int_equal(trial.first_iteration, 5);
}

static void a_part_is_no_whole_job(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct hub_thread hub;
    const struct folders folders = fresh_folders();
    run_until(&trial, &folders, 5);
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
    begin_hubs(&hubs, &trial, &folders);
    const struct ph_hub_service service = service_of_one();
    assert_ok(ph_hub_create_service(&hubs.all.options, &service));
    assert_ok(ph_hub_connect(&hubs.all.options, "job", TRIAL_NONCE, 0, &client));
    assert_ok(ph_hub_init(client, &key, 1, NULL));
    push_once(client);
    assert_ok(ph_hub_checkpoint(client));
    push_once(client);
    several_hubs_end(&hubs);
    ph_hub_client_destroy(client);
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        assert_int_equal(kept_job_iteration_of_file(folders.paths[i]), 1);
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
        options[1 - without].checkpoint_folder = kept_job_fresh_folder();
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
        cmocka_unit_test(a_part_of_the_beginning_needs_the_others),
        cmocka_unit_test(a_part_of_another_hub_is_refused),
        cmocka_unit_test(a_part_is_no_whole_job),
        cmocka_unit_test(hubs_that_stop_leave_the_parts_that_fit),
        cmocka_unit_test(a_job_survives_a_hub_that_keeps_no_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
