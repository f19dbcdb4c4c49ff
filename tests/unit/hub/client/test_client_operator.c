/* Ending a service whose nonce nobody knows, on all hubs that share it. */
#include "hub/client/client_operator.h"

#include <stdio.h>

#include "net/link/socket.h"
#include "support/hub_thread.h"

enum { NUM_HUBS = 2 };

struct hubs {
    struct hub_thread hubs[NUM_HUBS];
    char addresses[NUM_HUBS * PH_ADDRESS_BYTES];
    struct ph_hub_options all;
};

static void begin_hubs(struct hubs *hubs)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        hub_thread_begin(&hubs->hubs[i], (struct ph_hub_server_options){.num_threads = 1});
    snprintf(hubs->addresses, sizeof hubs->addresses, "%s,%s", hubs->hubs[0].address, hubs->hubs[1].address);
    hubs->all = hubs->hubs[0].options;
    hubs->all.address = hubs->addresses;
}

static void end_hubs(struct hubs *hubs)
{
    for (size_t i = 0; i < NUM_HUBS; i++)
        hub_thread_end(&hubs->hubs[i]);
}

static void assert_has_none(const struct hub_thread *hub)
{
    assert_fails(ph__hub_end_service(&hub->options, "job"), PH_ERROR_USAGE, "service 'job' does not exist");
}

static void a_service_of_several_hubs_is_ended_on_all(void **state)
{
    (void)state;
    struct hubs hubs;
    const struct ph_hub_service service = hub_thread_service("job", 1);
    begin_hubs(&hubs);
    assert_ok(ph_hub_create_service(&hubs.all, &service));
    assert_ok(ph__hub_end_service(&hubs.all, "job"));
    for (size_t i = 0; i < NUM_HUBS; i++)
        assert_has_none(&hubs.hubs[i]);
    end_hubs(&hubs);
}

static void a_hub_that_has_lost_it_does_not_save_the_others(void **state)
{
    (void)state;
    struct hubs hubs;
    const struct ph_hub_service service = hub_thread_service("job", 1);
    begin_hubs(&hubs);
    assert_ok(ph_hub_create_service(&hubs.all, &service));
    assert_ok(ph__hub_end_service(&hubs.hubs[0].options, "job"));
    assert_fails(ph__hub_end_service(&hubs.all, "job"), PH_ERROR_USAGE, hubs.hubs[0].address);
    assert_has_none(&hubs.hubs[1]);
    end_hubs(&hubs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_of_several_hubs_is_ended_on_all),
        cmocka_unit_test(a_hub_that_has_lost_it_does_not_save_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
