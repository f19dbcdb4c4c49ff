/* A job over two hosts of which one falls silent: rank 0 hears that the other is gone, the rank beside it is
 * told, and the one that was cut off hears that rank 0 is gone, although nobody says anything. */
#include <string.h>

#include "hub/two_hosts.h"
#include "support/test_support.h"
#include "support/watch_processes.h"

enum { NUM_RANKS = 3, HERE = 0, FAR = 1, FAR_RANK = 2 };

static struct two_hosts hosts;

static void enter(void *context, size_t rank)
{
    two_hosts_enter(context, rank == FAR_RANK ? FAR : HERE);
}

static void listen_on(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch)
{
    watch_role_listen(all, rank, watch, 1);
}

static void a_host_that_falls_silent_is_noticed(void **state)
{
    (void)state;
    struct watch_processes *all = watch_processes_create(NUM_RANKS);
    two_hosts_begin(&hosts);
    all->is_one_host = false;
    all->enter = enter;
    all->context = &hosts;
    watch_processes_start(all, listen_on);
    two_hosts_cut(&hosts);
    for (size_t rank = 0; rank < NUM_RANKS; rank++) {
        watch_processes_await_heard(all, rank);
        const struct ph__comm_notice *notice = &all->ranks[rank].notice;
        assert_int_equal(notice->rank, rank == FAR_RANK ? 0 : FAR_RANK);
        assert_true(notice->has_died);
        assert_non_null(strstr(notice->text, "cannot be reached"));
    }
    assert_string_equal(all->ranks[0].notice.text, all->ranks[1].notice.text);
    watch_processes_destroy(all);
    two_hosts_end(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_host_that_falls_silent_is_noticed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
