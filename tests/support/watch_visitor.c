#include "support/watch_visitor.h"

#include <string.h>
#include <sys/socket.h>

static void turn(struct watch_visitor *visitor)
{
    ph__watch_star_turn(ph__watch_listener_star(visitor->listener), 0);
}

bool watch_visitor_come(struct watch_visitor *visitor, struct ph__watch_listener *listener,
    const unsigned char secret[PH_WATCH_SECRET_BYTES])
{
    int ends[2];
    *visitor = (struct watch_visitor){.listener = listener, .secret.size = PH_WATCH_SECRET_BYTES};
    memcpy(visitor->secret.bytes, secret, PH_WATCH_SECRET_BYTES);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    if (ph__watch_stream_create(ends[1], &visitor->stream) != PH_OK)
        visitor->stream = NULL;
    return ph__watch_listener_admit(listener, ends[0]) == PH_OK && visitor->stream != NULL;
}

void watch_visitor_go(struct watch_visitor *visitor)
{
    ph__control_stream_destroy(visitor->stream);
    visitor->stream = NULL;
}

void watch_visitor_say(struct watch_visitor *visitor, uint16_t type, const void *body, size_t size)
{
    if (ph__control_stream_put(visitor->stream, type, body, size, NULL, 0) == PH_OK)
        (void)ph__control_stream_flush(visitor->stream); /* it may have been dropped */
    turn(visitor);
}

bool watch_visitor_hear(struct watch_visitor *visitor, struct ph__control_frame *frame_out)
{
    bool is_there = false;
    (void)ph__control_stream_receive(visitor->stream);
    return ph__control_stream_take(visitor->stream, frame_out, &is_there) == PH_OK && is_there;
}

bool watch_visitor_is_dropped(struct watch_visitor *visitor)
{
    (void)ph__control_stream_receive(visitor->stream);
    return ph__control_stream_is_closed(visitor->stream);
}

void watch_visitor_greet(struct watch_visitor *visitor, uint32_t rank)
{
    struct ph__watch_hello hello = {.who = ph__watch_self(rank)};
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, visitor->hello, sizeof visitor->hello);
    ph__watch_put_hello(&writer, &hello);
    visitor->hello_size = writer.used;
    watch_visitor_say(visitor, PH_WATCH_HELLO, visitor->hello, visitor->hello_size);
}

bool watch_visitor_prove(struct watch_visitor *visitor)
{
    struct ph__control_frame frame;
    struct ph__watch_answer answer;
    unsigned char proof[PH_PROOF_BYTES];
    if (!watch_visitor_hear(visitor, &frame) || frame.type != PH_WATCH_CHALLENGE ||
        ph__watch_get_answer(frame.body, frame.size, &answer) != PH_OK ||
        ph__watch_prove(&visitor->secret, visitor->hello, visitor->hello_size, &answer, "rank 0", proof) !=
            PH_OK)
        return false;
    watch_visitor_say(visitor, PH_WATCH_PROOF, proof, sizeof proof);
    return watch_visitor_hear(visitor, &frame) && frame.type == PH_WATCH_WELCOME;
}
