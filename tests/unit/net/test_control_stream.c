/* Control streams: over socket pairs, in pieces, with descriptors, and against whoever does not keep to the
 * frames. */
#include "net/control_stream.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/is_sanitized.h"
#include "support/test_support.h"

static struct ph__control_stream *sender, *receiver;
static int raw; /* a further reference of the sender's socket, for whatever does not come from a stream */

static void set_non_blocking(int descriptor)
{
    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
}

static void make_streams(const int ends[2])
{
    set_non_blocking(ends[0]);
    set_non_blocking(ends[1]);
    raw = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    assert_ok(ph__control_stream_create(ends[0], &sender));
    assert_ok(ph__control_stream_create(ends[1], &receiver));
}

static int set_up(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    make_streams(ends);
    return 0;
}

static int set_up_tcp(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int ends[2] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, sizeof address), 0);
    ends[1] = accept(listening, NULL, NULL);
    close(listening);
    make_streams(ends);
    return 0;
}

static void close_sender(void)
{
    ph__control_stream_destroy(sender);
    sender = NULL;
    if (raw >= 0)
        close(raw);
    raw = -1;
}

static int tear_down(void **state)
{
    (void)state;
    close_sender();
    ph__control_stream_destroy(receiver);
    return 0;
}

static bool take(struct ph__control_frame *frame)
{
    bool is_there = true;
    assert_ok(ph__control_stream_take(receiver, frame, &is_there));
    return is_there;
}

/* Takes the next frame, which must be this one. */
static void check_frame(uint16_t type, const void *body, size_t size)
{
    struct ph__control_frame frame;
    assert_true(take(&frame));
    assert_int_equal(frame.type, type);
    assert_int_equal(frame.size, size);
    assert_int_equal(frame.num_descriptors, 0);
    if (size > 0)
        assert_memory_equal(frame.body, body, size);
}

static void send_raw(const void *bytes, size_t size)
{
    assert_int_equal(send(raw, bytes, size, 0), size);
}

/* ---- frames ---- */

static void frames_come_as_they_were_put(void **state)
{
    (void)state;
    struct ph__control_frame frame;
    assert_ok(ph__control_stream_receive(receiver));
    assert_false(take(&frame));
    assert_false(ph__control_stream_has_output(sender));
    assert_ok(ph__control_stream_put(sender, 7, "body", 4, NULL, 0));
    assert_ok(ph__control_stream_put(sender, 65535, NULL, 0, NULL, 0));
    assert_ok(ph__control_stream_put(sender, 0, "x", 1, NULL, 0));
    assert_true(ph__control_stream_has_output(sender));
    assert_ok(ph__control_stream_receive(receiver));
    assert_false(take(&frame));
    assert_ok(ph__control_stream_flush(sender));
    assert_false(ph__control_stream_has_output(sender));
    assert_ok(ph__control_stream_receive(receiver));
    check_frame(7, "body", 4);
    check_frame(65535, NULL, 0);
    check_frame(0, "x", 1);
    assert_false(take(&frame));
}

static void the_head_is_that_of_the_contract(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {3, 0, 0, 0, 0x34, 0x12, 0, 0, 'a', 'b', 'c'};
    unsigned char got[sizeof bytes];
    send_raw(bytes, sizeof bytes);
    assert_ok(ph__control_stream_receive(receiver));
    check_frame(0x1234, "abc", 3);
    assert_ok(ph__control_stream_put(sender, 0x1234, "abc", 3, NULL, 0));
    assert_ok(ph__control_stream_flush(sender));
    assert_int_equal(recv(ph__control_stream_socket(receiver), got, sizeof got, 0), sizeof bytes);
    assert_memory_equal(got, bytes, sizeof bytes);
}

static void a_frame_may_come_byte_by_byte(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {
        5, 0, 0, 0, 9, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 0, 1, 0, 0, 0};
    struct ph__control_frame frame;
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_false(take(&frame));
        send_raw(bytes + i, 1);
        assert_ok(ph__control_stream_receive(receiver));
        if (i == 12)
            check_frame(9, "hello", 5);
    }
    check_frame(1, NULL, 0);
}

