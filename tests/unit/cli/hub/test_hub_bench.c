/* What phloem hub bench leaves out, and what is an error. */
#include "cli/hub/hub_verbs.h"

#include <pthread.h>

#include "hub/server/server_state.h"
#include "support/test_support.h"

static void *serve(void *server)
{
    return ph_hub_server_run(server, NULL) == PH_OK ? server : NULL;
}

/* By either transport: a worker's descriptors are promised when it joins. */
static void workers_that_no_transport_brings_in_are_an_error(void **state)
{
    (void)state;
    const struct ph_hub_server_options options = {.size = sizeof options, .num_threads = 1};
    struct ph_hub_server *server;
    pthread_t thread;
    void *outcome;
    assert_ok(ph_hub_server_create(&options, &server));
    server->max_descriptors = 0;
    assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
    char *const arguments[] = {
        "bench", (char *)(uintptr_t)ph_hub_server_address(server), "--sizes", "4K", "--rounds", "1", NULL};
    assert_fails(cli_hub_bench(sizeof arguments / sizeof *arguments - 1, (char **)(uintptr_t)arguments),
        PH_ERROR_MEMORY, "descriptors of the hub");
    ph_hub_server_stop(server);
    pthread_join(thread, &outcome);
    assert_ptr_equal(outcome, server);
    ph_hub_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_no_transport_brings_in_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
