/* Bodies of control frames, those that workers read and those that hubs read: an input says of which kind it
 * is and then is the body, or where it is AS_SENT the edits (fuzz_edit) of one that is made here, so that it
 * does not go stale. What a reader takes keeps the limits that the rest counts on, and is the same when it is
 * written again. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hub/wire/part_list.h"
#include "hub/wire/protocol.h"
#include "support/fuzz_support.h"

enum { MAX_BODY = 16384, AS_SENT = 128 };

/* Reads a body, and writes what it was. false: it was refused. */
typedef bool (*pass_function)(const void *body, size_t size, struct ph__wire_writer *writer);

static bool pass_hello(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__hello hello;
    if (ph__get_hello(body, size, &hello) != PH_OK)
        return false;
    ph__put_hello(writer, &hello);
    return true;
}

static bool pass_challenge(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__server_challenge challenge;
    if (ph__get_server_challenge(body, size, &challenge) != PH_OK)
        return false;
    ph__put_server_challenge(writer, &challenge);
    return true;
}

static bool pass_attach(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__attach attach;
    if (ph__get_attach(body, size, &attach) != PH_OK)
        return false;
    ph__put_attach(writer, &attach);
    return true;
}

static bool pass_welcome(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__welcome welcome;
    if (ph__get_welcome(body, size, &welcome) != PH_OK)
        return false;
    fuzz_require(strlen(welcome.local_socket) <= PH_HUB_MAX_SOCKET_NAME);
    ph__put_welcome(writer, &welcome);
    return true;
}

static bool pass_answer(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__answer answer;
    if (ph__get_answer(body, size, &answer) != PH_OK)
        return false;
    fuzz_require(answer.status <= 0 && strlen(answer.text) <= PH_HUB_MAX_TEXT);
    ph__put_answer(writer, answer.status, answer.text);
    return true;
}

static bool pass_service(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__service_settings settings;
    if (ph__get_service(body, size, &settings) != PH_OK)
        return false;
    fuzz_require(ph__service_check(&settings.service) == PH_OK);
    fuzz_require(ph__service_check_share(&settings.service, &settings.share) == PH_OK);
    fuzz_require(settings.service.name == settings.name && settings.service.depth >= 1);
    ph__put_service(writer, &settings.service, &settings.share);
    return true;
}

static bool pass_join(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__join join;
    if (ph__get_join(body, size, &join) != PH_OK)
        return false;
    fuzz_require(strlen(join.name) <= PH_HUB_MAX_NAME && join.rank < PH_HUB_MAX_WORKERS);
    fuzz_require(join.share.hub < join.share.num_hubs && join.share.num_hubs <= PH_HUB_MAX_HUBS);
    ph__put_join(writer, &join);
    return true;
}

static bool pass_joined(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__joined joined;
    if (ph__get_joined(body, size, &joined) != PH_OK)
        return false;
    fuzz_require(joined.num_workers >= 1 && joined.num_workers <= PH_HUB_MAX_WORKERS);
    fuzz_require(joined.depth >= 1 && joined.depth <= 2);
    fuzz_require(joined.num_optimizers >= 1 && joined.num_optimizers <= PH_HUB_MAX_OPTIMIZERS);
    ph__put_joined(writer, &joined);
    return true;
}

static bool pass_status(const void *body, size_t size, struct ph__wire_writer *writer)
{
    char service[PH_HUB_MAX_NAME + 1];
    if (ph__get_service_name(body, size, service) != PH_OK)
        return false;
    fuzz_require(strlen(service) <= PH_HUB_MAX_NAME);
    ph__put_service_name(writer, service);
    return true;
}

static bool pass_keys(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__init_key *keys;
    size_t num_keys;
    if (ph__get_keys(body, size, &keys, &num_keys) != PH_OK)
        return false;
    fuzz_require(num_keys == size / PH_HUB_KEY_BYTES);
    for (size_t i = 0; i < num_keys; i++) {
        const struct ph_hub_key key = {
            .num_elements = keys[i].num_elements, .dtype = keys[i].dtype, .optimizer = keys[i].optimizer};
        ph__put_keys(writer, &key, 1);
    }
    free(keys);
    return true;
}

