#include "net/authenticate.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sum/random_bytes.h"
#include "support/test_support.h"

static const struct ph__secret shared = {.size = 22, .bytes = "a secret of some bytes"};
static const char client_hello[] = "client hello", server_hello[] = "server hello, longer";

static struct ph__challenge make_challenge(void)
{
    struct ph__challenge challenge;
    for (size_t i = 0; i < PH_NONCE_BYTES; i++) {
        challenge.client_nonce[i] = (unsigned char)i;
        challenge.server_nonce[i] = (unsigned char)(100 + i);
    }
    assert_ok(ph__authenticate_transcript(
        client_hello, strlen(client_hello), server_hello, strlen(server_hello), challenge.transcript));
    return challenge;
}

static void expect_hex(const unsigned char bytes[32], const char *hex)
{
    char made[65];
    for (size_t i = 0; i < 32; i++)
        snprintf(made + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(made, hex);
}

/* By Python's hmac and hashlib: t = sha256(pack("<Q", len(c)) + c + pack("<Q", len(s)) + s), and
 * hmac.new(secret, label.ljust(32, b"\0") + bytes(range(32)) + bytes(range(100, 132)) + t, sha256). */
static void sums_are_those_of_the_contract(void **state)
{
    (void)state;
    const struct ph__challenge challenge = make_challenge();
    unsigned char sum[32];
    expect_hex(challenge.transcript, "0519f5b0a52cad401d878dd23f09d9d35ea00163c2554a9ae2355c365ba22c83");
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_CLIENT, &challenge, sum));
    expect_hex(sum, "9cdb120794fd973f622fbdfe8a3792610c54c7e180aaf374f13fcf34e3134c8a");
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_SERVER, &challenge, sum));
    expect_hex(sum, "40f2f13c2202f0d65a4505cb3b4633b836d0d9ba64214879345f4d77fe0a4979");
    assert_ok(ph__authenticate_key(&shared, PH_SIDE_CLIENT, &challenge, sum));
    expect_hex(sum, "a58a5a4ef37913e4bfbdfa9642458df52806b86dd765b642a55780bf9bd9e45e");
    assert_ok(ph__authenticate_key(&shared, PH_SIDE_SERVER, &challenge, sum));
    expect_hex(sum, "7eb0a886a02f52af927d0ff4a8a528071d0848608deabc00912343a4666557b0");
}

static void both_sides_believe_who_has_the_secret(void **state)
{
    (void)state;
    struct ph__challenge challenge = make_challenge();
    for (int i = 0; i < 3; i++) {
        unsigned char proof[PH_PROOF_BYTES];
        assert_ok(ph__random_bytes(challenge.client_nonce, PH_NONCE_BYTES));
        assert_ok(ph__random_bytes(challenge.server_nonce, PH_NONCE_BYTES));
        for (int side = PH_SIDE_CLIENT; side <= PH_SIDE_SERVER; side++) {
            assert_ok(ph__authenticate_prove(&shared, (enum ph__side)side, &challenge, proof));
            assert_ok(ph__authenticate_check(&shared, (enum ph__side)side, &challenge, proof, "peer"));
        }
    }
}

/* Whether the proof that `side` makes of one secret and challenge is refused under another secret or
 * challenge. */
static void expect_refusal(enum ph__side side, const struct ph__secret *made_with,
    const struct ph__challenge *made_of, const struct ph__secret *checked_with,
    const struct ph__challenge *checked_of)
{
    unsigned char proof[PH_PROOF_BYTES];
    assert_ok(ph__authenticate_prove(made_with, side, made_of, proof));
    assert_fails(ph__authenticate_check(checked_with, side, checked_of, proof, "127.0.0.1:7"), PH_ERROR_PEER,
        "127.0.0.1:7 has another secret than the one given here");
}

static void expect_refusals(const struct ph__secret *secret, const struct ph__challenge *challenge)
{
    const struct ph__challenge original = make_challenge();
    expect_refusal(PH_SIDE_CLIENT, secret, challenge, &shared, &original);
    expect_refusal(PH_SIDE_SERVER, secret, challenge, &shared, &original);
}

static void a_wrong_secret_is_refused(void **state)
{
    (void)state;
    const struct ph__challenge challenge = make_challenge();
    struct ph__secret wrong = shared;
    wrong.bytes[wrong.size - 1] ^= 1;
    expect_refusals(&wrong, &challenge);
    wrong = shared;
    wrong.size--;
    expect_refusals(&wrong, &challenge);
}

