/* What the net room and a hub do with addresses of IPv6, where the system has any. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/link/socket.h"
#include "net/server/http_server.h"
#include "support/hub_thread.h"
#include "support/socket_kind.h"

static void an_ipv6_address_is_one_place_or_all(void **state)
{
    (void)state;
    assert_kind("[::1]:0", false, true, false);
    assert_kind("[::]:0", true, false, false);
    assert_kind("[::ffff:127.0.0.1]:0", false, true, true);
}

static ph_status write_nothing(void *context, struct ph__writer *writer)
{
    (void)context;
    (void)writer;
    return PH_OK;
}

/* Somebody listens there, at a port that was chosen. */
static void assert_listens(const char *address)
{
    int connected;
    assert_memory_equal(address, "[::1]:", 6);
    assert_ok(ph__socket_connect(address, HUB_THREAD_TIMEOUT_MS, &connected));
    close(connected);
}

static void pages_may_be_served_there(void **state)
{
    (void)state;
    const struct ph__http_page page = {.path = "/", .content_type = "text/plain", .write = write_nothing};
    const struct ph__http_options options = {.address = "[::1]:0", .pages = &page, .num_pages = 1};
    struct ph__http_server *server;
    assert_ok(ph__http_server_create(&options, &server));
    assert_listens(ph__http_server_address(server));
    ph__http_server_destroy(server);
}

static void a_hub_and_its_metrics_may_be_there(void **state)
{
    (void)state;
    static const struct ph_hub_key key = {.num_elements = 1000, .dtype = PH_F32};
    struct hub_thread hub;
    struct hub_workers workers;
    hub_thread_begin(
        &hub, (struct ph_hub_server_options){.address = "[::1]:0", .metrics_address = "[::1]:0"});
    assert_listens(ph_hub_server_metrics_address(hub.server));
    const struct ph_hub_service service = hub_thread_service("job", 2);
    assert_ok(ph_hub_create_service(&hub.options, &service));
    hub_workers_begin(&workers, &hub, &service, &key, 1, 2, PH_HUB_TCP);
    hub_workers_wait(&workers);
    hub_workers_end(&workers);
    hub_workers_fini(&workers);
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv6_address_is_one_place_or_all),
        cmocka_unit_test(pages_may_be_served_there),
        cmocka_unit_test(a_hub_and_its_metrics_may_be_there),
    };
    int listening;
    if (ph__socket_listen("[::1]:0", &listening) != PH_OK)
        test_skip("there is no IPv6 here");
    close(listening);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
