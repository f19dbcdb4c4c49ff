/* What a worker does between joining its job and pushing: keys, links and first parameters. See phloem/hub.h and protocol.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hub/client/client_engine.h"

/* ---- what hubs say of the job ---- */

static ph_status tell_keys(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    const size_t capacity = num_keys * PH_HUB_KEY_BYTES;
    if (keys == NULL && num_keys > 0)
        return ph_fail(PH_ERROR_USAGE, "%zu keys, but keys is NULL", num_keys);
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys; there are 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, capacity);
    ph__put_keys(&writer, keys, num_keys);
    const bool is_asked = client->rank == 0 && client->list.num_hubs > 1; /* what to go on from */
    ph_status status =
        ph__client_ask_all(client, PH_FRAME_INIT, &writer, is_asked ? PH_FRAME_PARTS : PH_FRAME_LAYOUT);
    free(bytes);
    if (status == PH_OK && is_asked)
        status = ph__client_choose_parts(client);
    return status;
}

static ph_status take_layouts(struct ph_hub_client *client, size_t num_keys)
{
    client->keys = calloc(num_keys, sizeof *client->keys);
    if (client->keys == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        client->waiter.is_crowded |= client->hubs[hub].job.is_crowded;
    for (size_t i = 0; i < num_keys; i++)
        client->keys[i].pushed = client->hubs[0].job.iteration;
    return PH_OK;
}

/* Parts of one job ... */
static ph_status check_chunk_bytes(const struct ph_hub_client *client)
{
    const uint32_t wanted = client->hubs[0].job.chunk_bytes;
    for (uint16_t hub = 1; hub < client->list.num_hubs; hub++) {
        if (client->hubs[hub].job.chunk_bytes != wanted)
            return ph_fail(PH_ERROR_PEER,
                "hub %s has chunks of %u bytes and hub %s of %u: the service can name a size for all",
                client->list.addresses[0], wanted, client->list.addresses[hub],
                client->hubs[hub].job.chunk_bytes);
    }
    return PH_OK;
}

/* ... and of one moment of it. */
static ph_status check_moment(const struct ph_hub_client *client, uint16_t index)
{
    const struct ph_client_hub *first = &client->hubs[0], *hub = &client->hubs[index];
    const char *first_name = client->list.addresses[0], *name = client->list.addresses[index];
    if (hub->num_chunks == 0)
        return PH_OK;
    if (hub->job.iteration != first->job.iteration)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "hub %s has parameters of iteration %" PRIu64 " and hub %s of iteration %" PRIu64
            ": these cannot go on together",
            first_name, first->job.iteration, name, hub->job.iteration);
    if (hub->job.is_restored != first->job.is_restored)
        return ph_fail(PH_ERROR_CHECKPOINT, "hub %s goes on from a checkpoint and hub %s has none",
            first->job.is_restored ? first_name : name, first->job.is_restored ? name : first_name);
    return PH_OK;
}

/* ---- links ---- */

static ph_status make_layout(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    struct ph_layout_key *wanted = calloc(num_keys, sizeof *wanted);
    if (wanted == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    for (size_t i = 0; i < num_keys; i++)
        wanted[i] = (struct ph_layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    const ph_status status =
        ph__layout_create(wanted, num_keys, client->hubs[0].job.chunk_bytes, &client->layout);
    free(wanted);
    return status;
}

static ph_status make_links(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, size_t *num_taken_out)
{
    PH_TRY(take_layouts(client, num_keys));
    PH_TRY(check_chunk_bytes(client));
    PH_TRY(make_layout(client, keys, num_keys));
    PH_TRY(ph__client_find_links(client));
    for (uint16_t hub = 1; hub < client->list.num_hubs; hub++)
        PH_TRY(check_moment(client, hub));
    client->is_restored = client->hubs[0].job.is_restored;
    return ph__client_make_links(client, num_taken_out);
}

/* Takes what the hubs have answered. Descriptors come from one that is alone. */
static ph_status take_job(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    const struct ph_control_frame *frame = &client->hubs[0].frame;
    size_t num_taken = 0;
    const ph_status status = make_links(client, keys, num_keys, &num_taken);
    for (size_t i = num_taken; i < frame->num_descriptors; i++)
        close(frame->descriptors[i]);
    return status;
}

/* ---- the beginning ---- */

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
    PH_TRY(ph__client_ask_all(client, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN));
    if (client->rank == 0 && !client->is_restored)
        PH_TRY(assign(client, keys, num_keys));
    PH_TRY(ph__client_ask_all(client, PH_FRAME_ASSIGNED, NULL, PH_FRAME_GO));
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(ph__client_begin(client, i, PH_HUB_PULL));
    return ph_hub_wait_all(client);
}

ph_status ph_hub_init(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, uint64_t *iteration_out)
{
    if (client->keys != NULL)
        return ph_fail(PH_ERROR_USAGE, "keys are initialised once");
    PH_TRY(tell_keys(client, keys, num_keys));
    PH_TRY(take_job(client, keys, num_keys));
    for (size_t i = 0; i < num_keys; i++)
        client->keys[i].optimizer = keys[i].optimizer;
    PH_TRY(ph__client_engine_create(client, !client->is_shared && !client->has_no_thread, &client->engine));
    PH_TRY(begin(client, keys, num_keys));
    if (iteration_out != NULL)
        *iteration_out = client->hubs[0].job.iteration;
    return PH_OK;
}
