/* What a worker may start when, and how long it asks for what does not come. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hub/client/client_state.h"
#include "support/hub_thread.h"

enum { NUM_ELEMENTS = 3000 };

static const struct ph_hub_key a_key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32};

/* A worker that is alone in its job, so that each push is its iteration's sum. */
static struct ph_hub_client *join_alone(
    const struct hub_thread *hub, const struct ph_hub_service *service, struct ph_hub_options options)
{
    struct ph_hub_client *client;
    options.address = hub->options.address;
    options.timeout_ms = hub->options.timeout_ms;
    assert_ok(ph_hub_create_service(&options, service));
    assert_ok(ph_hub_connect(&options, service->name, service->nonce, 0, &client));
    assert_ok(ph_hub_init(client, &a_key, 1, NULL));
    return client;
}

static void set_gradient(struct ph_hub_client *client, uint64_t iteration)
{
    float *gradient = ph_hub_gradient(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        gradient[i] = hub_thread_gradient(0, 0, iteration, i);
}

static void check_parameters(const struct ph_hub_client *client, uint64_t iteration)
{
    const float *parameters = ph_hub_parameters(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        assert_true(parameters[i] == hub_thread_gradient(0, 0, iteration, i));
}

static void push(struct ph_hub_client *client, uint64_t iteration)
{
    set_gradient(client, iteration);
    assert_ok(ph_hub_push_start(client, 0));
}

static void pulls_what_nothing_overwrites(struct ph_hub_options options, uint32_t depth)
{
    struct hub_thread hub;
    struct ph_hub_service service = hub_thread_service("rules", 1);
    service.depth = depth;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_client *client = join_alone(&hub, &service, options);
    push(client, 1);
    assert_ok(ph_hub_wait(client, 0));
    assert_ok(ph_hub_pull_start(client, 0));
    for (uint64_t iteration = 2; iteration <= depth; iteration++)
        push(client, iteration);
    assert_fails(ph_hub_push_start(client, 0), PH_ERROR_USAGE, "wait for it before the next push");
    assert_fails(ph_hub_pushpull_start(client, 0), PH_ERROR_USAGE, "key 0: a pull is under way");
    assert_ok(ph_hub_wait(client, 0));
    check_parameters(client, 1);
    push(client, depth + 1);
    assert_ok(ph_hub_pull_start(client, 0));
    assert_ok(ph_hub_wait_all(client));
    check_parameters(client, depth + 1);
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

static void a_pull_is_waited_for_before_a_push_may_overwrite_it(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 2; depth++) {
        pulls_what_nothing_overwrites(
            (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_SHARED_MEMORY},
            depth);
        pulls_what_nothing_overwrites((struct ph_hub_options){.size = sizeof(struct ph_hub_options),
                                          .transport = PH_HUB_SHARED_MEMORY,
                                          .has_own_parameters = true},
            depth);
        pulls_what_nothing_overwrites(
            (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_TCP}, depth);
    }
}

/* ---- keys that are not there ---- */

static void assert_no_memory(struct ph_hub_client *client, size_t key, const char *why)
{
    assert_null(ph_hub_gradient(client, key));
    assert_non_null(strstr(ph_error_text(), why));
    (void)ph_fail(PH_ERROR_USAGE, "of before");
    assert_null(ph_hub_parameters(client, key));
    assert_non_null(strstr(ph_error_text(), why));
}

static void keys_that_are_not_there_have_no_memory(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const struct ph_hub_service service = hub_thread_service("rules", 1);
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&hub.options, service.name, service.nonce, 0, &client));
    assert_no_memory(client, 0, "after ph_hub_init");
    assert_ok(ph_hub_init(client, &a_key, 1, NULL));
    assert_no_memory(client, 1, "key 1 does not exist");
    assert_no_memory(client, SIZE_MAX, "the job has 1 keys");
    assert_ok(ph_hub_leave(client));
    assert_no_memory(client, 0, "has left its job"); /* others may go on in it */
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* ---- what the caller got wrong ---- */

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    struct ph_hub_client_info info;
    const struct ph_hub_service service = hub_thread_service("rules", 1);
    struct ph_hub_service without = service;
    without.optimizers = NULL;
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_options options = hub.options;
    assert_fails(ph_hub_create_service(&options, &without), PH_ERROR_USAGE, "optimizers is NULL");
    assert_ok(ph_hub_create_service(&options, &service));
    options.wait = (enum ph_hub_wait_policy)7;
    assert_fails(ph_hub_connect(&options, service.name, service.nonce, 0, &client), PH_ERROR_USAGE, "wait 7");
    options = hub.options;
    options.transport = (enum ph_hub_transport)9;
    assert_fails(
        ph_hub_connect(&options, service.name, service.nonce, 0, &client), PH_ERROR_USAGE, "transport 9");
    options = (struct ph_hub_options){.size = sizeof(struct ph_hub_options)};
    assert_fails(
        ph_hub_connect(&options, service.name, service.nonce, 0, &client), PH_ERROR_CONFIG, "is missing");
    assert_ok(ph_hub_connect(&hub.options, service.name, service.nonce, 0, &client));
    ph_hub_client_describe(client, &info);
    assert_int_equal(info.num_workers, 1);
    assert_fails(ph_hub_init(client, NULL, 1, NULL), PH_ERROR_USAGE, "keys is NULL");
    assert_ok(ph_hub_init(client, &a_key, 1, NULL)); /* nothing has happened to it */
    assert_fails(ph_hub_init(client, &a_key, 1, NULL), PH_ERROR_USAGE, "once");
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* Its layout was there, and its links were not. */
static void a_client_whose_init_has_failed_refuses(void **state)
{
    (void)state;
    const struct ph__layout_key key = {.num_elements = NUM_ELEMENTS};
    struct ph_hub_client client = {.joined = {.num_workers = 1, .depth = 1, .num_optimizers = 1}};
    struct ph__client_key state_of_key = {0};
    client.keys = &state_of_key;
    assert_ok(ph__layout_create(&key, 1, 4096, &client.layout));
    assert_fails(ph_hub_checkpoint(&client), PH_ERROR_USAGE, "between ph_hub_init and ph_hub_leave");
    assert_fails(ph_hub_set_learning_rate(&client, 0, .5F), PH_ERROR_USAGE, "after ph_hub_init");
    assert_fails(ph_hub_init(&client, &a_key, 1, NULL), PH_ERROR_USAGE, "once");
    assert_ok(ph_hub_wait_all(&client));
    ph__layout_destroy(client.layout);
}

static void a_worker_that_does_not_come_is_what_init_waits_for(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const struct ph_hub_service service = hub_thread_service("rules", 3);
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_options options = hub.options;
    options.timeout_ms = 200;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&options, service.name, service.nonce, 0, &client));
    assert_fails(ph_hub_init(client, &a_key, 1, NULL), PH_ERROR_PEER,
        "not all 3 workers have initialised their keys within 200 ms");
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

