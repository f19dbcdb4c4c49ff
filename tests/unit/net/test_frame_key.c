#include "net/frame_key.h"

#include <string.h>

#include "support/test_support.h"

enum { HEADER_BYTES = 16, PAYLOAD_BYTES = 32768 };

static unsigned char header[HEADER_BYTES], payload[PAYLOAD_BYTES];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEADER_BYTES; i++)
        header[i] = (unsigned char)(200 + i);
    for (size_t i = 0; i < PAYLOAD_BYTES; i++)
        payload[i] = (unsigned char)(i * 7 % 251);
    return 0;
}

static struct ph__frame_key *make_key(unsigned char first)
{
    unsigned char bytes[PH_CONNECTION_KEY_BYTES];
    struct ph__frame_key *key = NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(first + i);
    assert_ok(ph__frame_key_create(bytes, &key));
    return key;
}

/* What the other side says of a frame with this tag. */
static ph_status check(struct ph__frame_key *key, const void *its_header, size_t header_size,
    const void *its_payload, size_t payload_size, const unsigned char *tag)
{
    PH_TRY(ph__frame_begin(key, its_header, header_size));
    PH_TRY(ph__frame_add(key, its_payload, payload_size));
    return ph__frame_check(key, tag, "127.0.0.1:7");
}

#define assert_refused(call) assert_fails(call, PH_ERROR_PEER, "127.0.0.1:7: frame ")

/* By Python's cryptography: AESGCM(bytes(range(32))).encrypt(pack("<QI", number, 16), b"", header +
 * payload)[:8]. */
static void tags_are_those_of_the_contract(void **state)
{
    (void)state;
    static const struct {
        size_t payload_size;
        unsigned char tag[PH_FRAME_TAG_BYTES];
    } frames[] = {
        {0, {0x4b, 0xef, 0x9a, 0x25, 0x61, 0xc5, 0x3c, 0x06}},
        {33, {0xa8, 0x2c, 0xc8, 0x46, 0xc7, 0x99, 0x22, 0xae}},
        {PAYLOAD_BYTES, {0x4c, 0x12, 0xc4, 0xa8, 0xd8, 0xb2, 0xf9, 0x44}},
    };
    struct ph__frame_key *sender = make_key(0), *receiver = make_key(0);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        unsigned char tag[PH_FRAME_TAG_BYTES];
        assert_ok(ph__frame_mac(sender, header, HEADER_BYTES, payload, frames[i].payload_size, tag));
        assert_memory_equal(tag, frames[i].tag, sizeof tag);
        assert_ok(check(receiver, header, HEADER_BYTES, payload, frames[i].payload_size, tag));
    }
    ph__frame_key_destroy(sender);
    ph__frame_key_destroy(receiver);
    ph__frame_key_destroy(NULL);
}

static void a_payload_may_come_in_pieces(void **state)
{
    (void)state;
    struct ph__frame_key *sender = make_key(1), *receiver = make_key(1);
    for (size_t piece = 1; piece < 200; piece += 13) {
        const size_t size = 1000;
        unsigned char tag[PH_FRAME_TAG_BYTES];
        assert_ok(ph__frame_mac(sender, header, HEADER_BYTES, payload, size, tag));
        assert_ok(ph__frame_begin(receiver, header, HEADER_BYTES));
        for (size_t at = 0; at < size; at += piece)
            assert_ok(ph__frame_add(receiver, payload + at, piece < size - at ? piece : size - at));
        assert_ok(ph__frame_check(receiver, tag, "peer"));
    }
    ph__frame_key_destroy(sender);
    ph__frame_key_destroy(receiver);
}

