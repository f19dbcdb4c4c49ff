/* What a worker hears of several hubs while some have answered and others have not: the test is both hubs, at
 * the other ends of the worker's control connections. */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hub/client/client_state.h"
#include "net/wire.h"
#include "support/test_support.h"

enum { NUM_HUBS = 2, TIMEOUT_MS = 20000, CHUNK_BYTES = 4096 };

struct trial {
    struct ph_hub_client client;
    struct ph__client_hub hubs[NUM_HUBS];
    struct ph__control_stream *others[NUM_HUBS]; /* the hubs' ends */
    int sockets[NUM_HUBS];                       /* of these */
};

static void begin_trial(struct trial *trial)
{
    memset(trial, 0, sizeof *trial);
    trial->client.timeout.ms = TIMEOUT_MS;
    trial->client.joined.num_workers = 2;
    trial->client.hubs = trial->hubs;
    assert_ok(ph__hub_list_read("first:1,second:2", &trial->client.list));
    for (size_t i = 0; i < NUM_HUBS; i++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        assert_ok(ph__control_stream_create(ends[0], &trial->hubs[i].stream));
        assert_ok(ph__control_stream_create(ends[1], &trial->others[i]));
        trial->sockets[i] = ends[1];
    }
}

static void end_trial(struct trial *trial)
{
    for (size_t i = 0; i < NUM_HUBS; i++) {
        ph__control_stream_destroy(trial->hubs[i].stream);
        ph__control_stream_destroy(trial->others[i]);
    }
    ph__hub_list_fini(&trial->client.list);
}

static ph_status try_to_say(
    struct trial *trial, size_t hub, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    struct ph__control_stream *stream = trial->others[hub];
    PH_TRY(ph__control_stream_put(
        stream, (uint16_t)type, body != NULL ? body->bytes : NULL, body != NULL ? body->used : 0, NULL, 0));
    return ph__control_stream_flush(stream);
}

static void say(struct trial *trial, size_t hub, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    assert_ok(try_to_say(trial, hub, type, body));
}

static ph_status try_to_say_status(
    struct trial *trial, size_t hub, enum ph__hub_frame type, ph_status status, const char *text)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, text);
    return try_to_say(trial, hub, type, &writer);
}

static void say_status(
    struct trial *trial, size_t hub, enum ph__hub_frame type, ph_status status, const char *text)
{
    assert_ok(try_to_say_status(trial, hub, type, status, text));
}

static void say_layout(struct trial *trial, size_t hub, uint64_t token)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const struct ph__job_layout layout = {
        .chunk_bytes = CHUNK_BYTES, .num_versions = 1, .ring_capacity = 64, .num_cores = 1, .token = token};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_layout(&writer, &layout);
    say(trial, hub, PH_FRAME_LAYOUT, &writer);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* ---- tests ---- */

static void a_hub_that_has_answered_may_have_bad_news(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial);
    say(&trial, 0, PH_FRAME_BEGIN, NULL);
    say_status(&trial, 0, PH_FRAME_FAILED, PH_ERROR_PEER, "worker 1 has died");
    assert_fails(ph__client_ask_all(&trial.client, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN), PH_ERROR_PEER,
        "hub first:1: worker 1 has died");
    end_trial(&trial);
}

/* For what one hub says may follow from what another had answered: another worker has ended because of that.
 */
static void answers_that_have_come_are_taken_before_bad_news(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial);
    say(&trial, 0, PH_FRAME_BEGIN, NULL);
    say_status(&trial, 0, PH_FRAME_FAILED, PH_ERROR_PEER, "worker 1 has died");
    say(&trial, 1, PH_FRAME_BEGIN, NULL);
    assert_ok(ph__client_ask_all(&trial.client, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN));
    assert_fails(ph__client_look_at_hubs(&trial.client), PH_ERROR_PEER, "worker 1 has died");
    end_trial(&trial);
}

static void a_hub_that_has_answered_may_end(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial);
    say(&trial, 0, PH_FRAME_BEGIN, NULL);
    ph__control_stream_destroy(trial.others[0]);
    trial.others[0] = NULL;
    assert_fails(ph__client_ask_all(&trial.client, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN), PH_ERROR_PEER,
        "hub first:1: the hub has ended");
    end_trial(&trial);
}

