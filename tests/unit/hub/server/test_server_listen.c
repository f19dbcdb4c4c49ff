/* Whom a hub lets in, how long it listens to strangers, and what becomes of workers when there are many of
 * these. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sizes.h"
#include "base/thread/clock.h"
#include "hub/server/server_figures.h"
#include "support/hub_turns.h"

enum { FEW_DESCRIPTORS = 96, NUM_SILENT = 110, TURN_MS = 20, MAX_TURNS = 1000 };

static const struct ph_hub_key a_key = {.num_elements = 5000, .dtype = PH_F32};

/* The clock counts from the machine's start, which may not be so long ago. */
static uint64_t earlier(uint64_t ns, uint64_t seconds)
{
    return ns - ph__min(ns, seconds * 1000000000u);
}

/* As if so much time had gone by. */
static void let_pass(struct ph_hub_server *server, uint64_t seconds)
{
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        session->moved_ns = earlier(session->moved_ns, seconds);
        session->stranger_ns = earlier(session->stranger_ns, seconds);
    }
    hub_turns_take(server);
}

/* ---- silence ---- */

static void who_says_nothing_is_closed_unless_it_is_a_worker(void **state)
{
    (void)state;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int mute = hub_turns_connect(server, true), slow = hub_turns_connect(server, true);
    const int greeted = hub_turns_connect(server, true), worker = hub_turns_connect(server, true);
    assert_int_equal(
        send(slow, "\x26\0\0\0\x01", 5, MSG_NOSIGNAL), 5); /* a greeting's head, not to its end */
    hub_turns_greet(server, greeted);
    hub_turns_join(server, worker, 0);
    let_pass(server, 5);
    assert_false(hub_turns_is_closed(mute) || hub_turns_is_closed(slow) || hub_turns_is_closed(greeted) ||
                 hub_turns_is_closed(worker));
    assert_int_equal(server->num_strangers, 3);
    let_pass(server, 6);
    assert_true(hub_turns_is_closed(mute) && hub_turns_is_closed(slow) && hub_turns_is_closed(greeted));
    assert_int_equal(server->counts.silent_connections, 3);
    assert_int_equal(server->num_strangers, 0);
    let_pass(server, 3600); /* the job's other worker may be long in coming */
    assert_false(hub_turns_is_closed(worker));
    assert_non_null(server->sessions->tenant);
    close(mute);
    close(slow);
    close(greeted);
    close(worker);
    ph_hub_server_destroy(server);
}

static void who_goes_on_asking_is_not_closed(void **state)
{
    (void)state;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int asking = hub_turns_connect(server, true);
    hub_turns_greet(server, asking);
    for (int i = 0; i < 3; i++) {
        let_pass(server, 6);
        assert_false(hub_turns_is_closed(asking));
        hub_turns_say(server, asking, PH_FRAME_STATUS, "\0\0", 2);
    }
    close(asking);
    ph_hub_server_destroy(server);
}

/* ---- crowds ---- */

static int knock(const struct ph_hub_server *server)
{
    int socket;
    assert_ok(ph__socket_connect(ph_hub_server_address(server), HUB_THREAD_TIMEOUT_MS, &socket));
    return socket;
}

/* Whoever comes when there are two strangers waits, until one of these has been there for long enough. */
static void who_goes_on_asking_makes_room_when_others_wait(void **state)
{
    (void)state;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int worker = hub_turns_connect(server, true), first = hub_turns_connect(server, true);
    hub_turns_join(server, worker, 0);
    hub_turns_greet(server, first);
    server->max_strangers = 1;
    const int waiting = knock(server);
    hub_turns_take(server);
    assert_true(server->is_accept_paused);
    hub_turns_say(server, first, PH_FRAME_STATUS, "\0\0", 2);
    assert_false(hub_turns_is_closed(first));
    hub_turns_put(first, PH_FRAME_STATUS, "\0\0", 2);
    let_pass(server, 2);
    assert_true(hub_turns_is_closed(first));
    assert_false(hub_turns_is_closed(worker));
    assert_int_equal(server->num_strangers, 1); /* the one that waited */
    assert_false(hub_turns_is_closed(waiting));
    close(worker);
    close(first);
    close(waiting);
    ph_hub_server_destroy(server);
}

