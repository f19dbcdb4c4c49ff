/* Jobs whose keys several hubs share: what comes out is what one hub makes of them, each hub has its part of
 * the work, and whoever does not fit is told so. */
#include "support/test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/client/client_greet.h"
#include "hub/client/client_operator.h"
#include "hub/hub_processes.h"
#include "hub/kept_job.h"
#include "hub/several_hubs.h"

static const struct ph_hub_server_options no_options[MAX_SEVERAL_HUBS];

/* ---- the same bits ---- */

enum { NUM_ITERATIONS = 9 };

static void run_on(struct kept_job *trial, uint32_t num_hubs)
{
    struct several_hubs hubs;
    several_hubs_begin(&hubs, num_hubs, no_options);
    hubs.all.options.transport = trial->transport;
    trial->hub = &hubs.all;
    trial->stop_at = NUM_ITERATIONS;
    trial->pulled = calloc((NUM_ITERATIONS + 1) * TRIAL_NUMBERS, sizeof(float));
    assert_ok(kept_job_run(trial));
    several_hubs_end(&hubs);
}

static void brings_one_hubs_bits(const struct kept_job *job)
{
    struct kept_job alone = *job;
    run_on(&alone, 1);
    for (uint32_t num_hubs = 2; num_hubs <= MAX_SEVERAL_HUBS; num_hubs++) {
        struct kept_job shared = *job;
        run_on(&shared, num_hubs);
        assert_memory_equal(shared.first, alone.first, sizeof alone.first);
        assert_memory_equal(
            shared.pulled, alone.pulled, (NUM_ITERATIONS + 1) * TRIAL_NUMBERS * sizeof(float));
        free(shared.pulled);
    }
    free(alone.pulled);
}

static const struct ph_hub_optimizer optimizers[] = {
    {.rule.kind = PH_SGD, .learning_rate = .25F},
    {.rule.kind = PH_MOMENTUM, .learning_rate = .5F, .rule.momentum = .875F},
    {.rule.kind = PH_ADAM,
        .learning_rate = .125F,
        .rule.beta1 = .875F,
        .rule.beta2 = .96875F,
        .rule.epsilon = 1e-6F},
    {.is_none = true},
};

static void several_hubs_bring_one_hubs_bits(void **state)
{
    (void)state;
    static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        struct kept_job trial = kept_job_make(optimizers[i]);
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            trial.dtype = dtypes[d];
            brings_one_hubs_bits(&trial);
        }
    }
}

static void with_two_iterations_under_way_several_hubs_bring_one_hubs_bits(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    trial.service.depth = 2;
    trial.service.is_mean = true;
    brings_one_hubs_bits(&trial);
}

/* Three keys, and as many chunks or fewer than hubs. */
static void some_hubs_may_have_no_chunk(void **state)
{
    (void)state;
    struct kept_job trial = kept_job_make(trial_momentum);
    trial.service.chunk_bytes = 32768;
    trial.dtype = PH_F16;
    brings_one_hubs_bits(&trial);
}

/* ---- a single key, with workers that can be looked at ---- */

enum { KEY_ELEMENTS = 1 << 20 };

struct large_job {
    struct hub_thread *hub;
    pthread_barrier_t gate; /* all workers have begun, and wait */
    struct ph_hub_client_info info;
    size_t num_elements;
};

static ph_status hold_job(struct test_worker *worker)
{
    struct large_job *job = worker->context;
    const struct ph_hub_key key = {.num_elements = job->num_elements, .dtype = PH_F32};
    ph_status status =
        ph_hub_connect(&job->hub->options, "large", TRIAL_NONCE, worker->rank, &worker->client);
    if (status == PH_OK)
        status = ph_hub_init(worker->client, &key, 1, NULL);
    if (status == PH_OK && worker->rank == 0)
        ph_hub_client_describe(worker->client, &job->info);
    pthread_barrier_wait(&job->gate);
    pthread_barrier_wait(&job->gate);
    return status == PH_OK ? ph_hub_leave(worker->client) : status;
}

