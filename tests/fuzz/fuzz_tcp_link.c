/* Frames of a link over TCP: an input is what comes over the connection, in pieces of a size that its first
 * byte says. Whatever it is, a message arrives only after it was placed, with the payload that its frame had,
 * and the link ends with PH_ERROR_PEER. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link/tcp_link.h"
#include "support/fuzz_support.h"

enum { MAX_PAYLOAD = 64, CAPACITY = 4 };

struct reader {
    const uint8_t *bytes; /* what was sent */
    size_t size, at;      /* where the next frame begins */
    bool is_placed;
    size_t payload_bytes;
    unsigned char payload[MAX_PAYLOAD];
};

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    struct reader *reader = context;
    fuzz_require(!reader->is_placed);
    if (message->kind == 0 || payload_bytes > MAX_PAYLOAD)
        return ph_fail(PH_ERROR_PEER, "not this one");
    reader->is_placed = true;
    reader->payload_bytes = payload_bytes;
    *memory_out = reader->payload;
    return PH_OK;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    struct reader *reader = context;
    unsigned char head[PH_TCP_FRAME_BYTES];
    const size_t frame_bytes = sizeof head + reader->payload_bytes;
    fuzz_require(reader->is_placed && reader->at + frame_bytes <= reader->size);
    ph__tcp_frame_encode(message, (uint32_t)reader->payload_bytes, head);
    fuzz_require(memcmp(reader->bytes + reader->at, head, sizeof head) == 0);
    fuzz_require(
        memcmp(reader->bytes + reader->at + sizeof head, reader->payload, reader->payload_bytes) == 0);
    reader->is_placed = false;
    reader->at += frame_bytes;
    return PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    (void)context;
    (void)message;
    fuzz_require(false); /* nothing was sent */
}

static void send_piece(int socket, const uint8_t *bytes, size_t size)
{
    fuzz_require(send(socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct ph__link *link;
    size_t moved;
    if (size < 2 || size > 4096 || data[0] == 0)
        return 0;
    const size_t piece = data[0];
    struct reader reader = {.bytes = data + 1, .size = size - 1};
    fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    const struct ph__tcp_link_options options = {.socket = ends[0],
        .capacity = CAPACITY,
        .owner = {.context = &reader, .place = place, .arrived = arrived, .sent = sent}};
    fuzz_require(ph__tcp_link_create(&options, &link) == PH_OK);
    ph_status status = PH_OK;
    for (size_t i = 0; i < reader.size && status == PH_OK; i += piece) {
        send_piece(ends[1], reader.bytes + i, i + piece < reader.size ? piece : reader.size - i);
        status = ph__link_progress(link, CAPACITY, &moved);
    }
    close(ends[1]);
    while (status == PH_OK)
        status = ph__link_progress(link, CAPACITY, &moved);
    fuzz_require(status == PH_ERROR_PEER);
    ph__link_destroy(link);
    return 0;
}
