/* Shared by the files of the watch: the star as one rank holds it. One thread. */
#ifndef PH_COMM_WATCH_STATE_H
#define PH_COMM_WATCH_STATE_H

#include "comm/watch/watch.h"
#include "comm/watch/watch_frames.h"
#include "net/control_stream.h"
#include "net/event_loop.h"

struct ph__watch_star;

struct ph__watch_peer { /* another rank, over its connection */
    struct ph__watch_star *star;
    struct ph__watch_who who;
    struct ph__control_stream *stream; /* NULL: not here yet, or no longer */
    struct ph__event_source *source;
    bool has_left; /* the job is over for this peer: its end is no failure */
};

struct ph__watch_star {
    size_t rank, world_size;
    struct ph__event_loop *loop;
    struct ph__watch_peer *peers; /* by rank; ranks other than 0 have rank 0 alone */
    size_t num_peers;
    bool has_notice;
    struct ph__comm_notice notice; /* the first */
};

/* Creates a star without peers. */
ph_status ph__watch_star_create(size_t rank, size_t world_size, struct ph__watch_star **star_out);
void ph__watch_star_destroy(struct ph__watch_star *star); /* sends nothing; NULL is fine */
struct ph__comm_watch ph__watch_star_table(struct ph__watch_star *star);

/* Adds a peer, and listens to it. Takes the stream over, also on failure. */
ph_status ph__watch_star_add(
    struct ph__watch_star *star, const struct ph__watch_who *who, struct ph__control_stream *stream);
/* Receives what has come, waiting for up to timeout_ms; keeps the last error. */
void ph__watch_star_turn(struct ph__watch_star *star, int timeout_ms);

/* Sends to all peers that are here as much as they take at once: later turns send the rest. */
void ph__watch_star_send(
    struct ph__watch_star *star, enum ph__watch_frame type, const void *body, size_t size);
/* Sets the notice where there is none yet; rank 0 passes it on. */
void ph__watch_star_note(struct ph__watch_star *star, const struct ph__comm_notice *notice);

/* Limits the size of frames, and refuses descriptors. Takes the socket over, also on failure. */
ph_status ph__watch_stream_create(int socket, struct ph__control_stream **stream_out);
/* Sends a frame of the handshake: a few bytes, for which there is room. */
ph_status ph__watch_say(
    struct ph__control_stream *stream, enum ph__watch_frame type, const void *body, size_t size);

/* Admits a connection of anybody while rank 0 listens. Takes the socket over. */
ph_status ph__watch_listener_admit(struct ph__watch_listener *listener, int socket);
struct ph__watch_star *ph__watch_listener_star(struct ph__watch_listener *listener); /* borrowed */

/* Lists the addresses of this host's interfaces, in digits and in their order: those of the loopback, or
 * those that other hosts may reach. *num_out is 0 where there are none. */
ph_status ph__watch_hosts(
    bool is_loopback, char hosts_out[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t *num_out);

#endif