static void begin_large(struct large_job *job, struct hub_thread *hub, struct test_worker *workers)
{
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "large",
        .nonce = TRIAL_NONCE,
        .num_workers = TRIAL_WORKERS,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
    *job = (struct large_job){.hub = hub, .num_elements = KEY_ELEMENTS};
    hub->options.transport = PH_HUB_TCP;
    assert_int_equal(pthread_barrier_init(&job->gate, NULL, TRIAL_WORKERS + 1), 0);
    assert_ok(ph_hub_create_service(&hub->options, &service));
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        workers[rank] = (struct test_worker){.rank = rank, .function = hold_job, .context = job};
        test_worker_begin(&workers[rank]);
    }
    pthread_barrier_wait(&job->gate);
}

/* The error of the first that failed. */
static ph_status end_large(struct large_job *job, struct test_worker *workers)
{
    ph_status first = PH_OK;
    pthread_barrier_wait(&job->gate);
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        const ph_status status = test_worker_end(&workers[rank]);
        first = first == PH_OK ? status : first;
    }
    pthread_barrier_destroy(&job->gate);
    return first;
}

static struct ph__json *job_of(const struct hub_thread *hub, struct ph__json **status_out)
{
    assert_ok(ph__hub_status(&hub->options, "large", status_out));
    return (struct ph__json *)ph__json_at(ph__json_get(*status_out, "jobs"), 0);
}

static uint64_t count_of(const struct hub_thread *hub, const char *name)
{
    struct ph__json *status;
    const uint64_t count = (uint64_t)ph__json_as_integer(ph__json_get(job_of(hub, &status), name), 0);
    ph__json_destroy(status);
    return count;
}

static void each_hub_has_its_part_of_memory_and_chunks(void **state)
{
    (void)state;
    struct several_hubs alone, both;
    struct large_job job;
    struct test_worker workers[TRIAL_WORKERS];
    const struct ph_hub_server_options options[2] = {{.chunk_bytes = 32768}, {.chunk_bytes = 32768}};
    several_hubs_begin(&alone, 1, options);
    begin_large(&job, &alone.hubs[0], workers);
    const uint64_t whole = count_of(&alone.hubs[0], "bytes");
    assert_int_equal(count_of(&alone.hubs[0], "num_hubs"), 1);
    assert_ok(end_large(&job, workers));
    several_hubs_end(&alone);
    several_hubs_begin(&both, 2, no_options);
    begin_large(&job, &both.all, workers);
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t bytes = count_of(&both.hubs[i], "bytes");
        assert_in_range(bytes, whole / 2, whole / 2 + whole / 50);
        assert_int_equal(count_of(&both.hubs[i], "num_chunks"), 64);
        assert_int_equal(count_of(&both.hubs[i], "hub"), i + 1);
        assert_int_equal(count_of(&both.hubs[i], "num_hubs"), 2);
    }
    assert_string_equal(job.info.transport, "tcp");
    assert_int_equal(job.info.num_chunks, 128);
    assert_int_equal(job.info.num_cores, 4);
    assert_ok(end_large(&job, workers));
    several_hubs_end(&both);
}

static void a_quota_is_of_the_part(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct large_job job;
    struct test_worker workers[TRIAL_WORKERS];
    const uint64_t key_bytes = KEY_ELEMENTS * sizeof(float);
    const struct ph_hub_server_options options[2] = {
        {.max_job_bytes = 3 * key_bytes}, {.max_job_bytes = 3 * key_bytes}};
    several_hubs_begin(&hubs, 2, options); /* gradients of two workers, two versions and a slot */
    begin_large(&job, &hubs.hubs[0], workers);
    assert_int_equal(end_large(&job, workers), PH_ERROR_MEMORY);
    assert_ok(ph_hub_destroy_service(&hubs.hubs[0].options, "large", TRIAL_NONCE));
    begin_large(&job, &hubs.all, workers);
    assert_ok(end_large(&job, workers));
    several_hubs_end(&hubs);
}

/* ---- deaths ---- */

static void *stop_hub(void *context)
{
    struct hub_thread *hub = context;
    ph_hub_server_stop(hub->server);
    return NULL;
}

