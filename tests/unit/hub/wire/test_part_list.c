/* Parts of checkpoints: lists of them, which of all hubs' fit together, and how they are told. */
#include "hub/wire/part_list.h"

#include <stdio.h>
#include <string.h>

#include "hub/wire/protocol.h"
#include "support/test_support.h"

enum { NONE_KEPT = 1 << 30 };

/* open: up to 0. */
static struct ph__parts make(uint64_t kept, const uint64_t *open)
{
    struct ph__parts parts = {.kept = kept == NONE_KEPT ? PH_NO_ITERATION : kept};
    for (; *open != 0; open++)
        ph__parts_add(&parts, *open);
    return parts;
}

#define LIST(...) ((const uint64_t[]){__VA_ARGS__, 0})
#define NOTHING ((const uint64_t[]){0})

static void assert_described(const struct ph__parts *parts, const char *wanted)
{
    char text[PH_PARTS_TEXT_BYTES];
    ph__parts_describe(parts, text);
    assert_string_equal(text, wanted);
}

/* ---- lists ---- */

static void a_list_has_what_was_added(void **state)
{
    (void)state;
    struct ph__parts parts = make(3, LIST(9, 5, 7, 5));
    assert_described(&parts, "of iteration 3, 5, 7, 9");
    assert_true(ph__parts_has(&parts, 3) && ph__parts_has(&parts, 7));
    assert_false(ph__parts_has(&parts, 4) || ph__parts_has(&parts, PH_NO_ITERATION));
    parts = make(NONE_KEPT, NOTHING);
    assert_described(&parts, "none");
    assert_false(ph__parts_has(&parts, PH_NO_ITERATION));
}

static void a_list_that_is_full_stays_as_it_is(void **state)
{
    (void)state;
    struct ph__parts parts = make(NONE_KEPT, NOTHING);
    char text[PH_PARTS_TEXT_BYTES];
    for (uint64_t i = 1; i <= PH_HUB_MAX_OPEN_PARTS + 1; i++)
        ph__parts_add(&parts, PH_HUB_MAX_ITERATION - i);
    assert_int_equal(parts.num_open, PH_HUB_MAX_OPEN_PARTS);
    assert_false(ph__parts_has(&parts, PH_HUB_MAX_ITERATION - PH_HUB_MAX_OPEN_PARTS - 1));
    ph__parts_describe(&parts, text);
    assert_true(strlen(text) < sizeof text);
}

/* Where not all fit, whole numbers, and that there are more. */
static void a_list_that_is_told_is_not_cut_inside_a_number(void **state)
{
    (void)state;
    struct ph__parts parts = make(NONE_KEPT, NOTHING);
    char wanted[PH_PARTS_TEXT_BYTES] = "of iteration";
    for (uint64_t i = 0; i < PH_HUB_MAX_OPEN_PARTS; i++)
        ph__parts_add(&parts, 1234567890123456 + i);
    for (size_t i = 0; strlen(wanted) + strlen(" 1234567890123456,") + strlen(" ...") < sizeof wanted; i++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, " 12345678901234%02zu,", 56 + i);
    }
    strcat(wanted, " ...");
    assert_described(&parts, wanted);
}

static void keeping_one_drops_what_is_settled(void **state)
{
    (void)state;
    struct ph__parts parts = make(3, LIST(5, 7, 9));
    ph__parts_keep(&parts, 7, 8);
    assert_described(&parts, "of iteration 7, 9");
    ph__parts_keep(&parts, 6, 0);
    assert_described(&parts, "of iteration 7, 9");
    ph__parts_keep(&parts, PH_NO_ITERATION, UINT64_MAX);
    assert_described(&parts, "of iteration 7");
    parts = make(3, LIST(5, 7, 9));
    ph__parts_keep(&parts, PH_NO_ITERATION, 8);
    assert_described(&parts, "of iteration 3, 9");
}

/* ---- all hubs together ---- */

static void the_newest_common_part_is_found(void **state)
{
    (void)state;
    struct ph__saved saved[3] = {{.parts = make(2, LIST(5, 9))}, {.parts = make(5, LIST(7, 9))},
        {.parts = make(NONE_KEPT, LIST(2, 5))}};
    assert_int_equal(ph__parts_newest_common(saved, 1), 9);
    assert_int_equal(ph__parts_newest_common(saved, 2), 9);
    assert_int_equal(ph__parts_newest_common(saved, 3), 5);
    saved[1].parts = make(7, NOTHING);
    assert_true(ph__parts_newest_common(saved, 3) == PH_NO_ITERATION);
    saved[1].parts = saved[2].parts = make(0, NOTHING);
    saved[0].parts = make(0, LIST(4));
    assert_int_equal(ph__parts_newest_common(saved, 3), 0);
}

