/* What a hub promises to workers that join and have not begun: descriptors, and memory for what they say. */
#include "hub/server/server_figures.h"
#include "support/hub_turns.h"

#include <string.h>
#include <unistd.h>

static ph_status join(struct ph_hub_server *server, int socket, uint32_t rank, struct ph_answer *answer_out)
{
    unsigned char body[PH_HUB_MAX_BODY];
    const size_t size = hub_turns_which(rank, body);
    *answer_out = (struct ph_answer){.status = PH_OK};
    hub_turns_say(server, socket, PH_FRAME_JOIN, body, size);
    (void)hub_turns_answer(socket, answer_out); /* JOINED is none */
    return answer_out->status;
}

/* Both are local and over TCP, with one core thread: a connection, a process and a link each. */
static void a_worker_whose_links_would_not_fit_is_refused(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph_answer answer;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int first = hub_turns_connect(server, true), second = hub_turns_connect(server, true);
    hub_turns_greet(server, first);
    hub_turns_greet(server, second);
    const size_t size = hub_turns_service(body);
    hub_turns_say(server, first, PH_FRAME_CREATE, body, size);
    assert_true(hub_turns_answer(first, &answer));
    assert_true(server->max_descriptors > 0);
    server->max_descriptors = 0;
    while (join(server, first, 0, &answer) != PH_OK) {
        assert_int_equal(answer.status, PH_ERROR_MEMORY);
        assert_non_null(strstr(answer.text, "descriptors of the hub"));
        server->max_descriptors++;
    }
    assert_in_range(server->max_descriptors, server->num_own_descriptors, 10000);
    for (int i = 0; i < 3; i++, server->max_descriptors++)
        assert_int_equal(join(server, second, 1, &answer), PH_ERROR_MEMORY);
    assert_int_equal(join(server, second, 1, &answer), PH_OK);
    assert_int_equal(server->tenants->num_joined, 2);
    close(first);
    close(second);
    ph_hub_server_destroy(server);
}

/* ---- memory ---- */

static uint64_t used_bytes(struct ph_hub_server *server)
{
    struct ph_hub_figures figures;
    assert_ok(ph__hub_figures_read(server, &figures));
    const uint64_t bytes = figures.used_bytes;
    ph__hub_figures_fini(&figures);
    return bytes;
}

/* Only the head of a frame; what follows would be so long. */
static void announce(struct ph_hub_server *server, int socket, uint32_t size)
{
    unsigned char head[8];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, head, sizeof head);
    ph__wire_put_u32(&writer, size);
    ph__wire_put_u16(&writer, PH_FRAME_INIT);
    ph__wire_put_u16(&writer, 0);
    assert_int_equal(write(socket, head, sizeof head), sizeof head);
    hub_turns_take(server);
}

static void what_workers_may_say_counts_until_they_have_said_it(void **state)
{
    (void)state;
    struct ph_hub_server *server =
        hub_turns_begin((struct ph_hub_server_options){.max_bytes = (uint64_t)1 << 30});
    const int first = hub_turns_connect(server, true), second = hub_turns_connect(server, true);
    hub_turns_join(server, first, 0);
    assert_int_equal(used_bytes(server), 2 * PH_HUB_MAX_KEYS_BODY);
    hub_turns_join(server, second, 1);
    assert_int_equal(used_bytes(server), 4 * PH_HUB_MAX_KEYS_BODY);
    hub_turns_init(server, first);
    assert_int_equal(used_bytes(server), 2 * PH_HUB_MAX_KEYS_BODY);
    announce(server, second, PH_HUB_MAX_KEYS_BODY);
    assert_false(hub_turns_is_closed(second));
    close(second);
    hub_turns_take(server);
    assert_int_equal(used_bytes(server), 0);
    announce(server, first, PH_HUB_MAX_BODY + 1); /* its keys are told: it has nothing so long to say */
    assert_true(hub_turns_is_closed(first));
    close(first);
    ph_hub_server_destroy(server);
}

/* Together they may say no more than a part of it. */
static void workers_may_say_less_where_little_memory_is_left(void **state)
{
    (void)state;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){.max_job_bytes = 80000});
    int sockets[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        sockets[rank] = hub_turns_connect(server, true);
        hub_turns_join(server, sockets[rank], rank);
    }
    assert_int_equal(used_bytes(server), 40000);
    announce(server, sockets[0], 10000);
    assert_false(hub_turns_is_closed(sockets[0]));
    announce(server, sockets[1], 10001);
    assert_true(hub_turns_is_closed(sockets[1]));
    close(sockets[0]);
    close(sockets[1]);
    ph_hub_server_destroy(server);
}

/* A worker whose run has ended is a stranger again. */
static void who_is_dismissed_has_nothing_long_to_say(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int worker = hub_turns_connect(server, true), other = hub_turns_connect(server, true);
    hub_turns_join(server, worker, 0);
    hub_turns_greet(server, other);
    const size_t size = hub_turns_which(0, body);
    hub_turns_say(server, other, PH_FRAME_DESTROY, body, size);
    assert_null(server->tenants);
    announce(server, worker, PH_HUB_MAX_BODY + 1);
    assert_true(hub_turns_is_closed(worker));
    close(worker);
    close(other);
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_whose_links_would_not_fit_is_refused),
        cmocka_unit_test(what_workers_may_say_counts_until_they_have_said_it),
        cmocka_unit_test(workers_may_say_less_where_little_memory_is_left),
        cmocka_unit_test(who_is_dismissed_has_nothing_long_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
