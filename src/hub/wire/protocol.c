/* Writes and reads frames; see protocol.h. */
#include "hub/wire/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/utf8.h"
#include "hub/layout/job_memory.h"
#include "hub/layout/layout.h"

ph_status ph__body_finish(const struct ph__wire_reader *reader, const char *what)
{
    return ph__wire_reader_finish(reader, what) == PH_OK ? PH_OK : PH_ERROR_PEER;
}

/* ---- greeting ---- */

void ph__put_hello(struct ph__wire_writer *writer, const struct ph__hello *hello)
{
    ph__wire_put_u32(writer, PH_HUB_MAGIC);
    ph__wire_put_u16(writer, hello->api_version);
    ph__wire_put_bytes(writer, hello->nonce, sizeof hello->nonce);
}

ph_status ph__get_hello(const void *body, size_t size, struct ph__hello *hello_out)
{
    struct ph__wire_reader reader;
    struct ph__hello hello;
    ph__wire_reader_init(&reader, body, size);
    const uint32_t magic = ph__wire_get_u32(&reader);
    hello.api_version = ph__wire_get_u16(&reader);
    ph__wire_get_bytes(&reader, sizeof hello.nonce, hello.nonce);
    PH_TRY(ph__body_finish(&reader, "hello"));
    if (magic != PH_HUB_MAGIC)
        return ph_fail(PH_ERROR_PEER, "the peer does not speak the parameter hub's protocol");
    if (hello.api_version != PH_HUB_API_VERSION)
        return ph_fail(PH_ERROR_PEER,
            "the worker has version %u of the hub's interface and the hub version %d: use one version",
            hello.api_version, PH_HUB_API_VERSION);
    *hello_out = hello;
    return PH_OK;
}

void ph__put_server_challenge(struct ph__wire_writer *writer, const struct ph__server_challenge *challenge)
{
    ph__wire_put_bytes(writer, challenge->nonce, sizeof challenge->nonce);
    ph__wire_put_bytes(writer, challenge->proof, sizeof challenge->proof);
}

ph_status ph__get_server_challenge(const void *body, size_t size, struct ph__server_challenge *challenge_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_bytes(&reader, sizeof challenge_out->nonce, challenge_out->nonce);
    ph__wire_get_bytes(&reader, sizeof challenge_out->proof, challenge_out->proof);
    return ph__body_finish(&reader, "challenge");
}

ph_status ph__get_proof(const void *body, size_t size, unsigned char proof_out[PH_PROOF_BYTES])
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_bytes(&reader, PH_PROOF_BYTES, proof_out);
    return ph__body_finish(&reader, "proof");
}

void ph__put_attach(struct ph__wire_writer *writer, const struct ph__attach *attach)
{
    ph__wire_put_u64(writer, attach->token);
    ph__wire_put_u16(writer, attach->core);
}

ph_status ph__get_attach(const void *body, size_t size, struct ph__attach *attach_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    attach_out->token = ph__wire_get_u64(&reader);
    attach_out->core = ph__wire_get_u16(&reader);
    return ph__body_finish(&reader, "attach");
}

void ph__put_welcome(struct ph__wire_writer *writer, const struct ph__welcome *welcome)
{
    ph__wire_put_text(writer, welcome->local_socket, PH_HUB_MAX_SOCKET_NAME);
}

ph_status ph__get_welcome(const void *body, size_t size, struct ph__welcome *welcome_out)
{
    struct ph__wire_reader reader;
    struct ph__welcome welcome;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_text(&reader, PH_HUB_MAX_SOCKET_NAME, welcome.local_socket);
    PH_TRY(ph__body_finish(&reader, "welcome"));
    *welcome_out = welcome;
    return PH_OK;
}

/* Copies as much of the text as fits, with '?' for bytes that are not UTF-8 or are control characters: the
 * text may name files, whose names are any bytes. */
