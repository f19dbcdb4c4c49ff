/* What a hub takes and what it refuses: services, quotas, workers, and strangers. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_operator.h"
#include "net/link/socket.h"
#include "support/hub_thread.h"

#define NUM_ELEMENTS 40000u /* several chunks */

static const struct ph_hub_key a_key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32};

static void run_job(const struct hub_thread *hub, const struct ph_hub_service *service)
{
    struct hub_workers workers;
    hub_workers_begin(&workers, hub, service, &a_key, 1, 3, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
}

static struct ph_hub_client *connect_worker(const struct hub_thread *hub, const char *service, uint32_t rank)
{
    struct ph_hub_client *client = NULL;
    assert_ok(ph_hub_connect(&hub->options, service, HUB_THREAD_NONCE, rank, &client));
    return client;
}

/* ---- services ---- */

static void check_sums(const struct hub_workers *workers, uint64_t iteration)
{
    for (uint32_t rank = 0; rank < workers->count; rank++) {
        const float *got = workers->workers[rank].parameters[0];
        for (size_t i = 0; i < NUM_ELEMENTS; i++) {
            float sum = hub_thread_gradient(0, 0, iteration, i);
            for (uint32_t worker = 1; worker < workers->count; worker++)
                sum += hub_thread_gradient(worker, 0, iteration, i);
            assert_true(got[i] == sum);
        }
    }
}

static void two_services_are_served_side_by_side(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers[2];
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service services[] = {hub_thread_service("one", 2), hub_thread_service("two", 3)};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ph_hub_create_service(&hub.options, &services[i]));
        hub_workers_begin(&workers[i], &hub, &services[i], &a_key, 1, (uint32_t)i + 3, PH_HUB_AUTO);
    }
    for (size_t i = 0; i < 2; i++)
        hub_workers_wait(&workers[i]);
    for (size_t i = 0; i < 2; i++) {
        hub_workers_end(&workers[i]);
        check_sums(&workers[i], i + 3);
        hub_workers_fini(&workers[i]);
    }
    hub_thread_end(&hub);
}

static void a_service_can_run_again(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("again", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    run_job(&hub, &service);
    run_job(&hub, &service);
    hub_thread_end(&hub);
}

static void a_name_belongs_to_one_nonce_and_one_kind_of_job(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_service service = hub_thread_service("mine", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_create_service(&hub.options, &service)); /* each worker may */
    service.nonce++;
    assert_fails(ph_hub_create_service(&hub.options, &service), PH_ERROR_USAGE, "another nonce");
    service.nonce--;
    service.num_workers = 3;
    assert_fails(ph_hub_create_service(&hub.options, &service), PH_ERROR_USAGE, "other settings");
    assert_fails(ph_hub_destroy_service(&hub.options, "mine", 1), PH_ERROR_USAGE, "nonce");
    assert_fails(ph_hub_destroy_service(&hub.options, "yours", HUB_THREAD_NONCE), PH_ERROR_USAGE, "'yours'");
    assert_ok(ph_hub_destroy_service(&hub.options, "mine", HUB_THREAD_NONCE));
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_thread_end(&hub);
}

static void names_are_printable_and_not_too_long(void **state)
{
    (void)state;
    struct hub_thread hub;
    char name[PH_HUB_MAX_NAME + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_service service = hub_thread_service(name, 1);
    assert_fails(ph_hub_create_service(&hub.options, &service), PH_ERROR_USAGE, "name");
    service.name = "";
    assert_fails(ph_hub_create_service(&hub.options, &service), PH_ERROR_USAGE, "name");
    service.name = "two\nlines";
    assert_int_not_equal(ph_hub_create_service(&hub.options, &service), PH_OK);
    name[PH_HUB_MAX_NAME] = '\0';
    service.name = name;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_thread_end(&hub);
}

/* ---- limits ---- */

static void there_are_no_more_jobs_than_the_hub_allows(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_jobs = 2});
    const char *const names[] = {"a", "b", "c"};
    struct ph_hub_service services[3];
    for (size_t i = 0; i < 3; i++)
        services[i] = hub_thread_service(names[i], 1);
    assert_ok(ph_hub_create_service(&hub.options, &services[0]));
    assert_ok(ph_hub_create_service(&hub.options, &services[1]));
    assert_fails(ph_hub_create_service(&hub.options, &services[2]), PH_ERROR_MEMORY, "2 jobs");
    assert_ok(ph_hub_create_service(&hub.options, &services[0])); /* one that is there is no further one */
    assert_ok(ph_hub_destroy_service(&hub.options, "a", HUB_THREAD_NONCE));
    assert_ok(ph_hub_create_service(&hub.options, &services[2]));
    run_job(&hub, &services[2]);
    hub_thread_end(&hub);
}

