/* What a worker does for the checkpoints of a job that several hubs share: hubs do not know each other, so one worker hears from all
 * of them which parts they have, and tells all what follows from it (part_list.h). Before a run that is rank 0; later it is whoever
 * the hubs talk to, the lowest rank that is there. Nothing here waits but the choice before a run. */
#include <stdlib.h>

#include "base/thread/clock.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"

#define PARTS_LOOK_NS 1000000u /* at least, between two looks at the control connections */

ph_status ph__client_parts_init(struct ph_hub_client *client)
{
    struct ph_client_parts *parts = &client->parts;
    parts->slack = 1;
    parts->saved = calloc(client->list.num_hubs, sizeof *parts->saved);
    parts->has_said = calloc(client->list.num_hubs, sizeof *parts->has_said);
    return parts->saved != NULL && parts->has_said != NULL
               ? PH_OK
               : ph_fail(PH_ERROR_MEMORY, "no memory for a worker of %u hubs", client->list.num_hubs);
}

void ph__client_parts_fini(struct ph_hub_client *client)
{
    free(client->parts.saved);
    free(client->parts.has_said);
}

/* ---- before a run ---- */

/* A hub that lacks what this one has kept. */
static uint16_t find_other(const struct ph_hub_client *client, uint16_t hub)
{
    uint16_t other = 0;
    while (
        other == hub || ph__parts_has(&client->parts.saved[other].parts, client->parts.saved[hub].parts.kept))
        other++;
    return other;
}

/* No iteration is whole. It never was if no hub has kept a part; else a hub has lost its own. */
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
        "of the job's checkpoints hub %s has parts %s and hub %s has %s: these cannot go on together",
        client->list.addresses[hub], kept, client->list.addresses[other], left);
}

/* All workers shall hear why: whatever becomes of the connections, the error stands. */
static ph_status refuse(struct ph_hub_client *client, ph_status status)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, ph_error_text());
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        struct ph_control_stream *stream = client->hubs[hub].stream;
        if (ph__client_put(stream, PH_FRAME_ANSWER, &writer) == PH_OK)
            ph__control_stream_flush(stream);
    }
    return check_loss(client);
}

ph_status ph__client_choose_parts(struct ph_hub_client *client)
{
    unsigned char bytes[sizeof(uint64_t)];
    struct ph_wire_writer writer;
    const uint64_t newest = ph__parts_newest_common(client->parts.saved, client->list.num_hubs);
    const ph_status status = newest == PH_NO_ITERATION ? check_loss(client) : PH_OK;
    if (status != PH_OK)
        return refuse(client, status);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, newest);
    return ph__client_ask_all(client, PH_FRAME_FROM, &writer, PH_FRAME_LAYOUT);
}

/* ---- while it lasts ---- */

static ph_status answer_all(struct ph_hub_client *client)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_client_parts *parts = &client->parts;
    const struct ph_keep keep = ph__parts_decide(parts->saved, client->list.num_hubs, &parts->slack);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_keep(&writer, &keep);
    parts->num_said = 0;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        struct ph_control_stream *stream = client->hubs[hub].stream;
        parts->has_said[hub] = false;
        PH_TRY(ph__client_name(client, hub, ph__client_put(stream, PH_FRAME_KEEP, &writer)));
        PH_TRY(ph__client_name(client, hub, ph__control_stream_flush(stream)));
    }
    return PH_OK;
}

ph_status ph__client_take_saved(
    struct ph_hub_client *client, uint16_t hub, const struct ph_control_frame *frame)
{
    struct ph_client_parts *parts = &client->parts;
    if (client->list.num_hubs == 1 || client->layout == NULL)
        return ph_fail(PH_ERROR_PEER, "the hub tells of parts of checkpoints, of which there are none");
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
