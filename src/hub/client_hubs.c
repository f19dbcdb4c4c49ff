/* What a worker says to all hubs of its job together: each hears it at once, and the answers may come in any order. */
#include <poll.h>

#include "base/clock.h"
#include "hub/client_greet.h"
#include "hub/client_state.h"

ph_status ph__client_name(const struct ph_hub_client *client, uint16_t hub, ph_status status)
{
    return ph__hub_list_name(&client->list, hub, status);
}

ph_status ph__client_tell_all(
    struct ph_hub_client *client, enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        client->hubs[hub].is_answered = false;
        PH_TRY(ph__client_name(client, hub, ph__client_put(client->hubs[hub].stream, type, body)));
    }
    return PH_OK;
}

ph_status ph__client_look_for_answer(struct ph_hub_client *client, uint16_t hub, enum ph_hub_frame answer)
{
    struct ph_client_hub *asked = &client->hubs[hub];
    for (;;) {
        PH_TRY(ph__client_look_for(asked->stream, answer, &asked->frame, &asked->is_answered));
        if (!asked->is_answered || asked->frame.type != PH_FRAME_SAVED)
            return PH_OK;
        asked->is_answered = false;
        PH_TRY(ph__client_take_saved(client, hub, &asked->frame));
    }
}

/* Takes what has come. */
static ph_status look_at_all(struct ph_hub_client *client, enum ph_hub_frame answer, bool *is_answered_out)
{
    *is_answered_out = true;
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        if (!client->hubs[i].is_answered)
            PH_TRY(ph__client_name(client, i, ph__client_look_for_answer(client, i, answer)));
        *is_answered_out &= client->hubs[i].is_answered;
    }
    return PH_OK;
}

/* What has not come in time: all but an ANSWER comes when all workers have asked for it. */
static ph_status give_up(const struct ph_hub_client *client, enum ph_hub_frame answer)
{
    if (answer == PH_FRAME_ANSWER)
        return ph_fail(PH_ERROR_PEER, "the hub does not answer");
    return ph_fail(PH_ERROR_PEER,
        "not all %u workers have initialised their keys within %u ms, or the hub stands still",
        client->joined.num_workers, client->timeout_ms);
}

/* Until one of them that have not answered has something to say. */
static ph_status wait_for_any(
    const struct ph_hub_client *client, enum ph_hub_frame answer, uint64_t deadline_ns)
{
    struct pollfd polled[PH_HUB_MAX_HUBS];
    nfds_t count = 0;
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        const struct ph_client_hub *hub = &client->hubs[i];
        if (hub->is_answered)
            continue;
        if (ph__clock_ns() >= deadline_ns)
            return ph__client_name(client, i, give_up(client, answer));
        polled[count++] = ph__client_polled(hub->stream);
    }
    poll(polled, count, ph__clock_ms_until(deadline_ns));
    return PH_OK;
}

ph_status ph__client_ask_all(struct ph_hub_client *client, enum ph_hub_frame type,
    const struct ph_wire_writer *body, enum ph_hub_frame answer)
{
    const uint64_t deadline_ns = ph__clock_deadline(client->timeout_ms);
    bool is_answered;
    PH_TRY(ph__client_tell_all(client, type, body));
    for (;;) {
        PH_TRY(look_at_all(client, answer, &is_answered));
        if (is_answered)
            return PH_OK;
        PH_TRY(wait_for_any(client, answer, deadline_ns));
    }
}
