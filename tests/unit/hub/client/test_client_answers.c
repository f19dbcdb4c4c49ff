/* What a worker takes from hubs that lie: an answer counts once, over the link that its chunk belongs to, and
 * where it was asked for. The test is both core threads of the hub, over links whose other ends it writes to
 * by hand. */
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/client/client_state.h"
#include "net/link/tcp_link.h"
#include "support/test_support.h"

enum {
    NUM_LINKS = 2,
    NUM_CHUNKS = 64, /* of one key; they belong to the links in turn */
    CHUNK_BYTES = 64,
    GRADIENT_BYTES = NUM_CHUNKS * CHUNK_BYTES,
    FRAME_BYTES = PH_TCP_FRAME_BYTES + CHUNK_BYTES,
    CAPACITY = 64, /* of a link, for all that is sent at once */
    FEW = 16,
    TIMEOUT_MS = 20000
};

struct trial {
    struct ph_hub_client client;
    struct ph__client_hub hub;
    struct ph__client_key key;
    struct ph__link *links[NUM_LINKS];
    struct ph__client_end ends[NUM_LINKS];
    uint32_t link_of_chunk[NUM_CHUNKS];
    uint8_t asked[NUM_CHUNKS];
    _Alignas(64) char gradients[GRADIENT_BYTES];
    _Alignas(64) char parameters[GRADIENT_BYTES];
    int control;            /* the hub's end */
    int sockets[NUM_LINKS]; /* the hub's ends */
};

static int connect_to_test(int *end_out)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    *end_out = ends[1];
    return ends[0];
}

static void begin_trial(struct trial *trial, size_t capacity)
{
    const struct ph__layout_key key = {.num_elements = GRADIENT_BYTES / sizeof(float)};
    struct ph_hub_client *client = &trial->client;
    *trial = (struct trial){.client = {.timeout.ms = TIMEOUT_MS, .rank = 1, .has_no_thread = true}};
    client->joined = (struct ph__joined){.num_workers = 2, .depth = 1, .num_optimizers = 1};
    client->list.num_hubs = 1;
    client->hubs = &trial->hub;
    trial->hub.job.num_cores = NUM_LINKS;
    assert_ok(ph__control_stream_create(connect_to_test(&trial->control), &trial->hub.stream));
    assert_ok(ph__layout_create(&key, 1, CHUNK_BYTES, &client->layout));
    assert_int_equal(client->layout->sizes.num_chunks, NUM_CHUNKS);
    client->keys = &trial->key;
    client->asked = trial->asked;
    client->link_of_chunk = trial->link_of_chunk;
    for (uint32_t chunk = 0; chunk < NUM_CHUNKS; chunk++)
        trial->link_of_chunk[chunk] = chunk % NUM_LINKS;
    client->gradients[0] = trial->gradients;
    client->parameters[0] = trial->parameters;
    client->num_parameters = 1;
    client->links = trial->links;
    client->ends = trial->ends;
    client->num_links = NUM_LINKS;
    for (size_t i = 0; i < PH_HUB_MAX_OPTIMIZERS; i++)
        client->learning_rates[i] = NAN;
    for (uint32_t link = 0; link < NUM_LINKS; link++) {
        const struct ph__tcp_link_options options = {.socket = connect_to_test(&trial->sockets[link]),
            .capacity = capacity,
            .owner = ph__client_link_owner(client, link)};
        assert_ok(ph__tcp_link_create(&options, &trial->links[link]));
    }
    assert_ok(ph__client_engine_create(client, false, &client->engine));
}

static void end_trial(struct trial *trial)
{
    ph__client_engine_destroy(trial->client.engine);
    for (uint32_t link = 0; link < NUM_LINKS; link++) {
        ph__link_destroy(trial->links[link]);
        close(trial->sockets[link]);
    }
    ph__control_stream_destroy(trial->hub.stream);
    close(trial->control);
    ph__layout_destroy(trial->client.layout);
}

/* Writes the bytes [first, end) of a VALUE whose payload is all `fill`. */
static void say_part(const struct trial *trial, uint32_t link, uint32_t chunk, uint64_t iteration, char fill,
    size_t first, size_t end)
{
    unsigned char frame[FRAME_BYTES];
    const struct ph__message value = {
        .kind = PH_HUB_VALUE, .count = 2, .chunk = chunk, .iteration = iteration};
    ph__tcp_frame_encode(&value, CHUNK_BYTES, frame);
    memset(frame + PH_TCP_FRAME_BYTES, fill, CHUNK_BYTES);
    assert_int_equal(write(trial->sockets[link], frame + first, end - first), (ssize_t)(end - first));
}