static void make_plain(const char *text, char plain_out[PH_HUB_MAX_TEXT + 1])
{
    const size_t length = strlen(text);
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code;
        const size_t size = ph__utf8_decode(text + at, length - at, &code);
        const bool is_plain = size > 0 && !ph__utf8_is_control(code);
        const size_t wanted = is_plain ? size : 1;
        if (used + wanted > PH_HUB_MAX_TEXT)
            break;
        memcpy(plain_out + used, is_plain ? text + at : "?", wanted);
        used += wanted;
        at += size > 0 ? size : 1;
    }
    plain_out[used] = '\0';
}

void ph__put_answer(struct ph__wire_writer *writer, ph_status status, const char *text)
{
    char plain[PH_HUB_MAX_TEXT + 1];
    make_plain(text, plain);
    ph__wire_put_u32(writer, (uint32_t)-status);
    ph__wire_put_text(writer, plain, PH_HUB_MAX_TEXT);
}

static bool is_status(uint32_t number)
{
#define CASE(name, value, exit_code, message) \
    if (number == -(value))                   \
        return true;
    PH_STATUS_LIST(CASE)
#undef CASE
    return false;
}

ph_status ph__get_answer(const void *body, size_t size, struct ph__answer *answer_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    const uint32_t number = ph__wire_get_u32(&reader);
    ph__wire_get_text(&reader, PH_HUB_MAX_TEXT, answer_out->text);
    PH_TRY(ph__body_finish(&reader, "answer"));
    if (!is_status(number))
        return ph_fail(PH_ERROR_PEER, "the peer sent an answer with the unknown status %u", number);
    if (number != 0 && answer_out->text[0] == '\0')
        return ph_fail(PH_ERROR_PEER, "the peer reports status %u without a reason", number);
    answer_out->status = -(ph_status)number;
    return PH_OK;
}

ph_status ph__get_failure(const void *body, size_t size, struct ph__answer *answer_out)
{
    PH_TRY(ph__get_answer(body, size, answer_out));
    return answer_out->status != PH_OK ? PH_OK
                                       : ph_fail(PH_ERROR_PEER, "the peer reports a failure with status 0");
}

/* ---- services ---- */

static void put_share(struct ph__wire_writer *writer, const struct ph__hub_share *share)
{
    ph__wire_put_u16(writer, share->hub);
    ph__wire_put_u16(writer, share->num_hubs);
}

static struct ph__hub_share get_share(struct ph__wire_reader *reader)
{
    const uint16_t hub = ph__wire_get_u16(reader);
    return (struct ph__hub_share){.hub = hub, .num_hubs = ph__wire_get_u16(reader)};
}

static void put_optimizer(struct ph__wire_writer *writer, const struct ph_hub_optimizer *optimizer)
{
    ph__wire_put_u8(writer, optimizer->is_none);
    ph__wire_put_u8(writer, (uint8_t)optimizer->rule.kind);
    ph__wire_put_u8(writer, optimizer->rule.is_nesterov);
    ph__wire_put_f32(writer, optimizer->learning_rate);
    ph__wire_put_f32(writer, (float)optimizer->rule.momentum);
    ph__wire_put_f32(writer, (float)optimizer->rule.beta1);
    ph__wire_put_f32(writer, (float)optimizer->rule.beta2);
    ph__wire_put_f32(writer, (float)optimizer->rule.epsilon);
    ph__wire_put_f32(writer, optimizer->l2);
    ph__wire_put_f32(writer, (float)optimizer->rule.weight_decay);
}

static struct ph_hub_optimizer get_optimizer(struct ph__wire_reader *reader)
{
    struct ph_hub_optimizer optimizer = {0};
    optimizer.is_none = ph__wire_get_u8(reader) != 0;
    optimizer.rule.kind = (enum ph_optimizer_kind)ph__wire_get_u8(reader);
    optimizer.rule.is_nesterov = ph__wire_get_u8(reader) != 0;
    optimizer.learning_rate = ph__wire_get_f32(reader);
    optimizer.rule.momentum = (double)ph__wire_get_f32(reader);
    optimizer.rule.beta1 = (double)ph__wire_get_f32(reader);
    optimizer.rule.beta2 = (double)ph__wire_get_f32(reader);
    optimizer.rule.epsilon = (double)ph__wire_get_f32(reader);
    optimizer.l2 = ph__wire_get_f32(reader);
    optimizer.rule.weight_decay = (double)ph__wire_get_f32(reader);
    return optimizer;
}

