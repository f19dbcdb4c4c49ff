/* What strangers say to a hub. The first byte of an input chooses: over a local connection or not (1),
 * without a greeting (2), to a hub that has a secret (4) or to one that keeps checkpoints, how far the
 * handshake goes (8 and 16: enum handshake), whether all is said again to what the first time has left behind
 * (32), and whether the hub is the first of two that share the job's keys (64). The rest is a list of records
 * (fuzz_frames.h), one a frame of the type that it begins with. A frame AS_WORKERS_DO has the body that a
 * worker would send, made here so that it does not go stale, and the input's bytes are edits of it
 * (fuzz_edit); one with a WRONG_TAG has a wrong tag where it has any. TURN_TO goes on with another
 * connection, and with a WRONG_TAG closes the one that there is before that.
 *
 * The hub answers what a worker can read, or ends the connection; afterwards it has no job, no connection and
 * no descriptor left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "hub/server/server_state.h"
#include "hub/wire/protocol.h"
#include "support/fuzz_frames.h"

enum {
    MAX_FRAMES = 24,
    MAX_BODY = 1000,
    HEAD_BYTES = 8,
    NUM_SPEAKERS = 3,
    MAX_HELD = 16,
    SECRET_HUB = 1,
    NUM_HUBS
};
enum { AS_WORKERS_DO = 128, WRONG_TAG = 64, TURN_TO = 0, NONCE = 7 };
enum {
    IS_LOCAL = 1,
    HAS_NO_GREETING = 2,
    HAS_SECRET = 4,
    HANDSHAKE_SHIFT = 3,
    IS_SAID_TWICE = 32,
    IS_OF_TWO = 64
};

/* How far a worker goes with a hub that has a secret, before the input has its say. */
enum handshake { PROVED, GREETED, WRONGLY_PROVED, PROVED_BUT_UNTAGGED };

struct speaker { /* one connection */
    int socket;
    struct ph__control_stream *stream; /* to hear with; owns the socket. NULL: not open */
    struct ph__frame_key *key;         /* of what is said; NULL: no tags */
    bool is_silent;                    /* it hears nothing any more: ended, or a link */
    int held[MAX_HELD];                /* what came with a layout: without it, a worker is gone */
    size_t num_held;
};

static struct ph_hub_server *hubs[NUM_HUBS];
static char folder[64];
static const char secret_text[] = "sixteen bytes and some more";

static struct conversation {
    struct ph_hub_server *hub;
    uint8_t choices;
    struct speaker speakers[NUM_SPEAKERS];
} now;

static const struct ph_hub_key keys[] = {{.num_elements = 1000}, {.num_elements = 5000, .dtype = PH_BF16}};

/* ---- hubs ---- */

static void start_hubs(void)
{
    struct ph_hub_server_options options = {.size = sizeof options,
        .num_threads = 1,
        .wait = PH_HUB_WAIT_SLEEP,
        .max_bytes = (uint64_t)1 << 20,
        .max_jobs = 4};
    char secret_file[64];
    fuzz_folder_path("secret", secret_file);
    fuzz_put(secret_file, secret_text, strlen(secret_text));
    fuzz_folder_path("checkpoints", folder);
    options.checkpoint_folder = folder;
    fuzz_require(ph_hub_server_create(&options, &hubs[0]) == PH_OK);
    options.checkpoint_folder = NULL;
    options.secret_file = secret_file;
    fuzz_require(ph_hub_server_create(&options, &hubs[SECRET_HUB]) == PH_OK);
}

/* Core threads and tasks have been given something that they do by themselves. */
static bool is_busy(void)
{
    for (const struct ph_session *session = now.hub->sessions; session != NULL; session = session->next) {
        if (session->awaited != NULL && !session->awaited->must_end) /* that waits for other workers */
            return true;
    }
    for (const struct ph__tenant *tenant = now.hub->tenants; tenant != NULL; tenant = tenant->next) {
        const bool is_working = !tenant->has_begun || tenant->saves.is_restoring;
        if (tenant->saves.task != NULL || (tenant->state == PH_TENANT_RUNNING && is_working))
            return true;
    }
    return false;
}

static void take_turns(void)
{
    for (int i = 0; i < 3; i++)
        fuzz_require(ph__server_turn(now.hub, 0) == PH_OK);
    while (is_busy())
        fuzz_require(ph__server_turn(now.hub, 1) == PH_OK);
}