/* Each time with a new pair of keys, since the first wrong tag is the last. */
static void every_bit_of_header_payload_and_tag_counts(void **state)
{
    (void)state;
    enum { SIZE = 48 };
    unsigned char frame[SIZE + PH_FRAME_TAG_BYTES];
    memcpy(frame, header, HEADER_BYTES);
    memcpy(frame + HEADER_BYTES, payload, SIZE - HEADER_BYTES);
    for (size_t bit = 0; bit < 8 * sizeof frame; bit++) {
        struct ph__frame_key *sender = make_key(2), *receiver = make_key(2);
        assert_ok(ph__frame_mac(
            sender, frame, HEADER_BYTES, frame + HEADER_BYTES, SIZE - HEADER_BYTES, frame + SIZE));
        frame[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_refused(
            check(receiver, frame, HEADER_BYTES, frame + HEADER_BYTES, SIZE - HEADER_BYTES, frame + SIZE));
        frame[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ph__frame_key_destroy(sender);
        ph__frame_key_destroy(receiver);
    }
}

static void no_byte_moves_between_header_and_payload(void **state)
{
    (void)state;
    struct ph__frame_key *sender = make_key(3), *receiver = make_key(3);
    unsigned char tag[PH_FRAME_TAG_BYTES];
    assert_ok(ph__frame_mac(sender, payload, 16, payload + 16, 48, tag));
    assert_refused(check(receiver, payload, 32, payload + 32, 32, tag));
    ph__frame_key_destroy(sender);
    ph__frame_key_destroy(receiver);
}

static void a_frame_sent_again_left_out_or_out_of_order_is_refused(void **state)
{
    (void)state;
    static const size_t orders[][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 2}, {2, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct ph__frame_key *sender = make_key(4), *receiver = make_key(4);
        unsigned char tags[3][PH_FRAME_TAG_BYTES];
        for (size_t frame = 0; frame < 3; frame++)
            assert_ok(ph__frame_mac(sender, header, HEADER_BYTES, payload, 100, tags[frame]));
        ph_status status = check(receiver, header, HEADER_BYTES, payload, 100, tags[orders[i][0]]);
        assert_int_equal(status, orders[i][0] == 0 ? PH_OK : PH_ERROR_PEER);
        assert_refused(check(receiver, header, HEADER_BYTES, payload, 100, tags[orders[i][1]]));
        ph__frame_key_destroy(sender);
        ph__frame_key_destroy(receiver);
    }
}

static void a_frame_sent_back_is_refused(void **state)
{
    (void)state;
    struct ph__frame_key *to_server = make_key(5), *to_client = make_key(6);
    unsigned char tag[PH_FRAME_TAG_BYTES];
    assert_ok(ph__frame_mac(to_server, header, HEADER_BYTES, payload, 100, tag));
    assert_refused(check(to_client, header, HEADER_BYTES, payload, 100, tag));
    ph__frame_key_destroy(to_server);
    ph__frame_key_destroy(to_client);
}

static void after_one_wrong_tag_no_other_is_right(void **state)
{
    (void)state;
    struct ph__frame_key *sender = make_key(7), *receiver = make_key(7);
    unsigned char tag[PH_FRAME_TAG_BYTES];
    assert_ok(ph__frame_mac(sender, header, HEADER_BYTES, payload, 100, tag));
    tag[0] ^= 1;
    assert_fails(check(receiver, header, HEADER_BYTES, payload, 100, tag), PH_ERROR_PEER,
        "127.0.0.1:7: frame 1 was changed on its way, or is not of this connection");
    assert_ok(ph__frame_mac(sender, header, HEADER_BYTES, payload, 100, tag));
    assert_refused(check(receiver, header, HEADER_BYTES, payload, 100, tag));
    ph__frame_key_destroy(sender);
    ph__frame_key_destroy(receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_those_of_the_contract),
        cmocka_unit_test(a_payload_may_come_in_pieces),
        cmocka_unit_test(every_bit_of_header_payload_and_tag_counts),
        cmocka_unit_test(no_byte_moves_between_header_and_payload),
        cmocka_unit_test(a_frame_sent_again_left_out_or_out_of_order_is_refused),
        cmocka_unit_test(a_frame_sent_back_is_refused),
        cmocka_unit_test(after_one_wrong_tag_no_other_is_right),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
