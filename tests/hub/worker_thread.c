/* See worker_thread.h. */
#include "hub/worker_thread.h"

#include <stdio.h>

#include "support/test_support.h"

static void *work(void *context)
{
    struct test_worker *worker = context;
    worker->status = worker->function(worker);
    snprintf(worker->text, sizeof worker->text, "%s", ph_error_text());
    ph_hub_client_destroy(worker->client);
    worker->client = NULL;
    atomic_store(&worker->has_ended, true);
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

bool test_worker_has_failed(const struct test_worker *worker)
{
    return atomic_load(&worker->has_ended) && worker->status != PH_OK;
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
