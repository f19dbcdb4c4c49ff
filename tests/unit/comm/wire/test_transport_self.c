/* Messages of a process to itself. */
#include "comm/wire/transport_open.h"

#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static struct ph__transport transport;
static char error[PH_TRANSPORT_ERROR_BYTES];

static int open_self(void **state)
{
    (void)state;
    return ph__transport_self_open(1, &transport) == PH_OK ? 0 : -1;
}

static int close_self(void **state)
{
    (void)state;
    transport.close(transport.context, true);
    return 0;
}

static struct ph__transport_request send(int tag, const char *text, size_t bytes)
{
    struct ph__transport_request request;
    assert_true(transport.send(transport.context, 0, tag, text, bytes, &request, error));
    return request;
}

static struct ph__transport_request receive(int tag, char *text, size_t bytes)
{
    struct ph__transport_request request;
    assert_true(transport.receive(transport.context, 0, tag, text, bytes, &request, error));
    return request;
}

static bool is_done(struct ph__transport_request *request)
{
    bool is_done;
    assert_true(transport.test(transport.context, request, &is_done, error));
    return is_done;
}

static void it_is_a_world_of_one(void **state)
{
    (void)state;
    assert_int_equal(transport.world_size, 1);
    assert_int_equal(transport.rank, 0);
}

static void a_message_waits_for_its_other_end_whichever_comes_first(void **state)
{
    (void)state;
    char a[4] = "", b[4] = "";
    struct ph__transport_request sent = send(1, "one", 4), received = receive(2, b, 4);
    assert_false(is_done(&sent));
    assert_false(is_done(&received));
    struct ph__transport_request sent_late = send(2, "two", 4), received_late = receive(1, a, 4);
    assert_true(is_done(&sent) && is_done(&received) && is_done(&sent_late) && is_done(&received_late));
    assert_string_equal(a, "one");
    assert_string_equal(b, "two");
}

static void messages_of_one_tag_keep_their_order(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    struct ph__transport_request sent[COUNT], received[COUNT];
    char came[COUNT];
    for (size_t i = 0; i < COUNT / 2; i++)
        sent[i] = send(7, &"abcdef"[i], 1);
    for (size_t i = 0; i < COUNT; i++)
        received[i] = receive(7, &came[i], 1);
    for (size_t i = COUNT / 2; i < COUNT; i++)
        sent[i] = send(7, &"abcdef"[i], 1);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(is_done(&sent[i]) && is_done(&received[i]));
    assert_memory_equal(came, "abcdef", COUNT);
}

static void a_message_may_be_empty(void **state)
{
    (void)state;
    struct ph__transport_request sent = send(0, NULL, 0), received = receive(0, NULL, 0);
    assert_true(is_done(&sent) && is_done(&received));
}

static void another_length_is_an_error_of_who_receives(void **state)
{
    (void)state;
    char came[3] = "..";
    bool done;
    struct ph__transport_request received = receive(3, came, 2), sent = send(3, "long", 4);
    assert_true(is_done(&sent));
    assert_false(transport.test(transport.context, &received, &done, error));
    assert_string_equal(error, "a message has 4 bytes instead of the expected 2");
    assert_string_equal(came, "..");
}

static void what_waits_is_given_up_at_the_end(void **state)
{
    (void)state;
    char came[2];
    send(1, "a", 1);
    receive(2, came, 1); /* and no leak is found */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_a_world_of_one, open_self, close_self),
        cmocka_unit_test_setup_teardown(
            a_message_waits_for_its_other_end_whichever_comes_first, open_self, close_self),
        cmocka_unit_test_setup_teardown(messages_of_one_tag_keep_their_order, open_self, close_self),
        cmocka_unit_test_setup_teardown(a_message_may_be_empty, open_self, close_self),
        cmocka_unit_test_setup_teardown(another_length_is_an_error_of_who_receives, open_self, close_self),
        cmocka_unit_test_setup_teardown(what_waits_is_given_up_at_the_end, open_self, close_self),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
