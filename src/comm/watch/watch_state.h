/* What the files of the watch share: a star, as one rank holds it. One thread. */
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
    struct ph__control_stream *stream; /* NULL: not here, or not any more */
    struct ph__event_source *source;
    bool has_left; /* the job is over for it: its end is none of ours */
};

struct ph__watch_star {
    size_t rank, world_size;
    struct ph__event_loop *loop;
    struct ph__watch_peer *peers; /* by rank; others than rank 0 have that one alone */
    size_t num_peers;
    bool has_notice;
    struct ph__comm_notice notice; /* the first */
};

/* The peers are not here yet. */
ph_status ph__watch_star_create(size_t rank, size_t world_size, struct ph__watch_star **star_out);
void ph__watch_star_destroy(struct ph__watch_star *star); /* without a word; NULL is fine */
struct ph__comm_watch ph__watch_star_table(struct ph__watch_star *star);

/* From now on the peer is heard. The stream is the star's, also where this fails. */
ph_status ph__watch_star_add(
    struct ph__watch_star *star, const struct ph__watch_who *who, struct ph__control_stream *stream);
/* Hears what has come, waiting for up to timeout_ms; the last error stays what it was. */
void ph__watch_star_turn(struct ph__watch_star *star, int timeout_ms);

/* To all peers that are here, as far as they take it at once: the rest goes with later turns. */
void ph__watch_star_send(
    struct ph__watch_star *star, enum ph__watch_frame type, const void *body, size_t size);
/* Where there is no notice yet, this is it; rank 0 passes it on. */
void ph__watch_star_note(struct ph__watch_star *star, const struct ph__comm_notice *notice);

/* Limits what a connection may say, and takes no descriptors from it. Owns the socket, also where this fails.
 */
ph_status ph__watch_stream_create(int socket, struct ph__control_stream **stream_out);
/* While two make each other's acquaintance: a few bytes, for which there is room. */
ph_status ph__watch_say(
    struct ph__control_stream *stream, enum ph__watch_frame type, const void *body, size_t size);

/* Rank 0, while it listens: a connection that has come, from whomever. Owns the socket. */
ph_status ph__watch_listener_admit(struct ph__watch_listener *listener, int socket);
struct ph__watch_star *ph__watch_listener_star(struct ph__watch_listener *listener); /* borrowed */

/* The addresses of this host's interfaces, in digits and in their order: the loopback's, or those that other
 * hosts may reach. *num_out is 0 where there are none. */
ph_status ph__watch_hosts(
    bool is_loopback, char hosts_out[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t *num_out);

#endif