static bool pass_iteration(const void *body, size_t size, struct ph__wire_writer *writer)
{
    uint64_t iteration;
    if (ph__get_iteration(body, size, &iteration) != PH_OK)
        return false;
    fuzz_require(iteration <= PH_HUB_MAX_ITERATION || iteration == PH_NO_ITERATION);
    ph__put_iteration(writer, iteration);
    return true;
}

static bool pass_parts(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__parts parts, rebuilt;
    if (ph__get_parts(body, size, &parts) != PH_OK)
        return false;
    fuzz_require(parts.num_open <= PH_HUB_MAX_OPEN_PARTS);
    rebuilt = parts;
    ph__parts_keep(&rebuilt, PH_NO_ITERATION, 0);
    for (size_t i = 0; i < parts.num_open; i++)
        fuzz_require(ph__parts_has(&rebuilt, parts.open[i]));
    ph__put_parts(writer, &parts);
    return true;
}

/* Whatever a hub says, there is an answer that it can read: of iterations that can be told. */
static bool pass_saved(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__saved saved;
    struct ph__wire_writer answer;
    unsigned char bytes[PH_HUB_MAX_BODY];
    uint64_t slack = 1;
    if (ph__get_saved(body, size, &saved) != PH_OK)
        return false;
    struct ph__keep keep = ph__parts_decide(&saved, 1, &slack);
    ph__wire_writer_init(&answer, bytes, sizeof bytes);
    ph__put_keep(&answer, &keep);
    fuzz_require(ph__get_keep(bytes, answer.used, &keep) == PH_OK);
    ph__put_saved(writer, &saved);
    return true;
}

static bool pass_keep(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__keep keep;
    if (ph__get_keep(body, size, &keep) != PH_OK)
        return false;
    ph__put_keep(writer, &keep);
    return true;
}

static bool pass_layout(const void *body, size_t size, struct ph__wire_writer *writer)
{
    struct ph__job_layout layout;
    if (ph__get_layout(body, size, &layout) != PH_OK)
        return false;
    fuzz_require(layout.num_cores > 0 && layout.num_versions >= 1 && layout.num_versions <= 2);
    fuzz_require(layout.ring_capacity >= 4 && (layout.ring_capacity & (layout.ring_capacity - 1)) == 0);
    fuzz_require(
        layout.ring_capacity <= PH_HUB_MAX_RING_CAPACITY && layout.iteration <= PH_HUB_MAX_ITERATION);
    fuzz_require(layout.chunk_bytes > 0 && layout.chunk_bytes <= PH_HUB_MAX_CHUNK_BYTES);
    fuzz_require(layout.chunk_bytes % PH_ALIGNMENT == 0);
    ph__put_layout(writer, &layout);
    return true;
}

/* ---- bodies as they are sent ---- */

static void write_service(struct ph__wire_writer *writer)
{
    static const struct ph__hub_share second = {.hub = 1, .num_hubs = 2};
    static const struct ph_hub_optimizer optimizers[] = {{.rule.kind = PH_ADAM,
                                                             .learning_rate = .1F,
                                                             .rule.beta1 = .9F,
                                                             .rule.beta2 = .99F,
                                                             .rule.epsilon = 1e-8F},
        {.is_none = true}};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "job",
        .nonce = 7,
        .num_workers = 2,
        .chunk_bytes = 4096,
        .checkpoint_every = 5,
        .optimizers = optimizers,
        .num_optimizers = 2};
    ph__put_service(writer, &service, &second);
}

static void write_join(struct ph__wire_writer *writer)
{
    const struct ph__join join = {.name = "job", .nonce = 7, .rank = 1, .share.num_hubs = 1};
    ph__put_join(writer, &join);
}

static void write_keys(struct ph__wire_writer *writer)
{
    static const struct ph_hub_key keys[] = {{.num_elements = 1000}, {.num_elements = 9, .dtype = PH_BF16}};
    ph__put_keys(writer, keys, sizeof keys / sizeof *keys);
}