/* Also the beginning of what it says next, which takes the place of what it has said. */
static void an_answer_is_kept_while_its_hub_is_listened_to(void **state)
{
    (void)state;
    static const char beginning[4] = {1};
    struct trial trial;
    begin_trial(&trial);
    assert_ok(ph__client_tell_all(&trial.client, PH_FRAME_INIT, NULL));
    say_layout(&trial, 0, 7);
    assert_ok(ph__client_look_for_answer(&trial.client, 0, PH_FRAME_LAYOUT));
    assert_true(trial.hubs[0].is_answered);
    assert_int_equal(write(trial.sockets[0], beginning, sizeof beginning), sizeof beginning);
    assert_ok(ph__client_look_at_hubs(&trial.client));
    assert_int_equal(trial.hubs[0].job.token, 7);
    assert_int_equal(trial.hubs[0].job.chunk_bytes, CHUNK_BYTES);
    end_trial(&trial);
}

/* ---- who has left ---- */

static void *let_go_later(void *context)
{
    struct trial *trial = context;
    nap();
    ph__control_stream_destroy(trial->others[0]);
    trial->others[0] = NULL;
    nap();
    return try_to_say_status(trial, 1, PH_FRAME_ANSWER, PH_OK, "") == PH_OK ? trial : NULL;
}

static void a_hub_that_has_let_its_worker_go_may_end(void **state)
{
    (void)state;
    struct trial trial;
    pthread_t thread;
    void *outcome;
    begin_trial(&trial);
    trial.client.has_left = true;
    say_status(&trial, 0, PH_FRAME_ANSWER, PH_OK, "");
    assert_int_equal(pthread_create(&thread, NULL, let_go_later, &trial), 0);
    assert_ok(ph__client_ask_all(&trial.client, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER));
    pthread_join(thread, &outcome);
    assert_non_null(outcome);
    end_trial(&trial);
}

/* ---- what is told ---- */

/* Whether it is heard as the answer to something or not. */
static void what_has_ended_a_job_keeps_its_status(void **state)
{
    (void)state;
    struct trial trial;
    begin_trial(&trial);
    say_status(&trial, 1, PH_FRAME_FAILED, PH_ERROR_MEMORY, "no memory for the job");
    assert_fails(ph__client_look_at_hubs(&trial.client), PH_ERROR_MEMORY, "hub second:2: no memory");
    say_status(&trial, 1, PH_FRAME_FAILED, PH_ERROR_MEMORY, "no memory for the job");
    assert_fails(ph__client_ask_all(&trial.client, PH_FRAME_INIT, NULL, PH_FRAME_LAYOUT), PH_ERROR_MEMORY,
        "hub second:2: no memory");
    end_trial(&trial);
}

/* Of a frame that comes in parts. */
static void a_fault_of_the_connection_is_not_the_hubs_end(void **state)
{
    (void)state;
    static const char body[1 << 20];
    struct trial trial;
    begin_trial(&trial);
    ph__control_stream_refuse_descriptors(trial.hubs[0].stream);
    assert_ok(
        ph__control_stream_put(trial.others[0], PH_FRAME_SAVED, body, sizeof body, &trial.sockets[0], 1));
    assert_ok(ph__control_stream_flush(trial.others[0]));
    assert_fails(
        ph__client_look_at_hubs(&trial.client), PH_ERROR_PEER, "hub first:1: the peer sent descriptors");
    end_trial(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hub_that_has_answered_may_have_bad_news),
        cmocka_unit_test(answers_that_have_come_are_taken_before_bad_news),
        cmocka_unit_test(a_hub_that_has_answered_may_end),
        cmocka_unit_test(an_answer_is_kept_while_its_hub_is_listened_to),
        cmocka_unit_test(a_hub_that_has_let_its_worker_go_may_end),
        cmocka_unit_test(what_has_ended_a_job_keeps_its_status),
        cmocka_unit_test(a_fault_of_the_connection_is_not_the_hubs_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
