/* What becomes of parts of checkpoints that hubs which share a job's keys have agreed upon, or not: from each
 * state that kills may leave on their disks the job goes on from the newest iteration of which all have a
 * part; while it runs they keep one together, and throw away no other; and whoever lies about it hurts its
 * own job. */
#include "support/test_support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"
#include "hub/job_folders.h"

/* ---- what kills leave ---- */

static struct kept_job undisturbed; /* up to iteration 16 */
static struct folders aside;        /* its parts */

static int make_parts(void **state)
{
    (void)state;
    undisturbed = kept_job_make(trial_momentum);
    kept_job_run_until(&undisturbed, NULL, 16);
    struct kept_job trial = kept_job_make(trial_momentum);
    aside = parts_set_aside(&trial);
    return 0;
}

static void goes_on_from(const struct folders *folders, uint64_t iteration)
{
    struct kept_job trial = kept_job_make(trial_momentum);
    folders_run_until(&trial, folders, 16);
    assert_int_equal(trial.first_iteration, iteration);
    assert_memory_equal(trial.last, undisturbed.last, sizeof trial.last);
}

/* Each between the parts of iteration 5 and those of iteration 9, of which no hub has kept one. */
static void a_part_that_only_one_hub_has_is_passed_over(void **state)
{
    (void)state;
    for (uint32_t ahead = 0; ahead < NUM_HUBS; ahead++) {
        struct folders folders = fresh_folders();
        for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
            put_kept(&aside, &folders, hub, 5);
        put_open(&aside, &folders, ahead, 9);
        goes_on_from(&folders, 5);
    }
}

static void parts_need_not_be_kept_yet(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < NUM_HUBS; first++) {
        struct folders folders = fresh_folders();
        put_kept(&aside, &folders, first, 9);
        put_kept(&aside, &folders, 1 - first, 5);
        put_open(&aside, &folders, 1 - first, 9);
        goes_on_from(&folders, 9);
    }
}

static void the_newest_of_open_parts_is_taken(void **state)
{
    (void)state;
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        put_kept(&aside, &folders, hub, PH_NO_ITERATION);
        put_open(&aside, &folders, hub, 5);
        put_open(&aside, &folders, hub, 9);
    }
    goes_on_from(&folders, 9);
}

static void what_never_was_whole_is_begun_anew(void **state)
{
    (void)state;
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_kept(&aside, &folders, hub, PH_NO_ITERATION);
    put_open(&aside, &folders, 0, 5);
    put_open(&aside, &folders, 1, 9);
    goes_on_from(&folders, 0);
}

/* The job does not come to iteration 9 again, and yet the hub has no part of that any more: another hub might
 * make the like. */
static void a_part_of_a_former_run_is_forgotten(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_kept(&aside, &folders, hub, 5);
    put_open(&aside, &folders, 0, 9);
    folders_run_until(&trial, &folders, 6);
    assert_int_equal(trial.first_iteration, 5);
    assert_false(folder_has_open(folders.paths[0], 9) || folder_has_kept(folders.paths[0], 9));
}

static void what_was_left_of_an_older_one_is_removed(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct several_hubs hubs;
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_kept(&aside, &folders, hub, 9);
    put_open(&aside, &folders, 1, 5);
    folders_begin_hubs(&hubs, &trial, &folders);
    assert_false(folder_has_open(folders.paths[1], 5));
    assert_true(folder_has_kept(folders.paths[1], 9));
    several_hubs_end(&hubs);
}

static void a_part_of_another_service_is_none(void **state)
{
    (void)state;
    struct kept_job other = kept_job_make(trial_momentum);
    struct folders folders = fresh_folders();
    other.service.depth = 2;
    const struct folders of_other = parts_set_aside(&other);
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_kept(&aside, &folders, hub, 5);
    put_open(&aside, &folders, 0, 9);
    put_open(&of_other, &folders, 1, 9);
    goes_on_from(&folders, 5);
}

static void a_damaged_part_is_not_offered(void **state)
{
    (void)state;
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_kept(&aside, &folders, hub, 5);
    put_open(&aside, &folders, 0, 9);
    FILE *file = fopen(kept_job_path(folders.paths[1], "job~at-9.safetensors"), "w");
    assert_non_null(file);
    fputs("no part", file);
    fclose(file);
    goes_on_from(&folders, 5);
}

/* Somebody has removed the service's own file: what is left belongs to no other. */
static void a_new_service_has_no_parts_of_an_old_one(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct several_hubs hubs;
    struct folders folders = fresh_folders();
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        put_open(&aside, &folders, hub, 9);
    folders_begin_hubs(&hubs, &trial, &folders);
    trial.stop_at = 0;
    assert_ok(kept_job_run(&trial));
    assert_int_equal(trial.first_iteration, 0);
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        assert_false(folder_has_open(folders.paths[hub], 9));
    several_hubs_end(&hubs);
}

/* ---- while a job runs ---- */

enum { ENOUGH_ITERATIONS = 200000, SMALL = 64 };