static void refused_for_memory(const struct hub_thread *hub, const char *name)
{
    const struct ph_hub_service service = hub_thread_service(name, 1);
    assert_ok(ph_hub_create_service(&hub->options, &service));
    struct ph_hub_client *client = connect_worker(hub, name, 0);
    assert_fails(ph_hub_init(client, &a_key, 1, NULL), PH_ERROR_MEMORY, "bytes");
    ph_hub_client_destroy(client);
}

static void a_job_gets_no_more_memory_than_its_quota(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_job_bytes = NUM_ELEMENTS * sizeof(float)});
    refused_for_memory(&hub, "large");
    const struct ph_hub_service small = hub_thread_service("small", 1);
    const struct ph_hub_key key = {.num_elements = 100, .dtype = PH_F32};
    assert_ok(ph_hub_create_service(&hub.options, &small));
    struct ph_hub_client *client = connect_worker(&hub, "small", 0);
    assert_ok(ph_hub_init(client, &key, 1, NULL));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* The first job leaves too little for the second, until it ends. */
static void jobs_share_the_memory_of_the_hub(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_bytes = 3u * NUM_ELEMENTS * sizeof(float)});
    const struct ph_hub_service first = hub_thread_service("first", 1);
    assert_ok(ph_hub_create_service(&hub.options, &first));
    hub_workers_begin(&workers, &hub, &first, &a_key, 1, 1, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    refused_for_memory(&hub, "second");
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    const struct ph_hub_service second = hub_thread_service("second", 1);
    run_job(&hub, &second);
    hub_thread_end(&hub);
}

