/* Who comes to rank 0 while it listens, by hand: strangers are dropped, whatever they say, and ranks come all
 * the same. */
#include <stdio.h>
#include <string.h>

#include "comm/watch/watch_state.h"
#include "support/test_support.h"
#include "support/watch_visitor.h"

enum { WORLD_SIZE = 3, SOON_MS = 100, MANY_STRANGERS = 100 };

static struct ph__watch_invitation invitation;
static struct ph__watch_listener *listener;
static size_t num_descriptors;

static int begin(void **state)
{
    (void)state;
    const struct ph__watch_options options = {
        .world_size = WORLD_SIZE, .is_one_host = true, .timeout_ms = SOON_MS};
    num_descriptors = test_count_descriptors();
    assert_ok(ph__watch_listen(&options, &invitation, &listener));
    return 0;
}

static int end(void **state)
{
    (void)state;
    ph__watch_listener_destroy(listener);
    listener = NULL;
    assert_int_equal(test_count_descriptors(), num_descriptors);
    return 0;
}

static struct watch_visitor come(void)
{
    struct watch_visitor visitor;
    assert_true(watch_visitor_come(&visitor, listener, invitation.secret));
    return visitor;
}

static struct watch_visitor come_as(uint32_t rank)
{
    struct watch_visitor visitor = come();
    watch_visitor_greet(&visitor, rank);
    assert_true(watch_visitor_prove(&visitor));
    return visitor;
}

static void assert_dropped(struct watch_visitor *visitor)
{
    assert_true(watch_visitor_is_dropped(visitor));
    watch_visitor_go(visitor);
}

static void accept_all(struct ph__comm_watch *watch_out)
{
    assert_ok(ph__watch_accept(listener, watch_out));
    listener = NULL;
}

static void accept_none(const char *text)
{
    struct ph__comm_watch watch;
    assert_fails(ph__watch_accept(listener, &watch), PH_ERROR_PEER, text);
    listener = NULL;
}

static void assert_hears_notice(struct watch_visitor *visitor, const char *text)
{
    struct ph__control_frame frame;
    struct ph__comm_notice notice;
    assert_true(watch_visitor_hear(visitor, &frame));
    assert_int_equal(frame.type, PH_WATCH_NOTICE);
    assert_ok(ph__watch_get_notice(frame.body, frame.size, WORLD_SIZE, &notice));
    assert_non_null(strstr(notice.text, text));
    assert_false(watch_visitor_hear(visitor, &frame)); /* once */
    watch_visitor_go(visitor);
}

/* ---- strangers ---- */

static void whoever_begins_otherwise_than_with_a_hello_is_dropped(void **state)
{
    (void)state;
    static const unsigned char proof[PH_PROOF_BYTES];
    for (uint16_t type = 0; type < 10; type++) {
        struct watch_visitor visitor = come();
        if (type == PH_WATCH_HELLO)
            watch_visitor_say(&visitor, type, "not so", 6);
        else
            watch_visitor_say(&visitor, type, proof, sizeof proof);
        assert_dropped(&visitor);
    }
}

static void whoever_says_too_much_is_dropped(void **state)
{
    (void)state;
    static const char much[PH_WATCH_MAX_BODY + 1];
    struct watch_visitor visitor = come();
    watch_visitor_say(&visitor, PH_WATCH_HELLO, much, sizeof much);
    assert_dropped(&visitor);
}

static void only_ranks_that_are_missing_may_come(void **state)
{
    (void)state;
    const uint32_t wrong[] = {0, WORLD_SIZE};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct watch_visitor visitor = come();
        watch_visitor_greet(&visitor, wrong[i]);
        assert_dropped(&visitor);
    }
    struct watch_visitor first = come_as(1), second = come();
    watch_visitor_greet(&second, 1);
    assert_false(watch_visitor_prove(&second));
    assert_dropped(&second);
    assert_false(watch_visitor_is_dropped(&first));
    watch_visitor_go(&first);
}

static void whoever_has_no_proof_is_dropped(void **state)
{
    (void)state;
    static const unsigned char zeros[PH_PROOF_BYTES];
    for (size_t size = 0; size <= sizeof zeros; size += sizeof zeros / 2) {
        struct watch_visitor visitor = come();
        watch_visitor_greet(&visitor, 1);
        watch_visitor_say(&visitor, PH_WATCH_PROOF, zeros, size);
        assert_dropped(&visitor);
    }
    struct watch_visitor visitor = come();
    watch_visitor_greet(&visitor, 1);
    watch_visitor_greet(&visitor, 1);
    assert_dropped(&visitor);
}

/* It could say rank 0's own proof back to it. */
static void the_proof_of_rank_0_is_none_of_another(void **state)
{
    (void)state;
    struct watch_visitor visitor = come();
    struct ph__control_frame frame;
    struct ph__watch_answer answer;
    watch_visitor_greet(&visitor, 1);
    assert_true(watch_visitor_hear(&visitor, &frame));
    assert_ok(ph__watch_get_answer(frame.body, frame.size, &answer));
    watch_visitor_say(&visitor, PH_WATCH_PROOF, answer.proof, sizeof answer.proof);
    assert_dropped(&visitor);
}

