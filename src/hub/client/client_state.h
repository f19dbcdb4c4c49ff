/* The inside of a worker's client, for the files that it is made of: client_connect.c (joining, keys, first
 * parameters, leaving), client_links.c (memory and links), client.c (pushing, pulling, waiting),
 * client_engine.c (what moves links, and what comes over them), client_hubs.c and client_greet.c (what is
 * said to hubs). */
#ifndef PH_HUB_CLIENT_STATE_H
#define PH_HUB_CLIENT_STATE_H

#include <stdatomic.h>

#include "base/thread/clock.h"
#include "hub/client/client_greet.h"
#include "hub/layout/job_memory.h"
#include "hub/shard/shard.h"
#include "hub/wire/part_list.h"
#include "hub/wire/protocol.h"
#include "net/control_stream.h"
#include "net/waiter.h"

#define PH_CLIENT_MAX_OPERATIONS 4 /* of a key: pushes as deep as can be, and a pull; a power of two */

/* One slot of a key's operations. The caller fills it while num_missing is 0 and sets that last; then the
 * engine counts it down, and the caller looks at the rest again when it is 0. */
struct ph__client_operation {
    _Atomic uint32_t num_missing; /* chunks that were not answered */
    _Atomic uint8_t kind;         /* enum ph__hub_message_kind */
    _Atomic uint64_t iteration;
    _Atomic uint32_t num_contributors; /* the fewest of its chunks */
};

struct ph__client_key {
    uint32_t optimizer;
    uint64_t pushed; /* iterations */
    uint64_t pulled; /* the iteration that its parameters are of */
    struct ph__client_operation operations[PH_CLIENT_MAX_OPERATIONS];
    uint32_t oldest, num_operations; /* the slots in use: from `oldest` on, modulo their number */
    uint64_t tested_since_ns;        /* that the oldest was not done yet; 0: nobody has tested it */
};

struct ph__client_hub { /* one of those that share the keys */
    struct ph__control_stream *stream;
    struct ph__control_frame frame; /* its last answer, without the body */
    bool is_answered;               /* what it was asked last */
    /* From init on: */
    struct ph__job_layout job;
    uint32_t first_link; /* of its core threads */
    uint32_t num_chunks; /* that live on it; the first has some at least */
};

struct ph__client_engine;

struct ph__client_end { /* of a link, and its owner */
    struct ph_hub_client *client;
    uint32_t link;
    uint32_t slot; /* of the operation that is answered by what is coming */
};

struct ph__client_parts {    /* of checkpoints, of several hubs: client_hubs.c */
    struct ph__saved *saved; /* (num_hubs) what each has said last */
    bool *has_said;          /* (num_hubs) since all were answered; counted in num_said */
    uint16_t num_said;
    uint64_t slack;     /* of ph__parts_decide() */
    uint64_t looked_ns; /* when this worker last looked whether a hub says something */
};

struct ph_hub_client {
    struct ph__timeout timeout;
    uint32_t rank;
    bool is_shared;
    enum ph__way way;
    char why[512]; /* this transport, and not all addresses of the hub */
    struct ph__hub_list list;
    struct ph__secret *secret;   /* NULL: none */
    struct ph__client_hub *hubs; /* (num_hubs) of the list, in its order */
    struct ph__joined joined;    /* what all of them say */
    struct ph__client_parts parts;
    /* From init on: */
    bool is_restored;
    struct ph__layout *layout;
    struct ph__client_key *keys;
    uint32_t *link_of_chunk;
    uint8_t *asked; /* (num_chunks) the engine's: a bit for each slot of operations that has no answer yet */
    struct ph__region region;  /* gradients, parameters of its own, and on the hub's host the rings */
    struct ph__region results; /* ... there all workers' */
    char *gradients[PH_HUB_MAX_DEPTH];
    char *parameters[PH_HUB_MAX_DEPTH]; /* num_parameters of them; not to be written where they are the
                                           results */
    uint32_t num_parameters;
    struct ph__link **links; /* (num_links) to the first hub's core threads, the second's ...; the engine's */
    struct ph__client_end *ends; /* (num_links) */
    uint32_t num_links;
    struct ph__client_engine *engine;
    bool has_no_thread;
    struct ph__waiter waiter;
    uint64_t seen_answers, answered_ns;          /* answers that tests have seen, and when the last */
    uint64_t looked_ns;                          /* when a test last looked at the control connections */
    uint32_t num_turns;                          /* of waiting, since the control connection was looked at */
    uint32_t num_contributors;                   /* of the last finished pull */
    float learning_rates[PH_HUB_MAX_OPTIMIZERS]; /* as this worker has set them; NAN: it has not */
    bool has_left;
};