/* For whoever waits for what a worker does; its own waits have a limit. */
static void assert_not_failed(const struct test_worker *worker)
{
    if (test_worker_has_failed(worker))
        fail_msg("worker %u has failed: %s", worker->rank, worker->text);
}

/* Begins a job that would go on for ever, and ends a hub when both workers are in it. */
static void a_hub_ends(struct hub_thread *all, void *(*end)(void *), void *context, const char *name)
{
    struct test_worker workers[TRIAL_WORKERS];
    struct kept_job trial = kept_job_make(trial_momentum);
    struct ph__json *status;
    uint64_t iteration = 0;
    struct ph_hub_options first = all->options;
    char address[64] = "";
    memcpy(address, all->options.address, strcspn(all->options.address, ","));
    first.address = address;
    trial.hub = all;
    trial.stop_at = UINT64_MAX;
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        workers[rank] = (struct test_worker){.rank = rank, .function = kept_job_train, .context = &trial};
        test_worker_begin(&workers[rank]);
    }
    while (iteration < 10) {
        assert_ok(ph__hub_status(&first, NULL, &status));
        iteration = (uint64_t)ph__json_as_integer(
            ph__json_get(ph__json_at(ph__json_get(status, "jobs"), 0), "iteration"), 0);
        ph__json_destroy(status);
        for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++)
            assert_not_failed(&workers[rank]);
    }
    end(context);
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        assert_fails(test_worker_end(&workers[rank]), PH_ERROR_PEER, "hub 127.0.0.1:");
        assert_null(strstr(workers[rank].text, "chunks timed out after"));
    }
    /* One of them hears of the hub's end; the other may hear first that this one has gone. */
    assert_true(strstr(workers[0].text, name) != NULL || strstr(workers[1].text, name) != NULL);
}

static void the_end_of_one_hub_is_an_error_for_all_workers(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct several_hubs hubs;
        several_hubs_begin(&hubs, 2, no_options);
        a_hub_ends(&hubs.all, stop_hub, &hubs.hubs[i], hubs.hubs[i].options.address);
        several_hubs_end(&hubs);
    }
}

static void *kill_hub(void *context)
{
    hub_process_kill(context);
    return NULL;
}

static void the_kill_of_one_hub_is_an_error_for_all_workers(void **state)
{
    (void)state;
    struct hub_job process = {.num_workers = 0};
    struct hub_thread hub;
    hub_job_begin(&process);
    hub_job_start_hub(&process);
    hub_thread_begin(&hub, no_options[0]);
    struct hub_thread both = {.options = {.size = sizeof(struct ph_hub_options), .timeout_ms = 20000}};
    snprintf(both.address, sizeof both.address, "%s,%s", hub.options.address, process.address);
    both.options.address = both.address;
    a_hub_ends(&both, kill_hub, &process.hub, process.address);
    hub_thread_end(&hub);
    hub_job_end(&process);
}

static uint64_t count_workers(const struct hub_thread *hub)
{
    struct ph__json *status;
    assert_ok(ph__hub_status(&hub->options, NULL, &status));
    const struct ph__json *job = ph__json_at(ph__json_get(status, "jobs"), 0);
    const uint64_t count = (uint64_t)ph__json_as_integer(ph__json_get(job, "workers_there"), 0);
    ph__json_destroy(status);
    return count;
}

/* It waits at the other hub for a worker that does not come. */
static void a_worker_that_waits_for_others_hears_of_a_hubs_end(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct kept_job trial = kept_job_make(trial_momentum);
    struct test_worker worker = {.function = kept_job_train, .context = &trial};
    several_hubs_begin(&hubs, 2, no_options);
    trial.hub = &hubs.all;
    test_worker_begin(&worker);
    while (count_workers(&hubs.hubs[1]) == 0)
        assert_not_failed(&worker);
    stop_hub(&hubs.hubs[1]);
    assert_fails(test_worker_end(&worker), PH_ERROR_PEER, hubs.hubs[1].options.address);
    assert_null(strstr(worker.text, "the hub timed out"));
    several_hubs_end(&hubs);
}