static void of_many_silent_strangers_the_first_are_dropped_and_ranks_come(void **state)
{
    (void)state;
    struct watch_visitor strangers[MANY_STRANGERS];
    struct ph__comm_watch watch;
    size_t num_left = 0;
    for (size_t i = 0; i < MANY_STRANGERS; i++)
        strangers[i] = come();
    assert_true(watch_visitor_is_dropped(&strangers[0]));
    assert_false(watch_visitor_is_dropped(&strangers[MANY_STRANGERS - 1]));
    struct watch_visitor one = come_as(1), two = come_as(2);
    for (size_t i = 0; i < MANY_STRANGERS; i++)
        num_left += !watch_visitor_is_dropped(&strangers[i]);
    assert_in_range(num_left, 1, MANY_STRANGERS / 2);
    accept_all(&watch);
    for (size_t i = 0; i < MANY_STRANGERS; i++)
        assert_dropped(&strangers[i]);
    watch_visitor_go(&one);
    watch_visitor_go(&two);
    watch.close(watch.context, true);
}

/* ---- ranks ---- */

static void a_rank_that_never_comes_is_named_to_those_who_have(void **state)
{
    (void)state;
    struct watch_visitor visitor = come_as(2);
    accept_none("rank 1 has not joined the watch of rank 0 within 0.1 s");
    assert_hears_notice(&visitor, "rank 1 has not joined");
}

static void several_that_never_come_are_counted(void **state)
{
    (void)state;
    accept_none("rank 1 has not joined the watch of rank 0 within 0.1 s, nor has another rank");
}

static void a_rank_that_ends_before_all_have_come_is_named(void **state)
{
    (void)state;
    struct watch_visitor one = come_as(1), two = come_as(2);
    watch_visitor_go(&two);
    ph__watch_star_turn(ph__watch_listener_star(listener), 0);
    accept_none("rank 2 (process ");
    assert_hears_notice(&one, "ended unexpectedly");
}

/* After its proof, too, it is believed only as far as it makes sense. */
static void a_rank_that_says_nonsense_is_lost(void **state)
{
    (void)state;
    struct watch_visitor one = come_as(1), two = come_as(2);
    struct ph__comm_watch watch;
    struct ph__comm_notice notice;
    accept_all(&watch);
    assert_false(watch.look(watch.context, &notice));
    assert_ok(ph__control_stream_put(two.stream, PH_WATCH_WELCOME, NULL, 0, NULL, 0));
    assert_ok(ph__control_stream_flush(two.stream));
    assert_true(watch.look(watch.context, &notice));
    assert_int_equal(notice.rank, 2);
    assert_non_null(strstr(notice.text, "the watch received a frame of the unknown type 4"));
    watch.close(watch.context, false);
    watch_visitor_go(&one);
    watch_visitor_go(&two);
}

#define test_of_listener(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* ---- the addresses at which rank 0 may be found ---- */

static bool has(char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t num_hosts, const char *host)
{
    for (size_t i = 0; i < num_hosts; i++) {
        if (strcmp(hosts[i], host) == 0)
            return true;
    }
    return false;
}

static void a_host_is_its_own_loopback(void **state)
{
    (void)state;
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    assert_ok(ph__watch_hosts(true, hosts, &num_hosts));
    assert_true(has(hosts, num_hosts, "127.0.0.1"));
}

static void other_hosts_are_told_no_address_that_leads_them_astray(void **state)
{
    (void)state;
    char hosts[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES];
    size_t num_hosts;
    assert_ok(ph__watch_hosts(false, hosts, &num_hosts));
    for (size_t i = 0; i < num_hosts; i++) {
        assert_true(ph__is_host(hosts[i]));
        assert_int_not_equal(strncmp(hosts[i], "127.", 4), 0);
        assert_int_not_equal(strncmp(hosts[i], "fe80:", 5), 0);
        assert_string_not_equal(hosts[i], "::1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of_listener(whoever_begins_otherwise_than_with_a_hello_is_dropped),
        test_of_listener(whoever_says_too_much_is_dropped),
        test_of_listener(only_ranks_that_are_missing_may_come),
        test_of_listener(whoever_has_no_proof_is_dropped),
        test_of_listener(the_proof_of_rank_0_is_none_of_another),
        test_of_listener(of_many_silent_strangers_the_first_are_dropped_and_ranks_come),
        test_of_listener(a_rank_that_never_comes_is_named_to_those_who_have),
        test_of_listener(several_that_never_come_are_counted),
        test_of_listener(a_rank_that_ends_before_all_have_come_is_named),
        test_of_listener(a_rank_that_says_nonsense_is_lost),
        cmocka_unit_test(a_host_is_its_own_loopback),
        cmocka_unit_test(other_hosts_are_told_no_address_that_leads_them_astray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
