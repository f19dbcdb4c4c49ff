/* Layouts, joining and answers as bytes: what comes out of them is what was written, or an error. */
#include "hub/wire/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "hub/wire/part_list.h"
#include "support/test_support.h"

enum { CAPACITY = PH_HUB_MAX_BODY + PH_HUB_MAX_CORES * PH_HUB_HOST_BYTES };

struct body {
    unsigned char bytes[CAPACITY];
    size_t size;
    size_t hosts; /* where the first one's length stands */
};

static struct ph__job_layout layout_of(uint16_t num_cores)
{
    return (struct ph__job_layout){.chunk_bytes = 32768,
        .num_versions = 2,
        .ring_capacity = 8,
        .num_cores = num_cores,
        .is_crowded = true,
        .cores_sum = 123,
        .token = 456,
        .iteration = 789};
}

/* As a hub writes it, whatever the layout says. */
static void write_body(const struct ph__job_layout *layout, struct body *body)
{
    struct ph__wire_writer writer;
    struct ph__job_layout without = *layout;
    without.num_cores = 0;
    ph__wire_writer_init(&writer, body->bytes, sizeof body->bytes);
    ph__put_layout(&writer, &without);
    body->hosts = writer.used;
    ph__wire_writer_init(&writer, body->bytes, sizeof body->bytes);
    ph__put_layout(&writer, layout);
    assert_ok(ph__wire_writer_finish(&writer, "layout", &body->size));
}

static ph_status read_body(const struct body *body, size_t size, struct ph__job_layout *layout_out)
{
    unsigned char *exact = malloc(size + 1); /* of the size that a sanitizer watches */
    assert_non_null(exact);
    memcpy(exact, body->bytes, size);
    const ph_status status = ph__get_layout(exact, size, layout_out);
    free(exact);
    return status;
}

static void assert_refused(const struct ph__job_layout *layout, const char *why)
{
    struct body body;
    struct ph__job_layout found;
    write_body(layout, &body);
    assert_fails(read_body(&body, body.size, &found), PH_ERROR_PEER, why);
}

static void a_layout_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct body body;
    struct ph__job_layout found, layout = layout_of(PH_HUB_MAX_CORES);
    for (size_t core = 0; core < PH_HUB_MAX_CORES; core++)
        strcpy(
            layout.hosts[core], "2001:0db8:1111:2222:3333:4444:192.168.100.100"); /* the longest there is */
    strcpy(layout.hosts[0], "192.0.2.1");
    layout.hosts[1][0] = '\0';
    write_body(&layout, &body);
    assert_ok(read_body(&body, body.size, &found));
    assert_int_equal(found.num_cores, PH_HUB_MAX_CORES);
    assert_int_equal(found.token, 456);
    assert_int_equal(found.iteration, 789);
    for (size_t core = 0; core < PH_HUB_MAX_CORES; core++)
        assert_string_equal(found.hosts[core], layout.hosts[core]);
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost", "192.0.2.1:80", "192.0.2.", "[::1]", "fe80::1%eth0", "-",
        "%s%s%s", "192.0.2.1,192.0.2.2"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct ph__job_layout layout = layout_of(4);
        strcpy(layout.hosts[3], hosts[i]);
        assert_refused(&layout, hosts[i]);
    }
}

static void lengths_that_lie_are_refused(void **state)
{
    (void)state;
    static const uint16_t lengths[] = {1, 8, 10, PH_HOST_BYTES - 1, PH_HOST_BYTES, 1000, UINT16_MAX};
    struct body body;
    struct ph__job_layout found, layout = layout_of(2);
    strcpy(layout.hosts[0], "192.0.2.1");
    strcpy(layout.hosts[1], "192.0.2.2");
    write_body(&layout, &body);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        body.bytes[body.hosts] = (unsigned char)(lengths[i] & 0xff);
        body.bytes[body.hosts + 1] = (unsigned char)(lengths[i] >> 8);
        assert_int_equal(read_body(&body, body.size, &found), PH_ERROR_PEER);
    }
}

