/* Asking for a checkpoint, and the wait for it: of every hub, while transfers go on. See phloem/hub.h. */
#include <stdio.h>

#include "hub/client/client_engine.h"

#define CHECKPOINT_LOOK_MS 20 /* between two looks at the clock */

/* What a hub has answered, if it has: an error of the checkpoint is kept for when the other hubs have answered, too. */
static ph_status look_for_checkpoint(
    struct ph_hub_client *client, uint16_t index, struct ph_answer *first_error)
{
    const struct ph_client_hub *hub = &client->hubs[index];
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
    struct ph_hub_client *client, struct ph_answer *first_error, bool *is_answered_out)
{
    *is_answered_out = true;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        if (!client->hubs[hub].is_answered)
            PH_TRY(look_for_checkpoint(client, hub, first_error));
        *is_answered_out &= client->hubs[hub].is_answered;
    }
    for (uint16_t hub = 0; !*is_answered_out && hub < client->list.num_hubs; hub++) {
        if (client->hubs[hub].is_answered)
            PH_TRY(ph__client_look_at_hub(client, hub));
    }
    return PH_OK;
}

/* What is under way moves on meanwhile, or the iteration would never become complete. */
static ph_status await_checkpoint(struct ph_hub_client *client)
{
    struct ph_wait wait = ph__wait_begin(client->timeout);
    struct ph_answer first_error = {.status = PH_OK};
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
                "no checkpoint within %u ms: does each worker push all keys of the iteration?",
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
    struct ph_wire_writer writer;
    if (client->engine == NULL || client->has_left)
        return ph_fail(PH_ERROR_USAGE, "a checkpoint is asked for between ph_hub_init and ph_hub_leave");
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_iteration(&writer, newest_iteration(client));
    PH_TRY(ph__client_tell_all(client, PH_FRAME_CHECKPOINT, client->list.num_hubs > 1 ? &writer : NULL));
    return await_checkpoint(client);
}
