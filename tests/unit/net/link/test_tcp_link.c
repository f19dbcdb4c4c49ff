/* Links over TCP, each with its other side in the same thread: what is sent arrives, in order and once,
 * through sockets that take little at a time; and nothing arrives of what somebody in between has changed. */
#include "net/link/tcp_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link/socket.h"
#include "support/test_support.h"

enum {
    CAPACITY = 64,
    NUM_MESSAGES = 400,
    REGION_BYTES = 1 << 20,
    SMALL_BUFFER = 128 << 10, /* of a socket: a few payloads */
    FEW_FRAMES = 3,
    FRAME_PAYLOAD = 100,
    FRAME_BYTES = PH_TCP_FRAME_BYTES + FRAME_PAYLOAD + PH_FRAME_TAG_BYTES
};

static const size_t payload_sizes[] = {0, 1, 24, 1000, 8191, 8192, 8193, 70000, 300000};
enum { NUM_SIZES = sizeof payload_sizes / sizeof *payload_sizes };

/* One side, and what it knows of the other's messages. */
struct side {
    struct ph__link *link;
    struct ph__region region; /* what it sends from */
    char *received;           /* (REGION_BYTES) */
    uint64_t num_queued, num_sent, num_arrived;
};

/* ---- what is sent ---- */

/* Payloads lie anywhere in the region; the same on both sides, so that what comes can be looked up. */
static size_t size_of(uint64_t number)
{
    return payload_sizes[number * 7 % NUM_SIZES];
}

static size_t offset_of(uint64_t number)
{
    return (size_t)(number * 4099 % (REGION_BYTES - payload_sizes[NUM_SIZES - 1]));
}

static struct ph__message message_of(uint64_t number)
{
    return (struct ph__message){.kind = (uint8_t)(1 + number % 5),
        .flags = (uint8_t)(number % 3),
        .count = (uint16_t)(number * 11),
        .chunk = (uint32_t)(number * 1000003),
        .iteration = number};
}

static void fill(char *bytes)
{
    for (size_t i = 0; i < REGION_BYTES; i++)
        bytes[i] = (char)(i * 31 / 7 + i / 4096);
}

/* ---- the owner ---- */

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    const struct side *side = context;
    assert_int_equal(payload_bytes, size_of(message->iteration));
    *memory_out = side->received;
    return PH_OK;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    struct side *side = context;
    const struct ph__message wanted = message_of(side->num_arrived++);
    assert_memory_equal(message, &wanted, sizeof wanted);
    assert_memory_equal(
        side->received, (char *)side->region.memory + offset_of(wanted.iteration), size_of(wanted.iteration));
    return PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    struct side *side = context;
    assert_int_equal(message->iteration, side->num_sent++);
}

/* ---- two sides ---- */

static void connect_sockets(int sockets_out[2])
{
    char address[PH_ADDRESS_BYTES];
    int listening;
    struct pollfd polled = {.events = POLLIN};
    assert_ok(ph__socket_listen("127.0.0.1:0", &listening));
    assert_ok(ph__socket_address(listening, address));
    assert_ok(ph__socket_connect(address, 1000, &sockets_out[0]));
    polled.fd = listening;
    assert_int_equal(poll(&polled, 1, 1000), 1);
    assert_ok(ph__socket_accept(listening, &sockets_out[1]));
    close(listening);
}

static struct ph__frame_key *make_key(unsigned char first)
{
    unsigned char bytes[PH_CONNECTION_KEY_BYTES];
    struct ph__frame_key *key;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(first + i);
    assert_ok(ph__frame_key_create(bytes, &key));
    return key;
}

static void begin_side(struct side *side, int socket, bool has_keys, bool is_registered, int number)
{
    *side = (struct side){.received = malloc(REGION_BYTES)};
    assert_non_null(side->received);
    assert_ok(ph__region_create("test-link", REGION_BYTES, &side->region));
    fill(side->region.memory);
    const struct ph__tcp_link_options options = {.socket = socket,
        .capacity = CAPACITY,
        .send_key = has_keys ? make_key((unsigned char)(100 * number)) : NULL,
        .receive_key = has_keys ? make_key((unsigned char)(100 * (1 - number))) : NULL,
        .registered = is_registered ? &side->region : NULL,
        .owner = {.context = side, .place = place, .arrived = arrived, .sent = sent}};
    assert_ok(ph__tcp_link_create(&options, &side->link));
}

