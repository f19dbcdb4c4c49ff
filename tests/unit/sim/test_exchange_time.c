/* Simulated exchanges: by hand on a network without other costs; later starts hold up those who wait. */
#include "sim/exchange_time.h"

#include "support/test_support.h"

/* A byte a nanosecond from host to host, and nothing else. */
static const char four_hosts[] = "version: 1\nkind: star\nhosts: 4\nhost: {gbits_per_s: 8, latency_us: 0}\n"
                                 "messages: {send_us: 0, receive_us: 0, eager_bytes: 0}\n";

static void simulate(const struct ph__exchange_case *exchange, double *ms_out)
{
    struct ph__fabric fabric;
    assert_ok(ph__fabric_read(test_write_file("topology.yaml", four_hosts), &fabric));
    assert_ok(ph__exchange_simulate(&fabric, exchange, ms_out));
    ph__fabric_fini(&fabric);
}

static void test_equal_columns_take_the_bytes_of_a_link(void **state)
{
    const double columns[] = {64, 64, 64, 64}, starts_ms[4] = {0};
    double ms[4];
    (void)state;
    simulate(&(struct ph__exchange_case){PH_EXCHANGE_FORWARD, 4, 1e4, columns, starts_ms}, ms);
    for (size_t rank = 0; rank < 4; rank++)
        assert_near(ms[rank], 3 * 64 * 1e4 / 1e6, 1e-3, 0);
}

/* The owner of all columns sends to three ranks, or receives from them; the others have a third of it. */
static void test_one_owner_sends_or_receives_it_all(void **state)
{
    const double columns[] = {0, 90, 0, 0}, starts_ms[4] = {0};
    (void)state;
    for (int way = 0; way < 2; way++) {
        double ms[4];
        simulate(&(struct ph__exchange_case){(enum ph__exchange_way)way, 4, 1e4, columns, starts_ms}, ms);
        for (size_t rank = 0; rank < 4; rank++)
            assert_near(ms[rank], 3 * 90 * 1e4 / 1e6, 1e-3, 0);
    }
}

static void test_late_owners_hold_up_the_others(void **state)
{
    const double columns[] = {50, 0}, starts_ms[] = {4, 1};
    double ms[2];
    (void)state;
    simulate(&(struct ph__exchange_case){PH_EXCHANGE_FORWARD, 2, 1e4, columns, starts_ms}, ms);
    assert_near(ms[0], .5, 1e-3, 0);
    assert_near(ms[1], 3 + .5, 1e-3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_columns_take_the_bytes_of_a_link),
        cmocka_unit_test(test_one_owner_sends_or_receives_it_all),
        cmocka_unit_test(test_late_owners_hold_up_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