/* ---- hearing ---- */

/* What the hub says is what a worker understands. */
static void check_frame(const struct ph__control_frame *frame)
{
    struct ph__server_challenge challenge;
    struct ph__welcome welcome;
    struct ph__answer answer;
    struct ph__joined joined;
    struct ph__job_layout layout;
    struct ph__parts parts;
    struct ph__saved saved;
    if (frame->type == PH_FRAME_CHALLENGE)
        fuzz_require(ph__get_server_challenge(frame->body, frame->size, &challenge) == PH_OK);
    else if (frame->type == PH_FRAME_WELCOME)
        fuzz_require(ph__get_welcome(frame->body, frame->size, &welcome) == PH_OK);
    else if (frame->type == PH_FRAME_ANSWER || frame->type == PH_FRAME_FAILED)
        fuzz_require(ph__get_answer(frame->body, frame->size, &answer) == PH_OK);
    else if (frame->type == PH_FRAME_JOINED)
        fuzz_require(ph__get_joined(frame->body, frame->size, &joined) == PH_OK);
    else if (frame->type == PH_FRAME_PARTS)
        fuzz_require(ph__get_parts(frame->body, frame->size, &parts) == PH_OK);
    else if (frame->type == PH_FRAME_SAVED)
        fuzz_require(ph__get_saved(frame->body, frame->size, &saved) == PH_OK);
    else if (frame->type == PH_FRAME_LAYOUT)
        fuzz_require(ph__get_layout(frame->body, frame->size, &layout) == PH_OK);
    else
        fuzz_require(frame->type == PH_FRAME_BEGIN || frame->type == PH_FRAME_GO ||
                     frame->type == PH_FRAME_STATUS_TEXT);
}

static void hold(struct speaker *speaker, const struct ph__control_frame *frame)
{
    fuzz_require(frame->num_descriptors <= MAX_HELD - speaker->num_held);
    for (size_t i = 0; i < frame->num_descriptors; i++)
        speaker->held[speaker->num_held++] = frame->descriptors[i];
}

/* false: nothing more has come. */
static bool take_frame(struct speaker *speaker, struct ph__control_frame *frame)
{
    bool is_there;
    if (ph__control_stream_receive(speaker->stream) != PH_OK)
        speaker->is_silent = true;
    fuzz_require(ph__control_stream_take(speaker->stream, frame, &is_there) == PH_OK);
    return is_there;
}

static void hear(struct speaker *speaker)
{
    struct ph__control_frame frame;
    while (!speaker->is_silent && take_frame(speaker, &frame)) {
        check_frame(&frame);
        hold(speaker, &frame);
    }
}

/* ---- saying ---- */

static void say(struct speaker *speaker, uint16_t type, const void *body, size_t size, bool has_right_tag)
{
    unsigned char head[FUZZ_CONTROL_HEAD_BYTES];
    fuzz_control_head(type, size, 0, head);
    const struct fuzz_frame frame = {
        .head = head, .head_bytes = sizeof head, .body = body, .size = size, .has_wrong_tag = !has_right_tag};
    fuzz_send_frame(speaker->socket, speaker->key, &frame);
    take_turns();
}

static void take_keys(struct speaker *speaker, const struct ph__challenge *challenge)
{
    unsigned char key[PH_CONNECTION_KEY_BYTES];
    const struct ph__secret *secret = now.hub->secret;
    fuzz_require(ph__handshake_protect(secret, challenge, PH_SIDE_CLIENT, speaker->stream) == PH_OK);
    fuzz_require(ph__authenticate_key(secret, PH_SIDE_CLIENT, challenge, key) == PH_OK);
    fuzz_require(ph__frame_key_create(key, &speaker->key) == PH_OK);
}