static void end_side(struct side *side)
{
    ph__link_destroy(side->link);
    ph__region_close(&side->region);
    free(side->received);
}

static ph_status send_next(struct side *side)
{
    const struct ph__message message = message_of(side->num_queued);
    PH_TRY(ph__link_send(side->link, &message, (char *)side->region.memory + offset_of(side->num_queued),
        size_of(side->num_queued)));
    side->num_queued++;
    return PH_OK;
}

static void shrink_buffers(int socket)
{
    const int bytes = SMALL_BUFFER;
    assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
}

/* ---- what should arrive ---- */

static void exchange(bool has_keys, bool is_registered)
{
    struct side sides[2];
    int sockets[2];
    connect_sockets(sockets);
    for (int i = 0; i < 2; i++) {
        shrink_buffers(sockets[i]);
        begin_side(&sides[i], sockets[i], has_keys, is_registered, i);
    }
    for (size_t turn = 0; sides[0].num_arrived < NUM_MESSAGES || sides[1].num_arrived < NUM_MESSAGES;
         turn++) {
        struct side *side = &sides[turn % 2];
        size_t num_moved;
        for (size_t i = 0; i < turn % 7; i++) {
            if (side->num_queued < NUM_MESSAGES && side->num_queued - side->num_sent < CAPACITY)
                assert_ok(send_next(side));
        }
        assert_ok(ph__link_progress(side->link, turn % 11, &num_moved));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sides[i].num_sent, NUM_MESSAGES);
        assert_int_equal(sides[i].link->counters.messages_received, NUM_MESSAGES);
        assert_int_equal(
            sides[i].link->counters.payload_bytes_received, sides[1 - i].link->counters.payload_bytes_sent);
    }
    end_side(&sides[0]);
    end_side(&sides[1]);
}

static void all_that_is_sent_arrives_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        exchange(i % 2 != 0, i / 2 != 0);
}

