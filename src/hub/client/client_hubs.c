/* Conversation of a worker with the hubs of its job, also about checkpoints. Sends each request to all hubs
 * at once, and takes the answers in any order. Takes messages that hubs send unasked, even while other
 * answers are due. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"

ph_status ph__client_name(const struct ph_hub_client *client, uint16_t hub, ph_status status)
{
    return ph__hub_list_name(&client->list, hub, status);
}

/* ---- checkpoints of a job that several hubs share ---- */

/* Hubs do not know each other: they tell one worker which parts they have, and the worker tells all what to
 * do (part_list.h). Before a run that worker is rank 0; later the lead, the lowest rank that is there. Only
 * the choice before a run waits. */

#define PARTS_LOOK_NS 1000000u /* least time between two looks at the control connections */

ph_status ph__client_parts_init(struct ph_hub_client *client)
{
    struct ph__client_parts *parts = &client->parts;
    parts->slack = 1;
    parts->saved = calloc(client->list.num_hubs, sizeof *parts->saved);
    parts->has_said = calloc(client->list.num_hubs, sizeof *parts->has_said);
    return parts->saved != NULL && parts->has_said != NULL
               ? PH_OK
               : ph__out_of_memory("a worker of %u hubs", client->list.num_hubs);
}

void ph__client_parts_fini(struct ph_hub_client *client)
{
    free(client->parts.saved);
    free(client->parts.has_said);
}

/* ---- parts before a run ---- */

/* Returns a hub that lacks what `hub` has kept. */
static uint16_t find_other(const struct ph_hub_client *client, uint16_t hub)
{
    uint16_t other = 0;
    while (
        other == hub || ph__parts_has(&client->parts.saved[other].parts, client->parts.saved[hub].parts.kept))
        other++;
    return other;
}

/* Checks, when no iteration is whole, that no hub has lost its part. If no hub has kept a part, none was
 * ever whole. */
static ph_status check_loss(const struct ph_hub_client *client)
{
    char kept[PH_PARTS_TEXT_BYTES], left[PH_PARTS_TEXT_BYTES];
    uint16_t hub = 0;
    while (hub < client->list.num_hubs && client->parts.saved[hub].parts.kept == PH_NO_ITERATION)
        hub++;
    if (hub == client->list.num_hubs)
        return PH_OK;
    const uint16_t other = find_other(client, hub);
    ph__parts_describe(&client->parts.saved[hub].parts, kept);
    ph__parts_describe(&client->parts.saved[other].parts, left);
    return ph_fail(PH_ERROR_CHECKPOINT,
        "the hubs' checkpoints do not match (hub %s: parts %s; hub %s: %s): restore the missing parts",
        client->list.addresses[hub], kept, client->list.addresses[other], left);
}

/* Tells all workers why the job cannot go on. The error stands even if the connections fail. */
static ph_status refuse(struct ph_hub_client *client, ph_status status)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, ph_error_text());
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        struct ph__control_stream *stream = client->hubs[hub].stream;
        if (ph__client_put(stream, PH_FRAME_ANSWER, &writer) == PH_OK)
            ph__control_stream_flush(stream);
    }
    return check_loss(client);
}

ph_status ph__client_choose_parts(struct ph_hub_client *client)
{
    unsigned char bytes[sizeof(uint64_t)];
    struct ph__wire_writer writer;
    const uint64_t newest = ph__parts_newest_common(client->parts.saved, client->list.num_hubs);
    const ph_status status = newest == PH_NO_ITERATION ? check_loss(client) : PH_OK;
    if (status != PH_OK)
        return refuse(client, status);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, newest);
    return ph__client_ask_all(client, PH_FRAME_FROM, &writer, PH_FRAME_LAYOUT);
}

/* ---- parts during a run ---- */

