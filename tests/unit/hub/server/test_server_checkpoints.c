/* Whom a hub with a folder answers and what it says: when the folder fails, when services are destroyed, and
 * when there are more files than jobs that it may have. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "support/hub_turns.h"

static char log_text[65536];

static const char *fresh_folder(const char *name)
{
    const char *path = test_path(name);
    assert_ok(ph__directory_create(path));
    return path;
}

static struct ph_hub_server *begin(const char *folder, int log_out[2])
{
    assert_int_equal(pipe2(log_out, O_NONBLOCK), 0);
    return hub_turns_begin(
        (struct ph_hub_server_options){.checkpoint_folder = folder, .log_descriptor = log_out[1]});
}

static void end(struct ph_hub_server *server, const int log[2])
{
    ph_hub_server_destroy(server);
    const ssize_t size = read(log[0], log_text, sizeof log_text - 1);
    log_text[size > 0 ? size : 0] = '\0';
    close(log[0]);
    close(log[1]);
}

static unsigned count_events(const char *event)
{
    unsigned count = 0;
    for (const char *at = log_text; (at = strstr(at, event)) != NULL; at++)
        count++;
    return count;
}

static void wait_for_answer(struct ph_hub_server *server, int socket, struct ph__answer *answer_out)
{
    for (int i = 0; i < 1000 && !hub_turns_answer(socket, answer_out); i++)
        assert_ok(ph__server_turn(server, 20));
}

/* The newest one is answered first, and cannot be. */
static void all_who_wait_hear_the_same_reason(void **state)
{
    (void)state;
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    struct ph__answer answer = {.status = PH_OK};
    int log[2];
    const char *folder = fresh_folder("gone");
    struct ph_hub_server *server = begin(folder, log);
    const int first = hub_turns_connect(server, true), second = hub_turns_connect(server, true);
    const struct ph_hub_service service = hub_thread_service("job", 2);
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    ph__server_add_tenant(server, tenant);
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next)
        ph__server_await_checkpoint(session, tenant, 1);
    close(second);
    assert_int_equal(rmdir(folder), 0);
    assert_true(ph__server_keep(server, tenant));
    while (server->tenants != NULL) /* given up */
        ph__server_look_at_checkpoints(server);
    assert_true(hub_turns_answer(first, &answer));
    assert_int_equal(answer.status, PH_ERROR_DISK);
    assert_non_null(strstr(answer.text, "job.safetensors"));
    close(first);
    end(server, log);
    assert_int_equal(count_events("event=checkpoint_not_written job=job reason="), 1);
}

/* The second asks while the disk is at work. */
static void a_service_that_is_destroyed_twice_ends_once(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__answer answers[2] = {{.status = PH_ERROR_BUG}, {.status = PH_ERROR_BUG}};
    int sockets[2], log[2];
    struct ph_hub_server *server = begin(fresh_folder("twice"), log);
    for (size_t i = 0; i < 2; i++) {
        sockets[i] = hub_turns_connect(server, true);
        hub_turns_greet(server, sockets[i]);
    }
    size_t size = hub_turns_service(body);
    hub_turns_put(sockets[0], PH_FRAME_CREATE, body, size);
    wait_for_answer(server, sockets[0], &answers[0]);
    assert_int_equal(answers[0].status, PH_OK);
    size = hub_turns_which(0, body);
    for (size_t i = 0; i < 2; i++)
        hub_turns_put(sockets[i], PH_FRAME_DESTROY, body, size);
    for (size_t i = 0; i < 2; i++) {
        answers[i].status = PH_ERROR_BUG;
        wait_for_answer(server, sockets[i], &answers[i]);
        assert_int_equal(answers[i].status, PH_OK);
        close(sockets[i]);
    }
    assert_null(server->tenants);
    end(server, log);
    assert_int_equal(count_events("event=service_destroyed"), 1);
}

static void end_by_name(struct ph_hub_server *server, int socket, const char *name)
{
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__put_service_name(&writer, name);
    hub_turns_say(server, socket, PH_FRAME_END_SERVICE, body, writer.used);
}

/* A connection over TCP could be anybody's. */
static void without_its_nonce_a_service_is_ended_over_the_local_socket_alone(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__answer answer;
    int log[2];
    struct ph_hub_server *server = begin(fresh_folder("named"), log);
    const int far = hub_turns_connect(server, false), near = hub_turns_connect(server, true);
    hub_turns_greet(server, far);
    const size_t size = hub_turns_service(body);
    hub_turns_put(far, PH_FRAME_CREATE, body, size);
    wait_for_answer(server, far, &answer);
    end_by_name(server, far, "job");
    assert_true(hub_turns_answer(far, &answer));
    assert_int_equal(answer.status, PH_ERROR_USAGE);
    assert_non_null(strstr(answer.text, "local socket"));
    hub_turns_greet(server, near);
    end_by_name(server, near, "jo");
    assert_true(hub_turns_answer(near, &answer));
    assert_non_null(strstr(answer.text, "service 'jo' does not exist"));
    end_by_name(server, near, "job");
    wait_for_answer(server, near, &answer);
    assert_int_equal(answer.status, PH_OK);
    assert_null(server->tenants);
    close(far);
    close(near);
    end(server, log);
    assert_int_equal(count_events("event=service_destroyed job=job"), 1);
}

static void no_more_files_are_taken_up_than_there_may_be_jobs(void **state)
{
    (void)state;
    struct hub_thread hub;
    int log[2];
    struct ph_hub_server_options options = {
        .size = sizeof options, .checkpoint_folder = fresh_folder("many")};
    const struct ph_hub_service services[] = {hub_thread_service("a", 1), hub_thread_service("b", 1)};
    hub_thread_begin(&hub, options);
    for (size_t i = 0; i < 2; i++)
        assert_ok(ph_hub_create_service(&hub.options, &services[i]));
    hub_thread_end(&hub);
    assert_int_equal(pipe2(log, O_NONBLOCK), 0);
    options.max_jobs = 1;
    options.log_descriptor = log[1];
    hub_thread_begin(&hub, options);
    assert_int_equal(hub.server->num_tenants, 1);
    const size_t left = strcmp(hub.server->tenants->settings.name, "a") == 0;
    assert_fails(ph_hub_create_service(&hub.options, &services[left]), PH_ERROR_MEMORY, "1 jobs already");
    assert_ok(ph_hub_destroy_service(&hub.options, services[1 - left].name, HUB_THREAD_NONCE));
    assert_ok(ph_hub_create_service(&hub.options, &services[left])); /* there is room for it now */
    ph_hub_server_stop(hub.server);
    pthread_join(hub.thread, NULL);
    end(hub.server, log);
    assert_int_equal(count_events("event=service_restored"), 2);
    assert_int_equal(count_events("event=checkpoint_not_used reason="), 1);
    assert_non_null(strstr(log_text, "1 jobs already"));
}

/* Else its end would wait for a checkpoint that nobody makes. */
static void a_hub_without_a_folder_saves_nothing_at_its_end(void **state)
{
    (void)state;
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("job", 2);
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    ph__server_add_tenant(server, tenant);
    tenant->is_going = true;
    ph__server_save_all(server);
    assert_false(ph__server_is_saving(server, true));
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_who_wait_hear_the_same_reason),
        cmocka_unit_test(a_service_that_is_destroyed_twice_ends_once),
        cmocka_unit_test(without_its_nonce_a_service_is_ended_over_the_local_socket_alone),
        cmocka_unit_test(a_hub_without_a_folder_saves_nothing_at_its_end),
        cmocka_unit_test(no_more_files_are_taken_up_than_there_may_be_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
