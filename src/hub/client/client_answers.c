/* What hubs say over a worker's links: answers to what was asked of them, each once. In the engine. */
#include "hub/client/client_engine.h"

/* Whether the operation in this slot asks for what the message is. */
static bool is_of(const struct ph_client_operation *operation, const struct ph_message *message)
{
    const uint8_t kind = atomic_load_explicit(&operation->kind, memory_order_relaxed);
    const bool wants_value = kind == PH_HUB_PULL || kind == PH_HUB_PUSHPULL;
    return wants_value == (message->kind == PH_HUB_VALUE) &&
           atomic_load_explicit(&operation->iteration, memory_order_relaxed) == message->iteration;
}

/* The slot of the operation that the message answers, as the chunk's own link may. */
static ph_status find_slot(
    const struct ph_client_end *end, const struct ph_message *message, uint32_t *slot_out)
{
    const struct ph_hub_client *client = end->client;
    const struct ph_client_key *key = &client->keys[client->layout->chunks[message->chunk].key];
    const uint8_t asked =
        client->link_of_chunk[message->chunk] == end->link ? client->asked[message->chunk] : 0;
    for (uint32_t slot = 0; slot < PH_CLIENT_MAX_OPERATIONS; slot++) {
        if ((asked & 1u << slot) != 0 && is_of(&key->operations[slot], message)) {
            *slot_out = slot;
            return PH_OK;
        }
    }
    return ph_fail(PH_ERROR_PEER, "the hub answers what was not asked: iteration %llu of chunk %u",
        (unsigned long long)message->iteration, message->chunk);
}

static ph_status place(
    void *context, const struct ph_message *message, size_t payload_bytes, void **memory_out)
{
    struct ph_client_end *end = context;
    const struct ph_hub_client *client = end->client;
    const bool is_value = message->kind == PH_HUB_VALUE;
    if ((!is_value && message->kind != PH_HUB_TAKEN) || message->chunk >= client->layout->sizes.num_chunks)
        return ph_fail(PH_ERROR_PEER, "the hub says something that makes no sense: kind %u of chunk %u",
            message->kind, message->chunk);
    const struct ph_chunk_place *chunk = &client->layout->chunks[message->chunk];
    PH_TRY(find_slot(end, message, &end->slot));
    if (payload_bytes != (is_value && !client->is_shared ? chunk->gradient_bytes : 0))
        return ph_fail(PH_ERROR_PEER, "the hub sends %zu bytes for chunk %u", payload_bytes, message->chunk);
    *memory_out = client->parameters[message->iteration % client->num_parameters] + chunk->gradient_offset;
    return PH_OK;
}

static ph_status arrived(void *context, const struct ph_message *message)
{
    const struct ph_client_end *end = context;
    struct ph_hub_client *client = end->client;
    struct ph_client_key *key = &client->keys[client->layout->chunks[message->chunk].key];
    struct ph_client_operation *operation = &key->operations[end->slot];
    client->asked[message->chunk] &= (uint8_t) ~(1u << end->slot);
    if (message->kind == PH_HUB_VALUE &&
        message->count < atomic_load_explicit(&operation->num_contributors, memory_order_relaxed))
        atomic_store_explicit(&operation->num_contributors, message->count, memory_order_relaxed);
    const uint32_t num_missing = atomic_fetch_sub_explicit(&operation->num_missing, 1, memory_order_release);
    ph__client_engine_count(client->engine, num_missing == 1);
    return PH_OK;
}

static void sent(void *context, const struct ph_message *message)
{
    (void)context;
    (void)message;
}

struct ph_link_owner ph__client_link_owner(struct ph_hub_client *client, uint32_t link)
{
    struct ph_client_end *end = &client->ends[link];
    *end = (struct ph_client_end){.client = client, .link = link};
    return (struct ph_link_owner){.context = end, .place = place, .arrived = arrived, .sent = sent};
}
