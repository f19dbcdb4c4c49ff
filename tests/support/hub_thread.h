/* A hub in a thread of the test, and workers in threads that push known gradients and keep what they pull. */
#ifndef PH_TEST_HUB_THREAD_H
#define PH_TEST_HUB_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "phloem/hub_server.h"
#include "support/test_support.h"

#define HUB_THREAD_NONCE 4711u
#define HUB_THREAD_ADDRESS 300 /* bytes, as of any socket */
#define HUB_THREAD_TIMEOUT_MS 20000u

struct hub_thread {
    struct ph_hub_server *server;
    struct ph_hub_options options; /* to reach it, with its secret; may be changed */
    char address[HUB_THREAD_ADDRESS];
    pthread_t thread;
    ph_status status; /* what it ended with */
};

/* num_threads 0: two core threads. */
void hub_thread_begin(struct hub_thread *hub, struct ph_hub_server_options options);
void hub_thread_end(struct hub_thread *hub); /* and asserts that it ended well */

/* A synchronous service of that name, whose gradients are summed and come back as they are. */
struct ph_hub_service hub_thread_service(const char *name, uint32_t num_workers);

/* The gradient that worker `rank` pushes: some fraction between -1 and 1. */
float hub_thread_gradient(uint32_t rank, size_t key, uint64_t iteration, size_t element);

struct hub_worker {
    const struct hub_thread *hub;
    const struct ph_hub_service *service;
    const struct ph_hub_key *keys;
    size_t num_keys;
    uint32_t rank, num_iterations;
    enum ph_hub_transport transport;
    /* When it is done, or has failed: */
    ph_status status;
    char error[1024];
    void **parameters; /* (num_keys) as they were pulled last, NULL where it failed before */
    pthread_barrier_t *gate;
    pthread_t thread;
};

/* All workers of a service, of the same keys. They wait at a gate behind their last iteration, all connected:
 * between these two calls the hub can be looked at; then they leave. */
struct hub_workers {
    uint32_t count;
    struct hub_worker *workers;
    pthread_barrier_t gate;
};
void hub_workers_begin(struct hub_workers *workers, const struct hub_thread *hub,
    const struct ph_hub_service *service, const struct ph_hub_key *keys, size_t num_keys,
    uint32_t num_iterations, enum ph_hub_transport transport);
void hub_workers_wait(struct hub_workers *workers); /* until all are at the gate, or have failed */
void hub_workers_end(
    struct hub_workers *workers); /* lets them go on, waits for their ends, asserts that none failed */
void hub_workers_fini(struct hub_workers *workers);

#endif
