/* Workers as threads of a test, beside the hubs of support/hub_thread.h. What one met is told when it is
 * joined: cmocka's checks belong to the thread that runs the test. */
#ifndef PH_TEST_WORKER_THREAD_H
#define PH_TEST_WORKER_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "phloem/hub.h"

struct test_worker;
typedef ph_status (*test_worker_function)(struct test_worker *worker);

struct test_worker {
    uint32_t rank;
    test_worker_function function;
    void *context;
    struct ph_hub_client *client; /* the function's; destroyed when it has returned */
    pthread_t thread;
    atomic_bool has_ended; /* the status is known; for who does not join it yet */
    ph_status status;
    char text[1024];
};

void test_worker_begin(struct test_worker *worker);
/* What the function returned, with ph_error_text(). */
ph_status test_worker_end(struct test_worker *worker);

bool test_worker_has_failed(const struct test_worker *worker);

/* Runs them side by side; the first error among them. */
ph_status test_workers_run(struct test_worker *workers, uint32_t num_workers);

#endif
