/* What a hub does with its parts of a job's checkpoints, when disks fail and when the worker that says which
 * to keep is slow. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "support/hub_worker_by_hand.h"

struct trial {
    struct ph_hub_server *server;
    struct hub_worker_by_hand worker;
    char folder[300];
};

static const char *path_in(const struct trial *trial, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", trial->folder, name);
    return path;
}

static void choose_folder(struct trial *trial)
{
    static unsigned count;
    char name[32];
    snprintf(name, sizeof name, "parts-%u", count++);
    snprintf(trial->folder, sizeof trial->folder, "%s", test_path(name));
    assert_ok(ph__directory_create(trial->folder));
}

static void begin(struct trial *trial)
{
    trial->server = hub_turns_begin((struct ph_hub_server_options){.checkpoint_folder = trial->folder});
}

static void end(struct trial *trial)
{
    hub_by_hand_end(&trial->worker);
    ph_hub_server_destroy(trial->server);
}

static void assert_parts(const struct ph__parts *parts, const char *wanted)
{
    char text[PH_PARTS_TEXT_BYTES];
    ph__parts_describe(parts, text);
    assert_string_equal(text, wanted);
}

/* ---- half done ---- */

/* The part is kept, and then what is older cannot be removed: a folder has its name. */
static void a_part_that_is_kept_already_is_offered_so(void **state)
{
    (void)state;
    struct trial trial = {0};
    struct ph__answer answer;
    choose_folder(&trial);
    hub_by_hand_put_part(trial.folder, 2, false);
    hub_by_hand_put_part(trial.folder, 5, true);
    assert_ok(ph__directory_create(path_in(&trial, "job~at-1.safetensors")));
    begin(&trial);
    hub_by_hand_join(&trial.worker, trial.server);
    struct ph__parts parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 2, 5");
    hub_by_hand_say_from(&trial.worker, 5);
    const struct ph__control_frame frame = hub_by_hand_hear(&trial.worker, PH_FRAME_FAILED);
    assert_ok(ph__get_answer(frame.body, frame.size, &answer));
    assert_int_equal(answer.status, PH_ERROR_DISK);
    hub_by_hand_end(&trial.worker);
    assert_int_equal(rmdir(path_in(&trial, "job~at-1.safetensors")), 0);
    hub_by_hand_join(&trial.worker, trial.server);
    parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 5");
    hub_by_hand_go(&trial.worker, 5);
    assert_int_equal(trial.server->tenants->first_iteration, 5);
    end(&trial);
}

static void a_folder_in_the_place_of_a_part_is_none(void **state)
{
    (void)state;
    struct trial trial = {0};
    choose_folder(&trial);
    hub_by_hand_put_part(trial.folder, 2, false);
    hub_by_hand_put_part(trial.folder, 5, true);
    assert_ok(ph__directory_create(path_in(&trial, "job~at-9.safetensors")));
    begin(&trial);
    hub_by_hand_join(&trial.worker, trial.server);
    const struct ph__parts parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 2, 5");
    end(&trial);
}

/* ---- not to be had now ---- */

static void set_limit(rlim_t num_descriptors)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = num_descriptors;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The hub has one descriptor, for the folder, and none for a part in it: it must not go on from an older
 * part. */
static void a_part_that_cannot_be_opened_is_not_passed_over(void **state)
{
    (void)state;
    struct trial trial = {0};
    struct rlimit before;
    choose_folder(&trial);
    begin(&trial);
    hub_by_hand_put_part(trial.folder, 2, false);
    hub_by_hand_put_part(trial.folder, 5, true);
    hub_by_hand_connect(&trial.worker, trial.server);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int first_free = dup(0);
    close(first_free);
    for (rlim_t more = 0; more < 2; more++) {
        set_limit((rlim_t)first_free + more);
        const struct ph__answer answer = hub_by_hand_create(&trial.worker);
        set_limit(before.rlim_cur);
        assert_true(answer.status != PH_OK);
        assert_non_null(strstr(answer.text, "job"));
        assert_null(trial.server->tenants);
    }
    hub_by_hand_end(&trial.worker);
    hub_by_hand_join(&trial.worker, trial.server);
    const struct ph__parts parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 2, 5");
    end(&trial);
}

/* ---- while a job runs ---- */

/* From the beginning, of which the hub has made its part: it waits to hear what becomes of that. */
static void begin_job(struct trial *trial)
{
    choose_folder(trial);
    begin(trial);
    hub_by_hand_join(&trial->worker, trial->server);
    hub_by_hand_init(&trial->worker);
    hub_by_hand_go(&trial->worker, PH_NO_ITERATION);
    const struct ph__saved saved = hub_by_hand_hear_saved(&trial->worker);
    assert_parts(&saved.parts, "of iteration 0");
}

static const struct ph__keep next_only = {.iteration = PH_NO_ITERATION, .next = BY_HAND_PERIOD};

static void assert_waits_for_next(const struct trial *trial)
{
    const struct ph__tenant_saves *saves = &trial->server->tenants->saves;
    assert_true(saves->is_under_way);
    assert_int_equal(saves->version, BY_HAND_PERIOD);
}