/* ---- a hub that stands still ---- */

enum { SHORT_TIMEOUT_MS = 1500, MAX_TESTS = 60000 }; /* one a millisecond */

static _Noreturn void serve(int address, uint32_t num_threads)
{
    struct ph_hub_server *server;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ph_hub_server_create(&(struct ph_hub_server_options){.size = sizeof(struct ph_hub_server_options),
                                 .num_threads = num_threads},
            &server) != PH_OK)
        _exit(1);
    const char *text = ph_hub_server_address(server);
    const size_t size = strlen(text) + 1;
    if (write(address, text, size) == (ssize_t)size)
        (void)!ph_hub_server_run(server, NULL);
    _exit(1);
}

static pid_t start_hub(uint32_t num_threads, char *address_out, size_t capacity)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t hub = fork();
    assert_true(hub >= 0);
    if (hub == 0)
        serve(ends[1], num_threads);
    close(ends[1]);
    assert_true(read(ends[0], address_out, capacity) > 0);
    close(ends[0]);
    return hub;
}

static ph_status test_until_it_ends(struct ph_hub_client *client)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (size_t i = 0; i < MAX_TESTS; i++) {
        bool is_done;
        PH_TRY(ph_hub_test(client, 0, &is_done));
        if (is_done)
            return PH_OK;
        nanosleep(&pause, NULL);
    }
    fail_msg("a test has no end");
    return PH_OK;
}