/* ---- client_hubs.c ---- */

/* Returns the status; an error says which of several hubs it is of. */
ph_status ph__client_name(const struct ph_hub_client *client, uint16_t hub, ph_status status);

/* What hubs say unasked. An error is bad news: PH_ERROR_PEER, or what has ended the job; or that one has
 * gone. */
ph_status ph__client_look_at_hubs(struct ph_hub_client *client);
/* Returns the status. Where a link has failed, a control connection may know why, and then says so. */
ph_status ph__client_explain(struct ph_hub_client *client, ph_status status);

/* Sends a frame to all hubs, or begins to. */
ph_status ph__client_tell_all(
    struct ph_hub_client *client, enum ph__hub_frame type, const struct ph__wire_writer *body);

/* ... and waits until all have answered: as ph__client_request(), into hubs[].frame but for its body, of
 * which a LAYOUT is in hubs[].job and PARTS in parts.saved[].parts. The first error is returned, and other
 * hubs may be about to answer then. */
ph_status ph__client_ask_all(struct ph_hub_client *client, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer);

/* Whether the hub has answered what it was asked last, into hubs[hub]: as ph__client_look_for(), and what it
 * says of its parts is heard besides. */
ph_status ph__client_look_for_answer(struct ph_hub_client *client, uint16_t hub, enum ph__hub_frame answer);

ph_status ph__client_parts_init(
    struct ph_hub_client *client); /* once the list of hubs is known. PH_ERROR_MEMORY */
void ph__client_parts_fini(struct ph_hub_client *client);

/* Rank 0, when several hubs have answered INIT with their PARTS: chooses, tells them, and waits for their
 * layouts. PH_ERROR_CHECKPOINT where what one has kept others have lost; all workers hear that. */
ph_status ph__client_choose_parts(struct ph_hub_client *client);

/* Looks whether hubs have said so, now and then: before a push and a wait. */
ph_status ph__client_look_at_parts(struct ph_hub_client *client);

/* ---- client_links.c ---- */

/* From the layout and what the hubs have said: which link leads to each chunk. PH_ERROR_PEER where a hub has
 * another opinion. */
ph_status ph__client_find_links(struct ph_hub_client *client);
/* Memory and links. num_taken_out: descriptors of the first hub's last frame that are the client's now, also
 * after an error. */
ph_status ph__client_make_links(struct ph_hub_client *client, size_t *num_taken_out);

/* ---- client.c ---- */

/* Begins an operation without checks: init assigns and pulls with it. */
ph_status ph__client_begin(struct ph_hub_client *client, size_t key, enum ph__hub_message_kind kind);

/* ---- client_engine.c ---- */

/* The engine of a worker's client: moves its links, so that what was started goes on. Either by the caller's
 * own calls, or in a thread of its own (TCP), so that transfers overlap whatever the caller computes.
 *
 * The caller says what to send by commands, and the engine tells by the operations' num_missing what was
 * answered; between the two threads there is a ring of commands with one writer and one reader, and no lock.
 */

struct ph__client_command {
    uint8_t kind;        /* enum ph__hub_message_kind */
    uint8_t slot;        /* of the key's operations */
    float learning_rate; /* of the key's optimizer, for a push from here on; NAN: as the hub has it */
    uint32_t key;
    uint64_t iteration;
};

/* Starts the thread if `has_thread`. PH_ERROR_MEMORY. */
ph_status ph__client_engine_create(
    struct ph_hub_client *client, bool has_thread, struct ph__client_engine **engine_out);
void ph__client_engine_destroy(struct ph__client_engine *engine); /* ends the thread; NULL is fine */

/* PH_ERROR_PEER when a link has failed. */
ph_status ph__client_engine_post(struct ph__client_engine *engine, const struct ph__client_command *command);

/* Moves things on, where there is no thread that does. has_moved_out: something was done; by a thread: an
 * operation has all its answers. */
ph_status ph__client_engine_progress(struct ph__client_engine *engine, bool *has_moved_out);

/* How many answers have come from hubs, some of them perhaps not told yet. */
uint64_t ph__client_engine_num_answers(const struct ph__client_engine *engine);

/* Sleeps until there is something to move on, or with a thread until an operation has all its answers; until
 * a hub says something on its control connection, or timeout_ms are over. has_news_out: a hub has. */
ph_status ph__client_engine_sleep(struct ph__client_engine *engine, int timeout_ms, bool *has_news_out);

/* The owner of this link, which can be given to nobody else: counts the answers that come over it. */
struct ph__link_owner ph__client_link_owner(struct ph_hub_client *client, uint32_t link);

#endif
