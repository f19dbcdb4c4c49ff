/* See hub_in_process.h. */
#include "hub/hub_in_process.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static void *serve(void *context)
{
    struct test_hub *hub = context;
    hub->status = ph_hub_server_run(hub->server, NULL);
    return NULL;
}

void test_hub_begin(struct test_hub *hub, struct ph_hub_server_options options)
{
    if (options.num_threads == 0)
        options.num_threads = 2;
    *hub = (struct test_hub){.options = {.timeout_ms = 20000}};
    assert_ok(ph_hub_server_create(&options, &hub->server));
    snprintf(hub->address, sizeof hub->address, "%s", ph_hub_server_address(hub->server));
    hub->options.address = hub->address;
    assert_int_equal(pthread_create(&hub->thread, NULL, serve, hub), 0);
}

void test_hub_end(struct test_hub *hub)
{
    ph_hub_server_stop(hub->server);
    pthread_join(hub->thread, NULL);
    ph_hub_server_destroy(hub->server);
    assert_int_equal(hub->status, PH_OK);
}

static void *work(void *context)
{
    struct test_worker *worker = context;
    worker->status = worker->function(worker);
    snprintf(worker->text, sizeof worker->text, "%s", ph_error_text());
    ph_hub_client_destroy(worker->client);
    worker->client = NULL;
    return NULL;
}

void test_worker_begin(struct test_worker *worker)
{
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

ph_status test_worker_end(struct test_worker *worker)
{
    pthread_join(worker->thread, NULL);
    return worker->status == PH_OK ? PH_OK : ph_fail(worker->status, "%s", worker->text);
}

ph_status test_workers_run(struct test_worker *workers, uint32_t num_workers)
{
    const struct test_worker *first = NULL;
    for (uint32_t i = 0; i < num_workers; i++)
        test_worker_begin(&workers[i]);
    for (uint32_t i = 0; i < num_workers; i++) {
        if (test_worker_end(&workers[i]) != PH_OK && first == NULL)
            first = &workers[i];
    }
    return first == NULL ? PH_OK : ph_fail(first->status, "%s", first->text);
}
