/* What a hub says of itself when it is asked for its status. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_operator.h"
#include "support/hub_thread.h"

#define NUM_KEYS 70 /* more than are listed among others */

static const struct ph__json *job_of(const struct ph__json *status, const char *name)
{
    const struct ph__json *jobs = ph__json_get(status, "jobs");
    for (size_t i = 0; i < ph__json_size(jobs); i++) {
        const struct ph__json *job = ph__json_at(jobs, i);
        if (strcmp(ph__json_as_text(ph__json_get(job, "name"), ""), name) == 0)
            return job;
    }
    return NULL;
}

static int64_t count(const struct ph__json *object, const char *key)
{
    const struct ph__json *member = ph__json_get(object, key);
    assert_true(ph__json_is_integer(member));
    return ph__json_as_integer(member, -1);
}

static void assert_text(const struct ph__json *object, const char *key, const char *wanted)
{
    assert_string_equal(ph__json_as_text(ph__json_get(object, key), "(missing)"), wanted);
}

static void an_idle_hub_tells_its_limits_and_core_threads(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph__json *status;
    hub_thread_begin(
        &hub, (struct ph_hub_server_options){.max_bytes = 123456, .max_jobs = 7, .num_threads = 3});
    assert_ok(ph__hub_status(&hub.options, NULL, &status));
    assert_text(status, "address", hub.options.address);
    assert_text(status, "aggregation", "tall");
    assert_int_equal(count(status, "max_bytes"), 123456);
    assert_int_equal(count(status, "used_bytes"), 0);
    assert_int_equal(count(status, "max_jobs"), 7);
    assert_int_equal(count(status, "connections"), 1); /* this one */
    assert_int_equal(ph__json_size(ph__json_get(status, "cores")), 3);
    assert_int_equal(ph__json_size(ph__json_get(status, "jobs")), 0);
    const char *place =
        ph__json_as_text(ph__json_get(ph__json_at(ph__json_get(status, "cores"), 2), "place"), "");
    assert_true(strstr(place, "processor") != NULL); /* its own, or not pinned to one of them */
    ph__json_destroy(status);
    hub_thread_end(&hub);
}

/* Both transports at once: two services. */
static void a_running_job_tells_what_it_does_and_how_workers_are_connected(void **state)
{
    (void)state;
    static const enum ph_hub_transport transports[] = {PH_HUB_SHARED_MEMORY, PH_HUB_TCP};
    static const char *const names[] = {"near", "far"}, *const words[] = {"shared memory", "tcp"};
    static const char *const reasons[] = {"the worker is on this host", "TCP was asked for"};
    const struct ph_hub_key keys[] = {
        {.num_elements = 40000, .dtype = PH_F32}, {.num_elements = 8, .dtype = PH_BF16}};
    struct hub_thread hub;
    struct hub_workers workers[2];
    struct ph_hub_service services[2];
    struct ph__json *status;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    for (size_t i = 0; i < 2; i++) {
        services[i] = hub_thread_service(names[i], 2);
        services[i].chunk_bytes = 40000;
        assert_ok(ph_hub_create_service(&hub.options, &services[i]));
        hub_workers_begin(&workers[i], &hub, &services[i], keys, 2, 6, transports[i]);
    }
    for (size_t i = 0; i < 2; i++)
        hub_workers_wait(&workers[i]);
    assert_ok(ph__hub_status(&hub.options, NULL, &status));
    for (size_t i = 0; i < 2; i++) {
        const struct ph__json *job = job_of(status, names[i]);
        assert_non_null(job);
        assert_text(job, "state", "running");
        assert_text(job, "mode", "synchronous");
        assert_int_equal(count(job, "workers_there"), 2);
        assert_int_equal(count(job, "iteration"), 6);
        assert_int_equal(count(job, "num_keys"), 2);
        assert_int_equal(count(job, "num_chunks"), 5);
        assert_int_equal(count(job, "chunk_bytes"), 40000);
        assert_text(job, "results", "cached");
        assert_int_equal(count(job, "updates"), 6 * 5);
        assert_int_equal(count(job, "gradient_bytes"), 6 * 2 * (160000 + 16));
        const struct ph__json *worker = ph__json_at(ph__json_get(job, "workers"), 1);
        assert_int_equal(count(worker, "rank"), 1);
        assert_text(worker, "transport", words[i]);
        assert_text(worker, "why", reasons[i]);
        assert_int_equal(count(worker, "payload_bytes_received"), i == 0 ? 0 : 6 * (160000 + 16));
        const struct ph__json *key = ph__json_at(ph__json_get(job, "keys"), 1);
        assert_int_equal(count(key, "elements"), 8);
        assert_text(key, "dtype", "BF16");
        assert_int_equal(count(key, "chunks"), 1);
    }
    assert_true(count(status, "used_bytes") ==
                count(job_of(status, "near"), "bytes") + count(job_of(status, "far"), "bytes"));
    ph__json_destroy(status);
    for (size_t i = 0; i < 2; i++) {
        hub_workers_end(&workers[i]);
        hub_workers_fini(&workers[i]);
    }
    hub_thread_end(&hub);
}

