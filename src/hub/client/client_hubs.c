/* What a worker and the hubs of its job say to each other: what it asks all of them each hears at once, and the answers may come in any
 * order; and what they say unasked, also while others have yet to answer. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"

ph_status ph__client_name(const struct ph_hub_client *client, uint16_t hub, ph_status status)
{
    return ph__hub_list_name(&client->list, hub, status);
}

/* ---- unasked ---- */

static ph_status take_unasked(
    struct ph_hub_client *client, uint16_t hub, const struct ph_control_frame *frame)
{
    struct ph_answer answer;
    ph__control_frame_close(frame);
    if (frame->type == PH_FRAME_SAVED)
        return ph__client_take_saved(client, hub, frame);
    if (frame->type != PH_FRAME_FAILED)
        return ph_fail(
            PH_ERROR_PEER, "the hub sends a message of type %u that was not asked for", frame->type);
    PH_TRY(ph__get_failure(frame->body, frame->size, &answer));
    return ph_fail(answer.status, "%s", answer.text);
}

static ph_status take_all_unasked(struct ph_hub_client *client, uint16_t hub)
{
    struct ph_control_frame frame;
    bool is_there = true;
    while (is_there) {
        PH_TRY(ph__control_stream_take(client->hubs[hub].stream, &frame, &is_there));
        if (is_there)
            PH_TRY(take_unasked(client, hub, &frame));
    }
    return PH_OK;
}

/* The last words of one that has gone say more than that it has. */
static ph_status listen(struct ph_hub_client *client, uint16_t hub)
{
    struct ph_control_stream *stream = client->hubs[hub].stream;
    char text[PH_HUB_MAX_TEXT + 1];
    (void)ph__control_stream_flush(stream); /* what is wrong with it, receiving tells */
    const ph_status received = ph__control_stream_receive(stream);
    if (received == PH_OK)
        return take_all_unasked(client, hub);
    snprintf(text, sizeof text, "%s",
        ph__control_stream_is_closed(stream) ? "the hub has ended" : ph_error_text());
    PH_TRY(take_all_unasked(client, hub));
    return ph_fail(received, "%s", text);
}

ph_status ph__client_look_at_hub(struct ph_hub_client *client, uint16_t hub)
{
    return ph__client_name(client, hub, listen(client, hub));
}

ph_status ph__client_look_at_hubs(struct ph_hub_client *client)
{
    client->num_turns = 0;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        PH_TRY(ph__client_look_at_hub(client, hub));
    return PH_OK;
}

ph_status ph__client_explain(struct ph_hub_client *client, ph_status status)
{
    char text[PH_HUB_MAX_TEXT + 1];
    if (status == PH_OK)
        return PH_OK;
    snprintf(text, sizeof text, "%s", ph_error_text());
    PH_TRY(ph__client_look_at_hubs(client));
    return ph_fail(status, "%s", text);
}

/* ---- asked ---- */

ph_status ph__client_tell_all(
    struct ph_hub_client *client, enum ph_hub_frame type, const struct ph_wire_writer *body)
{
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        client->hubs[hub].is_answered = false;
        PH_TRY(ph__client_name(client, hub, ph__client_put(client->hubs[hub].stream, type, body)));
    }
    return PH_OK;
}

/* Its body is lost when the hub is listened to again. */
static ph_status keep_body(struct ph_hub_client *client, uint16_t hub)
{
    struct ph_client_hub *asked = &client->hubs[hub];
    const struct ph_control_frame *frame = &asked->frame;
    ph_status status = PH_OK;
    if (frame->type == PH_FRAME_LAYOUT)
        status = ph__get_layout(frame->body, frame->size, &asked->job);
    else if (frame->type == PH_FRAME_PARTS)
        status = ph__get_parts(frame->body, frame->size, &client->parts.saved[hub].parts);
    if (status != PH_OK)
        ph__control_frame_close(frame);
    return status;
}