static void a_job_may_shrink_on_all_hubs(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct kept_job trials[TRIAL_WORKERS];
    struct test_worker workers[TRIAL_WORKERS];
    several_hubs_begin(&hubs, 2, no_options);
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++) {
        trials[rank] = kept_job_make(trial_momentum);
        trials[rank].hub = &hubs.all;
        trials[rank].service.on_death = PH_HUB_SHRINK;
        trials[rank].stop_at = rank == 0 ? 20 : 7; /* where it dies */
        trials[rank].has_left = rank == 0;
        workers[rank] =
            (struct test_worker){.rank = rank, .function = kept_job_train, .context = &trials[rank]};
    }
    assert_ok(test_workers_run(workers, TRIAL_WORKERS));
    several_hubs_end(&hubs);
}

/* ---- what does not fit ---- */

static struct ph_hub_service plain_service(uint32_t num_workers)
{
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = "plain",
        .nonce = 1,
        .num_workers = num_workers,
        .optimizers = &trial_momentum,
        .num_optimizers = 1};
}

static void what_several_hubs_cannot_do_is_refused(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct ph_hub_client *client;
    struct ph_hub_service service = plain_service(1);
    const struct ph_hub_server_options options[2] = {{.num_threads = 2}, {.aggregation = PH_HUB_WIDE}};
    several_hubs_begin(&hubs, 2, options);
    assert_fails(ph_hub_create_service(&hubs.all.options, &service), PH_ERROR_USAGE, "wide");
    assert_non_null(strstr(ph_error_text(), hubs.hubs[1].options.address));
    hubs.all.options.transport = PH_HUB_SHARED_MEMORY;
    assert_fails(ph_hub_connect(&hubs.all.options, "plain", 1, 0, &client), PH_ERROR_USAGE, "several hubs");
    service.clip_norm = 1;
    assert_fails(ph_hub_create_service(&hubs.all.options, &service), PH_ERROR_USAGE, "norm");
    several_hubs_end(&hubs);
}

static void a_list_of_hubs_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ",", "127.0.0.1:1,", ",127.0.0.1:1", "127.0.0.1:1,,127.0.0.1:2"};
    const struct ph_hub_service service = plain_service(1);
    struct ph_hub_options options = {.size = sizeof options, .timeout_ms = 100};
    char many[65 * 2 + 1];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.address = wrong[i];
        assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_CONFIG, "address is missing");
    }
    for (size_t i = 0; i < sizeof many - 1; i++)
        many[i] = i % 2 == 0 ? 'a' : ',';
    many[sizeof many - 2] = '\0';
    options.address = many;
    assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_USAGE, "at most 64 hubs");
}

static struct ph_hub_options options_of(const char *format, const struct several_hubs *hubs, char text[256])
{
    struct ph_hub_options options = hubs->all.options;
    snprintf(text, 256, format, hubs->hubs[0].options.address, hubs->hubs[1].options.address,
        hubs->hubs[2].options.address);
    options.address = text;
    return options;
}

static void jobs_of_other_hubs_are_not_mixed_up(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct ph_hub_client *client;
    char texts[4][256];
    const struct ph_hub_service service = plain_service(1);
    several_hubs_begin(&hubs, 3, no_options);
    const struct ph_hub_options all = options_of("%1$s,%2$s,%3$s", &hubs, texts[0]);
    const struct ph_hub_options two = options_of("%1$s,%2$s", &hubs, texts[1]);
    const struct ph_hub_options one = options_of("%1$s", &hubs, texts[2]);
    const struct ph_hub_options turned = options_of("%1$s,%3$s,%2$s", &hubs, texts[3]);
    assert_ok(ph_hub_create_service(&all, &service));
    assert_ok(ph_hub_create_service(&all, &service));
    assert_fails(ph_hub_create_service(&two, &service), PH_ERROR_USAGE, "this is hub 1 of 3, not hub 1 of 2");
    assert_fails(ph_hub_create_service(&one, &service), PH_ERROR_USAGE, "this is hub 1 of 3, not hub 1 of 1");
    assert_fails(ph_hub_create_service(&turned, &service), PH_ERROR_USAGE, hubs.hubs[2].options.address);
    assert_fails(ph_hub_connect(&two, "plain", 1, 0, &client), PH_ERROR_USAGE, "hub 1 of 3");
    assert_fails(ph_hub_connect(&one, "plain", 1, 0, &client), PH_ERROR_USAGE, "hub 1 of 3");
    assert_fails(ph_hub_connect(&turned, "plain", 1, 0, &client), PH_ERROR_USAGE, "hub 3 of 3");
    assert_ok(ph_hub_connect(&all, "plain", 1, 0, &client));
    ph_hub_client_destroy(client);
    several_hubs_end(&hubs);
}

