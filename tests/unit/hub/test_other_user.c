/* Workers of another user than the hub's. Only root can become somebody else, so without it there is nothing
 * to be tested. */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hub/client/client_operator.h"
#include "support/hub_thread.h"

/* Of the hub's local socket a worker sees the user that has made it. */
static void a_worker_of_another_user_goes_over_tcp(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const uid_t self = geteuid();
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("trial", 1);
    struct ph_hub_options options = hub.options;
    assert_ok(ph_hub_create_service(&options, &service));
    assert_int_equal(seteuid(65534), 0);
    const ph_status status = ph_hub_connect(&options, "trial", HUB_THREAD_NONCE, 0, &client);
    options.transport = PH_HUB_SHARED_MEMORY;
    struct ph_hub_client *refused;
    const ph_status without_tcp = ph_hub_connect(&options, "trial", HUB_THREAD_NONCE, 0, &refused);
    assert_int_equal(seteuid(self), 0);
    assert_int_equal(without_tcp, PH_ERROR_PEER);
    assert_ok(status);
    struct ph_hub_client_info info;
    ph_hub_client_describe(client, &info);
    assert_string_equal(info.transport, "tcp");
    assert_non_null(strstr(info.why, "another user"));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* Waits for the address, becomes somebody else, joins, and stays until the other end closes. */
static int be_another_user(int socket)
{
    char address[64] = "";
    struct ph_hub_client *client;
    if (recv(socket, address, sizeof address, 0) <= 0 || setuid(65534) != 0)
        return 1;
    const struct ph_hub_options options = {
        .size = sizeof options, .address = address, .timeout_ms = HUB_THREAD_TIMEOUT_MS};
    if (ph_hub_connect(&options, "foreign", HUB_THREAD_NONCE, 0, &client) != PH_OK)
        return 1;
    struct ph_hub_client_info info;
    ph_hub_client_describe(client, &info);
    (void)!send(socket, info.why, strlen(info.why) + 1, MSG_NOSIGNAL);
    (void)!recv(socket, address, 1, 0);
    ph_hub_client_destroy(client);
    return 0;
}

static void another_users_process_is_told_apart(void **state)
{
    (void)state;
    int ends[2], exit_status;
    char why[256] = "";
    struct hub_thread hub;
    struct ph__json *status;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(be_another_user(ends[1]));
    }
    close(ends[1]);
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("foreign", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_true(send(ends[0], hub.options.address, strlen(hub.options.address) + 1, MSG_NOSIGNAL) > 0);
    assert_true(recv(ends[0], why, sizeof why - 1, 0) > 0);
    assert_non_null(strstr(why, "another user"));
    assert_ok(ph__hub_status(&hub.options, "foreign", &status));
    const struct ph__json *job = ph__json_at(ph__json_get(status, "jobs"), 0);
    const struct ph__json *worker = ph__json_at(ph__json_get(job, "workers"), 0);
    assert_string_equal(
        ph__json_as_text(ph__json_get(worker, "why"), "(missing)"), "the worker runs as another user");
    ph__json_destroy(status);
    close(ends[0]);
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    assert_int_equal(exit_status, 0);
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_of_another_user_goes_over_tcp),
        cmocka_unit_test(another_users_process_is_told_apart),
    };
    if (geteuid() != 0)
        test_skip("only root can become another user");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
