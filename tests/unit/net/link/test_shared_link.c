/* Links over shared memory: one region, a link at either end, in one thread and in two. What the other side
 * may write there, it writes here: anything at all. */
#include "net/link/shared_link.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "net/link/region.h"
#include "net/waiter.h"
#include "support/test_support.h"

enum { SMALL = 4, LARGE = 64, MAX_KEPT = 64 };

/* One end, and what has come there. */
struct end {
    struct ph__link *link;
    int doorbell;
    uint64_t num_arrived;
    struct ph__message arrived[MAX_KEPT]; /* the latest, at number % MAX_KEPT */
    ph_status place_status, arrived_status;
    struct ph__message *scribbles_on; /* while a message is placed */
};

static struct ph__region region;
static struct end hub, worker;

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    struct end *end = context;
    (void)message;
    assert_int_equal(payload_bytes, 0);
    if (end->scribbles_on != NULL)
        memset(end->scribbles_on, 0xee, sizeof *message);
    *memory_out = NULL;
    return end->place_status != PH_OK ? ph_fail(end->place_status, "not wanted") : PH_OK;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    struct end *end = context;
    end->arrived[end->num_arrived++ % MAX_KEPT] = *message;
    return end->arrived_status != PH_OK ? ph_fail(end->arrived_status, "it came to nothing") : PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    (void)context, (void)message;
    fail_msg("no payload leaves over shared memory");
}

static void make_end(struct end *end, size_t capacity, bool is_hub, int doorbell)
{
    *end = (struct end){.doorbell = doorbell};
    const struct ph__shared_link_options options = {
        .memory = region.memory,
        .capacity = capacity,
        .is_hub = is_hub,
        .doorbell = doorbell,
        .owner = {.context = end, .place = place, .arrived = arrived, .sent = sent},
    };
    assert_ok(ph__shared_link_create(&options, &end->link));
}

static void set_up_ends(size_t capacity)
{
    int bells[2];
    assert_ok(ph__region_create("test-link", ph__shared_link_bytes(capacity), &region));
    assert_ok(ph__doorbell_create(bells));
    make_end(&hub, capacity, true, bells[0]);
    make_end(&worker, capacity, false, bells[1]);
}

static int set_up(void **state)
{
    (void)state;
    set_up_ends(SMALL);
    return 0;
}