static ph_status answer_all(struct ph_hub_client *client)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__client_parts *parts = &client->parts;
    const struct ph__keep keep = ph__parts_decide(parts->saved, client->list.num_hubs, &parts->slack);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keep(&writer, &keep);
    parts->num_said = 0;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        struct ph__control_stream *stream = client->hubs[hub].stream;
        parts->has_said[hub] = false;
        PH_TRY(ph__client_name(client, hub, ph__client_put(stream, PH_FRAME_KEEP, &writer)));
        PH_TRY(ph__client_name(client, hub, ph__control_stream_flush(stream)));
    }
    return PH_OK;
}

/* Takes a hub's SAVED; answers when all hubs have sent one. */
static ph_status take_saved(struct ph_hub_client *client, uint16_t hub, const struct ph__control_frame *frame)
{
    struct ph__client_parts *parts = &client->parts;
    if (client->list.num_hubs == 1 || client->layout == NULL)
        return ph_fail(PH_ERROR_PEER, "the hub reports parts of checkpoints, but the job has none");
    PH_TRY(ph__get_saved(frame->body, frame->size, &parts->saved[hub]));
    parts->num_said += !parts->has_said[hub];
    parts->has_said[hub] = true;
    if (parts->num_said < client->list.num_hubs || client->has_left)
        return PH_OK;
    return answer_all(client);
}

ph_status ph__client_look_at_parts(struct ph_hub_client *client)
{
    if (client->list.num_hubs == 1)
        return PH_OK;
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns - client->parts.looked_ns < PARTS_LOOK_NS)
        return PH_OK;
    client->parts.looked_ns = now_ns;
    return ph__client_look_at_hubs(client);
}

/* ---- unasked messages ---- */

static ph_status take_unasked(
    struct ph_hub_client *client, uint16_t hub, const struct ph__control_frame *frame)
{
    struct ph__answer answer;
    ph__control_frame_close(frame);
    if (frame->type == PH_FRAME_SAVED)
        return take_saved(client, hub, frame);
    if (frame->type != PH_FRAME_FAILED)
        return ph_fail(PH_ERROR_PEER, "the hub sent an unexpected message of type %u", frame->type);
    PH_TRY(ph__get_failure(frame->body, frame->size, &answer));
    return ph_fail(answer.status, "%s", answer.text);
}

static ph_status take_all_unasked(struct ph_hub_client *client, uint16_t hub)
{
    struct ph__control_frame frame;
    bool is_there = true;
    while (is_there) {
        PH_TRY(ph__control_stream_take(client->hubs[hub].stream, &frame, &is_there));
        if (is_there)
            PH_TRY(take_unasked(client, hub, &frame));
    }
    return PH_OK;
}

/* Takes what a hub sends unasked. Messages of a hub that has ended come before the error that it has. */
static ph_status listen(struct ph_hub_client *client, uint16_t hub)
{
    struct ph__control_stream *stream = client->hubs[hub].stream;
    char text[PH_HUB_MAX_TEXT + 1];
    (void)ph__control_stream_flush(stream); /* receiving reports the same error */
    const ph_status received = ph__control_stream_receive(stream);
    if (received == PH_OK)
        return take_all_unasked(client, hub);
    snprintf(text, sizeof text, "%s",
        ph__control_stream_is_closed(stream) ? "the hub has ended" : ph_error_text());
    PH_TRY(take_all_unasked(client, hub));
    return ph_fail(received, "%s", text);
}

/* Takes one hub's unasked messages, and names the hub in errors. */
static ph_status look_at_hub(struct ph_hub_client *client, uint16_t hub)
{
    return ph__client_name(client, hub, listen(client, hub));
}

ph_status ph__client_look_at_hubs(struct ph_hub_client *client)
{
    client->num_turns = 0;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        PH_TRY(look_at_hub(client, hub));
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

/* ---- requests to all hubs ---- */

ph_status ph__client_tell_all(
    struct ph_hub_client *client, enum ph__hub_frame type, const struct ph__wire_writer *body)
{
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        client->hubs[hub].is_answered = false;
        PH_TRY(ph__client_name(client, hub, ph__client_put(client->hubs[hub].stream, type, body)));
    }
    return PH_OK;
}