static size_t count_sessions(const struct ph_hub_server *server)
{
    size_t count = 0;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next)
        count++;
    return count;
}

/* Else whoever connects without end keeps the jobs waiting. */
static void a_turn_takes_some_of_many_connections(void **state)
{
    (void)state;
    enum { MANY = 60 };
    int sockets[MANY];
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    for (size_t i = 0; i < MANY; i++)
        assert_ok(ph__socket_connect_local(server->local_socket, 1000, &sockets[i]));
    server->max_strangers = MANY + 1;
    assert_ok(ph__server_turn(server, 0));
    assert_in_range(count_sessions(server), 1, MANY - 1);
    hub_turns_take(server);
    assert_int_equal(count_sessions(server), MANY);
    for (size_t i = 0; i < MANY; i++)
        close(sockets[i]);
    ph_hub_server_destroy(server);
}

/* Its own worker has left it, another has not. */
static struct ph__tenant *service_that_is_being_left(struct ph_hub_server *server)
{
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
    const struct ph_hub_service service = hub_thread_service("job", 2);
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_ok(ph__tenant_create(&settings, &tenant));
    ph__server_add_tenant(server, tenant);
    tenant->state = PH_TENANT_RUNNING;
    tenant->num_joined = 1;
    return tenant;
}

/* They are as many as any strangers, and as patiently borne. */
static void who_waits_for_a_service_to_end_is_a_stranger(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    int waiting[2];
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const struct ph__tenant *tenant = service_that_is_being_left(server);
    for (size_t i = 0; i < 2; i++) {
        waiting[i] = hub_turns_connect(server, true);
        hub_turns_greet(server, waiting[i]);
        hub_turns_say(server, waiting[i], PH_FRAME_DESTROY, body, hub_turns_which(0, body));
    }
    assert_true(tenant->must_end);
    assert_int_equal(server->num_strangers, 2);
    let_pass(server, 3600);
    assert_false(hub_turns_is_closed(waiting[0]) || hub_turns_is_closed(waiting[1]));
    server->max_strangers = 2;
    const int late = knock(server);
    hub_turns_take(server);
    let_pass(server, 2);
    assert_true(hub_turns_is_closed(waiting[0]) && hub_turns_is_closed(waiting[1]));
    assert_true(tenant->must_end);
    close(waiting[0]);
    close(waiting[1]);
    close(late);
    ph_hub_server_destroy(server);
}

/* ---- from where ---- */

/* A socket that is no TCP socket of the loopback stands for one of another host. */
static void a_worker_of_another_host_is_told_apart(void **state)
{
    (void)state;
    char answer[4096] = "";
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int far = hub_turns_connect(server, false);
    hub_turns_join(server, far, 0);
    assert_false(hub_turns_is_closed(far));
    hub_turns_say(server, far, PH_FRAME_STATUS, "\0\0", 2);
    assert_true(recv(far, answer, sizeof answer - 1, 0) > 8);
    assert_non_null(strstr(answer + 8, "the worker is on another host")); /* behind the frame's head */
    close(far);
    ph_hub_server_destroy(server);
}

/* ---- sizes ---- */

static void a_stranger_is_believed_little(void **state)
{
    (void)state;
    static const char zeros[5000];
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    const int early = hub_turns_connect(server, true);
    assert_int_equal(send(early, "\x58\2\0\0\6\0\0\0", 8, MSG_NOSIGNAL), 8); /* 600 bytes would follow */
    hub_turns_take(server);
    assert_true(hub_turns_is_closed(early));
    const int greeted = hub_turns_connect(server, true);
    hub_turns_greet(server, greeted);
    assert_int_equal(send(greeted, "\x88\x13\0\0\6\0\0\0", 8, MSG_NOSIGNAL), 8); /* 5000 bytes */
    hub_turns_take(server);
    assert_true(hub_turns_is_closed(greeted));
    const int worker = hub_turns_connect(server, true);
    hub_turns_join(server, worker, 0);
    hub_turns_say(server, worker, PH_FRAME_INIT, zeros, sizeof zeros / PH_HUB_KEY_BYTES * PH_HUB_KEY_BYTES);
    assert_false(hub_turns_is_closed(worker)); /* it has heard that these are no keys */
    close(early);
    close(greeted);
    close(worker);
    ph_hub_server_destroy(server);
}