/* ---- why a worker is connected as it is ---- */

static void assert_why(const struct ph_hub_options *options, const char *service, const char *wanted)
{
    struct ph__json *status;
    assert_ok(ph__hub_status(options, service, &status));
    const struct ph__json *worker = ph__json_at(ph__json_get(job_of(status, service), "workers"), 0);
    assert_text(worker, "why", wanted);
    ph__json_destroy(status);
}

static struct ph__control_stream *join_so(const struct hub_thread *hub, const char *name, enum ph__way way)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    struct ph__control_stream *stream;
    struct ph__join wish = {.nonce = HUB_THREAD_NONCE, .way = way, .share = {.num_hubs = 1}};
    snprintf(wish.name, sizeof wish.name, "%s", name);
    assert_ok(ph__client_reach_once(&hub->options, &stream));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish);
    assert_ok(ph__client_request(stream, PH_FRAME_JOIN, &writer, PH_FRAME_JOINED,
        (struct ph__timeout){.ms = HUB_THREAD_TIMEOUT_MS}, &frame));
    return stream;
}

static void each_reason_for_tcp_is_told(void **state)
{
    (void)state;
    static const struct {
        enum ph__way way;
        const char *name, *why;
    } cases[] = {{PH_WAY_ASKED_FOR, "asked", "TCP was asked for"},
        {PH_WAY_OTHER_USER, "foreign", "the worker runs as another user"},
        {PH_WAY_SEVERAL_HUBS, "part", "several hubs share the job's keys"},
        {PH_WAY_UNREACHED, "apart", "the worker is on this host, but does not reach the hub's local socket"}};
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ph_hub_service service = hub_thread_service(cases[i].name, 2);
        assert_ok(ph_hub_create_service(&hub.options, &service));
        struct ph__control_stream *worker = join_so(&hub, cases[i].name, cases[i].way);
        assert_why(&hub.options, cases[i].name, cases[i].why);
        ph__control_stream_destroy(worker);
    }
    hub_thread_end(&hub);
}

static void workers_of_several_hubs_say_so(void **state)
{
    (void)state;
    char both[2 * 64];
    struct hub_thread hubs[2];
    struct ph_hub_client *client;
    for (size_t i = 0; i < 2; i++)
        hub_thread_begin(&hubs[i], (struct ph_hub_server_options){0});
    snprintf(both, sizeof both, "%s,%s", hubs[0].options.address, hubs[1].options.address);
    const struct ph_hub_options options = {
        .size = sizeof options, .address = both, .timeout_ms = HUB_THREAD_TIMEOUT_MS};
    const struct ph_hub_service service = hub_thread_service("both", 2);
    assert_ok(ph_hub_create_service(&options, &service));
    assert_ok(ph_hub_connect(&options, "both", HUB_THREAD_NONCE, 0, &client));
    for (size_t i = 0; i < 2; i++)
        assert_why(&hubs[i].options, "both", "several hubs share the job's keys");
    ph_hub_client_destroy(client);
    for (size_t i = 0; i < 2; i++)
        hub_thread_end(&hubs[i]);
}

/* ---- results ---- */