/* Keeps the body of an answer, which the next message of the hub overwrites. */
static ph_status keep_body(struct ph_hub_client *client, uint16_t hub)
{
    struct ph__client_hub *asked = &client->hubs[hub];
    const struct ph__control_frame *frame = &asked->frame;
    ph_status status = PH_OK;
    if (frame->type == PH_FRAME_LAYOUT)
        status = ph__get_layout(frame->body, frame->size, &asked->job);
    else if (frame->type == PH_FRAME_PARTS)
        status = ph__get_parts(frame->body, frame->size, &client->parts.saved[hub].parts);
    if (status != PH_OK)
        ph__control_frame_close(frame);
    return status;
}

ph_status ph__client_look_for_answer(struct ph_hub_client *client, uint16_t hub, enum ph__hub_frame answer)
{
    struct ph__client_hub *asked = &client->hubs[hub];
    for (;;) {
        PH_TRY(ph__client_look_for(asked->stream, answer, &asked->frame, &asked->is_answered));
        if (!asked->is_answered)
            return PH_OK;
        if (asked->frame.type != PH_FRAME_SAVED)
            return keep_body(client, hub);
        asked->is_answered = false;
        PH_TRY(take_saved(client, hub, &asked->frame));
    }
}

/* Takes the answers that have come. */
static ph_status look_for_answers(
    struct ph_hub_client *client, enum ph__hub_frame answer, uint16_t *num_answered_out)
{
    *num_answered_out = 0;
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        if (!client->hubs[i].is_answered)
            PH_TRY(ph__client_name(client, i, ph__client_look_for_answer(client, i, answer)));
        *num_answered_out += client->hubs[i].is_answered;
    }
    return PH_OK;
}

/* Returns the error for an answer that is late. All answers but ANSWER wait for requests of all workers. */
static ph_status give_up(const struct ph_hub_client *client, enum ph__hub_frame answer)
{
    if (answer == PH_FRAME_ANSWER)
        return ph_fail(PH_ERROR_PEER, "the hub timed out");
    return ph_fail(PH_ERROR_PEER,
        "not all %u workers have initialised their keys within %u ms, or the hub has stalled",
        client->joined.num_workers, client->timeout.ms);
}

/* Waits until a hub sends something, even one that has answered: it may have bad news while others do not
 * answer. Ignores hubs that have let this worker go. polled_out: (num_hubs). */