static void write_layout(struct ph__wire_writer *writer)
{
    static const struct ph__job_layout layout = {
        .chunk_bytes = 4096, .num_versions = 1, .ring_capacity = 64, .num_cores = 2};
    ph__put_layout(writer, &layout);
}

static void write_welcome(struct ph__wire_writer *writer)
{
    static const struct ph__welcome welcome = {.local_socket = "phloem-hub-0"};
    ph__put_welcome(writer, &welcome);
}

static void write_saved(struct ph__wire_writer *writer)
{
    static const struct ph__saved saved = {.parts = {.kept = 3, .num_open = 2, .open = {6, 9}},
        .most = 10,
        .settled_end = 10,
        .every = 3,
        .is_late = true};
    ph__put_saved(writer, &saved);
}

static void write_keep(struct ph__wire_writer *writer)
{
    static const struct ph__keep keep = {.iteration = 9, .settled_end = 10, .next = 12};
    ph__put_keep(writer, &keep);
}

static void write_small(struct ph__wire_writer *writer, pass_function pass)
{
    static const struct ph__hello hello = {.api_version = PH_HUB_API_VERSION};
    static const struct ph__server_challenge challenge;
    static const struct ph__attach attach;
    static const struct ph__joined joined = {.num_workers = 2, .depth = 1, .num_optimizers = 1};
    static const struct ph__parts parts = {.kept = PH_NO_ITERATION, .num_open = 1, .open = {6}};
    if (pass == pass_hello)
        ph__put_hello(writer, &hello);
    else if (pass == pass_challenge)
        ph__put_server_challenge(writer, &challenge);
    else if (pass == pass_attach)
        ph__put_attach(writer, &attach);
    else if (pass == pass_joined)
        ph__put_joined(writer, &joined);
    else if (pass == pass_answer)
        ph__put_answer(writer, PH_ERROR_USAGE, "no");
    else if (pass == pass_status)
        ph__put_service_name(writer, "job");
    else if (pass == pass_iteration)
        ph__put_iteration(writer, 6);
    else if (pass == pass_parts)
        ph__put_parts(writer, &parts);
}

static void write_body(struct ph__wire_writer *writer, pass_function pass)
{
    if (pass == pass_service)
        write_service(writer);
    else if (pass == pass_join)
        write_join(writer);
    else if (pass == pass_keys)
        write_keys(writer);
    else if (pass == pass_layout)
        write_layout(writer);
    else if (pass == pass_welcome)
        write_welcome(writer);
    else if (pass == pass_saved)
        write_saved(writer);
    else if (pass == pass_keep)
        write_keep(writer);
    else
        write_small(writer, pass);
}

static const pass_function passes[] = {pass_hello, pass_challenge, pass_attach, pass_welcome, pass_answer,
    pass_service, pass_join, pass_joined, pass_status, pass_keys, pass_layout, pass_iteration, pass_parts,
    pass_saved, pass_keep};

/* The same bytes, but for flags of any value but 0, and a depth of 0, which are written as 1; and what a
 * service says and does not use, which is written as 0. */
static void check(pass_function pass, const uint8_t *body, size_t size)
{
    unsigned char written[MAX_BODY];
    struct ph__wire_writer writer;
    size_t written_size;
    ph__wire_writer_init(&writer, written, sizeof written);
    if (size > sizeof written || !pass(body, size, &writer))
        return;
    fuzz_require(ph__wire_writer_finish(&writer, "body", &written_size) == PH_OK && written_size == size);
    for (size_t i = 0; i < size; i++)
        fuzz_require(written[i] == body[i] || written[i] == 1 || (pass == pass_service && written[i] == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[MAX_BODY];
    struct ph__wire_writer writer;
    size_t unused, edited_size;
    if (size == 0)
        return 0;
    const pass_function pass = passes[(data[0] & (AS_SENT - 1)) % (sizeof passes / sizeof *passes)];
    if ((data[0] & AS_SENT) == 0) {
        check(pass, data + 1, size - 1);
        return 0;
    }
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    write_body(&writer, pass);
    uint8_t *edited =
        fuzz_edit((const char *)bytes, writer.used, data + 1, size - 1, 0, &unused, &edited_size);
    check(pass, edited, edited_size);
    free(edited);
    return 0;
}
