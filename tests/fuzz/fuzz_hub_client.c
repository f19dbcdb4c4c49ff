/* What a hub may say to a worker. The first byte of an input chooses what the worker does: join a job over
 * shared memory (0) or TCP (1), create a service (2) or ask for the status (3), with a secret (4), with
 * parameters of its own (8), without a thread (16), as rank 1 (32), of two hubs, which are one here, over TCP
 * (64). The rest is a list of records (fuzz_frames.h), one a frame of the type that it begins with: a hub in
 * a thread says the next one whenever it is asked something, or is asked nothing for a moment, and after the
 * last one closes everything. A frame AS_HUBS_DO has the body that a hub would send, and the input's bytes
 * are edits of it (fuzz_edit); one with a WRONG_TAG has a wrong tag where it has any, one with
 * ODD_DESCRIPTORS comes without those that go with it, or with some that nobody wants. Behind a SAVED, which
 * answers nothing, the next frame follows at once. VALUE and TAKEN are frames of a link
 * (net/link/tcp_link.h): as hubs do, those of its core thread's chunk, each VALUE of the next iteration.
 *
 * Whatever it is, the worker's calls return, with one line that says why, and leave no descriptor behind.
 * Before the first input come whole jobs, which must end well: or inputs that are made of them would get
 * nowhere. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sum/checksum.h"
#include "hub/client/client_operator.h"
#include "hub/layout/job_memory.h"
#include "hub/shard/shard.h"
#include "hub/wire/part_list.h"
#include "hub/wire/protocol.h"
#include "net/link/socket.h"
#include "net/link/tcp_link.h"
#include "net/waiter.h"
#include "support/fuzz_frames.h"

enum { AS_HUBS_DO = 128, WRONG_TAG = 64, ODD_DESCRIPTORS = 32, TYPES = 31, VALUE = 30, TAKEN = 29 };
enum {
    JOINS_TCP = 1,
    CREATES,
    ASKS,
    WISHES = 3,
    HAS_SECRET = 4,
    HAS_OWN = 8,
    HAS_NO_THREAD = 16,
    IS_RANK_1 = 32,
    OF_TWO_HUBS = 64
};
enum {
    MAX_CONNECTIONS = 8,
    MAX_HELD = 12,
    NUM_KEYS = 2, /* of one chunk; each is a core thread's */
    NUM_CORES = 2,
    KEY_BYTES = 16,
    CHUNK_BYTES = 64,
    RING_CAPACITY = 64
};
enum { MOMENT_MS = 5, TIMEOUT_MS = 5000, MAX_TYPES = 32 };

static const struct ph_hub_key keys[NUM_KEYS] = {
    {.num_elements = KEY_BYTES / sizeof(float), .initial = (const float[KEY_BYTES / sizeof(float)]){1, 2}},
    {.num_elements = KEY_BYTES / 2, .dtype = PH_BF16}};
static const char local_name[] = "phloem-fuzz-hub-client";

struct connection {
    struct ph__control_stream *stream; /* to hear with; owns the socket */
    int socket;
    struct ph__frame_key *key; /* of what is said; NULL: no tags */
    struct ph__challenge challenge;
    uint16_t hub;                          /* of those that share the keys */
    uint32_t chunk;                        /* of a link's core thread; the first, where that has none */
    uint64_t num_values;                   /* that it said over a link */
    bool has_challenged, is_link, is_deaf; /* deaf: what comes is no frame */
};

static struct hub {
    int listening, listening_local, bell[2];
    char address[PH_ADDRESS_BYTES], local[PH_HUB_MAX_SOCKET_NAME + 1], secret_file[64];
    struct ph__secret secret;
    /* Of one input: */
    uint8_t choices;
    const uint8_t *records;
    size_t size;
    struct connection connections[MAX_CONNECTIONS];
    size_t num_connections, asked; /* asked: which was asked last */
    int held[MAX_HELD];            /* the hub's ends of what it shares */
    size_t num_held;
    size_t num_waiting; /* when no more bytes than these are left, it says what nobody has asked for */
} hub;

/* ---- as hubs do ---- */

