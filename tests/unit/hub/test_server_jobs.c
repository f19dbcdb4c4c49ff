/* What becomes of a job whose workers come and go before it begins. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_forgotten_when_the_last_worker_that_told_them_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