static void create_part(const struct hub_thread *hub, uint32_t depth)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_stream *stream;
    struct ph__control_frame frame;
    struct ph_hub_service service = plain_service(1);
    service.depth = depth;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service(&writer, &service, &(struct ph__hub_share){.hub = 1, .num_hubs = 2});
    assert_ok(ph__client_reach_once(&hub->options, &stream));
    assert_ok(ph__client_request(
        stream, PH_FRAME_CREATE, &writer, PH_FRAME_ANSWER, (struct ph__timeout){.ms = 5000}, &frame));
    ph__control_stream_destroy(stream);
}

/* The second hub has the service already, made by somebody else. */
static void hubs_with_other_settings_are_told(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct ph_hub_client *client;
    const struct ph_hub_service service = plain_service(1);
    several_hubs_begin(&hubs, 2, no_options);
    create_part(&hubs.hubs[1], 2);
    assert_fails(ph_hub_create_service(&hubs.all.options, &service), PH_ERROR_USAGE, "other settings");
    assert_non_null(strstr(ph_error_text(), hubs.hubs[1].options.address));
    assert_fails(ph_hub_connect(&hubs.all.options, "plain", 1, 0, &client), PH_ERROR_USAGE, "other settings");
    assert_non_null(strstr(ph_error_text(), hubs.hubs[0].options.address));
    assert_ok(ph_hub_destroy_service(&hubs.all.options, "plain", 1));
    assert_ok(ph_hub_create_service(&hubs.all.options, &service));
    several_hubs_end(&hubs);
}

static void hubs_with_other_chunks_are_told(void **state)
{
    (void)state;
    struct several_hubs hubs;
    struct kept_job trial = kept_job_make(trial_momentum);
    const struct ph_hub_server_options options[2] = {{.chunk_bytes = 256}, {.chunk_bytes = 512}};
    several_hubs_begin(&hubs, 2, options);
    trial.hub = &hubs.all;
    trial.service.chunk_bytes = 0;
    assert_fails(kept_job_run(&trial), PH_ERROR_PEER, "chunks of 256 bytes");
    assert_non_null(strstr(ph_error_text(), hubs.hubs[0].options.address));
    assert_non_null(strstr(ph_error_text(), hubs.hubs[1].options.address));
    assert_ok(ph_hub_destroy_service(&hubs.all.options, "job", TRIAL_NONCE));
    trial.service.chunk_bytes = 128;
    assert_ok(kept_job_run(&trial));
    several_hubs_end(&hubs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_kill_of_one_hub_is_an_error_for_all_workers, hub_processes_teardown),
        cmocka_unit_test(the_end_of_one_hub_is_an_error_for_all_workers),
        cmocka_unit_test(several_hubs_bring_one_hubs_bits),
        cmocka_unit_test(with_two_iterations_under_way_several_hubs_bring_one_hubs_bits),
        cmocka_unit_test(some_hubs_may_have_no_chunk),
        cmocka_unit_test(a_worker_that_waits_for_others_hears_of_a_hubs_end),
        cmocka_unit_test(a_job_may_shrink_on_all_hubs),
        cmocka_unit_test(each_hub_has_its_part_of_memory_and_chunks),
        cmocka_unit_test(a_quota_is_of_the_part),
        cmocka_unit_test(what_several_hubs_cannot_do_is_refused),
        cmocka_unit_test(a_list_of_hubs_is_checked),
        cmocka_unit_test(jobs_of_other_hubs_are_not_mixed_up),
        cmocka_unit_test(hubs_with_other_settings_are_told),
        cmocka_unit_test(hubs_with_other_chunks_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
