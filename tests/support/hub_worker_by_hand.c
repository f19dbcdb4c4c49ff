#include "support/hub_worker_by_hand.h"

#include <stdlib.h>

#include "hub/keep/job_checkpoint.h"

enum { TURN_MS = 20, MAX_TURNS = 1000, CHUNK_BYTES = 64, NUM_CHUNKS = 8 };

static struct ph_hub_key make_key(bool is_one_chunk)
{
    const size_t num_chunks = is_one_chunk ? 1 : NUM_CHUNKS;
    return (struct ph_hub_key){.num_elements = num_chunks * CHUNK_BYTES / sizeof(float), .dtype = PH_F32};
}

static struct ph__hub_share make_share(const struct hub_worker_by_hand *worker)
{
    return (struct ph__hub_share){.hub = worker->has_no_chunks, .num_hubs = 2};
}

static struct ph_hub_service make_service(void)
{
    struct ph_hub_service service = hub_thread_service("job", 1);
    service.chunk_bytes = CHUNK_BYTES;
    service.checkpoint_every = BY_HAND_PERIOD;
    return service;
}

/* ---- parts ---- */

static void write_part(const char *path, uint64_t iteration)
{
    const struct ph_hub_service service = make_service();
    const struct ph_hub_key key = make_key(false);
    const struct ph__init_key init = {.num_elements = key.num_elements, .dtype = key.dtype};
    struct ph__service_settings settings;
    struct ph__snapshot *snapshot;
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 2}, &settings);
    assert_ok(ph__snapshot_create(&settings, &init, 1, CHUNK_BYTES, &snapshot));
    for (size_t i = 0; i < snapshot->layout->sizes.num_chunks; i++)
        snapshot->chunks[i].version = ph__chunk_is_here(&snapshot->layout->chunks[i]) ? iteration : 0;
    ph__snapshot_finish(snapshot);
    assert_ok(ph__job_checkpoint_write(path, snapshot));
    ph__snapshot_destroy(snapshot);
}

void hub_by_hand_put_part(const char *folder, uint64_t iteration, bool is_open)
{
    char *kept, *path;
    assert_ok(ph__job_checkpoint_path(folder, "job", &kept));
    assert_ok(ph__job_part_path(kept, is_open ? iteration : PH_NO_ITERATION, &path));
    write_part(path, iteration);
    free(path);
    free(kept);
}

/* ---- sending and receiving ---- */

void hub_by_hand_say(
    struct hub_worker_by_hand *worker, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    assert_ok(ph__control_stream_put(worker->control, (uint16_t)type, body != NULL ? body->bytes : NULL,
        body != NULL ? body->used : 0, NULL, 0));
    assert_ok(ph__control_stream_flush(worker->control));
    hub_turns_take(worker->server);
}

struct ph__control_frame hub_by_hand_hear(struct hub_worker_by_hand *worker, enum ph__hub_frame type)
{
    struct ph__control_frame frame;
    for (int i = 0; i < MAX_TURNS; i++) {
        bool is_there = true;
        (void)ph__control_stream_receive(worker->control); /* frames from before its end remain */
        while (is_there) {
            assert_ok(ph__control_stream_take(worker->control, &frame, &is_there));
            if (is_there && frame.type == type)
                return frame;
        }
        assert_ok(ph__server_turn(worker->server, TURN_MS));
    }
    fail_msg("no frame of type %d has come", type);
    return (struct ph__control_frame){0};
}

/* ---- a worker's life ---- */

static struct ph__control_stream *open_stream(struct ph_hub_server *server)
{
    struct ph__control_stream *stream;
    const int socket = hub_turns_connect(server, false);
    hub_turns_greet(server, socket);
    assert_ok(ph__control_stream_create(socket, &stream));
    return stream;
}

void hub_by_hand_connect(struct hub_worker_by_hand *worker, struct ph_hub_server *server)
{
    worker->server = server;
    worker->control = open_stream(server);
    hub_by_hand_hear(worker, PH_FRAME_WELCOME);
}