static void say(const struct trial *trial, uint32_t link, uint32_t chunk, uint64_t iteration, char fill)
{
    say_part(trial, link, chunk, iteration, fill, 0, FRAME_BYTES);
}

static bool is_done(struct trial *trial)
{
    bool is_done;
    assert_ok(ph_hub_test(&trial->client, 0, &is_done));
    return is_done;
}

static void answer_all_but_last(struct trial *trial, uint64_t iteration, char fill)
{
    for (uint32_t chunk = 0; chunk + 1 < NUM_CHUNKS; chunk++)
        say(trial, chunk % NUM_LINKS, chunk, iteration, fill);
    assert_false(is_done(trial));
}

static void assert_refused(struct trial *trial)
{
    bool is_done;
    assert_fails(ph_hub_test(&trial->client, 0, &is_done), PH_ERROR_PEER, "sent an answer without a request");
}

static void each_answer_counts_once(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial, CAPACITY);
    for (uint64_t iteration = 1; iteration <= 9; iteration++) {
        assert_ok(ph_hub_pushpull_start(&trial.client, 0));
        answer_all_but_last(&trial, iteration, (char)iteration);
        say(&trial, (NUM_CHUNKS - 1) % NUM_LINKS, NUM_CHUNKS - 1, iteration, (char)iteration);
        assert_true(is_done(&trial));
        assert_ok(ph_hub_wait(&trial.client, 0));
        assert_int_equal(trial.client.num_contributors, 2);
        for (size_t i = 0; i < GRADIENT_BYTES; i++)
            assert_int_equal(trial.parameters[i], (char)iteration);
    }
    end_trial(&trial);
}

/* While the chunk's own link is in the middle of the last answer, which would be left with nothing to answer.
 */
static void another_links_answer_is_refused(void **state)
{
    (void)state;
    struct trial trial;
    size_t num_moved;
    begin_trial(&trial, CAPACITY);
    assert_ok(ph_hub_pushpull_start(&trial.client, 0));
    answer_all_but_last(&trial, 1, 'a');
    say_part(&trial, 1, NUM_CHUNKS - 1, 1, 'a', 0, FRAME_BYTES / 2);
    assert_false(is_done(&trial));
    say(&trial, 0, NUM_CHUNKS - 1, 1, 'b');
    assert_refused(&trial);
    say_part(&trial, 1, NUM_CHUNKS - 1, 1, 'a', FRAME_BYTES / 2, FRAME_BYTES);
    assert_ok(ph__link_progress(trial.links[1], 1, &num_moved));
    assert_memory_equal(trial.parameters + GRADIENT_BYTES - 4, "aaaa", 4);
    end_trial(&trial);
}

static void a_second_answer_is_refused(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial, CAPACITY);
    assert_ok(ph_hub_pushpull_start(&trial.client, 0));
    say(&trial, 0, 0, 1, 'a');
    assert_false(is_done(&trial));
    say(&trial, 0, 0, 1, 'b');
    assert_refused(&trial);
    assert_memory_equal(trial.parameters, "aaaa", 4);
    end_trial(&trial);
}

static void what_was_not_asked_is_refused(void **state)
{
    (void)state;
    for (uint64_t iteration = 0; iteration <= 2; iteration += 2) {
        struct trial trial;
        begin_trial(&trial, CAPACITY);
        assert_ok(ph_hub_pushpull_start(&trial.client, 0));
        say(&trial, 0, 0, iteration, 'a');
        assert_refused(&trial);
        end_trial(&trial);
    }
}

/* What has its tag leaves while the next ones are made. */
static void with_a_secret_chunks_leave_before_all_are_queued(void **state)
{
    (void)state;
    struct trial trial;
    struct ph__secret secret = {0};
    begin_trial(&trial, FEW);
    trial.client.secret = &secret;
    assert_ok(ph_hub_pushpull_start(&trial.client, 0));
    for (uint32_t link = 0; link < NUM_LINKS; link++)
        assert_int_equal(trial.links[link]->counters.messages_sent, NUM_CHUNKS / NUM_LINKS);
    end_trial(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_counts_once),
        cmocka_unit_test(another_links_answer_is_refused),
        cmocka_unit_test(a_second_answer_is_refused),
        cmocka_unit_test(what_was_not_asked_is_refused),
        cmocka_unit_test(with_a_secret_chunks_leave_before_all_are_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
