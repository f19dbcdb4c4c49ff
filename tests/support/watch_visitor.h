/* A visitor of rank 0's watch, played by the test: a rank up to some point of the handshake, or a stranger.
 * The test takes the listener's turns, in the same thread. */
#ifndef PH_TEST_WATCH_VISITOR_H
#define PH_TEST_WATCH_VISITOR_H

#include "comm/watch/watch_state.h"

struct watch_visitor {
    struct ph__watch_listener *listener; /* borrowed */
    struct ph__secret secret;            /* its own, right or wrong */
    struct ph__control_stream *stream;   /* owned */
    unsigned char hello[PH_WATCH_MAX_BODY];
    size_t hello_size;
};

/* Connects to the listener over a pair of sockets. Returns false when out of memory. */
bool watch_visitor_come(struct watch_visitor *visitor, struct ph__watch_listener *listener,
    const unsigned char secret[PH_WATCH_SECRET_BYTES]);
void watch_visitor_go(struct watch_visitor *visitor);

/* Sends a frame, and lets the listener read it. */
void watch_visitor_say(struct watch_visitor *visitor, uint16_t type, const void *body, size_t size);
/* Takes the listener's next frame; false when there is none. */
bool watch_visitor_hear(struct watch_visitor *visitor, struct ph__control_frame *frame_out);
bool watch_visitor_is_dropped(struct watch_visitor *visitor);

/* Plays a rank's handshake: greet sends its hello, and prove then proves itself. Prove returns false when the
 * listener does not reply as a rank expects. */
void watch_visitor_greet(struct watch_visitor *visitor, uint32_t rank);
bool watch_visitor_prove(struct watch_visitor *visitor);

#endif