/* More than the socket takes at once, so that both sides meet pieces. */
static void large_frames_come_in_pieces(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    static char body[PH_CONTROL_MAX_BYTES];
    static const size_t sizes[] = {PH_CONTROL_MAX_BYTES, 1, 3000000, 65536 - 8, 65536, 0, 12345};
    enum { NUM_SIZES = sizeof sizes / sizeof *sizes };
    size_t num_put = 0, num_taken = 0;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 31 + (i >> 13));
    while (num_taken < NUM_SIZES) {
        struct ph__control_frame frame;
        if (num_put < NUM_SIZES && !ph__control_stream_has_output(sender)) {
            assert_ok(ph__control_stream_put(sender, (uint16_t)num_put, body, sizes[num_put], NULL, 0));
            num_put++;
        }
        assert_ok(ph__control_stream_flush(sender));
        if (ph__rng_below(&random, 2) == 0)
            continue;
        assert_ok(ph__control_stream_receive(receiver));
        if (!take(&frame))
            continue;
        assert_int_equal(frame.type, num_taken);
        assert_int_equal(frame.size, sizes[num_taken]);
        assert_int_equal(memcmp(frame.body, body, frame.size), 0);
        num_taken++;
    }
}

static void too_much_cannot_be_put(void **state)
{
    (void)state;
    static char body[PH_CONTROL_MAX_BYTES + 1];
    int descriptors[PH_CONTROL_MAX_DESCRIPTORS + 1] = {0};
    assert_fails(
        ph__control_stream_put(sender, 1, body, sizeof body, NULL, 0), PH_ERROR_USAGE, "8388609 bytes");
    assert_fails(ph__control_stream_put(sender, 1, body, 1, descriptors, PH_CONTROL_MAX_DESCRIPTORS + 1),
        PH_ERROR_USAGE, "251 descriptors");
    assert_false(ph__control_stream_has_output(sender));
}

/* Whoever asks without ever reading the answers does not fill the other side's memory. */
static void what_waits_to_be_sent_has_a_limit(void **state)
{
    (void)state;
    static char body[PH_CONTROL_MAX_BYTES / 8];
    ph_status status = PH_OK;
    size_t num_put = 0;
    for (; num_put < 1000 && status == PH_OK; num_put++) {
        status = ph__control_stream_put(sender, 1, body, sizeof body, NULL, 0);
        assert_ok(ph__control_stream_flush(sender));
    }
    assert_int_equal(status, PH_ERROR_PEER);
    assert_non_null(strstr(ph_error_text(), "does not read its messages"));
    assert_in_range(num_put, 8, 20);
}

/* ---- whoever does not keep to the frames ---- */