/* It asks to be told when there is room, and goes on then, however long that takes. */
static void who_does_not_read_is_waited_for(void **state)
{
    (void)state;
    struct side sides[2];
    int sockets[2];
    size_t num_moved = 1;
    connect_sockets(sockets);
    for (int i = 0; i < 2; i++) {
        shrink_buffers(sockets[i]);
        begin_side(&sides[i], sockets[i], false, true, i);
    }
    while (send_next(&sides[0]) == PH_OK) {
    }
    assert_string_equal(ph_error_text(), "the peer does not read its messages: 64 are waiting");
    while (num_moved > 0)
        assert_ok(ph__link_progress(sides[0].link, 0, &num_moved));
    struct pollfd polled = {.fd = sockets[0], .events = ph__link_poll_events(sides[0].link)};
    unsigned limit_ms = 1;
    socklen_t size = sizeof limit_ms;
    assert_int_equal(getsockopt(sockets[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &size), 0);
    assert_int_equal(limit_ms, 0);
    assert_true(sides[0].num_sent < CAPACITY);
    assert_true((polled.events & POLLOUT) != 0);
    assert_int_equal(poll(&polled, 1, 0), 0);
    while (sides[1].num_arrived < CAPACITY) {
        assert_ok(ph__link_progress(sides[1].link, 1, &num_moved));
        assert_ok(ph__link_progress(sides[0].link, 0, &num_moved));
    }
    assert_int_equal(ph__link_poll_events(sides[0].link), POLLIN);
    end_side(&sides[0]);
    assert_fails(ph__link_progress(sides[1].link, 1, &num_moved), PH_ERROR_PEER, "has closed the connection");
    end_side(&sides[1]);
}

/* ---- what should not ---- */

static size_t num_frames_arrived;

static ph_status place_frame(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    (void)message;
    if (payload_bytes > FRAME_PAYLOAD)
        return ph_fail(PH_ERROR_PEER, "too much");
    *memory_out = context;
    return PH_OK;
}

static ph_status count_frame(void *context, const struct ph__message *message)
{
    (void)context, (void)message;
    num_frames_arrived++;
    return PH_OK;
}

static void ignore_sent(void *context, const struct ph__message *message)
{
    (void)context, (void)message;
}

static struct ph__link *make_keyed_link(int socket, int number, char *memory)
{
    struct ph__link *link;
    const struct ph__tcp_link_options options = {.socket = socket,
        .capacity = CAPACITY,
        .send_key = make_key((unsigned char)(100 * number)),
        .receive_key = make_key((unsigned char)(100 * (1 - number))),
        .owner = {.context = memory, .place = place_frame, .arrived = count_frame, .sent = ignore_sent}};
    assert_ok(ph__tcp_link_create(&options, &link));
    return link;
}

/* Frames as a link with keys sends them. */
static void record_frames(char frames_out[FEW_FRAMES][FRAME_BYTES])
{
    char memory[FRAME_PAYLOAD], payload[FRAME_PAYLOAD];
    int sockets[2];
    size_t num_moved;
    connect_sockets(sockets);
    struct ph__link *link = make_keyed_link(sockets[0], 0, memory);
    memset(payload, 7, sizeof payload);
    for (uint64_t i = 0; i < FEW_FRAMES; i++) {
        const struct ph__message message = message_of(i);
        assert_ok(ph__link_send(link, &message, payload, sizeof payload));
    }
    assert_ok(ph__link_progress(link, 0, &num_moved));
    for (size_t received = 0; received < FEW_FRAMES * FRAME_BYTES;) {
        const ssize_t now =
            recv(sockets[1], (char *)frames_out + received, FEW_FRAMES * FRAME_BYTES - received, 0);
        assert_true(now > 0 || errno == EAGAIN);
        received += now > 0 ? (size_t)now : 0;
    }
    ph__link_destroy(link);
    close(sockets[1]);
}

/* How many of these frames arrive, before the link fails or all have. */
static size_t play(const char *bytes, size_t size, ph_status *status_out)
{
    char memory[FRAME_PAYLOAD];
    int sockets[2];
    connect_sockets(sockets);
    struct ph__link *link = make_keyed_link(sockets[1], 1, memory);
    assert_int_equal(send(sockets[0], bytes, size, 0), size);
    close(sockets[0]);
    num_frames_arrived = 0;
    do {
        size_t num_moved;
        *status_out = ph__link_progress(link, 16, &num_moved);
    } while (*status_out == PH_OK);
    ph__link_destroy(link);
    return num_frames_arrived;
}

static void no_byte_of_a_frame_can_be_changed(void **state)
{
    (void)state;
    char frames[FEW_FRAMES][FRAME_BYTES];
    ph_status status;
    record_frames(frames);
    assert_int_equal(play(frames[0], sizeof frames, &status), FEW_FRAMES);
    for (size_t at = 0; at < FRAME_BYTES; at++) {
        frames[1][at] ^= 0x20;
        assert_int_equal(play(frames[0], sizeof frames, &status), 1);
        assert_int_equal(status, PH_ERROR_PEER);
        frames[1][at] ^= 0x20;
    }
}

static void no_frame_can_be_left_out_or_repeated(void **state)
{
    (void)state;
    char frames[FEW_FRAMES][FRAME_BYTES], changed[FEW_FRAMES][FRAME_BYTES];
    static const size_t orders[][FEW_FRAMES] = {{0, 2, 1}, {0, 0, 1}, {0, 2, 2}};
    ph_status status;
    record_frames(frames);
    for (size_t order = 0; order < sizeof orders / sizeof *orders; order++) {
        for (size_t i = 0; i < FEW_FRAMES; i++)
            memcpy(changed[i], frames[orders[order][i]], FRAME_BYTES);
        assert_int_equal(play(changed[0], sizeof changed, &status), 1);
        assert_int_equal(status, PH_ERROR_PEER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_sent_arrives_in_order),
        cmocka_unit_test(who_does_not_read_is_waited_for),
        cmocka_unit_test(no_byte_of_a_frame_can_be_changed),
        cmocka_unit_test(no_frame_can_be_left_out_or_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