struct ph__answer hub_by_hand_create(struct hub_worker_by_hand *worker)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__answer answer;
    const struct ph_hub_service service = make_service();
    const struct ph__hub_share share = make_share(worker);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service(&writer, &service, &share);
    hub_by_hand_say(worker, PH_FRAME_CREATE, &writer);
    const struct ph__control_frame frame = hub_by_hand_hear(worker, PH_FRAME_ANSWER);
    assert_ok(ph__get_answer(frame.body, frame.size, &answer));
    return answer;
}

void hub_by_hand_join(struct hub_worker_by_hand *worker, struct ph_hub_server *server)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    const struct ph__join wish = {
        .name = "job", .nonce = HUB_THREAD_NONCE, .way = PH_WAY_SEVERAL_HUBS, .share = make_share(worker)};
    hub_by_hand_connect(worker, server);
    assert_int_equal(hub_by_hand_create(worker).status, PH_OK);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish);
    hub_by_hand_say(worker, PH_FRAME_JOIN, &writer);
    hub_by_hand_hear(worker, PH_FRAME_JOINED);
}

struct ph__parts hub_by_hand_init(struct hub_worker_by_hand *worker)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__parts parts;
    const struct ph_hub_key key = make_key(worker->has_no_chunks);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keys(&writer, &key, 1);
    hub_by_hand_say(worker, PH_FRAME_INIT, &writer);
    const struct ph__control_frame frame = hub_by_hand_hear(worker, PH_FRAME_PARTS);
    assert_ok(ph__get_parts(frame.body, frame.size, &parts));
    return parts;
}

static void say_iteration(struct hub_worker_by_hand *worker, enum ph__hub_frame type, uint64_t iteration)
{
    unsigned char bytes[sizeof iteration];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, iteration);
    hub_by_hand_say(worker, type, &writer);
}

void hub_by_hand_say_from(struct hub_worker_by_hand *worker, uint64_t iteration)
{
    say_iteration(worker, PH_FRAME_FROM, iteration);
}

void hub_by_hand_say_checkpoint(struct hub_worker_by_hand *worker, uint64_t iteration)
{
    say_iteration(worker, PH_FRAME_CHECKPOINT, iteration);
}

static void attach(struct hub_worker_by_hand *worker)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct hub_worker_by_hand link = {0};
    const struct ph__attach attach = {.token = worker->server->tenants->members[0].token};
    hub_by_hand_connect(&link, worker->server);
    worker->link = link.control;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_attach(&writer, &attach);
    hub_by_hand_say(&link, PH_FRAME_ATTACH, &writer);
    hub_by_hand_hear(&link, PH_FRAME_ANSWER);
}

void hub_by_hand_link(struct hub_worker_by_hand *worker, uint64_t iteration)
{
    hub_by_hand_say_from(worker, iteration);
    hub_by_hand_hear(worker, PH_FRAME_LAYOUT);
    attach(worker);
    hub_by_hand_say(worker, PH_FRAME_LINKED, NULL);
    hub_by_hand_hear(worker, PH_FRAME_BEGIN);
}

void hub_by_hand_go(struct hub_worker_by_hand *worker, uint64_t iteration)
{
    hub_by_hand_link(worker, iteration);
    hub_by_hand_say(worker, PH_FRAME_ASSIGNED, NULL);
    hub_by_hand_hear(worker, PH_FRAME_GO);
}

void hub_by_hand_say_keep(struct hub_worker_by_hand *worker, const struct ph__keep *keep)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keep(&writer, keep);
    hub_by_hand_say(worker, PH_FRAME_KEEP, &writer);
}

struct ph__saved hub_by_hand_hear_saved(struct hub_worker_by_hand *worker)
{
    struct ph__saved saved;
    const struct ph__control_frame frame = hub_by_hand_hear(worker, PH_FRAME_SAVED);
    assert_ok(ph__get_saved(frame.body, frame.size, &saved));
    return saved;
}

void hub_by_hand_end(struct hub_worker_by_hand *worker)
{
    ph__control_stream_destroy(worker->control);
    ph__control_stream_destroy(worker->link);
    worker->control = worker->link = NULL;
    hub_turns_take(worker->server);
}