static void a_frame_that_would_be_too_large_is_refused(void **state)
{
    (void)state;
    static const unsigned char heads[][8] = {
        {1, 0, 0x80, 0, 1, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, {0, 0, 0, 0x80, 1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct ph__control_frame frame;
        bool is_there = true;
        if (i > 0)
            set_up(NULL);
        send_raw(heads[i], sizeof heads[i]);
        assert_ok(ph__control_stream_receive(receiver));
        assert_fails(
            ph__control_stream_take(receiver, &frame, &is_there), PH_ERROR_PEER, "a control message of");
        assert_false(is_there);
        assert_fails(
            ph__control_stream_take(receiver, &frame, &is_there), PH_ERROR_PEER, "a control message of");
        if (i + 1 < sizeof heads / sizeof *heads)
            tear_down(NULL);
    }
}

static void what_is_not_taken_is_received_up_to_a_limit(void **state)
{
    (void)state;
    static const char noise[65536];
    size_t num_sent = 0;
    for (size_t i = 0; i < 2000; i++) {
        const ssize_t sent = send(raw, noise, sizeof noise, MSG_DONTWAIT);
        num_sent += sent > 0 ? (size_t)sent : 0;
        assert_ok(ph__control_stream_receive(receiver));
    }
    assert_in_range(num_sent, PH_CONTROL_MAX_BYTES, 2 * PH_CONTROL_MAX_BYTES);
    struct ph__control_frame frame;
    for (size_t i = 0; i < PH_CONTROL_MAX_BYTES / 8; i++)
        assert_true(take(&frame)); /* eight zeros are a frame */
}

static void a_stream_can_be_told_to_believe_less(void **state)
{
    (void)state;
    static const char noise[65536];
    struct ph__control_frame frame;
    size_t num_taken = 0;
    bool is_there;
    ph__control_stream_limit(receiver, 512);
    assert_int_equal(send(raw, noise, sizeof noise, 0), sizeof noise);
    assert_ok(ph__control_stream_receive(receiver));
    while (take(&frame))
        num_taken++;
    assert_int_equal(num_taken, (8 + 512 + 8) / 8); /* as much as a frame with its tag takes was kept */
    while (num_taken < sizeof noise / 8) {
        assert_ok(ph__control_stream_receive(receiver));
        while (take(&frame))
            num_taken++;
    }
    send_raw("\0\2\0\0\1\0\0\0", 8);
    assert_ok(ph__control_stream_receive(receiver));
    assert_false(take(&frame)); /* of 512 bytes, which have not come */
    send_raw(noise, 512);
    assert_ok(ph__control_stream_receive(receiver));
    assert_true(take(&frame));
    send_raw("\1\2\0\0\1\0\0\0", 8);
    assert_ok(ph__control_stream_receive(receiver));
    assert_fails(ph__control_stream_take(receiver, &frame, &is_there), PH_ERROR_PEER, "513 bytes");
}

static void frames_before_the_end_can_be_taken(void **state)
{
    (void)state;
    struct ph__control_frame frame;
    assert_ok(ph__control_stream_put(sender, 3, "last words", 10, NULL, 0));
    assert_ok(ph__control_stream_flush(sender));
    send_raw("\5\0\0", 3);
    close_sender();
    assert_fails(ph__control_stream_receive(receiver), PH_ERROR_PEER, "closed the connection");
    check_frame(3, "last words", 10);
    assert_false(take(&frame));
    assert_fails(ph__control_stream_receive(receiver), PH_ERROR_PEER, "closed the connection");
}

static void sending_to_nobody_is_an_error_and_no_signal(void **state)
{
    (void)state;
    ph__control_stream_destroy(receiver);
    receiver = NULL;
    assert_ok(ph__control_stream_put(sender, 3, "anybody?", 8, NULL, 0));
    assert_fails(ph__control_stream_flush(sender), PH_ERROR_PEER, "the connection is broken");
}

static void a_reset_is_the_end(void **state)
{
    (void)state;
    const struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(raw, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close_sender();
    assert_fails(ph__control_stream_receive(receiver), PH_ERROR_PEER, "closed the connection");
}

/* ---- descriptors ---- */

static ino_t number_of_file(int descriptor)
{
    struct stat about;
    assert_int_equal(fstat(descriptor, &about), 0);
    return about.st_ino;
}

static void open_files(int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        descriptors[i] = memfd_create("test-sent", MFD_CLOEXEC);
        assert_true(descriptors[i] >= 0);
    }
}

static void close_files(const int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(descriptors[i]);
}

/* Takes the next frame, which must bring these files in this order. */
static void check_descriptors(uint16_t type, const ino_t *files, size_t count)
{
    struct ph__control_frame frame;
    assert_true(take(&frame));
    assert_int_equal(frame.type, type);
    assert_int_equal(frame.num_descriptors, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(number_of_file(frame.descriptors[i]), files[i]);
        assert_int_equal(fcntl(frame.descriptors[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    close_files(frame.descriptors, count);
}

static void descriptors_come_with_their_frames(void **state)
{
    (void)state;
    static char body[300000]; /* so that frames are cut */
    int descriptors[6];
    ino_t files[6];
    const size_t before = test_count_descriptors();
    open_files(descriptors, 6);
    for (size_t i = 0; i < 6; i++)
        files[i] = number_of_file(descriptors[i]);
    assert_ok(ph__control_stream_put(sender, 1, body, sizeof body, NULL, 0));
    assert_ok(ph__control_stream_put(sender, 2, body, sizeof body, descriptors, 3));
    assert_ok(ph__control_stream_put(sender, 3, NULL, 0, descriptors + 3, 1));
    assert_ok(ph__control_stream_put(sender, 4, body, 5, NULL, 0));
    assert_ok(ph__control_stream_put(sender, 5, body, 5, descriptors + 4, 2));
    close_files(descriptors, 6); /* the stream has its own */
    while (ph__control_stream_has_output(sender)) {
        assert_ok(ph__control_stream_flush(sender));
        assert_ok(ph__control_stream_receive(receiver));
    }
    check_frame(1, body, sizeof body);
    check_descriptors(2, files, 3);
    check_descriptors(3, files + 3, 1);
    check_frame(4, body, 5);
    check_descriptors(5, files + 4, 2);
    assert_int_equal(test_count_descriptors(), before);
}

/* By the allocator's own count. */
static void what_large_frames_took_is_given_back(void **state)
{
    (void)state;
    enum { LARGE = 4 << 20, SMALL = 512 };
    static char body[LARGE];
    struct ph__control_frame frame;
    if (PH_IS_SANITIZED)
        return print_message("a sanitizer owns malloc: not counted\n");
    assert_ok(ph__control_stream_put(sender, 1, body, LARGE, NULL, 0));
    assert_ok(ph__control_stream_put(sender, 2, "next", 4, NULL, 0));
    while (ph__control_stream_has_output(sender)) {
        assert_ok(ph__control_stream_flush(sender));
        assert_ok(ph__control_stream_receive(receiver));
    }
    assert_true(take(&frame) && frame.size == LARGE);
    const struct mallinfo2 before = mallinfo2();
    ph__control_stream_limit(receiver, SMALL);
    const struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd + LARGE / 2 < before.uordblks + before.hblkhd);
    assert_true(take(&frame) && frame.type == 2);
    assert_memory_equal(frame.body, "next", 4);
}

static void as_many_come_as_the_limit_says(void **state)
{
    (void)state;
    int descriptors[PH_CONTROL_MAX_DESCRIPTORS];
    ino_t files[PH_CONTROL_MAX_DESCRIPTORS];
    open_files(descriptors, PH_CONTROL_MAX_DESCRIPTORS);
    for (size_t i = 0; i < PH_CONTROL_MAX_DESCRIPTORS; i++)
        files[i] = number_of_file(descriptors[i]);
    assert_ok(ph__control_stream_put(sender, 1, NULL, 0, descriptors, PH_CONTROL_MAX_DESCRIPTORS));
    close_files(descriptors, PH_CONTROL_MAX_DESCRIPTORS);
    assert_ok(ph__control_stream_flush(sender));
    assert_ok(ph__control_stream_receive(receiver));
    check_descriptors(1, files, PH_CONTROL_MAX_DESCRIPTORS);
}

static void descriptors_that_nobody_takes_are_closed(void **state)
{
    (void)state;
    int descriptors[5];
    const size_t before = test_count_descriptors();
    open_files(descriptors, 5);
    assert_ok(ph__control_stream_put(sender, 1, "one", 3, descriptors, 3));
    assert_ok(ph__control_stream_flush(sender));
    assert_ok(ph__control_stream_put(sender, 2, "two", 3, descriptors, 5));
    close_files(descriptors, 5);
    assert_ok(ph__control_stream_receive(receiver));
    tear_down(NULL);
    assert_int_equal(test_count_descriptors(), before - 3);
    set_up(NULL);
}

/* Sends bytes with descriptors, as no stream would. */
static void send_descriptors(const void *bytes, size_t size, const int *descriptors, size_t count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))] = {0};
    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr header = {.msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
    assert_int_equal(sendmsg(raw, &header, 0), size);
}

static void more_descriptors_than_a_message_has_are_refused(void **state)
{
    (void)state;
    static const size_t counts[][2] = {{253, 0}, {200, 51}};
    const size_t before = test_count_descriptors();
    int descriptors[253];
    for (size_t i = 0; i < 253; i++)
        descriptors[i] = 0;
    for (size_t i = 0; i < 2; i++) {
        send_descriptors("\0\0\0\0\0\0\0\0", 8, descriptors, counts[i][0]);
        if (counts[i][1] > 0)
            send_descriptors("\0\0\0\0\0\0\0\0", 8, descriptors, counts[i][1]);
        assert_fails(ph__control_stream_receive(receiver), PH_ERROR_PEER, "descriptors");
        tear_down(NULL);
        assert_int_equal(test_count_descriptors(), before - 3);
        set_up(NULL);
    }
}

static void descriptors_can_be_refused(void **state)
{
    (void)state;
    const size_t before = test_count_descriptors();
    const int descriptor = 0;
    ph__control_stream_refuse_descriptors(receiver);
    send_raw("\0\0\0\0\1\0\0\0", 8);
    assert_ok(ph__control_stream_receive(receiver));
    check_frame(1, NULL, 0);
    send_descriptors("\0\0\0\0\1\0\1\0", 8, &descriptor, 1);
    assert_fails(ph__control_stream_receive(receiver), PH_ERROR_PEER,
        "the peer sent descriptors that were not asked for");
    assert_int_equal(test_count_descriptors(), before);
}

static void a_frame_without_its_descriptors_is_refused(void **state)
{
    (void)state;
    struct ph__control_frame frame;
    bool is_there;
    send_raw("\0\0\0\0\1\0\1\0", 8);
    assert_ok(ph__control_stream_receive(receiver));
    assert_fails(
        ph__control_stream_take(receiver, &frame, &is_there), PH_ERROR_PEER, "without its descriptors");
    assert_false(is_there);
}

static void when_there_are_no_more_descriptors_nothing_is_put(void **state)
{
    (void)state;
    struct rlimit former, limit;
    int descriptors[3] = {0, 0, 0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &former), 0);
    limit = former;
    limit.rlim_cur = (rlim_t)dup(0) + 1;
    close((int)limit.rlim_cur - 1); /* room for one */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const ph_status status = ph__control_stream_put(sender, 1, NULL, 0, descriptors, 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &former), 0);
    assert_int_equal(status, PH_ERROR_MEMORY);
    assert_non_null(strstr(ph_error_text(), "cannot copy a descriptor"));
    assert_false(ph__control_stream_has_output(sender));

    const ino_t file = number_of_file(0);
    assert_ok(ph__control_stream_put(sender, 2, NULL, 0, descriptors, 1));
    assert_ok(ph__control_stream_flush(sender));
    assert_ok(ph__control_stream_receive(receiver));
    check_descriptors(2, &file, 1);
}

#define STREAM_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define TCP_TEST(test)                                       \
    {                                                        \
#test " over TCP", test, set_up_tcp, tear_down, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(frames_come_as_they_were_put),
        STREAM_TEST(the_head_is_that_of_the_contract),
        STREAM_TEST(a_frame_may_come_byte_by_byte),
        TCP_TEST(a_frame_may_come_byte_by_byte),
        STREAM_TEST(large_frames_come_in_pieces),
        TCP_TEST(large_frames_come_in_pieces),
        STREAM_TEST(too_much_cannot_be_put),
        STREAM_TEST(what_waits_to_be_sent_has_a_limit),
        STREAM_TEST(a_frame_that_would_be_too_large_is_refused),
        STREAM_TEST(what_is_not_taken_is_received_up_to_a_limit),
        STREAM_TEST(a_stream_can_be_told_to_believe_less),
        STREAM_TEST(frames_before_the_end_can_be_taken),
        STREAM_TEST(sending_to_nobody_is_an_error_and_no_signal),
        TCP_TEST(a_reset_is_the_end),
        STREAM_TEST(descriptors_come_with_their_frames),
        STREAM_TEST(what_large_frames_took_is_given_back),
        STREAM_TEST(as_many_come_as_the_limit_says),
        STREAM_TEST(descriptors_that_nobody_takes_are_closed),
        STREAM_TEST(more_descriptors_than_a_message_has_are_refused),
        STREAM_TEST(descriptors_can_be_refused),
        STREAM_TEST(a_frame_without_its_descriptors_is_refused),
        STREAM_TEST(when_there_are_no_more_descriptors_nothing_is_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
