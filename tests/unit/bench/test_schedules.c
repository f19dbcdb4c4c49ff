#include "preload/schedules.h"

#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

/* Schedules are run on sets instead of numbers: a byte of a buffer is the set of ranks that have contributed
 * to it, one bit each, and, in an AlltoAll, the byte's place there. A message is matched when both sides have
 * posted it. */
enum { MOST = 16, MOST_BYTES = 400 };

struct byte {
    uint32_t ranks; /* bits */
    uint32_t offset;
};

struct posted {
    struct schedule_message message;
    struct byte data[MOST_BYTES]; /* of a send: copied when it is posted */
    bool is_done;
};

struct player {
    uint32_t place;
    struct byte in[MOST_BYTES], out[MOST_BYTES];
    size_t step, count;
    struct posted posted[2 * MOST];
};

struct play {
    struct schedule schedule;
    uint32_t order[MOST];
    struct player ranks[MOST];
    size_t num_messages, sent_bytes;
};

/* ---- playing ---- */

static void check_overlaps(const struct player *player, const struct schedule_message *message)
{
    for (size_t i = 0; i < player->count; i++) {
        const struct schedule_message *other = &player->posted[i].message;
        if (message->is_sum || other->is_sum || !(message->is_receive || other->is_receive))
            continue;
        assert_true(other->offset + other->bytes <= message->offset ||
                    message->offset + message->bytes <= other->offset);
    }
}

static size_t place_in_buffer(const struct schedule_message *message, size_t i)
{
    return message->offset + i / message->run_bytes * message->stride + i % message->run_bytes;
}

static void copy_sent(const struct byte *buffer, struct posted *posted, size_t buffer_bytes)
{
    for (size_t i = 0; i < posted->message.bytes; i++) {
        const size_t place = place_in_buffer(&posted->message, i);
        assert_true(place < buffer_bytes);
        posted->data[i] = buffer[place];
    }
}

static bool has_two_buffers(enum schedule_kind kind)
{
    return schedule_is_alltoall(kind) && !schedule_passes_on(kind);
}

/* Messages overlap only where sends are staged, or come from another buffer than receives go into. */
static void post_step(struct play *play, struct player *player)
{
    struct schedule_message messages[2 * MOST];
    const enum schedule_kind kind = play->schedule.kind;
    const size_t count = schedule_step(&play->schedule, player->place, player->step, messages);
    assert_true(count <= schedule_most_messages(&play->schedule));
    player->count = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(messages[i].offset + messages[i].bytes <= play->schedule.bytes);
        if (!schedule_is_alltoall(kind))
            check_overlaps(player, &messages[i]);
        struct posted *posted = &player->posted[player->count++];
        *posted = (struct posted){.message = messages[i]};
        copy_sent(has_two_buffers(kind) ? player->in : player->out, posted, play->schedule.bytes);
    }
}

static void receive(struct player *player, const struct posted *sent, struct schedule_message *message)
{
    assert_int_equal(sent->message.bytes, message->bytes);
    for (size_t i = 0; i < message->bytes; i++) {
        struct byte *byte = &player->out[place_in_buffer(message, i)];
        assert_true(!message->is_sum || (byte->ranks & sent->data[i].ranks) == 0);
        byte->ranks = (message->is_sum ? byte->ranks : 0) | sent->data[i].ranks;
        byte->offset = sent->data[i].offset;
    }
}

static bool match(struct play *play, uint32_t from, struct posted *sent)
{
    const uint32_t to = sent->message.peer;
    assert_true(to < play->schedule.num_ranks && to != from);
    for (size_t i = 0; i < play->ranks[to].count; i++) {
        struct posted *asked = &play->ranks[to].posted[i];
        if (!asked->message.is_receive || asked->is_done || asked->message.peer != from)
            continue;
        receive(&play->ranks[to], sent, &asked->message);
        asked->is_done = sent->is_done = true;
        play->num_messages++;
        play->sent_bytes += sent->message.bytes;
        return true;
    }
    return false;
}

/* Goes on to the next step of a rank whose messages are done. */
static bool go_on(struct play *play, struct player *player)
{
    for (size_t i = 0; i < player->count; i++)
        if (!player->posted[i].is_done)
            return false;
    player->count = 0;
    if (player->step == schedule_num_steps(&play->schedule))
        return false;
    post_step(play, player);
    player->step++;
    return true;
}