ph_status ph__client_look_for_answer(struct ph_hub_client *client, uint16_t hub, enum ph_hub_frame answer)
{
    struct ph_client_hub *asked = &client->hubs[hub];
    for (;;) {
        PH_TRY(ph__client_look_for(asked->stream, answer, &asked->frame, &asked->is_answered));
        if (!asked->is_answered)
            return PH_OK;
        if (asked->frame.type != PH_FRAME_SAVED)
            return keep_body(client, hub);
        asked->is_answered = false;
        PH_TRY(ph__client_take_saved(client, hub, &asked->frame));
    }
}

/* Takes the answers that have come. */
static ph_status look_for_answers(
    struct ph_hub_client *client, enum ph_hub_frame answer, uint16_t *num_answered_out)
{
    *num_answered_out = 0;
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        if (!client->hubs[i].is_answered)
            PH_TRY(ph__client_name(client, i, ph__client_look_for_answer(client, i, answer)));
        *num_answered_out += client->hubs[i].is_answered;
    }
    return PH_OK;
}

/* What has not come in time: all but an ANSWER comes when all workers have asked for it. */
static ph_status give_up(const struct ph_hub_client *client, enum ph_hub_frame answer)
{
    if (answer == PH_FRAME_ANSWER)
        return ph_fail(PH_ERROR_PEER, "the hub does not answer");
    return ph_fail(PH_ERROR_PEER,
        "not all %u workers have initialised their keys within %u ms, or the hub has stalled",
        client->joined.num_workers, client->timeout.ms);
}

/* Until one of them has something to say, be it one that has answered: it may have bad news while others do not answer. Of those that have
 * let this worker go it does not matter any more. polled_out: (num_hubs). */
static ph_status wait_for_any(
    struct ph_hub_client *client, enum ph_hub_frame answer, struct ph_wait *wait, struct pollfd *polled_out)
{
    const int wait_ms = ph__wait_ms(wait);
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        const struct ph_client_hub *hub = &client->hubs[i];
        if (!hub->is_answered && wait_ms == 0)
            return ph__client_name(
                client, i, wait->is_stopped ? ph__wait_stopped(wait) : give_up(client, answer));
        polled_out[i] = ph__client_polled(hub->stream);
        if (hub->is_answered && client->has_left)
            polled_out[i].fd = -1;
    }
    poll(polled_out, client->list.num_hubs, wait_ms);
    return PH_OK;
}

/* What hubs that have answered had said, behind their answers or when they were polled, before the last look for answers. So whatever
 * another hub's answer has led to is heard behind that answer. */
static ph_status hear_news(struct ph_hub_client *client, const struct pollfd *polled)
{
    for (uint16_t i = 0; i < client->list.num_hubs && !client->has_left; i++) {
        if (client->hubs[i].is_answered)
            PH_TRY(ph__client_name(
                client, i, polled[i].revents != 0 ? listen(client, i) : take_all_unasked(client, i)));
    }
    return PH_OK;
}

ph_status ph__client_ask_all(struct ph_hub_client *client, enum ph_hub_frame type,
    const struct ph_wire_writer *body, enum ph_hub_frame answer)
{
    struct ph_wait wait = ph__wait_begin(client->timeout);
    struct pollfd polled[PH_HUB_MAX_HUBS] = {{0}};
    uint16_t num_answered = 0;
    PH_TRY(ph__client_tell_all(client, type, body));
    for (;;) {
        const uint16_t num_before = num_answered;
        PH_TRY(look_for_answers(client, answer, &num_answered));
        if (num_answered == client->list.num_hubs)
            return PH_OK;
        if (num_answered > num_before) {
            memset(polled, 0, sizeof polled); /* which told of these answers */
            continue;
        }
        PH_TRY(hear_news(client, polled));
        PH_TRY(wait_for_any(client, answer, &wait, polled));
    }
}
