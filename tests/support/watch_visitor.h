/* Who comes to rank 0's watch by hand: a rank up to some point of the handshake, or a stranger. The listener
 * is turned by the test, in the same thread. */
#ifndef PH_TEST_WATCH_VISITOR_H
#define PH_TEST_WATCH_VISITOR_H

#include "comm/watch/watch_state.h"

struct watch_visitor {
    struct ph__watch_listener *listener; /* borrowed */
    struct ph__secret secret;            /* it believes in */
    struct ph__control_stream *stream;   /* owned */
    unsigned char hello[PH_WATCH_MAX_BODY];
    size_t hello_size;
};

/* Comes to the listener over a pair of sockets. false: there was no memory. */
bool watch_visitor_come(struct watch_visitor *visitor, struct ph__watch_listener *listener,
    const unsigned char secret[PH_WATCH_SECRET_BYTES]);
void watch_visitor_go(struct watch_visitor *visitor);

/* Says it, and lets the listener hear it. */
void watch_visitor_say(struct watch_visitor *visitor, uint16_t type, const void *body, size_t size);
/* What the listener has said next. false: nothing. */
bool watch_visitor_hear(struct watch_visitor *visitor, struct ph__control_frame *frame_out);
bool watch_visitor_is_dropped(struct watch_visitor *visitor);

/* As a rank does: says who it is; proves itself, after that. false: the answer was another than a rank
 * expects. */
void watch_visitor_greet(struct watch_visitor *visitor, uint32_t rank);
bool watch_visitor_prove(struct watch_visitor *visitor);

#endif
