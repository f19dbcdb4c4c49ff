/* The engine of a worker's client: moves its links, so that what was started goes on. Either by the caller's own calls, or in a
 * thread of its own (TCP), so that transfers overlap whatever the caller computes.
 *
 * The caller says what to send by commands, and the engine tells by the operations' num_missing what was answered; between
 * the two threads there is a ring of commands with one writer and one reader, and no lock. */
#ifndef PH_HUB_CLIENT_ENGINE_H
#define PH_HUB_CLIENT_ENGINE_H

#include "hub/client/client_state.h"

struct ph_client_command {
    uint8_t kind;        /* enum ph_hub_message_kind */
    uint8_t slot;        /* of the key's operations */
    float learning_rate; /* of the key's optimizer, for a push from here on; NAN: as the hub has it */
    uint32_t key;
    uint64_t iteration;
};

/* Starts the thread if `has_thread`. PH_ERROR_MEMORY. */
ph_status ph__client_engine_create(
    struct ph_hub_client *client, bool has_thread, struct ph_client_engine **engine_out);
void ph__client_engine_destroy(struct ph_client_engine *engine); /* ends the thread; NULL is fine */

/* PH_ERROR_PEER when a link has failed. */
ph_status ph__client_engine_post(struct ph_client_engine *engine, const struct ph_client_command *command);

/* Moves things on, where there is no thread that does. has_moved_out: something was done; by a thread: an operation has all its
 * answers. */
ph_status ph__client_engine_progress(struct ph_client_engine *engine, bool *has_moved_out);

/* How many answers have come from hubs, some of them perhaps not told yet. */
uint64_t ph__client_engine_num_answers(const struct ph_client_engine *engine);

/* Sleeps until there is something to move on, or with a thread until an operation has all its answers; until a hub says something on
 * its control connection, or timeout_ms are over. has_news_out: a hub has. */
ph_status ph__client_engine_sleep(struct ph_client_engine *engine, int timeout_ms, bool *has_news_out);

#endif
