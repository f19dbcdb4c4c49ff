/* What a hub does with its parts of a job's checkpoints, when disks fail and when the worker that says which to keep is slow. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/directory.h"
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

static void assert_parts(const struct ph_parts *parts, const char *wanted)
{
    char text[PH_PARTS_TEXT_BYTES];
    ph__parts_describe(parts, text);
    assert_string_equal(text, wanted);
}

/* ---- half done --------------------------------------------------------------------------------------------------- */

/* The part is kept, and then what is older cannot be removed: a folder has its name. */
static void a_part_that_is_kept_already_is_offered_so(void **state)
{
    (void)state;
    struct trial trial;
    struct ph_answer answer;
    choose_folder(&trial);
    hub_by_hand_put_part(trial.folder, 2, false);
    hub_by_hand_put_part(trial.folder, 5, true);
    assert_ok(ph__directory_create(path_in(&trial, "job~at-1.safetensors")));
    begin(&trial);
    hub_by_hand_join(&trial.worker, trial.server);
    struct ph_parts parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 2, 5");
    hub_by_hand_say_from(&trial.worker, 5);
    const struct ph_control_frame frame = hub_by_hand_hear(&trial.worker, PH_FRAME_FAILED);
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

/* ---- not to be had now ------------------------------------------------------------------------------------------- */

static void set_limit(rlim_t num_descriptors)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = num_descriptors;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The hub has one descriptor, for the folder, and none for a part in it: it must not go on from an older part. */
static void a_part_that_cannot_be_opened_is_not_passed_over(void **state)
{
    (void)state;
    struct trial trial;
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
        const struct ph_answer answer = hub_by_hand_create(&trial.worker);
        set_limit(before.rlim_cur);
        assert_true(answer.status != PH_OK);
        assert_non_null(strstr(answer.text, "job"));
        assert_null(trial.server->tenants);
    }
    hub_by_hand_end(&trial.worker);
    hub_by_hand_join(&trial.worker, trial.server);
    const struct ph_parts parts = hub_by_hand_init(&trial.worker);
    assert_parts(&parts, "of iteration 2, 5");
    end(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_is_kept_already_is_offered_so),
        cmocka_unit_test(a_part_that_cannot_be_opened_is_not_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