void ph__put_service(
    struct ph__wire_writer *writer, const struct ph_hub_service *service, const struct ph__hub_share *share)
{
    ph__wire_put_text(writer, service->name, PH_HUB_MAX_NAME);
    ph__wire_put_u64(writer, service->nonce);
    ph__wire_put_u32(writer, service->num_workers);
    ph__wire_put_u8(writer, (uint8_t)service->mode);
    ph__wire_put_u32(writer, service->staleness);
    ph__wire_put_u8(writer, (uint8_t)service->order);
    ph__wire_put_u8(writer, (uint8_t)service->on_death);
    ph__wire_put_u8(writer, service->is_mean);
    ph__wire_put_f32(writer, service->clip_norm);
    ph__wire_put_u32(writer, service->chunk_bytes);
    ph__wire_put_u32(writer, service->depth);
    ph__wire_put_u64(writer, service->checkpoint_every);
    ph__wire_put_u8(writer, (uint8_t)service->num_optimizers);
    for (size_t i = 0; i < service->num_optimizers; i++)
        put_optimizer(writer, &service->optimizers[i]);
    put_share(writer, share);
}

ph_status ph__get_service(const void *body, size_t size, struct ph__service_settings *settings_out)
{
    struct ph__service_settings settings;
    struct ph_hub_service *service = &settings.service;
    service->size = sizeof *service;
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_text(&reader, PH_HUB_MAX_NAME, settings.name);
    service->nonce = ph__wire_get_u64(&reader);
    service->num_workers = ph__wire_get_u32(&reader);
    service->mode = (enum ph_hub_mode)ph__wire_get_u8(&reader);
    service->staleness = ph__wire_get_u32(&reader);
    service->order = (enum ph_hub_order)ph__wire_get_u8(&reader);
    service->on_death = (enum ph_hub_on_death)ph__wire_get_u8(&reader);
    service->is_mean = ph__wire_get_u8(&reader) != 0;
    service->clip_norm = ph__wire_get_f32(&reader);
    service->chunk_bytes = ph__wire_get_u32(&reader);
    service->depth = ph__wire_get_u32(&reader);
    service->checkpoint_every = ph__wire_get_u64(&reader);
    service->num_optimizers = ph__wire_get_u8(&reader);
    for (size_t i = 0; i < service->num_optimizers && i < PH_HUB_MAX_OPTIMIZERS; i++)
        settings.optimizers[i] = get_optimizer(&reader);
    const struct ph__hub_share share = get_share(&reader);
    PH_TRY(ph__body_finish(&reader, "service"));
    service->name = settings.name;
    service->optimizers = settings.optimizers;
    PH_TRY(ph__service_check(service));
    PH_TRY(ph__service_check_share(service, &share));
    ph__service_copy(service, &share, settings_out);
    return PH_OK;
}

/* ---- joining ---- */

void ph__put_join(struct ph__wire_writer *writer, const struct ph__join *join)
{
    ph__wire_put_text(writer, join->name, PH_HUB_MAX_NAME);
    ph__wire_put_u64(writer, join->nonce);
    ph__wire_put_u32(writer, join->rank);
    ph__wire_put_u8(writer, (uint8_t)join->way);
    ph__wire_put_u8(writer, join->has_own_parameters);
    put_share(writer, &join->share);
}