static void make_layout(struct ph__layout **layout_out)
{
    struct ph__layout_key wanted[NUM_KEYS];
    for (size_t i = 0; i < NUM_KEYS; i++)
        wanted[i] = (struct ph__layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    fuzz_require(ph__layout_create(wanted, NUM_KEYS, CHUNK_BYTES, layout_out) == PH_OK);
}

static uint16_t num_hubs(void)
{
    return (hub.choices & OF_TWO_HUBS) != 0 ? 2 : 1;
}

/* cores_out: of chunks, one a key. */
static void find_cores(uint16_t index, uint16_t cores_out[NUM_KEYS])
{
    struct ph__layout *layout;
    const struct ph__hub_share share = {.hub = index, .num_hubs = num_hubs()};
    make_layout(&layout);
    fuzz_require(ph__spread_share(layout, &share, NUM_CORES, cores_out) == PH_OK);
    ph__layout_destroy(layout);
}

static void put_layout(struct ph__wire_writer *writer, const struct connection *connection)
{
    uint16_t cores[NUM_KEYS];
    find_cores(connection->hub, cores);
    const struct ph__job_layout layout = {.chunk_bytes = CHUNK_BYTES,
        .num_versions = 1,
        .ring_capacity = RING_CAPACITY,
        .num_cores = NUM_CORES,
        .is_restored = true,
        .cores_sum = ph__checksum(cores, sizeof cores),
        .token = connection->hub};
    ph__put_layout(writer, &layout);
}

/* That of a greeting which can be read is one that the worker believes. */
static void put_challenge(
    struct ph__wire_writer *writer, struct connection *connection, const struct ph__control_frame *request)
{
    struct ph__server_challenge challenge = {0};
    connection->has_challenged =
        request != NULL && ph__handshake_challenge(&hub.secret, request->body, request->size,
                               &connection->challenge, &challenge) == PH_OK;
    ph__put_server_challenge(writer, &challenge);
}

static void put_welcome(struct ph__wire_writer *writer)
{
    struct ph__welcome welcome = {0};
    memcpy(welcome.local_socket, hub.local, sizeof welcome.local_socket);
    ph__put_welcome(writer, &welcome);
}

static void put_joined(struct ph__wire_writer *writer)
{
    const struct ph__joined joined = {.num_workers = 2,
        .depth = 1,
        .num_optimizers = 1,
        .has_own_parameters = (hub.choices & HAS_OWN) != 0};
    ph__put_joined(writer, &joined);
}

/* All chunks have as many bytes. */
static void put_data(struct ph__wire_writer *writer, struct connection *connection, bool is_value)
{
    static const char payload[KEY_BYTES];
    unsigned char head[PH_TCP_FRAME_BYTES];
    const uint32_t payload_bytes = is_value ? sizeof payload : 0;
    const struct ph__message message = {.kind = is_value ? PH_HUB_VALUE : PH_HUB_TAKEN,
        .count = is_value,
        .chunk = connection->chunk,
        .iteration = is_value ? connection->num_values++ : 0};
    ph__tcp_frame_encode(&message, payload_bytes, head);
    ph__wire_put_bytes(writer, head, sizeof head);
    ph__wire_put_bytes(writer, payload, payload_bytes);
}

static const struct ph__parts no_parts = {.kept = PH_NO_ITERATION};

static void put_body(struct ph__wire_writer *writer, struct connection *connection,
    const struct ph__control_frame *request, uint16_t type)
{
    if (type == PH_FRAME_CHALLENGE)
        put_challenge(writer, connection, request);
    else if (type == PH_FRAME_WELCOME)
        put_welcome(writer);
    else if (type == PH_FRAME_ANSWER)
        ph__put_answer(writer, PH_OK, "");
    else if (type == PH_FRAME_FAILED)
        ph__put_answer(writer, PH_ERROR_PEER, "over");
    else if (type == PH_FRAME_JOINED)
        put_joined(writer);
    else if (type == PH_FRAME_LAYOUT)
        put_layout(writer, connection);
    else if (type == PH_FRAME_PARTS)
        ph__put_parts(writer, &no_parts);
    else if (type == PH_FRAME_SAVED)
        ph__put_saved(writer, &(struct ph__saved){.parts = no_parts});
    else if (type == PH_FRAME_STATUS_TEXT)
        ph__wire_put_bytes(writer, "{}", 2);
    else if (type == VALUE || type == TAKEN)
        put_data(writer, connection, type == VALUE);
}

static void hold_region(size_t size)
{
    struct ph__region region = {0};
    fuzz_require(ph__region_create("fuzz", size, &region) == PH_OK);
    hub.held[hub.num_held++] = dup(region.descriptor);
    ph__region_close(&region);
}

/* A worker's memory, the results and doorbells, as the last of what is held; the other ends of the doorbells
 * before. */
static size_t share_memory(void)
{
    struct ph__layout *layout;
    int bells[NUM_CORES][2];
    if (hub.num_held + 2 * NUM_CORES + 2 > MAX_HELD)
        return 0;
    make_layout(&layout);
    const struct ph__worker_region_sizes sizes = {.num_cores = NUM_CORES,
        .ring_capacity = RING_CAPACITY,
        .gradient_bytes = layout->sizes.gradient_bytes,
        .depth = 1,
        .has_own_parameters = (hub.choices & HAS_OWN) != 0};
    for (size_t i = 0; i < NUM_CORES; i++) {
        fuzz_require(ph__doorbell_create(bells[i]) == PH_OK);
        hub.held[hub.num_held++] = bells[i][1];
    }
    hold_region(ph__worker_region(&sizes).size);
    hold_region(layout->sizes.gradient_bytes);
    for (size_t i = 0; i < NUM_CORES; i++)
        hub.held[hub.num_held++] = bells[i][0];
    ph__layout_destroy(layout);
    return 2 + NUM_CORES;
}

/* ---- saying ---- */

static void end_all(void)
{
    for (size_t i = 0; i < hub.num_connections; i++) {
        ph__control_stream_destroy(hub.connections[i].stream);
        ph__frame_key_destroy(hub.connections[i].key);
    }
    for (size_t i = 0; i < hub.num_held; i++)
        close(hub.held[i]);
    hub.num_connections = hub.num_held = 0;
    hub.size = 0;
}

static void say(
    struct connection *connection, const struct fuzz_record *record, const uint8_t *body, size_t size)
{
    unsigned char head[FUZZ_CONTROL_HEAD_BYTES];
    const uint16_t type = record->head & TYPES;
    const bool is_odd = (record->head & ODD_DESCRIPTORS) != 0;
    const bool is_shared = (hub.choices & WISHES) == 0 && (type == PH_FRAME_LAYOUT) != is_odd;
    struct fuzz_frame frame = {.head = head,
        .head_bytes = sizeof head,
        .body = body,
        .size = size,
        .has_wrong_tag = (record->head & WRONG_TAG) != 0,
        .num_descriptors = is_shared ? share_memory() : 0};
    frame.descriptors = hub.held + hub.num_held - frame.num_descriptors;
    fuzz_control_head(type, size, frame.num_descriptors, head);
    if (type == VALUE || type == TAKEN) { /* its head is in the body */
        frame.head_bytes = size < PH_TCP_FRAME_BYTES ? size : PH_TCP_FRAME_BYTES;
        frame.head = body;
        frame.body = body + frame.head_bytes;
        frame.size = size - frame.head_bytes;
    }
    fuzz_send_frame(connection->socket, connection->key, &frame);
}

/* request: NULL: nothing was asked. Returns the type of what was said, 0: nothing is left. */
static uint16_t say_one(struct connection *connection, const struct ph__control_frame *request)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct fuzz_record record;
    size_t size, unused;
    uint8_t *edited = NULL;
    if (!fuzz_next_record(&hub.records, &hub.size, &record)) {
        end_all();
        return 0;
    }
    const uint8_t *body = record.body;
    size = record.size;
    if ((record.head & AS_HUBS_DO) != 0) {
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        put_body(&writer, connection, request, record.head & TYPES);
        body = edited = fuzz_edit((const char *)bytes, writer.used, body, size, 0, &unused, &size);
    }
    if (size <= FUZZ_MAX_BODY)
        say(connection, &record, body, size);
    free(edited);
    return record.head & TYPES;
}