static void nothing_is_dropped_that_may_become_whole(void **state)
{
    (void)state;
    uint64_t slack = 1;
    struct ph__saved saved[2] = {
        {.parts = make(10, LIST(20)), .settled_end = 21}, {.parts = make(10, NOTHING), .settled_end = 11}};
    struct ph__keep keep = ph__parts_decide(saved, 2, &slack);
    assert_int_equal(keep.iteration, 10);
    assert_int_equal(keep.settled_end, 11);
    saved[1].settled_end = 31; /* of 20 it has none, and makes none any more */
    keep = ph__parts_decide(saved, 2, &slack);
    assert_int_equal(keep.iteration, 10);
    assert_int_equal(keep.settled_end, 21);
    saved[1] = (struct ph__saved){.parts = make(10, LIST(20)), .settled_end = 0};
    keep = ph__parts_decide(saved, 2, &slack);
    assert_int_equal(keep.iteration, 20);
    assert_int_equal(keep.settled_end, 21);
    assert_true(keep.next == PH_NO_ITERATION);
}

/* Another hub's disk was full for so long that there is no room any more: the second hub has no chunks. */
static void what_a_hub_with_chunks_has_not_made_goes(void **state)
{
    (void)state;
    uint64_t slack = 1;
    struct ph__parts full = make(10, NOTHING);
    for (uint64_t i = 1; i <= PH_HUB_MAX_OPEN_PARTS; i++)
        ph__parts_add(&full, 10 + i);
    const struct ph__saved saved[3] = {{.parts = full, .settled_end = 75},
        {.parts = full, .settled_end = PH_NO_ITERATION}, {.parts = make(10, NOTHING), .settled_end = 75}};
    const struct ph__keep keep = ph__parts_decide(saved, 3, &slack);
    assert_int_equal(keep.iteration, 10);
    assert_int_equal(keep.settled_end, 75);
}

/* A hub without chunks has no iteration behind it, whatever it was asked for last: it may be at work on any.
 */
static void what_only_a_hub_without_chunks_has_not_made_stays(void **state)
{
    (void)state;
    uint64_t slack = 1;
    struct ph__saved saved[3] = {{.parts = make(10, LIST(12, 20, 30)), .settled_end = 31},
        {.parts = make(10, LIST(40)), .settled_end = PH_NO_ITERATION},
        {.parts = make(10, LIST(20, 30)), .settled_end = 31}};
    struct ph__keep keep = ph__parts_decide(saved, 3, &slack);
    assert_int_equal(keep.iteration, 10);
    assert_int_equal(keep.settled_end, 20);
    ph__parts_add(&saved[1].parts, 30);
    keep = ph__parts_decide(saved, 3, &slack);
    assert_int_equal(keep.iteration, 30);
    assert_int_equal(keep.settled_end, 31);
}

/* ... but for as long as there is room: its own disk may be full. */
static void the_oldest_of_too_many_parts_goes(void **state)
{
    (void)state;
    uint64_t slack = 1;
    struct ph__parts full = make(10, NOTHING);
    for (uint64_t i = 1; i <= PH_HUB_MAX_OPEN_PARTS; i++)
        ph__parts_add(&full, 10 + i);
    struct ph__saved saved[2] = {
        {.parts = full, .settled_end = 75}, {.parts = make(10, NOTHING), .settled_end = PH_NO_ITERATION}};
    struct ph__keep keep = ph__parts_decide(saved, 2, &slack);
    assert_int_equal(keep.iteration, 10);
    assert_int_equal(keep.settled_end, 12);
    ph__parts_keep(&saved[0].parts, keep.iteration, keep.settled_end);
    keep = ph__parts_decide(saved, 2, &slack);
    assert_int_equal(keep.settled_end, 12);
}

static void the_next_parts_lie_ahead_of_all_hubs(void **state)
{
    (void)state;
    uint64_t slack = 1;
    struct ph__saved saved[2] = {{.parts = make(0, NOTHING), .most = 9, .every = 5},
        {.parts = make(0, NOTHING), .most = 14, .every = 5}};
    assert_int_equal(ph__parts_decide(saved, 2, &slack).next, 15);
    saved[0].most = 15;
    assert_int_equal(ph__parts_decide(saved, 2, &slack).next, 20);
    assert_int_equal(slack, 1);
}

/* A hub whose lead is too slow gets its next iteration ever earlier, until that is early enough. */
static void the_next_parts_lie_ahead_of_a_hub_that_was_late(void **state)
{
    (void)state;
    enum { TURN = 100 }; /* iterations from a hub's word to the answer to it */
    uint64_t slack = 1, told_at = 50, turns = 0;
    struct ph__saved saved = {.parts = make(0, NOTHING), .most = told_at, .every = 1};
    for (;; turns++) {
        const uint64_t next = ph__parts_decide(&saved, 1, &slack).next;
        if (next >= told_at + TURN)
            break;
        told_at += TURN;
        saved.most = told_at;
        saved.is_late = true;
        assert_true(turns < 20);
    }
    assert_int_equal(slack, 128);
    for (int i = 0; i < 100; i++)
        assert_true(ph__parts_decide(&saved, 1, &slack).next < told_at + (2u << 20));
}

