/* What becomes of a running job when a worker leaves it in good order, seen by the one that stays; and a job that is refused. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory/memory.h"
#include "support/hub_thread.h"

#define NUM_ELEMENTS 20000u /* several chunks */

static const struct ph_hub_key a_key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32};

struct pair {
    struct hub_thread hub;
    enum ph_hub_transport transport;
    pthread_barrier_t has_left;
    ph_status left;  /* what the one that leaves got */
    ph_status again; /* what the one that stays got for its second iteration */
    char error[1024];
    bool is_own_sum;
    uint32_t num_contributors;
};

static struct ph_hub_client *join_as(const struct pair *pair, uint32_t rank)
{
    struct ph_hub_options options = pair->hub.options;
    struct ph_hub_client *client = NULL;
    options.transport = pair->transport;
    if (ph_hub_connect(&options, "pair", HUB_THREAD_NONCE, rank, &client) != PH_OK ||
        ph_hub_init(client, &a_key, 1, NULL) != PH_OK) {
        ph_hub_client_destroy(client);
        return NULL;
    }
    return client;
}

static ph_status exchange(struct ph_hub_client *client, uint32_t rank, uint64_t iteration)
{
    float *gradient = ph_hub_gradient(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        gradient[i] = hub_thread_gradient(rank, 0, iteration, i);
    PH_TRY(ph_hub_pushpull_start(client, 0));
    return ph_hub_wait(client, 0);
}

static void *leave_after_one(void *context)
{
    struct pair *pair = context;
    struct ph_hub_client *client = join_as(pair, 1);
    pair->left = client != NULL ? exchange(client, 1, 1) : PH_ERROR_PEER;
    if (pair->left == PH_OK)
        pair->left = ph_hub_leave(client);
    pthread_barrier_wait(&pair->has_left);
    ph_hub_client_destroy(client);
    return NULL;
}

static bool is_own_sum(const struct ph_hub_client *client)
{
    const float *got = ph_hub_parameters(client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        if (got[i] != hub_thread_gradient(0, 0, 2, i))
            return false;
    }
    return true;
}

static void stay_for_two(struct pair *pair)
{
    struct ph_hub_client_info info;
    struct ph_hub_client *client = join_as(pair, 0);
    assert_non_null(client);
    assert_ok(exchange(client, 0, 1));
    pthread_barrier_wait(&pair->has_left);
    pair->again = exchange(client, 0, 2);
    snprintf(pair->error, sizeof pair->error, "%s", ph_error_text());
    pair->is_own_sum = pair->again == PH_OK && is_own_sum(client);
    ph_hub_client_describe(client, &info);
    pair->num_contributors = info.num_contributors;
    ph_hub_client_destroy(client);
}

static void run_pair(struct pair *pair, enum ph_hub_transport transport, enum ph_hub_on_death on_death)
{
    pthread_t thread;
    *pair = (struct pair){.transport = transport};
    hub_thread_begin(&pair->hub, (struct ph_hub_server_options){0});
    struct ph_hub_service service = hub_thread_service("pair", 2);
    service.on_death = on_death;
    assert_ok(ph_hub_create_service(&pair->hub.options, &service));
    pthread_barrier_init(&pair->has_left, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, leave_after_one, pair), 0);
    stay_for_two(pair);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&pair->has_left);
    assert_int_equal(pair->left, PH_OK);
    hub_thread_end(&pair->hub);
}

/* Never a sum that lacks a worker without a word. */
static void a_synchronous_job_ends_when_its_first_worker_leaves(void **state)
{
    (void)state;
    for (int transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct pair pair;
        run_pair(&pair, (enum ph_hub_transport)transport, PH_HUB_ABORT);
        assert_int_equal(pair.again, PH_ERROR_PEER);
        assert_non_null(strstr(pair.error, "worker 1 has left before iteration 2"));
    }
}

static void a_job_that_may_shrink_goes_on(void **state)
{
    (void)state;
    for (int transport = PH_HUB_SHARED_MEMORY; transport <= PH_HUB_TCP; transport++) {
        struct pair pair;
        run_pair(&pair, (enum ph_hub_transport)transport, PH_HUB_SHRINK);
        assert_int_equal(pair.again, PH_OK);
        assert_true(pair.is_own_sum);
        assert_int_equal(pair.num_contributors, 1);
    }
}

/* Placing so many chunks would keep the control thread, and so all other jobs, waiting for seconds. */
static void a_job_of_too_many_chunks_is_refused_before_they_are_placed(void **state)
{
    (void)state;
    struct hub_thread hub;
    struct ph_hub_client *client;
    const struct ph_hub_key key = {.num_elements = (size_t)1 << 24, .dtype = PH_F32};
    hub_thread_begin(&hub, (struct ph_hub_server_options){.max_bytes = (uint64_t)1 << 20});
    struct ph_hub_service service = hub_thread_service("crumbs", 1);
    service.chunk_bytes = PH_ALIGNMENT;
    assert_ok(ph_hub_create_service(&hub.options, &service));
    assert_ok(ph_hub_connect(&hub.options, "crumbs", HUB_THREAD_NONCE, 0, &client));
    assert_fails(ph_hub_init(client, &key, 1, NULL), PH_ERROR_MEMORY, "bytes on the hub");
    ph_hub_client_destroy(client);
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synchronous_job_ends_when_its_first_worker_leaves),
        cmocka_unit_test(a_job_that_may_shrink_goes_on),
        cmocka_unit_test(a_job_of_too_many_chunks_is_refused_before_they_are_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