struct run {
    const struct several_hubs *hubs;
    const struct folders *folders;
    struct ph_hub_service service;
    uint64_t kept_from;   /* it goes on until both hubs have kept a part of this iteration or a later one */
    bool first_dies;      /* rank 0 does, at iteration 3 */
    bool saves;           /* the last rank asks for a checkpoint after each iteration */
    _Atomic bool is_over; /* for whoever must not go on alone */
    _Atomic size_t most_files; /* that a folder had */
};

static ph_status enter(struct test_worker *worker)
{
    const struct run *run = worker->context;
    const struct ph_hub_key key = {.num_elements = 3000, .dtype = PH_F32};
    const struct ph_hub_options *options = &run->hubs->all.options;
    PH_TRY(ph_hub_create_service(options, &run->service));
    PH_TRY(ph_hub_connect(options, run->service.name, TRIAL_NONCE, worker->rank, &worker->client));
    return ph_hub_init(worker->client, &key, 1, NULL);
}

static ph_status push_once(struct ph_hub_client *client)
{
    PH_TRY(ph_hub_pushpull_start(client, 0));
    return ph_hub_wait(client, 0);
}

static bool has_kept(const char *folder, uint64_t iteration)
{
    struct ph__job_checkpoint_head head;
    return ph__job_checkpoint_read_head(kept_job_file(folder), &head) == PH_OK && head.num_keys > 0 &&
           head.iteration >= iteration;
}

static ph_status have_kept(struct run *run, bool *have_out)
{
    *have_out = true;
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        size_t count;
        PH_TRY(folder_count_files(run->folders->paths[hub], &count));
        *have_out &= has_kept(run->folders->paths[hub], run->kept_from);
        if (count > atomic_load(&run->most_files))
            atomic_store(&run->most_files, count);
    }
    return PH_OK;
}

/* The last rank looks at the folders, and ends the run: the others hear of it by the end of theirs. */
static ph_status run_until_kept(struct test_worker *worker)
{
    struct run *run = worker->context;
    const bool is_last = worker->rank + 1 == run->service.num_workers;
    bool is_kept = false;
    PH_TRY(enter(worker));
    for (uint64_t i = 1; i <= ENOUGH_ITERATIONS && !atomic_load(&run->is_over); i++) {
        const ph_status status = push_once(worker->client);
        if (status != PH_OK)
            return atomic_load(&run->is_over) && !is_last ? PH_OK : status;
        if (run->first_dies && worker->rank == 0 && i == 3)
            return PH_OK;
        if (is_last && run->saves)
            PH_TRY(ph_hub_checkpoint(worker->client));
        if (is_last && i % 16 == 0)
            PH_TRY(have_kept(run, &is_kept));
        if (is_kept) {
            atomic_store(&run->is_over, true);
            PH_IGNORE(ph_hub_leave(
                worker->client)); /* or hears that another has died of it, where that was faster */
            return PH_OK;
        }
    }
    return is_last ? ph_fail(PH_ERROR_BUG, "no checkpoint is kept") : PH_OK;
}

static struct ph_hub_service small_service(uint32_t num_workers, uint64_t checkpoint_every)
{
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = "job",
        .nonce = TRIAL_NONCE,
        .num_workers = num_workers,
        .chunk_bytes = SMALL * sizeof(float),
        .checkpoint_every = checkpoint_every,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
}

static void begin_run(struct run *run, struct several_hubs *hubs, const struct folders *folders)
{
    struct kept_job unused;
    folders_begin_hubs(hubs, &unused, folders);
    run->hubs = hubs;
    run->folders = folders;
}

static ph_status run_all(struct run *run)
{
    struct test_worker workers[3];
    for (uint32_t rank = 0; rank < run->service.num_workers; rank++)
        workers[rank] = (struct test_worker){.rank = rank, .function = run_until_kept, .context = run};
    return test_workers_run(workers, run->service.num_workers);
}

static void keeps_up(struct run *run)
{
    struct several_hubs hubs;
    const struct folders folders = fresh_folders();
    begin_run(run, &hubs, &folders);
    assert_ok(run_all(run));
    assert_ok(ph_hub_destroy_service(&hubs.all.options, "job", TRIAL_NONCE));
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        size_t count;
        assert_ok(folder_count_files(folders.paths[hub], &count));
        assert_int_equal(count, 0);
    }
    several_hubs_end(&hubs);
}

/* Workers that do nothing else are past the next iteration before a hub hears of it, until it lies far enough
 * ahead. */
static void periodic_parts_are_kept_one_after_the_other(void **state)
{
    (void)state;
    struct run often = {.service = small_service(1, 1), .kept_from = 100},
               seldom = {.service = small_service(2, 50), .kept_from = 150};
    keeps_up(&often);
    assert_true(often.most_files <= 3);
    keeps_up(&seldom);
    assert_true(seldom.most_files <= 3);
}

static void parts_on_demand_are_kept(void **state)
{
    (void)state;
    struct run run = {.service = small_service(2, 0), .kept_from = 30, .saves = true};
    keeps_up(&run);
}

