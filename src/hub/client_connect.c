/* A worker's way to its job: greeting, joining, keys and links, and out again. See phloem/hub.h and protocol.h. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/random_bytes.h"
#include "hub/client_engine.h"
#include "hub/handshake.h"
#include "hub/spread.h"
#include "net/shared_link.h"
#include "net/socket.h"
#include "net/tcp_link.h"

#define DEFAULT_TIMEOUT_MS 60000

static uint32_t timeout_of(const struct ph_hub_options *options)
{
    return options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
}

/* ---- asking ---- */

static uint32_t connect_timeout_of(const struct ph_hub_options *options)
{
    return options->connect_timeout_ms > 0 ? options->connect_timeout_ms : timeout_of(options);
}

static uint64_t deadline(uint32_t timeout_ms)
{
    return ph__clock_ns() + (uint64_t)timeout_ms * 1000000u;
}

static ph_status wait_for_socket(struct ph_control_stream *stream, uint64_t deadline_ns)
{
    const uint64_t now_ns = ph__clock_ns();
    struct pollfd polled = {.fd = ph__control_stream_socket(stream), .events = POLLIN};
    if (ph__control_stream_has_output(stream))
        polled.events |= POLLOUT;
    if (now_ns >= deadline_ns)
        return ph_fail(PH_ERROR_PEER, "the hub does not answer");
    const uint64_t left_ms = (deadline_ns - now_ns) / 1000000u + 1;
    poll(&polled, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
    return PH_OK;
}

static ph_status await_frame(
    struct ph_control_stream *stream, uint64_t deadline_ns, struct ph_control_frame *frame_out)
{
    for (;;) {
        bool is_there;
        PH_TRY(ph__control_stream_flush(stream));
        const ph_status received = ph__control_stream_receive(stream);
        PH_TRY(ph__control_stream_take(stream, frame_out, &is_there));
        if (is_there)
            return PH_OK;
        PH_TRY(received);
        PH_TRY(wait_for_socket(stream, deadline_ns));
    }
}

static ph_status check_answer(const struct ph_control_frame *frame, enum ph_hub_frame wanted)
{
    struct ph_answer answer;
    if (frame->type == wanted && wanted != PH_FRAME_ANSWER)
        return PH_OK;
    for (size_t i = 0; i < frame->num_descriptors; i++)
        close(frame->descriptors[i]);
    if (frame->type != PH_FRAME_ANSWER && frame->type != PH_FRAME_FAILED)
        return ph_fail(PH_ERROR_PEER, "the hub answers with a message of type %u", frame->type);
    PH_TRY(ph__get_answer(frame->body, frame->size, &answer));
    if (answer.status != PH_OK)
        return ph_fail(answer.status, "%s", answer.text);
    return wanted == PH_FRAME_ANSWER ? PH_OK : ph_fail(PH_ERROR_PEER, "the hub agrees, but says nothing");
}

ph_status ph__client_request(struct ph_control_stream *stream, enum ph_hub_frame type,
    const struct ph_wire_writer *body, enum ph_hub_frame answer, uint32_t timeout_ms,
    struct ph_control_frame *frame_out)
{
    size_t size = 0;
    frame_out->type = 0;
    if (body != NULL)
        PH_TRY(ph__wire_writer_finish(body, "message", &size));
    PH_TRY(ph__control_stream_put(stream, (uint16_t)type, body != NULL ? body->bytes : NULL, size, NULL, 0));
    PH_TRY(await_frame(stream, deadline(timeout_ms), frame_out));
    return check_answer(frame_out, answer);
}

ph_status ph__client_look_for_answer(struct ph_control_stream *stream, bool *is_answered_out)
{
    struct ph_control_frame frame;
    PH_TRY(ph__control_stream_flush(stream));
    const ph_status received = ph__control_stream_receive(stream);
    PH_TRY(ph__control_stream_take(stream, &frame, is_answered_out));
    return *is_answered_out ? check_answer(&frame, PH_FRAME_ANSWER) : received;
}

/* ---- greeting ---- */

static ph_status say_hello(struct ph_control_stream *stream, const struct ph_wire_writer *hello,
    bool has_secret, uint32_t timeout_ms, struct ph_control_frame *frame_out)
{
    const enum ph_hub_frame wanted = has_secret ? PH_FRAME_CHALLENGE : PH_FRAME_WELCOME;
    const ph_status status = ph__client_request(stream, PH_FRAME_HELLO, hello, wanted, timeout_ms, frame_out);
    if (status == PH_OK || frame_out->type != (has_secret ? PH_FRAME_WELCOME : PH_FRAME_CHALLENGE))
        return status;
    return ph_fail(PH_ERROR_CONFIG, has_secret
                                        ? "the hub does not prove that it knows the secret: it has none"
                                        : "the hub has a secret: name the file that it is in");
}

static ph_status prove(struct ph_control_stream *stream, const struct ph_secret *secret,
    const struct ph_wire_writer *hello, uint32_t timeout_ms, struct ph_control_frame *frame)
{
    struct ph_server_challenge answer;
    struct ph_challenge challenge;
    unsigned char proof[PH_PROOF_BYTES];
    PH_TRY(ph__get_server_challenge(frame->body, frame->size, &answer));
    PH_TRY(ph__handshake_prove(secret, hello->bytes, hello->used, &answer, &challenge, proof));
    PH_TRY(ph__control_stream_put(stream, PH_FRAME_PROOF, proof, sizeof proof, NULL, 0));
    PH_TRY(ph__handshake_protect(secret, &challenge, PH_SIDE_CLIENT, stream));
    PH_TRY(await_frame(stream, deadline(timeout_ms), frame));
    return check_answer(frame, PH_FRAME_WELCOME);
}

static ph_status greet(struct ph_control_stream *stream, const struct ph_secret *secret, uint32_t timeout_ms,
    struct ph_welcome *welcome_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_hello hello = {.api_version = PH_HUB_API_VERSION};
    PH_TRY(ph__random_bytes(hello.nonce, sizeof hello.nonce));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_hello(&writer, &hello);
    PH_TRY(say_hello(stream, &writer, secret != NULL, timeout_ms, &frame));
    if (secret != NULL)
        PH_TRY(prove(stream, secret, &writer, timeout_ms, &frame));
    return ph__get_welcome(frame.body, frame.size, welcome_out);
}

/* Owns the socket. */
static ph_status greet_socket(int socket, const struct ph_secret *secret, uint32_t timeout_ms,
    struct ph_control_stream **stream_out, struct ph_welcome *welcome_out)
{
    struct ph_control_stream *stream;
    PH_TRY(ph__control_stream_create(socket, &stream));
    const ph_status status = greet(stream, secret, timeout_ms, welcome_out);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    *stream_out = stream;
    return PH_OK;
}

static ph_status reach(const struct ph_hub_options *options, const struct ph_secret *secret,
    struct ph_control_stream **stream_out, struct ph_welcome *welcome_out)
{
    int socket;
    PH_TRY(ph__socket_connect(options->address, connect_timeout_of(options), &socket));
    return greet_socket(socket, secret, timeout_of(options), stream_out, welcome_out);
}

/* A connection to ask one thing over. */
ph_status ph__client_reach(const struct ph_hub_options *options, struct ph_control_stream **stream_out)
{
    struct ph_secret secret;
    struct ph_welcome welcome;
    if (options->address == NULL)
        return ph_fail(PH_ERROR_USAGE, "the hub's address is missing");
    if (options->secret_file == NULL)
        return reach(options, NULL, stream_out, &welcome);
    PH_TRY(ph__secret_read(options->secret_file, &secret));
    const ph_status status = reach(options, &secret, stream_out, &welcome);
    ph__secret_fini(&secret);
    return status;
}

/* A hub shares memory with its own user's processes alone, and says nothing to others. */
static ph_status reach_local(const struct ph_welcome *welcome, int *socket_out)
{
    PH_TRY(ph__socket_connect_local(welcome->local_socket, socket_out));
    if (ph__socket_is_same_user(*socket_out))
        return PH_OK;
    close(*socket_out);
    return ph_fail(PH_ERROR_PEER, "the hub is another user's, and shares no memory with this one");
}

/* Goes over to the hub's local socket, where there is one to be had. */
static ph_status go_local(
    struct ph_hub_client *client, const struct ph_hub_options *options, struct ph_welcome *welcome)
{
    int socket;
    struct ph_control_stream *local;
    if (options->transport == PH_HUB_TCP) {
        snprintf(client->why, sizeof client->why, "it was asked for");
        return PH_OK;
    }
    if (reach_local(welcome, &socket) != PH_OK) {
        snprintf(client->why, sizeof client->why, "%s", ph_error_text());
        return options->transport == PH_HUB_SHARED_MEMORY ? PH_ERROR_PEER : PH_OK;
    }
    PH_TRY(greet_socket(socket, client->secret, client->timeout_ms, &local, welcome));
    ph__control_stream_destroy(client->stream);
    client->stream = local;
    client->is_shared = true;
    snprintf(client->why, sizeof client->why, "the hub is on this host");
    return PH_OK;
}

/* ---- services ---- */

ph_status ph_hub_create_service(const struct ph_hub_options *options, const struct ph_hub_service *service)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    PH_TRY(ph__service_check(service));
    PH_TRY(ph__client_reach(options, &stream));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_service(&writer, service);
    const ph_status status =
        ph__client_request(stream, PH_FRAME_CREATE, &writer, PH_FRAME_ANSWER, timeout_of(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}

static ph_status check_name(const char *name)
{
    if (name == NULL || *name == '\0' || strlen(name) > PH_HUB_MAX_NAME)
        return ph_fail(PH_ERROR_USAGE, "a service's name has 1 to %d bytes", PH_HUB_MAX_NAME);
    return PH_OK;
}

ph_status ph_hub_destroy_service(const struct ph_hub_options *options, const char *name, uint64_t nonce)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    struct ph_join which = {.nonce = nonce};
    PH_TRY(check_name(name));
    strcpy(which.name, name);
    PH_TRY(ph__client_reach(options, &stream));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &which);
    const ph_status status =
        ph__client_request(stream, PH_FRAME_DESTROY, &writer, PH_FRAME_ANSWER, timeout_of(options), &frame);
    ph__control_stream_destroy(stream);
    return status;
}