/* ---- descriptors ---- */

static void set_limit(rlim_t num_descriptors)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = num_descriptors;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors_the_hub_rests_and_then_takes_who_waits(void **state)
{
    (void)state;
    struct rlimit before;
    struct ph_hub_server *server = hub_turns_begin((struct ph_hub_server_options){0});
    int waiting;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_ok(ph__socket_connect(ph_hub_server_address(server), HUB_THREAD_TIMEOUT_MS, &waiting));
    const int first_free = dup(waiting);
    close(first_free);
    set_limit((rlim_t)first_free);
    const uint64_t begin_ns = ph__clock_ns();
    for (int i = 0; i < MAX_TURNS; i++)
        assert_ok(ph__server_turn(server, 0));
    const uint64_t num_pauses = (ph__clock_ns() - begin_ns) / 100000000u;
    assert_null(server->sessions);
    assert_in_range(server->counts.refusals_to_listen, 1, num_pauses + 1);
    set_limit(before.rlim_cur);
    for (int i = 0; i < MAX_TURNS && server->sessions == NULL; i++)
        assert_ok(ph__server_turn(server, TURN_MS));
    assert_non_null(server->sessions);
    close(waiting);
    ph_hub_server_destroy(server);
}

/* The hub is a process of its own; its address comes through the pipe. */
static pid_t fork_hub(struct hub_thread *hub, char address[PH_ADDRESS_BYTES])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t process = fork();
    if (process == 0) {
        const struct ph_hub_server_options options = {.size = sizeof options, .num_threads = 1};
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
        set_limit(FEW_DESCRIPTORS);
        struct ph_hub_server *server;
        if (ph_hub_server_create(&options, &server) != PH_OK ||
            write(ends[1], ph_hub_server_address(server), PH_ADDRESS_BYTES) != PH_ADDRESS_BYTES)
            _exit(1);
        _exit(ph_hub_server_run(server, NULL) == PH_OK ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], address, PH_ADDRESS_BYTES), PH_ADDRESS_BYTES);
    close(ends[0]);
    *hub = (struct hub_thread){
        .options = {
            .size = sizeof(struct ph_hub_options), .address = address, .timeout_ms = HUB_THREAD_TIMEOUT_MS}};
    return process;
}