/* Answers the hub's challenge, as far as the input wants it. */
static void prove(struct speaker *speaker, const unsigned char *hello, size_t hello_size)
{
    const enum handshake handshake = now.choices >> HANDSHAKE_SHIFT & 3;
    struct ph__control_frame frame;
    struct ph__server_challenge answer;
    struct ph__challenge challenge;
    unsigned char proof[PH_PROOF_BYTES];
    fuzz_require(take_frame(speaker, &frame) && frame.type == PH_FRAME_CHALLENGE);
    fuzz_require(ph__get_server_challenge(frame.body, frame.size, &answer) == PH_OK);
    fuzz_require(
        ph__handshake_prove(now.hub->secret, hello, hello_size, &answer, &challenge, proof) == PH_OK);
    if (handshake == GREETED)
        return;
    if (handshake == WRONGLY_PROVED)
        proof[PH_PROOF_BYTES - 1] ^= 1;
    say(speaker, PH_FRAME_PROOF, proof, sizeof proof, true);
    if (handshake == WRONGLY_PROVED) {
        fuzz_require(take_frame(speaker, &frame) && frame.type == PH_FRAME_ANSWER && speaker->is_silent);
        return;
    }
    take_keys(speaker, &challenge);
    fuzz_require(take_frame(speaker, &frame) && frame.type == PH_FRAME_WELCOME);
    if (handshake == PROVED_BUT_UNTAGGED) {
        ph__frame_key_destroy(speaker->key);
        speaker->key = NULL;
    }
}

static void put_hello(struct ph__wire_writer *writer)
{
    const struct ph__hello hello = {.api_version = PH_HUB_API_VERSION};
    ph__put_hello(writer, &hello);
}

static void greet(struct speaker *speaker)
{
    unsigned char bytes[64];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    put_hello(&writer);
    say(speaker, PH_FRAME_HELLO, bytes, writer.used, true);
    if (now.hub->secret != NULL)
        prove(speaker, bytes, writer.used);
}

/* ---- as workers do ---- */

static struct ph__hub_share share(void)
{
    return (struct ph__hub_share){.num_hubs = (now.choices & IS_OF_TWO) != 0 ? 2 : 1};
}

static void put_service(struct ph__wire_writer *writer)
{
    static const struct ph_hub_optimizer adam = {.rule.kind = PH_ADAM,
        .learning_rate = .1F,
        .rule.beta1 = .9F,
        .rule.beta2 = .99F,
        .rule.epsilon = 1e-8F};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "job",
        .nonce = NONCE,
        .num_workers = 1,
        .chunk_bytes = 4096,
        .optimizers = &adam,
        .num_optimizers = 1};
    const struct ph__hub_share own = share();
    ph__put_service(writer, &service, &own);
}

static void put_join(struct ph__wire_writer *writer, uint32_t rank)
{
    const struct ph__join join = {.name = "job",
        .nonce = NONCE,
        .rank = rank,
        .way = (now.choices & IS_LOCAL) != 0 ? PH_WAY_SHARED : PH_WAY_UNREACHED,
        .share = share()};
    ph__put_join(writer, &join);
}

/* What goes on from the newest part of the first job of all, or keeps that. */
static void put_keep(struct ph__wire_writer *writer, uint16_t type)
{
    const struct ph__tenant *tenant = now.hub->tenants;
    const struct ph__parts *here = tenant != NULL ? &tenant->saves.parts.here : NULL;
    struct ph__keep keep = {.iteration = PH_NO_ITERATION, .next = PH_NO_ITERATION};
    if (here != NULL)
        keep.iteration = here->num_open > 0 ? here->open[here->num_open - 1] : here->kept;
    keep.settled_end = keep.iteration + 1;
    if (type == PH_FRAME_FROM)
        ph__put_iteration(writer, keep.iteration);
    else
        ph__put_keep(writer, &keep);
}

/* The token of the first worker of all. */
static void put_attach(struct ph__wire_writer *writer)
{
    const struct ph__tenant *tenant = now.hub->tenants;
    const struct ph__attach attach = {.token = tenant != NULL ? tenant->members[0].token : 0};
    ph__put_attach(writer, &attach);
}

/* rank: that joins where nothing is edited. */
static void put_body(struct ph__wire_writer *writer, uint16_t type, uint32_t rank)
{
    if (type == PH_FRAME_HELLO)
        put_hello(writer);
    else if (type == PH_FRAME_CREATE)
        put_service(writer);
    else if (type == PH_FRAME_JOIN || type == PH_FRAME_DESTROY)
        put_join(writer, rank);
    else if (type == PH_FRAME_INIT)
        ph__put_keys(writer, keys, sizeof keys / sizeof *keys);
    else if (type == PH_FRAME_ATTACH)
        put_attach(writer);
    else if (type == PH_FRAME_STATUS)
        ph__put_service_name(writer, "");
    else if (type == PH_FRAME_FROM || type == PH_FRAME_KEEP)
        put_keep(writer, type);
    else if (type == PH_FRAME_CHECKPOINT && (now.choices & IS_OF_TWO) != 0)
        ph__put_iteration(writer, 0);
    else if (type == PH_FRAME_ANSWER)
        ph__put_answer(writer, PH_ERROR_CHECKPOINT, "no");
}

