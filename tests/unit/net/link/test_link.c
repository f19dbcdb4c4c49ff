#include "net/link/link.h"
#include "support/test_support.h"

static const struct ph__link_counters some = {1, 2, 3, 4, 5, 6};

static void traffic_is_added_up_by_transport(void **state)
{
    (void)state;
    struct ph__traffic traffic = {0}, sum = {0};
    char same[] = "tcp"; /* another address */
    ph__traffic_add(&traffic, "tcp", &some);
    ph__traffic_add(&traffic, "shared memory", &some);
    ph__traffic_add(&traffic, same, &some);
    assert_int_equal(traffic.num_transports, 2);
    assert_string_equal(traffic.transports[0], "tcp");
    assert_int_equal(traffic.counters[0].messages_sent, 2);
    assert_int_equal(traffic.counters[0].doorbells, 12);
    assert_int_equal(traffic.counters[1].payload_bytes_received, 4);
    ph__traffic_merge(&sum, &traffic);
    ph__traffic_merge(&sum, &traffic);
    assert_int_equal(sum.num_transports, 2);
    assert_int_equal(sum.counters[0].messages_received, 8);
    assert_int_equal(sum.counters[1].system_calls, 10);
    assert_int_equal(sum.counters[1].payload_bytes_sent, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_is_added_up_by_transport),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