static void say_next(struct connection *connection, const struct ph__control_frame *request)
{
    while (say_one(connection, request) == PH_FRAME_SAVED)
        ;
}

/* ---- hearing ---- */

static void take_keys(struct connection *connection)
{
    unsigned char key[PH_CONNECTION_KEY_BYTES];
    const struct ph__challenge *challenge = &connection->challenge;
    if (!connection->has_challenged || connection->key != NULL)
        return;
    fuzz_require(ph__handshake_protect(&hub.secret, challenge, PH_SIDE_SERVER, connection->stream) == PH_OK);
    fuzz_require(ph__authenticate_key(&hub.secret, PH_SIDE_SERVER, challenge, key) == PH_OK);
    fuzz_require(ph__frame_key_create(key, &connection->key) == PH_OK);
}

static void become_link(struct connection *connection, const struct ph__control_frame *frame)
{
    struct ph__attach attach;
    uint16_t cores[NUM_KEYS];
    fuzz_require(ph__get_attach(frame->body, frame->size, &attach) == PH_OK);
    find_cores((uint16_t)(attach.token % num_hubs()), cores);
    for (uint32_t i = NUM_KEYS; i-- > 0;)
        connection->chunk = cores[i] == attach.core ? i : connection->chunk;
    connection->is_link = true;
}