static bool match_all(struct play *play)
{
    bool has_matched = false;
    for (uint32_t from = 0; from < play->schedule.num_ranks; from++)
        for (size_t i = 0; i < play->ranks[from].count; i++) {
            struct posted *posted = &play->ranks[from].posted[i];
            if (!posted->message.is_receive && !posted->is_done)
                has_matched |= match(play, from, posted);
        }
    return has_matched;
}

static void run(struct play *play)
{
    bool goes_on = true;
    while (goes_on) {
        goes_on = false;
        for (uint32_t i = 0; i < play->schedule.num_ranks; i++)
            goes_on |= go_on(play, &play->ranks[i]);
        goes_on |= match_all(play);
    }
    for (uint32_t i = 0; i < play->schedule.num_ranks; i++) {
        assert_int_equal(play->ranks[i].step, schedule_num_steps(&play->schedule));
        assert_int_equal(play->ranks[i].count, 0);
    }
}

static const struct play *played(
    enum schedule_kind kind, uint32_t num_ranks, size_t bytes, enum schedule_order order)
{
    static struct play play;
    memset(&play, 0, sizeof play);
    play.schedule = (struct schedule){kind, num_ranks, bytes, play.order};
    schedule_fill_order(order, num_ranks, (num_ranks + 1) / 2, play.order);
    for (uint32_t place = 0; place < num_ranks; place++)
        play.ranks[play.order[place]].place = place;
    for (uint32_t rank = 0; rank < num_ranks; rank++)
        for (uint32_t i = 0; i < bytes; i++)
            play.ranks[rank].in[i] = play.ranks[rank].out[i] = (struct byte){1u << rank, i};
    run(&play);
    play.schedule.order = NULL;
    return &play;
}

/* ---- outcomes ---- */

static uint32_t rank_at(const struct play *play, size_t place)
{
    return play->order[place];
}

enum { ANYTHING = 0 };

/* Gives the ranks that a place's byte must have contributions of in the end. */
static uint32_t expected(const struct play *play, uint32_t place, size_t offset)
{
    const uint32_t n = play->schedule.num_ranks, all = (1u << n) - 1;
    const size_t block = play->schedule.bytes / n;
    uint32_t part = 0;
    while (play->schedule.bytes * (part + 1) / n <= offset)
        part++;
    switch (play->schedule.kind) {
    case SCHEDULE_TREE:
    case SCHEDULE_PIPELINE:
        return 1u << rank_at(play, 0);
    case SCHEDULE_GATHER:
        return 1u << rank_at(play, part);
    case SCHEDULE_GATHER_BRUCK:
        return offset < n * block ? 1u << rank_at(play, (place + offset / block) % n) : ANYTHING;
    case SCHEDULE_REDUCE:
        return place == 0 ? all : ANYTHING;
    case SCHEDULE_REDUCE_SCATTER:
        return part == (place + 1) % n ? all : ANYTHING;
    default:
        return all;
    }
}

/* Blocks lie by their places, or, where they are passed on, by distances behind and ahead. The own one is not
 * sent. */
static void check_alltoall(const struct play *play, const struct player *player)
{
    const uint32_t n = play->schedule.num_ranks;
    const size_t block = play->schedule.bytes / n;
    for (uint32_t from = 0; from < n; from++) {
        const uint32_t ahead = (player->place + n - from) % n;
        const bool is_by_distance = schedule_passes_on(play->schedule.kind);
        const size_t sent_at = is_by_distance ? ahead : player->place, got_at = is_by_distance ? ahead : from;
        for (size_t i = 0; i < block && ahead != 0; i++) {
            const struct byte *byte = &player->out[got_at * block + i];
            assert_int_equal(byte->ranks, 1u << rank_at(play, from));
            assert_int_equal(byte->offset, sent_at * block + i);
        }
    }
}

static void check_outcome(const struct play *play)
{
    for (uint32_t rank = 0; rank < play->schedule.num_ranks; rank++) {
        const struct player *player = &play->ranks[rank];
        if (schedule_is_alltoall(play->schedule.kind))
            check_alltoall(play, player);
        for (size_t i = 0; i < play->schedule.bytes && !schedule_is_alltoall(play->schedule.kind); i++) {
            const uint32_t wanted = expected(play, player->place, i);
            assert_true(wanted == ANYTHING || player->out[i].ranks == wanted);
        }
    }
}