ph_status ph__get_join(const void *body, size_t size, struct ph__join *join_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_text(&reader, PH_HUB_MAX_NAME, join_out->name);
    join_out->nonce = ph__wire_get_u64(&reader);
    join_out->rank = ph__wire_get_u32(&reader);
    const uint8_t way = ph__wire_get_u8(&reader);
    join_out->has_own_parameters = ph__wire_get_u8(&reader) != 0;
    join_out->share = get_share(&reader);
    PH_TRY(ph__body_finish(&reader, "join"));
    const struct ph__hub_share *share = &join_out->share;
    if (way >= PH_WAY_COUNT)
        return ph_fail(PH_ERROR_PEER, "a worker joins in the unknown way %u", way);
    if (join_out->rank >= PH_HUB_MAX_WORKERS)
        return ph_fail(PH_ERROR_PEER, "a worker joins with rank %u, which is too large", join_out->rank);
    if (share->hub >= share->num_hubs || share->num_hubs > PH_HUB_MAX_HUBS)
        return ph_fail(PH_ERROR_PEER, "a worker joins at the invalid hub %u of %u, counted from 0",
            share->hub, share->num_hubs);
    join_out->way = (enum ph__way)way;
    return PH_OK;
}

void ph__put_joined(struct ph__wire_writer *writer, const struct ph__joined *joined)
{
    ph__wire_put_u32(writer, joined->num_workers);
    ph__wire_put_u32(writer, joined->depth);
    ph__wire_put_u32(writer, joined->num_optimizers);
    ph__wire_put_u8(writer, joined->has_own_parameters);
}

ph_status ph__get_joined(const void *body, size_t size, struct ph__joined *joined_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    joined_out->num_workers = ph__wire_get_u32(&reader);
    joined_out->depth = ph__wire_get_u32(&reader);
    joined_out->num_optimizers = ph__wire_get_u32(&reader);
    joined_out->has_own_parameters = ph__wire_get_u8(&reader) != 0;
    PH_TRY(ph__body_finish(&reader, "joined"));
    if (joined_out->num_workers < 1 || joined_out->num_workers > PH_HUB_MAX_WORKERS ||
        joined_out->depth < 1 || joined_out->depth > PH_HUB_MAX_DEPTH || joined_out->num_optimizers < 1 ||
        joined_out->num_optimizers > PH_HUB_MAX_OPTIMIZERS)
        return ph_fail(PH_ERROR_PEER,
            "the hub sent invalid settings: %u workers, a depth of %u, %u optimizers",
            joined_out->num_workers, joined_out->depth, joined_out->num_optimizers);
    return PH_OK;
}

/* ---- a service's name ---- */

void ph__put_service_name(struct ph__wire_writer *writer, const char *service)
{
    ph__wire_put_text(writer, service, PH_HUB_MAX_NAME);
}

ph_status ph__get_service_name(const void *body, size_t size, char service_out[PH_HUB_MAX_NAME + 1])
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    ph__wire_get_text(&reader, PH_HUB_MAX_NAME, service_out);
    return ph__body_finish(&reader, "service's name");
}

/* ---- keys and layouts ---- */

void ph__put_keys(struct ph__wire_writer *writer, const struct ph_hub_key *keys, size_t num_keys)
{
    for (size_t i = 0; i < num_keys; i++) {
        ph__wire_put_u64(writer, keys[i].num_elements);
        ph__wire_put_u8(writer, (uint8_t)keys[i].dtype);
        ph__wire_put_u32(writer, keys[i].optimizer);
    }
}