static int set_up_large(void **state)
{
    (void)state;
    set_up_ends(LARGE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ph__link_destroy(hub.link);
    ph__link_destroy(worker.link);
    ph__region_close(&region);
    return 0;
}

/* The positions that the writer and the reader of a ring publish: in its first and in its second cache line.
 */
static uint64_t *position(bool is_to_hub, bool is_read)
{
    const size_t ring = is_to_hub ? 0 : region.size / 2;
    return (uint64_t *)(void *)((char *)region.memory + ring + (is_read ? 64 : 0));
}

static struct ph__message numbered(uint64_t number)
{
    return (struct ph__message){.kind = (uint8_t)(number % 251),
        .flags = (uint8_t)(number % 7),
        .count = (uint16_t)(number % 65521),
        .chunk = (uint32_t)(number * 3),
        .iteration = number};
}

static ph_status send_number(struct end *end, uint64_t number)
{
    const struct ph__message message = numbered(number);
    return ph__link_send(end->link, &message, NULL, 0);
}

static size_t progress(struct end *end, size_t max_messages)
{
    size_t num_moved = SIZE_MAX;
    assert_ok(ph__link_progress(end->link, max_messages, &num_moved));
    return num_moved;
}

static void check_arrived(const struct end *end, uint64_t number)
{
    const struct ph__message wanted = numbered(number);
    assert_memory_equal(&end->arrived[number % MAX_KEPT], &wanted, sizeof wanted);
}

/* ---- messages ---- */

static void messages_leave_with_the_next_progress(void **state)
{
    (void)state;
    assert_ok(send_number(&worker, 0));
    assert_int_equal(progress(&hub, 8), 0);
    assert_int_equal(progress(&worker, 8), 1);
    assert_int_equal(progress(&worker, 8), 0);
    assert_int_equal(progress(&hub, 8), 1);
    assert_int_equal(progress(&hub, 8), 0);
    assert_int_equal(hub.num_arrived, 1);
    check_arrived(&hub, 0);
    assert_int_equal(worker.num_arrived, 0);
}

static void all_arrive_in_order_both_ways_around_the_ring(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct end *ends[2] = {&hub, &worker};
    uint64_t num_sent[2] = {0};
    for (size_t step = 0; step < 20000; step++) {
        const size_t i = ph__rng_below(&random, 2);
        struct end *end = ends[i], *other = ends[1 - i];
        const uint64_t before = end->num_arrived;
        for (uint64_t room = SMALL - (num_sent[i] - other->num_arrived);
             room > 0 && ph__rng_below(&random, 3) > 0; room--)
            assert_ok(send_number(end, num_sent[i]++));
        progress(end, ph__rng_below(&random, SMALL + 1));
        for (uint64_t number = before; number < end->num_arrived; number++)
            check_arrived(end, number);
    }
    for (size_t i = 0; i < 4; i++)
        progress(ends[i % 2], SMALL);
    assert_int_equal(hub.num_arrived, num_sent[1]);
    assert_int_equal(worker.num_arrived, num_sent[0]);
    assert_true(num_sent[0] > 1000 && num_sent[1] > 1000);
    assert_int_equal(hub.link->counters.messages_received, num_sent[1]);
    assert_int_equal(hub.link->counters.messages_sent, num_sent[0]);
    assert_int_equal(hub.link->counters.payload_bytes_sent + hub.link->counters.payload_bytes_received, 0);
}

static void no_more_are_received_than_asked_for(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < SMALL; i++)
        assert_ok(send_number(&worker, i));
    assert_int_equal(progress(&worker, 0), SMALL);
    assert_int_equal(progress(&hub, 0), 0);
    assert_int_equal(progress(&hub, 3), 3);
    assert_int_equal(hub.num_arrived, 3);
    assert_int_equal(progress(&hub, 3), 1);
}

static void a_full_ring_makes_sending_fail(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < SMALL; i++)
        assert_ok(send_number(&hub, i));
    progress(&hub, 0);
    assert_fails(send_number(&hub, SMALL), PH_ERROR_PEER, "does not read its messages: 4 are waiting");
}

static void a_ring_that_is_emptied_takes_more(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3 * SMALL; i++) {
        assert_ok(send_number(&hub, i));
        if (i % SMALL == SMALL - 1) {
            progress(&hub, 0);
            assert_int_equal(progress(&worker, SMALL), SMALL);
        }
    }
    assert_int_equal(worker.num_arrived, 3 * SMALL);
}

static void an_owner_that_refuses_ends_the_link(void **state)
{
    (void)state;
    size_t num_moved;
    assert_ok(send_number(&worker, 0));
    progress(&worker, 0);
    hub.place_status = PH_ERROR_PEER;
    assert_fails(ph__link_progress(hub.link, 8, &num_moved), PH_ERROR_PEER, "not wanted");
    assert_int_equal(hub.num_arrived, 0);
}

static void an_owner_for_whom_it_comes_to_nothing_ends_the_link(void **state)
{
    (void)state;
    size_t num_moved;
    assert_ok(send_number(&worker, 0));
    assert_ok(send_number(&worker, 1));
    progress(&worker, 0);
    hub.arrived_status = PH_ERROR_PEER;
    assert_fails(ph__link_progress(hub.link, 8, &num_moved), PH_ERROR_PEER, "it came to nothing");
    assert_int_equal(hub.num_arrived, 1);
}

/* ---- what the other side may do ---- */