/* ---- joining ---- */

static ph_status join(
    struct ph_hub_client *client, const struct ph_hub_options *options, const char *service, uint64_t nonce)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_join wish = {.nonce = nonce,
        .rank = client->rank,
        .is_shared = client->is_shared,
        .has_own_parameters = options->has_own_parameters};
    strcpy(wish.name, service);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish);
    PH_TRY(ph__client_request(
        client->stream, PH_FRAME_JOIN, &writer, PH_FRAME_JOINED, client->timeout_ms, &frame));
    PH_TRY(ph__get_joined(frame.body, frame.size, &client->joined));
    if (client->joined.depth < 1 || client->joined.depth > PH_HUB_MAX_DEPTH)
        return ph_fail(PH_ERROR_PEER, "the hub gives a depth of %u", client->joined.depth);
    return PH_OK;
}

static ph_status keep_options(struct ph_hub_client *client, const struct ph_hub_options *options)
{
    if (options->address == NULL)
        return ph_fail(PH_ERROR_USAGE, "the hub's address is missing");
    client->address = strdup(options->address);
    if (options->secret_file != NULL)
        client->secret = calloc(1, sizeof *client->secret);
    if (client->address == NULL || (options->secret_file != NULL && client->secret == NULL))
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    return client->secret != NULL ? ph__secret_read(options->secret_file, client->secret) : PH_OK;
}