static void take_join(struct connection *connection, const struct ph__control_frame *frame)
{
    struct ph__join join;
    fuzz_require(ph__get_join(frame->body, frame->size, &join) == PH_OK);
    fuzz_require(join.share.num_hubs == num_hubs());
    connection->hub = join.share.hub;
}

/* What a worker tells all hubs of the parts that they have. */
static void check_choice(const struct ph__control_frame *frame)
{
    uint64_t iteration;
    struct ph__keep keep;
    if (frame->type == PH_FRAME_FROM)
        fuzz_require(ph__get_iteration(frame->body, frame->size, &iteration) == PH_OK);
    if (frame->type == PH_FRAME_KEEP)
        fuzz_require(ph__get_keep(frame->body, frame->size, &keep) == PH_OK);
}

/* A worker keeps to the rules as long as the hub does: what it asks can be read. */
static void hear(struct connection *connection)
{
    struct ph__control_frame frame;
    char drained[4096];
    bool is_there = true;
    hub.asked = (size_t)(connection - hub.connections);
    if (connection->is_link) {
        connection->is_deaf = recv(connection->socket, drained, sizeof drained, MSG_DONTWAIT) <= 0;
        say_next(connection, NULL);
        return;
    }
    connection->is_deaf = ph__control_stream_receive(connection->stream) != PH_OK;
    while (hub.num_connections > 0 && is_there) {
        if (ph__control_stream_take(connection->stream, &frame, &is_there) != PH_OK) {
            connection->is_deaf = true;
            return;
        }
        if (!is_there)
            return;
        if (frame.type == PH_FRAME_PROOF)
            take_keys(connection);
        if (frame.type == PH_FRAME_ATTACH)
            become_link(connection, &frame);
        if (frame.type == PH_FRAME_JOIN)
            take_join(connection, &frame);
        check_choice(&frame);
        if (frame.type != PH_FRAME_KEEP) /* which nobody answers */
            say_next(connection, &frame);
    }
}

static void accept_next(int listening)
{
    struct connection connection = {0};
    if (ph__socket_accept(listening, &connection.socket) != PH_OK || connection.socket < 0)
        return;
    if (hub.size == 0 || hub.num_connections == MAX_CONNECTIONS) {
        close(connection.socket);
        return;
    }
    fuzz_require(ph__control_stream_create(connection.socket, &connection.stream) == PH_OK);
    hub.connections[hub.num_connections++] = connection;
}

/* One look at everything. false: the input is over. */
static bool turn(void)
{
    struct pollfd polled[3 + MAX_CONNECTIONS] = {{.fd = hub.bell[0], .events = POLLIN},
        {.fd = hub.listening, .events = POLLIN}, {.fd = hub.listening_local, .events = POLLIN}};
    const size_t count = hub.num_connections;
    for (size_t i = 0; i < count; i++)
        polled[3 + i] = (struct pollfd){
            .fd = hub.connections[i].is_deaf ? -1 : hub.connections[i].socket, .events = POLLIN};
    const bool may_speak = count > 0 && hub.size <= hub.num_waiting;
    const int num_ready = poll(polled, (nfds_t)(3 + count), may_speak ? MOMENT_MS : -1);
    if (polled[0].revents != 0)
        return !ph__doorbell_answer(hub.bell[0]);
    if (num_ready == 0 && may_speak)
        say_next(&hub.connections[hub.asked < count ? hub.asked : 0], NULL);
    for (size_t i = 0; i < count && hub.num_connections > 0; i++) {
        if (polled[3 + i].revents != 0)
            hear(&hub.connections[i]);
    }
    for (size_t i = 1; i < 3; i++) {
        if (polled[i].revents != 0)
            accept_next(polled[i].fd);
    }
    return true;
}