/* Else one job's chunk would keep the others' waiting. */
static void a_chunk_has_a_largest_size(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_server *server;
    hub_thread_begin(&hub, (struct ph_hub_server_options){.chunk_bytes = PH_HUB_MAX_CHUNK_BYTES});
    struct ph_hub_service service = hub_thread_service("coarse", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    run_job(&hub, &service);
    service.name = "coarser";
    service.chunk_bytes = PH_HUB_MAX_CHUNK_BYTES + 64;
    assert_fails(ph_hub_create_service(&hub.options, &service), PH_ERROR_USAGE, "up to 16777216");
    service.chunk_bytes = PH_HUB_MAX_CHUNK_BYTES;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    run_job(&hub, &service);
    hub_thread_end(&hub);
    const struct ph_hub_server_options options = {
        .size = sizeof options, .chunk_bytes = PH_HUB_MAX_CHUNK_BYTES + 64};
    assert_fails(ph_hub_server_create(&options, &server), PH_ERROR_CONFIG, "up to 16777216");
}

/* ---- workers ---- */

static void a_worker_has_a_rank_of_its_own_in_its_service(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *other = NULL;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("ranks", 2);
    assert_fails(
        ph_hub_connect(&hub.options, "ranks", HUB_THREAD_NONCE, 0, &other), PH_ERROR_PEER, "does not exist");
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_fails(ph_hub_connect(&hub.options, "ranks", 1, 0, &other), PH_ERROR_USAGE, "nonce");
    assert_fails(
        ph_hub_connect(&hub.options, "ranks", HUB_THREAD_NONCE, 2, &other), PH_ERROR_USAGE, "rank 2 of 2");
    struct ph_hub_client *client = connect_worker(&hub, "ranks", 1);
    assert_fails(ph_hub_connect(&hub.options, "ranks", HUB_THREAD_NONCE, 1, &other), PH_ERROR_PEER,
        "has joined already");
    ph_hub_client_destroy(client);
    run_job(&hub, &service); /* its place is free again */
    hub_thread_end(&hub);
}

struct initializing {
    struct ph_hub_client *client;
    struct ph_hub_key key;
    ph_status status;
    char error[1024];
};

/* Whoever is refused goes. */
static void *initialize(void *context)
{
    struct initializing *worker = context;
    worker->status = ph_hub_init(worker->client, &worker->key, 1, NULL);
    if (worker->status != PH_OK) {
        snprintf(worker->error, sizeof worker->error, "%s", ph_error_text());
        ph_hub_client_destroy(worker->client);
    }
    return NULL;
}

/* The rank of the worker that stays, when one of two has gone. */
static uint32_t rank_left_alone(const struct hub_thread *hub, const char *service)
{
    const uint64_t begin_ns = ph__clock_ns();
    for (;;) {
        struct ph__json *status;
        assert_ok(ph__hub_status(&hub->options, service, &status));
        const struct ph__json *job = ph__json_at(ph__json_get(status, "jobs"), 0);
        const struct ph__json *workers = ph__json_get(job, "workers");
        const size_t num_there = ph__json_size(workers);
        const int64_t rank = ph__json_as_integer(ph__json_get(ph__json_at(workers, 0), "rank"), -1);
        ph__json_destroy(status);
        if (num_there == 1)
            return (uint32_t)rank;
        assert_int_equal(num_there, 2);
        assert_true(ph__clock_ns() - begin_ns < HUB_THREAD_TIMEOUT_MS * 1000000ull);
    }
}

/* Whoever comes second hears that its keys are others, and goes; then the first can go on with a second one
 * that fits. */
static void all_workers_must_have_the_same_keys(void **state)
{
    (void)state;
    struct hub_thread hub;
    pthread_t threads[2];
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("keys", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    struct initializing workers[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        workers[rank] = (struct initializing){.client = connect_worker(&hub, "keys", rank), .key = a_key};
        workers[rank].key.num_elements += rank;
    }
    workers[0].key.dtype = PH_BF16;
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(pthread_create(&threads[rank], NULL, initialize, &workers[rank]), 0);
    /* By chance which; its end frees its place, and the other waits. */
    const uint32_t waiting = rank_left_alone(&hub, "keys"), refused = 1 - waiting;
    pthread_join(threads[refused], NULL);
    assert_int_equal(workers[refused].status, PH_ERROR_USAGE);
    assert_non_null(strstr(workers[refused].error, "same keys"));
    struct ph_hub_client *fitting = connect_worker(&hub, "keys", refused);
    assert_ok(ph_hub_init(fitting, &workers[waiting].key, 1, NULL));
    pthread_join(threads[waiting], NULL);
    assert_string_equal(workers[waiting].error, "");
    ph_hub_client_destroy(fitting);
    ph_hub_client_destroy(workers[waiting].client);
    hub_thread_end(&hub);
}

static void keys_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("odd", 1);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    const struct ph_hub_key keys[] = {{.num_elements = 0, .dtype = PH_F32},
        {.num_elements = 1, .dtype = PH_I64}, {.num_elements = 1, .dtype = PH_F32, .optimizer = 1},
        {.num_elements = SIZE_MAX, .dtype = PH_F32}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct ph_hub_client *client = connect_worker(&hub, "odd", 0);
        assert_int_not_equal(ph_hub_init(client, &keys[i], 1, NULL), PH_OK);
        ph_hub_client_destroy(client);
    }
    run_job(&hub, &service);
    hub_thread_end(&hub);
}

/* The other worker goes on waiting, and the one that was wrong may say it right. */
static void keys_that_cannot_be_are_their_workers_mistake_alone(void **state)
{
    (void)state;
    struct hub_thread hub;
    pthread_t thread;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("right", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    struct initializing other = {.client = connect_worker(&hub, "right", 1), .key = a_key};
    assert_int_equal(pthread_create(&thread, NULL, initialize, &other), 0);
    struct ph_hub_client *client = connect_worker(&hub, "right", 0);
    struct ph_hub_key wrong = a_key;
    wrong.optimizer = 1;
    assert_fails(ph_hub_init(client, &wrong, 1, NULL), PH_ERROR_USAGE, "optimizer 1 does not exist");
    wrong = (struct ph_hub_key){.num_elements = 1, .dtype = PH_I64};
    assert_fails(ph_hub_init(client, &wrong, 1, NULL), PH_ERROR_USAGE, "I64");
    wrong = (struct ph_hub_key){.num_elements = 0, .dtype = PH_F32};
    assert_fails(ph_hub_init(client, &wrong, 1, NULL), PH_ERROR_USAGE, "no elements");
    assert_ok(ph_hub_init(client, &a_key, 1, NULL));
    pthread_join(thread, NULL);
    assert_int_equal(other.status, PH_OK);
    ph_hub_client_destroy(other.client);
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

static void the_end_of_a_service_ends_its_workers(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("short", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, 1, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    assert_ok(ph_hub_destroy_service(&hub.options, "short", HUB_THREAD_NONCE));
    pthread_barrier_wait(&workers.gate);
    for (uint32_t rank = 0; rank < 2; rank++) {
        pthread_join(workers.workers[rank].thread, NULL);
        assert_int_equal(workers.workers[rank].status, PH_ERROR_PEER);
    }
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

/* ---- strangers ---- */

static int connect_stranger(const struct hub_thread *hub)
{
    int stranger;
    assert_ok(ph__socket_connect(hub->options.address, HUB_THREAD_TIMEOUT_MS, &stranger));
    return stranger;
}

static void say(int stranger, const void *bytes, size_t size)
{
    assert_int_equal(send(stranger, bytes, size, MSG_NOSIGNAL), size);
}

/* Reads until the hub closes. */
static void wait_for_the_end(int stranger)
{
    char bytes[256];
    struct pollfd polled = {.fd = stranger, .events = POLLIN};
    ssize_t received = 1;
    while (received > 0) {
        assert_int_equal(poll(&polled, 1, HUB_THREAD_TIMEOUT_MS), 1);
        received = recv(stranger, bytes, sizeof bytes, 0);
    }
    close(stranger);
}

static void strangers_do_not_disturb_a_job(void **state)
{
    (void)state;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("calm", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    const int silent = connect_stranger(&hub), half = connect_stranger(&hub);
    say(half, "\x26\0\0\0\x01", 5); /* a greeting's head, not to its end */
    const int hasty = connect_stranger(&hub);
    close(hasty);
    static const char request[] = "GET / HTTP/1.1\r\nHost: hub\r\n\r\n";
    const int browser = connect_stranger(&hub);
    say(browser, request, sizeof request - 1);
    wait_for_the_end(browser);
    char noise[4096];
    memset(noise, 0xa5, sizeof noise);
    const int noisy = connect_stranger(&hub);
    say(noisy, noise, sizeof noise);
    wait_for_the_end(noisy);
    const int early = connect_stranger(&hub);
    say(early, "\0\0\0\0\x06\0\0\0", 8); /* a CREATE without a greeting */
    wait_for_the_end(early);
    run_job(&hub, &service);
    say(half, "\0", 1);
    close(half);
    close(silent);
    run_job(&hub, &service);
    hub_thread_end(&hub);
}

static void another_version_of_the_interface_is_refused(void **state)
{
    (void)state;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    struct ph__control_stream *stream;
    struct hub_thread hub;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    for (uint16_t version = PH_HUB_API_VERSION; version <= PH_HUB_API_VERSION + 1; version++) {
        const struct ph__hello hello = {.api_version = version};
        assert_ok(ph__control_stream_create(connect_stranger(&hub), &stream));
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        ph__put_hello(&writer, &hello);
        const ph_status status = ph__client_request(stream, PH_FRAME_HELLO, &writer, PH_FRAME_WELCOME,
            (struct ph__timeout){.ms = HUB_THREAD_TIMEOUT_MS}, &frame);
        if (version == PH_HUB_API_VERSION)
            assert_ok(status);
        else
            assert_fails(status, PH_ERROR_PEER,
                "the worker has version 3 of the hub's interface and the hub version 2");
        ph__control_stream_destroy(stream);
    }
    hub_thread_end(&hub);
}

/* ---- the end ---- */

static void a_hub_that_has_ended_leaves_no_descriptor_open(void **state)
{
    (void)state;
    const size_t num_before = test_count_descriptors();
    two_services_are_served_side_by_side(NULL);
    strangers_do_not_disturb_a_job(NULL);
    assert_int_equal(test_count_descriptors(), num_before);
}

static void workers_hear_that_their_hub_ends(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service service = hub_thread_service("last", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &a_key, 1, 1, PH_HUB_AUTO);
    hub_workers_wait(&workers);
    hub_thread_end(&hub);
    pthread_barrier_wait(&workers.gate);
    for (uint32_t rank = 0; rank < 2; rank++) {
        pthread_join(workers.workers[rank].thread, NULL);
        assert_int_equal(workers.workers[rank].status, PH_ERROR_PEER);
    }
    hub_workers_fini(&workers);
}

/* So often that its bell cannot ring any more. */
static void a_signal_handler_that_stops_a_hub_leaves_errno_alone(void **state)
{
    (void)state;
    struct ph_hub_server *server;
    assert_ok(ph_hub_server_create(
        &(struct ph_hub_server_options){.size = sizeof(struct ph_hub_server_options), .num_threads = 1},
        &server));
    errno = 7;
    for (int i = 0; i < 100000 && errno == 7; i++)
        ph_hub_server_stop(server);
    assert_int_equal(errno, 7);
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_services_are_served_side_by_side),
        cmocka_unit_test(a_service_can_run_again),
        cmocka_unit_test(a_name_belongs_to_one_nonce_and_one_kind_of_job),
        cmocka_unit_test(names_are_printable_and_not_too_long),
        cmocka_unit_test(there_are_no_more_jobs_than_the_hub_allows),
        cmocka_unit_test(a_job_gets_no_more_memory_than_its_quota),
        cmocka_unit_test(jobs_share_the_memory_of_the_hub),
        cmocka_unit_test(a_chunk_has_a_largest_size),
        cmocka_unit_test(a_worker_has_a_rank_of_its_own_in_its_service),
        cmocka_unit_test(all_workers_must_have_the_same_keys),
        cmocka_unit_test(keys_that_cannot_be_are_refused),
        cmocka_unit_test(keys_that_cannot_be_are_their_workers_mistake_alone),
        cmocka_unit_test(the_end_of_a_service_ends_its_workers),
        cmocka_unit_test(strangers_do_not_disturb_a_job),
        cmocka_unit_test(another_version_of_the_interface_is_refused),
        cmocka_unit_test(a_hub_that_has_ended_leaves_no_descriptor_open),
        cmocka_unit_test(workers_hear_that_their_hub_ends),
        cmocka_unit_test(a_signal_handler_that_stops_a_hub_leaves_errno_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
