/* What asking a hub for its status may cost it: whoever asks, however often, and however much there is to
 * tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/format/json.h"
#include "support/hub_turns.h"

enum { MANY_KEYS = 60000, MANY_SERVICES = 5000, TOO_MANY_SERVICES = 40000, MAX_TURNS = 100000 };

static struct ph__tenant *add_service(struct ph_hub_server *server, const char *name)
{
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    const struct ph_hub_service service = hub_thread_service(name, 2);
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    ph__server_add_tenant(server, tenant);
    return tenant;
}

static void add_services(struct ph_hub_server *server, unsigned count)
{
    char name[32];
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "service-%u", i);
        add_service(server, name);
    }
}

static int begin_stranger(struct ph_hub_server *server)
{
    const int socket = hub_turns_connect(server, true);
    hub_turns_greet(server, socket);
    (void)hub_turns_is_closed(socket); /* drops the welcome */
    return socket;
}

static void put_question(int socket, const char *service)
{
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__put_service_name(&writer, service);
    hub_turns_put(socket, PH_FRAME_STATUS, body, writer.used);
}

static void receive(struct ph_hub_server *server, int socket, void *bytes, size_t size)
{
    size_t received = 0;
    for (int i = 0; i < MAX_TURNS && received < size; i++) {
        const ssize_t some = recv(socket, (char *)bytes + received, size - received, MSG_DONTWAIT);
        received += some > 0 ? (size_t)some : 0;
        assert_ok(ph__server_turn(server, 0));
    }
    assert_int_equal(received, size);
}

/* Takes turns until the answer is there. The caller frees it. */
static struct ph__json *hear_status(struct ph_hub_server *server, int socket)
{
    unsigned char head[8];
    struct ph__wire_reader reader;
    struct ph__json *json;
    receive(server, socket, head, sizeof head);
    ph__wire_reader_init(&reader, head, sizeof head);
    const size_t size = ph__wire_get_u32(&reader);
    assert_int_equal(ph__wire_get_u16(&reader), PH_FRAME_STATUS_TEXT);
    char *text = malloc(size + 1);
    assert_non_null(text);
    receive(server, socket, text, size);
    text[size] = '\0';
    assert_ok(ph__json_parse(text, size, "a status", PH_ERROR_PEER, &json));
    free(text);
    return json;
}

static size_t count_keys(const struct ph__json *status, size_t job, int64_t *told_out)
{
    const struct ph__json *entry = ph__json_at(ph__json_get(status, "jobs"), job);
    *told_out = ph__json_as_integer(ph__json_get(entry, "num_keys"), -1);
    return ph__json_size(ph__json_get(entry, "keys"));
}

static void of_many_keys_the_first_are_listed(void **state)
{
    (void)state;
    int64_t told;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    struct ph__tenant *tenant = add_service(server, "large");
    const int asking = begin_stranger(server);
    tenant->keys = calloc(MANY_KEYS, sizeof *tenant->keys);
    assert_non_null(tenant->keys);
    tenant->num_keys = MANY_KEYS;
    put_question(asking, "large");
    struct ph__json *status = hear_status(server, asking);
    assert_in_range(count_keys(status, 0, &told), PH_HUB_MAX_WORKERS, MANY_KEYS / 10);
    assert_int_equal(told, MANY_KEYS);
    ph__json_destroy(status);
    put_question(asking, "");
    status = hear_status(server, asking);
    assert_in_range(count_keys(status, 0, &told), 1, 100);
    ph__json_destroy(status);
    add_services(server, MANY_SERVICES); /* for whose keys there must be room, too */
    put_question(asking, "");
    status = hear_status(server, asking);
    assert_int_equal(count_keys(status, MANY_SERVICES, &told), 0);
    assert_int_equal(told, MANY_KEYS);
    ph__json_destroy(status);
    close(asking);
    ph_hub_server_destroy(server);
}

static void what_fits_no_message_is_an_error(void **state)
{
    (void)state;
    struct ph__answer answer;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int asking = begin_stranger(server);
    add_services(server, TOO_MANY_SERVICES);
    put_question(asking, "");
    hub_turns_take(server);
    assert_true(hub_turns_answer(asking, &answer));
    assert_int_equal(answer.status, PH_ERROR_MEMORY);
    assert_non_null(strstr(answer.text, "ask for one of them"));
    put_question(asking, "service-7");
    struct ph__json *status = hear_status(server, asking);
    assert_int_equal(ph__json_size(ph__json_get(status, "jobs")), 1);
    ph__json_destroy(status);
    close(asking);
    ph_hub_server_destroy(server);
}

static size_t count_waiting(const struct ph_hub_server *server)
{
    size_t count = 0;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next)
        count += session->question != 0;
    return count;
}

static void a_turn_answers_one_of_many_in_the_order_in_which_they_ask(void **state)
{
    (void)state;
    int asking[3];
    char byte;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    for (size_t i = 0; i < 3; i++)
        asking[i] = begin_stranger(server);
    for (size_t i = 0; i < 3; i++)
        put_question(asking[i], "");
    put_question(asking[0], ""); /* once more, behind the others */
    for (size_t left = 3; left > 0; left--) {
        assert_ok(ph__server_turn(server, 0));
        assert_int_equal(count_waiting(server), left - 1 + (left < 3));
    }
    assert_ok(ph__server_turn(server, 0));
    assert_int_equal(count_waiting(server), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(recv(asking[i], &byte, 1, MSG_DONTWAIT), 1);
        close(asking[i]);
    }
    ph_hub_server_destroy(server);
}

/* Whoever asks and does not read costs memory: there is an end to that. */
static void no_answers_are_made_while_too_many_are_unread(void **state)
{
    (void)state;
    enum { NUM_LAZY = 8 };
    int lazy[NUM_LAZY];
    struct ph__answer answer;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    add_services(server, MANY_SERVICES);
    for (size_t i = 0; i < NUM_LAZY; i++) {
        lazy[i] = begin_stranger(server);
        put_question(lazy[i], "");
        hub_turns_take(server);
    }
    assert_true(hub_turns_answer(lazy[NUM_LAZY - 1], &answer));
    assert_int_equal(answer.status, PH_ERROR_MEMORY);
    assert_non_null(strstr(answer.text, "that peers have not read"));
    struct ph__json *status = hear_status(server, lazy[0]);
    ph__json_destroy(status);
    for (size_t i = 0; i < NUM_LAZY; i++)
        close(lazy[i]);
    hub_turns_take(server);
    lazy[0] = begin_stranger(server);
    put_question(lazy[0], "");
    status = hear_status(server, lazy[0]);
    ph__json_destroy(status);
    close(lazy[0]);
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_many_keys_the_first_are_listed),
        cmocka_unit_test(what_fits_no_message_is_an_error),
        cmocka_unit_test(a_turn_answers_one_of_many_in_the_order_in_which_they_ask),
        cmocka_unit_test(no_answers_are_made_while_too_many_are_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