static void a_proof_sent_back_to_its_maker_is_refused(void **state)
{
    (void)state;
    const struct ph__challenge challenge = make_challenge();
    unsigned char proof[PH_PROOF_BYTES];
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_SERVER, &challenge, proof));
    assert_fails(ph__authenticate_check(&shared, PH_SIDE_CLIENT, &challenge, proof, "x"), PH_ERROR_PEER,
        "x has another secret");
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_CLIENT, &challenge, proof));
    assert_fails(ph__authenticate_check(&shared, PH_SIDE_SERVER, &challenge, proof, "x"), PH_ERROR_PEER,
        "x has another secret");
}

static void swapped_roles_are_refused(void **state)
{
    (void)state;
    const struct ph__challenge original = make_challenge();
    struct ph__challenge swapped = original;
    memcpy(swapped.client_nonce, original.server_nonce, PH_NONCE_BYTES);
    memcpy(swapped.server_nonce, original.client_nonce, PH_NONCE_BYTES);
    expect_refusals(&shared, &swapped);
    unsigned char proof[PH_PROOF_BYTES]; /* what an attacker has a server prove, to be a client elsewhere */
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_SERVER, &swapped, proof));
    assert_fails(ph__authenticate_check(&shared, PH_SIDE_CLIENT, &original, proof, "x"), PH_ERROR_PEER,
        "x has another secret");
}

static void a_proof_of_an_earlier_connection_is_refused(void **state)
{
    (void)state;
    struct ph__challenge earlier = make_challenge();
    earlier
        .server_nonce[PH_NONCE_BYTES - 1]++; /* a client's proof replayed to a server, which has drawn anew */
    expect_refusal(PH_SIDE_CLIENT, &shared, &earlier, &shared, &(struct ph__challenge){0});
    expect_refusals(&shared, &earlier);
    earlier = make_challenge();
    earlier.client_nonce[0]++;
    expect_refusals(&shared, &earlier);
}

