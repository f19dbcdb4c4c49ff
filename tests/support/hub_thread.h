/* A hub in a thread of the test, and workers in threads that push known gradients and keep what they pull. */
#ifndef PH_TEST_HUB_THREAD_H
#define PH_TEST_HUB_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "phloem/hub_server.h"
#include "support/test_support.h"

#define HUB_THREAD_NONCE 4711u
#define HUB_THREAD_ADDRESS 300 /* bytes, as of any socket's address */
#define HUB_THREAD_TIMEOUT_MS 20000u

struct hub_thread {
    struct ph_hub_server *server;
    struct ph_hub_options options; /* to reach it, with its secret; may be changed */
    char address[HUB_THREAD_ADDRESS];
    pthread_t thread;
    ph_status status; /* of its end */
};

/* Starts a hub in a thread. num_threads 0: two core threads. */
void hub_thread_begin(struct hub_thread *hub, struct ph_hub_server_options options);
void hub_thread_end(struct hub_thread *hub); /* asserts that it ended well */

/* Returns a synchronous service of that name, which sums gradients and returns the sums. */
struct ph_hub_service hub_thread_service(const char *name, uint32_t num_workers);

/* Returns the gradient that worker `rank` pushes: a fraction between -1 and 1. */
float hub_thread_gradient(uint32_t rank, size_t key, uint64_t iteration, size_t element);

struct hub_worker {
    const struct hub_thread *hub;
    const struct ph_hub_service *service;
    const struct ph_hub_key *keys;
    size_t num_keys;
    uint32_t rank, num_iterations;
    enum ph_hub_transport transport;
    /* Set when the worker is done, or has failed. */
    ph_status status;
    char error[1024];
    void **parameters; /* (num_keys) as pulled last; NULL after an earlier failure */
    pthread_barrier_t *gate;
    pthread_t thread;
};

/* All workers of a service, with the same keys. They wait at a gate behind their last iteration, all
 * connected. Between hub_workers_wait and hub_workers_end the test can inspect the hub. */
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
    struct hub_workers *workers); /* lets them leave, waits for their ends, asserts that none failed */
void hub_workers_fini(struct hub_workers *workers);

#endif