static void *serve(void *unused)
{
    (void)unused;
    while (turn())
        ;
    end_all();
    return NULL;
}

static void start_hub(void)
{
    static const char secret[] = "sixteen bytes and some more";
    fuzz_folder_path("secret", hub.secret_file);
    fuzz_put(hub.secret_file, secret, strlen(secret));
    fuzz_require(ph__secret_read(hub.secret_file, &hub.secret) == PH_OK);
    fuzz_require(ph__doorbell_create(hub.bell) == PH_OK);
    fuzz_require(ph__socket_listen("127.0.0.1:0", &hub.listening) == PH_OK);
    fuzz_require(ph__socket_address(hub.listening, hub.address) == PH_OK);
    snprintf(hub.local, sizeof hub.local, "%s-%d", local_name, (int)getpid());
    fuzz_require(ph__socket_listen_local(hub.local, &hub.listening_local) == PH_OK);
}

/* ---- the worker ---- */

static ph_status work(struct ph_hub_client *client)
{
    PH_TRY(ph_hub_init(client, keys, NUM_KEYS, NULL));
    for (size_t i = 0; i < NUM_KEYS; i++)
        PH_TRY(ph_hub_pushpull_start(client, i));
    PH_TRY(ph_hub_wait_all(client));
    return ph_hub_leave(client);
}

static ph_status join(const struct ph_hub_options *options)
{
    struct ph_hub_client *client;
    PH_TRY(ph_hub_connect(options, "job", 7, (hub.choices & IS_RANK_1) != 0, &client));
    const ph_status status = work(client);
    ph_hub_client_destroy(client);
    return status;
}

static ph_status ask(const struct ph_hub_options *options)
{
    struct ph__json *status;
    PH_TRY(ph__hub_status(options, NULL, &status));
    ph__json_destroy(status);
    return PH_OK;
}

static ph_status create(const struct ph_hub_options *options)
{
    static const struct ph_hub_optimizer none = {.is_none = true};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "job",
        .nonce = 7,
        .num_workers = 2,
        .optimizers = &none,
        .num_optimizers = 1};
    return ph_hub_create_service(options, &service);
}

static ph_status be_worker(void)
{
    const unsigned wish = hub.choices & WISHES;
    char both[2 * PH_ADDRESS_BYTES];
    snprintf(both, sizeof both, "%s,%s", hub.address, hub.address);
    const struct ph_hub_options options = {.size = sizeof options,
        .address = num_hubs() > 1 ? both : hub.address,
        .secret_file = (hub.choices & HAS_SECRET) != 0 ? hub.secret_file : NULL,
        .transport = wish == JOINS_TCP || num_hubs() > 1 ? PH_HUB_TCP : PH_HUB_SHARED_MEMORY,
        .wait = PH_HUB_WAIT_SLEEP,
        .timeout_ms = TIMEOUT_MS,
        .has_no_thread = (hub.choices & HAS_NO_THREAD) != 0,
        .has_own_parameters = (hub.choices & HAS_OWN) != 0};
    if (wish == CREATES)
        return create(&options);
    return wish == ASKS ? ask(&options) : join(&options);
}

/* ---- inputs ---- */

static ph_status run(const uint8_t *data, size_t size, size_t num_waiting)
{
    pthread_t thread;
    const size_t num_descriptors = fuzz_count_descriptors();
    hub.choices = data[0];
    hub.records = data + 1;
    hub.size = size - 1;
    hub.num_waiting = num_waiting;
    fuzz_require(pthread_create(&thread, NULL, serve, NULL) == 0);
    const ph_status status = be_worker();
    fuzz_require(status == PH_OK || ph_error_text()[0] != '\0');
    ph__doorbell_ring(hub.bell[1]);
    pthread_join(thread, NULL);
    fuzz_require(fuzz_count_descriptors() == num_descriptors);
    return status;
}