static void bytes_of_an_address_that_are_no_text_are_refused(void **state)
{
    (void)state;
    static const unsigned char garbage[] = {0, '\n', 0x7f, 0x80, 0xff};
    struct body body;
    struct ph__job_layout found, layout = layout_of(1);
    strcpy(layout.hosts[0], "192.0.2.1");
    write_body(&layout, &body);
    for (size_t i = 0; i < sizeof garbage; i++) {
        body.bytes[body.hosts + sizeof(uint16_t)] = garbage[i];
        assert_int_equal(read_body(&body, body.size, &found), PH_ERROR_PEER);
    }
}

static void a_layout_that_ends_early_or_goes_on_is_refused(void **state)
{
    (void)state;
    struct body body;
    struct ph__job_layout found, layout = layout_of(3);
    strcpy(layout.hosts[1], "192.0.2.1");
    write_body(&layout, &body);
    for (size_t size = 0; size < body.size; size++)
        assert_int_equal(read_body(&body, size, &found), PH_ERROR_PEER);
    body.bytes[body.size] = 0;
    assert_int_equal(read_body(&body, body.size + 1, &found), PH_ERROR_PEER);
}

static void there_is_a_limit_to_core_threads(void **state)
{
    (void)state;
    static const uint16_t counts[] = {0, PH_HUB_MAX_CORES + 1, UINT16_MAX};
    struct body body;
    struct ph__job_layout found;
    const struct ph__job_layout layout = layout_of(PH_HUB_MAX_CORES);
    write_body(&layout, &body);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t at = 3 * sizeof(uint32_t); /* behind chunk_bytes, num_versions and ring_capacity */
        body.bytes[at] = (unsigned char)(counts[i] & 0xff);
        body.bytes[at + 1] = (unsigned char)(counts[i] >> 8);
        assert_int_equal(read_body(&body, body.size, &found), PH_ERROR_PEER);
    }
}

static void sizes_of_a_layout_keep_their_limits(void **state)
{
    (void)state;
    static const uint32_t chunks[] = {0, 1, 32, 32768 + 4, PH_HUB_MAX_CHUNK_BYTES + 64, UINT32_MAX};
    static const uint32_t rings[] = {0, 2, 12, 2 * (uint32_t)PH_HUB_MAX_RING_CAPACITY, 1u << 31};
    struct ph__job_layout layout = layout_of(2);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        layout.chunk_bytes = chunks[i];
        assert_refused(&layout, "an invalid chunk size of");
    }
    layout = layout_of(2);
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        layout.ring_capacity = rings[i];
        assert_refused(&layout, "an invalid layout");
    }
    layout = layout_of(2);
    layout.iteration = PH_HUB_MAX_ITERATION + 1;
    assert_refused(&layout, "an invalid layout");
}

/* ---- joining ---- */

static ph_status read_join(const struct ph__join *join)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__join found;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, join);
    return ph__get_join(bytes, writer.used, &found);
}

static void what_joins_keeps_the_limits(void **state)
{
    (void)state;
    static const struct ph__hub_share shares[] = {
        {0, 0}, {1, 1}, {64, 64}, {0, PH_HUB_MAX_HUBS + 1}, {0, UINT16_MAX}};
    struct ph__join join = {
        .name = "job", .rank = PH_HUB_MAX_WORKERS - 1, .share = {PH_HUB_MAX_HUBS - 1, PH_HUB_MAX_HUBS}};
    assert_ok(read_join(&join));
    join.rank++;
    assert_fails(read_join(&join), PH_ERROR_PEER, "rank 1024");
    join.rank = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        join.share = shares[i];
        assert_fails(read_join(&join), PH_ERROR_PEER, "counted from 0");
    }
}