static void every_bit_counts(void **state)
{
    (void)state;
    const struct ph__challenge original = make_challenge();
    for (size_t bit = 0; bit < 8 * sizeof original; bit++) {
        struct ph__challenge flipped = original;
        ((unsigned char *)&flipped)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        expect_refusals(&shared, &flipped);
    }
    unsigned char proof[PH_PROOF_BYTES];
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_CLIENT, &original, proof));
    for (size_t bit = 0; bit < 8 * sizeof proof; bit++) {
        proof[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_fails(ph__authenticate_check(&shared, PH_SIDE_CLIENT, &original, proof, "x"), PH_ERROR_PEER,
            "x has another secret");
        proof[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_ok(ph__authenticate_check(&shared, PH_SIDE_CLIENT, &original, proof, "x"));
}

static void a_transcript_knows_where_one_hello_ends(void **state)
{
    (void)state;
    unsigned char sums[5][PH_TRANSCRIPT_BYTES];
    assert_ok(ph__authenticate_transcript("ab", 2, "c", 1, sums[0]));
    assert_ok(ph__authenticate_transcript("a", 1, "bc", 2, sums[1]));
    assert_ok(ph__authenticate_transcript("abc", 3, "", 0, sums[2]));
    assert_ok(ph__authenticate_transcript("", 0, "abc", 3, sums[3]));
    assert_ok(ph__authenticate_transcript("c", 1, "ab", 2, sums[4]));
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(sums[i], sums[j], PH_TRANSCRIPT_BYTES);
}

static void keys_differ_by_direction_connection_and_secret(void **state)
{
    (void)state;
    struct ph__challenge challenge = make_challenge();
    struct ph__secret other = shared;
    unsigned char sums[5][PH_CONNECTION_KEY_BYTES];
    other.bytes[0] ^= 1;
    assert_ok(ph__authenticate_key(&shared, PH_SIDE_CLIENT, &challenge, sums[0]));
    assert_ok(ph__authenticate_key(&shared, PH_SIDE_SERVER, &challenge, sums[1]));
    assert_ok(ph__authenticate_key(&other, PH_SIDE_CLIENT, &challenge, sums[2]));
    assert_ok(ph__authenticate_prove(&shared, PH_SIDE_CLIENT, &challenge, sums[3]));
    challenge.server_nonce[0] ^= 1;
    assert_ok(ph__authenticate_key(&shared, PH_SIDE_CLIENT, &challenge, sums[4]));
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(sums[i], sums[j], PH_CONNECTION_KEY_BYTES);
}

static const char *write_secret(const char *name, const char *text, mode_t mode)
{
    const char *path = test_write_file(name, text);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void expect(const char *text, const char *wanted)
{
    struct ph__secret secret;
    assert_ok(ph__secret_read(write_secret("good", text, 0600), &secret));
    assert_int_equal(secret.size, strlen(wanted));
    assert_memory_equal(secret.bytes, wanted, secret.size);
    ph__secret_fini(&secret);
    assert_int_equal(secret.size, 0);
    assert_int_equal(secret.bytes[0], 0);
}

static void a_line_end_does_not_belong_to_a_secret(void **state)
{
    (void)state;
    expect("0123456789abcdef", "0123456789abcdef");
    expect("0123456789abcdef\n", "0123456789abcdef");
    expect("0123456789abcdef\r\n", "0123456789abcdef");
    expect(" 0123456789abcdef\n\n", " 0123456789abcdef\n");
    char longest[PH_SECRET_MAX_BYTES + 1];
    memset(longest, 'x', PH_SECRET_MAX_BYTES);
    longest[PH_SECRET_MAX_BYTES] = '\0';
    expect(longest, longest);
    char with_end[PH_SECRET_MAX_BYTES + 3];
    snprintf(with_end, sizeof with_end, "%s\n", longest);
    expect(with_end, longest);
    snprintf(with_end, sizeof with_end, "%s\r\n", longest);
    expect(with_end, longest);
}

static void a_secret_that_others_may_use_is_refused(void **state)
{
    (void)state;
    static const mode_t refused[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644, 0777};
    struct ph__secret secret = {.size = 7};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_fails(ph__secret_read(write_secret("open", "0123456789abcdef", refused[i]), &secret),
            PH_ERROR_CONFIG, "open: the secret is open to users other than its owner (mode ");
    assert_int_equal(secret.size, 7);
    assert_ok(ph__secret_read(write_secret("open", "0123456789abcdef", 0400), &secret));
}

static void a_file_that_holds_no_secret_is_refused(void **state)
{
    (void)state;
    struct ph__secret secret;
    char text[PH_SECRET_MAX_BYTES + 2];
    memset(text, 'x', sizeof text);
    text[PH_SECRET_MAX_BYTES + 1] = '\0';
    assert_fails(ph__secret_read(write_secret("long", text, 0600), &secret), PH_ERROR_CONFIG,
        "long: the secret has more than 1024 bytes");
    char longer[PH_SECRET_MAX_BYTES + 4];
    snprintf(longer, sizeof longer, "%.*s\r\nx", PH_SECRET_MAX_BYTES, text); /* its first line would be one */
    assert_fails(ph__secret_read(write_secret("longer", longer, 0600), &secret), PH_ERROR_CONFIG,
        "longer: the secret has more than 1024 bytes");
    assert_fails(ph__secret_read(write_secret("short", "0123456789abcde\n", 0600), &secret), PH_ERROR_CONFIG,
        "short: the secret has 15 bytes: it needs at least 16");
    assert_fails(ph__secret_read(write_secret("empty", "", 0600), &secret), PH_ERROR_CONFIG, "has 0 bytes");
    assert_fails(ph__secret_read("/nowhere/secret", &secret), PH_ERROR_CONFIG,
        "/nowhere/secret: cannot open: No such");
    assert_fails(ph__secret_read(test_folder(), &secret), PH_ERROR_CONFIG, "not a file");
    const char *pipe = test_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_fails(ph__secret_read(pipe, &secret), PH_ERROR_CONFIG, "pipe: not a file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_contract),
        cmocka_unit_test(both_sides_believe_who_has_the_secret),
        cmocka_unit_test(a_wrong_secret_is_refused),
        cmocka_unit_test(a_proof_sent_back_to_its_maker_is_refused),
        cmocka_unit_test(swapped_roles_are_refused),
        cmocka_unit_test(a_proof_of_an_earlier_connection_is_refused),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(a_transcript_knows_where_one_hello_ends),
        cmocka_unit_test(keys_differ_by_direction_connection_and_secret),
        cmocka_unit_test(a_line_end_does_not_belong_to_a_secret),
        cmocka_unit_test(a_secret_that_others_may_use_is_refused),
        cmocka_unit_test(a_file_that_holds_no_secret_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