static void silent_strangers_keep_nobody_from_a_hub_with_few_descriptors(void **state)
{
    (void)state;
    char address[PH_ADDRESS_BYTES];
    int silent[NUM_SILENT];
    struct hub_thread hub;
    struct hub_workers first, second;
    const pid_t process = fork_hub(&hub, address);
    const struct ph_hub_service services[] = {
        hub_thread_service("first", 2), hub_thread_service("second", 2)};
    assert_ok(ph_hub_create_service(&hub.options, &services[0]));
    hub_workers_begin(&first, &hub, &services[0], &a_key, 1, 3, PH_HUB_TCP);
    hub_workers_wait(&first);
    for (size_t i = 0; i < NUM_SILENT; i++)
        assert_ok(ph__socket_connect(address, HUB_THREAD_TIMEOUT_MS, &silent[i]));
    assert_ok(ph_hub_create_service(&hub.options, &services[1]));
    hub_workers_begin(&second, &hub, &services[1], &a_key, 1, 3, PH_HUB_AUTO);
    hub_workers_wait(&second);
    hub_workers_end(&second);
    hub_workers_end(&first);
    hub_workers_fini(&second);
    hub_workers_fini(&first);
    for (size_t i = 0; i < NUM_SILENT; i++)
        close(silent[i]);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

struct first_worker {
    struct ph_hub_client *client;
    pthread_t thread;
    ph_status status;
};

static void *init(void *context)
{
    struct first_worker *worker = context;
    worker->status = ph_hub_init(worker->client, &a_key, 1, NULL);
    return NULL;
}

/* One client joins with as many workers as it is let, and no word after that: who has joined before still
 * gets its links, and whoever asks an answer. */
static void silent_workers_take_no_descriptor_that_was_promised(void **state)
{
    (void)state;
    enum { NUM_FIRST = 2, NUM_GREEDY = FEW_DESCRIPTORS };
    char address[PH_ADDRESS_BYTES];
    struct hub_thread hub;
    struct first_worker first[NUM_FIRST];
    struct ph_hub_client *greedy[NUM_GREEDY] = {NULL};
    const pid_t process = fork_hub(&hub, address);
    const struct ph_hub_service services[] = {
        hub_thread_service("first", NUM_FIRST), hub_thread_service("greedy", NUM_GREEDY)};
    ph_status status = PH_OK;
    for (size_t i = 0; i < 2; i++)
        assert_ok(ph_hub_create_service(&hub.options, &services[i]));
    for (uint32_t i = 0; i < NUM_FIRST; i++)
        assert_ok(ph_hub_connect(&hub.options, "first", HUB_THREAD_NONCE, i, &first[i].client));
    for (uint32_t i = 0; i < NUM_GREEDY && status == PH_OK; i++)
        status = ph_hub_connect(&hub.options, "greedy", HUB_THREAD_NONCE, i, &greedy[i]);
    assert_int_equal(status, PH_ERROR_MEMORY);
    assert_non_null(strstr(ph_error_text(), "descriptors of the hub"));
    assert_ok(ph_hub_create_service(&hub.options, &services[0])); /* who only asks is answered */
    for (uint32_t i = 0; i < NUM_FIRST; i++)
        assert_int_equal(pthread_create(&first[i].thread, NULL, init, &first[i]), 0);
    for (uint32_t i = 0; i < NUM_FIRST; i++) {
        pthread_join(first[i].thread, NULL);
        assert_int_equal(first[i].status, PH_OK);
    }
    for (uint32_t i = 0; i < NUM_FIRST; i++)
        ph_hub_client_destroy(first[i].client);
    for (uint32_t i = 0; i < NUM_GREEDY; i++)
        ph_hub_client_destroy(greedy[i]);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

/* ---- what workers that join and have not begun are promised: descriptors, and memory for what they say ----
 */

static ph_status join(struct ph_hub_server *server, int socket, uint32_t rank, struct ph__answer *answer_out)
{
    unsigned char body[PH_HUB_MAX_BODY];
    const size_t size = hub_turns_which(rank, body);
    *answer_out = (struct ph__answer){.status = PH_OK};
    hub_turns_say(server, socket, PH_FRAME_JOIN, body, size);
    (void)hub_turns_answer(socket, answer_out); /* JOINED is none */
    return answer_out->status;
}

/* Both are local and over TCP, with one core thread: a connection, a process and a link each. */
static void a_worker_whose_links_would_not_fit_is_refused(void **state)
{
    (void)state;
    unsigned char body[PH_HUB_MAX_BODY];
    struct ph__answer answer;
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
    struct ph__hub_figures figures;
    assert_ok(ph__hub_figures_read(server, &figures));
    const uint64_t bytes = figures.used_bytes;
    ph__hub_figures_fini(&figures);
    return bytes;
}

/* Only the head of a frame; what follows would be so long. */
static void announce(struct ph_hub_server *server, int socket, uint32_t size)
{
    unsigned char head[8];
    struct ph__wire_writer writer;
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
        cmocka_unit_test(silent_strangers_keep_nobody_from_a_hub_with_few_descriptors), /* forks: the first */
        cmocka_unit_test(silent_workers_take_no_descriptor_that_was_promised),
        cmocka_unit_test(who_says_nothing_is_closed_unless_it_is_a_worker),
        cmocka_unit_test(who_goes_on_asking_is_not_closed),
        cmocka_unit_test(who_goes_on_asking_makes_room_when_others_wait),
        cmocka_unit_test(a_turn_takes_some_of_many_connections),
        cmocka_unit_test(who_waits_for_a_service_to_end_is_a_stranger),
        cmocka_unit_test(a_worker_of_another_host_is_told_apart),
        cmocka_unit_test(a_stranger_is_believed_little),
        cmocka_unit_test(without_descriptors_the_hub_rests_and_then_takes_who_waits),
        cmocka_unit_test(a_worker_whose_links_would_not_fit_is_refused),
        cmocka_unit_test(what_workers_may_say_counts_until_they_have_said_it),
        cmocka_unit_test(workers_may_say_less_where_little_memory_is_left),
        cmocka_unit_test(who_is_dismissed_has_nothing_long_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