static ph_status wait_for_any(
    struct ph_hub_client *client, enum ph__hub_frame answer, struct ph__wait *wait, struct pollfd *polled_out)
{
    const int wait_ms = ph__wait_ms(wait);
    for (uint16_t i = 0; i < client->list.num_hubs; i++) {
        const struct ph__client_hub *hub = &client->hubs[i];
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

/* Takes news of hubs that have answered: behind their answers, or when they were polled before the last look
 * for answers. So news that another hub's answer has caused is taken after that answer. */
static ph_status hear_news(struct ph_hub_client *client, const struct pollfd *polled)
{
    for (uint16_t i = 0; i < client->list.num_hubs && !client->has_left; i++) {
        if (client->hubs[i].is_answered)
            PH_TRY(ph__client_name(
                client, i, polled[i].revents != 0 ? listen(client, i) : take_all_unasked(client, i)));
    }
    return PH_OK;
}

ph_status ph__client_ask_all(struct ph_hub_client *client, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer)
{
    struct ph__wait wait = ph__wait_begin(client->timeout);
    struct pollfd polled[PH_HUB_MAX_HUBS] = {{0}};
    uint16_t num_answered = 0;
    PH_TRY(ph__client_tell_all(client, type, body));
    for (;;) {
        const uint16_t num_before = num_answered;
        PH_TRY(look_for_answers(client, answer, &num_answered));
        if (num_answered == client->list.num_hubs)
            return PH_OK;
        if (num_answered > num_before) {
            memset(polled, 0, sizeof polled); /* already taken with these answers */
            continue;
        }
        PH_TRY(hear_news(client, polled));
        PH_TRY(wait_for_any(client, answer, &wait, polled));
    }
}

/* ---- checkpoints: asks every hub, and waits while transfers go on ---- */

#define CHECKPOINT_LOOK_MS 20 /* between two looks at the clock */

/* Takes a hub's answer, if any. Keeps the first error of the checkpoint until all hubs have answered. */
static ph_status look_for_checkpoint(
    struct ph_hub_client *client, uint16_t index, struct ph__answer *first_error)
{
    const struct ph__client_hub *hub = &client->hubs[index];
    const ph_status status =
        ph__client_name(client, index, ph__client_look_for_answer(client, index, PH_FRAME_ANSWER));
    if (status == PH_OK || !hub->is_answered || hub->frame.type != PH_FRAME_ANSWER)
        return status;
    if (first_error->status == PH_OK) {
        first_error->status = status;
        snprintf(first_error->text, sizeof first_error->text, "%s", ph_error_text());
    }
    return PH_OK;
}

static ph_status look_for_checkpoints(
    struct ph_hub_client *client, struct ph__answer *first_error, bool *is_answered_out)
{
    *is_answered_out = true;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        if (!client->hubs[hub].is_answered)
            PH_TRY(look_for_checkpoint(client, hub, first_error));
        *is_answered_out &= client->hubs[hub].is_answered;
    }
    for (uint16_t hub = 0; !*is_answered_out && hub < client->list.num_hubs; hub++) {
        if (client->hubs[hub].is_answered)
            PH_TRY(look_at_hub(client, hub));
    }
    return PH_OK;
}

/* Waits for all hubs. Transfers go on meanwhile, or the iteration would never become complete. */
static ph_status await_checkpoint(struct ph_hub_client *client)
{
    struct ph__wait wait = ph__wait_begin(client->timeout);
    struct ph__answer first_error = {.status = PH_OK};
    for (;;) {
        bool has_moved, has_news, is_answered;
        PH_TRY(ph__client_explain(client, ph__client_engine_progress(client->engine, &has_moved)));
        PH_TRY(look_for_checkpoints(client, &first_error, &is_answered));
        if (is_answered)
            break;
        if (has_moved)
            continue;
        const int wait_ms = ph__wait_ms(&wait);
        if (wait_ms == 0 && wait.is_stopped)
            return ph__wait_stopped(&wait);
        if (wait_ms == 0)
            return ph_fail(PH_ERROR_PEER,
                "the checkpoint timed out after %u ms: each worker must push all keys of the iteration",
                client->timeout.ms);
        PH_TRY(ph__client_explain(
            client, ph__client_engine_sleep(client->engine, CHECKPOINT_LOOK_MS, &has_news)));
    }
    return first_error.status == PH_OK ? PH_OK : ph_fail(first_error.status, "%s", first_error.text);
}

static uint64_t newest_iteration(const struct ph_hub_client *client)
{
    uint64_t newest = 0;
    for (size_t key = 0; key < client->layout->sizes.num_keys; key++)
        newest = client->keys[key].pushed > newest ? client->keys[key].pushed : newest;
    return newest;
}

ph_status ph_hub_checkpoint(struct ph_hub_client *client)
{
    unsigned char bytes[sizeof(uint64_t)];
    struct ph__wire_writer writer;
    if (client->engine == NULL || client->has_left)
        return ph_fail(
            PH_ERROR_USAGE, "ph_hub_checkpoint must be called between ph_hub_init and ph_hub_leave");
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, newest_iteration(client));
    PH_TRY(ph__client_tell_all(client, PH_FRAME_CHECKPOINT, client->list.num_hubs > 1 ? &writer : NULL));
    return await_checkpoint(client);
}