static size_t bits_set_below(uint32_t count)
{
    size_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t rest = i; rest != 0; rest &= rest - 1)
            bits++;
    return bits;
}

/* Gives the bytes that an algorithm must send in all, by the formulas of its source. */
static size_t expected_bytes(const struct schedule *schedule)
{
    const size_t n = schedule->num_ranks, bytes = schedule->bytes;
    switch (schedule->kind) {
    case SCHEDULE_RING:
    case SCHEDULE_RABENSEIFNER:
        return 2 * (n - 1) * bytes;
    case SCHEDULE_DOUBLING:
        return n * schedule_num_steps(schedule) * bytes;
    case SCHEDULE_PAIRWISE:
    case SCHEDULE_AT_ONCE:
        return n * (n - 1) * (bytes / n);
    case SCHEDULE_RING_ALLTOALL:
        return n * (n * (n - 1) / 2) * (bytes / n);
    case SCHEDULE_BRUCK:
        return n * bits_set_below(schedule->num_ranks) * (bytes / n);
    case SCHEDULE_GATHER_BRUCK:
        return n * (n - 1) * (bytes / n);
    case SCHEDULE_PINGPONG:
        return 2 * bytes;
    default:
        return (n - 1) * bytes; /* TREE, PIPELINE, GATHER, REDUCE, REDUCE_SCATTER */
    }
}

static bool needs_power_of_two(enum schedule_kind kind)
{
    return kind == SCHEDULE_DOUBLING || kind == SCHEDULE_RABENSEIFNER;
}

static void every_algorithm_moves_what_it_should_and_no_more(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 37, 256, MOST_BYTES - 1};
    for (int kind = 0; kind < SCHEDULE_PINGPONG; kind++)
        for (uint32_t n = 2; n <= MOST; n++) {
            if (needs_power_of_two((enum schedule_kind)kind) && (n & (n - 1)) != 0)
                continue;
            for (size_t i = 0; i < 4 * SCHEDULE_ORDERS; i++) {
                const struct play *play =
                    played((enum schedule_kind)kind, n, sizes[i % 4], (enum schedule_order)(i / 4));
                check_outcome(play);
                assert_int_equal(play->sent_bytes, expected_bytes(&play->schedule));
            }
        }
}

static void a_pingpong_goes_to_the_second_and_back(void **state)
{
    (void)state;
    const struct play *play = played(SCHEDULE_PINGPONG, 4, 100, ORDER_INTERLEAVED);
    assert_int_equal(play->num_messages, 2);
    assert_int_equal(play->ranks[2].out[0].ranks, 1); /* 0, 2, 1, 3 */
}

/* Between racks {0 ... 3} and {4 ... 7}. */
static void orders_group_or_mix_the_racks(void **state)
{
    (void)state;
    uint32_t order[8], crossings[SCHEDULE_ORDERS] = {0}, seen = 0;
    for (int kind = 0; kind < SCHEDULE_ORDERS; kind++) {
        schedule_fill_order((enum schedule_order)kind, 8, 4, order);
        for (size_t i = 0; i < 8; i++) {
            crossings[kind] += order[i] / 4 != order[(i + 1) % 8] / 4;
            seen |= 1u << (8 * kind + (int)order[i]);
        }
    }
    assert_int_equal(seen, 0xffffff);
    assert_int_equal(crossings[ORDER_GROUPED], 2);
    assert_int_equal(crossings[ORDER_INTERLEAVED], 8);
    assert_in_range(crossings[ORDER_RANDOM], 3, 7);
}

static void names_are_found(void **state)
{
    (void)state;
    for (int kind = 0; kind < SCHEDULE_KINDS; kind++)
        assert_int_equal(schedule_find(schedule_names[kind]), kind);
    assert_int_equal(schedule_order_find("random"), ORDER_RANDOM);
    assert_int_equal(schedule_find("rings"), SCHEDULE_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_moves_what_it_should_and_no_more),
        cmocka_unit_test(a_pingpong_goes_to_the_second_and_back),
        cmocka_unit_test(orders_group_or_mix_the_racks),
        cmocka_unit_test(names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
