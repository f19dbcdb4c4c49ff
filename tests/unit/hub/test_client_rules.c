/* What a worker may start when. */
#include <string.h>

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
    assert_fails(ph_hub_push_start(client, 0), PH_ERROR_USAGE, "pull was waited for");
    assert_fails(ph_hub_pushpull_start(client, 0), PH_ERROR_USAGE, "key 0: it is pushed again");
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
        pulls_what_nothing_overwrites((struct ph_hub_options){.transport = PH_HUB_SHARED_MEMORY}, depth);
        pulls_what_nothing_overwrites(
            (struct ph_hub_options){.transport = PH_HUB_SHARED_MEMORY, .has_own_parameters = true}, depth);
        pulls_what_nothing_overwrites((struct ph_hub_options){.transport = PH_HUB_TCP}, depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pull_is_waited_for_before_a_push_may_overwrite_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
