/* What becomes of a job whose workers come and go before it begins, or when it is about to end. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/hub_turns.h"

static void assert_has_no_keys(struct ph_hub_server *server)
{
    char text[8192] = "";
    const int stranger = hub_turns_connect(server, true);
    hub_turns_greet(server, stranger);
    (void)hub_turns_is_closed(stranger); /* drops the welcome */
    hub_turns_say(server, stranger, PH_FRAME_STATUS, "\0\0", 2);
    assert_true(recv(stranger, text, sizeof text - 1, 0) > 8);
    assert_non_null(strstr(text + 8, "\"num_keys\":0")); /* behind the frame's head */
    close(stranger);
}

/* Whoever comes next may have others. */
static void keys_are_forgotten_when_the_last_worker_that_told_them_goes(void **state)
{
    (void)state;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int dying = hub_turns_connect(server, true), leaving = hub_turns_connect(server, true);
    hub_turns_join(server, dying, 0);
    hub_turns_init(server, dying);
    assert_int_equal(server->tenants->num_keys, 1);
    close(dying);
    hub_turns_take(server);
    assert_has_no_keys(server);
    hub_turns_join(server, leaving, 1);
    hub_turns_init(server, leaving);
    assert_int_equal(server->tenants->num_keys, 1);
    hub_turns_say(server, leaving, PH_FRAME_LEAVE, NULL, 0);
    assert_has_no_keys(server);
    close(leaving);
    ph_hub_server_destroy(server);
}

/* ---- the end ---- */

struct ending { /* a job of two workers, of which the first has left and the service shall end */
    struct ph_hub_server *server;
    int workers[2], asking;
};

/* As if it ran: on no core thread. */
static void begin_ending(struct ending *ending)
{
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph_hub_server *server = ending->server = hub_turns_begin((struct ph_hub_server_options){0});
    for (uint32_t rank = 0; rank < 2; rank++) {
        ending->workers[rank] = hub_turns_connect(server, true);
        hub_turns_join(server, ending->workers[rank], rank);
    }
    server->tenants->state = PH_TENANT_RUNNING;
    server->tenants->is_going = true;
    hub_turns_say(server, ending->workers[0], PH_FRAME_LEAVE, NULL, 0);
    ending->asking = hub_turns_connect(server, true);
    hub_turns_greet(server, ending->asking);
    hub_turns_say(server, ending->asking, PH_FRAME_DESTROY, body, hub_turns_which(0, body));
}

static void end(const struct ending *ending)
{
    close(ending->workers[0]);
    close(ending->asking);
    ph_hub_server_destroy(ending->server);
}

static void a_service_ends_when_its_last_worker_has_left(void **state)
{
    (void)state;
    struct ending ending;
    struct ph__answer answer;
    begin_ending(&ending);
    assert_false(hub_turns_answer(ending.asking, &answer));
    hub_turns_say(ending.server, ending.workers[1], PH_FRAME_LEAVE, NULL, 0);
    assert_true(hub_turns_answer(ending.asking, &answer));
    assert_int_equal(answer.status, PH_OK);
    assert_null(ending.server->tenants);
    close(ending.workers[1]);
    end(&ending);
}

/* The one that asked has what the job has learnt; the one that died finds no service to wait in, should it
 * come again. */
static void so_it_does_when_that_one_dies(void **state)
{
    (void)state;
    struct ending ending;
    struct ph__answer answer;
    begin_ending(&ending);
    close(ending.workers[1]);
    hub_turns_take(ending.server);
    assert_true(hub_turns_answer(ending.asking, &answer));
    assert_int_equal(answer.status, PH_OK);
    assert_null(ending.server->tenants);
    end(&ending);
}

static void nobody_begins_with_a_service_that_is_about_to_end(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ending ending;
    struct ph__answer answer;
    begin_ending(&ending);
    const int late = hub_turns_connect(ending.server, true);
    hub_turns_greet(ending.server, late);
    hub_turns_say(ending.server, late, PH_FRAME_CREATE, body, hub_turns_service(body));
    assert_true(hub_turns_answer(late, &answer));
    assert_int_equal(answer.status, PH_ERROR_USAGE);
    assert_non_null(strstr(answer.text, "is being destroyed"));
    hub_turns_say(ending.server, late, PH_FRAME_JOIN, body, hub_turns_which(0, body));
    assert_true(hub_turns_answer(late, &answer));
    assert_int_equal(answer.status, PH_ERROR_PEER); /* there may be one soon */
    assert_non_null(strstr(answer.text, "does not exist"));
    close(late);
    close(ending.workers[1]);
    end(&ending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_forgotten_when_the_last_worker_that_told_them_goes),
        cmocka_unit_test(a_service_ends_when_its_last_worker_has_left),
        cmocka_unit_test(so_it_does_when_that_one_dies),
        cmocka_unit_test(nobody_begins_with_a_service_that_is_about_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
