/* Inside of a worker's client, for the files that it is made of: client_connect.c (joining, keys, first
 * parameters, leaving), client_links.c (memory and links), client.c (pushing, pulling, waiting),
 * client_engine.c (moving links, and messages over them), client_hubs.c and client_greet.c (control
 * connections). */
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

#define PH_CLIENT_MAX_OPERATIONS 4 /* operations of a key: `depth` pushes and a pull; a power of two */

/* Slot of a key's operations. The caller fills it while num_missing is 0, and sets num_missing last. The
 * engine counts num_missing down, and the caller reads the rest again when it is 0. */
struct ph__client_operation {
    _Atomic uint32_t num_missing; /* chunks whose answer is due */
    _Atomic uint8_t kind;         /* enum ph__hub_message_kind */
    _Atomic uint64_t iteration;
    _Atomic uint32_t num_contributors; /* the fewest of its chunks */
};

struct ph__client_key {
    uint32_t optimizer;
    uint64_t pushed; /* iterations */
    uint64_t pulled; /* iteration of its parameters */
    struct ph__client_operation operations[PH_CLIENT_MAX_OPERATIONS];
    uint32_t oldest, num_operations; /* slots in use, from `oldest` on, modulo their number */
    uint64_t tested_since_ns;        /* since then tests found the oldest undone; 0: not tested */
};

struct ph__client_hub { /* one of those that share the keys */
    struct ph__control_stream *stream;
    struct ph__control_frame frame; /* last answer, without the body */
    bool is_answered;               /* true: its last request is answered */
    /* Set by init: */
    struct ph__job_layout job;
    uint32_t first_link; /* first link to its core threads */
    uint32_t num_chunks; /* chunks that live on it; the first hub has some */
};

struct ph__client_engine;

struct ph__client_end { /* owner of a link */
    struct ph_hub_client *client;
    uint32_t link;
    uint32_t slot; /* slot of the operation that the coming message answers */
};

struct ph__client_parts {    /* checkpoints' parts on several hubs: client_hubs.c */
    struct ph__saved *saved; /* (num_hubs) last reports */
    bool *has_said;          /* (num_hubs) since the last answer to all; counted in num_said */
    uint16_t num_said;
    uint64_t slack;     /* state of ph__parts_decide() */
    uint64_t looked_ns; /* time of the last look for reports */
};

struct ph_hub_client {
    struct ph__timeout timeout;
    uint32_t rank;
    bool is_shared;
    enum ph__way way;
    char why[512]; /* reason for this transport, and for unused addresses of the hub */
    struct ph__hub_list list;
    struct ph__secret *secret;   /* NULL: none */
    struct ph__client_hub *hubs; /* (num_hubs) in the order of the list */
    struct ph__joined joined;    /* agreed by all hubs */
    struct ph__client_parts parts;
    /* Set by init: */
    bool is_restored;
    struct ph__layout *layout;
    struct ph__client_key *keys;
    uint32_t *link_of_chunk;
    uint8_t *asked; /* (num_chunks) of the engine: bits of the operations' slots whose answers are due */
    struct ph__region region;  /* gradients, own parameters, and on the hub's host the rings */
    struct ph__region results; /* all workers' parameters, on the hub's host */
    char *gradients[PH_HUB_MAX_DEPTH];
    char *parameters[PH_HUB_MAX_DEPTH]; /* num_parameters; read-only if they are the results */
    uint32_t num_parameters;
    struct ph__link **links;     /* (num_links) by hub, then core thread; of the engine */
    struct ph__client_end *ends; /* (num_links) */
    uint32_t num_links;
    struct ph__client_engine *engine;
    bool has_no_thread;
    struct ph__waiter waiter;
    uint64_t seen_answers, answered_ns;          /* answers that tests have seen, and when the last */
    uint64_t looked_ns;                          /* time of a test's last look at the control connections */
    uint32_t num_turns;                          /* turns of waiting since the last look at the hubs */
    uint32_t num_contributors;                   /* contributors of the last finished pull */
    float learning_rates[PH_HUB_MAX_OPTIMIZERS]; /* set by this worker; NAN: not set */
    bool has_left;
};

/* ---- client_hubs.c ---- */

/* Returns the status; with several hubs names the hub in the text of an error. */
ph_status ph__client_name(const struct ph_hub_client *client, uint16_t hub, ph_status status);

