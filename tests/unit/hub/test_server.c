#include "support/test_support.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket.h"
#include "phloem/hub.h"

#define NONCE 4711u
#define NUM_ELEMENTS 40000u /* several chunks */
#define TIMEOUT_MS 20000u

/* ---- a hub in a thread ------------------------------------------------------------------------------------------- */

struct hub {
    struct ph_hub_server *server;
    struct ph_hub_options options; /* to reach it */
    pthread_t thread;
    ph_status status; /* what it ended with */
};

static void *serve(void *context)
{
    struct hub *hub = context;
    hub->status = ph_hub_server_run(hub->server, NULL);
    return NULL;
}

static void begin_hub(struct hub *hub, struct ph_hub_server_options options)
{
    if (options.num_threads == 0)
        options.num_threads = 2;
    *hub = (struct hub){0};
    assert_ok(ph_hub_server_create(&options, &hub->server));
    hub->options =
        (struct ph_hub_options){.address = ph_hub_server_address(hub->server), .timeout_ms = TIMEOUT_MS};
    assert_int_equal(pthread_create(&hub->thread, NULL, serve, hub), 0);
}

static void end_hub(struct hub *hub)
{
    ph_hub_server_stop(hub->server);
    pthread_join(hub->thread, NULL);
    ph_hub_server_destroy(hub->server);
    assert_int_equal(hub->status, PH_OK);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static const struct ph_hub_optimizer sum_alone = {.is_none = true};

static struct ph_hub_service a_service(const char *name, uint32_t num_workers)
{
    return (struct ph_hub_service){.name = name,
        .nonce = NONCE,
        .num_workers = num_workers,
        .optimizers = &sum_alone,
        .num_optimizers = 1};
}

struct worker {
    const struct hub *hub;
    const char *service;
    uint32_t rank, num_rounds;
    size_t num_elements;
    float factor; /* each of its gradients is this times the iteration */
    ph_status status;
    char error[1024];
    float last;   /* parameter that it got */
    bool is_same; /* all others of the key are the same */
    pthread_t thread;
};

static ph_status push_and_pull(struct worker *worker, struct ph_hub_client *client)
{
    const struct ph_hub_key key = {.num_elements = worker->num_elements, .dtype = PH_F32};
    PH_TRY(ph_hub_init(client, &key, 1, NULL));
    for (uint32_t round = 1; round <= worker->num_rounds; round++) {
        float *gradient = ph_hub_gradient(client, 0);
        for (size_t i = 0; i < worker->num_elements; i++)
            gradient[i] = worker->factor * (float)round;
        PH_TRY(ph_hub_pushpull_start(client, 0));
        PH_TRY(ph_hub_wait(client, 0));
    }
    const float *parameters = ph_hub_parameters(client, 0);
    worker->last = parameters[0];
    worker->is_same = true;
    for (size_t i = 0; i < worker->num_elements; i++)
        worker->is_same &= parameters[i] == worker->last;
    return ph_hub_leave(client);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct ph_hub_client *client = NULL;
    worker->status = ph_hub_connect(&worker->hub->options, worker->service, NONCE, worker->rank, &client);
    if (worker->status == PH_OK)
        worker->status = push_and_pull(worker, client);
    if (worker->status != PH_OK)
        snprintf(worker->error, sizeof worker->error, "%s", ph_error_text());
    ph_hub_client_destroy(client);
    return NULL;
}

static void begin_worker(
    struct worker *worker, const struct hub *hub, const char *service, uint32_t rank, size_t num_elements)
{
    *worker = (struct worker){.hub = hub,
        .service = service,
        .rank = rank,
        .num_rounds = 5,
        .num_elements = num_elements,
        .factor = (float)(rank + 1)};
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void end_worker(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
}

/* ---- services ---------------------------------------------------------------------------------------------------- */

static void two_services_are_served_side_by_side(void **state)
{
    (void)state;
    struct hub hub;
    struct worker workers[4];
    begin_hub(&hub, (struct ph_hub_server_options){0});
    const struct ph_hub_service services[] = {a_service("one", 2), a_service("two", 2)};
    assert_ok(ph_hub_create_service(&hub.options, &services[0]));
    assert_ok(ph_hub_create_service(&hub.options, &services[1]));
    for (uint32_t i = 0; i < 4; i++) {
        begin_worker(&workers[i], &hub, services[i / 2].name, i % 2, NUM_ELEMENTS);
    }
    for (uint32_t i = 0; i < 4; i++) {
        end_worker(&workers[i]);
        assert_string_equal(workers[i].error, "");
        assert_true(workers[i].is_same);
        assert_true(workers[i].last == 5 * (1 + 2)); /* the sum of the last round */
    }
    end_hub(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_services_are_served_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