static void what_was_looked_at_cannot_be_changed_any_more(void **state)
{
    (void)state;
    assert_ok(send_number(&worker, 0));
    progress(&worker, 0);
    hub.scribbles_on = (struct ph__message *)(void *)((char *)region.memory + 128);
    const struct ph__message wanted = numbered(0);
    assert_memory_equal(hub.scribbles_on, &wanted, sizeof wanted); /* there it lies */
    assert_int_equal(progress(&hub, 8), 1);
    check_arrived(&hub, 0);
}

static void a_writer_that_says_nonsense_ends_the_link(void **state)
{
    (void)state;
    static const uint64_t nonsense[] = {
        SMALL + 1, 1000, UINT64_MAX, (uint64_t)1 << 63, UINT64_MAX - SMALL, 0x7fffffffffffffff};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        size_t num_moved;
        *position(true, false) = nonsense[i];
        assert_false(ph__link_begin_sleep(hub.link));
        assert_true(ph__link_end_sleep(hub.link));
        assert_fails(
            ph__link_progress(hub.link, 8, &num_moved), PH_ERROR_PEER, "overwritten unread messages");
        assert_int_equal(hub.num_arrived, 0);
    }
}

static void a_writer_that_goes_back_ends_the_link(void **state)
{
    (void)state;
    size_t num_moved;
    for (uint64_t i = 0; i < 3; i++)
        assert_ok(send_number(&worker, i));
    progress(&worker, 0);
    assert_int_equal(progress(&hub, 8), 3);
    *position(true, false) = 2;
    assert_fails(ph__link_progress(hub.link, 8, &num_moved), PH_ERROR_PEER, "overwritten unread messages");
}

/* The hub writes into its ring alone, and gives up or goes on. */
static void a_reader_that_says_nonsense_harms_itself(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (size_t trial = 0; trial < 200; trial++) {
        bool has_failed = false;
        const uint64_t nonsense = ph__rng_next(&random) >> ph__rng_below(&random, 64);
        set_up_ends(SMALL);
        for (uint64_t i = 0; i < 100 && !has_failed; i++) {
            *position(false, true) = nonsense + (ph__rng_below(&random, 2) != 0 ? i : 0);
            has_failed = send_number(&hub, i) != PH_OK;
            progress(&hub, 8);
        }
        assert_int_equal(*position(true, false), 0);
        tear_down(NULL);
    }
    set_up_ends(SMALL); /* for the tear-down */
}

/* ---- sleeping ---- */

static bool is_rung(const struct end *end)
{
    struct pollfd polled = {.fd = end->link->descriptor, .events = ph__link_poll_events(end->link)};
    return poll(&polled, 1, 0) == 1;
}

static void whoever_sleeps_is_rung(void **state)
{
    (void)state;
    assert_true(ph__link_begin_sleep(hub.link));
    assert_false(is_rung(&hub));
    assert_ok(send_number(&worker, 0));
    assert_false(is_rung(&hub));
    progress(&worker, 0);
    assert_true(is_rung(&hub));
    assert_int_equal(worker.link->counters.doorbells, 1);
    assert_true(ph__link_end_sleep(hub.link));
    assert_false(is_rung(&hub));
    assert_int_equal(progress(&hub, 8), 1);

    assert_ok(send_number(&worker, 1)); /* awake again */
    progress(&worker, 0);
    assert_false(is_rung(&hub));
    assert_int_equal(worker.link->counters.doorbells, 1);
}

static void nobody_sleeps_over_what_has_come(void **state)
{
    (void)state;
    assert_ok(send_number(&worker, 0));
    assert_false(ph__link_begin_sleep(worker.link)); /* what is queued has to leave */
    assert_true(ph__link_end_sleep(worker.link));
    progress(&worker, 0);
    assert_true(ph__link_begin_sleep(worker.link));
    assert_true(ph__link_end_sleep(worker.link));
    assert_false(ph__link_begin_sleep(hub.link));
    assert_true(ph__link_end_sleep(hub.link));
    progress(&hub, 8);
    assert_true(ph__link_begin_sleep(hub.link));
    assert_true(ph__link_end_sleep(hub.link));
}

