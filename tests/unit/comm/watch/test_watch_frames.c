/* What the ranks of a watch say: written and read back, cut anywhere, and wrong. */
#include <stdio.h>
#include <string.h>

#include "comm/watch/watch_frames.h"
#include "support/test_support.h"

enum { WORLD_SIZE = 7 };

static const struct ph__secret secret = {.size = 16, .bytes = "sixteen bytes..."};

static struct ph__watch_hello some_hello(uint32_t rank)
{
    struct ph__watch_hello hello = {.who = {.rank = rank, .process = 4711, .host = "node-3"}};
    memset(hello.nonce, 5, sizeof hello.nonce);
    return hello;
}

static size_t write_hello(uint32_t rank, unsigned char body[PH_WATCH_MAX_BODY])
{
    const struct ph__watch_hello hello = some_hello(rank);
    struct ph__wire_writer writer;
    size_t size;
    ph__wire_writer_init(&writer, body, PH_WATCH_MAX_BODY);
    ph__watch_put_hello(&writer, &hello);
    assert_ok(ph__wire_writer_finish(&writer, "hello", &size));
    return size;
}

static size_t write_notice(const struct ph__comm_notice *notice, unsigned char body[PH_WATCH_MAX_BODY])
{
    struct ph__wire_writer writer;
    size_t size;
    ph__wire_writer_init(&writer, body, PH_WATCH_MAX_BODY);
    ph__watch_put_notice(&writer, notice);
    assert_ok(ph__wire_writer_finish(&writer, "notice", &size));
    return size;
}

/* ---- hello ---- */

static void a_hello_says_who_it_is(void **state)
{
    (void)state;
    unsigned char body[PH_WATCH_MAX_BODY];
    const struct ph__watch_hello wanted = some_hello(WORLD_SIZE - 1);
    struct ph__watch_hello hello;
    const size_t size = write_hello(WORLD_SIZE - 1, body);
    assert_ok(ph__watch_get_hello(body, size, WORLD_SIZE, &hello));
    assert_int_equal(hello.who.rank, wanted.who.rank);
    assert_int_equal(hello.who.process, wanted.who.process);
    assert_string_equal(hello.who.host, wanted.who.host);
    assert_memory_equal(hello.nonce, wanted.nonce, sizeof hello.nonce);
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(
            ph__watch_get_hello(body, cut, WORLD_SIZE, &hello), PH_ERROR_PEER, "a message of the watch");
}

static void a_hello_is_of_a_rank_that_can_come(void **state)
{
    (void)state;
    unsigned char body[PH_WATCH_MAX_BODY];
    const uint32_t wrong[] = {0, WORLD_SIZE, UINT32_MAX};
    struct ph__watch_hello hello;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ph__watch_get_hello(body, write_hello(wrong[i], body), WORLD_SIZE, &hello),
            PH_ERROR_PEER, "cannot join a world of 7 ranks");
}

/* ---- notices ---- */

static void a_notice_is_read_as_it_was_written(void **state)
{
    (void)state;
    unsigned char body[PH_WATCH_MAX_BODY];
    struct ph__comm_notice notice, wanted = {.rank = 3, .status = PH_ERROR_DISK, .has_died = true};
    memset(wanted.text, 'x', sizeof wanted.text - 1); /* the longest */
    const size_t size = write_notice(&wanted, body);
    assert_ok(ph__watch_get_notice(body, size, WORLD_SIZE, &notice));
    assert_int_equal(notice.rank, wanted.rank);
    assert_int_equal(notice.status, wanted.status);
    assert_true(notice.has_died);
    assert_string_equal(notice.text, wanted.text);
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(
            ph__watch_get_notice(body, cut, WORLD_SIZE, &notice), PH_ERROR_PEER, "a message of the watch");
}