static void parts_on_demand_and_periodic_ones_do_not_hinder_each_other(void **state)
{
    (void)state;
    struct run run = {.service = small_service(2, 3), .kept_from = 60, .saves = true};
    keeps_up(&run);
}

static void of_a_job_that_goes_on_parts_are_kept(void **state)
{
    (void)state;
    struct several_hubs hubs;
    const struct folders folders = fresh_folders();
    for (uint64_t from = 100; from <= 300; from += 100) {
        struct run run = {.service = small_service(1, 5), .kept_from = from};
        begin_run(&run, &hubs, &folders);
        assert_ok(run_all(&run));
        several_hubs_end(&hubs);
    }
}

static void another_worker_takes_over_when_the_first_dies(void **state)
{
    (void)state;
    struct run run = {.service = small_service(3, 2), .kept_from = 100, .first_dies = true};
    run.service.on_death = PH_HUB_SHRINK;
    keeps_up(&run);
}

/* ---- whoever lies ---- */

struct lie {
    struct run *run;
    uint32_t rank; /* that tells it */
    struct ph__keep keep;
};

static ph_status tell_lie(struct ph_hub_client *client, const struct ph__keep *keep)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keep(&writer, keep);
    PH_TRY(ph__client_put(client->hubs[0].stream, PH_FRAME_KEEP, &writer));
    return ph__control_stream_flush(client->hubs[0].stream);
}

static ph_status push_until_it_ends(struct test_worker *worker)
{
    const struct lie *lie = worker->context;
    struct test_worker own = {.rank = worker->rank, .context = lie->run};
    ph_status status = enter(&own);
    worker->client = own.client;
    if (status == PH_OK && worker->rank == lie->rank)
        status = tell_lie(worker->client, &lie->keep);
    for (uint64_t i = 0; status == PH_OK && i < ENOUGH_ITERATIONS; i++)
        status = push_once(worker->client);
    return status == PH_ERROR_PEER ? PH_OK : ph_fail(PH_ERROR_BUG, "it ended with %d", status);
}

static void ends_the_job(struct run *run, struct lie lie)
{
    struct test_worker workers[2];
    lie.run = run;
    for (uint32_t rank = 0; rank < run->service.num_workers; rank++)
        workers[rank] = (struct test_worker){.rank = rank, .function = push_until_it_ends, .context = &lie};
    assert_ok(test_workers_run(workers, run->service.num_workers));
}

static void a_lie_about_parts_ends_its_own_job(void **state)
{
    (void)state;
    struct several_hubs hubs;
    const struct folders folders = fresh_folders();
    const struct ph__keep nothing = {.iteration = PH_NO_ITERATION, .next = PH_NO_ITERATION};
    struct run run = {.service = small_service(2, 10)}, witness = {.service = small_service(1, 0)};
    struct test_worker watching = {.context = &witness};
    begin_run(&run, &hubs, &folders);
    witness.hubs = &hubs;
    witness.service.name = "witness";
    assert_ok(enter(&watching));
    ends_the_job(&run, (struct lie){.rank = 1, .keep = nothing});
    ends_the_job(&run, (struct lie){.keep = {.iteration = 77, .next = PH_NO_ITERATION}});
    ends_the_job(
        &run, (struct lie){.keep = {.iteration = PH_NO_ITERATION, .settled_end = 1u << 30, .next = 10}});
    ends_the_job(&run, (struct lie){.keep = {.iteration = PH_NO_ITERATION, .next = 7}});
    ends_the_job(&run, (struct lie){.keep = {.iteration = PH_NO_ITERATION - 1, .next = 7}});
    assert_ok(push_once(watching.client));
    assert_ok(ph_hub_checkpoint(watching.client));
    assert_ok(ph_hub_leave(watching.client));
    ph_hub_client_destroy(watching.client);
    several_hubs_end(&hubs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_only_one_hub_has_is_passed_over),
        cmocka_unit_test(parts_need_not_be_kept_yet),
        cmocka_unit_test(the_newest_of_open_parts_is_taken),
        cmocka_unit_test(what_never_was_whole_is_begun_anew),
        cmocka_unit_test(a_part_of_a_former_run_is_forgotten),
        cmocka_unit_test(what_was_left_of_an_older_one_is_removed),
        cmocka_unit_test(a_part_of_another_service_is_none),
        cmocka_unit_test(a_damaged_part_is_not_offered),
        cmocka_unit_test(a_new_service_has_no_parts_of_an_old_one),
        cmocka_unit_test(periodic_parts_are_kept_one_after_the_other),
        cmocka_unit_test(parts_on_demand_are_kept),
        cmocka_unit_test(parts_on_demand_and_periodic_ones_do_not_hinder_each_other),
        cmocka_unit_test(of_a_job_that_goes_on_parts_are_kept),
        cmocka_unit_test(another_worker_takes_over_when_the_first_dies),
        cmocka_unit_test(a_lie_about_parts_ends_its_own_job),
    };
    return cmocka_run_group_tests(tests, make_parts, NULL);
}
