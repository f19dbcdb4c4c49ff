/* What a caller hears of its engine while answers come: over a link that is played here, whose other end is a
 * number. This program has a poll(2) of its own, which counts. */
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hub/client/client_state.h"
#include "support/test_support.h"

enum {
    NUM_CHUNKS = 32, /* of one key */
    CHUNK_BYTES = 64,
    GRADIENT_BYTES = NUM_CHUNKS * CHUNK_BYTES,
    TIMEOUT_MS = 20000,
    SHORT_TIMEOUT_MS = 50
};

static atomic_uint num_polls;

int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {
        .tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    atomic_fetch_add(&num_polls, 1);
    return ppoll(polled, count, timeout_ms >= 0 ? &timeout : NULL, NULL);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- a link ---- */

struct played_link {
    struct ph__link link;             /* first */
    atomic_uint num_due;              /* chunks that are to be answered, when they have been asked for */
    unsigned num_asked, num_answered; /* the engine's */
    atomic_bool is_sending;           /* for ever */
};

static ph_status play_send(
    struct ph__link *link, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    (void)message;
    (void)payload;
    (void)payload_bytes;
    ((struct played_link *)link)->num_asked++;
    return PH_OK;
}

static ph_status play_progress(struct ph__link *link, size_t max_messages, size_t *num_moved_out)
{
    struct played_link *played = (struct played_link *)link;
    (void)max_messages;
    *num_moved_out = atomic_load(&played->is_sending);
    for (; played->num_answered < played->num_asked && played->num_answered < atomic_load(&played->num_due);
         played->num_answered++) {
        const struct ph__message value = {
            .kind = PH_HUB_VALUE, .count = 1, .chunk = played->num_answered, .iteration = 1};
        void *memory;
        PH_TRY(link->owner.place(link->owner.context, &value, CHUNK_BYTES, &memory));
        PH_TRY(link->owner.arrived(link->owner.context, &value));
        (*num_moved_out)++;
    }
    return PH_OK;
}

static bool play_sleep(struct ph__link *link)
{
    (void)link;
    return true;
}

static short play_poll_events(const struct ph__link *link)
{
    (void)link;
    return POLLIN;
}

static const struct ph__link_transport played_transport = {.name = "played",
    .send = play_send,
    .progress = play_progress,
    .begin_sleep = play_sleep,
    .end_sleep = play_sleep,
    .poll_events = play_poll_events};

/* ---- a worker ---- */

struct trial {
    struct ph_hub_client client;
    struct ph__client_hub hub;
    struct ph__client_key key;
    struct played_link played;
    struct ph__link *link;
    struct ph__client_end end;
    uint32_t link_of_chunk[NUM_CHUNKS];
    uint8_t asked[NUM_CHUNKS];
    _Alignas(64) char gradients[GRADIENT_BYTES];
    _Alignas(64) char parameters[GRADIENT_BYTES];
    int control; /* the hub's end */
};

/* Its thread, if there is one, spins; the caller sleeps. */
static void begin_trial(struct trial *trial, bool has_thread, uint32_t timeout_ms)
{
    const struct ph__layout_key key = {.num_elements = GRADIENT_BYTES / sizeof(float)};
    struct ph_hub_client *client = &trial->client;
    int ends[2];
    memset(trial, 0, sizeof *trial);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_ok(ph__control_stream_create(ends[0], &trial->hub.stream));
    trial->control = ends[1];
    trial->hub.job.num_cores = 1;
    client->timeout.ms = timeout_ms;
    client->joined = (struct ph__joined){.num_workers = 1, .depth = 1, .num_optimizers = 1};
    client->list.num_hubs = 1;
    client->hubs = &trial->hub;
    assert_ok(ph__layout_create(&key, 1, CHUNK_BYTES, &client->layout));
    client->keys = &trial->key;
    client->asked = trial->asked;
    client->link_of_chunk = trial->link_of_chunk;
    client->gradients[0] = trial->gradients;
    client->parameters[0] = trial->parameters;
    client->num_parameters = 1;
    client->ends = &trial->end;
    client->links = &trial->link;
    client->num_links = 1;
    client->learning_rates[0] = NAN;
    trial->played.link = (struct ph__link){
        .transport = &played_transport, .owner = ph__client_link_owner(client, 0), .descriptor = -1};
    trial->link = &trial->played.link;
    ph__waiter_init(&client->waiter, PH_WAIT_SPIN, false);
    assert_ok(ph__client_engine_create(client, has_thread, &client->engine));
    ph__waiter_init(&client->waiter, PH_WAIT_SLEEP, false);
}

static void end_trial(struct trial *trial)
{
    ph__client_engine_destroy(trial->client.engine);
    ph__control_stream_destroy(trial->hub.stream);
    close(trial->control);
    ph__layout_destroy(trial->client.layout);
}

/* ---- tests ---- */

static void *wait_for_key(void *context)
{
    struct trial *trial = context;
    return ph_hub_wait(&trial->client, 0) == PH_OK ? trial : NULL;
}

/* Answers come one by one to a caller that sleeps; the last one wakes it. */
static void a_caller_sleeps_until_its_operation_is_done(void **state)
{
    (void)state;
    static struct trial trial;
    pthread_t caller;
    void *outcome;
    begin_trial(&trial, true, TIMEOUT_MS);
    assert_ok(ph_hub_pushpull_start(&trial.client, 0));
    atomic_store(&num_polls, 0);
    assert_int_equal(pthread_create(&caller, NULL, wait_for_key, &trial), 0);
    while (atomic_load(&num_polls) == 0)
        nap();
    for (unsigned i = 0; i < NUM_CHUNKS; i++) {
        atomic_fetch_add(&trial.played.num_due, 1);
        nap();
    }
    pthread_join(caller, &outcome);
    assert_non_null(outcome);
    assert_int_equal(atomic_load(&num_polls), 1);
    assert_int_equal(ph__client_engine_num_answers(trial.client.engine), NUM_CHUNKS);
    end_trial(&trial);
}

/* What leaves shows nothing of the hub: whoever tests in vain hears so, however much there is to send. */
static void sending_does_not_renew_a_tests_patience(void **state)
{
    (void)state;
    for (int has_thread = 0; has_thread <= 1; has_thread++) {
        static struct trial trial;
        bool is_done;
        ph_status status = PH_OK;
        begin_trial(&trial, has_thread, SHORT_TIMEOUT_MS);
        atomic_store(&trial.played.is_sending, true);
        assert_ok(ph_hub_pushpull_start(&trial.client, 0));
        while (status == PH_OK)
            status = ph_hub_test(&trial.client, 0, &is_done);
        assert_fails(status, PH_ERROR_PEER, "chunks timed out after");
        end_trial(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_sleeps_until_its_operation_is_done),
        cmocka_unit_test(sending_does_not_renew_a_tests_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