static void hears_of_a_hub_that_stands_still(struct ph_hub_options options)
{
    char address[64];
    const pid_t process = start_hub(1, address, sizeof address);
    const struct hub_thread hub = {
        .options = {
            .size = sizeof(struct ph_hub_options), .address = address, .timeout_ms = SHORT_TIMEOUT_MS}};
    struct ph_hub_service service = hub_thread_service("still", 1);
    service.chunk_bytes = 4096; /* not to be measured first */
    struct ph_hub_client *client = join_alone(&hub, &service, options);
    for (uint64_t iteration = 1; iteration <= 2; iteration++) {
        push(client, iteration);
        assert_ok(test_until_it_ends(client));
        assert_ok(ph_hub_wait(client, 0));
    }
    assert_int_equal(kill(process, SIGSTOP), 0);
    assert_int_equal(waitpid(process, NULL, WUNTRACED), process); /* all of its threads have stopped */
    push(client, 3);
    assert_fails(test_until_it_ends(client), PH_ERROR_PEER, "iteration 3: ");
    ph_hub_client_destroy(client);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

static void tests_in_vain_end_with_the_timeout(void **state)
{
    (void)state;
    hears_of_a_hub_that_stands_still(
        (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_SHARED_MEMORY});
    hears_of_a_hub_that_stands_still(
        (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_TCP});
    hears_of_a_hub_that_stands_still((struct ph_hub_options){
        .size = sizeof(struct ph_hub_options), .transport = PH_HUB_TCP, .has_no_thread = true});
}

/* ---- learning rates ---- */

static void a_rate_of_an_optimizer_that_there_is_not_harms_nobody(void **state)
{
    (void)state;
    struct hub_thread hub;
    const struct ph_hub_service service = hub_thread_service("rates", 1);
    hub_thread_begin(&hub, (struct ph_hub_server_options){0});
    struct ph_hub_client *client =
        join_alone(&hub, &service, (struct ph_hub_options){.size = sizeof(struct ph_hub_options)});
    assert_fails(ph_hub_set_learning_rate(client, 1, 0.5f), PH_ERROR_USAGE,
        "optimizer 1 does not exist: the service has 1");
    push(client, 1);
    assert_ok(ph_hub_pull_start(client, 0));
    assert_ok(ph_hub_wait_all(client));
    check_parameters(client, 1);
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

enum { NUM_RATED = 600, RATED_DEPTH = 2, RATED_CORES = 8 };

/* Key k's step of iteration t is -rate, with a gradient of 1. */
static float rate_of(size_t key, size_t iteration)
{
    return (float)(1 + key + NUM_RATED * (iteration - 1)) / 1024;
}

static void start_all_with_rates(struct ph_hub_client *client, size_t iteration)
{
    for (size_t key = 0; key < NUM_RATED; key++) {
        *(float *)ph_hub_gradient(client, key) = 1;
        assert_ok(ph_hub_set_learning_rate(client, 0, rate_of(key, iteration)));
        assert_ok(ph_hub_pushpull_start(client, key));
    }
}

static void each_push_has_its_rate(struct ph_hub_options options)
{
    static const struct ph_hub_optimizer sgd = {.rule.kind = PH_SGD, .learning_rate = 1};
    static struct ph_hub_key keys[NUM_RATED];
    char address[64];
    const pid_t process = start_hub(RATED_CORES, address, sizeof address);
    struct ph_hub_client *client;
    struct ph_hub_service service = hub_thread_service("rated", 1);
    service.chunk_bytes = 4096;
    service.depth = RATED_DEPTH;
    service.optimizers = &sgd;
    options.address = address;
    options.timeout_ms = HUB_THREAD_TIMEOUT_MS;
    for (size_t key = 0; key < NUM_RATED; key++)
        keys[key] = (struct ph_hub_key){.num_elements = 1, .dtype = PH_F32};
    assert_ok(ph_hub_create_service(&options, &service));
    assert_ok(ph_hub_connect(&options, service.name, service.nonce, 0, &client));
    assert_ok(ph_hub_init(client, keys, NUM_RATED, NULL));
    assert_int_equal(kill(process, SIGSTOP), 0);
    assert_int_equal(waitpid(process, NULL, WUNTRACED), process);
    for (size_t iteration = 1; iteration <= RATED_DEPTH; iteration++)
        start_all_with_rates(client, iteration);
    assert_int_equal(kill(process, SIGCONT), 0);
    assert_ok(ph_hub_wait_all(client));
    for (size_t key = 0; key < NUM_RATED; key++)
        assert_true(*(const float *)ph_hub_parameters(client, key) == -rate_of(key, 1) - rate_of(key, 2));
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    assert_int_equal(kill(process, SIGKILL), 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

/* As many as can be under way, while nobody takes them. */
static void rates_before_every_push_find_room(void **state)
{
    (void)state;
    each_push_has_its_rate(
        (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_SHARED_MEMORY});
    each_push_has_its_rate(
        (struct ph_hub_options){.size = sizeof(struct ph_hub_options), .transport = PH_HUB_TCP});
    each_push_has_its_rate((struct ph_hub_options){
        .size = sizeof(struct ph_hub_options), .transport = PH_HUB_TCP, .has_no_thread = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pull_is_waited_for_before_a_push_may_overwrite_it),
        cmocka_unit_test(keys_that_are_not_there_have_no_memory),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_client_whose_init_has_failed_refuses),
        cmocka_unit_test(a_worker_that_does_not_come_is_what_init_waits_for),
        cmocka_unit_test(tests_in_vain_end_with_the_timeout),
        cmocka_unit_test(a_rate_of_an_optimizer_that_there_is_not_harms_nobody),
        cmocka_unit_test(rates_before_every_push_find_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