ph_status ph__get_keys(const void *body, size_t size, struct ph__init_key **keys_out, size_t *num_keys_out)
{
    struct ph__wire_reader reader;
    const size_t num_keys = size / PH_HUB_KEY_BYTES;
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys: a job must have 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    struct ph__init_key *keys = calloc(num_keys, sizeof *keys);
    if (keys == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    ph__wire_reader_init(&reader, body, size);
    for (size_t i = 0; i < num_keys; i++) {
        keys[i].num_elements = ph__wire_get_u64(&reader);
        keys[i].dtype = (enum ph_dtype)ph__wire_get_u8(&reader);
        keys[i].optimizer = ph__wire_get_u32(&reader);
    }
    const ph_status status = ph__body_finish(&reader, "keys");
    if (status != PH_OK) {
        free(keys);
        return status;
    }
    *keys_out = keys;
    *num_keys_out = num_keys;
    return PH_OK;
}

struct ph__layout_key *ph__layout_keys(const struct ph__init_key *keys, size_t num_keys)
{
    struct ph__layout_key *wanted = calloc(num_keys, sizeof *wanted);
    for (size_t i = 0; wanted != NULL && i < num_keys; i++)
        wanted[i] = (struct ph__layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    return wanted;
}

void ph__put_layout(struct ph__wire_writer *writer, const struct ph__job_layout *layout)
{
    ph__wire_put_u32(writer, layout->chunk_bytes);
    ph__wire_put_u32(writer, layout->num_versions);
    ph__wire_put_u32(writer, layout->ring_capacity);
    ph__wire_put_u16(writer, layout->num_cores);
    ph__wire_put_u8(writer, layout->is_restored);
    ph__wire_put_u8(writer, layout->is_crowded);
    ph__wire_put_u64(writer, layout->cores_sum);
    ph__wire_put_u64(writer, layout->token);
    ph__wire_put_u64(writer, layout->iteration);
    for (uint16_t core = 0; core < layout->num_cores; core++)
        ph__wire_put_text(writer, layout->hosts[core], PH_HOST_BYTES - 1);
}

static bool is_ring_capacity(uint32_t capacity)
{
    return capacity >= 4 && capacity <= PH_HUB_MAX_RING_CAPACITY && (capacity & (capacity - 1)) == 0;
}

static ph_status check_layout(const struct ph__job_layout *layout)
{
    if (layout->num_cores == 0 || layout->num_cores > PH_HUB_MAX_CORES || layout->num_versions < 1 ||
        layout->num_versions > PH_HUB_MAX_DEPTH || !is_ring_capacity(layout->ring_capacity) ||
        layout->iteration > PH_HUB_MAX_ITERATION)
        return ph_fail(PH_ERROR_PEER, "the hub sent an invalid layout of the job");
    if (layout->chunk_bytes == 0 || layout->chunk_bytes > PH_HUB_MAX_CHUNK_BYTES ||
        layout->chunk_bytes % PH_ALIGNMENT != 0)
        return ph_fail(PH_ERROR_PEER, "the hub sent an invalid chunk size of %u bytes", layout->chunk_bytes);
    for (uint16_t core = 0; core < layout->num_cores; core++) {
        if (layout->hosts[core][0] != '\0' && !ph__is_host(layout->hosts[core]))
            return ph_fail(PH_ERROR_PEER, "the hub sent '%s' as its address, which must be numeric",
                layout->hosts[core]);
    }
    return PH_OK;
}

ph_status ph__get_layout(const void *body, size_t size, struct ph__job_layout *layout_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    layout_out->chunk_bytes = ph__wire_get_u32(&reader);
    layout_out->num_versions = ph__wire_get_u32(&reader);
    layout_out->ring_capacity = ph__wire_get_u32(&reader);
    layout_out->num_cores = ph__wire_get_u16(&reader);
    layout_out->is_restored = ph__wire_get_u8(&reader) != 0;
    layout_out->is_crowded = ph__wire_get_u8(&reader) != 0;
    layout_out->cores_sum = ph__wire_get_u64(&reader);
    layout_out->token = ph__wire_get_u64(&reader);
    layout_out->iteration = ph__wire_get_u64(&reader);
    for (uint16_t core = 0; core < layout_out->num_cores && core < PH_HUB_MAX_CORES; core++)
        ph__wire_get_text(&reader, PH_HOST_BYTES - 1, layout_out->hosts[core]);
    PH_TRY(ph__body_finish(&reader, "layout"));
    return check_layout(layout_out);
}