/* How a job of one worker writes its results on a hub with one core thread. */
static void check_results(
    enum ph_hub_results asked, enum ph_hub_transport transport, size_t bytes, const char *wanted)
{
    const struct ph_hub_key key = {.num_elements = bytes / sizeof(float), .dtype = PH_F32};
    struct hub_thread hub;
    struct hub_workers workers;
    struct ph__json *status;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.num_threads = 1, .results = asked});
    const struct ph_hub_service service = hub_thread_service("job", 1);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &key, 1, 2, transport);
    hub_workers_wait(&workers);
    assert_ok(ph__hub_status(&hub.options, NULL, &status));
    assert_text(job_of(status, "job"), "results", wanted);
    ph__json_destroy(status);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

static void results_that_are_sent_and_leave_the_caches_are_written_past_them(void **state)
{
    (void)state;
    const size_t cache_bytes = ph__cpu_own_cache_bytes();
    check_results(PH_HUB_RESULTS_AUTO, PH_HUB_TCP, cache_bytes + 4096, "non_temporal");
    check_results(PH_HUB_RESULTS_AUTO, PH_HUB_TCP, cache_bytes, "cached");
    check_results(PH_HUB_RESULTS_AUTO, PH_HUB_SHARED_MEMORY, cache_bytes + 4096, "cached");
    check_results(PH_HUB_RESULTS_CACHED, PH_HUB_TCP, cache_bytes + 4096, "cached");
    check_results(PH_HUB_RESULTS_NON_TEMPORAL, PH_HUB_SHARED_MEMORY, 4096, "non_temporal");
}

static void one_service_can_be_asked_for_in_full(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    struct ph__json *status;
    struct ph_hub_key keys[NUM_KEYS];
    for (size_t i = 0; i < NUM_KEYS; i++)
        keys[i] = (struct ph_hub_key){.num_elements = i + 1, .dtype = PH_F32};
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service services[] = {hub_thread_service("large", 1), hub_thread_service("idle", 3)};
    assert_ok(ph_hub_create_service(&hub.options, &services[0]));
    assert_ok(ph_hub_create_service(&hub.options, &services[1]));
    hub_workers_begin(&workers, &hub, &services[0], keys, NUM_KEYS, 1, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    assert_ok(ph__hub_status(&hub.options, NULL, &status));
    assert_int_equal(ph__json_size(ph__json_get(status, "jobs")), 2);
    assert_int_equal(count(job_of(status, "large"), "num_keys"), NUM_KEYS);
    assert_true(ph__json_size(ph__json_get(job_of(status, "large"), "keys")) < NUM_KEYS);
    assert_text(job_of(status, "idle"), "state", "gathering");
    assert_int_equal(count(job_of(status, "idle"), "workers_there"), 0);
    assert_int_equal(count(job_of(status, "idle"), "workers_wanted"), 3);
    ph__json_destroy(status);
    assert_ok(ph__hub_status(&hub.options, "large", &status));
    assert_int_equal(ph__json_size(ph__json_get(status, "jobs")), 1);
    assert_int_equal(ph__json_size(ph__json_get(job_of(status, "large"), "keys")), NUM_KEYS);
    ph__json_destroy(status);
    assert_ok(ph__hub_status(&hub.options, "absent", &status));
    assert_int_equal(ph__json_size(ph__json_get(status, "jobs")), 0);
    ph__json_destroy(status);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

static void who_is_no_hub_has_no_status(void **state)
{
    (void)state;
    struct ph__json *status;
    const struct ph_hub_options options = {
        .size = sizeof options, .address = "127.0.0.1:1", .timeout_ms = 1000};
    assert_fails(ph__hub_status(&options, NULL, &status), PH_ERROR_PEER, "127.0.0.1:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_hub_tells_its_limits_and_core_threads),
        cmocka_unit_test(a_running_job_tells_what_it_does_and_how_workers_are_connected),
        cmocka_unit_test(each_reason_for_tcp_is_told),
        cmocka_unit_test(workers_of_several_hubs_say_so),
        cmocka_unit_test(results_that_are_sent_and_leave_the_caches_are_written_past_them),
        cmocka_unit_test(one_service_can_be_asked_for_in_full),
        cmocka_unit_test(who_is_no_hub_has_no_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