/* It was put off for a checkpoint on demand, of what is on the disk already: so the lead is asked again. */
static void the_next_part_is_not_forgotten_for_one_that_is_there(void **state)
{
    (void)state;
    struct trial trial = {0};
    begin_job(&trial);
    trial.server->tenants->saves.is_wanted = true; /* as while a disk was at work */
    hub_by_hand_say_keep(&trial.worker, &next_only);
    const struct ph__saved saved = hub_by_hand_hear_saved(&trial.worker);
    assert_parts(&saved.parts, "of iteration 0");
    hub_by_hand_say_keep(&trial.worker, &next_only);
    assert_waits_for_next(&trial);
    end(&trial);
}

/* As if another hub had had none of these. */
static void fill_room(const struct trial *trial)
{
    struct ph__parts *here = &trial->server->tenants->saves.parts.here;
    here->num_open = 0;
    for (uint64_t i = 1; i <= PH_HUB_MAX_OPEN_PARTS; i++)
        ph__parts_add(here, 100 + i);
}

/* A hub without room is not late: it may have some when it comes to the next iteration, and till then has
 * settled none. */
static void a_hub_without_room_waits_for_the_next_iteration_all_the_same(void **state)
{
    (void)state;
    struct trial trial = {0};
    begin_job(&trial);
    fill_room(&trial);
    hub_by_hand_say_keep(&trial.worker, &next_only);
    assert_waits_for_next(&trial);
    assert_int_equal(trial.server->tenants->saves.parts.settled_end, 1);
    assert_int_equal(trial.server->tenants->saves.parts.num_unanswered, 0);
    end(&trial);
}

static void who_asks_a_hub_without_room_hears_so_and_so_does_the_lead(void **state)
{
    (void)state;
    struct trial trial = {0};
    struct ph__answer answer;
    begin_job(&trial);
    fill_room(&trial);
    hub_by_hand_say_checkpoint(&trial.worker, 0);
    const struct ph__control_frame frame = hub_by_hand_hear(&trial.worker, PH_FRAME_ANSWER);
    assert_ok(ph__get_answer(frame.body, frame.size, &answer));
    assert_int_equal(answer.status, PH_ERROR_DISK);
    assert_non_null(strstr(answer.text, "64 checkpoints wait for other hubs"));
    const struct ph__saved saved = hub_by_hand_hear_saved(&trial.worker);
    assert_int_equal(saved.parts.num_open, PH_HUB_MAX_OPEN_PARTS);
    assert_false(saved.is_late);
    end(&trial);
}

/* The second is asked for while the first is being made. */
static void a_hub_without_chunks_makes_each_part_that_it_is_asked_for(void **state)
{
    (void)state;
    struct trial trial = {.worker.has_no_chunks = true};
    struct ph__saved saved;
    choose_folder(&trial);
    begin(&trial);
    hub_by_hand_join(&trial.worker, trial.server);
    hub_by_hand_init(&trial.worker);
    hub_by_hand_link(&trial.worker, PH_NO_ITERATION);
    assert_ok(ph__control_stream_put(trial.worker.control, PH_FRAME_ASSIGNED, NULL, 0, NULL, 0));
    hub_by_hand_say_checkpoint(&trial.worker, 1);
    do
        saved = hub_by_hand_hear_saved(&trial.worker);
    while (!ph__parts_has(&saved.parts, 1));
    assert_parts(&saved.parts, "of iteration 0, 1");
    end(&trial);
}

/* It makes what it is asked for, be that older than what it has made: so what others have is no matter of its
 * own. */
static void a_hub_without_chunks_settles_nothing_and_hinders_nothing(void **state)
{
    (void)state;
    struct trial trial = {.worker.has_no_chunks = true};
    begin_job(&trial);
    hub_by_hand_say_keep(&trial.worker, &next_only);
    struct ph__saved saved = hub_by_hand_hear_saved(&trial.worker);
    assert_parts(&saved.parts, "of iteration 0, 10");
    assert_true(saved.settled_end == PH_NO_ITERATION);
    hub_by_hand_say_checkpoint(&trial.worker, 7);
    saved = hub_by_hand_hear_saved(&trial.worker);
    assert_parts(&saved.parts, "of iteration 0, 7, 10");
    const struct ph__keep keep = {.iteration = PH_NO_ITERATION, .settled_end = 8, .next = PH_NO_ITERATION};
    hub_by_hand_say_keep(&trial.worker, &keep);
    while (trial.server->tenants->saves.task != NULL)
        assert_ok(ph__server_turn(trial.server, 20));
    assert_parts(&trial.server->tenants->saves.parts.here, "of iteration 10");
    end(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_is_kept_already_is_offered_so),
        cmocka_unit_test(a_folder_in_the_place_of_a_part_is_none),
        cmocka_unit_test(a_part_that_cannot_be_opened_is_not_passed_over),
        cmocka_unit_test(the_next_part_is_not_forgotten_for_one_that_is_there),
        cmocka_unit_test(a_hub_without_room_waits_for_the_next_iteration_all_the_same),
        cmocka_unit_test(who_asks_a_hub_without_room_hears_so_and_so_does_the_lead),
        cmocka_unit_test(a_hub_without_chunks_makes_each_part_that_it_is_asked_for),
        cmocka_unit_test(a_hub_without_chunks_settles_nothing_and_hinders_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