ph_status ph_hub_connect(const struct ph_hub_options *options, const char *service, uint64_t nonce,
    uint32_t rank, struct ph_hub_client **client_out)
{
    struct ph_welcome welcome;
    PH_TRY(check_name(service));
    struct ph_hub_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    client->timeout_ms = timeout_of(options);
    client->rank = rank;
    client->has_no_thread = options->has_no_thread;
    client->region.descriptor = client->results.descriptor = -1;
    ph__waiter_init(&client->waiter, (enum ph_wait_policy)options->wait, false);
    ph_status status = keep_options(client, options);
    if (status == PH_OK)
        status = reach(options, client->secret, &client->stream, &welcome);
    if (status == PH_OK)
        status = go_local(client, options, &welcome);
    if (status == PH_OK)
        status = join(client, options, service, nonce);
    if (status != PH_OK) {
        ph_hub_client_destroy(client);
        return status;
    }
    *client_out = client;
    return PH_OK;
}

/* ---- keys ---- */

static ph_status make_layout(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    struct ph_layout_key *wanted = calloc(num_keys, sizeof *wanted);
    if (wanted == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    for (size_t i = 0; i < num_keys; i++)
        wanted[i] = (struct ph_layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    const ph_status status = ph__layout_create(wanted, num_keys, client->job.chunk_bytes, &client->layout);
    free(wanted);
    return status;
}

static ph_status find_cores(struct ph_hub_client *client)
{
    const size_t num_chunks = client->layout->sizes.num_chunks;
    client->core_of_chunk = calloc(num_chunks, sizeof *client->core_of_chunk);
    if (client->core_of_chunk == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu chunks", num_chunks);
    PH_TRY(ph__spread_chunks(client->layout, NULL, 0, client->job.num_cores, client->core_of_chunk));
    if (ph__checksum(client->core_of_chunk, num_chunks * sizeof *client->core_of_chunk) !=
        client->job.cores_sum)
        return ph_fail(
            PH_ERROR_PEER, "hub and worker do not agree on where chunks live: are they of one version?");
    return PH_OK;
}

static struct ph_worker_region_sizes region_sizes(const struct ph_hub_client *client)
{
    return (struct ph_worker_region_sizes){
        .num_cores = client->job.num_cores,
        .ring_capacity = client->job.ring_capacity,
        .gradient_bytes = client->layout->sizes.gradient_bytes,
        .depth = client->joined.depth,
        .has_own_parameters = client->joined.has_own_parameters,
    };
}

static void place_regions(struct ph_hub_client *client)
{
    const struct ph_worker_region_sizes sizes = region_sizes(client);
    const struct ph_worker_region region = ph__worker_region(&sizes);
    const bool has_own = client->joined.has_own_parameters;
    client->num_parameters = has_own ? client->joined.depth : client->job.num_versions;
    for (uint32_t i = 0; i < client->joined.depth; i++)
        client->gradients[i] = (char *)client->region.memory + region.gradients + i * sizes.gradient_bytes;
    for (uint32_t i = 0; i < client->num_parameters; i++)
        client->parameters[i] =
            (has_own ? (char *)client->region.memory + region.parameters : (char *)client->results.memory) +
            i * sizes.gradient_bytes;
}

/* Takes the descriptors one after the other; what was not taken is closed by the caller. */
static ph_status open_shared(struct ph_hub_client *client, const int *descriptors, size_t *num_taken)
{
    const struct ph_worker_region_sizes sizes = region_sizes(client);
    const struct ph_worker_region region = ph__worker_region(&sizes);
    PH_TRY(ph__region_open(descriptors[(*num_taken)++], region.size, true, &client->region));
    PH_TRY(ph__region_open(descriptors[(*num_taken)++], sizes.gradient_bytes * client->job.num_versions,
        false, &client->results));
    for (uint16_t core = 0; core < client->job.num_cores; core++) {
        const struct ph_shared_link_options options = {
            .memory = (char *)client->region.memory + core * region.ring_bytes,
            .capacity = client->job.ring_capacity,
            .doorbell = descriptors[*num_taken],
            .owner = ph__client_link_owner(client),
        };
        PH_TRY(ph__shared_link_create(&options, &client->links[core]));
        (*num_taken)++;
    }
    place_regions(client);
    return PH_OK;
}

/* One connection to each core thread, in the manner of a control connection until it is attached. */
static ph_status connect_core(struct ph_hub_client *client, uint16_t core)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    struct ph_welcome welcome;
    struct ph_tcp_link_options options = {.capacity = client->job.ring_capacity,
        .registered = client->has_no_thread ? NULL : &client->region,
        .owner = ph__client_link_owner(client)};
    const struct ph_attach attach = {.token = client->job.token, .core = core};
    const struct ph_hub_options where = {.address = client->address, .timeout_ms = client->timeout_ms};
    PH_TRY(reach(&where, client->secret, &stream, &welcome));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_attach(&writer, &attach);
    ph_status status =
        ph__client_request(stream, PH_FRAME_ATTACH, &writer, PH_FRAME_ANSWER, client->timeout_ms, &frame);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    PH_TRY(ph__control_stream_release(stream, &options.socket, &options.send_key, &options.receive_key));
    status = ph__tcp_link_create(&options, &client->links[core]);
    if (status != PH_OK) {
        close(options.socket);
        ph__frame_key_destroy(options.send_key);
        ph__frame_key_destroy(options.receive_key);
    }
    return status;
}

static ph_status open_connections(struct ph_hub_client *client)
{
    const size_t bytes = client->layout->sizes.gradient_bytes, depth = client->joined.depth;
    PH_TRY(ph__region_create("phloem-hub-worker", 2 * depth * bytes, &client->region));
    ph__region_enlarge_pages(&client->region, client->region.memory, client->region.size);
    for (size_t i = 0; i < depth; i++) {
        client->gradients[i] = (char *)client->region.memory + i * bytes;
        client->parameters[i] = (char *)client->region.memory + (depth + i) * bytes;
    }
    client->num_parameters = client->joined.depth;
    for (uint16_t core = 0; core < client->job.num_cores; core++)
        PH_TRY(connect_core(client, core));
    return PH_OK;
}

static ph_status make_links(struct ph_hub_client *client, const int *descriptors, size_t num_descriptors)
{
    size_t num_taken = 0;
    ph_status status = PH_OK;
    client->links = calloc(client->job.num_cores, sizeof *client->links);
    client->learning_rates = calloc(PH_HUB_MAX_OPTIMIZERS, sizeof *client->learning_rates);
    if (client->links == NULL || client->learning_rates == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory for links");
    else if (!client->is_shared)
        status = open_connections(client);
    else if (num_descriptors != (size_t)client->job.num_cores + 2)
        status = ph_fail(PH_ERROR_PEER, "the hub sends %zu descriptors", num_descriptors);
    else
        status = open_shared(client, descriptors, &num_taken);
    for (size_t i = num_taken; i < num_descriptors; i++)
        close(descriptors[i]);
    for (size_t i = 0; status == PH_OK && i < PH_HUB_MAX_OPTIMIZERS; i++)
        client->learning_rates[i] = NAN;
    return status;
}

static ph_status tell_keys(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys,
    struct ph_control_frame *frame_out)
{
    const size_t capacity = num_keys * PH_HUB_KEY_BYTES;
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys; there are 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, capacity);
    ph__put_keys(&writer, keys, num_keys);
    const ph_status status = ph__client_request(
        client->stream, PH_FRAME_INIT, &writer, PH_FRAME_LAYOUT, client->timeout_ms, frame_out);
    free(bytes);
    return status;
}

static ph_status take_layout(
    struct ph_hub_client *client, size_t num_keys, const struct ph_control_frame *frame)
{
    uint64_t *iterations = calloc(num_keys, sizeof *iterations);
    client->keys = calloc(num_keys, sizeof *client->keys);
    if (iterations == NULL || client->keys == NULL) {
        free(iterations);
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    }
    const ph_status status = ph__get_layout(frame->body, frame->size, num_keys, &client->job, iterations);
    for (size_t i = 0; status == PH_OK && i < num_keys; i++)
        client->keys[i].pushed = iterations[i];
    free(iterations);
    client->waiter.is_crowded = client->job.is_crowded;
    return status;
}

static ph_status take_job(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys,
    const struct ph_control_frame *frame)
{
    ph_status status = take_layout(client, num_keys, frame);
    if (status == PH_OK)
        status = make_layout(client, keys, num_keys);
    if (status == PH_OK)
        status = find_cores(client);
    if (status == PH_OK)
        return make_links(client, frame->descriptors, frame->num_descriptors);
    for (size_t i = 0; i < frame->num_descriptors; i++)
        close(frame->descriptors[i]);
    return status;
}

/* Rank 0 says what the parameters are to begin with. */
static ph_status assign(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    for (size_t i = 0; i < num_keys; i++) {
        if (keys[i].initial == NULL)
            continue;
        memcpy(client->gradients[0] + client->layout->keys[i].gradient_offset, keys[i].initial,
            keys[i].num_elements * ph_dtype_size(keys[i].dtype));
        PH_TRY(ph__client_begin(client, i, PH_HUB_ASSIGN));
    }
    return ph_hub_wait_all(client);
}

static ph_status begin(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    struct ph_control_frame frame;
    PH_TRY(ph__client_request(
        client->stream, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN, client->timeout_ms, &frame));
    if (client->rank == 0 && !client->job.is_restored)
        PH_TRY(assign(client, keys, num_keys));
    PH_TRY(
        ph__client_request(client->stream, PH_FRAME_ASSIGNED, NULL, PH_FRAME_GO, client->timeout_ms, &frame));
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(ph__client_begin(client, i, PH_HUB_PULL));
    return ph_hub_wait_all(client);
}

ph_status ph_hub_init(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, uint64_t *iteration_out)
{
    struct ph_control_frame frame;
    if (client->layout != NULL)
        return ph_fail(PH_ERROR_USAGE, "keys are initialised once");
    PH_TRY(tell_keys(client, keys, num_keys, &frame));
    PH_TRY(take_job(client, keys, num_keys, &frame));
    PH_TRY(ph__client_engine_create(client, !client->is_shared && !client->has_no_thread, &client->engine));
    PH_TRY(begin(client, keys, num_keys));
    if (iteration_out != NULL) {
        *iteration_out = client->keys[0].pushed;
        for (size_t i = 1; i < num_keys; i++)
            *iteration_out =
                client->keys[i].pushed < *iteration_out ? client->keys[i].pushed : *iteration_out;
    }
    return PH_OK;
}

/* ---- leaving ---- */

ph_status ph_hub_leave(struct ph_hub_client *client)
{
    struct ph_control_frame frame;
    PH_TRY(ph_hub_wait_all(client));
    client->has_left = true;
    return ph__client_request(
        client->stream, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER, client->timeout_ms, &frame);
}

void ph_hub_client_destroy(struct ph_hub_client *client)
{
    if (client == NULL)
        return;
    ph__client_engine_destroy(client->engine);
    for (uint16_t core = 0; client->links != NULL && core < client->job.num_cores; core++)
        ph__link_destroy(client->links[core]);
    ph__control_stream_destroy(client->stream);
    ph__region_close(&client->region);
    ph__region_close(&client->results);
    if (client->secret != NULL)
        ph__secret_fini(client->secret);
    free(client->secret);
    free(client->address);
    ph__layout_destroy(client->layout);
    free(client->links);
    free(client->learning_rates);
    free(client->core_of_chunk);
    free(client->keys);
    free(client);
}