/* One slow moment does not keep checkpoints rare for ever; nor is the hub late again soon. */
static void in_time_the_next_parts_come_nearer_again(void **state)
{
    (void)state;
    uint64_t slack = 128, rounds = 0;
    const struct ph__saved saved = {.parts = make(0, NOTHING), .most = 50, .every = 1};
    ph__parts_decide(&saved, 1, &slack);
    assert_in_range(slack, 120, 127);
    for (; slack > 1; rounds++)
        ph__parts_decide(&saved, 1, &slack);
    assert_in_range(rounds, 20, 1000);
    assert_int_equal(ph__parts_decide(&saved, 1, &slack).next, 51);
}

/* ---- in frames ---- */

static void what_is_told_is_heard(void **state)
{
    (void)state;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__saved heard;
    struct ph__keep heard_keep;
    uint64_t iteration;
    struct ph__saved saved = {
        .parts = make(4, LIST(8, 12)), .most = 13, .settled_end = 13, .every = 4, .is_late = true};
    const struct ph__keep keep = {.iteration = PH_NO_ITERATION, .settled_end = UINT64_MAX, .next = 16};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_saved(&writer, &saved);
    assert_ok(ph__get_saved(bytes, writer.used, &heard));
    assert_described(&heard.parts, "of iteration 4, 8, 12");
    assert_true(heard.most == 13 && heard.settled_end == 13 && heard.every == 4 && heard.is_late);
    saved.settled_end = PH_NO_ITERATION; /* of a hub without chunks */
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_saved(&writer, &saved);
    assert_ok(ph__get_saved(bytes, writer.used, &heard));
    assert_true(heard.settled_end == PH_NO_ITERATION);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keep(&writer, &keep);
    assert_ok(ph__get_keep(bytes, writer.used, &heard_keep));
    assert_memory_equal(&heard_keep, &keep, sizeof keep);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, PH_NO_ITERATION);
    assert_ok(ph__get_iteration(bytes, writer.used, &iteration));
    assert_true(iteration == PH_NO_ITERATION);
}

static void assert_refused(const struct ph__saved *saved, const char *part)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__saved heard;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_saved(&writer, saved);
    assert_fails(ph__get_saved(bytes, writer.used, &heard), PH_ERROR_PEER, part);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__parts parts;
    struct ph__saved saved = {.parts = {.kept = PH_HUB_MAX_ITERATION + 1}};
    assert_refused(&saved, "is out of range");
    saved.parts = (struct ph__parts){.num_open = 2, .open = {5, 5}};
    assert_refused(&saved, "an invalid list");
    saved.parts = (struct ph__parts){.num_open = 1, .open = {PH_NO_ITERATION}};
    assert_refused(&saved, "an invalid list");
    saved = (struct ph__saved){.settled_end = PH_HUB_MAX_ITERATION + 2};
    assert_refused(&saved, "settled parts up to");
    saved = (struct ph__saved){.most = PH_HUB_MAX_ITERATION};
    assert_refused(&saved, "the hub reports iteration");
    saved = (struct ph__saved){.every = PH_HUB_MAX_PERIOD + 1};
    assert_refused(&saved, "with checkpoints every");
    memset(bytes, 0, sizeof bytes);
    bytes[8] = PH_HUB_MAX_OPEN_PARTS + 1;
    assert_fails(ph__get_parts(bytes, 9 + 8 * (PH_HUB_MAX_OPEN_PARTS + 1), &parts), PH_ERROR_PEER, "parts");
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, PH_HUB_MAX_ITERATION + 1);
    assert_fails(ph__get_iteration(bytes, writer.used, &saved.most), PH_ERROR_PEER, "is out of range");
    assert_fails(ph__get_iteration(bytes, 7, &saved.most), PH_ERROR_PEER, "iteration");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_what_was_added),
        cmocka_unit_test(a_list_that_is_full_stays_as_it_is),
        cmocka_unit_test(a_list_that_is_told_is_not_cut_inside_a_number),
        cmocka_unit_test(keeping_one_drops_what_is_settled),
        cmocka_unit_test(the_newest_common_part_is_found),
        cmocka_unit_test(nothing_is_dropped_that_may_become_whole),
        cmocka_unit_test(what_a_hub_with_chunks_has_not_made_goes),
        cmocka_unit_test(what_only_a_hub_without_chunks_has_not_made_stays),
        cmocka_unit_test(the_oldest_of_too_many_parts_goes),
        cmocka_unit_test(the_next_parts_lie_ahead_of_all_hubs),
        cmocka_unit_test(the_next_parts_lie_ahead_of_a_hub_that_was_late),
        cmocka_unit_test(in_time_the_next_parts_come_nearer_again),
        cmocka_unit_test(what_is_told_is_heard),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