/* ---- a conversation ---- */

static void open_speaker(struct speaker *speaker)
{
    int ends[2];
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    fuzz_require(ph__session_open(now.hub, ends[0], (now.choices & IS_LOCAL) != 0) == PH_OK);
    fuzz_require(ph__control_stream_create(ends[1], &speaker->stream) == PH_OK);
    speaker->socket = ends[1];
    if ((now.choices & HAS_NO_GREETING) == 0)
        greet(speaker);
}

static void close_speaker(struct speaker *speaker)
{
    ph__control_stream_destroy(speaker->stream);
    ph__frame_key_destroy(speaker->key);
    for (size_t i = 0; i < speaker->num_held; i++)
        close(speaker->held[i]);
    *speaker = (struct speaker){0};
}

static void hang_up(struct speaker *speaker)
{
    close_speaker(speaker);
    take_turns();
}

static void say_record(struct speaker *speaker, const struct fuzz_record *record)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const uint16_t type = record->head & (WRONG_TAG - 1);
    const bool has_right_tag = (record->head & WRONG_TAG) == 0;
    const bool is_refused = speaker->key != NULL && !has_right_tag && !speaker->is_silent;
    const uint8_t *body = record->body;
    uint8_t *edited = NULL;
    size_t size = record->size, unused;
    if ((record->head & AS_WORKERS_DO) != 0) {
        ph__wire_writer_init(&writer, bytes, sizeof bytes);
        put_body(&writer, type, (uint32_t)(speaker - now.speakers));
        body = edited = fuzz_edit((const char *)bytes, writer.used, body, size, 0, &unused, &size);
    }
    if (size <= FUZZ_MAX_BODY)
        say(speaker, type, body, size, has_right_tag);
    /* Where this was answered, what comes is said by a core thread. */
    if (type == PH_FRAME_ATTACH && !is_refused)
        speaker->is_silent = true;
    hear(speaker);
    fuzz_require(!is_refused || size > FUZZ_MAX_BODY || speaker->is_silent);
    free(edited);
}

static void say_all(const uint8_t *data, size_t size)
{
    struct fuzz_record record;
    size_t speaker = 0;
    for (int i = 0; i < MAX_FRAMES && fuzz_next_record(&data, &size, &record); i++) {
        const bool is_turn = (record.head & ~WRONG_TAG) == (AS_WORKERS_DO | TURN_TO);
        if (is_turn && (record.head & WRONG_TAG) != 0)
            hang_up(&now.speakers[speaker]);
        if (is_turn)
            speaker = record.size > 0 ? record.body[0] % NUM_SPEAKERS : 0;
        if (now.speakers[speaker].stream == NULL)
            open_speaker(&now.speakers[speaker]);
        if (!is_turn)
            say_record(&now.speakers[speaker], &record);
    }
}

static void converse(const uint8_t *data, size_t size)
{
    say_all(data, size);
    for (size_t i = 0; i < NUM_SPEAKERS; i++)
        close_speaker(&now.speakers[i]);
    while (now.hub->sessions != NULL)
        take_turns();
    ph__server_end_tenants(now.hub);
    fuzz_require(now.hub->tenants == NULL && ph__server_bytes_left(now.hub) == now.hub->max_bytes);
}

static ph_status remove_checkpoint(void *argument, const char *name)
{
    char path[600];
    (void)argument;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (ph__path_ends_in(name, PH_CHECKPOINT_ENDING))
        unlink(path);
    return PH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (hubs[0] == NULL)
        start_hubs();
    const size_t num_descriptors = fuzz_count_descriptors();
    now =
        (struct conversation){.hub = hubs[(data[0] & HAS_SECRET) != 0 ? SECRET_HUB : 0], .choices = data[0]};
    converse(data + 1, size - 1);
    if ((data[0] & IS_SAID_TWICE) != 0)
        converse(data + 1, size - 1);
    fuzz_require(ph__directory_visit(folder, remove_checkpoint, NULL) == PH_OK);
    fuzz_require(fuzz_count_descriptors() == num_descriptors);
    return 0;
}