static void a_text_is_sent_without_what_is_no_character(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"", ""}, {"a\nb\x1b[1m", "a?b?[1m"},
        {"\xce\xb1 and \xff\xce", "\xce\xb1 and ??"}, {"why? so", "why? so"}, {"\xc2\x85", "??"}};
    unsigned char body[PH_WATCH_MAX_BODY];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ph__comm_notice notice = {.status = PH_ERROR_DATA};
        snprintf(notice.text, sizeof notice.text, "%s", texts[i][0]);
        const size_t size = write_notice(&notice, body);
        assert_ok(ph__watch_get_notice(body, size, WORLD_SIZE, &notice));
        assert_string_equal(notice.text, texts[i][1]);
    }
}

static void a_notice_is_of_a_rank_that_is_there_and_an_error_that_there_is(void **state)
{
    (void)state;
    unsigned char body[PH_WATCH_MAX_BODY];
    const struct ph__comm_notice wrong[] = {{.rank = WORLD_SIZE, .status = PH_ERROR_DATA}, {.status = PH_OK},
        {.status = 1}, {.status = -1000}, {.status = INT32_MIN}};
    struct ph__comm_notice notice;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(ph__watch_get_notice(body, write_notice(&wrong[i], body), WORLD_SIZE, &notice),
            PH_ERROR_PEER, "names rank");
    const size_t size = write_notice(&(struct ph__comm_notice){.status = PH_ERROR_DATA}, body);
    body[2 * sizeof(uint32_t)] = 2; /* neither dead nor alive */
    assert_fails(ph__watch_get_notice(body, size, WORLD_SIZE, &notice), PH_ERROR_PEER, "names rank");
}

/* ---- proofs ---- */

static void both_sides_prove_that_they_know_the_secret(void **state)
{
    (void)state;
    unsigned char hello[PH_WATCH_MAX_BODY], proof[PH_PROOF_BYTES];
    const size_t size = write_hello(2, hello);
    struct ph__secret other = secret;
    struct ph__challenge challenge;
    struct ph__watch_answer answer;
    assert_ok(ph__watch_challenge(&secret, hello, size, WORLD_SIZE, &challenge, &answer));
    assert_ok(ph__watch_prove(&secret, hello, size, &answer, "rank 0", proof));
    assert_ok(ph__authenticate_check(&secret, PH_SIDE_CLIENT, &challenge, proof, "rank 2"));
    other.bytes[0] ^= 1;
    assert_fails(ph__watch_prove(&other, hello, size, &answer, "rank 0", proof), PH_ERROR_PEER,
        "rank 0 has another secret");
    answer.who.process ^= 1; /* what it says of itself is under its proof */
    assert_fails(ph__watch_prove(&secret, hello, size, &answer, "rank 0", proof), PH_ERROR_PEER,
        "rank 0 has another secret");
}

static void an_answer_is_of_rank_0(void **state)
{
    (void)state;
    unsigned char hello[PH_WATCH_MAX_BODY], body[PH_WATCH_MAX_BODY];
    const size_t hello_size = write_hello(2, hello);
    struct ph__challenge challenge;
    struct ph__watch_answer answer, read;
    struct ph__wire_writer writer;
    assert_ok(ph__watch_challenge(&secret, hello, hello_size, WORLD_SIZE, &challenge, &answer));
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__watch_put_answer(&writer, &answer);
    assert_ok(ph__watch_get_answer(body, writer.used, &read));
    assert_memory_equal(read.proof, answer.proof, sizeof read.proof);
    for (size_t cut = 0; cut < writer.used; cut++)
        assert_fails(ph__watch_get_answer(body, cut, &read), PH_ERROR_PEER, "a message of the watch");
    body[0] = 1;
    assert_fails(
        ph__watch_get_answer(body, writer.used, &read), PH_ERROR_PEER, "from rank 1, not from rank 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_says_who_it_is),
        cmocka_unit_test(a_hello_is_of_a_rank_that_can_come),
        cmocka_unit_test(a_notice_is_read_as_it_was_written),
        cmocka_unit_test(a_text_is_sent_without_what_is_no_character),
        cmocka_unit_test(a_notice_is_of_a_rank_that_is_there_and_an_error_that_there_is),
        cmocka_unit_test(both_sides_prove_that_they_know_the_secret),
        cmocka_unit_test(an_answer_is_of_rank_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