static ph_status read_joined(uint32_t num_workers, uint32_t depth, uint32_t num_optimizers)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__joined found;
    const struct ph__joined joined = {
        .num_workers = num_workers, .depth = depth, .num_optimizers = num_optimizers};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_joined(&writer, &joined);
    return ph__get_joined(bytes, writer.used, &found);
}

static void what_is_joined_keeps_the_limits(void **state)
{
    (void)state;
    assert_ok(read_joined(PH_HUB_MAX_WORKERS, 2, PH_HUB_MAX_OPTIMIZERS));
    assert_fails(read_joined(0, 1, 1), PH_ERROR_PEER, "0 workers");
    assert_fails(read_joined(PH_HUB_MAX_WORKERS + 1, 1, 1), PH_ERROR_PEER, "1025 workers");
    assert_fails(read_joined(1, 0, 1), PH_ERROR_PEER, "depth of 0");
    assert_fails(read_joined(1, 3, 1), PH_ERROR_PEER, "depth of 3");
    assert_fails(read_joined(1, 1, 0), PH_ERROR_PEER, "0 optimizers");
    assert_fails(read_joined(1, 1, PH_HUB_MAX_OPTIMIZERS + 1), PH_ERROR_PEER, "17 optimizers");
}

/* ---- answers ---- */

static ph_status read_answer(ph_status status, const char *text, bool is_failure)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__answer answer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, text);
    return is_failure ? ph__get_failure(bytes, writer.used, &answer)
                      : ph__get_answer(bytes, writer.used, &answer);
}

static void an_error_says_why(void **state)
{
    (void)state;
    assert_ok(read_answer(PH_OK, "", false));
    assert_ok(read_answer(PH_ERROR_USAGE, "why", false));
    assert_fails(read_answer(PH_ERROR_USAGE, "", false), PH_ERROR_PEER, "without a reason");
    assert_fails(read_answer(PH_ERROR_USAGE, "", true), PH_ERROR_PEER, "without a reason");
}

/* A file's name is any bytes, and an error's text may name it. */
static void a_text_of_any_bytes_is_told(void **state)
{
    (void)state;
    unsigned char bytes[PH_HUB_MAX_BODY];
    char text[PH_HUB_MAX_TEXT + 2] = "";
    struct ph__wire_writer writer;
    struct ph__answer answer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_DISK, "caf\xe9/\n: \xff\xc3\xa9 is full");
    assert_ok(ph__get_answer(bytes, writer.used, &answer));
    assert_int_equal(answer.status, PH_ERROR_DISK);
    assert_string_equal(answer.text, "caf?/?: ?\xc3\xa9 is full");
    memset(text, 'a', PH_HUB_MAX_TEXT - 1);
    strcat(text, "\xc3\xa9"); /* one byte of it would fit */
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_DISK, text);
    assert_ok(ph__get_answer(bytes, writer.used, &answer));
    assert_int_equal(strlen(answer.text), PH_HUB_MAX_TEXT - 1);
}

static void a_failure_is_an_error(void **state)
{
    (void)state;
    assert_ok(read_answer(PH_ERROR_PEER, "why", true));
    assert_fails(read_answer(PH_OK, "", true), PH_ERROR_PEER, "the peer reports a failure with status 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_read_as_it_was_written),
        cmocka_unit_test(an_address_that_is_none_is_refused),
        cmocka_unit_test(lengths_that_lie_are_refused),
        cmocka_unit_test(bytes_of_an_address_that_are_no_text_are_refused),
        cmocka_unit_test(a_layout_that_ends_early_or_goes_on_is_refused),
        cmocka_unit_test(there_is_a_limit_to_core_threads),
        cmocka_unit_test(sizes_of_a_layout_keep_their_limits),
        cmocka_unit_test(an_error_says_why),
        cmocka_unit_test(a_text_of_any_bytes_is_told),
        cmocka_unit_test(a_failure_is_an_error),
        cmocka_unit_test(what_joins_keeps_the_limits),
        cmocka_unit_test(what_is_joined_keeps_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
