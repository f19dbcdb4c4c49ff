/* A worker played by the test, at a hub whose turns the test takes (hub_turns.h). The job is shared with
 * another hub, which does not exist: the worker sends what the test wants, and no other hub keeps parts of
 * the job's checkpoints.
 *
 * The job is synchronous, of one worker and one key of eight chunks. The hub is the first of two and has four
 * of them. With has_no_chunks it is the second and has none, for there is only one. */
#ifndef PH_TEST_HUB_WORKER_BY_HAND_H
#define PH_TEST_HUB_WORKER_BY_HAND_H

#include "support/hub_turns.h"

enum { BY_HAND_PERIOD = 10 }; /* iterations from one checkpoint to the next */

struct hub_worker_by_hand {
    bool has_no_chunks; /* set before anything else */
    struct ph_hub_server *server;
    struct ph__control_stream *control, *link; /* own their sockets */
};

/* Writes a part of the job with its chunks at that iteration into the folder: the kept part, or an open
 * one. */
void hub_by_hand_put_part(const char *folder, uint64_t iteration, bool is_open);

void hub_by_hand_connect(struct hub_worker_by_hand *worker, struct ph_hub_server *server);
struct ph__answer hub_by_hand_create(struct hub_worker_by_hand *worker);
/* Connects, creates the service and joins it. */
void hub_by_hand_join(struct hub_worker_by_hand *worker, struct ph_hub_server *server);
void hub_by_hand_say(
    struct hub_worker_by_hand *worker, enum ph__hub_frame type, const struct ph__wire_writer *body);
/* Takes turns until a frame of this type arrives, and drops frames before it. */
struct ph__control_frame hub_by_hand_hear(struct hub_worker_by_hand *worker, enum ph__hub_frame type);

/* Sends the keys, and returns the parts that the hub has. */
struct ph__parts hub_by_hand_init(struct hub_worker_by_hand *worker);
/* Starts from the part of that iteration, or PH_NO_ITERATION, and goes on up to BEGIN, or up to GO. */
void hub_by_hand_link(struct hub_worker_by_hand *worker, uint64_t iteration);
void hub_by_hand_go(struct hub_worker_by_hand *worker, uint64_t iteration);
void hub_by_hand_say_from(struct hub_worker_by_hand *worker, uint64_t iteration);
/* Asks for a checkpoint at an iteration of the worker's; also sends frames that were put before. */
void hub_by_hand_say_checkpoint(struct hub_worker_by_hand *worker, uint64_t iteration);
void hub_by_hand_say_keep(struct hub_worker_by_hand *worker, const struct ph__keep *keep);
struct ph__saved hub_by_hand_hear_saved(struct hub_worker_by_hand *worker);

void hub_by_hand_end(struct hub_worker_by_hand *worker); /* closes its connections */

#endif