static void the_end_of_the_other_side_wakes(void **state)
{
    (void)state;
    assert_true(ph__link_begin_sleep(hub.link));
    ph__link_destroy(worker.link);
    worker.link = NULL;
    assert_true(is_rung(&hub));
    assert_false(ph__link_end_sleep(hub.link));
}

/* ---- two threads ---- */

enum { NUM_EXCHANGED = 100000, LOST_RING_MS = 60000 };

struct side {
    struct end *end;
    uint64_t num_sent;
    bool is_echo; /* sends what it got */
    bool has_failed;
};

/* As many as the other side has surely room for. */
static void send_what_may_be_sent(struct side *side)
{
    const uint64_t limit = side->is_echo ? side->end->num_arrived : side->end->num_arrived + LARGE;
    while (side->num_sent < limit && side->num_sent < NUM_EXCHANGED)
        side->has_failed |= send_number(side->end, side->num_sent++) != PH_OK;
}

static void sleep_until_rung(struct side *side)
{
    struct pollfd polled = {
        .fd = side->end->link->descriptor, .events = ph__link_poll_events(side->end->link)};
    if (ph__link_begin_sleep(side->end->link))
        side->has_failed |= poll(&polled, 1, LOST_RING_MS) != 1;
    side->has_failed |= !ph__link_end_sleep(side->end->link);
}

static void *exchange(void *context)
{
    struct side *side = context;
    while (!side->has_failed && (side->end->num_arrived < NUM_EXCHANGED || side->num_sent < NUM_EXCHANGED)) {
        size_t num_moved = 0;
        const uint64_t before = side->end->num_arrived;
        send_what_may_be_sent(side);
        side->has_failed |= ph__link_progress(side->end->link, LARGE / 2, &num_moved) != PH_OK;
        for (uint64_t number = before; number < side->end->num_arrived; number++) {
            const struct ph__message wanted = numbered(number);
            side->has_failed |= memcmp(&side->end->arrived[number % MAX_KEPT], &wanted, sizeof wanted) != 0;
        }
        if (num_moved == 0)
            sleep_until_rung(side);
    }
    size_t num_left; /* the last ones leave */
    side->has_failed |= ph__link_progress(side->end->link, 0, &num_left) != PH_OK;
    return NULL;
}

static void two_threads_lose_nothing_and_sleep_over_nothing(void **state)
{
    (void)state;
    struct side asking = {.end = &worker}, echoing = {.end = &hub, .is_echo = true};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, exchange, &echoing), 0);
    exchange(&asking);
    pthread_join(thread, NULL);
    assert_false(asking.has_failed);
    assert_false(echoing.has_failed);
    assert_int_equal(hub.num_arrived, NUM_EXCHANGED);
    assert_int_equal(worker.num_arrived, NUM_EXCHANGED);
}

#define LINK_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(messages_leave_with_the_next_progress),
        LINK_TEST(all_arrive_in_order_both_ways_around_the_ring),
        LINK_TEST(no_more_are_received_than_asked_for),
        LINK_TEST(a_full_ring_makes_sending_fail),
        LINK_TEST(a_ring_that_is_emptied_takes_more),
        LINK_TEST(an_owner_that_refuses_ends_the_link),
        LINK_TEST(an_owner_for_whom_it_comes_to_nothing_ends_the_link),
        LINK_TEST(what_was_looked_at_cannot_be_changed_any_more),
        LINK_TEST(a_writer_that_says_nonsense_ends_the_link),
        LINK_TEST(a_writer_that_goes_back_ends_the_link),
        cmocka_unit_test_teardown(a_reader_that_says_nonsense_harms_itself, tear_down),
        LINK_TEST(whoever_sleeps_is_rung),
        LINK_TEST(nobody_sleeps_over_what_has_come),
        LINK_TEST(the_end_of_the_other_side_wakes),
        cmocka_unit_test_setup_teardown(
            two_threads_lose_nothing_and_sleep_over_nothing, set_up_large, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