/* Takes what hubs send unasked. Returns the error that ended the job; PH_ERROR_PEER if a hub has ended. */
ph_status ph__client_look_at_hubs(struct ph_hub_client *client);
/* Returns the status, or a better error: when a link has failed, a control connection may say why. */
ph_status ph__client_explain(struct ph_hub_client *client, ph_status status);

/* Sends a frame to all hubs, or begins to. */
ph_status ph__client_tell_all(
    struct ph_hub_client *client, enum ph__hub_frame type, const struct ph__wire_writer *body);

/* Sends a frame to all hubs, and waits until all have answered, like ph__client_request(): into hubs[].frame
 * without its body; a LAYOUT into hubs[].job, PARTS into parts.saved[].parts. Returns the first error;
 * answers of other hubs may still come then. */
ph_status ph__client_ask_all(struct ph_hub_client *client, enum ph__hub_frame type,
    const struct ph__wire_writer *body, enum ph__hub_frame answer);

/* Looks whether the hub has answered its last request, into hubs[hub], like ph__client_look_for(); also takes
 * its reports of parts. */
ph_status ph__client_look_for_answer(struct ph_hub_client *client, uint16_t hub, enum ph__hub_frame answer);

ph_status ph__client_parts_init(
    struct ph_hub_client *client); /* after reading the list of hubs. PH_ERROR_MEMORY */
void ph__client_parts_fini(struct ph_hub_client *client);

/* Chooses the parts to resume from, as rank 0, when several hubs have answered INIT with their PARTS; tells
 * the hubs, and waits for their layouts. PH_ERROR_CHECKPOINT, for all workers, if a hub has lost what another
 * has kept. */
ph_status ph__client_choose_parts(struct ph_hub_client *client);

/* Looks for hubs' reports of parts, now and then: before a push and a wait. */
ph_status ph__client_look_at_parts(struct ph_hub_client *client);

/* ---- client_links.c ---- */

/* Finds the link of each chunk from the layout and the hubs' answers. PH_ERROR_PEER if a hub spreads
 * chunks differently. */
ph_status ph__client_find_links(struct ph_hub_client *client);
/* Makes memory and links. num_taken_out: descriptors of the first hub's last frame that the client owns now,
 * also after an error. */
ph_status ph__client_make_links(struct ph_hub_client *client, size_t *num_taken_out);

/* ---- client.c ---- */

/* Begins an operation without checks: init assigns and pulls with it. */
ph_status ph__client_begin(struct ph_hub_client *client, size_t key, enum ph__hub_message_kind kind);

/* ---- client_engine.c ---- */

/* Engine of a worker's client: moves its links, so that operations go on. Runs in the caller's own calls, or
 * in a thread of its own (TCP), so that transfers overlap the caller's computations.
 *
 * The caller sends by commands, and the engine reports answers by the operations' num_missing. Between the
 * two threads there is a ring of commands with one writer and one reader, and no lock. */

struct ph__client_command {
    uint8_t kind;        /* enum ph__hub_message_kind */
    uint8_t slot;        /* index into the key's operations */
    float learning_rate; /* rate of the key's optimizer, for this and later pushes; NAN: the hub's */
    uint32_t key;
    uint64_t iteration;
};

/* Creates the engine, and starts its thread if has_thread. PH_ERROR_MEMORY. */
ph_status ph__client_engine_create(
    struct ph_hub_client *client, bool has_thread, struct ph__client_engine **engine_out);
void ph__client_engine_destroy(struct ph__client_engine *engine); /* ends the thread; NULL is fine */

/* Posts a command. PH_ERROR_PEER when a link has failed. */
ph_status ph__client_engine_post(struct ph__client_engine *engine, const struct ph__client_command *command);

/* Moves links on, unless a thread does. has_moved_out: something was done; with a thread: an operation has
 * all its answers. */
ph_status ph__client_engine_progress(struct ph__client_engine *engine, bool *has_moved_out);

/* Returns how many answers have come from hubs, some perhaps not told to the caller yet. */
uint64_t ph__client_engine_num_answers(const struct ph__client_engine *engine);

/* Sleeps until there is something to move on, or with a thread until an operation has all its answers; until
 * a hub sends something on its control connection; or until timeout_ms are over. has_news_out: a hub has sent
 * something. */
ph_status ph__client_engine_sleep(struct ph__client_engine *engine, int timeout_ms, bool *has_news_out);

/* Returns the owner of this link, for this link alone: counts the answers that come over it. */
struct ph__link_owner ph__client_link_owner(struct ph_hub_client *client, uint32_t link);

#endif