/* All as hubs do; types ends with 0. */
static ph_status run_whole(uint8_t choices, const uint8_t *types, size_t num_unasked)
{
    uint8_t data[1 + 3 * MAX_TYPES] = {choices};
    size_t count = 0;
    for (; types[count] != 0; count++)
        data[1 + 3 * count] = AS_HUBS_DO | types[count];
    return run(data, 1 + 3 * count, 3 * num_unasked);
}

/* The names are those of the corpus' files that say the same. */
static void run_whole_jobs(void)
{
    static const uint8_t tcp[] = {PH_FRAME_WELCOME, PH_FRAME_JOINED, PH_FRAME_LAYOUT, PH_FRAME_WELCOME,
        PH_FRAME_ANSWER, PH_FRAME_WELCOME, PH_FRAME_ANSWER, PH_FRAME_BEGIN, PH_FRAME_GO, VALUE, VALUE, VALUE,
        VALUE, PH_FRAME_ANSWER, 0};
    static const uint8_t tcp_with_secret[] = {PH_FRAME_CHALLENGE, PH_FRAME_WELCOME, PH_FRAME_JOINED,
        PH_FRAME_LAYOUT, PH_FRAME_CHALLENGE, PH_FRAME_WELCOME, PH_FRAME_ANSWER, PH_FRAME_CHALLENGE,
        PH_FRAME_WELCOME, PH_FRAME_ANSWER, PH_FRAME_BEGIN, PH_FRAME_GO, VALUE, VALUE, VALUE, VALUE,
        PH_FRAME_ANSWER, 0};
    static const uint8_t shared[] = {PH_FRAME_WELCOME, PH_FRAME_WELCOME, PH_FRAME_JOINED, PH_FRAME_LAYOUT,
        PH_FRAME_BEGIN, PH_FRAME_GO, PH_FRAME_FAILED, 0};
    static const uint8_t two_hubs[] = {PH_FRAME_WELCOME, PH_FRAME_JOINED, PH_FRAME_WELCOME, PH_FRAME_JOINED,
        PH_FRAME_PARTS, PH_FRAME_PARTS, PH_FRAME_LAYOUT, PH_FRAME_LAYOUT, PH_FRAME_WELCOME, PH_FRAME_ANSWER,
        PH_FRAME_WELCOME, PH_FRAME_ANSWER, PH_FRAME_WELCOME, PH_FRAME_ANSWER, PH_FRAME_WELCOME,
        PH_FRAME_ANSWER, PH_FRAME_BEGIN, PH_FRAME_BEGIN, PH_FRAME_GO, PH_FRAME_SAVED, PH_FRAME_GO, VALUE,
        VALUE, VALUE, VALUE, PH_FRAME_SAVED, PH_FRAME_ANSWER, PH_FRAME_ANSWER, 0};
    static const uint8_t create[] = {PH_FRAME_WELCOME, PH_FRAME_ANSWER, 0};
    static const uint8_t status[] = {PH_FRAME_WELCOME, PH_FRAME_STATUS_TEXT, 0};
    fuzz_require(run_whole(JOINS_TCP, tcp, 0) == PH_OK);
    fuzz_require(run_whole(JOINS_TCP | HAS_NO_THREAD, tcp, 0) == PH_OK);
    fuzz_require(run_whole(JOINS_TCP | IS_RANK_1, tcp, 0) == PH_OK);
    fuzz_require(run_whole(JOINS_TCP | HAS_SECRET, tcp_with_secret, 0) == PH_OK);
    fuzz_require(run_whole(JOINS_TCP | OF_TWO_HUBS, two_hubs, 0) == PH_OK);
    fuzz_require(run_whole(JOINS_TCP | OF_TWO_HUBS | HAS_NO_THREAD, two_hubs, 0) == PH_OK);
    fuzz_require(run_whole(CREATES, create, 0) == PH_OK);
    fuzz_require(run_whole(ASKS, status, 0) == PH_OK);
    /* Nobody reads the rings: up to where parameters are pulled. */
    fuzz_require(run_whole(0, shared, 1) == PH_ERROR_PEER && strcmp(ph_error_text(), "over") == 0);
    fuzz_require(run_whole(HAS_OWN, shared, 1) == PH_ERROR_PEER && strcmp(ph_error_text(), "over") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (hub.address[0] == '\0') {
        start_hub();
        run_whole_jobs();
    }
    if (size > 0)
        (void)run(data, size, SIZE_MAX);
    return 0;
}
